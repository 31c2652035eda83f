package entry

import (
	"bytes"
	"encoding/json"
	"errors"
	"slices"
	"strings"
)

// closureLast moves the closure block below the text that stands after it.
func closureLast(old []byte) ([]byte, error) {
	c, ok := FindClosure(old)
	if !ok || !c.Displaced {
		return nil, errors.New("there is no closure block with text after it")
	}
	eol := EOL(old)
	block := bytes.TrimRight(old[c.Start:c.End], "\r\n")
	rest := slices.Concat(old[:c.Start], bytes.TrimLeft(old[c.End:], "\r\n"))
	out := bytes.TrimRight(rest, " \t\r\n")
	out = append(slices.Clip(out), eol+eol...)
	return append(append(out, block...), eol...), nil
}

// ErrOpen says that a comment or code fence is open at a file's end, so that
// nothing that is added there counts.
var ErrOpen = errors.New("a comment or code fence never ends, and would swallow it")

// asLesson adds a list item as an entry of its own. Where it would belong to a
// headed entry above, it becomes a dated heading.
func asLesson(old, item []byte) (next, added []byte, err error) {
	own := func(next []byte) bool {
		all := ParseLessons(next)
		return len(all) > 0 && all[len(all)-1].Start >= len(old)
	}
	if next, added = insert(old, len(old), underList(old, item)); own(next) {
		return next, added, nil
	}
	text := strings.TrimPrefix(string(item), "- ")
	if day, rest, ok := strings.Cut(text, ": "); ok {
		text = day + " — " + rest
	}
	if next, added = insert(old, len(old), separated(old, []byte("## "+text), "")); own(next) {
		return next, added, nil
	}
	return nil, nil, ErrOpen
}

// LessonsArg is the argument of TakeLessons: the hashes of the entries' keys,
// one for each entry that goes.
type LessonsArg struct {
	Keys []string `json:"keys"`
}

func takeLessons(old, arg []byte) ([]byte, error) {
	var a LessonsArg
	if err := json.Unmarshal(arg, &a); err != nil {
		return nil, err
	}
	left := map[string]int{}
	for _, k := range a.Keys {
		left[k]++
	}
	var out []byte
	at := 0
	for _, l := range ParseLessons(old) {
		if k := LessonKey(l.Key(old)); left[k] > 0 {
			left[k]--
			out = append(out, old[at:l.Start]...)
			at = l.End
		}
	}
	return append(out, old[at:]...), nil
}

// PromotedArg is the argument of MarkPromoted.
type PromotedArg struct {
	Key   string `json:"key"` // the hash of the entry's key
	To    string `json:"to"`
	Topic string `json:"topic,omitempty"`
}

// markPromoted says in an entry where its durable home is. An entry that is
// not there any more, or says so already, is left.
func markPromoted(old, arg []byte) ([]byte, error) {
	var a PromotedArg
	if err := json.Unmarshal(arg, &a); err != nil {
		return nil, err
	}
	for _, l := range ParseLessons(old) {
		if LessonKey(l.Key(old)) != a.Key {
			continue
		}
		return slices.Concat(old[:l.Start], promoted(l, l.Text(old), EOL(old), a), old[l.End:]), nil
	}
	return nil, errors.New("the entry is not there any more")
}

func promoted(l Lesson, text []byte, eol string, a PromotedArg) []byte {
	body := bytes.TrimRight(text, " \t\r\n")
	tail := text[len(body):]
	mark := " #promoted:" + a.To
	if a.Topic != "" {
		mark += " #topic:" + a.Topic
	}
	ls := lines(body)
	first := len(ls[0].text)
	if l.Form == BulletForm {
		return slices.Concat(body[:first], []byte(mark), body[first:], tail)
	}
	// In the Status field where there is one, else under the heading. What else
	// the field says stays.
	var fence []byte
	for _, line := range ls {
		t := []byte(line.text)
		switch {
		case fence != nil:
			if bytes.HasPrefix(bytes.TrimLeft(t, " "), fence) {
				fence = nil
			}
			continue
		case startsFence(t) != nil:
			fence = startsFence(t)
			continue
		}
		k, rest, ok := strings.Cut(line.text, ":")
		if !ok || !strings.EqualFold(strings.Trim(strings.TrimLeft(k, "- "), "* "), "status") || !strings.Contains(line.text, "**") {
			continue
		}
		head := line.text[:len(k)+1]
		if r, bold := strings.CutPrefix(rest, "**"); bold {
			head, rest = head+"**", r
		}
		if _, remark, ok := strings.Cut(strings.TrimSpace(rest), " "); ok {
			mark = " " + remark + mark
		}
		end := line.start + len(line.text)
		return slices.Concat(body[:line.start], []byte(head+" promoted"+mark), body[end:], tail)
	}
	return slices.Concat(body[:first], []byte(eol+eol+"**Status**: promoted"+mark), body[first:], tail)
}

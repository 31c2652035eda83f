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
	if l.Form == BulletForm {
		return slices.Concat(body, []byte(mark), tail)
	}
	// Under the heading, or in the Status field where there is one.
	ls := lines(body)
	for _, line := range ls {
		if k, _, ok := strings.Cut(strings.TrimLeft(line.text, "- "), ":"); ok && strings.EqualFold(strings.Trim(k, "* "), "status") && strings.Contains(line.text, "**") {
			head := line.text[:strings.Index(line.text, ":")+1]
			if strings.HasPrefix(line.text[len(head):], "**") {
				head += "**"
			}
			end := line.start + len(line.text)
			return slices.Concat(body[:line.start], []byte(head+" promoted"+mark), body[end:], tail)
		}
	}
	end := len(ls[0].text)
	return slices.Concat(body[:end], []byte(eol+eol+"**Status**: promoted"+mark), body[end:], tail)
}

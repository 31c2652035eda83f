package entry

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// Closure is the block that ends a daily note: four lines, in this order.
type Closure struct {
	Start, End int // from the first line's start to past the last one's end
	Updated    string
	Decisions  string
	Signal     string
	Open       string
	Displaced  bool // text stands after it
}

var closureKeys = [4]string{"Updated", "Decisions", "Signal", "Open"}

// FindClosure finds the closure block: the last run of the four lines that is
// not inside a rotated block.
func FindClosure(b []byte) (Closure, bool) {
	ls := lines(b)
	fenced := inFences(b, ls)
	for i := len(ls) - 4; i >= 0; i-- {
		if fenced != nil && fenced[i] {
			continue // an example
		}
		if strings.Contains(ls[i+3].text, BlockEnd) {
			return Closure{}, false // an earlier run would stand in or above a rotated block
		}
		c := Closure{Start: ls[i].start, End: ls[i+3].end}
		values := [4]*string{&c.Updated, &c.Decisions, &c.Signal, &c.Open}
		ok := true
		for k := range closureKeys {
			v, found := strings.CutPrefix(strings.TrimSpace(ls[i+k].text), closureKeys[k]+":")
			if !found {
				ok = false
				break
			}
			*values[k] = strings.TrimSpace(v)
		}
		if !ok {
			continue
		}
		for _, l := range ls[i+4:] {
			c.Displaced = c.Displaced || !blank(l.text)
		}
		return c, true
	}
	return Closure{}, false
}

// inFences tells which lines stand in code fences; nil: none. A fence that
// never ends is none.
func inFences(b []byte, ls []line) []bool {
	if !bytes.Contains(b, []byte("```")) && !bytes.Contains(b, []byte("~~~")) {
		return nil
	}
	out := make([]bool, len(ls))
	var fence []byte
	from := 0
	for i, l := range ls {
		t := []byte(l.text)
		switch {
		case fence == nil:
			fence, from = startsFence(t), i
		case bytes.HasPrefix(bytes.TrimLeft(t, " "), fence):
			for k := from; k <= i; k++ {
				out[k] = true
			}
			fence = nil
		}
	}
	return out
}

// Text is the closure block as written, with empty fields as "none".
func (c Closure) Text(eol string) string {
	var sb strings.Builder
	for k, v := range [4]string{c.Updated, c.Decisions, c.Signal, c.Open} {
		if v == "" {
			v = "none"
		}
		sb.WriteString(closureKeys[k] + ": " + v + eol)
	}
	return sb.String()
}

// NewNote is a daily note with nothing in it yet.
func NewNote(day string, closure bool) []byte {
	s := "# " + day + "\n"
	if closure {
		s += "\n" + Closure{Updated: day}.Text("\n")
	}
	return []byte(s)
}

// The marks around a rotated buffer in a daily note.
const (
	blockStart = "<!-- mem:rotated sha256=%s bytes=%d -->"
	BlockEnd   = "<!-- /mem:rotated -->"
)

// Block is the section a rotated buffer becomes: a heading with its time span
// and size, a mark with the hash of the whole buffer, and its body unchanged.
func Block(raw []byte, hash string, loc *time.Location, eol string) []byte {
	b := ParseBuffer(raw)
	return []byte(blockHeading(b, loc) + eol + eol + string(marked(b, hash, eol)))
}

func blockHeading(b Buffer, loc *time.Location) string {
	span := ""
	from, ferr := ParseTime(b.Created, loc)
	to, ok := b.Active(loc)
	switch {
	case ferr == nil && ok && !to.Before(from):
		span = " " + from.In(loc).Format("2006-01-02 15:04") + " to " + to.In(loc).Format("2006-01-02 15:04")
	case ferr == nil:
		span = " " + from.In(loc).Format("2006-01-02 15:04")
	case ok:
		span = " until " + to.In(loc).Format("2006-01-02 15:04")
	}
	unit := "lines"
	if b.Lines == 1 {
		unit = "line"
	}
	return fmt.Sprintf("## Working buffer%s (%d %s)", span, b.Lines, unit)
}

// marked is the proof part of a block: from the start mark to the end mark.
func marked(b Buffer, hash, eol string) []byte {
	out := fmt.Appendf(nil, blockStart+"%s", hash, len(b.Raw), eol)
	out = append(out, b.Body()...)
	if len(out) > 0 && out[len(out)-1] != '\n' {
		out = append(out, eol...)
	}
	return append(append(out, BlockEnd...), eol...)
}

// Rest is what of a buffer's text stands in none of the notes yet. A block
// counts only if its mark and its body both fit a prefix of the text: a mark
// that somebody typed proves nothing. Each block covers text once, so that text
// which stands twice in raw needs two. hash is the function the marks were made
// with.
func Rest(raw []byte, notes [][]byte, hash func([]byte) string) []byte {
	type place struct{ note, at int }
	used := map[place]bool{}
	for again := true; again; {
		again = false
		for i, note := range notes {
			if n, at := covered(raw, note, hash, func(at int) bool { return used[place{i, at}] }); n > 0 {
				raw, again = raw[n:], true
				used[place{i, at}] = true
			}
		}
	}
	return raw
}

func covered(raw, note []byte, hash func([]byte) string, used func(at int) bool) (n, at int) {
	const mark = "<!-- mem:rotated sha256="
	for _, l := range lines(note) {
		if !strings.HasPrefix(l.text, mark) || used(l.start) {
			continue
		}
		var sum string
		var n int
		if k, _ := fmt.Sscanf(l.text, blockStart, &sum, &n); k != 2 || n <= 0 || n > len(raw) || hash(raw[:n]) != sum {
			continue
		}
		b := ParseBuffer(raw[:n])
		for _, eol := range []string{"\n", "\r\n"} {
			if bytes.HasPrefix(note[l.start:], marked(b, sum, eol)) {
				return n, l.start
			}
		}
	}
	return 0, 0
}

package entry

import (
	"bytes"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
)

// Places where text goes into a file, by name: a plan stores the name, so that
// a step whose target changed can be planned again after a crash.
const (
	AboveClosure = "above-closure" // a block in a daily note
	WithClosure  = "with-closure"  // the same, and a closure block where there is none
	ActiveTask   = "active-task"   // a line in the working buffer
	AtEnd        = "end"           // after what is there
	SetClosure   = "closure"       // the closure block itself
	AtLine       = "line"          // lines after what is there, without a blank one between
	AtLesson     = "lesson"        // a list item as the last entry of a SCRATCH file
	Late         = "late"          // what a writer added through an old descriptor
	ClosureLast  = "closure-last"  // a closure block that text stands after, put last
	Verified     = "verified"      // last_verified in the header
	TakeLessons  = "take-lessons"  // entries out of a SCRATCH file
	MarkPromoted = "mark-promoted" // where an entry's durable home is
	SessionLog   = "session-log"   // what exchanges bring into a day's log
	LongMemory   = "long-memory"   // durable facts under their day
	TakeOut      = "take-out"      // texts that go elsewhere
)

// Change is what is to be placed.
type Change struct {
	Place string
	Text  []byte
	Seed  []byte // what to start from where the file is absent or empty
	Stamp string // ActiveTask: the new last_active; WithClosure: the day
}

// Place computes a file's next content from what it holds now (nil: absent),
// and exactly what was added, separators included. It refuses UTF-16 and what
// would grow over the limit of a note.
func Place(c Change, old []byte) (next, added []byte, err error) {
	if err := CheckText(old, MaxNote); err != nil {
		return nil, nil, err
	}
	if len(old) == 0 && c.Seed != nil {
		old = c.Seed
	}
	switch c.Place {
	case AboveClosure:
		next, added = aboveClosure(old, c.Text)
	case WithClosure:
		text := c.Text
		if _, ok := FindClosure(old); !ok {
			eol := EOL(old)
			text = append(append(slices.Clone(text), eol...), Closure{Updated: c.Stamp}.Text(eol)...)
		}
		next, added = aboveClosure(old, text)
	case ActiveTask:
		next, added = underTask(old, c.Text, c.Stamp)
	case AtEnd:
		next, added = insert(old, len(old), separated(old, c.Text, ""))
	case AtLine:
		next, added = insert(old, len(old), underList(old, c.Text))
	case AtLesson:
		next, added, err = asLesson(old, c.Text)
	case Late:
		next, added = late(old, c.Text)
	case ClosureLast:
		next, err = closureLast(old)
	case Verified:
		next = setVerified(old, string(c.Text))
	case TakeLessons:
		next, err = takeLessons(old, c.Text)
	case MarkPromoted:
		next, err = markPromoted(old, c.Text)
	case SessionLog:
		next, err = sessionLog(old, c.Text)
	case LongMemory:
		next, err = longMemory(old, c.Text)
	case TakeOut:
		next, err = takeOut(old, c.Text)
	case SetClosure:
		next, err = setClosure(old, c.Text)
	default:
		err = fmt.Errorf("unknown place %q: written by a newer mem?", c.Place)
	}
	if err == nil {
		err = CheckText(next, MaxNote)
	}
	return next, added, err
}

func insert(old []byte, at int, add []byte) (next, added []byte) {
	next = make([]byte, 0, len(old)+len(add))
	next = append(append(append(next, old[:at]...), add...), old[at:]...)
	return next, add
}

// separated is text with exactly the line ends before it that leave one blank
// line after what stands above.
func separated(above, text []byte, after string) []byte {
	eol := EOL(above)
	var out []byte
	if len(above) > 0 {
		if above[len(above)-1] != '\n' {
			out = append(out, eol...)
		}
		if t := bytes.TrimSuffix(bytes.TrimSuffix(above, []byte("\n")), []byte("\r")); len(t) > 0 && t[len(t)-1] != '\n' {
			out = append(out, eol...)
		}
	}
	out = append(out, text...)
	return append(out, after...)
}

// underList is lines with what must stand before them at the end of a file:
// nothing after a list, a blank line after other text.
func underList(old, text []byte) []byte {
	last := bytes.TrimRight(old, "\r\n")
	last = last[bytes.LastIndexByte(last, '\n')+1:]
	if len(last) == 0 || !bytes.ContainsAny(last[:1], "-*+ \t") {
		return separated(old, text, "")
	}
	if old[len(old)-1] != '\n' {
		return append([]byte(EOL(old)), text...)
	}
	return text
}

func aboveClosure(old, block []byte) (next, added []byte) {
	if c, ok := FindClosure(old); ok {
		return insert(old, c.Start, separated(old[:c.Start], block, EOL(old)))
	}
	return insert(old, len(old), separated(old, block, ""))
}

func late(old, tail []byte) (next, added []byte) {
	at := len(old)
	if c, ok := FindClosure(old); ok {
		at = c.Start
	}
	var add []byte
	if at > 0 && old[at-1] != '\n' {
		add = append(add, EOL(old)...)
	}
	add = append(add, tail...)
	if add[len(add)-1] != '\n' {
		add = append(add, EOL(old)...)
	}
	return insert(old, at, add)
}

// underTask adds a line at the end of the task section, or of the file where
// there is none, and stamps last_active in the header.
func underTask(old, text []byte, stamp string) (next, added []byte) {
	old = restamp(old, stamp)
	ls := lines(old)
	at, in := len(old), false
	for i, l := range ls {
		if in {
			if level, _ := heading(l.text); level > 0 && level <= 2 && l.text[0] == '#' {
				break // an indented one belongs to a list item
			}
			if !blank(l.text) {
				at = ls[i].end
			}
		} else if isActiveTask(l.text) {
			in, at = true, l.end
		}
	}
	var add []byte
	if at > 0 && old[at-1] != '\n' {
		add = append(add, EOL(old)...)
	}
	add = append(add, bytes.ReplaceAll(text, []byte("\n"), []byte(EOL(old)))...)
	return insert(old, at, add)
}

func restamp(old []byte, stamp string) []byte {
	b := ParseBuffer(old)
	if b.Dialect != Canonical || stamp == "" {
		return old
	}
	for _, l := range lines(b.Header()) {
		if !strings.HasPrefix(l.text, "last_active:") {
			continue
		}
		end := l.start + len(l.text)
		out := append([]byte(nil), old[:l.start]...)
		out = append(append(out, "last_active: "+stamp...), old[end:]...)
		return out
	}
	return old
}

// ClosureArg is the argument of SetClosure; empty fields keep what is there,
// and are "none" where nothing is.
type ClosureArg struct {
	Updated   string `json:"updated"`
	Decisions string `json:"decisions,omitempty"`
	Signal    string `json:"signal,omitempty"`
	Open      string `json:"open,omitempty"`
}

func setClosure(old, arg []byte) ([]byte, error) {
	var a ClosureArg
	if err := json.Unmarshal(arg, &a); err != nil {
		return nil, fmt.Errorf("closure: %w", err)
	}
	c, ok := FindClosure(old)
	rest := old
	if ok {
		rest = append(append([]byte(nil), old[:c.Start]...), old[c.End:]...)
	}
	c.Updated = a.Updated
	for to, from := range map[*string]string{&c.Decisions: a.Decisions, &c.Signal: a.Signal, &c.Open: a.Open} {
		if from != "" {
			*to = from
		}
	}
	if ok && !c.Displaced {
		next, _ := insert(rest, c.Start, []byte(c.Text(EOL(old))))
		return next, nil
	}
	next, _ := insert(rest, len(rest), separated(rest, []byte(c.Text(EOL(old))), ""))
	return next, nil
}

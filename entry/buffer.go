package entry

import (
	"bytes"
	"fmt"
	"regexp"
	"strings"
	"sync"
	"time"
)

// Dialects of working buffers that are found in the field.
const (
	Canonical = "canonical" // "# Working Buffer" with created and last_active
	Log       = "log"       // the "danger zone log": **Status:** and dated sections
	Plain     = "plain"     // anything else
)

// Buffer is a working buffer as parsed.
type Buffer struct {
	Raw        []byte
	Dialect    string
	BodyStart  int // where the text after the header begins
	Created    string
	LastActive string // as written in the header, or ""
	Lines      int
}

// Title is the first line of a working buffer.
const Title = "# Working Buffer"

// ParseBuffer reads a working buffer of any dialect. Every input has a result.
func ParseBuffer(b []byte) Buffer {
	buf := Buffer{Raw: b, Dialect: Plain, Lines: CountLines(b)}
	rest := bytes.TrimPrefix(b, bom)
	skip := len(b) - len(rest)
	buf.BodyStart = skip
	ls := lines(rest)
	if len(ls) == 0 {
		return buf
	}
	if strings.TrimRight(ls[0].text, " \t") == Title {
		i, fields := 1, 0
	header:
		for ; i < len(ls); i++ {
			key, value, ok := strings.Cut(ls[i].text, ":")
			if !ok {
				break
			}
			switch key {
			case "created":
				buf.Created = strings.TrimSpace(value)
			case "last_active":
				buf.LastActive = strings.TrimSpace(value)
			default:
				break header
			}
			fields++
		}
		if fields > 0 {
			buf.Dialect = Canonical
			for i < len(ls) && blank(ls[i].text) {
				i++
			}
			buf.BodyStart = skip + ls[i-1].end
			return buf
		}
	}
	for _, l := range ls[:min(len(ls), 20)] {
		if strings.HasPrefix(strings.TrimSpace(l.text), "**Status:**") {
			buf.Dialect = Log
		}
	}
	return buf
}

// Body is the text after the header.
func (b Buffer) Body() []byte { return b.Raw[b.BodyStart:] }

// Header is what stands before the body.
func (b Buffer) Header() []byte { return b.Raw[:b.BodyStart] }

// Empty reports whether the buffer holds nothing but its template. Anything
// else an agent may have written, a comment too.
func (b Buffer) Empty() bool {
	for i, l := range lines(b.Body()) {
		t := strings.TrimSpace(l.text)
		if level, _ := heading(t); i == 0 && level == 1 && b.Dialect == Log {
			continue // the log's own title
		}
		if !b.template(t) {
			return false
		}
	}
	return true
}

func (b Buffer) template(t string) bool {
	switch t {
	case "", "-", "*", "- ...", "- …", "---":
		return true
	}
	if isActiveTask(t) {
		return true
	}
	if status, ok := strings.CutPrefix(t, "**Status:**"); ok && b.Dialect == Log {
		status = strings.TrimSpace(status)
		return status == "IDLE" || status == "ACTIVE" || status == "" // more than the word is text
	}
	return b.Dialect == Plain && t == Title
}

// isActiveTask recognises the heading of the task section.
func isActiveTask(s string) bool {
	level, title := heading(s)
	return level > 0 && strings.EqualFold(strings.TrimSpace(strings.TrimSuffix(title, ":")), "active task")
}

// Unfinished reports whether something stands under Active Task, or, in a
// dialect without that heading, anywhere.
func (b Buffer) Unfinished() bool {
	in, seen := false, false
	for _, l := range lines(b.Body()) {
		if level, _ := heading(l.text); level > 0 && level <= 2 {
			in = isActiveTask(l.text)
			seen = seen || in
			continue
		}
		if in && !b.template(strings.TrimSpace(l.text)) {
			return true
		}
	}
	return !seen && !b.Empty()
}

var stamps = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`\d{4}-\d\d-\d\d[T ]\d\d:\d\d(?::\d\d(?:[.,]\d{1,9})?)?(?: ?(?:Z|[+-]\d\d:?\d\d))?`)
})

// Active is when the buffer was last active: the header's last_active, else
// the newest time in the body, read in loc where it names no offset. ok is
// false if neither is there.
func (b Buffer) Active(loc *time.Location) (t time.Time, ok bool) {
	if t, err := ParseTime(b.LastActive, loc); err == nil {
		return t, true
	}
	for _, m := range stamps().FindAll(b.Body(), -1) {
		if u, err := ParseTime(string(m), loc); err == nil && (!ok || u.After(t)) {
			t, ok = u, true
		}
	}
	return t, ok
}

// timeForms are the ISO 8601 instants that agents write.
var timeForms = []string{
	time.RFC3339Nano, "2006-01-02T15:04:05.999999999Z0700", "2006-01-02T15:04Z07:00", "2006-01-02T15:04Z0700",
	"2006-01-02 15:04:05Z07:00", "2006-01-02 15:04:05Z0700", "2006-01-02 15:04:05 Z0700", "2006-01-02 15:04:05 Z07:00",
}

var localForms = []string{"2006-01-02T15:04:05.999999999", "2006-01-02T15:04", "2006-01-02 15:04:05.999999999", "2006-01-02 15:04"}

// ParseTime reads an ISO 8601 time; one without an offset is in loc.
func ParseTime(s string, loc *time.Location) (time.Time, error) {
	s = strings.TrimSpace(strings.Replace(s, ",", ".", 1))
	for _, f := range timeForms {
		if t, err := time.Parse(f, s); err == nil {
			return t, nil
		}
	}
	for _, f := range localForms {
		if t, err := time.ParseInLocation(f, s, loc); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("not an ISO 8601 time: %q", s)
}

// ParseInstant is ParseTime for a time that must name its offset.
func ParseInstant(s string) (time.Time, error) {
	for _, f := range timeForms {
		if t, err := time.Parse(f, strings.TrimSpace(s)); err == nil {
			return t, nil
		}
	}
	return time.Time{}, fmt.Errorf("not an ISO 8601 instant with an offset: %q", s)
}

// Fresh is an empty working buffer created at a time. Its header differs from
// that of the buffer it follows, also within one instant: the header is part
// of what a rotation's hash covers, so no two rotations ever look the same.
func Fresh(at time.Time, after Buffer) []byte {
	created := at.Truncate(time.Second)
	if prev, err := ParseInstant(after.Created); err == nil && prev.Truncate(time.Second).Equal(created) {
		created = prev.Add(time.Nanosecond).In(at.Location())
	}
	return fmt.Appendf(nil, "%s\ncreated: %s\nlast_active: %s\n\n## Active Task:\n", Title, created.Format(time.RFC3339Nano), at.Format(time.RFC3339))
}

// Package handoff reads the handoffs that agents leave, judges each, and plans
// its landing in memory.
//
// [Parse] reads one file; [Batch] judges handoffs one after the other, each in
// the light of those before it, and plans what the accepted ones change. Lint,
// dry run and ingest are this one code. Nothing here writes.
package handoff

import (
	"bytes"
	"strings"
)

// MaxSize is the largest handoff that is read, in bytes.
const MaxSize = 1 << 20

// Names of the sections that split a handoff (source: handoffs, "The Handoff
// Format"). Any other heading is text.
const (
	Type     = "type"
	Title    = "title"
	Summary  = "summary"
	Facts    = "durable facts"
	Evidence = "evidence"
	Action   = "recommended memory action"
	Card     = "target card"
	Expected = "expected card sha256"
	Content  = "suggested card content"
	Document = "target document"
	Block    = "suggested document content"
	Notes    = "reviewer notes"
)

var sectionNames = []string{Type, Title, Summary, Facts, Evidence, Action, Card, Expected, Content, Document, Block, Notes}

// Types are the values of the Type section.
var Types = []string{"setup", "workflow", "bugfix", "decision", "security", "preference", "research", "project-context"}

// Section is one part of a handoff.
type Section struct {
	Name string
	Line int    // of its heading, from 1
	Text string // below the heading, without blank lines at its ends
}

// Handoff is a handoff as parsed.
type Handoff struct {
	Sections   []Section // in the order of the file
	Duplicates []Section // sections of a name that had occurred
	Unclosed   int       // the line of a code fence that never ends, or 0
}

// Get returns a section's text, or "".
func (h Handoff) Get(name string) string {
	s, _ := h.Section(name)
	return s.Text
}

// Section returns a section.
func (h Handoff) Section(name string) (Section, bool) {
	for _, s := range h.Sections {
		if s.Name == name {
			return s, true
		}
	}
	return Section{}, false
}

// Field returns a one-line section's value: comments are left out, and so are
// code marks around it. ok is false if it has more than one line.
func (h Handoff) Field(name string) (value string, ok bool) {
	var lines []string
	for l := range strings.Lines(withoutComments(h.Get(name))) {
		if l = strings.TrimSpace(l); l != "" {
			lines = append(lines, l)
		}
	}
	switch len(lines) {
	case 0:
		return "", true
	case 1:
		return strings.TrimSpace(strings.Trim(lines[0], "`")), true
	}
	return strings.Join(lines, " "), false
}

func withoutComments(s string) string {
	for {
		i := strings.Index(s, "<!--")
		if i < 0 {
			return s
		}
		j := strings.Index(s[i:], "-->")
		if j < 0 {
			return s[:i]
		}
		s = s[:i] + s[i+j+3:]
	}
}

// Parse reads a handoff. Every input has a result; what is wrong with it is
// for Batch to say.
func Parse(b []byte) Handoff {
	var h Handoff
	b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
	open := -1 // of Sections
	var start int
	var inside fence
	fenceLine := 0
	end := func(at int) {
		if open >= 0 {
			h.Sections[open].Text = trimBlank(string(b[start:at]))
		}
		open = -1
	}
	at := 0
	for n := 1; at < len(b); n++ {
		next := len(b)
		if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
			next = at + i + 1
		}
		line := string(bytes.TrimRight(b[at:next], "\r\n"))
		was := inside
		if fenced := inside.next(line); fenced {
			if was == "" {
				fenceLine = n
			}
		} else if name, ok := heading(line); ok {
			end(at)
			s := Section{Name: name, Line: n}
			if _, twice := h.Section(name); twice {
				h.Duplicates = append(h.Duplicates, s)
			} else {
				h.Sections = append(h.Sections, s)
				open, start = len(h.Sections)-1, next
			}
		}
		at = next
	}
	end(len(b))
	if inside != "" {
		h.Unclosed = fenceLine
	}
	return h
}

// heading recognises the heading of a known section.
func heading(line string) (string, bool) {
	rest, ok := strings.CutPrefix(line, "##")
	if !ok || rest == "" || rest[0] != ' ' && rest[0] != '\t' {
		return "", false
	}
	name := strings.ToLower(strings.Join(strings.Fields(rest), " "))
	name = strings.TrimSpace(strings.TrimRight(strings.TrimRight(name, "#"), ": "))
	for _, known := range sectionNames {
		if name == known {
			return known, true
		}
	}
	return "", false
}

// fence is what an open code fence began with; "" where none is open.
type fence string

// next follows one line, and reports whether it belongs to a fenced block: it
// opens or closes one, or stands inside.
func (f *fence) next(line string) bool {
	mark := fenceMark(line)
	switch {
	case *f == "":
		*f = fence(mark)
		return mark != ""
	case closes(string(*f), line):
		*f = ""
	}
	return true
}

// closes reports whether a line closes the fence that began with open: as many
// of the same marks, and nothing else.
func closes(open, line string) bool {
	mark := fenceMark(line)
	return strings.HasPrefix(mark, open) && strings.TrimSpace(line) == mark
}

// fenceMark returns the marks of a line that opens or closes a code fence.
func fenceMark(line string) string {
	t := strings.TrimLeft(line, " ")
	if len(line)-len(t) > 3 || len(t) < 3 || t[0] != '`' && t[0] != '~' {
		return ""
	}
	n := 0
	for n < len(t) && t[n] == t[0] {
		n++
	}
	if n < 3 || t[0] == '`' && strings.Contains(t[n:], "`") {
		return ""
	}
	return t[:n]
}

// trimBlank cuts blank lines at both ends.
func trimBlank(s string) string {
	for {
		line, rest, ok := strings.Cut(s, "\n")
		if !ok || strings.TrimSpace(line) != "" {
			break
		}
		s = rest
	}
	return strings.TrimRight(s, " \t\r\n")
}

// peel takes one outer code fence off card content: bare, markdown or md.
func peel(s string) string {
	first, rest, ok := strings.Cut(s, "\n")
	mark := fenceMark(first)
	if !ok || mark == "" {
		return s
	}
	switch strings.TrimSpace(strings.TrimSpace(first)[len(mark):]) {
	case "", "markdown", "md":
	default:
		return s
	}
	body := strings.TrimRight(rest, " \t\r\n")
	i := strings.LastIndex(body, "\n")
	if !closes(mark, body[i+1:]) {
		return s
	}
	return trimBlank(body[:max(i, 0)])
}

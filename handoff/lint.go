package handoff

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Problem is one thing that lint says of a handoff.
type Problem struct {
	Line    int    `json:"line"`
	Code    string `json:"code"`
	Warning bool   `json:"warning"` // it lands all the same
	Message string `json:"message"`
	Hint    string `json:"hint"`
}

// relative are dates that mean something else tomorrow.
var relative = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)\b(?:today|yesterday|tomorrow|tonight|last (?:week|month|year|night)|next (?:week|month|year)|this (?:morning|afternoon|evening|week)|recently|just now|heute|gestern|morgen|hier|ayer|mañana|aujourd'hui)\b|昨天|今天|明天|昨日|今日|明日`)
})

// pronouns begin a fact that says nothing by itself.
var pronouns = []string{"it ", "this ", "that ", "they ", "these ", "those ", "he ", "she "}

// Quality says what would make a handoff better, beyond what Judge asks for.
func Quality(h Handoff) []Problem {
	var out []Problem
	warn := func(line int, code, message, hint string) {
		out = append(out, Problem{line, code, true, message, hint})
	}
	typ, _ := h.Field(Type)
	sec, ok := h.Section(Type)
	if !ok || !slices.Contains(Types, strings.ToLower(typ)) {
		warn(sec.Line, "type", fmt.Sprintf("the Type %q is none of the known", short(typ)), "one of "+strings.Join(Types, ", "))
	}
	if title, _ := h.Field(Title); title == "" {
		warn(0, "title", "there is no Title", "a short, specific one")
	}
	if h.Get(Summary) == "" {
		warn(0, "summary", "there is no Summary", "two to four sentences: what happened, and why it matters")
	}
	if ev, ok := h.Section(Evidence); !ok || strings.Trim(ev.Text, "-*… \t\r\n") == "" {
		warn(ev.Line, "evidence", "there is no Evidence", "files, commands, error texts")
	}
	if f, ok := h.Section(Facts); ok {
		n := f.Line
		for line := range strings.Lines(f.Text) {
			n++
			fact := strings.ToLower(strings.TrimLeft(strings.TrimSpace(line), "-*+ "))
			for _, p := range pronouns {
				if strings.HasPrefix(fact, p) {
					warn(n, "bare-pronoun", fmt.Sprintf("a fact begins with %q", strings.TrimSpace(p)), "name the thing: the fact is read without its neighbours")
					break
				}
			}
		}
	}
	for _, name := range []string{Facts, Content, Block} {
		s, ok := h.Section(name)
		if !ok {
			continue
		}
		n := s.Line
		for line := range strings.Lines(s.Text) {
			n++
			if m := relative().FindString(line); m != "" {
				warn(n, "relative-date", fmt.Sprintf("%q means another day tomorrow", m), "write the date: 2026-11-30")
			}
		}
	}
	return out
}

// New is what a new handoff says.
type New struct {
	Type, Title, Summary, Facts, Evidence string
	Action, Card, Expected, Document      string
	Content                               string
}

// Text writes a handoff in the standard format.
func (n New) Text() []byte {
	var sb strings.Builder
	sb.WriteString("# Memory Handoff\n")
	section := func(title, text string) {
		if text = trimBlank(text); text != "" {
			fmt.Fprintf(&sb, "\n## %s\n%s\n", title, text)
		}
	}
	section("Type", n.Type)
	section("Title", n.Title)
	section("Summary", n.Summary)
	section("Durable facts", n.Facts)
	section("Evidence", n.Evidence)
	section("Recommended memory action", n.Action)
	section("Target card", n.Card)
	section("Expected card SHA256", n.Expected)
	if n.Card != "" {
		section("Suggested card content", n.Content)
	}
	section("Target document", n.Document)
	if n.Document != "" {
		section("Suggested document content", n.Content)
	}
	return []byte(sb.String())
}

// Landing is what a handoff would write, if a person says so: the target, its
// whole new text for a card, or the block that is added to a document.
func Landing(text []byte) (target string, content []byte, whole, ok bool) {
	h := Parse(text)
	if name, one := h.Field(Card); name != "" && one && safeName(name) && h.Get(Content) != "" {
		return "memory/cards/" + name, cardText(peel(h.Get(Content))), true, true
	}
	if name, one := h.Field(Document); name != "" && one && h.Get(Block) != "" {
		return name, blockText(h.Get(Block), nil), false, true
	}
	return "", nil, false, false
}

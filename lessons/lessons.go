// Package lessons keeps SCRATCH: what failed, what was wrong, what is missing.
//
// [Learn] plans one more entry, [Groups] counts what recurs, [Promote] plans a
// lesson's way to its durable home, when a person has decided that. Nothing
// here promotes by itself, and nothing writes.
package lessons

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// ErrNoScratch says that the layout has no SCRATCH.
var ErrNoScratch = errors.New("this layout has no SCRATCH")

// RefusedError says why a text is not taken, and what to do.
type RefusedError struct{ Msg, Hint string }

func (e *RefusedError) Error() string { return e.Msg }

// Mend is the hint that goes with the error.
func (e *RefusedError) Mend() string { return e.Hint }

// Lesson is an entry and the file it is in.
type Lesson struct {
	entry.Lesson
	File string
	Key  string // short hash: how plans and people name it
}

// Read reads the lessons of the canonical SCRATCH files, in their order. A
// file that is not there has none; one that cannot be read is an error, with
// the lessons of the others.
func Read(m fs.FS, rules tiers.Rules) ([]Lesson, error) {
	if rules.Scratch.Dir == "" {
		return nil, ErrNoScratch
	}
	var out []Lesson
	var errs []error
	for _, base := range rules.Scratch.Files {
		name := path.Join(rules.Scratch.Dir, base)
		b, err := fs.ReadFile(m, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			errs = append(errs, err)
			continue
		}
		for _, l := range entry.ParseLessons(b) {
			out = append(out, Lesson{l, name, entry.LessonKey(l.Key(b))})
		}
	}
	return out, errors.Join(errs...)
}

// Kinds are the kinds of lessons; each has its file, in the layout's order.
var Kinds = []string{"error", "lesson", "feature"}

// noOps are texts that say that there is nothing to say (source: tiered
// memory, "Anti-patterns"), folded.
var noOps = []string{
	"nothing", "none", "n/a", "no-op", "noop", "nothing found", "nothing relevant", "nothing relevant found", "nothing new", "nothing to log", "no learnings", "no lessons", "no lesson", "no new lessons",
	"no errors", "no errors found", "no issues", "no issues found", "checked learnings, nothing relevant", "checked learnings", "all good", "everything fine", "all fine", "no changes", "no action needed", "ok",
}

// maxSentences is how long an entry may be unless its writer insists (source:
// tiered memory, "two short sentences").
const maxSentences = 2

// Learn plans one more entry in the file of its kind: a line with date and
// text. It refuses what already stands in SCRATCH, or says nothing.
func Learn(m fs.FS, rules tiers.Rules, now time.Time, kind, text string, long bool) (plan.Plan, error) {
	if rules.Scratch.Dir == "" {
		return plan.Plan{}, ErrNoScratch
	}
	i := slices.Index(Kinds, kind)
	if i < 0 || i >= len(rules.Scratch.Files) {
		return plan.Plan{}, &RefusedError{fmt.Sprintf("no kind of lesson %q", kind), "one of " + strings.Join(Kinds, ", ")}
	}
	text = strings.Join(strings.Fields(text), " ")
	folded := entry.Fold(text)
	switch {
	case folded == "":
		return plan.Plan{}, &RefusedError{"the lesson is empty", "say what should be done otherwise next time"}
	case slices.Contains(noOps, folded):
		return plan.Plan{}, &RefusedError{fmt.Sprintf("%q says that there is nothing to learn: not logged", text), "log only what changes future behaviour"}
	case !long && sentences(text) > maxSentences:
		return plan.Plan{}, &RefusedError{fmt.Sprintf("%d sentences; a lesson has at most %d", sentences(text), maxSentences), "shorten it, or insist with --long"}
	}
	all, err := Read(m, rules)
	if err != nil {
		return plan.Plan{}, err
	}
	for _, l := range all {
		if entry.Fold(l.Summary) == folded || entry.Fold(l.Title) == folded {
			return plan.Plan{}, &RefusedError{fmt.Sprintf("it stands in %s:%d already", l.File, l.Line), "a lesson stands once; mem lessons shows what recurs"}
		}
	}
	name := path.Join(rules.Scratch.Dir, rules.Scratch.Files[i])
	old, err := read(m, name)
	if err != nil {
		return plan.Plan{}, err
	}
	step := plan.Step{
		Kind: plan.Append, Path: name, Before: plan.StateOf(old), Place: entry.AtLesson,
		Text: []byte("- " + rules.Day(now) + ": " + text + "\n"), Seed: []byte(title(rules.Scratch.Files[i])),
	}
	if _, _, err := entry.Place(entry.Change{Place: step.Place, Text: step.Text, Seed: step.Seed}, old); err != nil {
		return plan.Plan{}, &RefusedError{name + ": " + err.Error(), "mend the file by hand"}
	}
	return plan.Plan{Command: "learn", Facts: plan.Facts{"file": name, "kind": kind}, Steps: []plan.Step{step}}, nil
}

// title is a new SCRATCH file's first lines.
func title(base string) string {
	words := strings.Split(strings.ToLower(strings.TrimSuffix(base, ".md")), "_")
	words[0] = strings.ToUpper(words[0][:1]) + words[0][1:]
	return "# " + strings.Join(words, " ") + "\n\n"
}

// read reads a file; nil: absent.
func read(m fs.FS, name string) ([]byte, error) {
	b, err := fs.ReadFile(m, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, nil
	case err != nil:
		return nil, err
	case b == nil:
		return []byte{}, nil
	}
	return b, nil
}

// sentences counts the ends of sentences: a mark with a blank after it, or
// that of a script without blanks.
func sentences(s string) int {
	n, runes := 0, []rune(s)
	for i, r := range runes {
		last := i == len(runes)-1
		switch r {
		case '。', '！', '？':
			n++
		case '.', '!', '?':
			if (last || runes[i+1] == ' ') && i > 0 && (unicode.IsLetter(runes[i-1]) || unicode.IsDigit(runes[i-1]) || runes[i-1] == ')' || runes[i-1] == '"' || runes[i-1] == '`') && !abbreviated(runes[:i]) {
				n++
			}
		}
	}
	if len(runes) > 0 && !strings.ContainsRune(".!?。！？", runes[len(runes)-1]) {
		n++
	}
	return n
}

// abbreviated reports whether a full stop after these runes ends a word such
// as "e.g" or "z.B", not a sentence.
func abbreviated(before []rune) bool {
	i := len(before)
	for i > 0 && before[i-1] != ' ' {
		i--
	}
	word := strings.ToLower(strings.Trim(string(before[i:]), "(\""))
	return strings.Contains(word, ".") && len(word) <= 5 || slices.Contains([]string{"etc", "vs", "cf", "no", "bzw", "ca"}, word)
}

// Group is one lesson and everywhere it stands.
type Group struct {
	Lesson  string // its text, white space collapsed
	Pattern string // the pattern key that its entries share, if that is what makes them one
	Entries []Lesson
	Days    int // distinct days, or days and tasks, on which it was written
	Recent  int // of them within the last week
}

// Candidate reports whether a person should think about promoting it (source:
// tiered memory, "3 or more times in the past 7 days").
func (g Group) Candidate() bool {
	if g.Recent < recurring {
		return false
	}
	return !slices.ContainsFunc(g.Entries, func(l Lesson) bool { return l.Promoted })
}

const (
	recurring = 3
	window    = 7 // days, today among them
)

// Groups gathers entries that are the same lesson: by their folded summary, or
// by a pattern key. Copies of one day, or of one task of that day, count once.
func Groups(all []Lesson, rules tiers.Rules, now time.Time) []Group {
	index := map[string]int{}
	var out []Group
	for _, l := range all {
		by, pattern := "s:"+entry.Fold(l.Summary), ""
		if l.Pattern != "" {
			by, pattern = "p:"+strings.ToLower(l.Pattern), l.Pattern
		}
		if by == "s:" {
			continue
		}
		i, ok := index[by]
		if !ok {
			i = len(out)
			index[by] = i
			out = append(out, Group{Lesson: strings.Join(strings.Fields(l.Summary), " "), Pattern: pattern})
		}
		out[i].Entries = append(out[i].Entries, l)
	}
	first := rules.Day(now.AddDate(0, 0, 1-window))
	today := rules.Day(now)
	for i := range out {
		days, recent := map[string]bool{}, map[string]bool{}
		for _, l := range out[i].Entries {
			if l.Day == "" {
				continue
			}
			occasion := l.Day + "\x00" + l.Task
			days[occasion] = true
			if l.Day >= first && l.Day <= today {
				recent[occasion] = true
			}
		}
		out[i].Days, out[i].Recent = len(days), len(recent)
	}
	slices.SortStableFunc(out, func(a, b Group) int {
		return cmp.Or(cmp.Compare(b.Recent, a.Recent), cmp.Compare(b.Days, a.Days), cmp.Compare(len(b.Entries), len(a.Entries)), cmp.Compare(a.Lesson, b.Lesson))
	})
	return out
}

// Candidates are the groups that a person should look at.
func Candidates(all []Lesson, rules tiers.Rules, now time.Time) []Group {
	var out []Group
	for _, g := range Groups(all, rules, now) {
		if g.Candidate() {
			out = append(out, g)
		}
	}
	return out
}

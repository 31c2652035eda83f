// Package feedback keeps what a person has corrected and confirmed: the
// numbered entries of memory/feedback.md (source: four-type memory).
//
// [Parse] reads them, [Add] plans one more. Numbers are never used again.
package feedback

import (
	"errors"
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// File is where feedback stands.
const File = "memory/feedback.md"

// Ledger is where the numbers are kept that were given: one whose entry was
// deleted by hand is not given again.
const Ledger = ".mem/feedback/ids.txt"

// Entry is one piece of feedback.
type Entry struct {
	ID        int    `json:"id"`
	Rule      string `json:"rule"`
	Date      string `json:"date"` // YYYY-MM-DD, "" where it has none
	Confirmed bool   `json:"confirmed"`
	Line      int    `json:"line"`
	Text      string `json:"text"` // what stands below the heading
}

// Name is an entry's number as it is written.
func (e Entry) Name() string { return fmt.Sprintf("F%03d", e.ID) }

var heading = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^#{2,4}\s+F(\d{1,6}):\s*(.*?)\s*(?:[(（]\s*(confirmed|确认)?\s*(\d{4}-\d\d-\d\d)\s*[)）])?\s*$`)
})

// Parse reads the entries of a feedback file, in its order. Examples in
// comments are none.
func Parse(b []byte) []Entry {
	var out []Entry
	entry.VisibleLines(b, func(n int, line string) {
		if m := heading().FindStringSubmatch(line); m != nil {
			id, err := strconv.Atoi(m[1])
			if err == nil {
				out = append(out, Entry{ID: id, Rule: m[2], Date: m[4], Confirmed: m[3] != "", Line: n})
				return
			}
		}
		if len(out) > 0 && !strings.HasPrefix(line, "#") {
			e := &out[len(out)-1]
			e.Text = strings.TrimLeft(e.Text+line+"\n", "\n")
		}
	})
	return out
}

// New is feedback to be added.
type New struct {
	Confirmation bool
	Rule         string
	Why          string
	Anyway       bool   // although it names a relative day, or another says much the same
	Floor        int    // numbers up to this were given, whatever the ledger says
	How          string // of a correction: how to apply it; of a confirmation: what was being worked on
}

// NearError says that an entry says the same already.
type NearError struct{ Entry Entry }

func (e *NearError) Error() string {
	return fmt.Sprintf("%s says that already: %s (%s)", e.Entry.Name(), e.Entry.Rule, e.Entry.Date)
}

// RelativeError says that a text names a day that means another one tomorrow.
type RelativeError struct{ Word, Day string }

func (e *RelativeError) Error() string {
	return fmt.Sprintf("%q means another day tomorrow", e.Word)
}

// Mend is the hint that goes with the error.
func (e *RelativeError) Mend() string {
	if e.Day == "" {
		return "write the date: YYYY-MM-DD"
	}
	return "write the date: " + e.Day
}

// ErrIncomplete says that something is missing.
var ErrIncomplete = errors.New("feedback has a rule, a reason, and where it applies")

// maxText bounds each part of an entry, in characters.
const maxText = 2000

// same is from which overlap of words on two rules say the same.
const same = 0.75

// Add plans one more entry. Its number is the next that was never given.
func Add(m fs.FS, rules tiers.Rules, now time.Time, n New) (plan.Plan, Entry, error) {
	for _, s := range []*string{&n.Rule, &n.Why, &n.How} {
		if *s = entry.OneItem(*s, maxText); *s == "" {
			return plan.Plan{}, Entry{}, ErrIncomplete
		}
		if word, day, found := Relative(*s, rules.Day(now)); found && !n.Anyway {
			return plan.Plan{}, Entry{}, &RelativeError{word, day}
		}
	}
	old, err := read(m, File)
	if err != nil {
		return plan.Plan{}, Entry{}, err
	}
	given, err := read(m, Ledger)
	if err != nil {
		return plan.Plan{}, Entry{}, err
	}
	last := n.Floor
	for line := range strings.Lines(string(given)) {
		if id, err := strconv.Atoi(strings.TrimPrefix(strings.TrimSpace(line), "- F")); err == nil {
			last = max(last, id)
		}
	}
	words := entry.Words(n.Rule)
	for _, e := range Parse(old) {
		last = max(last, e.ID)
		if n.Anyway {
			continue
		}
		other := entry.Words(e.Rule)
		if entry.SameItem(e.Rule) == entry.SameItem(n.Rule) || entry.Overlap(words, other) >= same && polarity(words) == polarity(other) {
			return plan.Plan{}, e, &NearError{e}
		}
	}
	e := Entry{ID: last + 1, Rule: n.Rule, Date: rules.Day(now), Confirmed: n.Confirmation}
	if e.Text = fmt.Sprintf("- **Why**: %s\n- **How to apply**: %s\n", n.Why, n.How); n.Confirmation {
		e.Text = fmt.Sprintf("- **Context**: %s\n- **Why**: %s\n", n.How, n.Why)
	}
	date := e.Date
	if n.Confirmation {
		date = "confirmed " + date
	}
	block := fmt.Sprintf("### %s: %s (%s)\n%s", e.Name(), e.Rule, date, e.Text)
	if after := append(append([]byte{}, old...), "\n\n"+block...); len(Parse(after)) == len(Parse(old)) {
		return plan.Plan{}, e, fmt.Errorf("%s: %w", File, entry.ErrOpen)
	}
	return plan.Plan{Command: "feedback add", Facts: plan.Facts{"id": e.Name(), "rule": e.Rule}, Steps: []plan.Step{
		{Kind: plan.Append, Path: File, Before: plan.StateOf(old), Place: entry.AtEnd, Text: []byte(block)},
		{Kind: plan.Append, Path: Ledger, Before: plan.StateOf(given), Place: entry.AtLine, Text: []byte("- " + e.Name() + "\n")},
	}}, e, nil
}

// turning are words that turn a rule into another one.
var turning = []string{"never", "dont", "not", "no", "without", "avoid", "stop", "nie", "niemals", "nicht", "kein", "keine", "ohne", "jamais", "pas", "sans", "nunca", "sin"}

// polarity counts the words that turn a rule; 不 and 没 among them.
func polarity(words []string) int {
	n := 0
	for _, w := range words {
		if slices.Contains(turning, w) || strings.ContainsAny(w, "不没別") {
			n++
		}
	}
	return n % 2
}

// Number is the number in an entry's name, such as F007; 0 for none.
func Number(name string) int {
	n, err := strconv.Atoi(strings.TrimPrefix(name, "F"))
	if err != nil {
		return 0
	}
	return n
}

// read reads a file; nil where there is none.
func read(m fs.FS, name string) ([]byte, error) {
	b, err := fs.ReadFile(m, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && b == nil {
		b = []byte{}
	}
	return b, err
}

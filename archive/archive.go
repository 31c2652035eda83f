// Package archive decides what has expired, and why, and plans its way to the
// archive.
//
// [Notes] is about daily notes, [Lessons] about SCRATCH. Each returns a plan and
// a [Decision] for everything it looked at. Nothing is deleted, nothing in the
// archive is written over, and nothing here writes.
package archive

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Outcomes of a decision.
const (
	Archived = "archived"
	Kept     = "kept"    // not yet, or not at all
	Left     = "left"    // not what archival is about, and named
	Skipped  = "skipped" // should go and can't
)

// Decision is what happens to one file or entry, and why.
type Decision struct {
	Path    string `json:"path"`
	Line    int    `json:"line,omitempty"` // of an entry
	Outcome string `json:"outcome"`
	Reason  string `json:"reason"`
	To      string `json:"to,omitempty"`
	Age     int    `json:"age_days,omitempty"`
}

// maxSuffix bounds the search for a free name.
const maxSuffix = 1000

func old(days int) string {
	if days == 1 {
		return "1 day old"
	}
	return fmt.Sprintf("%d days old", days)
}

// day is a calendar day as a number; ages are differences.
func day(s string) int { return int(tiers.DayNumber(s)) }

// Notes plans the archival of daily notes older than a number of days.
func Notes(m fs.FS, rules tiers.Rules, now time.Time, olderThan int) (plan.Plan, []Decision, error) {
	p := plan.Plan{Command: "archive"}
	var out []Decision
	today := rules.Day(now)
	now0 := day(today)
	busy, err := interrupted(m, rules)
	if err != nil {
		return p, nil, err
	}
	a := newArchiver(m)
	for _, dir := range rules.Notes {
		entries, err := fs.ReadDir(m, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return p, out, err
		}
		in := rules.In(dir)
		prefix := dir + "/"
		if dir == "." {
			prefix = ""
		}
		for _, e := range entries {
			if e.IsDir() || !strings.HasSuffix(e.Name(), ".md") {
				continue
			}
			name := prefix + e.Name()
			d := Decision{Path: name}
			date, ok := tiers.NoteDay(e.Name())
			switch {
			case !ok:
				if t, _ := in(e.Name()); t == tiers.COLD {
					d.Outcome, d.Reason = Left, "not named by a day"
					out = append(out, d)
				}
				continue // another tier's file
			case !e.Type().IsRegular():
				d.Outcome, d.Reason = Left, "no regular file"
			case date == today:
				d.Outcome, d.Reason = Kept, "today's note"
			default:
				d.Age = now0 - day(date)
				a.note(&p, &d, date, olderThan, busy, rules)
			}
			out = append(out, d)
		}
	}
	return p, out, nil
}

type archiver struct {
	m      fs.FS
	taken  map[string]bool            // names that this plan uses
	listed map[string]map[string]bool // what stands in an archive directory

	dirs    map[string]string // by month
	reasons map[reason]string // many files have the same
	unfits  map[string]string // archive files that can't be added to, and why
}

type reason struct {
	age  int
	form string
}

func newArchiver(m fs.FS) *archiver {
	return &archiver{m: m, taken: map[string]bool{}, listed: map[string]map[string]bool{}, dirs: map[string]string{}, reasons: map[reason]string{}, unfits: map[string]string{}}
}

func (a *archiver) reason(age int, form string, limit int) string {
	r, ok := a.reasons[reason{age, form}]
	if !ok {
		r = old(age) + fmt.Sprintf(form, limit)
		a.reasons[reason{age, form}] = r
	}
	return r
}

func (a *archiver) note(p *plan.Plan, d *Decision, date string, olderThan int, busy bool, rules tiers.Rules) {
	switch {
	case olderThan <= 0:
		d.Outcome, d.Reason = Kept, "this layout archives no notes"
	case d.Age <= olderThan:
		d.Outcome, d.Reason = Kept, a.reason(d.Age, ", %d stay", olderThan)
	case busy:
		d.Outcome, d.Reason = Kept, "a rotation was interrupted, and its text may be in a note: mem recover"
	default:
		dir, ok := a.dirs[date[:7]]
		if !ok {
			dir = rules.ArchiveDir(date)
			a.dirs[date[:7]] = dir
		}
		step, err := a.move(d.Path, dir)
		if err != nil {
			d.Outcome, d.Reason = Skipped, err.Error()
			return
		}
		p.Steps = append(p.Steps, step)
		d.Outcome, d.To, d.Reason = Archived, step.To, a.reason(d.Age, ", more than %d", olderThan)
		if step.Kind == plan.Trash {
			d.To, d.Reason = step.Reason, "the same text is in the archive already; this copy goes to the trash"
		}
	}
}

// move plans a file's way into a directory without writing over anything: the
// same text is there already → trash; another one → the next free name.
func (a *archiver) move(name, dir string) (plan.Step, error) {
	there, err := a.list(dir)
	if err != nil {
		return plan.Step{}, err
	}
	stem := strings.TrimSuffix(path.Base(name), ".md")
	for n := 1; n < maxSuffix; n++ {
		base := stem + ".md"
		if n > 1 {
			base = fmt.Sprintf("%s-%d.md", stem, n)
		}
		to := dir + "/" + base
		if a.taken[to] {
			continue
		}
		if !there[base] {
			a.taken[to] = true
			return plan.Step{Kind: plan.Move, Path: name, To: to}, nil
		}
		old, err := fs.ReadFile(a.m, to)
		if err != nil {
			continue // whatever it is, it keeps its name
		}
		b, err := fs.ReadFile(a.m, name)
		if err != nil {
			return plan.Step{}, err
		}
		if string(b) == string(old) {
			return plan.Step{Kind: plan.Trash, Path: name, Before: plan.StateOf(append([]byte{}, b...)), Reason: to}, nil
		}
	}
	return plan.Step{}, fmt.Errorf("%s has %d namesakes", path.Join(dir, path.Base(name)), maxSuffix)
}

func (a *archiver) list(dir string) (map[string]bool, error) {
	if l, ok := a.listed[dir]; ok {
		return l, nil
	}
	l := map[string]bool{}
	entries, err := fs.ReadDir(a.m, dir)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	for _, e := range entries {
		l[e.Name()] = true
	}
	a.listed[dir] = l
	return l, nil
}

// interrupted reports whether a rotation left text that is not in its note
// yet: recovery looks for it in the active notes.
func interrupted(m fs.FS, rules tiers.Rules) (bool, error) {
	if rules.Buffer.File == "" {
		return false, nil
	}
	dir, base := path.Split(rules.Buffer.File)
	entries, err := fs.ReadDir(m, path.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
		suffix, ok := strings.CutPrefix(e.Name(), base+".")
		return ok && (suffix == "rotating" || strings.HasPrefix(suffix, "pending"))
	}), err
}

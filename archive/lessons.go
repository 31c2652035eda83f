package archive

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// LessonsRoot is where archived SCRATCH entries are kept: below it, YYYY/MM.
func LessonsRoot(rules tiers.Rules) string {
	head, _, _ := strings.Cut(rules.Archive, "{month}")
	return path.Join(path.Clean(head), "learnings")
}

func lessonsDir(rules tiers.Rules, date string) string {
	return path.Join(LessonsRoot(rules), strings.ReplaceAll(date[:7], "-", "/"))
}

// Lessons plans the archival of SCRATCH entries older than a number of days,
// by the date inside the entry. Pinned and undated ones stay. Other files of
// SCRATCH move whole; with legacy all of them do, whatever their age.
func Lessons(m fs.FS, rules tiers.Rules, now time.Time, olderThan int, legacy bool) (plan.Plan, []Decision, error) {
	p := plan.Plan{Command: "archive"}
	var out []Decision
	if rules.Scratch.Dir == "" {
		return p, nil, nil
	}
	entries, err := fs.ReadDir(m, rules.Scratch.Dir)
	if errors.Is(err, fs.ErrNotExist) {
		return p, nil, nil
	}
	if err != nil {
		return p, nil, err
	}
	today := rules.Day(now)
	a := newArchiver(m)
	for _, e := range entries {
		name := path.Join(rules.Scratch.Dir, e.Name())
		if e.IsDir() || !strings.HasSuffix(e.Name(), ".md") || tiers.NotMemory(e.Name()) {
			continue
		}
		if !e.Type().IsRegular() {
			out = append(out, Decision{Path: name, Outcome: Left, Reason: "no regular file"})
			continue
		}
		b, err := fs.ReadFile(m, name)
		if err == nil {
			err = entry.CheckText(b, maxScratch)
		}
		if err != nil {
			out = append(out, Decision{Path: name, Outcome: Skipped, Reason: err.Error()})
			continue
		}
		canonical := slices.ContainsFunc(rules.Scratch.Files, func(f string) bool { return strings.EqualFold(f, e.Name()) })
		if canonical {
			if err := a.entries(&p, &out, rules, name, b, today, olderThan); err != nil {
				return p, out, err
			}
			continue
		}
		out = append(out, a.legacy(&p, rules, name, b, today, olderThan, legacy))
	}
	return p, out, nil
}

// maxScratch is the largest SCRATCH file that is taken apart, in bytes.
const maxScratch = entry.MaxNote

// entries plans what of a canonical file goes: out of it in one edit, and to
// the end of one archive file per month.
func (a *archiver) entries(p *plan.Plan, out *[]Decision, rules tiers.Rules, name string, b []byte, today string, olderThan int) error {
	var arg entry.LessonsArg
	months := map[string][]byte{}
	var order []string
	for _, l := range entry.ParseLessons(b) {
		d := Decision{Path: name, Line: l.Line, Outcome: Kept}
		if l.Day != "" {
			d.Age = day(today) - day(l.Day)
		}
		switch {
		case l.Pinned:
			d.Reason = "pinned"
		case l.Day == "":
			d.Reason = "has no date"
		case olderThan <= 0:
			d.Reason = "lessons are kept for ever"
		case d.Age <= olderThan:
			d.Reason = old(d.Age) + fmt.Sprintf(", %d stay", olderThan)
		default:
			to := path.Join(lessonsDir(rules, l.Day), strings.ToUpper(strings.TrimSuffix(path.Base(name), ".md"))+".md")
			if why := a.unfit(to); why != "" {
				d.Outcome, d.Reason = Skipped, to+" "+why
				break
			}
			if months[to] == nil {
				order = append(order, to)
			}
			eol := entry.EOL(b)
			if len(months[to]) > 0 && months[to][len(months[to])-1] != '\n' {
				months[to] = append(months[to], eol...)
			}
			months[to] = append(months[to], entry.ArchivedMark+" sha256="+entry.LessonKey(l.Key(b))+" -->"+eol...)
			months[to] = append(months[to], l.Text(b)...)
			arg.Keys = append(arg.Keys, entry.LessonKey(l.Key(b)))
			d.Outcome, d.To, d.Reason = Archived, to, old(d.Age)+fmt.Sprintf(", more than %d", olderThan)
			if l.Promoted {
				d.Reason += "; promoted"
			}
		}
		*out = append(*out, d)
	}
	if len(arg.Keys) == 0 {
		return nil
	}
	for _, to := range order {
		was, err := fs.ReadFile(a.m, to)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			was = nil
		case err != nil:
			return err
		case was == nil:
			was = []byte{}
		}
		title := strings.TrimSuffix(path.Base(to), ".md")
		p.Steps = append(p.Steps, plan.Step{
			Kind: plan.Append, Path: to, Before: plan.StateOf(was), Place: entry.AtEnd, Text: months[to],
			Seed: []byte("# " + title + ", archived\n\n"),
		})
	}
	text, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	p.Steps = append(p.Steps, plan.Step{Kind: plan.Edit, Path: name, Before: plan.StateOf(b), Place: entry.TakeLessons, Text: text})
	return nil
}

// unfit says why nothing can be added to an archive file, or "".
func (a *archiver) unfit(name string) string {
	why, seen := a.unfits[name]
	if seen {
		return why
	}
	if info, err := fs.Lstat(a.m, name); err == nil && !info.Mode().IsRegular() {
		why = "is no regular file"
	} else if err != nil && !errors.Is(err, fs.ErrNotExist) {
		why = "cannot be looked at: " + err.Error()
	} else if err == nil {
		b, err := fs.ReadFile(a.m, name)
		if err == nil {
			err = entry.CheckText(b, entry.MaxNote-maxRoom)
		}
		if err != nil {
			why = err.Error()
		}
	}
	a.unfits[name] = why
	return why
}

// maxRoom is what must be free in an archive file, in bytes.
const maxRoom = 64 << 10

// legacy decides about a file that is not canonical: dated by its name, else
// by the newest date inside.
func (a *archiver) legacy(p *plan.Plan, rules tiers.Rules, name string, b []byte, today string, olderThan int, all bool) Decision {
	d := Decision{Path: name, Outcome: Kept}
	date := newest(path.Base(name), today)
	if date == "" {
		date = newest(string(b), today)
	}
	if date != "" {
		d.Age = day(today) - day(date)
	}
	switch {
	case all:
		if date == "" {
			date = today
		}
		d.Reason = "not one of the canonical files"
	case date == "":
		d.Reason = "has no date; --legacy moves it"
		return d
	case olderThan <= 0 || d.Age <= olderThan:
		d.Reason = old(d.Age) + fmt.Sprintf(", %d stay; --legacy moves it now", olderThan)
		return d
	default:
		d.Reason = old(d.Age) + fmt.Sprintf(", more than %d", olderThan)
	}
	step, err := a.move(name, lessonsDir(rules, date))
	if err != nil {
		d.Outcome, d.Reason = Skipped, err.Error()
		return d
	}
	p.Steps = append(p.Steps, step)
	d.Outcome, d.To = Archived, step.To
	if step.Kind == plan.Trash {
		d.To, d.Reason = step.Reason, "the same text is in the archive already; this copy goes to the trash"
	}
	return d
}

// anyDay finds what may be a day. What stands around it is looked at apart: a
// pattern that took the space between two days would miss the second.
var anyDay = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`[0-9]{4}-[0-9]{2}-[0-9]{2}`) })

// newest is the newest valid day in a text that is not in the future.
func newest(text, today string) string {
	digit := func(i int) bool { return i >= 0 && i < len(text) && text[i] >= '0' && text[i] <= '9' }
	best := ""
	for from := 0; ; {
		at := anyDay().FindStringIndex(text[from:])
		if at == nil {
			return best
		}
		start, end := from+at[0], from+at[1]
		from = start + 1 // another may begin in one that is none
		if digit(start-1) || digit(end) {
			continue
		}
		if s := text[start:end]; tiers.ValidDay(s) && s > best && s <= today {
			best = s
		}
	}
}

// Ledger is the set of lessons that were archived, by the folded text of each:
// a handoff that is delivered again does not bring one back. It is read from
// the archive itself, so it can't be lost or differ from it.
func Ledger(m fs.FS, rules tiers.Rules) (map[string]string, error) {
	files, err := fs.Glob(m, LessonsRoot(rules)+"/*/*/*.md")
	if err != nil {
		return nil, err
	}
	out := map[string]string{}
	for _, f := range files {
		b, err := fs.ReadFile(m, f)
		if err != nil {
			return nil, err
		}
		for _, l := range entry.ParseLessons(b) {
			out[entry.LessonKey(l.Key(b))] = f
		}
	}
	return out, nil
}

package session

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Candidate is a decision or a piece of knowledge of a recent log that is not
// in the long-term memory.
type Candidate struct {
	ID   string `json:"id"` // how people name it
	Text string `json:"text"`
	Day  string `json:"day"`
	Log  string `json:"log"`
}

// Promotion is what [Promote] found and plans.
type Promotion struct {
	Archived   []Move      `json:"archived"`
	Candidates []Candidate `json:"candidates"`
	Accepted   []Candidate `json:"accepted"`
	Lines      int         `json:"lines"`  // of the long-term memory, as it will be
	Limit      int         `json:"limit"`  // of that
	Moved      int         `json:"moved"`  // lines of it that go to the archive
	Folded     int         `json:"folded"` // lines that stood twice
}

// Move is one log that goes to the archive.
type Move struct {
	From string `json:"from"`
	To   string `json:"to"`
	Age  int    `json:"age_days"`
}

// Options say what is promoted.
type Options struct {
	Accept []string // ids, or beginnings of them
	All    bool
}

// ErrNoCandidate says that an id names no candidate, or several.
var ErrNoCandidate = errors.New("names no candidate, or several")

// Promote plans the care of one project's memory, which is in dir: logs past
// their time go to the archive, chosen facts into the long-term memory, and of
// that the oldest sections to the archive where it is over its limit.
func Promote(m fs.FS, rules tiers.Rules, now time.Time, dir string, o Options) (plan.Plan, Promotion, error) {
	p := plan.Plan{Command: "session promote"}
	r := Promotion{Archived: []Move{}, Candidates: []Candidate{}, Accepted: []Candidate{}, Limit: rules.Hot.Max}
	long := path.Join(dir, path.Base(rules.Hot.File))
	old, err := read(m, long)
	if err != nil {
		return p, r, err
	}
	if err := logs(m, rules, now, dir, old, &p, &r); err != nil {
		return p, r, err
	}
	if r.Accepted, err = choose(r.Candidates, o); err != nil {
		return p, r, err
	}
	next := old
	var arg entry.LongArg
	for _, c := range r.Accepted {
		arg.Days = append(arg.Days, entry.DayFacts{Day: rules.Day(now), Facts: []string{c.Text}})
	}
	s := shrinker{dir: dir, limit: rules.Hot.Max, today: rules.Day(now), r: &r}
	next, err = s.run(next, arg)
	if err != nil {
		return p, r, fmt.Errorf("%s: %w", long, err)
	}
	r.Lines = entry.CountLines(next)
	for _, year := range s.years {
		name := path.Join(dir, "logs", "archives", "long_memory-"+year+".md")
		text, err := read(m, name)
		if err != nil {
			return p, r, err
		}
		p.Steps = append(p.Steps, plan.Step{Kind: plan.Append, Path: name, Before: plan.StateOf(text), Place: entry.AtEnd, Text: []byte(s.moved[year])})
	}
	if old == nil && len(next) == 0 || string(next) == string(old) {
		return p, r, nil
	}
	step := plan.Step{Kind: plan.Edit, Path: long, Before: plan.StateOf(old)}
	step.Place, step.Text, err = s.place(arg)
	p.Steps = append(p.Steps, step)
	return p, r, err
}

// logs looks through a project's logs: what is past its time, and what is new.
func logs(m fs.FS, rules tiers.Rules, now time.Time, dir string, long []byte, p *plan.Plan, r *Promotion) error {
	known := map[string]bool{}
	for _, item := range entry.Items(long) {
		known[entry.SameItem(item)] = true
	}
	folder := path.Join(dir, "logs")
	entries, err := fs.ReadDir(m, folder)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	limit := int(rules.TTL.Notes / (24 * time.Hour))
	today := tiers.DayNumber(rules.Day(now))
	for _, e := range slices.Backward(entries) {
		day, ok := tiers.NoteDay(e.Name())
		if !ok || !e.Type().IsRegular() {
			continue
		}
		name := path.Join(folder, e.Name())
		age := int(today - tiers.DayNumber(day))
		if limit > 0 && age > limit {
			step, to, err := away(m, name, path.Join(folder, "archives"))
			if err != nil {
				return err
			}
			p.Steps = append(p.Steps, step)
			r.Archived = append(r.Archived, Move{name, to, age})
			continue
		}
		b, err := fs.ReadFile(m, name)
		if err != nil {
			return err
		}
		for _, item := range entry.LogItems(b, "knowledge_gained", "decisions_made") {
			if key := entry.SameItem(item); !known[key] {
				known[key] = true
				r.Candidates = append(r.Candidates, Candidate{plan.Hash([]byte(key))[:12], item, day, name})
			}
		}
	}
	return nil
}

// maxNamesakes bounds how many files of one name an archive holds.
const maxNamesakes = 100

// away plans a log's way to the archive, beside what has its name there.
func away(m fs.FS, name, dir string) (plan.Step, string, error) {
	b, err := fs.ReadFile(m, name)
	if err != nil {
		return plan.Step{}, "", err
	}
	stem := strings.TrimSuffix(path.Base(name), ".md")
	for n := 1; n < maxNamesakes; n++ {
		to := path.Join(dir, stem+".md")
		if n > 1 {
			to = path.Join(dir, fmt.Sprintf("%s-%d.md", stem, n))
		}
		old, err := fs.ReadFile(m, to)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			return plan.Step{Kind: plan.Move, Path: name, To: to}, to, nil
		case err == nil && string(old) == string(b):
			return plan.Step{Kind: plan.Trash, Path: name, Before: plan.StateOf(slices.Clone(b)), Reason: to}, to, nil
		}
	}
	return plan.Step{}, "", fmt.Errorf("%s has %d namesakes in %s", name, maxNamesakes, dir)
}

func choose(all []Candidate, o Options) ([]Candidate, error) {
	if o.All {
		return all, nil
	}
	out := []Candidate{}
	for _, id := range o.Accept {
		var hits []Candidate
		for _, c := range all {
			if id != "" && strings.HasPrefix(c.ID, strings.ToLower(id)) {
				hits = append(hits, c)
			}
		}
		if len(hits) != 1 {
			return nil, fmt.Errorf("%q %w", id, ErrNoCandidate)
		}
		if !slices.Contains(out, hits[0]) {
			out = append(out, hits[0])
		}
	}
	return out, nil
}

// shrinker brings a long-term memory under its limit.
type shrinker struct {
	dir, today string
	limit      int
	r          *Promotion
	cuts       []entry.DayCut // what goes
	moved      map[string]string
	years      []string
}

// part is one dated section, or what stands before the first.
type part struct {
	day  string
	text string
}

// parts takes a long-term memory apart at its headings of level 2, code aside.
// What stands before the first, or below one without a day, has no day.
func parts(b []byte) []part {
	out := []part{{}}
	heads := map[int]string{}
	entry.VisibleLines(b, func(n int, line string) {
		if title, ok := strings.CutPrefix(line, "## "); ok {
			heads[n] = title
		}
	})
	n := 0
	for line := range strings.Lines(string(b)) {
		n++
		if title, ok := heads[n]; ok {
			x := part{}
			if len(title) >= 10 && tiers.ValidDay(title[:10]) {
				x.day = title[:10]
			}
			out = append(out, x)
		}
		out[len(out)-1].text += line
	}
	return out
}

// run computes the next text: new facts in, lines that stand twice folded, and
// the oldest dated sections out until it fits. The newest stays; where it alone
// is too large, its oldest lines go. What has no day stays, unless there is
// nothing else.
func (s *shrinker) run(old []byte, arg entry.LongArg) ([]byte, error) {
	next := old
	if len(arg.Days) > 0 {
		var err error
		if next, err = placeLong(old, arg); err != nil {
			return nil, err
		}
	}
	if entry.CountLines(next) <= s.limit {
		return next, nil
	}
	s.moved = map[string]string{}
	before := entry.CountLines(next)
	next = entry.FoldLines(next)
	s.r.Folded = before - entry.CountLines(next)
	all := parts(next)
	lines := entry.CountLines(next)
	var order []int
	for i := range all {
		if all[i].day != "" {
			order = append(order, i)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return strings.Compare(all[a].day, all[b].day) })
	for len(order) > 1 && lines > s.limit {
		i := order[0]
		order = order[1:]
		lines -= strings.Count(all[i].text, "\n")
		s.out(all[i].day, all[i].text, all[i].text)
		all[i].text = ""
	}
	if lines > s.limit {
		i, others := 0, 0
		if len(order) > 0 {
			i = order[0]
			others = lines - strings.Count(all[i].text, "\n")
		}
		if others < s.limit { // otherwise it would not help
			s.head(&all[i], lines-s.limit)
		}
	}
	var sb strings.Builder
	for _, x := range all {
		sb.WriteString(x.text)
	}
	return []byte(sb.String()), nil
}

// out takes a text out, and puts it, as it is to stand there, into the archive
// of its year.
func (s *shrinker) out(day, text, archived string) {
	year := s.today[:4]
	if day != "" {
		year = day[:4]
	}
	if _, ok := s.moved[year]; !ok {
		s.years = append(s.years, year)
	}
	s.moved[year] += archived
	s.cuts = append(s.cuts, entry.DayCut{Day: day, Text: text})
	s.r.Moved += strings.Count(text, "\n")
}

// head moves the first n lines of a section, its heading and the blank lines
// behind that aside.
func (s *shrinker) head(x *part, n int) {
	rows := strings.SplitAfter(strings.TrimSuffix(x.text, "\n"), "\n")
	from := 0
	for from < len(rows) && (strings.HasPrefix(rows[from], "#") || strings.TrimSpace(rows[from]) == "") {
		from++
	}
	if n = min(n, len(rows)-from-1); n <= 0 {
		return
	}
	text := strings.Join(rows[from:from+n], "")
	x.text = strings.Join(rows[:from], "") + strings.TrimPrefix(x.text[len(strings.Join(rows[:from], "")):], text)
	archived := text
	if x.day != "" {
		archived = "## " + x.day + "\n" + text
	}
	s.out(x.day, text, archived)
}

func placeLong(old []byte, arg entry.LongArg) ([]byte, error) {
	text, err := arg.Encode()
	if err != nil {
		return nil, err
	}
	next, _, err := entry.Place(entry.Change{Place: entry.LongMemory, Text: text}, old)
	return next, err
}

// place is the change of the long-term memory as a plan carries it out.
func (s *shrinker) place(arg entry.LongArg) (string, []byte, error) {
	arg.Fold, arg.Cuts = len(s.cuts) > 0 || s.r.Folded > 0, s.cuts
	text, err := arg.Encode()
	return entry.LongMemory, text, err
}

// Package health states what must hold in a memory and finds what breaks it.
//
// [Check] reads a workspace once and returns a [Report]; [Fix] plans the
// repairs that need no judgement. [Checks] is the list of invariants, each with
// its rule, its source and its mend. Nothing here writes.
package health

import (
	"cmp"
	"fmt"
	"io/fs"
	"path"
	"runtime"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/walk"
)

// Severity says how much a finding matters.
type Severity string

// The severities. Only Fail makes a memory unhealthy.
const (
	Fail Severity = "fail"
	Warn Severity = "warn"
	Info Severity = "info"
	Off  Severity = "off"
)

func (s Severity) rank() int { return slices.Index([]Severity{Info, Warn, Fail}, s) }

// AtLeast reports whether s is as severe as t.
func (s Severity) AtLeast(t Severity) bool { return s.rank() >= t.rank() }

// Finding is one place where an invariant does not hold.
type Finding struct {
	Check    string   `json:"check"`
	Severity Severity `json:"severity"`
	Tier     string   `json:"tier"`
	Path     string   `json:"path"`
	Line     int      `json:"line"` // from 1; 0: the file as a whole
	Message  string   `json:"message"`
	Fix      string   `json:"fix"`     // what to do, in words
	Command  string   `json:"command"` // a command that does it, or shows more; "" for none
}

// Report is what Check found.
type Report struct {
	Checks   int // how many checks ran
	Files    int // how many files were looked at
	Findings []Finding
}

// Count counts the findings of a severity.
func (r Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// Options choose what Check does.
type Options struct {
	Only, Skip []string // checks, or groups such as "tags"
	Running    string   // who holds the workspace's lock, or ""
	// Walk reads the workspace's files; nil: through m.
	Walk func(walk.Options) error
}

// MaxFile is the largest memory file that is read, in bytes.
const MaxFile = 16 << 20

// Check looks at a whole memory. An error means that it could not be looked
// at; what is wrong inside is a finding.
func Check(m fs.FS, rules tiers.Rules, now time.Time, o Options) (Report, error) {
	p := newPass(m, rules, now, o)
	if err := p.choose(o); err != nil {
		return Report{}, err
	}
	workers := min(4, runtime.GOMAXPROCS(0))
	p.workers = make([]found, workers)
	read := o.Walk
	if read == nil {
		read = func(w walk.Options) error { return walk.FS(m, w) }
	}
	if err := read(walk.Options{Enter: p.enter, Want: p.want, Visit: p.visit, Workers: workers, Limit: MaxFile}); err != nil {
		return Report{}, err
	}
	all := p.merge()
	for _, c := range Checks {
		if c.whole != nil && p.on[c.ID] {
			c.whole(p, all)
		}
	}
	r := Report{Checks: len(p.on), Files: all.files, Findings: all.findings}
	slices.SortFunc(r.Findings, compare)
	return r, nil
}

func compare(a, b Finding) int {
	return cmp.Or(cmp.Compare(tierRank(a.Tier), tierRank(b.Tier)), cmp.Compare(a.Path, b.Path), cmp.Compare(a.Line, b.Line), cmp.Compare(a.Check, b.Check), cmp.Compare(a.Message, b.Message))
}

func tierRank(t string) int {
	if i := slices.Index(tiers.Tiers, tiers.Tier(t)); i >= 0 {
		return i
	}
	return len(tiers.Tiers)
}

// pass is one look at a memory.
type pass struct {
	m       fs.FS
	rules   tiers.Rules
	now     time.Time
	today   string
	running string
	on      map[string]bool
	sev     map[string]Severity
	workers []found
	vocab   map[string]bool
	dirs    map[string][]fs.DirEntry // listed by the checks of the whole
}

// found is what one worker has collected.
type found struct {
	files    int
	findings []Finding
	notes    map[int32]dayNotes // active daily notes by their day
	places   map[string]bool    // directories that hold some
	facts    []fact             // of HOT and WARM
	lessons  []fact             // of SCRATCH
	links    []link             // of HOT and WARM, to be resolved
	odd      []named            // names with capital letters or beyond ASCII, for case twins
	refs     []string           // the files that facts are in
	spelled  []spelled

	// The directory that is being walked, and its rules.
	dir   string
	in    func(string) (tiers.Tier, bool)
	daily bool // daily notes stand in it
}

// dayNotes are the active notes of one day, which is counted since 1970-01-01.
type dayNotes struct {
	n     int
	first string // the path that sorts first
}

func (f *found) addNotes(day int32, n int, first string) {
	if f.notes == nil {
		f.notes = map[int32]dayNotes{}
	}
	d := f.notes[day]
	if d.n == 0 || first < d.first {
		d.first = first
	}
	d.n += n
	f.notes[day] = d
}

// spelled is a SCRATCH file whose name differs in case from what it should be.
type spelled struct{ path, want string }

type named struct{ dir, base string }

func newPass(m fs.FS, rules tiers.Rules, now time.Time, o Options) *pass {
	p := &pass{m: m, rules: rules, now: now, today: rules.Day(now), running: o.Running, on: map[string]bool{}, sev: map[string]Severity{}, vocab: map[string]bool{}, dirs: map[string][]fs.DirEntry{}}
	for _, list := range rules.Tags {
		for _, t := range list {
			p.vocab[t] = true
		}
	}
	return p
}

// UnknownError names a check that there is not.
type UnknownError struct{ Name string }

func (e *UnknownError) Error() string { return fmt.Sprintf("no check %q", e.Name) }

// Mend is the hint that goes with the error.
func (e *UnknownError) Mend() string {
	var ids []string
	for _, c := range Checks {
		ids = append(ids, c.ID)
	}
	return fmt.Sprintf("did you mean %s? mem health --list shows all", tiers.Nearest(e.Name, ids))
}

// choose decides which checks run, and how severe each is.
func (p *pass) choose(o Options) error {
	for _, name := range slices.Concat(o.Only, o.Skip) {
		if !slices.ContainsFunc(Checks, func(c Invariant) bool { return fits(c.ID, name) }) {
			return &UnknownError{name}
		}
	}
	for name := range p.rules.Checks {
		if _, ok := Find(name); !ok {
			return fmt.Errorf("checks: in mem.yaml: %w", &UnknownError{name})
		}
	}
	for _, c := range Checks {
		sev := c.Severity
		if s, ok := p.rules.Checks[c.ID]; ok {
			sev = Severity(s)
		}
		skip := slices.ContainsFunc(o.Skip, func(n string) bool { return fits(c.ID, n) })
		only := len(o.Only) == 0 || slices.ContainsFunc(o.Only, func(n string) bool { return fits(c.ID, n) })
		if sev == Off || skip || !only || !c.applies(p.rules) {
			continue
		}
		p.on[c.ID], p.sev[c.ID] = true, sev
	}
	return nil
}

// fits reports whether a name given by the user means a check: its id, or its
// group.
func fits(id, name string) bool {
	group, _, _ := strings.Cut(id, ".")
	return id == name || group == name
}

// add notes a finding with its check's severity, capped at most.
func (p *pass) add(w *found, most Severity, f Finding) {
	if !p.on[f.Check] {
		return
	}
	f.Severity = p.sev[f.Check]
	if most.rank() < f.Severity.rank() {
		f.Severity = most
	}
	if f.Tier == "" {
		c, _ := Find(f.Check)
		f.Tier = c.Tier
	}
	w.findings = append(w.findings, f)
}

func (f *found) place(dir string) {
	if f.places == nil {
		f.places = map[string]bool{}
	}
	f.places[dir] = true
}

func (p *pass) merge() *found {
	all := &p.workers[0]
	for i := range p.workers[1:] {
		w := &p.workers[1+i]
		all.files += w.files
		all.findings = append(all.findings, w.findings...)
		for day, d := range w.notes {
			all.addNotes(day, d.n, d.first)
		}
		for dir := range w.places {
			all.place(dir)
		}
		offset := int32(len(all.refs))
		for _, f := range w.facts {
			f.ref += offset
			all.facts = append(all.facts, f)
		}
		for _, f := range w.lessons {
			f.ref += offset
			all.lessons = append(all.lessons, f)
		}
		all.refs = append(all.refs, w.refs...)
		all.links = append(all.links, w.links...)
		all.odd = append(all.odd, w.odd...)
		all.spelled = append(all.spelled, w.spelled...)
	}
	return all
}

func (p *pass) enter(dir string) bool { return p.rules.Enter(dir) }

// want says of the files of one directory which are read. Only files of a tier
// are, and in directories of daily notes other names are visited unread.
func (p *pass) want(dir string) func(base string, typ fs.FileMode) (visit, body bool) {
	in := p.rules.In(dir)
	notes := slices.Contains(p.rules.Notes, dir)
	other, _ := in("a-note.md") // a directory of nothing but notes has no other files
	dedicated := other == tiers.COLD
	hotTwin := ""
	if dir == path.Dir(p.rules.Hot.File) {
		hotTwin = strings.ToLower(path.Base(p.rules.Hot.File))
	}
	inTier := dir != "."
	return func(base string, typ fs.FileMode) (bool, bool) {
		if base == "" || base[0] == '.' {
			return strings.HasPrefix(base, ".mem-") && strings.HasSuffix(base, ".tmp"), false
		}
		if t, _ := in(base); t != "" {
			return true, true
		}
		if hotTwin != "" && strings.ToLower(base) == hotTwin {
			return true, false
		}
		if !typ.IsRegular() && inTier {
			return true, false // a symlink or the like among memory files
		}
		return notes && (dedicated || strings.HasSuffix(base, ".md")), false
	}
}

// Applying lists the checks that run with these rules and options.
func Applying(rules tiers.Rules, o Options) []Invariant {
	p := newPass(nil, rules, time.Time{}, Options{})
	if err := p.choose(o); err != nil {
		return nil
	}
	var out []Invariant
	for _, c := range Checks {
		if p.on[c.ID] {
			out = append(out, c)
		}
	}
	return out
}

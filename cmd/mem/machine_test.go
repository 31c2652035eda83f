package main

import (
	"flag"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/journal"
)

// TestMachine: fifty steps at random, a thousand times over: mem's commands,
// what people and agents do to the files by other means, a clock that goes on,
// jumps and goes back, time zones that change, kills, power cuts and failing
// calls. Whatever the order, each fact stands once.
func TestMachine(t *testing.T) {
	t.Parallel() // on one processor, mostly
	checks, steps := 1000, 50
	if raceEnabled || testing.Short() {
		checks = 50
	}
	if *machineBug != "" {
		checks = 1500
	}
	defer setRapid("rapid.checks", checks)()
	defer setRapid("rapid.steps", steps)()
	defer setRapid("rapid.seed", 20261130)() // the same every time; make machine takes others
	crashes, runs := 0, 0
	start := time.Now()
	rapid.Check(t, func(rt *rapid.T) {
		m := newModel(rt)
		defer func() { crashes, runs = crashes+m.crashes, runs+m.runs }()
		rt.Repeat(map[string]func(*rapid.T){
			"": m.check, "note": m.note, "learn": m.learn, "write": m.write, "rotate": m.rotate, "other": m.other, "undo": m.undo,
			"handoff": m.handoff, "ingest": m.ingest, "reject": m.reject, "append": m.append, "edit": m.edit, "delete": m.remove,
			"hold": m.hold, "late": m.late, "clock": m.clock, "zone": m.zoneChange, "recover": m.recover,
		})
		m.end(rt)
	})
	fmt.Printf("machine: %d runs of mem, %d of them crashed or failed on purpose, in %v\n", runs, crashes, time.Since(start).Round(100*time.Millisecond))
}

// setRapid sets a flag of rapid's, unless the caller has; the function it
// returns takes that back.
func setRapid(name string, n int) func() {
	f := flag.Lookup(name)
	given := false
	flag.Visit(func(g *flag.Flag) { given = given || g.Name == name })
	if f == nil || given {
		return func() {}
	}
	old := f.Value.String()
	f.Value.Set(fmt.Sprint(n)) //nolint:errcheck // a number
	return func() { f.Value.Set(old) }
}

// fate is what is known of a fact.
type fate int

const (
	stands fate = iota // exactly once
	unsure             // at most once: its command was killed
	gone               // not any more
	sent               // in a handoff that has not been taken
)

// effect is what a transaction did to facts, for undo.
type effect struct{ brought, took []string }

type model struct {
	disk           *faultfs.Disk
	at             time.Time
	zone           string
	facts          map[string]fate
	files          map[string]string // file → the fact that it says
	effects        map[string]effect // by receipt
	undone         map[string]bool
	handle         *faultfs.Handle
	n              int
	open           bool // a crash has not been recovered from
	runs, crashes  int
	lastOut, lastC string
}

func newModel(rt *rapid.T) *model {
	m := &model{
		disk: faultfs.New(), at: time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC), zone: "UTC",
		facts: map[string]fate{}, files: map[string]string{}, effects: map[string]effect{}, undone: map[string]bool{},
	}
	m.disk.Split = rapid.Bool().Draw(rt, "renames by halves")
	m.disk.NoExchange = rapid.IntRange(0, 3).Draw(rt, "no exchange") == 0
	m.disk.NoLinks = m.disk.NoExchange && rapid.Bool().Draw(rt, "no links")
	m.disk.Mkdirs(boxDir, "home/.config/systemd/user") // as in the real directory
	m.must(rt, "", "init", "--layout", "canonical")
	return m
}

func (m *model) fact(f fate) string {
	m.n++
	s := fmt.Sprintf("FACT-%05d", m.n)
	m.facts[s] = f
	return s
}

// visible is everything outside .mem and the inbox of handoffs, but for the
// drafts that wait for a person; drafts are told apart.
func (m *model) visible() (text, drafts string) {
	var v, d strings.Builder
	for _, name := range m.disk.Names() {
		s, _ := m.disk.Text(name)
		switch {
		case strings.HasPrefix(name, ".mem/"), strings.HasPrefix(name, boxDir+"/"):
		case strings.HasPrefix(name, "memory/handoff-inbox/"):
			d.WriteString(s)
		default:
			v.WriteString(s)
		}
	}
	return v.String(), d.String()
}

type powerCut struct{}

// exec runs mem, disturbed or not; ok: it ended well, and nothing disturbed it.
func (m *model) exec(rt *rapid.T, stdin string, args ...string) (ok bool) {
	m.disk.Now = m.at
	m.runs++
	how := rapid.SampledFrom([]string{"", "", "kill", "cut", "cut", "error", "full"}).Draw(rt, "trouble")
	at := 0
	if how != "" {
		at = rapid.IntRange(1, 28).Draw(rt, "at operation")
	}
	ops, hit := 0, false
	var left *faultfs.Disk
	d := durable.Watch(m.disk, func(op durable.Op, done bool) error {
		if done || !op.Changes() {
			return nil
		}
		ops++
		switch {
		case how == "error" && ops == at:
			hit = true
			return syscall.EIO
		case how == "full" && ops >= at && (op.Kind == "create" || op.Kind == "write" || op.Kind == "mkdir"):
			hit = true
			return syscall.ENOSPC
		case ops == at && how == "kill":
			hit, left = true, m.disk
			panic(powerCut{})
		case ops == at && how == "cut":
			states := m.disk.Power()
			hit, left = true, states[rapid.IntRange(0, len(states)-1).Draw(rt, "state")]
			panic(powerCut{})
		}
		return nil
	})
	if bug := machineBugs[*machineBug]; bug != nil {
		d = bug(d)
	}
	var e exited
	func() {
		defer func() {
			if r := recover(); r != nil {
				if _, ours := r.(powerCut); !ours {
					panic(r)
				}
			}
		}()
		e = program{disk: d, at: m.at, zone: m.zone, stdin: stdin}.run(args...)
	}()
	m.lastC, m.lastOut = "mem "+strings.Join(args, " "), e.out+e.errout
	if left != nil {
		m.disk, m.open, m.handle = left, true, nil
	}
	if hit {
		m.crashes++
		m.open = true
		return false
	}
	if e.code == exitFailed || e.code == exitUsage || e.code == exitLocked {
		rt.Fatalf("%s ended with %d: %s", m.lastC, e.code, m.lastOut)
	}
	return e.code == exitOK
}

// must runs mem undisturbed.
func (m *model) must(rt *rapid.T, stdin string, args ...string) string {
	m.disk.Now = m.at
	m.runs++
	e := program{disk: m.disk, at: m.at, zone: m.zone, stdin: stdin}.run(args...)
	m.lastC, m.lastOut = "mem "+strings.Join(args, " "), e.out+e.errout
	if e.err() != nil {
		rt.Fatalf("%s: %v", m.lastC, e.err())
	}
	return e.out
}

func (m *model) receipts() map[string]bool {
	out := map[string]bool{}
	for _, name := range m.disk.Names() {
		if strings.HasPrefix(name, ".mem/receipts/") {
			out[strings.TrimSuffix(path.Base(name), ".json")] = true
		}
	}
	return out
}

// does runs a command that brings facts and takes others away.
func (m *model) does(rt *rapid.T, e effect, stdin string, args ...string) bool {
	before, open := m.receipts(), m.open
	ok := m.exec(rt, stdin, args...)
	if ok {
		m.happened(e)
		for id := range m.receipts() { // not those of what an earlier crash had left
			if !before[id] && !open && strings.Contains(m.command(id), args[0]) {
				m.effects[id] = e
			}
		}
		return true
	}
	for _, f := range append(slices.Clone(e.brought), e.took...) {
		m.facts[f] = unsure
	}
	return false
}

// command is the command that a receipt is of.
func (m *model) command(id string) string {
	for _, name := range m.disk.Names() {
		if path.Base(name) == id+".json" && strings.HasPrefix(name, ".mem/receipts/") {
			text, _ := m.disk.Text(name)
			_, c, _ := strings.Cut(text, `"command":"`)
			c, _, _ = strings.Cut(c, `"`)
			return c
		}
	}
	return ""
}

func (m *model) happened(e effect) {
	for _, f := range e.brought {
		m.facts[f] = stands
	}
	for _, f := range e.took {
		m.facts[f] = gone
	}
}

func (m *model) note(rt *rapid.T) {
	f := m.fact(gone)
	m.does(rt, effect{brought: []string{f}}, "", "note", f)
}

func (m *model) learn(rt *rapid.T) {
	f := m.fact(gone)
	kind := rapid.SampledFrom([]string{"error", "lesson", "feature"}).Draw(rt, "kind")
	m.does(rt, effect{brought: []string{f}}, "", "learn", kind, "what we saw: "+f)
}

func (m *model) write(rt *rapid.T) {
	file := rapid.SampledFrom([]string{"memory/semantic/a.md", "memory/semantic/b.md"}).Draw(rt, "file")
	if m.open { // what the file says is not settled
		m.recover(rt)
	}
	f := m.fact(gone)
	e := effect{brought: []string{f}}
	if old := m.files[file]; old != "" && m.facts[old] == stands {
		e.took = []string{old}
	}
	m.does(rt, e, "# A\n#tags: memory\nlast_verified: 2026-11-30\n\n- "+f+"\n", "write", file)
	m.files[file] = f
	if m.open {
		m.files[file] = ""
		m.recover(rt)
		text, _ := m.disk.Text(file)
		for f := range m.facts {
			if strings.Contains(text, f) {
				m.files[file] = f
			}
		}
	}
}

func (m *model) rotate(rt *rapid.T) { m.exec(rt, "", "rotate", "--force") }

func (m *model) other(rt *rapid.T) {
	m.exec(rt, "", rapid.SampledFrom([][]string{
		{"rotate"}, {"rotate", "--soft"}, {"close", "--decisions", "none", "--signal", "none", "--open", "none"}, {"archive"}, {"review"}, {"review", "--again"}, {"health", "--fix"},
		{"verify", "memory/semantic/projects.md"}, {"init"}, {"handoff", "prune", "--older-than", "400d"}, {"status"}, {"load"}, {"search", "--all", "FACT"}, {"health"},
	}).Draw(rt, "command")...)
}

// undo takes back one of what has been done, or what has been undone.
func (m *model) undo(rt *rapid.T) {
	ids := slices.Sorted(maps.Keys(m.effects))
	if len(ids) == 0 {
		return
	}
	id := rapid.SampledFrom(ids).Draw(rt, "receipt")
	e := m.effects[id]
	m.does(rt, effect{brought: e.took, took: e.brought}, "", "undo", id)
	if m.open {
		m.recover(rt)
	}
	// A conflict changes nothing, and what is there says what was done.
	m.resolve(rt, append(slices.Clone(e.took), e.brought...))
	for file := range m.files {
		text, _ := m.disk.Text(file)
		m.files[file] = ""
		for f := range m.facts {
			if strings.Contains(text, f) {
				m.files[file] = f
			}
		}
	}
}

// handoff leaves one in the inbox.
func (m *model) handoff(rt *rapid.T) {
	f := m.fact(sent)
	name := fmt.Sprintf("%s/%05d.md", boxDir, m.n)
	head := "# Memory Handoff\n\n## Title\nx\n\n## Recommended memory action\n"
	text := head + "no-card\n\n## Target document\nrules/machine.md\n\n## Suggested document content\n### At " + name + "\n\n- " + f + "\n"
	if rapid.Bool().Draw(rt, "card") {
		card := rapid.SampledFrom([]string{"one", "two", "three"}).Draw(rt, "which")
		text = head + "create-card\n\n## Target card\n" + card + ".md\n\n## Suggested card content\n---\ntopic: " + card + "\n---\n\n" + f + " is what it says of " + card + ".\n"
	}
	m.disk.Mkdirs(boxDir)
	m.disk.Save(name, text)
}

func (m *model) ingest(rt *rapid.T) { m.took(m.exec(rt, "", "ingest")) }

// took says what has become of handoffs.
func (m *model) took(ok bool) {
	for f, is := range m.facts {
		if is == sent && ok {
			m.facts[f] = stands
		}
	}
}

// reject puts a draft away.
func (m *model) reject(rt *rapid.T) {
	var drafts []string
	for _, name := range m.disk.Names() {
		if strings.HasPrefix(name, "memory/handoff-inbox/") && !strings.Contains(path.Base(name), ".mem-") {
			drafts = append(drafts, name)
		}
	}
	if len(drafts) == 0 || m.open {
		return
	}
	name := rapid.SampledFrom(drafts).Draw(rt, "draft")
	text, _ := m.disk.Text(name)
	var e effect
	for f, is := range m.facts {
		if is == sent && strings.Contains(text, f) {
			return // by an ingest that was killed, and does not know
		}
		if is == stands && strings.Contains(text, f) {
			e.took = append(e.took, f)
		}
	}
	if v, _ := m.visible(); slices.ContainsFunc(e.took, func(f string) bool { return strings.Contains(v, f) }) {
		return // a version of what stands elsewhere, too
	}
	id := m.must(rt, "", "inbox", "list", "--json")
	_, id, _ = strings.Cut(id, `"id":"`)
	id, _, _ = strings.Cut(id, `"`)
	if id == "" || !strings.Contains(path.Base(name), id) {
		return
	}
	m.does(rt, e, "", "inbox", "reject", id)
}

// append is what a shell does.
func (m *model) append(rt *rapid.T) {
	file := rapid.SampledFrom([]string{bufPath, "MEMORY.md", errorsMD, m.today()}).Draw(rt, "file")
	if h, ok := m.disk.Hold(file); ok {
		m.disk.Write(h, "- "+m.fact(stands)+"\n")
	}
}

func (m *model) today() string {
	zone, err := time.LoadLocation(m.zone)
	if err != nil {
		panic(err)
	}
	return "memory/episodic/" + m.at.In(zone).Format(time.DateOnly) + ".md"
}

// edit is what an editor does.
func (m *model) edit(rt *rapid.T) {
	file := rapid.SampledFrom([]string{bufPath, "MEMORY.md", m.today(), "rules/machine.md"}).Draw(rt, "file")
	text, ok := m.disk.Text(file)
	if !ok || text == "" {
		return
	}
	f := m.fact(stands)
	if rapid.Bool().Draw(rt, "in place") {
		h, _ := m.disk.Hold(file)
		m.disk.Rewrite(h, func(s string) string { return withLine(s, "- "+f+"\n") })
		return
	}
	m.disk.Save(file, withLine(text, "- "+f+"\n"))
}

// remove is a person who takes a line out.
func (m *model) remove(rt *rapid.T) {
	if m.open {
		return // what was staged would bring it back, and says so
	}
	var there []string
	for _, name := range m.disk.Names() {
		if strings.HasPrefix(name, ".mem/") || strings.HasPrefix(name, boxDir) || strings.HasPrefix(name, "memory/handoff-inbox/") {
			continue
		}
		text, _ := m.disk.Text(name)
		for f, is := range m.facts {
			if is == stands && strings.Contains(text, f) {
				there = append(there, name+"\x00"+f)
			}
		}
	}
	if len(there) == 0 {
		return
	}
	slices.Sort(there)
	name, f, _ := strings.Cut(rapid.SampledFrom(there).Draw(rt, "line"), "\x00")
	text, _ := m.disk.Text(name)
	var out strings.Builder
	for l := range strings.Lines(text) {
		if !strings.Contains(l, f) {
			out.WriteString(l)
		}
	}
	m.disk.Save(name, out.String())
	m.facts[f] = gone
	for id, e := range m.effects { // it cannot be told any more what undoing that would bring
		if slices.Contains(e.brought, f) || slices.Contains(e.took, f) {
			delete(m.effects, id)
		}
	}
}

// hold opens the buffer as an agent does that writes much later.
func (m *model) hold(*rapid.T) {
	if h, ok := m.disk.Hold(bufPath); ok && m.handle == nil {
		m.handle = &h
	}
}

// late writes through it, wherever the file is now.
func (m *model) late(rt *rapid.T) {
	if m.handle == nil {
		return
	}
	f := m.fact(stands)
	if !m.disk.Write(*m.handle, "- "+f+"\n") {
		m.facts[f] = gone
	}
	m.handle = nil
	m.recover(rt)
}

func (m *model) clock(rt *rapid.T) {
	if m.handle != nil {
		return // how late is too late is not what is tested here
	}
	m.recover(rt)
	m.at = m.at.Add(rapid.SampledFrom([]time.Duration{time.Second, time.Minute, time.Hour, 7 * time.Hour, 25 * time.Hour, 8 * 24 * time.Hour, 40 * 24 * time.Hour, -time.Minute, -3 * time.Hour, -26 * time.Hour}).Draw(rt, "by"))
}

func (m *model) zoneChange(rt *rapid.T) {
	m.zone = rapid.SampledFrom([]string{"UTC", "Europe/Berlin", "Pacific/Apia", "America/New_York", "Asia/Kathmandu"}).Draw(rt, "zone")
}

// recover is mem recover, after which nothing is unsure.
func (m *model) recover(rt *rapid.T) {
	m.must(rt, "", "recover")
	m.open = false
	if out := m.must(rt, "", "recover"); !strings.Contains(out, "clean") {
		rt.Fatalf("a second recovery: %s", out)
	}
	var all []string
	for f, is := range m.facts {
		if is == unsure {
			all = append(all, f)
		}
	}
	m.resolve(rt, all)
}

// resolve settles what is unsure by what is there.
func (m *model) resolve(rt *rapid.T, facts []string) {
	v, d := m.visible()
	for _, f := range facts {
		switch n := strings.Count(v+d, f); n {
		case 0:
			m.facts[f] = gone
		case 1:
			m.facts[f] = stands
		default:
			rt.Fatalf("after %s: %s stands %d times", m.lastC, f, n)
		}
	}
}

// check is what holds after every step.
func (m *model) check(rt *rapid.T) {
	v, d := m.visible()
	for f, is := range m.facts {
		n, drafts := strings.Count(v, f), strings.Count(d, f)
		switch {
		case n > 1 && !m.open: // until then, staged files hold it, too
			rt.Fatalf("after %s: %s stands %d times\n%s", m.lastC, f, n, m.where(f))
		case is == stands && n+drafts == 0 && !m.open:
			rt.Fatalf("after %s: %s is lost\n%s\n%s", m.lastC, f, m.where(f), m.lastOut)
		case is == stands && n+drafts == 0 && m.where(f) == "": // in .mem, where it waits
			rt.Fatalf("after %s: %s is nowhere", m.lastC, f)
		case is == gone && n > 0 && !m.open:
			rt.Fatalf("after %s: %s is back\n%s\n%s", m.lastC, f, m.where(f), m.lastOut)
		}
	}
	if strings.ContainsRune(v, 0) && !m.open {
		rt.Fatal("zero bytes")
	}
	if m.open {
		return
	}
	for _, name := range m.disk.Names() {
		text, _ := m.disk.Text(name)
		if bad := checkName(name, text); len(bad) > 0 && !strings.HasPrefix(name, boxDir) {
			rt.Fatalf("after %s: %s: %v", m.lastC, name, bad)
		}
	}
	if text, ok := m.disk.Text(bufPath); !ok || entry.ParseBuffer([]byte(text)).Dialect != entry.Canonical {
		rt.Fatalf("after %s: no buffer with a valid header: %q", m.lastC, text)
	}
}

func (m *model) where(f string) string {
	var out []string
	for _, name := range m.disk.Names() {
		if text, _ := m.disk.Text(name); strings.Contains(text, f) {
			out = append(out, name)
		}
	}
	return strings.Join(out, ", ")
}

// end takes everything in, and judges.
func (m *model) end(rt *rapid.T) {
	m.recover(rt)
	m.must(rt, "", "ingest")
	m.took(true)
	m.recover(rt)
	m.check(rt)
	for _, name := range m.disk.Names() {
		if path.Dir(name) == boxDir && !strings.HasPrefix(path.Base(name), ".") {
			rt.Fatalf("%s was not taken", name)
		}
		if _, staged := journal.StagedBy(path.Base(name)); staged {
			rt.Fatalf("%s is left over", name)
		}
	}
	if _, err := fs.ReadDir(durable.View(m.disk, 0), ".mem/tx"); err != nil {
		rt.Fatal(err)
	}
}

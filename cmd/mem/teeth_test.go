package main

import (
	"bytes"
	"io/fs"
	"path"
	"strings"
	"testing"

	"github.com/tieredmem/mem/crash"
	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
)

// The tests here show that the crash tests have teeth: each takes something
// away that the protocol needs, and fails if nobody notices.

func find(t *testing.T, name string) scenario {
	t.Helper()
	for _, s := range scenarios() {
		if s.name == name {
			return s
		}
	}
	t.Fatalf("no scenario %q", name)
	return scenario{}
}

// skipSync lets the n-th fsync of a command do nothing (1: the first).
type skipSync struct {
	durable.FS
	n    int
	seen *int
}

func (s skipSync) SyncDir(name string) error {
	if *s.seen++; *s.seen == s.n {
		return nil
	}
	return s.FS.SyncDir(name)
}

func (s skipSync) Create(name string, perm fs.FileMode) (durable.File, error) {
	f, err := s.FS.Create(name, perm)
	return skipFile{f, s}, err
}

type skipFile struct {
	durable.File
	s skipSync
}

func (f skipFile) Sync() error {
	if *f.s.seen++; *f.s.seen == f.s.n {
		return nil
	}
	return f.File.Sync()
}

// spare are the fsyncs of a rotation without which the promise still holds,
// and why they are there.
var spare = map[string]string{
	"syncdir .mem/trash/2026/11":    "a backup whose rename is lost waits under its staged name, and late writes to it would not be looked for",
	"syncdir .mem/receipts/2026/11": "a finished run needs no recovery after a power cut",
}

// TestEveryFsyncIsNeeded: a rotation has as few as the promise allows. Each is
// left out in turn; a power cut must then lose or double something.
func TestEveryFsyncIsNeeded(t *testing.T) {
	if raceEnabled {
		t.Skip("ten times as slow under the race detector, and nothing in it is concurrent")
	}
	rules := testRules(t, "canonical")
	var syncs []string
	c := find(t, "rotate").on(t, rules, nil)
	if err := c.Run(durable.Watch(c.Disk(), func(op durable.Op, done bool) error {
		if (op.Kind == "fsync" || op.Kind == "syncdir") && !done {
			syncs = append(syncs, op.String())
		}
		return nil
	})); err != nil {
		t.Fatal(err)
	}
	for n, name := range syncs {
		bad := 0
		for _, with := range []string{"rotate, edited before recovery", "rotate the same bytes again"} {
			for _, split := range []bool{false, true} {
				c := find(t, with).on(t, rules, func(d *faultfs.Disk) { d.Split = split })
				run := c.Run
				c.KillsOnly = true
				c.Run = func(d durable.FS) error { seen := 0; return run(skipSync{d, n + 1, &seen}) }
				bad += crash.Explore(c, crash.Options{}).Total()
			}
		}
		why, exempt := spare[name]
		switch {
		case bad == 0 && !exempt:
			t.Errorf("fsync %d (%s) can be left out and nothing breaks", n+1, name)
		case bad > 0 && exempt:
			t.Errorf("fsync %d (%s) is listed as spare (%s), but without it %d states break", n+1, name, why, bad)
		}
		t.Logf("without %s: %d violations", name, bad)
	}
}

// The planted bugs. Each stands between the program and the disk, so that the
// program itself carries no switch for them.

// copies backs up by copy instead of by keeping the old file.
type copies struct{ durable.FS }

func (c copies) Exchange(a, b string) error {
	old, _, err := durable.ReadFile(c.FS, b, 0)
	if err != nil {
		return err
	}
	if err := c.FS.Rename(a, b); err != nil {
		return err
	}
	_, err = durable.WriteNew(c.FS, a, old, 0o600, "")
	return err
}

// clobbers renames without looking whether something is there.
type clobbers struct{ durable.FS }

func (c clobbers) Move(from, to string) error { return c.FS.Rename(from, to) }

// byHash takes a step for carried out if its target has the after-hash, and
// for not carried out otherwise.
type byHash struct{ durable.FS }

func (h byHash) Lstat(name string) (durable.Info, error) {
	info, err := h.FS.Lstat(name)
	id, staged := journal.StagedBy(path.Base(name))
	if err != nil || !staged {
		return info, err
	}
	b, _, err := durable.ReadFile(h.FS, ".mem/tx/"+id+".json", 0)
	if err != nil {
		return info, nil //nolint:nilerr // no plan, no bug to plant
	}
	p, err := plan.Decode(b)
	if err != nil {
		return info, nil //nolint:nilerr // likewise
	}
	for _, s := range p.Steps {
		if s.Stage.Name != name {
			continue
		}
		info.ID = durable.ID(s.Stage.File)
		if cur, _, err := durable.ReadFile(h.FS, s.Path, 0); err == nil && plan.Hash(cur) == s.After.Hash {
			info.ID.Ino += 1 << 40
		}
	}
	return info, nil
}

// forgetful takes no swap back into the plan.
type forgetful struct{ durable.FS }

func (f forgetful) Rename(from, to string) error {
	if b, _, err := durable.ReadFile(f.FS, from, 0); err == nil && bytes.Contains(b, []byte(`"back":{`)) {
		return f.FS.Remove(from)
	}
	return f.FS.Rename(from, to)
}

// hasty retires the plan before its backups are in the trash.
type hasty struct {
	durable.FS
	late *[][2]string
}

func (h hasty) Move(from, to string) error {
	if strings.HasPrefix(to, ".mem/trash/") && strings.Contains(from, ".mem-") {
		*h.late = append(*h.late, [2]string{from, to})
		return nil
	}
	err := h.FS.Move(from, to)
	if err == nil && strings.HasPrefix(to, ".mem/receipts/") {
		for _, m := range *h.late {
			if err := h.FS.Move(m[0], m[1]); err != nil {
				return err
			}
		}
		*h.late = nil
	}
	return err
}

func TestPlantedBugsAreCaught(t *testing.T) {
	if raceEnabled {
		t.Skip("ten times as slow under the race detector, and nothing in it is concurrent")
	}
	rules := testRules(t, "canonical")
	sabotage := func(w func(durable.FS) durable.FS) func(*faultfs.Disk, durable.FS) durable.FS {
		return func(_ *faultfs.Disk, f durable.FS) durable.FS { return w(f) }
	}
	// The fsyncs are counted in the rotation's trace golden.
	skip := func(n int) func(crash.Scenario) *crash.Result {
		return func(c crash.Scenario) *crash.Result {
			run := c.Run
			c.KillsOnly = true
			c.Run = func(d durable.FS) error { seen := 0; return run(skipSync{d, n, &seen}) }
			disk := c.Disk
			c.Disk = func() *faultfs.Disk { d := disk(); d.Split = true; return d }
			return crash.Explore(c, crash.Options{})
		}
	}
	beside := func(bug func(durable.FS) durable.FS, w crash.Writer, kills int, want want) func(crash.Scenario) *crash.Result {
		return func(c crash.Scenario) *crash.Result {
			c.Sabotage, c.Check = sabotage(bug), want.beside
			if strings.HasPrefix(w.Name, "save") {
				c.Check = want.besideSaves
			}
			return crash.Interleave(c, w, kills)
		}
	}
	rotate := find(t, "rotate").want
	for _, b := range []struct {
		bug, scenario string
		look          func(crash.Scenario) *crash.Result
	}{
		{"no fsync of the staged file", "rotate, edited before recovery", skip(5)},
		{"no fsync of its directory before the plan", "rotate, edited before recovery", skip(6)},
		{"no directory fsync after the exchange", "rotate, edited before recovery", skip(9)},
		{"backup by copy", "rotate", beside(func(f durable.FS) durable.FS { return copies{f} }, appendTo(notePath), 0, rotate)},
		{"clobbering rename", "rotate into a new note", beside(func(f durable.FS) durable.FS { return clobbers{f} }, createNew(notePath), 0, find(t, "rotate into a new note").want)},
		{"after-hash as the mark of a commit", "rotate, edited before recovery", func(c crash.Scenario) *crash.Result {
			c.Sabotage = sabotage(func(f durable.FS) durable.FS { return byHash{f} })
			return crash.Explore(c, crash.Options{})
		}},
		{"plan retired before its backups", "note", beside(func(f durable.FS) durable.FS { return hasty{f, &[][2]string{}} }, appendTo(bufPath), 1, find(t, "note").want)},
		{"swap back not written into the plan", "rotate", beside(func(f durable.FS) durable.FS { return forgetful{f} }, saveTwice(notePath), 1, rotate)},
	} {
		t.Run(b.bug, func(t *testing.T) {
			r := b.look(find(t, b.scenario).on(t, rules, nil))
			if r.Total() == 0 {
				t.Fatalf("nobody noticed in %d states", r.States)
			}
			t.Log(r)
		})
	}
}

package main

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"runtime/debug"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tieredmem/mem/buffer"
	"github.com/tieredmem/mem/crash"
	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/workspace"
)

var at0 = time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC)

func testRules(t testing.TB, layout string) tiers.Rules {
	t.Helper()
	c, err := tiers.ParseConfig("mem.yaml", []byte("layout: "+layout+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tiers.Load(tiers.Sources{Memory: fstest.MapFS{}, Mem: &c, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

type noLock struct{}

func (noLock) Lock(context.Context, string) error { return nil }
func (noLock) Unlock() error                      { return nil }

func onDisk(d durable.FS, rules tiers.Rules, at time.Time) *workspace.Workspace {
	return &workspace.Workspace{Dir: "/w", Rules: rules, Disk: d, Lock: noLock{}, LockWait: time.Second, At: at, Host: "h", Features: features(rules, at)}
}

const (
	bufPath  = "memory/working-buffer.md"
	notePath = "memory/episodic/2026-11-30.md"
	oldNote  = "# 2026-11-30\n\n- an earlier event\n\nUpdated: 2026-11-30\nDecisions: none\nSignal: none\nOpen: none\n"
	fullBuf  = "# Working Buffer\ncreated: 2026-11-30T08:00:00Z\nlast_active: 2026-11-30T09:00:00Z\n\n## Active Task:\n- FACT-ONE aaaaaaaa\n- FACT-TWO bbbbbbbb\n"
)

// engineDisk is a workspace that has been used before, so that making .mem is
// not part of every scenario.
func engineDisk(t testing.TB, rules tiers.Rules, files map[string]string) *faultfs.Disk {
	d := faultfs.New()
	for name, text := range files {
		d.Put(name, text)
	}
	d.Mkdirs("memory/episodic", ".mem/tx", ".mem/receipts/2026/11", ".mem/trash/2026/11")
	d.Put(".mem/version", "1\n")
	d.Put(".mem/.gitignore", "*\n")
	return d
}

func writeNow(name, text string, seen []byte) func(*workspace.Workspace) error {
	return func(w *workspace.Workspace) error {
		receipt, _, err := w.Update("write", func(m fs.FS) (plan.Plan, error) {
			return planWrite(m, name, []byte(text), plan.StateOf(seen).Hash)
		})
		if err == nil && receipt.Outcome == plan.Conflict {
			err = errors.New("conflict")
		}
		return err
	}
}

func closeNow(w *workspace.Workspace) error {
	_, _, err := w.Update("close", func(m fs.FS) (plan.Plan, error) {
		return buffer.Close(m, w.Rules, w.At, entry.ClosureArg{Decisions: "CHOSE x"})
	})
	return err
}

// sameNow carries out an edit that changes nothing.
func sameNow(w *workspace.Workspace) error {
	_, _, err := w.Update("close", func(m fs.FS) (plan.Plan, error) {
		raw, err := fs.ReadFile(m, notePath)
		return plan.Plan{Command: "close", Steps: []plan.Step{{
			Kind: plan.Edit, Path: notePath, Before: plan.StateOf(raw), Place: entry.SetClosure, Text: []byte(`{"updated":"2026-11-30"}`),
		}}}, err
	})
	return err
}

func undoLast(w *workspace.Workspace) error {
	_, _, err := w.Update("undo", func(m fs.FS) (plan.Plan, error) {
		entries, err := fs.ReadDir(m, ".mem/receipts/2026/11")
		if err != nil {
			return plan.Plan{}, err
		}
		if len(entries) == 0 {
			return plan.Plan{}, errors.New("nothing to undo")
		}
		id := strings.TrimSuffix(entries[len(entries)-1].Name(), ".json")
		p, _, err := w.Journal().Load(id)
		if err != nil {
			return p, err
		}
		return w.Journal().Undo(p)
	})
	return err
}

type scenario struct {
	name  string
	cmd   string // the command that it is one of
	files map[string]string
	setup func(*workspace.Workspace) error
	run   func(*workspace.Workspace) error
	want  want
	edit  map[string]string // a person adds this line to this file before the recovery
	tweak func(*faultfs.Disk)
	mend  func(*workspace.Workspace) error // run after the recovery: the command's next run
	again bool                             // a second run does no more than the first
}

func rotateNow(w *workspace.Workspace) error {
	_, _, err := w.Update("rotate", func(m fs.FS) (plan.Plan, error) {
		p, _, err := buffer.Rotate(m, w.Rules, w.At, buffer.Options{Force: true})
		return p, err
	})
	return err
}

func noteNow(text string) func(*workspace.Workspace) error {
	return func(w *workspace.Workspace) error {
		_, _, err := w.Update("note", func(m fs.FS) (plan.Plan, error) { return buffer.Note(m, w.Rules, w.At, text) })
		return err
	}
}

func rotated(buf string) string {
	return string(entry.Block([]byte(buf), plan.Hash([]byte(buf)), time.UTC, "\n"))
}

func scenarios() []scenario {
	facts := map[string]int{"FACT-ONE aaaaaaaa": 1, "FACT-TWO bbbbbbbb": 1}
	twice := map[string]int{"FACT-ONE aaaaaaaa": 2, "FACT-TWO bbbbbbbb": 2}
	both := map[string]string{bufPath: fullBuf, notePath: oldNote}
	keep := map[string]string{notePath: oldNote}
	return slices.Concat(weekly(), handoffs(), layouts(), programs(), []scenario{
		{name: "rotate, edited before recovery", files: both, run: rotateNow, edit: map[string]string{notePath: "- a person's line\n"}, want: want{facts: facts, keep: keep, buffer: true}},
		{name: "rotate", files: both, run: rotateNow, want: want{facts: facts, keep: keep, buffer: true}},
		{name: "rotate into a new note", files: map[string]string{bufPath: fullBuf}, run: rotateNow, want: want{facts: facts, buffer: true}},
		{
			name: "rotate text that another rotation brought", run: rotateNow, want: want{facts: twice, buffer: true},
			files: map[string]string{bufPath: fullBuf, notePath: "# 2026-11-30\n\n" + rotated(strings.Replace(fullBuf, "T08", "T07", 1))},
		},
		{
			name: "rotate the same bytes again", run: rotateNow, want: want{facts: twice, buffer: true},
			files: map[string]string{bufPath: fullBuf, notePath: "# 2026-11-30\n\n" + rotated(fullBuf)},
		},
		{
			name: "recover rotating", run: recoverNow, want: want{facts: facts, keep: keep, buffer: true},
			files: map[string]string{bufPath + ".rotating": fullBuf, notePath: oldNote, bufPath + ".lock": ""},
		},
		{
			name: "recover rotating that is in its note", run: recoverNow, want: want{facts: facts, buffer: true},
			files: map[string]string{bufPath + ".rotating": fullBuf, notePath: "# 2026-11-30\n\n" + rotated(fullBuf)},
		},
		{
			name: "recover two pending", run: recoverNow, want: want{facts: facts, keep: keep, buffer: true},
			files: map[string]string{bufPath + ".pending": fullBuf[:strings.Index(fullBuf, "- FACT-TWO")], bufPath + ".pending-2": "- FACT-TWO bbbbbbbb", notePath: oldNote},
		},
		{name: "note", files: both, edit: map[string]string{bufPath: "- a person's line\n"}, run: noteNow("FACT-NEW cccccccc"), want: want{facts: facts, maybe: map[string]int{"FACT-NEW cccccccc": 1}, keep: map[string]string{notePath: oldNote, bufPath: "## Active Task:\n- FACT-ONE aaaaaaaa\n- FACT-TWO bbbbbbbb\n"}, buffer: true}},
		{name: "note without a buffer", files: map[string]string{notePath: oldNote}, run: noteNow("FACT-NEW cccccccc"), want: want{maybe: map[string]int{"FACT-NEW cccccccc": 1}, keep: keep, buffer: true}},
		{name: "write a new file", files: both, run: writeNow("memory/semantic/x.md", "FACT-NEW cccccccc\n", nil), want: want{facts: facts, maybe: map[string]int{"FACT-NEW cccccccc": 1}, keep: keep, buffer: true}},
		{
			name: "write over a file", run: writeNow("memory/semantic/x.md", "FACT-NEW cccccccc\n", []byte("FACT-OLD dddddddd\n")),
			files: map[string]string{bufPath: fullBuf, "memory/semantic/x.md": "FACT-OLD dddddddd\n"},
			want:  want{facts: facts, either: []string{"FACT-OLD dddddddd", "FACT-NEW cccccccc"}, buffer: true},
		},
		{name: "note twice", files: both, run: func(w *workspace.Workspace) error {
			return errors.Join(noteNow("FACT-NEW cccccccc")(w), noteNow("FACT-TOO ffffffff")(w))
		}, want: want{facts: facts, maybe: map[string]int{"FACT-NEW cccccccc": 1, "FACT-TOO ffffffff": 1}, buffer: true}},
		{name: "note and undo", files: both, edit: map[string]string{bufPath: "- a person's line\n"}, run: func(w *workspace.Workspace) error {
			return errors.Join(noteNow("FACT-NEW cccccccc")(w), undoLast(w))
		}, want: want{facts: facts, gone: []string{"FACT-NEW cccccccc"}, buffer: true}},
		{name: "write and undo", files: map[string]string{bufPath: fullBuf, "memory/semantic/x.md": "FACT-OLD dddddddd\n"}, run: func(w *workspace.Workspace) error {
			return errors.Join(writeNow("memory/semantic/x.md", "FACT-NEW cccccccc\n", []byte("FACT-OLD dddddddd\n"))(w), undoLast(w))
		}, want: want{facts: facts, either: []string{"FACT-OLD dddddddd", "FACT-NEW cccccccc"}, buffer: true}},
		{name: "rotate and note", files: both, run: func(w *workspace.Workspace) error {
			return errors.Join(rotateNow(w), noteNow("FACT-NEW cccccccc")(w))
		}, want: want{facts: facts, maybe: map[string]int{"FACT-NEW cccccccc": 1}, keep: keep, buffer: true}},
		{name: "an edit that changes nothing", files: both, edit: map[string]string{notePath: "- a person's line\n"}, run: sameNow, want: want{facts: facts, keep: map[string]string{notePath: "# 2026-11-30\n\n- an earlier event\n"}, buffer: true}},
		{name: "close", files: both, run: closeNow, want: want{facts: facts, maybe: map[string]int{"CHOSE x": 1}, keep: map[string]string{notePath: "# 2026-11-30\n\n- an earlier event\n"}, buffer: true}},
		{name: "undo a note", files: both, setup: noteNow("FACT-NEW cccccccc"), run: undoLast, want: want{facts: facts, gone: []string{"FACT-NEW cccccccc"}, keep: keep, buffer: true}},
		{name: "undo a rotation", files: both, setup: rotateNow, run: undoLast, want: want{facts: facts, keep: keep, buffer: true}},
		{
			name: "undo a write", setup: writeNow("memory/semantic/x.md", "FACT-NEW cccccccc\n", []byte("FACT-OLD dddddddd\n")), run: undoLast,
			files: map[string]string{bufPath: fullBuf, "memory/semantic/x.md": "FACT-OLD dddddddd\n"},
			want:  want{facts: facts, either: []string{"FACT-OLD dddddddd", "FACT-NEW cccccccc"}, buffer: true},
		},
		{name: "first use", files: map[string]string{bufPath: fullBuf, notePath: oldNote}, tweak: func(d *faultfs.Disk) { d.Forget(".mem") }, run: noteNow("FACT-NEW cccccccc"), want: want{facts: facts, maybe: map[string]int{"FACT-NEW cccccccc": 1}, keep: keep, buffer: true}},
	})
}

func recoverNow(w *workspace.Workspace) error {
	rec, err := w.Recover()
	if err == nil && len(rec.Attention) > 0 {
		err = &workspace.AttentionError{Items: rec.Attention}
	}
	return err
}

func (s scenario) on(t testing.TB, rules tiers.Rules, mod func(*faultfs.Disk)) crash.Scenario {
	make := func() *faultfs.Disk {
		d := engineDisk(t, rules, s.files)
		if s.tweak != nil {
			s.tweak(d)
		}
		if s.setup != nil {
			if err := s.setup(onDisk(d, rules, at0.Add(-time.Minute))); err != nil {
				t.Fatal(err)
			}
			d.Settle()
		}
		if mod != nil {
			mod(d)
		}
		return d
	}
	base := make()
	run := func(d durable.FS) error { return s.run(onDisk(d, rules, at0)) }
	again := run
	if !s.again && s.mend == nil {
		again = nil
	}
	return crash.Scenario{
		Name:  s.name,
		Disk:  base.Clone,
		Run:   run,
		Again: again,
		Mend: func(d durable.FS) error {
			if s.mend != nil { // the next run comes before anybody recovers by hand
				if err := s.mend(onDisk(d, rules, at0.Add(time.Minute))); err != nil {
					return err
				}
			}
			err := recoverNow(onDisk(d, rules, at0.Add(time.Minute)))
			if err == nil && s.mend != nil {
				err = s.mend(onDisk(d, rules, at0.Add(time.Minute)))
				if err == nil { // which leaves what a command leaves; a second one changes nothing
					err = recoverNow(onDisk(d, rules, at0.Add(time.Minute)))
				}
			}
			return err
		},
		Check: s.want.check,
		Edit:  s.person(),
	}
}

// person adds a line to each file of s.edit that is there.
func (s scenario) person() func(*faultfs.Disk) {
	if s.edit == nil {
		return nil
	}
	return func(d *faultfs.Disk) {
		for name, line := range s.edit {
			if text, ok := d.Text(name); ok {
				d.Save(name, withLine(text, line))
			}
		}
	}
}

func TestCrashesEverywhere(t *testing.T) {
	defer debug.SetGCPercent(debug.SetGCPercent(800))
	rules := testRules(t, "canonical")
	variants := []struct {
		name string
		mod  func(*faultfs.Disk)
	}{
		{"exchange", nil},
		{"renames by halves", func(d *faultfs.Disk) { d.Split = true }},
		{"no exchange", func(d *faultfs.Disk) { d.NoExchange = true }},
		{"no exchange, no links", func(d *faultfs.Disk) { d.NoExchange, d.NoLinks = true, true }},
	}
	states, unique := 0, 0
	start := time.Now()
	if raceEnabled {
		variants = variants[:1] // nothing here is concurrent but the explorer itself
	}
	for i, v := range variants {
		t.Run(v.name, func(t *testing.T) {
			for _, s := range scenarios() {
				o, ok := usual(s, i)
				if *crashDepth >= 0 {
					o, ok = crash.Options{Depth: *crashDepth, Width: *crashWidth}, true
					if s.many() && o.Width > 0 { // minutes a level; what is in them is nested elsewhere
						o.Depth, ok = min(o.Depth, 1), i == 0
					}
				}
				if !ok {
					continue
				}
				t.Run(s.name, func(t *testing.T) {
					c := s.on(t, rules, v.mod)
					if s.many() && (*crashDepth < 0 || *crashWidth > 0) {
						c.KillsOnly, c.Again = true, nil
					}
					begin := time.Now()
					r := crash.Explore(c, o)
					states, unique = states+r.States, unique+r.Unique
					tally.add(s.command(), r)
					t.Logf("depth %d: %v, %v", o.Depth, r, time.Since(begin).Round(time.Millisecond))
					if r.Total() > 0 {
						t.Fail()
					}
				})
			}
		})
	}
	// Printed also where the test passes: the figure is part of the result.
	fmt.Printf("crash: %d states, %d different, in %v\n", states, unique, time.Since(start).Round(100*time.Millisecond))
}

// lateMark is what a writer that ignores the lock writes.
const lateMark = "FACT-LATE eeeeeeee"

// appendTo opens a file early and appends to it late.
func appendTo(file string) crash.Writer {
	return crash.Writer{Name: "append to " + file, Arm: func(d *faultfs.Disk) func() bool {
		h, ok := d.Hold(file)
		return func() bool { return ok && d.Write(h, "- "+lateMark+"\n") }
	}}
}

// saveOver reads a file and saves it anew by rename, as editors do.
func saveOver(file string) crash.Writer {
	return crash.Writer{Name: "save by rename over " + file, Arm: func(d *faultfs.Disk) func() bool {
		return func() bool {
			text, ok := d.Text(file)
			if ok {
				d.Save(file, withLine(text, "- "+lateMark+"\n"))
			}
			return ok
		}
	}}
}

// saveTwice saves early and again late.
func saveTwice(file string) crash.Writer {
	return crash.Writer{Name: "save twice over " + file, Arm: func(d *faultfs.Disk) func() bool {
		if text, ok := d.Text(file); ok {
			d.Save(file, withLine(text, "- a line before\n"))
		}
		return saveOver(file).Arm(d)
	}}
}

// createNew makes a file by rename, if it is not there.
func createNew(file string) crash.Writer {
	return crash.Writer{Name: "create " + file, Arm: func(d *faultfs.Disk) func() bool {
		return func() bool {
			if _, ok := d.Text(file); ok {
				return false
			}
			d.Save(file, fullBuf[:strings.Index(fullBuf, "- FACT")]+"- "+lateMark+"\n")
			return true
		}
	}}
}

// rewrite opens a file early and rewrites it in place late.
func rewrite(file string) crash.Writer {
	return crash.Writer{Name: "rewrite in place " + file, Arm: func(d *faultfs.Disk) func() bool {
		h, ok := d.Hold(file)
		return func() bool {
			return ok && d.Rewrite(h, func(s string) string { return withLine(s, "- "+lateMark+"\n") })
		}
	}}
}

// beside is the oracle for a scenario with such a writer: the line stands
// exactly once, and no fact is lost or, in one file, doubled. Text that its
// owner rewrote, and a version kept in the review inbox, are not doubled.
func (w want) beside(d *faultfs.Disk, acked bool) (bad []string) {
	for _, b := range w.check(d, acked) {
		if !strings.HasPrefix(b, "1 ") && !strings.HasPrefix(b, "2 older") {
			bad = append(bad, b)
		}
	}
	where, n := "", 0
	for _, name := range d.Names() {
		text, _ := d.Text(name)
		if strings.HasPrefix(name, ".mem/") {
			continue
		}
		if k := strings.Count(text, lateMark); k > 0 {
			n += k
			where += " " + name
		}
		for f := range w.facts {
			if strings.Count(text, f) > 1 && !strings.HasPrefix(name, "memory/handoff-inbox/") {
				bad = append(bad, "1 doubled: "+f)
			}
		}
	}
	if n != 1 {
		bad = append(bad, fmt.Sprintf("1 the other writer's line stands %d times:%s", n, where))
	}
	for f := range w.facts {
		if countText(d, f) == 0 {
			bad = append(bad, "1 lost: "+f)
		}
	}
	return bad
}

// besideSaves is that of a writer that saves whole files: what was saved is no
// draft, but in place.
func (w want) besideSaves(d *faultfs.Disk, acked bool) []string {
	bad := w.beside(d, acked)
	for _, name := range d.Names() {
		if text, _ := d.Text(name); strings.HasPrefix(name, "memory/handoff-inbox/") && strings.Contains(text, lateMark) {
			bad = append(bad, "1 what was saved is in a draft: "+name)
		}
	}
	return bad
}

// TestWritersThatIgnoreTheLock: whoever writes beside mem keeps its line,
// whichever way it writes, at whatever moment, with mem killed or not.
func TestWritersThatIgnoreTheLock(t *testing.T) {
	rules := testRules(t, "canonical")
	kills := 5
	switch {
	case *crashDepth >= 0:
		kills = 1
	case raceEnabled || testing.Short():
		kills = 0
	}
	schedules := 0
	for _, s := range scenarios() {
		var writers []crash.Writer
		switch s.name {
		case "rotate":
			writers = []crash.Writer{appendTo(bufPath), saveOver(bufPath), appendTo(notePath), saveOver(notePath), saveTwice(notePath), rewrite(notePath), rewrite(bufPath)}
		case "rotate into a new note":
			writers = []crash.Writer{createNew(notePath)}
		case "note without a buffer":
			writers = []crash.Writer{createNew(bufPath)}
		case "note":
			writers = []crash.Writer{appendTo(bufPath), saveOver(bufPath), rewrite(bufPath)}
		case "write over a file":
			writers = []crash.Writer{appendTo("memory/semantic/x.md"), saveOver("memory/semantic/x.md"), rewrite("memory/semantic/x.md")}
		case "close":
			writers = []crash.Writer{appendTo(notePath), saveOver(notePath)}
		default:
			continue
		}
		for _, w := range writers {
			c := s.on(t, rules, nil)
			c.Check = s.want.beside
			if strings.HasPrefix(w.Name, "save") { // a whole text that somebody has put in its place stays there
				c.Check = s.want.besideSaves
			}
			r := crash.Interleave(c, w, kills)
			schedules += r.States
			tally.add(s.command(), r)
			t.Logf("%s beside %s: %v", s.name, w.Name, r)
			if r.Total() > 0 {
				t.Fail()
			}
		}
	}
	fmt.Printf("crash: %d schedules with writers that ignore the lock\n", schedules)
}

// withLine puts a line into a text where a person might: in a buffer before
// the last line, elsewhere after the first.
func withLine(text, line string) string {
	i := strings.Index(text, "\n") + 1
	if strings.HasPrefix(text, entry.Title) {
		i = strings.LastIndex(strings.TrimSuffix(text, "\n"), "\n") + 1
	}
	return text[:i] + line + text[i:]
}

func countText(d *faultfs.Disk, text string) int {
	n := 0
	for _, name := range d.Names() {
		if t, _ := d.Text(name); !strings.HasPrefix(name, ".mem/") {
			n += strings.Count(t, text)
		}
	}
	return n
}

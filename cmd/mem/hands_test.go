package main

import (
	"fmt"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/tieredmem/mem/crash"
	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
	"github.com/tieredmem/mem/journal"
)

// TestHandsBetweenCrashAndRecovery: a workspace is copied, or mounted anew,
// and staged files are tidied away, between a crash and the recovery.
func TestHandsBetweenCrashAndRecovery(t *testing.T) {
	t.Parallel() // on one processor, mostly
	rules := testRules(t, "canonical")
	// A whole file's content is not in its plan: without its staged file only
	// commands that carry their text in the plan can go on.
	inPlan := []string{"rotate", "rotate into a new note", "recover rotating", "recover two pending", "note", "note without a buffer", "close"}
	hands := []struct {
		name string
		of   func(scenario) bool
		do   func(*faultfs.Disk)
	}{
		{"copied", func(s scenario) bool { return s.edit == nil }, (*faultfs.Disk).Renumber},
		{"staged files taken away", func(s scenario) bool { return slices.Contains(inPlan, s.name) }, func(d *faultfs.Disk) {
			for _, name := range d.Names() {
				if _, staged := journal.StagedBy(path.Base(name)); staged {
					d.Forget(name)
				}
			}
		}},
		{"directory of a new note taken away", func(s scenario) bool { return s.name == "rotate into a new note" }, func(d *faultfs.Disk) {
			if _, ok := d.Text(notePath); !ok {
				d.Forget(path.Dir(notePath))
			}
		}},
	}
	states := 0
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			for _, h := range hands {
				if !h.of(s) || s.program() {
					continue
				}
				c := s.on(t, rules, nil)
				c.Edit, c.KillsOnly = h.do, true
				r := crash.Explore(c, crash.Options{})
				states += r.States
				if r.Total() > 0 {
					t.Errorf("%s: %v", h.name, r)
				}
			}
		})
	}
	fmt.Printf("hands: %d states\n", states)
}

// byLink moves as file systems without RENAME_NOREPLACE have it done: by a
// link and an unlink, which a crash can part.
type byLink struct{ durable.FS }

func (b byLink) Move(from, to string) error {
	if err := b.Link(from, to); err != nil {
		return err
	}
	if err := b.SyncDir(path.Dir(to)); err != nil {
		return err
	}
	return b.Remove(from)
}

func TestMovesByLinkAndUnlink(t *testing.T) {
	t.Parallel() // on one processor, mostly
	rules := testRules(t, "canonical")
	for _, s := range scenarios() {
		if strings.HasPrefix(s.name, "note twice") || s.program() || s.many() {
			continue // two commands: covered by the one; a command line: by its parts; a batch: by a handoff
		}
		t.Run(s.name, func(t *testing.T) {
			c := s.on(t, rules, func(d *faultfs.Disk) { d.NoExchange = true })
			run, mend := c.Run, c.Mend
			c.Run = func(d durable.FS) error { return run(byLink{d}) }
			c.Mend = func(d durable.FS) error { return mend(byLink{d}) }
			c.KillsOnly, c.Again = true, nil
			if r := crash.Explore(c, crash.Options{}); r.Total() > 0 {
				t.Errorf("%v", r)
			}
		})
	}
}

// TestLateWriteFoundAfterDays: a writer that held the buffer open appended to
// it after it had been replaced; the recovery comes days later.
func TestLateWriteFoundAfterDays(t *testing.T) {
	rules := testRules(t, "canonical")
	d := engineDisk(t, rules, map[string]string{bufPath: fullBuf, notePath: oldNote})
	h, _ := d.Hold(bufPath)
	ops := 0
	stop := fmt.Errorf("killed")
	err := rotateNow(onDisk(durable.Watch(d, func(op durable.Op, done bool) error {
		if op.Changes() && !done {
			if ops++; ops > 14 {
				return stop
			}
		}
		return nil
	}), rules, at0))
	if err == nil {
		t.Fatal("the rotation was not interrupted")
	}
	if !d.Write(h, "- "+lateMark+"\n") {
		t.Fatal("the replaced buffer is gone")
	}
	w := onDisk(d, rules, at0.AddDate(0, 2, 3))
	if err := recoverNow(w); err != nil {
		t.Fatal(err)
	}
	want := want{facts: map[string]int{"FACT-ONE aaaaaaaa": 1, "FACT-TWO bbbbbbbb": 1, lateMark: 1}, buffer: true}
	if bad := want.check(d, true); len(bad) > 0 {
		t.Fatal(bad)
	}
}

// TestNoPlaceForADraft: the review inbox is a file; the text of a conflict is
// kept in the trash, and writers go on.
func TestNoPlaceForADraft(t *testing.T) {
	rules := testRules(t, "canonical")
	d := engineDisk(t, rules, map[string]string{bufPath: fullBuf, "memory/semantic/x.md": "newer\n", rules.Review: "in the way\n"})
	w := onDisk(d, rules, at0)
	if err := writeNow("memory/semantic/x.md", "FACT-NEW cccccccc\n", []byte("older\n"))(w); err == nil || err.Error() != "conflict" {
		t.Fatalf("got %v, want a conflict", err)
	}
	if err := noteNow("one more")(w); err != nil {
		t.Fatal(err)
	}
	kept := 0
	for _, name := range d.Names() {
		if text, _ := d.Text(name); strings.HasPrefix(name, ".mem/trash/") && text == "FACT-NEW cccccccc\n" {
			kept++
		}
	}
	if kept != 1 {
		t.Fatalf("the text is in the trash %d times", kept)
	}
}

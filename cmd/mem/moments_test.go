package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"strings"
	"syscall"
	"testing"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
	"github.com/tieredmem/mem/plan"
)

// moment is one operation of a command, and what somebody else does just before
// it. An error that is returned fails it, panic(powerCut{}) kills the command.
type moment struct {
	kind, name string // the operation, "" each that changes something; and a part of its names
	nth        int    // which of them, from 1; 0: each
	do         func(op durable.Op) error
}

// at runs a command with others at work at some of its moments. It fails where
// one of the moments never came.
func at(t *testing.T, d *faultfs.Disk, args []string, moments ...moment) exited {
	t.Helper()
	seen := make([]int, len(moments))
	var e exited
	func() {
		defer func() {
			if r := recover(); r != nil {
				if _, cut := r.(powerCut); !cut {
					panic(r)
				}
				e.code = -1
			}
		}()
		e = program{at: at0, zone: "UTC", stdin: "FACT\n", disk: durable.Watch(d, func(op durable.Op, done bool) error {
			if done {
				return nil
			}
			for i, m := range moments {
				if (m.kind == "" && !op.Changes()) || (m.kind != "" && op.Kind != m.kind) || !strings.Contains(op.Name, m.name) && !strings.Contains(op.To, m.name) {
					continue
				}
				if seen[i]++; m.nth == 0 || seen[i] == m.nth {
					if err := m.do(op); err != nil {
						return err
					}
				}
			}
			return nil
		})}.run(args...)
	}()
	for i, m := range moments {
		if e.code != -1 && seen[i] < max(m.nth, 1) {
			t.Errorf("%v: %s of %q came %d times: %+v", args, m.kind, m.name, seen[i], e)
		}
	}
	return e
}

func killed(durable.Op) error { panic(powerCut{}) }

func failsWith(err error) func(durable.Op) error { return func(durable.Op) error { return err } }

// recovered runs mem recover, and again to see that nothing is left to do.
func recovered(t *testing.T, d *faultfs.Disk) {
	t.Helper()
	p := program{disk: d, at: at0, zone: "UTC"}
	if e := p.run("recover"); e.err() != nil {
		t.Errorf("recover: %v", e.err())
	}
	if e := p.run("recover"); e.err() != nil || !strings.Contains(e.out, "clean") {
		t.Errorf("recover again: %v %s", e.err(), e.out)
	}
	for _, name := range d.Names() {
		text, _ := d.Text(name)
		for _, bad := range checkName(name, text) {
			t.Errorf("%s: %s", name, bad)
		}
	}
}

// texts are the files of the memory that hold a text, with how often.
func texts(d *faultfs.Disk, text string) string {
	var where []string
	for _, name := range d.Names() {
		if b, _ := d.Text(name); !strings.HasPrefix(name, ".mem/") && strings.Contains(b, text) {
			where = append(where, fmt.Sprintf("%s %d", path.Base(name), strings.Count(b, text)))
		}
	}
	return strings.Join(where, ", ")
}

func named(d *faultfs.Disk, part string) (names []string) {
	for _, n := range d.Names() {
		if strings.Contains(n, part) {
			names = append(names, n)
		}
	}
	return names
}

func receiptBy(t *testing.T, d *faultfs.Disk, command string) plan.Plan {
	t.Helper()
	for _, n := range named(d, ".mem/receipts/") {
		text, _ := d.Text(n)
		var p plan.Plan
		if json.Unmarshal([]byte(text), &p) == nil && p.Command == command {
			return p
		}
	}
	t.Fatalf("no receipt of %s", command)
	return plan.Plan{}
}

const semantic = "memory/semantic/x.md"

// save puts a line into a file, by rename, as editors do.
func save(d *faultfs.Disk, name, line string) func(durable.Op) error {
	return func(durable.Op) error {
		text, _ := d.Text(name)
		d.Save(name, withLine(text, "- "+line+"\n"))
		return nil
	}
}

// TestSavedAtTheLastMoment: between the last look at a file and its exchange an
// editor saves it. What it saved is in place in the end, and what mem brought
// too; nothing of that is a draft.
func TestSavedAtTheLastMoment(t *testing.T) {
	d := lived(t, nil)
	if e := at(t, d, []string{"note", "FACT"}, moment{"exchange", bufPath, 1, save(d, bufPath, "SAVED")}); e.err() != nil {
		t.Fatal(e.err())
	}
	if left := named(d, ".mem-"); len(left) != 0 {
		t.Errorf("left over: %v", left)
	}
	recovered(t, d)
	if got := texts(d, "FACT") + "; " + texts(d, "SAVED"); got != "working-buffer.md 1; working-buffer.md 1" {
		t.Error(got)
	}
}

// TestSavedAndWrittenTo: as before, and while mem's text is in place for a
// moment, somebody opens it, and writes to it: appends, or all of it anew.
func TestSavedAndWrittenTo(t *testing.T) {
	for how, want := range map[string]string{"append": "working-buffer.md 1", "rewrite": "working-buffer.md.md 1"} {
		d := lived(t, nil)
		e := at(t, d, []string{"note", "FACT"},
			moment{"exchange", bufPath, 1, save(d, bufPath, "SAVED")},
			moment{"exchange", bufPath, 2, func(durable.Op) error {
				h, ok := d.Hold(bufPath)
				if !ok {
					return errors.New("it is not there")
				}
				if how == "append" {
					d.Write(h, "- WROTE\n")
				} else {
					d.Rewrite(h, func(s string) string { return withLine(s, "- WROTE\n") })
				}
				return nil
			}})
		if e.err() != nil {
			t.Fatal(e.err())
		}
		recovered(t, d)
		if got := texts(d, "SAVED"); got != "working-buffer.md 1" {
			t.Errorf("%s: saved: %s", how, got)
		}
		if text, _ := d.Text(bufPath); strings.Count(text, "FACT") != 1 {
			t.Errorf("%s: %s", how, text)
		}
		got := texts(d, "WROTE")
		if drafts := named(d, "memory/handoff-inbox/"); how == "rewrite" {
			if len(drafts) != 1 || !strings.HasSuffix(got, ".md 1") || strings.HasPrefix(got, "working-buffer") {
				t.Errorf("rewritten: %s, drafts %v", got, drafts)
			} else if text, _ := d.Text(drafts[0]); !strings.Contains(text, "reason=edited-while-staged ") {
				t.Errorf("rewritten: %s", text)
			}
		} else if text, _ := d.Text(bufPath); got != want || len(drafts) != 0 || !strings.Contains(text, "- FACT\n- WROTE\n") {
			t.Errorf("appended: %s, drafts %v\n%s", got, drafts, text)
		}
	}
	d := lived(t, map[string]string{notePath: "# 2026-11-30\n\n- an event\n"})
	e := at(t, d, []string{"close", "--decisions", "CHOSE"},
		moment{"exchange", notePath, 1, save(d, notePath, "SAVED")},
		moment{"exchange", notePath, 2, func(durable.Op) error {
			h, _ := d.Hold(notePath)
			d.Write(h, "- WROTE\n")
			return nil
		}})
	if e.err() != nil {
		t.Fatal(e.err())
	}
	recovered(t, d)
	for _, text := range []string{"CHOSE", "SAVED", "WROTE"} {
		if got := texts(d, text); got != "2026-11-30.md 1" {
			t.Errorf("close: %s is in %q", text, got)
		}
	}
}

// TestSavedTwiceAtTheLastMoment: an editor saves before the exchange and again
// before it is taken back. The newer save is in place, with what mem brought;
// the older one is kept. So it is wherever mem is killed on the way.
func TestSavedTwiceAtTheLastMoment(t *testing.T) {
	run := func(name string, more ...moment) {
		d := lived(t, nil)
		text, _ := d.Text(bufPath)
		saves := 0
		one := func(line string) func(durable.Op) error {
			return func(durable.Op) error {
				saves++
				d.Save(bufPath, withLine(text, "- "+line+"\n"))
				return nil
			}
		}
		e := at(t, d, []string{"note", "FACT"}, append(more, moment{"exchange", bufPath, 1, one("OLDER")}, moment{"exchange", bufPath, 2, one("NEWER")})...)
		if e.code != -1 && e.err() != nil {
			t.Fatal(e.err())
		}
		recovered(t, d)
		b, _ := d.Text(bufPath)
		switch {
		case saves == 2 && (strings.Count(b, "NEWER") != 1 || strings.Contains(b, "OLDER") || !strings.HasSuffix(texts(d, "OLDER"), ".md 1")):
			t.Errorf("%s: the older save is in %q, in place is\n%s", name, texts(d, "OLDER"), b)
		case saves == 1 && texts(d, "OLDER") != "working-buffer.md 1":
			t.Errorf("%s: the save is in %q", name, texts(d, "OLDER"))
		case saves > 0 && strings.Count(b, "FACT") != 1:
			t.Errorf("%s: the fact is in %q", name, texts(d, "FACT"))
		}
	}
	changes := 0
	run("whole", moment{"", "", 0, func(durable.Op) error { changes++; return nil }})
	for n := 1; n <= changes; n++ {
		run(fmt.Sprintf("killed at %d of %d", n, changes), moment{"", "", n, killed})
	}
}

// TestSavedOverWithOurs: the second save has what mem had brought: it is there
// once. One of a note that lost its closure gets it again.
func TestSavedOverWithOurs(t *testing.T) {
	d := lived(t, nil)
	if e := at(t, d, []string{"note", "FACT"}, moment{"exchange", bufPath, 1, save(d, bufPath, "OLDER")}, moment{"exchange", bufPath, 2, save(d, bufPath, "NEWER")}); e.err() != nil {
		t.Fatal(e.err())
	}
	recovered(t, d)
	if n := receiptsBy(d, "recover"); n != 0 {
		t.Errorf("what was kept is taken for a late write: %d receipts", n)
	}
	if got := texts(d, "FACT") + "; " + texts(d, "NEWER"); got != "working-buffer.md 1; working-buffer.md 1" || !strings.HasSuffix(texts(d, "OLDER"), ".md.md 1") && strings.Contains(texts(d, "OLDER"), ",") {
		t.Error(got, texts(d, "OLDER"))
	}
	for how, second := range map[string]func(*faultfs.Disk, string) func(durable.Op) error{
		"with it": func(d *faultfs.Disk, _ string) func(durable.Op) error { return save(d, notePath, "NEWER") },
		"without": func(d *faultfs.Disk, before string) func(durable.Op) error {
			return func(durable.Op) error { d.Save(notePath, withLine(before, "- NEWER\n")); return nil }
		},
	} {
		d := lived(t, map[string]string{notePath: "# 2026-11-30\n\n- an event\n"})
		before, _ := d.Text(notePath)
		if e := at(t, d, []string{"close", "--decisions", "CHOSE"}, moment{"exchange", notePath, 1, save(d, notePath, "OLDER")}, moment{"exchange", notePath, 2, second(d, before)}); e.err() != nil {
			t.Fatal(e.err())
		}
		recovered(t, d)
		if text, _ := d.Text(notePath); strings.Count(text, "CHOSE") != 1 || strings.Count(text, "NEWER") != 1 || strings.Count(text, "Decisions:") != 1 {
			t.Errorf("%s: %s", how, text)
		}
	}
}

// TestFailsAtTheLastMoment: an exchange that fails, the first or one that takes
// it back, is told, and recovery brings all of it in order.
func TestFailsAtTheLastMoment(t *testing.T) {
	for n := 1; n <= 3; n++ {
		d := lived(t, nil)
		text, _ := d.Text(bufPath)
		moments := []moment{
			{"exchange", bufPath, 1, func(durable.Op) error { d.Save(bufPath, withLine(text, "- OLDER\n")); return nil }},
			{"exchange", bufPath, 2, func(durable.Op) error { d.Save(bufPath, withLine(text, "- NEWER\n")); return nil }},
		}[:min(n, 2)]
		e := at(t, d, []string{"note", "FACT"}, append(moments, moment{"exchange", bufPath, n, failsWith(syscall.EIO)})...)
		if e.err() == nil || !strings.Contains(e.errout, "input/output error") {
			t.Errorf("the %d. fails: %d %s%s", n, e.code, e.out, e.errout)
		}
		recovered(t, d)
		b, _ := d.Text(bufPath)
		if last := []string{"OLDER", "NEWER"}[min(n, 2)-1]; strings.Count(b, last) != 1 || strings.Count(b, "FACT") != 1 || texts(d, "OLDER") == "" {
			t.Errorf("the %d. fails: %s is not in place:\n%s%s", n, last, b, texts(d, "OLDER"))
		}
	}
}

// TestMomentsWithoutExchange: the same where names cannot be exchanged. There
// is a second name of the old text for a moment, which is what an editor may
// save over, append to, or write anew.
func TestMomentsWithoutExchange(t *testing.T) {
	hold := func(d *faultfs.Disk, f func(faultfs.Handle)) func(durable.Op) error {
		return func(durable.Op) error {
			h, ok := d.Hold(bufPath)
			if !ok {
				return errors.New("it is not there")
			}
			f(h)
			return nil
		}
	}
	for what, do := range map[string]func(*faultfs.Disk) func(durable.Op) error{
		"nothing": func(*faultfs.Disk) func(durable.Op) error { return failsWith(nil) },
		"save":    func(d *faultfs.Disk) func(durable.Op) error { return save(d, bufPath, "WROTE") },
		"append": func(d *faultfs.Disk) func(durable.Op) error {
			return hold(d, func(h faultfs.Handle) { d.Write(h, "- WROTE\n") })
		},
		"rewrite": func(d *faultfs.Disk) func(durable.Op) error {
			return hold(d, func(h faultfs.Handle) { d.Rewrite(h, func(s string) string { return withLine(s, "- WROTE\n") }) })
		},
	} {
		for _, links := range []bool{true, false} {
			name := fmt.Sprintf("%s, links %v", what, links)
			d := lived(t, nil)
			d.NoExchange, d.NoLinks = true, !links
			kind := map[bool]string{true: "link", false: "create"}[links]
			linked := false
			e := at(t, d, []string{"note", "FACT"}, moment{kind, ".old.tmp", 1, func(durable.Op) error { linked = true; return nil }},
				moment{"syncdir", "memory", 0, func(op durable.Op) error {
					if !linked || op.Name != "memory" {
						return nil
					}
					linked = false
					return do(d)(op)
				}})
			if e.err() != nil || strings.Contains(e.errout, "degraded") == links && (what == "nothing" || links) {
				t.Errorf("%s: %v %s", name, e.err(), e.errout)
			}
			if left := named(d, ".mem-"); len(left) != 0 {
				t.Errorf("%s: left over: %v", name, left)
			}
			recovered(t, d)
			want := map[bool]string{true: "", false: "working-buffer.md 1"}[what == "nothing"]
			if got := texts(d, "WROTE"); got != want || texts(d, "FACT") != "working-buffer.md 1" || len(named(d, "memory/handoff-inbox/")) != 0 {
				t.Errorf("%s: %q, the fact is in %q, drafts %v", name, got, texts(d, "FACT"), named(d, "memory/handoff-inbox/"))
			}
		}
	}
	// Killed then, and written anew in place, through a descriptor that is held on:
	// what comes through that later stands once.
	d := lived(t, nil)
	d.NoExchange = true
	h, _ := d.Hold(bufPath)
	linked := false
	at(t, d, []string{"note", "FACT"}, moment{"link", ".old.tmp", 1, func(durable.Op) error { linked = true; return nil }}, moment{"syncdir", "memory", 0, func(durable.Op) error {
		if linked {
			panic(powerCut{})
		}
		return nil
	}})
	d.Rewrite(h, func(s string) string { return withLine(s, "- WROTE\n") })
	if e := at(t, d, []string{"recover"}, moment{"remove", ".old.tmp", 1, failsWith(syscall.EIO)}); e.err() == nil || !strings.Contains(e.out+e.errout, "input/output error") {
		t.Errorf("%d %s%s", e.code, e.out, e.errout)
	}
	recovered(t, d)
	d.Now = at0.Add(1e9)
	d.Write(h, "- LATE\n")
	if e := (program{disk: d, at: at0, zone: "UTC"}).run("recover"); e.err() != nil {
		t.Error(e.err())
	}
	recovered(t, d)
	for _, text := range []string{"FACT", "WROTE", "LATE"} {
		if got := texts(d, text); got != "working-buffer.md 1" {
			t.Errorf("rewritten in place: %s is in %q", text, got)
		}
	}
	// A file that is written anew in place keeps its one name.
	d = lived(t, map[string]string{semantic: "old\n"})
	d.NoExchange = true
	linked = false
	at(t, d, []string{"write", semantic, "--expect", plan.Hash([]byte("old\n"))}, moment{"link", ".old.tmp", 1, func(durable.Op) error { linked = true; return nil }}, moment{"syncdir", "memory/semantic", 0, func(durable.Op) error {
		if linked {
			linked = false
			h, _ := d.Hold(semantic)
			d.Rewrite(h, func(string) string { return "WROTE\n" })
		}
		return nil
	}})
	recovered(t, d)
	if info, err := d.Lstat(semantic); err != nil || info.Links != 1 || texts(d, "WROTE") != "x.md 1" || len(named(d, "memory/handoff-inbox/")) != 1 {
		t.Errorf("%d names, %v; %s, drafts %v", info.Links, err, texts(d, "WROTE"), named(d, "memory/handoff-inbox/"))
	}
	// Killed then, and the old text saved anew, as another file: the second name
	// stays in the trash under a number that no step has, also where that is taken.
	for taken, want := range []int{1000, 1001} {
		d := lived(t, nil)
		d.NoExchange = true
		linked := false
		at(t, d, []string{"note", "FACT"}, moment{"link", ".old.tmp", 1, func(durable.Op) error { linked = true; return nil }}, moment{"syncdir", "memory", 0, func(durable.Op) error {
			if linked {
				panic(powerCut{})
			}
			return nil
		}})
		text, _ := d.Text(bufPath)
		d.Save(bufPath, text)
		if e := at(t, d, []string{"recover"}, moment{"move", "-1000-", 1, failsWith(syscall.EIO)}); e.err() == nil || !strings.Contains(e.out+e.errout, "input/output error") {
			t.Errorf("%d %s%s", e.code, e.out, e.errout)
		}
		if taken == 1 {
			at(t, d, []string{"recover"}, moment{"move", "-1000-", 1, func(op durable.Op) error { d.Put(op.To, text); return nil }})
		}
		recovered(t, d)
		if got := texts(d, "FACT"); got != "working-buffer.md 1" {
			t.Error(got)
		}
		if names := named(d, fmt.Sprintf("-%d-", want)); len(names) != 1 || !strings.HasPrefix(names[0], ".mem/trash/") {
			t.Errorf("the second name did not go to number %d: %v", want, named(d, ".mem/trash/"))
		}
	}
}

// TestNeverStill: where a file changes before every exchange, mem gives up in
// the end, and says so; when it is still, recovery brings the text.
func TestNeverStill(t *testing.T) {
	d := lived(t, nil)
	n := 0
	e := at(t, d, []string{"note", "FACT"}, moment{"exchange", bufPath, 0, func(op durable.Op) error {
		if n++; n%2 == 0 { // that takes the one before back
			return nil
		}
		return save(d, bufPath, fmt.Sprintf("SAVED-%d.", n))(op)
	}})
	if e.err() == nil || !strings.Contains(e.errout, "keeps changing: gave up after 101 attempts") {
		t.Errorf("%d: %s", e.code, e.errout)
	}
	recovered(t, d)
	if got := texts(d, "FACT"); got != "working-buffer.md 1" {
		t.Error(got)
	}
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"path"
	"slices"
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

// TestConflictsAreTold: of two cards that were saved meanwhile each waits as a
// draft, durable; the receipt says of each why.
func TestConflictsAreTold(t *testing.T) {
	cards := map[string]string{}
	update := func(name, old string) string {
		return "## Title\nx\n## Recommended memory action\nupdate-card\n## Target card\n" + name + "\n## Expected card SHA256\n" + plan.Hash([]byte(old)) + "\n## Suggested card content\n---\ntopic: t\n---\nNEW-" + name + "\n"
	}
	for _, name := range []string{"a.md", "b.md"} {
		old := "---\ntopic: " + name + "\n---\nold\n"
		cards["memory/cards/"+name] = old
		cards[boxDir+"/"+name] = update(name, old)
	}
	d := lived(t, cards)
	synced := ""
	e := at(t, d, []string{"ingest"},
		moment{"exchange", "memory/cards/", 1, func(durable.Op) error {
			for _, n := range []string{"a.md", "b.md"} {
				d.Save("memory/cards/"+n, "SAVED-"+n+"\n")
			}
			return nil
		}},
		moment{"move", "memory/handoff-inbox/", 0, func(op durable.Op) error { synced = op.To; return nil }},
		moment{"syncdir", "memory/handoff-inbox", 0, func(op durable.Op) error { synced = ""; return nil }})
	if synced != "" {
		t.Errorf("%s was not made durable", synced)
	}
	recovered(t, d)
	for _, n := range []string{"a.md", "b.md"} {
		if text, _ := d.Text("memory/cards/" + n); text != "SAVED-"+n+"\n" {
			t.Errorf("%s: %q", n, text)
		}
		if drafts := named(d, "-memory--cards--"+n); len(drafts) != 1 || texts(d, "NEW-"+n) == "" {
			t.Errorf("drafts of %s: %v; %s%s", n, drafts, e.out, e.errout)
		}
	}
	for _, s := range receiptBy(t, d, "ingest").Steps {
		if strings.HasPrefix(s.Path, "memory/cards/") && !strings.HasPrefix(s.Reason, "target-changed: found ") {
			t.Errorf("%s: %q", s.Path, s.Reason)
		}
	}
}

// TestLeftByOthers: where something stands under a name that mem wants for a
// while, mem goes on, and what has that name for good is not touched.
func TestLeftByOthers(t *testing.T) {
	put := func(d *faultfs.Disk, text string) func(durable.Op) error {
		return func(op durable.Op) error {
			name := op.Name
			if op.To != "" {
				name = op.To
			}
			d.Put(name, text)
			return nil
		}
	}
	t.Run("a plan's temporary name", func(t *testing.T) {
		d := lived(t, nil)
		if e := at(t, d, []string{"note", "FACT"}, moment{"create", ".mem/tx/", 1, put(d, "JUNK")}); e.err() != nil {
			t.Error(e.err())
		}
		recovered(t, d)
		if got := texts(d, "FACT"); got != "working-buffer.md 1" {
			t.Error(got)
		}
	})
	t.Run("a draft's temporary name", func(t *testing.T) {
		d := lived(t, map[string]string{semantic: "old\n"})
		at(t, d, []string{"write", semantic, "--expect", plan.Hash([]byte("old\n"))},
			moment{"exchange", semantic, 1, func(durable.Op) error { d.Save(semantic, "SAVED\n"); return nil }},
			moment{"create", "-draft.tmp", 1, put(d, "JUNK")})
		recovered(t, d)
		if got := texts(d, "FACT"); !strings.HasSuffix(got, "--memory--semantic--x.md 1") && !strings.Contains(got, "x.md 1") || texts(d, "JUNK") != "" {
			t.Error(got, texts(d, "JUNK"))
		}
	})
	t.Run("the sentinel", func(t *testing.T) {
		d := begun(t)
		signed := false
		e := at(t, d, []string{"rotate", "--force"}, moment{"create", bufPath + ".lock", 1, put(d, "somebody's")}, moment{"exchange", bufPath, 1, func(durable.Op) error {
			text, _ := d.Text(bufPath + ".lock")
			signed = strings.Contains(text, `"tx":`)
			return nil
		}})
		if e.err() != nil || !signed {
			t.Errorf("signed %v, %v", signed, e.err())
		}
		recovered(t, d)
	})
	t.Run("a copy across file systems", func(t *testing.T) {
		d := lived(t, map[string]string{oldDay: "# 2026-01-05\n\n- FACT\n"})
		d.Mkdirs("memory/archive")
		d.Far = "memory/archive"
		if e := at(t, d, []string{"archive"}, moment{"remove", "-across.tmp", 1, put(d, "JUNK")}); e.err() != nil {
			t.Error(e.err())
		}
		recovered(t, d)
		if names := named(d, "2026-01-05.md"); !slices.Equal(names, []string{"memory/archive/2026/01/2026-01-05.md"}) || texts(d, "JUNK") != "" {
			t.Errorf("%v %s", names, texts(d, "JUNK"))
		}
	})
	t.Run("another text at the destination on another file system", func(t *testing.T) {
		d := lived(t, map[string]string{oldDay: "# 2026-01-05\n\n- FACT\n", "memory/episodic/2026-01-06.md": "# 2026-01-06\n\n- SIX\n"})
		d.Mkdirs("memory/archive")
		d.Far = "memory/archive"
		at(t, d, []string{"archive"}, moment{"move", "memory/archive/2026/01/2026-01-06.md", 1, put(d, "SOMEBODY\n")})
		recovered(t, d)
		if got := texts(d, "SIX") + "; " + texts(d, "SOMEBODY") + "; " + texts(d, "FACT"); got != "2026-01-06.md 1; 2026-01-06.md 1; 2026-01-05.md 1" || len(named(d, "memory/episodic/2026-01-06.md")) != 1 {
			t.Error(got, d.Names())
		}
		for _, s := range receiptBy(t, d, "archive").Steps {
			if want := strings.HasSuffix(s.Path, "06.md"); (s.Outcome == plan.Conflict) != want || want && s.Reason != "destination-exists" {
				t.Errorf("%s: %s %s", s.Path, s.Outcome, s.Reason)
			}
		}
	})
	t.Run("the same text at each destination", func(t *testing.T) {
		files := map[string]string{}
		for i := range 4 {
			files[fmt.Sprintf("memory/episodic/2026-01-0%d.md", i+1)] = fmt.Sprintf("# 2026-01-0%d\n\n- FACT-%d.\n", i+1, i)
		}
		d := lived(t, files)
		if e := at(t, d, []string{"archive"}, moment{"move", "memory/archive/2026/01/", 0, func(op durable.Op) error {
			if text, ok := d.Text(op.Name); ok {
				d.Put(op.To, text)
			}
			return nil
		}}); e.err() != nil {
			t.Error(e.err())
		}
		recovered(t, d)
		p := receiptBy(t, d, "archive")
		for i := range 4 {
			if got := texts(d, fmt.Sprintf("FACT-%d.", i)); got != fmt.Sprintf("2026-01-0%d.md 1", i+1) {
				t.Error(got)
			}
		}
		for _, n := range named(d, ".mem/trash/") {
			if tr, ok := plan.ParseTrash(n); ok && tr.TxID == p.ID && tr.N < len(p.Steps) {
				t.Errorf("%s is named as if step %d had replaced it", n, tr.N)
			}
		}
		if len(named(d, ".mem/trash/2026/11/")) < 4 {
			t.Errorf("%v", named(d, ".mem/trash/"))
		}
	})
	for text, gone := range map[string]bool{"# 2026-01-05\n\n- FACT\n": true, "OTHER\n": false} {
		t.Run("in the trash: "+text[:5], func(t *testing.T) {
			d := lived(t, map[string]string{oldDay: "# 2026-01-05\n\n- FACT\n"})
			moments := []moment{
				{"move", "memory/archive/2026/01/2026-01-05.md", 1, put(d, "# 2026-01-05\n\n- FACT\n")},
				{"move", ".mem/trash/", 1, func(op durable.Op) error { d.Put(op.To, text); return nil }},
			}
			synced := false
			if gone {
				moments = append(moments, moment{"syncdir", ".mem/trash/", 0, func(durable.Op) error { synced = true; return nil }},
					moment{"remove", oldDay, 1, func(durable.Op) error {
						if !synced {
							t.Error("the trash was not made durable before the note went")
						}
						return nil
					}})
			}
			e := at(t, d, []string{"archive"}, moments...)
			if _, there := d.Text(oldDay); there == gone || (e.err() == nil) != gone {
				t.Errorf("there: %v, %v", there, e.err())
			}
		})
	}
}

// TestNewNoteOfThatName: after a note went to the archive mem is killed, and an
// agent begins another under its name. That is its own.
func TestNewNoteOfThatName(t *testing.T) {
	d := lived(t, map[string]string{oldDay: "# 2026-01-05\n\n- FACT\n"})
	at(t, d, []string{"archive"}, moment{"syncdir", "memory/archive/2026/01", 1, func(durable.Op) error {
		if len(named(d, "memory/archive/2026/01/2026-01-05.md")) == 1 {
			panic(powerCut{})
		}
		return nil
	}})
	if len(named(d, oldDay)) != 0 {
		// killed before it went: the directory was made durable first
		at(t, d, []string{"recover"}, moment{"syncdir", "memory/archive/2026/01", 1, killed})
	}
	d.Save(oldDay, "# 2026-01-05\n\n- NEW\n")
	recovered(t, d)
	if got := texts(d, "NEW") + "; " + texts(d, "FACT"); got != "2026-01-05.md 1; 2026-01-05.md 1" || len(named(d, oldDay)) != 1 {
		t.Error(got, d.Names())
	}
	if p := receiptBy(t, d, "archive"); p.Outcome != plan.Applied || len(p.Notices) != 0 {
		t.Errorf("%s %v", p.Outcome, p.Notices)
	}
}

// TestManyThatStay: of very many files that cannot be moved a hundred are told
// one by one; the receipt has all.
func TestManyThatStay(t *testing.T) {
	files := map[string]string{}
	for i := range 103 {
		files[fmt.Sprintf("memory/episodic/2025-%02d-%02d.md", i/20+1, i%20+1)] = fmt.Sprintf("- FACT %d.\n", i)
	}
	d := lived(t, files)
	at(t, d, []string{"archive"}, moment{"move", "memory/archive/", 0, failsWith(syscall.EPERM)})
	p := receiptBy(t, d, "archive")
	stay := 0
	for _, s := range p.Steps {
		if s.Outcome == plan.Conflict {
			stay++
		}
	}
	if stay != 103 || len(p.Notices) != 100 {
		t.Errorf("%d stay, %d are told", stay, len(p.Notices))
	}
}

// TestReceiptFails: a conflict that cannot be written down leaves the
// transaction open, and recovery tells it.
func TestReceiptFails(t *testing.T) {
	d := lived(t, map[string]string{oldDay: "# 2026-01-05\n\n- FACT\n"})
	e := at(t, d, []string{"archive"}, moment{"move", "memory/archive/", 0, failsWith(syscall.EPERM)}, moment{"create", ".mem/tx/", 2, failsWith(syscall.ENOSPC)})
	if e.err() == nil || !strings.Contains(e.errout, "no space left") || len(named(d, ".mem/tx/")) != 1 {
		t.Errorf("%d %s%s %v", e.code, e.out, e.errout, named(d, ".mem/tx/"))
	}
	recovered(t, d)
	if got := texts(d, "FACT"); got != "2026-01-05.md 1" {
		t.Error(got)
	}
}

// TestPlanFromABackup: a plan that has been carried out, and comes back, is not
// carried out again, and stays to be looked at.
func TestPlanFromABackup(t *testing.T) {
	d := lived(t, nil)
	saved := ""
	if e := at(t, d, []string{"note", "FACT"}, moment{"move", ".mem/receipts/", 1, func(op durable.Op) error { saved = op.Name; return nil }}); e.err() != nil {
		t.Fatal(e.err())
	}
	p := receiptBy(t, d, "note")
	text, _ := d.Text(named(d, ".mem/receipts/")[slices.IndexFunc(named(d, ".mem/receipts/"), func(n string) bool { return strings.Contains(n, p.ID) })])
	d.Put(saved, text)
	recovered(t, d)
	if got := texts(d, "FACT"); got != "working-buffer.md 1" {
		t.Error(got)
	}
	if names := named(d, fmt.Sprintf("%s-%d-", p.ID, len(p.Steps)+2000)); len(names) != 1 || !strings.HasPrefix(names[0], ".mem/trash/") {
		t.Errorf("the plan is not in the trash: %v", d.Names())
	}
}

// TestRestoredByALink: somebody brings the old text back with ln, and works on
// it. Nothing of it is late: it is in use.
func TestRestoredByALink(t *testing.T) {
	d := lived(t, map[string]string{semantic: "- OLD\n"})
	if e := at(t, d, []string{"write", semantic, "--expect", plan.Hash([]byte("- OLD\n"))}); e.err() != nil {
		t.Fatal(e.err())
	}
	kept := named(d, ".mem/trash/")
	if len(kept) != 1 {
		t.Fatal(kept)
	}
	if err := errors.Join(d.Remove(semantic), d.Link(kept[0], semantic)); err != nil {
		t.Fatal(err)
	}
	d.Now = at0.Add(1e9)
	h, _ := d.Hold(semantic)
	d.Write(h, "- MORE\n")
	p := program{disk: d, at: at0, zone: "UTC"}
	if e := p.run("recover"); e.err() != nil {
		t.Fatal(e.err())
	}
	if got := texts(d, "OLD") + "; " + texts(d, "MORE"); got != "x.md 1; x.md 1" {
		t.Error(got)
	}
}

// begun is a workspace with a line in its buffer.
func begun(t *testing.T) *faultfs.Disk {
	d := lived(t, nil)
	text, _ := d.Text(bufPath)
	d.Put(bufPath, text+"- LINE\n")
	return d
}

// TestFailedRotations: a seal that never came to be is taken back whole; sealed
// text that cannot land waits where agents look, and no sentinel stays.
func TestFailedRotations(t *testing.T) {
	begin := func() *faultfs.Disk { return begun(t) }
	t.Run("no exchange", func(t *testing.T) {
		d := begin()
		e := at(t, d, []string{"rotate", "--force"}, moment{"exchange", bufPath, 1, failsWith(syscall.EIO)})
		if e.err() == nil || strings.Contains(e.errout, "mem recover") {
			t.Errorf("%d %s", e.code, e.errout)
		}
		if left := append(named(d, ".mem/tx/"), named(d, bufPath+".")...); len(left) != 0 {
			t.Errorf("left: %v", left)
		}
		if e := at(t, d, []string{"rotate", "--force"}); e.err() != nil {
			t.Error(e.err())
		}
	})
	for name, m := range map[string]moment{"the plan stays": {"remove", ".mem/tx/", 1, failsWith(syscall.EIO)}, "its going is not durable": {"syncdir", ".mem/tx", 2, failsWith(syscall.EIO)}} {
		t.Run("no exchange, "+name, func(t *testing.T) {
			d := begin()
			if e := at(t, d, []string{"rotate", "--force"}, moment{"exchange", bufPath, 1, failsWith(syscall.EIO)}, m); e.err() == nil || !strings.Contains(e.errout, "mem recover") {
				t.Errorf("%d %s", e.code, e.errout)
			}
			recovered(t, d)
			if strings.Count(texts(d, "LINE"), " 1") != 1 {
				t.Error(texts(d, "LINE"))
			}
		})
	}
	landing := moment{"create", "memory/episodic/.mem-", 0, failsWith(syscall.EIO)}
	t.Run("no landing", func(t *testing.T) {
		d := begin()
		e := at(t, d, []string{"rotate", "--force"}, landing)
		if e.err() == nil || !strings.Contains(e.errout, "mem recover") {
			t.Errorf("%d %s", e.code, e.errout)
		}
		if left := named(d, bufPath+"."); !slices.Equal(left, []string{bufPath + ".pending"}) || texts(d, "LINE") != "working-buffer.md.pending 1" {
			t.Errorf("left: %v, %s", left, texts(d, "LINE"))
		}
		recovered(t, d)
		if got := texts(d, "LINE"); got != "2026-11-30.md 1" {
			t.Error(got)
		}
	})
	t.Run("no landing, the name is taken", func(t *testing.T) {
		d := begin()
		at(t, d, []string{"rotate", "--force"}, landing, moment{"move", bufPath + ".pending", 1, func(durable.Op) error {
			d.Put(bufPath+".pending", "- OTHER\n")
			return nil
		}})
		if left := named(d, bufPath+"."); !slices.Equal(left, []string{bufPath + ".pending", bufPath + ".pending-2"}) || texts(d, "LINE") != "working-buffer.md.pending-2 1" {
			t.Errorf("left: %v, %s", left, texts(d, "LINE"))
		}
		recovered(t, d)
		if got := texts(d, "LINE") + "; " + texts(d, "OTHER"); got != "2026-11-30.md 1; 2026-11-30.md 1" {
			t.Error(got)
		}
	})
	t.Run("landed by halves, the name is taken", func(t *testing.T) {
		d := begin()
		at(t, d, []string{"rotate", "--force"},
			moment{"move", notePath, 0, failsWith(syscall.EIO)},
			moment{"move", bufPath + ".pending", 1, func(durable.Op) error {
				d.Put(bufPath+".pending", "- OTHER\n")
				return nil
			}})
		recovered(t, d)
		if got := texts(d, "LINE") + "; " + texts(d, "OTHER"); got != "2026-11-30.md 1; 2026-11-30.md 1" {
			t.Error(got)
		}
	})
}

// TestLateIsFoundAtOnce: what is written to the replaced file while mem is at
// work is carried over by that same command.
func TestLateIsFoundAtOnce(t *testing.T) {
	for _, exchange := range []bool{true, false} {
		d := lived(t, nil)
		d.NoExchange = !exchange
		h, _ := d.Hold(bufPath)
		if e := at(t, d, []string{"note", "FACT"}, moment{"move", ".mem/trash/", 1, func(durable.Op) error { d.Write(h, "- LATE\n"); return nil }}); e.err() != nil {
			t.Fatal(e.err())
		}
		if got := texts(d, "LATE") + "; " + texts(d, "FACT"); got != "working-buffer.md 1; working-buffer.md 1" {
			t.Errorf("exchange %v: %s", exchange, got)
		}
		recovered(t, d)
	}
}

// TestLateIsFoundByALateRecovery: mem was killed, the replaced file was written
// to, and nobody recovered for months.
func TestLateIsFoundByALateRecovery(t *testing.T) {
	d := lived(t, nil)
	h, _ := d.Hold(bufPath)
	at(t, d, []string{"note", "FACT"}, moment{"move", ".mem/trash/", 1, killed})
	d.Write(h, "- LATE\n")
	p := program{disk: d, at: at0.AddDate(0, 2, 3), zone: "UTC"}
	if e := p.run("recover"); e.err() != nil {
		t.Fatal(e.err())
	}
	if got := texts(d, "LATE") + "; " + texts(d, "FACT"); got != "working-buffer.md 1; working-buffer.md 1" {
		t.Error(got)
	}
}

// receiptsBy counts the receipts of a command.
func receiptsBy(d *faultfs.Disk, command string) (n int) {
	for _, name := range named(d, ".mem/receipts/") {
		text, _ := d.Text(name)
		var p plan.Plan
		if json.Unmarshal([]byte(text), &p) == nil && p.Command == command {
			n++
		}
	}
	return n
}

// TestRotationGoesOnElsewhere: a rotation that was killed, or could not land, is
// finished as the transaction it is, also in a copy of the workspace, where
// every file has another number. Nothing is left for the look at leftovers.
func TestRotationGoesOnElsewhere(t *testing.T) {
	for what, m := range map[string]moment{
		"before the exchange":      {"exchange", bufPath, 1, killed},
		"before the buffer's move": {"move", bufPath, 1, killed},
		"after the exchange":       {"create", "memory/episodic/.mem-", 1, killed},
		"before the note's move":   {"move", notePath, 1, killed},
		"before the sealed goes":   {"move", ".mem/trash/", 1, killed},
		"no landing":               {"move", notePath, 0, failsWith(syscall.EIO)},
	} {
		for _, copied := range []bool{false, true} {
			for _, exchange := range []bool{true, false} {
				if !exchange && m.kind == "exchange" || exchange && what == "before the buffer's move" {
					continue
				}
				d := begun(t)
				d.NoExchange = !exchange
				text, _ := d.Text(bufPath)
				at(t, d, []string{"rotate", "--force"}, m)
				if copied {
					d.Renumber()
				}
				recovered(t, d)
				fresh, _ := d.Text(bufPath)
				if got := texts(d, "LINE"); got != "2026-11-30.md 1" || fresh == text || fresh == "" || receiptsBy(d, "rotate") != 1 || receiptsBy(d, "recover") != 0 {
					t.Errorf("%s, copied %v, exchange %v: the line is in %q, %d receipts of rotate, %d of recover", what, copied, exchange, got, receiptsBy(d, "rotate"), receiptsBy(d, "recover"))
				}
			}
		}
	}
}

// TestCutMoveOfTheBuffer: where a move is a link and an unlink, and mem is
// killed between them, the rotation goes on from there.
func TestCutMoveOfTheBuffer(t *testing.T) {
	d := begun(t)
	d.NoExchange = true
	at(t, d, []string{"rotate", "--force"}, moment{"move", bufPath, 1, killed})
	if err := d.Link(bufPath, bufPath+".rotating"); err != nil {
		t.Fatal(err)
	}
	recovered(t, d)
	if text, _ := d.Text(bufPath); texts(d, "LINE") != "2026-11-30.md 1" || !strings.Contains(text, "last_active:") || receiptsBy(d, "rotate") != 1 || receiptsBy(d, "recover") != 0 {
		t.Errorf("the line is in %q, %d receipts of rotate, %d of recover\n%s", texts(d, "LINE"), receiptsBy(d, "rotate"), receiptsBy(d, "recover"), text)
	}
}

// TestUnfitAtTheLastMoment: a buffer that was saved as UTF-16 just before it is
// sealed waits for a person, and the rotation is over.
func TestUnfitAtTheLastMoment(t *testing.T) {
	const utf16 = "\xff\xfea\x00\n\x00"
	d := begun(t)
	e := at(t, d, []string{"rotate", "--force"}, moment{"exchange", bufPath, 1, func(durable.Op) error { d.Save(bufPath, utf16); return nil }})
	if text, _ := d.Text(bufPath + ".pending"); text != utf16 || len(named(d, ".mem/tx/"))+len(named(d, ".lock")) != 0 || receiptBy(t, d, "rotate").Outcome != plan.Conflict {
		t.Errorf("%d %s%s: %q %v", e.code, e.out, e.errout, text, append(named(d, ".mem/tx/"), named(d, ".lock")...))
	}
}

// TestPublishFails: a plan that could not be written down changes nothing and
// leaves nothing; one that may stand there is finished by recovery.
func TestPublishFails(t *testing.T) {
	d := lived(t, nil)
	e := at(t, d, []string{"note", "FACT"}, moment{"rename", ".mem/tx/", 1, failsWith(syscall.EIO)})
	if e.err() == nil || strings.Contains(e.errout, "left open") || len(named(d, ".mem-"))+len(named(d, ".mem/tx/")) != 0 || texts(d, "FACT") != "" {
		t.Errorf("%d %s; left %v %v", e.code, e.errout, named(d, ".mem-"), named(d, ".mem/tx/"))
	}
	d = lived(t, nil)
	e = at(t, d, []string{"note", "FACT"}, moment{"syncdir", ".mem/tx", 1, failsWith(syscall.EIO)})
	if e.err() == nil || !strings.Contains(e.errout, "left open") {
		t.Errorf("%d %s", e.code, e.errout)
	}
	recovered(t, d)
	if got := texts(d, "FACT"); got != "working-buffer.md 1" {
		t.Error(got)
	}
}

// TestSyncOfAllFails: where many files are made durable at once and that fails,
// none of them is put in place.
func TestSyncOfAllFails(t *testing.T) {
	files := map[string]string{}
	for i := range 12 {
		files[fmt.Sprintf("%s/%d.md", boxDir, i)] = cardHandoff(i)
	}
	d := lived(t, files)
	if err := d.Remove(markFile); err != nil {
		t.Fatal(err)
	}
	e := at(t, d, []string{"ingest"}, moment{"syncall", "", 1, failsWith(syscall.EIO)})
	if e.err() == nil || !strings.Contains(e.errout, "input/output error") || len(named(d, "memory/cards/")) != 0 {
		t.Errorf("%d %s%s %v", e.code, e.out, e.errout, named(d, "memory/cards/"))
	}
}

// TestRefusedDirectory: a month that cannot be made keeps its note where it is,
// and no other; one that is taken away is made anew.
func TestRefusedDirectory(t *testing.T) {
	notes := map[string]string{oldDay: "# 2026-01-05\n\n- FACT\n", "memory/episodic/2026-02-06.md": "# 2026-02-06\n\n- SIX\n"}
	d := lived(t, notes)
	at(t, d, []string{"archive"}, moment{"mkdir", "memory/archive/2026/01", 0, failsWith(syscall.EPERM)})
	recovered(t, d)
	if a, b := named(d, "2026-01-05.md"), named(d, "2026-02-06.md"); !slices.Equal(a, []string{oldDay}) || !slices.Equal(b, []string{"memory/archive/2026/02/2026-02-06.md"}) {
		t.Error(a, b)
	}
	d = lived(t, notes)
	at(t, d, []string{"archive"}, moment{"move", "memory/archive/", 1, killed})
	if err := errors.Join(d.Remove("memory/archive/2026/01"), d.Remove("memory/archive/2026/02")); err != nil {
		t.Fatal(err)
	}
	recovered(t, d)
	if a, b := named(d, "2026-01-05.md"), named(d, "2026-02-06.md"); len(a) != 1 || len(b) != 1 || a[0] == oldDay || !strings.HasPrefix(b[0], "memory/archive/") {
		t.Error(a, b)
	}
}

// TestPlanUnderAnotherName: a plan that is not the one of its name is none, and
// is shown to a person.
func TestPlanUnderAnotherName(t *testing.T) {
	d := lived(t, nil)
	at(t, d, []string{"note", "FACT"}, moment{"exchange", bufPath, 1, killed})
	open := named(d, ".mem/tx/")
	if len(open) != 1 {
		t.Fatal(open)
	}
	text, _ := d.Text(open[0])
	if err := d.Remove(open[0]); err != nil {
		t.Fatal(err)
	}
	d.Put(".mem/tx/20261130T093000.000000Z-000000000000.json", text)
	e := program{disk: d, at: at0, zone: "UTC"}.run("recover")
	if e.err() == nil || !strings.Contains(e.out+e.errout, "holds the plan of") || strings.Contains(texts(d, "FACT"), "working-buffer.md 1") {
		t.Errorf("%d %s%s", e.code, e.out, e.errout)
	}
}

// TestUndoOfADirectory: what was archived is gone, and a directory has its name.
func TestUndoOfADirectory(t *testing.T) {
	d := lived(t, map[string]string{oldDay: "# 2026-01-05\n\n- FACT\n"})
	if e := at(t, d, []string{"archive"}); e.err() != nil {
		t.Fatal(e.err())
	}
	kept := named(d, "memory/archive/2026/01/")
	if len(kept) != 1 {
		t.Fatal(kept)
	}
	if err := d.Remove(kept[0]); err != nil {
		t.Fatal(err)
	}
	d.Mkdirs(kept[0])
	if e := at(t, d, []string{"undo", receiptBy(t, d, "archive").ID}); e.err() == nil || !strings.Contains(e.errout, "is no longer at "+kept[0]) {
		t.Errorf("%d %s%s", e.code, e.out, e.errout)
	}
}

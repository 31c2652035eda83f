package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
	"github.com/tieredmem/mem/plan"
)

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

// TestADirectoryAtTheLastMoment: so does a directory that has the buffer's name.
func TestADirectoryAtTheLastMoment(t *testing.T) {
	d := begun(t)
	e := at(t, d, []string{"rotate", "--force"}, moment{"exchange", bufPath, 1, func(durable.Op) error {
		if err := d.Remove(bufPath); err != nil {
			return err
		}
		d.Mkdirs(bufPath)
		return nil
	}})
	if info, err := d.Lstat(bufPath + ".pending"); err != nil || !info.Mode.IsDir() || !strings.Contains(e.errout, "the text waits in") || len(named(d, ".mem/tx/")) != 0 {
		t.Errorf("%d %s%s: %v %v", e.code, e.out, e.errout, info.Mode, err)
	}
}

// TestSomebodysRotating: while sealed text waits, an agent's own rotation leaves
// a file under the other name. Both land.
func TestSomebodysRotating(t *testing.T) {
	d := begun(t)
	at(t, d, []string{"rotate", "--force"}, moment{"move", notePath, 0, failsWith(syscall.EIO)})
	d.Put(bufPath+".rotating", "- OTHER\n")
	recovered(t, d)
	if got := texts(d, "LINE") + "; " + texts(d, "OTHER"); got != "2026-11-30.md 1; 2026-11-30.md 1" {
		t.Error(got)
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

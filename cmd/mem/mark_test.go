package main

import (
	"io/fs"
	"slices"
	"strings"
	"syscall"
	"testing"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
)

// markFile is there while mem changes something.
const markFile = ".mem/running"

// lived is a workspace that has been used, with a killed run's mark.
func lived(t *testing.T, files map[string]string) *faultfs.Disk {
	t.Helper()
	d := faultfs.New()
	for name, text := range files {
		d.Put(name, text)
	}
	p := program{disk: d, at: at0, zone: "UTC"}
	if e := p.run("init", "--layout", "canonical"); e.err() != nil {
		t.Fatal(e.err())
	}
	d.Put(markFile, "")
	return d
}

// failing is a disk whose n-th operation that is so called, on a name with
// this in it, fails.
func failing(d durable.FS, kind, name string, n int, err error) durable.FS {
	seen := 0
	return durable.Watch(d, func(op durable.Op, done bool) error {
		if done || op.Kind != kind || !strings.Contains(op.Name, name) {
			return nil
		}
		if seen++; n == 0 || seen == n {
			return err
		}
		return nil
	})
}

// TestMarkSyncFails: the kernel tells of a failed write once. Whoever hears it
// must say so.
func TestMarkSyncFails(t *testing.T) {
	for _, args := range [][]string{{"recover"}, {"note", "FACT"}, {"trash", "prune", "--older-than", "1d"}} {
		d := lived(t, nil)
		e := program{disk: failing(d, "syncall", "", 1, syscall.EIO), at: at0, zone: "UTC"}.run(args...)
		if e.code != exitFailed || !strings.Contains(e.errout, "input/output error") {
			t.Errorf("%v: %d, %q", args, e.code, e.errout)
		}
		if _, ok := d.Text(markFile); !ok {
			t.Errorf("%v: the mark is gone", args)
		}
	}
}

// TestFullDiskMakesRoom: where nothing can be made, not even the mark, what
// makes room works, and so does recovery.
func TestFullDiskMakesRoom(t *testing.T) {
	d := lived(t, map[string]string{"memory/handoff-inbox/20261130T090000.000000Z-0123456789ab-a.md": "<!-- mem:review reason=card-exists target=memory/cards/card-1.md sha256=0 at=x -->\n" + cardHandoff(1)})
	p := program{disk: d, at: at0, zone: "UTC"}
	if e := p.run("inbox", "reject", "0123456789ab"); e.err() != nil {
		t.Fatal(e.err())
	}
	inTrash := func() bool {
		return slices.ContainsFunc(d.Names(), func(n string) bool { return strings.HasPrefix(n, ".mem/trash/") })
	}
	if !inTrash() {
		t.Fatal("nothing in the trash")
	}
	p.disk = failing(d, "create", markFile, 0, syscall.ENOSPC)
	if e := p.run("trash", "prune", "--older-than", "1d", "--at", "2027-06-01"); e.err() != nil || inTrash() {
		t.Errorf("prune: %v, still there: %v", e.err(), inTrash())
	}
	if e := p.run("recover"); e.err() != nil {
		t.Errorf("recover: %v", e.err())
	}
}

// TestMarkStays: a mark that cannot be taken away decides no result.
func TestMarkStays(t *testing.T) {
	d := lived(t, nil)
	p := program{disk: failing(d, "remove", markFile, 0, syscall.EPERM), at: at0, zone: "UTC"}
	if e := p.run("note", "FACT-ONE"); e.err() != nil {
		t.Error(e.err())
	}
	if text, _ := d.Text(bufPath); strings.Count(text, "FACT-ONE") != 1 {
		t.Errorf("%q", text)
	}
}

// TestLateAfterItsPlanIsGone: a file that was replaced, and whose transaction a
// person has moved away, is written to late. It is found all the same.
func TestLateAfterItsPlanIsGone(t *testing.T) {
	d := lived(t, nil)
	hold, _ := d.Hold(bufPath)
	func() {
		defer func() { recover() }() //nolint:errcheck // killed below
		program{disk: durable.Watch(d, func(op durable.Op, done bool) error {
			if done && op.Kind == "exchange" {
				panic(powerCut{})
			}
			return nil
		}), at: at0, zone: "UTC"}.run("note", "FACT-NOTE")
	}()
	plans := 0
	for _, name := range d.Names() {
		if strings.HasPrefix(name, ".mem/tx/") {
			if err := d.Remove(name); err != nil {
				t.Fatal(err)
			}
			plans++
		}
	}
	p := program{disk: d, at: at0, zone: "UTC"}
	if e := p.run("recover"); e.err() != nil || plans != 1 {
		t.Fatal(plans, e.err())
	}
	d.Now = at0.Add(1e9)
	if !d.Write(hold, "- FACT-LATE\n") {
		t.Fatal("its file is gone")
	}
	if e := p.run("recover"); e.err() != nil || strings.Contains(e.out, "clean") {
		t.Fatal(e.out, e.err())
	}
	if e := p.run("trash", "prune", "--older-than", "1d", "--at", "2027-06-01"); e.err() != nil {
		t.Fatal(e.err())
	}
	var where []string
	for _, name := range d.Names() {
		text, _ := d.Text(name)
		if strings.Contains(text, "FACT-LATE") && !strings.HasPrefix(name, ".mem/") {
			where = append(where, name)
		}
		for _, bad := range checkName(name, text) {
			t.Error(name, bad)
		}
	}
	if len(where) != 1 {
		t.Errorf("it stands in %v", where)
	}
}

// TestClosedFolders: what of an inbox's folders is somebody else's stands in
// nobody's way.
func TestClosedFolders(t *testing.T) {
	d := lived(t, map[string]string{boxDir + "/a.md": cardHandoff(1), boxDir + "/malformed/x.md": "x\n"})
	p := program{disk: failing(d, "syncdir", "malformed", 0, fs.ErrPermission), at: at0, zone: "UTC", stdin: "### Begin\n\n- END\n"}
	if e := p.run("ingest"); e.err() != nil || e.code != exitOK {
		t.Errorf("ingest: %d %s%s", e.code, e.out, e.errout)
	}
	if _, ok := d.Text(boxDir + "/a.md"); ok {
		t.Error("the handoff was not moved")
	}
	if e := p.run("handoff", "new", "--type", "workflow", "--title", "ONE", "--document", "TOOLS.md"); e.code != exitOK {
		t.Errorf("handoff new: %d %s%s", e.code, e.out, e.errout)
	}
}

// TestUndoOfWhatCannotBeRead: a note without a right to be read can be moved
// back; what is gone is said to be gone.
func TestUndoOfWhatCannotBeRead(t *testing.T) {
	d := lived(t, map[string]string{oldDay: "# 2026-01-05\n\n- FACT-OLD\n"})
	p := program{disk: d, at: at0, zone: "UTC"}
	if e := p.run("archive"); e.err() != nil {
		t.Fatal(e.err())
	}
	if _, ok := d.Text(oldDay); ok {
		t.Fatal("not archived")
	}
	var id string
	for _, name := range d.Names() {
		if text, _ := d.Text(name); strings.HasPrefix(name, ".mem/receipts/") && strings.Contains(text, `"command":"archive"`) {
			id = strings.TrimSuffix(name[strings.LastIndexByte(name, '/')+1:], ".json")
		}
	}
	p.disk = failing(d, "open", "archive", 0, fs.ErrPermission)
	if e := p.run("undo", id); e.err() != nil {
		t.Error(e.err())
	}
	if text, _ := d.Text(oldDay); !strings.Contains(text, "FACT-OLD") {
		t.Error("it is not back")
	}
}

// TestNothingToChangeOnAReadOnlyDisk: settings that are as they should be need
// no disk that can be written to.
func TestNothingToChangeOnAReadOnlyDisk(t *testing.T) {
	d := lived(t, nil)
	p := program{disk: d, at: at0, zone: "UTC"}
	if e := p.run("hook", "install", "claude"); e.err() != nil {
		t.Fatal(e.err())
	}
	p.disk = failing(d, "remove", ".mem.tmp", 0, syscall.EROFS)
	if e := p.run("hook", "install", "claude"); e.code != exitOK || !strings.Contains(e.out, "nothing to change") {
		t.Errorf("%d: %s%s", e.code, e.out, e.errout)
	}
}

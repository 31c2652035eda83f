package main

import (
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

package main

import (
	"strings"
	"testing"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
)

func saveText(d *faultfs.Disk, name, text string) func(durable.Op) error {
	return func(durable.Op) error { d.Save(name, text); return nil }
}

// cut leaves a note in the middle: OLDER was saved before note's exchange, mem was killed before the swap back was written down.
func cut(t *testing.T) (*faultfs.Disk, string) {
	d := lived(t, nil)
	text, _ := d.Text(bufPath)
	at(t, d, []string{"note", "FACT"}, moment{"exchange", bufPath, 1, saveText(d, bufPath, withLine(text, "- OLDER\n"))}, moment{"create", ".mem/tx/", 2, killed})
	return d, text
}

// TestUndoSavedOver: an undo that was saved over by a text made from its own is done.
func TestUndoSavedOver(t *testing.T) {
	d := lived(t, nil)
	at(t, d, []string{"note", "FACT"})
	text, _ := d.Text(bufPath)
	d.Save(bufPath, withLine(text, "- OTHER\n"))
	e := at(t, d, []string{"undo", receiptBy(t, d, "note").ID}, moment{"exchange", bufPath, 1, save(d, bufPath, "OLDER")}, moment{"exchange", bufPath, 2, save(d, bufPath, "NEWER")})
	recovered(t, d)
	b, _ := d.Text(bufPath)
	if e.err() != nil || strings.Contains(b, "FACT") || len(named(d, "handoff-inbox/")) != 1 || strings.Count(texts(d, "OLDER"), " 1") != 1 {
		t.Errorf("%d %s\nOLDER in %s\n%s", e.code, e.errout, texts(d, "OLDER"), b)
	}
}

// TestSavedOverWithUnfitText: what cannot be added to what was saved waits as a
// draft, and is no success.
func TestSavedOverWithUnfitText(t *testing.T) {
	d := lived(t, nil)
	e := at(t, d, []string{"note", "FACT"}, moment{"exchange", bufPath, 1, save(d, bufPath, "OLDER")}, moment{"exchange", bufPath, 2, saveText(d, bufPath, "\xff\xfea\x00\n\x00")})
	if draft := named(d, "memory/handoff-inbox/"); e.code != exitConflict || len(draft) != 2 || !strings.Contains(e.errout, draft[0]) && !strings.Contains(e.errout, draft[1]) {
		t.Errorf("%d %s; drafts %v", e.code, e.errout, draft)
	}
	if f, o := texts(d, "FACT"), texts(d, "OLDER"); strings.Count(f, " 1") != 1 || strings.Count(o, " 1") != 1 {
		t.Errorf("FACT in %q, OLDER in %q", f, o)
	}
}

// TestDirectoryAfterAKill: one that has the target's name locks nobody out.
func TestDirectoryAfterAKill(t *testing.T) {
	d, _ := cut(t)
	if err := d.Remove(bufPath); err != nil {
		t.Fatal(err)
	}
	d.Mkdirs(bufPath)
	program{disk: d, at: at0, zone: "UTC"}.run("recover")
	if e := (program{disk: d, at: at0, zone: "UTC"}).run("write", semantic); e.err() != nil || len(named(d, ".mem/tx/")) != 0 || texts(d, "FACT") == "" {
		t.Errorf("%d %s; FACT in %q", e.code, e.errout, texts(d, "FACT"))
	}
}

// TestSavedOverWithALineOfOurs: a line that many texts have proves nothing.
func TestSavedOverWithALineOfOurs(t *testing.T) {
	d := lived(t, map[string]string{notePath: "# 2026-11-30\n\n- an event\n"})
	b, _ := d.Text(bufPath)
	d.Put(bufPath, b+"- LINE\n\n```\ncode\n```\n")
	before, _ := d.Text(notePath)
	e := at(t, d, []string{"rotate", "--force"}, moment{"exchange", notePath, 1, saveText(d, notePath, withLine(before, "- OLDER\n"))}, moment{"exchange", notePath, 2, saveText(d, notePath, before+"\n- NEWER\n\n```\nother\n```\n")})
	recovered(t, d)
	if got := texts(d, "LINE"); e.err() != nil || got != "2026-11-30.md 1" {
		t.Errorf("%d: LINE in %q", e.code, got)
	}
}

// TestMovedAsideAfterAKill: what stands under another name is not lost.
func TestMovedAsideAfterAKill(t *testing.T) {
	d, text := cut(t)
	if err := d.Rename(bufPath, "memory/aside.md"); err != nil {
		t.Fatal(err)
	}
	d.Save(bufPath, text)
	recovered(t, d)
	if got := texts(d, "FACT"); got != "aside.md 1" {
		t.Errorf("FACT in %q", got)
	}
}

// TestWrittenBetweenTwoLooks: a writer appends between two looks at a staged name.
func TestWrittenBetweenTwoLooks(t *testing.T) {
	for _, whose := range []string{"ours", "older"} {
		for n := 1; n <= 6; n++ {
			d := lived(t, nil)
			text, _ := d.Text(bufPath)
			var h faultfs.Handle
			ex, opens := 0, 0
			e := at(t, d, []string{"note", "FACT"},
				moment{"exchange", bufPath, 0, func(durable.Op) error {
					switch ex++; {
					case ex == 1:
						d.Save(bufPath, withLine(text, "- OLDER\n"))
						h, _ = d.Hold(bufPath)
					case ex == 2 && whose == "ours":
						h, _ = d.Hold(bufPath)
					case ex == 2:
						d.Save(bufPath, withLine(text, "- NEWER\n"))
					}
					return nil
				}},
				moment{"open", ".mem-", 0, func(durable.Op) error {
					if ex >= 2 {
						if opens++; opens == n {
							d.Write(h, "- WROTE\n")
						}
					}
					return nil
				}})
			recovered(t, d)
			if got := texts(d, "WROTE"); e.err() != nil || strings.Count(got, " 1") != 1 {
				t.Errorf("%s, open %d: %d, WROTE in %q", whose, n, e.code, got)
			}
		}
	}
}

// TestLinkedBackAfterAKill: the staged name is the target's second one, and goes
// only when the new plan stands.
func TestLinkedBackAfterAKill(t *testing.T) {
	d, _ := cut(t)
	stage := named(d, "memory/.mem-")[0]
	if err := d.Remove(bufPath); err != nil {
		t.Fatal(err)
	}
	if err := d.Link(stage, bufPath); err != nil {
		t.Fatal(err)
	}
	removed := false
	at(t, d, []string{"recover"}, moment{"", "", 0, func(op durable.Op) error {
		if removed {
			panic(powerCut{})
		}
		removed = op.Kind == "remove" && op.Name == stage
		return nil
	}})
	recovered(t, d)
	if got := texts(d, "FACT"); got != "working-buffer.md 1" {
		t.Errorf("FACT in %q", got)
	}
}

// TestUnfitTextIsKeptThroughKills: as before, with mem killed anywhere after.
func TestUnfitTextIsKeptThroughKills(t *testing.T) {
	for n := 1; n < 40; n++ {
		d := lived(t, nil)
		saved := false
		i := 0
		e := at(t, d, []string{"note", "FACT"}, moment{"", "", 0, func(durable.Op) error {
			if saved {
				if i++; i == n {
					panic(powerCut{})
				}
			}
			return nil
		}}, moment{"exchange", bufPath, 1, save(d, bufPath, "OLDER")}, moment{"exchange", bufPath, 2, func(op durable.Op) error {
			saved = true
			return saveText(d, bufPath, "\xff\xfea\x00\n\x00")(op)
		}})
		p := program{disk: d, at: at0, zone: "UTC"}
		p.run("recover")
		if again := p.run("recover"); again.code == exitOK || len(named(d, ".mem/tx/"))+len(named(d, ".mem-")) != 0 {
			t.Errorf("killed at %d: %d %s%s", n, again.code, again.out, again.errout)
		}
		if f, o := texts(d, "FACT"), texts(d, "OLDER"); strings.Count(f, " 1") != 1 || strings.Count(o, " 1") != 1 || strings.Contains(f+o, " 2") {
			t.Errorf("killed at %d: FACT in %q, OLDER in %q", n, f, o)
		}
		if e.code != -1 {
			return
		}
	}
	t.Error("never whole")
}

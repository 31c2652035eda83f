package plan

import (
	"bytes"
	"testing"
	"time"
)

func TestRoundTrip(t *testing.T) {
	p := Plan{Format: Format, ID: "20261130T090000.000000Z-0123456789ab", Command: "x", At: time.Date(2026, 11, 30, 9, 0, 0, 5, time.UTC), Outcome: Applied,
		Steps: []Step{{Kind: Append, Path: "a<b>.md", Text: Bytes("<!-- x -->\n\x92\xff"), Before: State{Hash: Absent}}, {Kind: Edit, Text: Bytes("plain é\n")}}}
	b, err := p.Encode()
	if err != nil {
		t.Fatal(err)
	}
	q, err := Decode(b)
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(q.Steps[0].Text, p.Steps[0].Text) || !bytes.Equal(q.Steps[1].Text, p.Steps[1].Text) || q.Steps[0].Path != p.Steps[0].Path || !q.At.Equal(p.At) {
		t.Errorf("%+v", q)
	}
	if !bytes.Contains(b, []byte(`"text":"plain é\n"`)) || !bytes.Contains(b, []byte(`a<b>.md`)) {
		t.Errorf("not readable: %s", b)
	}
	if _, err := Decode([]byte(`{"format":99}`)); err == nil {
		t.Error("a newer format is taken")
	}
}

func TestTrashNames(t *testing.T) {
	at := time.Date(2026, 11, 30, 23, 30, 0, 123456000, time.FixedZone("", -7*3600))
	id := NewID(Plan{At: at}, "")
	s := StateOf([]byte("text"))
	name := TrashName(".mem", id, at, 3, s)
	got, ok := ParseTrash(name)
	if !ok || got.Hash != s.Hash || got.TxID != id || got.N != 3 || got.Size != 4 || got.Path != name {
		t.Errorf("%s: %+v %v", name, got, ok)
	}
	if want := ".mem/trash/2026/12/"; name[:len(want)] != want {
		t.Errorf("%s: months are UTC", name)
	}
	if when, ok := IDTime(id); !ok || !when.Equal(at.Truncate(time.Microsecond)) {
		t.Errorf("%v", when)
	}
	for _, bad := range []string{"", "x", "a-b-c-d-e", "README.md"} {
		if _, ok := ParseTrash(bad); ok {
			t.Errorf("%q is taken", bad)
		}
	}
}

func FuzzDecode(f *testing.F) {
	f.Add([]byte(`{"format":1,"id":"x","steps":[{"kind":"append","text":{"base64":"AA=="}}]}`))
	f.Fuzz(func(t *testing.T, b []byte) {
		p, err := Decode(b)
		if err != nil {
			return
		}
		c, err := p.Encode()
		if err != nil {
			return // a year beyond 9999
		}
		q, err := Decode(c)
		if err != nil {
			t.Fatalf("%s: %v", c, err)
		}
		if len(q.Steps) != len(p.Steps) {
			t.Fatal("steps lost")
		}
		ParseTrash(string(b))
	})
}

func TestCheckRefuses(t *testing.T) {
	good := Plan{ID: "20261130T090000.000000Z-0123456789ab", Steps: []Step{{Kind: Append, Path: "a.md", Before: State{Hash: Absent}, After: StateOf([]byte("x")), Stage: Stage{Name: ".mem-20261130T090000.000000Z-0123456789ab-0.tmp"}}}}
	if err := good.Check(); err != nil {
		t.Fatal(err)
	}
	for name, spoil := range map[string]func(*Step){
		"kind": func(s *Step) { s.Kind = "delete" }, "hash": func(s *Step) { s.Before.Hash = "abc" }, "no after": func(s *Step) { s.After.Hash = Absent },
		"size": func(s *Step) { s.Before.Size = -1 }, "path": func(s *Step) { s.Path = "../x" }, "absolute": func(s *Step) { s.To = "/etc/passwd" },
		"git": func(s *Step) { s.Path = "a/.GIT/hooks/x" }, "git's target": func(s *Step) { s.Kind, s.To = Move, ".git/hooks/x" }, "engine": func(s *Step) { s.Path = ".mem/version" },
		"foreign stage": func(s *Step) { s.Stage.Name = "MEMORY.md" }, "no target": func(s *Step) { s.Kind = Trash }, "seal": func(s *Step) { s.Kind, s.To = Seal, "b.md" },
	} {
		bad := good
		bad.Steps = []Step{good.Steps[0]}
		spoil(&bad.Steps[0])
		if bad.Check() == nil {
			t.Errorf("%s is taken", name)
		}
	}
	if (Plan{ID: good.ID}).Check() == nil {
		t.Error("a plan without steps is taken")
	}
}

package handoff

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/tieredmem/mem/entry"
)

// A block has the line ends of the document that it goes to: as it is, or as
// this run makes it; else its own.
func TestLineEnds(t *testing.T) {
	block := func(n int, eol string) []byte {
		return New{Type: "setup", Title: "t", Action: "no-card", Document: "TOOLS.md", Content: fmt.Sprintf("### a%d%sx", n, eol)}.Text()
	}
	for what, c := range map[string]struct {
		m      fstest.MapFS
		blocks []string // the line ends of each
		want   string
	}{
		"as the document":    {fstest.MapFS{"TOOLS.md": {Data: []byte("# Tools\r\n"), Mode: 0o644}}, []string{"\n"}, "### a0\r\nx\r\n"},
		"its own":            {fstest.MapFS{}, []string{"\r\n"}, "### a0\r\nx\r\n"},
		"as the one before":  {fstest.MapFS{}, []string{"\r\n", "\n"}, "### a1\r\nx\r\n"},
		"in an empty one":    {fstest.MapFS{"TOOLS.md": {Mode: 0o644}}, []string{"\r\n", "\n"}, "### a1\r\nx\r\n"},
		"of the other kind":  {fstest.MapFS{"TOOLS.md": {Data: []byte("# Tools\n"), Mode: 0o644}}, []string{"\r\n"}, "### a0\nx\n"},
		"document and block": {fstest.MapFS{"TOOLS.md": {Data: []byte("# Tools\n"), Mode: 0o644}}, []string{"\r\n", "\r\n"}, "### a1\nx\n"},
	} {
		b := NewBatch(c.m, testRules(t), "s", "2026-11-30")
		var v Verdict
		for i, eol := range c.blocks {
			v = b.Judge(Source{Name: "x.md", Text: block(i, eol)})
		}
		if v.Code != "appended" || string(v.Added) != c.want {
			t.Errorf("%s: %s %q", what, v.Code, v.Added)
		}
	}
}

// A lesson that was archived does not come back; that is asked of SCRATCH only.
func TestArchivedLessons(t *testing.T) {
	for name, want := range map[string]string{".learnings/LEARNINGS.md": "archived-lesson", "TOOLS.md": "appended"} {
		b := NewBatch(fstest.MapFS{}, testRules(t), "s", "2026-11-30")
		text := New{Type: "setup", Title: "t", Action: "no-card", Document: name, Content: "### a\n\nx"}.Text()
		b.Archived = func([]byte) bool { return true }
		if v := b.Judge(Source{Name: "x.md", Text: text}); v.Code != want {
			t.Errorf("%s: %s", name, v.Code)
		}
	}
}

// failing is a file system of which one call fails for one name.
type failing struct {
	fstest.MapFS
	call, name string
}

func (f failing) ReadFile(name string) ([]byte, error) {
	if f.call == "read" && f.name == name {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errors.New("input/output error")}
	}
	return f.MapFS.ReadFile(name)
}

func (f failing) Lstat(name string) (fs.FileInfo, error) {
	if f.call == "lstat" && f.name == name {
		return nil, &fs.PathError{Op: "lstat", Path: name, Err: errors.New("input/output error")}
	}
	return f.MapFS.Lstat(name)
}

// On a disk that fails nothing is decided: the handoff waits for the next run.
func TestFailingDisk(t *testing.T) {
	m := fstest.MapFS{"memory/cards/a.md": {Data: []byte("---\ntopic: a\n---\nold\n"), Mode: 0o644}, "TOOLS.md": {Data: []byte("# Tools\n"), Mode: 0o644}}
	note := New{Type: "setup", Title: "t", Action: "create-card", Card: "a.md", Content: "---\ntopic: a\n---\nx"}.Text()
	doc := New{Type: "setup", Title: "t", Action: "no-card", Document: "TOOLS.md", Content: "### a\n\nx"}.Text()
	for _, c := range []struct {
		call, name string
		text       []byte
		want       string
	}{
		{"lstat", "memory/cards/a.md", note, "unreadable"}, {"lstat", "memory/cards", note, "unreadable"}, {"lstat", "memory", note, "unreadable"}, {"read", "memory/cards/a.md", note, "unreadable"},
		{"lstat", "TOOLS.md", doc, "unreadable"}, {"read", "TOOLS.md", doc, "unreadable"}, {"read", "TOOLS.md", note, "card-exists"}, {"", "", doc, "appended"},
	} {
		b := NewBatch(failing{m, c.call, c.name}, testRules(t), "s", "2026-11-30")
		v := b.Judge(Source{Name: "x.md", Text: c.text})
		if v.Code != c.want {
			t.Errorf("%s of %s fails: %s %s", c.call, c.name, v.Code, v.Reason)
		}
		p, err := b.Plan()
		if err != nil || c.want == "unreadable" && len(p.Steps) != 0 {
			t.Errorf("%s of %s fails: %+v, %v", c.call, c.name, p.Steps, err)
		}
	}
	link := fstest.MapFS{"memory/cards": {Data: []byte("elsewhere"), Mode: fs.ModeSymlink | 0o777}}
	if v := NewBatch(link, testRules(t), "s", "2026-11-30").Judge(Source{Name: "x.md", Text: note}); v.Code != "target-unfit" {
		t.Errorf("through a symlink: %s %s", v.Code, v.Reason)
	}
}

// Files of the greatest size are read, and take part.
func TestGreatestSizes(t *testing.T) {
	head := "---\ntopic: a\n---\n"
	body := strings.Repeat(" ", entry.MaxNote-len(head)-2) + "x\n"
	m := fstest.MapFS{"memory/cards/a.md": {Data: []byte(head + body), Mode: 0o644}}
	up := New{Type: "setup", Title: "t", Action: "update-card", Card: "a.md", Expected: stateHash(m["memory/cards/a.md"].Data), Content: head + "y"}.Text()
	if v := NewBatch(m, testRules(t), "s", "2026-11-30").Judge(Source{Name: "x.md", Text: up}); v.Code != "updated" {
		t.Errorf("as large as may be: %s %s", v.Code, v.Reason)
	}
	m["memory/cards/a.md"].Data = append(m["memory/cards/a.md"].Data, '\n')
	if v := NewBatch(m, testRules(t), "s", "2026-11-30").Judge(Source{Name: "x.md", Text: up}); v.Code != "target-unfit" {
		t.Errorf("a byte larger: %s %s", v.Code, v.Reason)
	}
	for over, want := range []string{"near-duplicate", "created"} {
		text := head + "x" + strings.Repeat(" ", MaxSize-len(head)-2+over) + "\n"
		m := fstest.MapFS{"memory/cards/b.md": {Data: []byte(text), Mode: 0o644}}
		if v := NewBatch(m, testRules(t), "s", "2026-11-30").Judge(Source{Name: "x.md", Text: card("a.md", "a", "x")}); v.Code != want {
			t.Errorf("a card of %d bytes: %s", len(text), v.Code)
		}
	}
}

// What each verdict becomes in the plan, and that the hashes land with it.
func TestPlan(t *testing.T) {
	old := []byte("---\ntopic: o\n---\nold\n")
	m := fstest.MapFS{"memory/cards/o.md": {Data: old, Mode: 0o644}}
	b := NewBatch(m, testRules(t), "s", "2026-11-30")
	if p, err := b.Plan(); err != nil || len(p.Steps) != 0 {
		t.Errorf("of nothing: %+v, %v", p.Steps, err)
	}
	b.Judge(Source{Name: "x.md", Text: New{Type: "setup", Title: "t", Action: "update-card", Card: "o.md", Expected: stateHash(old), Content: "---\ntopic: o\n---\nnew"}.Text()})
	b.Judge(Source{Name: "y.md", Text: card("n.md", "n", "new too")})
	b.Judge(Source{Name: "z.md", Text: New{Type: "setup", Title: "t", Action: "no-card", Document: "TOOLS.md", Content: "### a\n\nx"}.Text()})
	b.Judge(Source{Name: "w.md", Text: []byte("## Title\nx\n")})
	p, err := b.Plan()
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, s := range p.Steps {
		got = append(got, string(s.Kind)+" "+s.Path)
	}
	want := []string{"replace memory/cards/o.md", "create memory/cards/n.md", "append TOOLS.md", "create memory/handoff-inbox/s-" + ID([]byte("## Title\nx\n")) + "-w.md", "append " + LedgerDir + "/2026-11.txt"}
	if d := cmp.Diff(want, got); d != "" {
		t.Error(d)
	}
	if n := strings.Count(string(p.Steps[4].Text), "\n"); n != 4 {
		t.Errorf("%d hashes land", n)
	}
}

// A ledger that is full is followed by another; one that cannot be read stops
// the run, since it is the proof of what was ingested.
func TestLedgerFiles(t *testing.T) {
	name := func(n string) string { return LedgerDir + "/2026-11" + n + ".txt" }
	full, room := strings.Repeat("x", maxLedger), strings.Repeat("x", maxLedger-1)
	for what, c := range map[string]struct {
		m    fstest.MapFS
		want string
	}{
		"none":              {fstest.MapFS{}, name("")},
		"room in it":        {fstest.MapFS{name(""): {Data: []byte(room)}}, name("")},
		"full":              {fstest.MapFS{name(""): {Data: []byte(full)}}, name("-2")},
		"full, and another": {fstest.MapFS{name(""): {Data: []byte(full)}, name("-2"): {Data: []byte(room)}}, name("-2")},
		"two are full":      {fstest.MapFS{name(""): {Data: []byte(full)}, name("-2"): {Data: []byte(full)}}, name("-3")},
	} {
		b := NewBatch(c.m, testRules(t), "s", "2026-11-30")
		if s, err := b.ledgerStep(); err != nil || s.Path != c.want {
			t.Errorf("%s: %s, %v", what, s.Path, err)
		}
	}
	m := failing{fstest.MapFS{name(""): {Data: []byte("x")}}, "read", name("")}
	if _, err := NewBatch(m, testRules(t), "s", "2026-11-30").ledgerStep(); err == nil {
		t.Error("a ledger that cannot be read is taken for none")
	}
	sum := strings.Repeat("a", 64)
	known, err := Ledger(fstest.MapFS{name(""): {Data: []byte("# x\n- " + sum + "\n- short\n")}, LedgerDir + "/.staged.txt": {Data: []byte("- " + strings.Repeat("b", 64) + "\n")}, LedgerDir + "/x.md": {Data: []byte("- " + strings.Repeat("c", 64) + "\n")}})
	if err != nil || len(known) != 1 || !known[sum] {
		t.Errorf("%v, %v", known, err)
	}
}

// What a person accepts goes where the draft wanted to, whatever it is.
func TestAccept(t *testing.T) {
	r := testRules(t)
	sum := strings.Repeat("a", 12)
	name := r.Review + "/20261130T090000.000000Z-" + sum + "-x.md"
	doc := string(New{Type: "setup", Title: "t", Action: "no-card", Document: "TOOLS.md", Content: "### a\n\nx"}.Text())
	note := string(New{Type: "setup", Title: "t", Action: "create-card", Card: "a.md", Content: "---\ntopic: a\n---\nx"}.Text())
	conflict := "<!-- mem:review reason=changed target=%s expected=E sha256=S tx=T at=A -->\n"
	handoff := "<!-- mem:review reason=r target=%s sha256=S at=A -->\n"
	for what, c := range map[string]struct {
		draft  string
		target string // what stands there; "" nothing
		merged string
		want   string // steps, or the error
	}{
		"a block":                         {fmt.Sprintf(handoff, "TOOLS.md") + doc, "", "", "append TOOLS.md, trash"},
		"a block that is there":           {fmt.Sprintf(handoff, "TOOLS.md") + doc, "### a\n\nx\n", "", "trash"},
		"a block, merged":                 {fmt.Sprintf(handoff, "TOOLS.md") + doc, "# Tools\n", "# merged\n", "replace TOOLS.md, trash"},
		"a card":                          {fmt.Sprintf(handoff, "none") + note, "", "", "create memory/cards/a.md, trash"},
		"no target":                       {fmt.Sprintf(handoff, "none") + "## Title\nx\n", "", "", "it names no target to write"},
		"no target, merged":               {fmt.Sprintf(handoff, "none") + "## Title\nx\n", "", "text", "it names no target to write"},
		"a conflict's text":               {fmt.Sprintf(conflict, "TOOLS.md") + "text\n", "old\n", "", "replace TOOLS.md, trash"},
		"a conflict over the same text":   {fmt.Sprintf(conflict, "TOOLS.md") + "text\n", "text\n", "", "trash"},
		"a conflict over nothing":         {fmt.Sprintf(conflict, "TOOLS.md") + "text\n", "", "", "create TOOLS.md, trash"},
		"a conflict of no text":           {fmt.Sprintf(conflict, "TOOLS.md"), "", "", "create TOOLS.md, trash"},
		"a conflict of no target":         {fmt.Sprintf(conflict, "none") + "text\n", "", "", "it names no target to write"},
		"a conflict of an unknown target": {fmt.Sprintf(conflict, "unknown.md") + "text\n", "", "", "it names no target to write"},
		"a conflict in SCRATCH":           {fmt.Sprintf(conflict, ".learnings/a.md") + "text\n", "", "", "create .learnings/a.md, trash"},
		"a conflict in a tool's own":      {fmt.Sprintf(conflict, ".claude/a.md") + "text\n", "", "", `".claude/a.md" is no file of the memory`},
		"lost":                            {fmt.Sprintf(handoff, "TOOLS.md") + stub + sum + "\n", "", "", "its text is no longer in quarantine"},
		"lost, merged":                    {fmt.Sprintf(handoff, "TOOLS.md") + stub + sum + "\n", "", "text\n", "create TOOLS.md, trash"},
	} {
		m := fstest.MapFS{name: {Data: []byte(c.draft), Mode: 0o644}}
		if c.target != "" {
			m["TOOLS.md"] = &fstest.MapFile{Data: []byte(c.target), Mode: 0o644}
		}
		list, _, err := Drafts(m, r)
		if err != nil || len(list) != 1 {
			t.Fatal(list, err)
		}
		var merged []byte
		if c.merged != "" {
			merged = []byte(c.merged)
		}
		p, err := Accept(m, r, list[0], merged)
		var got []string
		for _, s := range p.Steps {
			got = append(got, strings.TrimSuffix(string(s.Kind)+" "+s.Path, " "+name))
		}
		if err != nil {
			got = []string{err.Error()}
		}
		if strings.Join(got, ", ") != c.want {
			t.Errorf("%s: %q, want %q", what, got, c.want)
		}
	}
}

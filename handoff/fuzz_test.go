package handoff

import (
	"io/fs"
	"path"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

func testRules(t testing.TB) tiers.Rules {
	t.Helper()
	c, err := tiers.ParseConfig("mem.yaml", []byte("layout: canonical\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tiers.Load(tiers.Sources{Memory: fstest.MapFS{}, Mem: &c, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

var seeds = []string{
	"# Memory Handoff\n\n## Title\nx\n\n## Recommended memory action\ncreate-card\n\n## Target card\na.md\n\n## Suggested card content\n---\ntopic: a\n---\n\ntext\n",
	"## Title\nx\n## Recommended memory action\nupdate-card\n## Target card\nold.md\n## Expected card SHA256\n" + strings.Repeat("a", 64) + "\n## Suggested card content\n---\na: [1, 2]\n---\ny\n",
	"## Recommended memory action\nno-card\n## Target document\nTOOLS.md\n## Suggested document content\n### Note\n\n- x\n",
	"## Title:\r\nx\r\n## Suggested card content\r\n```md\r\n---\r\na: b\r\n---\r\n## Summary\r\n```\r\n",
	"## Target card\n<!-- a -->\n`b.md`\n", "\xef\xbb\xbf##  TITLE ##\nx", "~~~\n## Title\n~~~\n## Title\n", "---\na: &x [" + strings.Repeat("[", 50) + "\n---\n",
}

// FuzzParse: sections are parts of the file in its order, and no input panics.
func FuzzParse(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, b []byte) {
		h := Parse(b)
		seen := map[string]bool{}
		line := 0
		for _, s := range h.Sections {
			if seen[s.Name] {
				t.Fatalf("section %q twice", s.Name)
			}
			seen[s.Name] = true
			if s.Line <= line {
				t.Fatalf("line %d after %d", s.Line, line)
			}
			line = s.Line
			if !strings.Contains(string(b), s.Text) {
				t.Fatalf("%q is not in the file", s.Text)
			}
		}
		Quality(h)
	})
}

// FuzzJudge: every text has a verdict with a known code; what lands stays in
// the places that handoffs may write, and no secret is planned anywhere.
func FuzzJudge(f *testing.F) {
	for _, s := range seeds {
		f.Add([]byte(s), []byte("## Title\nsecond\n"))
		f.Add([]byte(s), []byte(s))
	}
	rules := testRules(f)
	m := fstest.MapFS{
		"memory/cards/old.md": {Data: []byte("---\ntopic: old\n---\nold\n"), Mode: 0o644}, "TOOLS.md": {Data: []byte("# Tools\n"), Mode: 0o644},
		"memory/cards/dir.md/x": {Data: []byte("x"), Mode: 0o644}, "USER.md": {Mode: fs.ModeSymlink | 0o777, Data: []byte("TOOLS.md")},
	}
	f.Fuzz(func(t *testing.T, one, two []byte) {
		b := NewBatch(m, rules, "20261130T093000.000000Z", "2026-11-30")
		landed := 0
		for _, text := range [][]byte{one, two} {
			v := b.Judge(Source{Name: "x.md", Text: text, Promote: "all"})
			r, ok := Find(v.Code)
			if !ok || r.Verdict != v.Verdict {
				t.Fatalf("verdict %q has the code %q", v.Verdict, v.Code)
			}
			if v.Verdict == Applied {
				landed++
				if path.Dir(v.Target) != "memory/cards" && !b.allowed(v.Target) || strings.Contains(v.Target, "..") {
					t.Fatalf("lands in %q", v.Target)
				}
			}
			if v.Verdict != Malformed && len(guardSecrets(text)) > 0 {
				t.Fatalf("a secret is %s", v.Verdict)
			}
		}
		p, err := b.Plan()
		if err != nil {
			t.Fatal(err)
		}
		if landed == 0 && len(p.Steps) > 0 && !strings.HasPrefix(p.Steps[0].Path, rules.Review) && !strings.HasPrefix(p.Steps[0].Path, Quarantine) {
			t.Fatalf("nothing lands, and %s is written", p.Steps[0].Path)
		}
		for _, s := range p.Steps {
			if s.Kind == plan.Append {
				if _, _, err := entry.Place(entry.Change{Place: s.Place, Text: s.Text}, nil); err != nil {
					t.Fatal(err)
				}
			}
		}
	})
}

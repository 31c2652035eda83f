package tree

import (
	"bytes"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/walk"
)

var today = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func odd(t *testing.T) (dir string, rules tiers.Rules) {
	t.Helper()
	dir = t.TempDir()
	if _, err := Make(dir, Options{Files: 600, Today: today, Seed: 7, Odd: true}); err != nil {
		t.Fatal(err)
	}
	c, err := tiers.ParseConfig("mem.yaml", []byte("layout: canonical\n"))
	if err != nil {
		t.Fatal(err)
	}
	rules, err = tiers.Load(tiers.Sources{Memory: fstest.MapFS{}, Mem: &c, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	return dir, rules
}

// TestParsingKeepsEveryByte: the parts of every file, put together, are it.
func TestParsingKeepsEveryByte(t *testing.T) {
	dir, _ := odd(t)
	files, lessons := 0, 0
	err := filepath.WalkDir(dir, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasSuffix(p, ".md") {
			return err
		}
		b, err := os.ReadFile(p)
		if err != nil {
			return err
		}
		files++
		var out []byte
		at := 0
		for _, l := range entry.ParseLessons(b) {
			lessons++
			out = append(append(out, b[at:l.Start]...), l.Text(b)...)
			at = l.End
		}
		if out = append(out, b[at:]...); !bytes.Equal(out, b) {
			t.Errorf("%s: lessons lose bytes", p)
		}
		buf := entry.ParseBuffer(b)
		if whole := append(append([]byte{}, buf.Header()...), buf.Body()...); !bytes.Equal(whole, b) {
			t.Errorf("%s: the buffer's parts are not it", p)
		}
		if c, ok := entry.FindClosure(b); ok && (c.Start < 0 || c.End > len(b) || !bytes.HasPrefix(bytes.TrimLeft(b[c.Start:c.End], "\xef\xbb\xbf"), []byte("Updated:"))) {
			t.Errorf("%s: closure at %d..%d", p, c.Start, c.End)
		}
		if _, ok := entry.Closes(b); ok {
			if c, found := entry.FindClosure(b); !found || c.Displaced {
				t.Errorf("%s: Closes and FindClosure disagree", p)
			}
		}
		return nil
	})
	if err != nil || files < 600 || lessons < 1000 {
		t.Fatalf("%d files, %d lessons: %v", files, lessons, err)
	}
}

// TestWalksAgree: the parallel walk finds what the plain one finds, to the
// last finding.
func TestWalksAgree(t *testing.T) {
	dir, rules := odd(t)
	for name, text := range map[string]string{"memory/semantic/bad.md": "# x\n#tags: nope\n", "memory/episodic/2026-11-29-bad.md": "no closure\n"} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Symlink("bad.md", filepath.Join(dir, "memory/semantic/link.md")); err != nil {
		t.Fatal(err)
	}
	m := os.DirFS(dir)
	plain, err := health.Check(m, rules, today, health.Options{})
	if err != nil {
		t.Fatal(err)
	}
	fast, err := health.Check(m, rules, today, health.Options{Walk: func(o walk.Options) error { return walk.Dir(dir, o) }})
	if err != nil {
		t.Fatal(err)
	}
	if d := cmp.Diff(plain, fast); d != "" {
		t.Error(d)
	}
	if len(plain.Findings) < 10 {
		t.Errorf("only %d findings in an odd tree", len(plain.Findings))
	}
}

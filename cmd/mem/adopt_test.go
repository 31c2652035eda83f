//go:build unix

package main

import (
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestAdopt: a workspace that people have had for long is taken over without
// touching a byte of it, worked in, and everything can be taken back.
func TestAdopt(t *testing.T) {
	for layout, note := range map[string]string{"openclaw": "memory/2026-11-30.md", "canonical": "memory/episodic/2026-11-30.md"} {
		t.Run(layout, func(t *testing.T) {
			b := newBox(t)
			b.env = append(b.env, "MEM_AT=2026-11-30T09:00:00Z")
			if err := os.RemoveAll(b.dir); err != nil {
				t.Fatal(err)
			}
			if err := os.CopyFS(b.dir, os.DirFS(filepath.Join("..", "..", "testdata", "workspaces", layout))); err != nil {
				t.Fatal(err)
			}
			before := snapshot(t, b.dir)
			if out := b.must("status"); !strings.Contains(out, "layout "+layout) {
				t.Fatal(out)
			}
			b.must("init")
			after := snapshot(t, b.dir)
			for name, text := range before {
				if after[name] != text {
					t.Errorf("init changed %s", name)
				}
			}
			b.must("note", "a new fact")
			b.must("rotate", "--force")
			all, _ := b.texts()
			if strings.Count(all, "- a new fact\n") != 1 {
				t.Error("the fact does not stand once")
			}
			if old := before[note]; !strings.HasPrefix(snapshot(t, b.dir)[note], old) {
				t.Errorf("%s does not begin as it was", note)
			}
			b.must("undo", receiptOf(t, b, "rotate"))
			if got := snapshot(t, b.dir)[note]; got != before[note] {
				t.Errorf("%s after undo: %q, was %q", note, got, before[note])
			}
			b.must("undo", receiptOf(t, b, "note"))
			for name, text := range before {
				got := snapshot(t, b.dir)[name]
				if strings.HasSuffix(name, "working-buffer.md") { // its stamp has moved on
					text, got = unstamped(text), unstamped(got)
				}
				if got != text {
					t.Errorf("%s after undoing everything: %q, was %q", name, got, text)
				}
			}
		})
	}
}

func unstamped(s string) string {
	head, rest, _ := strings.Cut(s, "last_active:")
	_, rest, _ = strings.Cut(rest, "\n")
	return head + rest
}

func receiptOf(t *testing.T, b *box, command string) string {
	t.Helper()
	for _, l := range strings.Split(b.must("receipts"), "\n") {
		if f := strings.Fields(l); len(f) > 1 && f[1] == command {
			return f[0]
		}
	}
	t.Fatalf("no receipt of %s", command)
	return ""
}

func snapshot(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := fs.WalkDir(os.DirFS(dir), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		text, err := os.ReadFile(filepath.Join(dir, p))
		if !strings.HasPrefix(p, ".mem/") {
			out[p] = string(text)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

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

// TestAdoptOtherLayouts: a memory of each other kind is looked at and filled in
// without touching a byte of it; what is done in it can be taken back.
func TestAdoptOtherLayouts(t *testing.T) {
	trees := map[string]map[string]string{
		"sessions": {
			"memory_sessions/long_memory.md": "# Long-term memory — mine\r\n\r\n## 2026-03-09\r\n- a fact\r\n", "memory_sessions/logs/2026-11-29.md": "# Session log — 2026-11-29\n\n## Mine\n\todd   text",
			"memory_sessions/logs/archives/2026-01-01.md": "old\n", "memory_sessions/logs/.debug/x.json": "{", ".claude/settings.json": "{}", "notes.txt": "\xff\xfe",
		},
		"claude": {
			"MEMORY.md": "# Memory\n\n## user\n\n- x\n\n## feedback → feedback.md\n", "memory/feedback.md": "### F001: rule (2026-04-01)\n* **Why:** y", "memory/topics/agent-ids.md": "> Created: 2026-01-01\n\nids\n",
			"memory/2026-11-29.md": "raw\n", "AGENTS.md": "mine\n", "HEARTBEAT.md": "mine\n",
		},
	}
	for layout, files := range trees {
		t.Run(layout, func(t *testing.T) {
			b := newBox(t)
			b.env = append(b.env, "MEM_AT=2026-11-30T09:00:00Z")
			if err := os.RemoveAll(b.dir); err != nil {
				t.Fatal(err)
			}
			for name, text := range files {
				full := filepath.Join(b.dir, name)
				if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			same := func(when string) {
				t.Helper()
				after := snapshot(t, b.dir)
				for name, text := range files {
					if after[name] != text {
						t.Errorf("%s: %s is %q, was %q", when, name, after[name], text)
					}
				}
			}
			if out := b.must("status"); !strings.Contains(out, "layout "+layout) {
				t.Fatal(out)
			}
			b.must("search", "fact")
			if after := snapshot(t, b.dir); len(after) != len(files) {
				t.Errorf("looking at it has made files: %d, were %d", len(after), len(files))
			}
			same("looked at")
			b.must("init")
			same("init")
			if layout == "claude" {
				b.must("feedback", "add", "--correction", "another rule", "--why", "x", "--how", "y")
				b.must("undo", receiptOf(t, b, "feedback"))
			} else {
				b.must("session", "promote", "--all")
			}
			same("worked in and taken back")
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

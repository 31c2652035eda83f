//go:build unix

package main

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// TestIngestsAtOnce: eight ingests at once, some killed, while an agent appends
// to the same document through its own handle: each handoff lands once, each
// line of the agent stands once.
func TestIngestsAtOnce(t *testing.T) {
	b := newBox(t)
	inbox := filepath.Join(b.dir, boxDir)
	if err := os.MkdirAll(inbox, 0o755); err != nil {
		t.Fatal(err)
	}
	tools := filepath.Join(b.dir, "TOOLS.md")
	if err := os.WriteFile(tools, []byte("# Tools\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	const rounds, each = 4, 12
	lines := 0
	for round := range rounds {
		for i := range each {
			n := round*each + i
			text := cardHandoff(n)
			if i%2 == 1 && i < 9 {
				text = strings.Replace(docHandoff(n), "### Note", fmt.Sprintf("### Note %d", n), 1)
			}
			if err := os.WriteFile(filepath.Join(inbox, fmt.Sprintf("%03d.md", n)), []byte(text), 0o644); err != nil {
				t.Fatal(err)
			}
		}
		agent, err := os.OpenFile(tools, os.O_APPEND|os.O_WRONLY, 0o644)
		if err != nil {
			t.Fatal(err)
		}
		var wg sync.WaitGroup
		for i := range 8 {
			wg.Go(func() {
				cmd := b.cmd(nil, "ingest", "--lock-wait", "30s")
				var said bytes.Buffer
				cmd.Stdout, cmd.Stderr = &said, &said
				if err := cmd.Start(); err != nil {
					t.Error(err)
					return
				}
				if i%3 == 0 {
					time.Sleep(time.Duration(2+5*i) * time.Millisecond)
					cmd.Process.Signal(syscall.SIGKILL) //nolint:errcheck // it may have ended
				}
				err := cmd.Wait()
				if i%3 != 0 && err != nil {
					if exit, ok := err.(*exec.ExitError); !ok || exit.ExitCode() != exitLocked { //nolint:errorlint // Wait returns it bare
						t.Errorf("ingest: %v\n%s", err, said.String())
					}
				}
			})
		}
		for range 20 {
			if _, err := fmt.Fprintf(agent, "- AGENT-%d.\n", lines); err != nil {
				t.Error(err)
			}
			lines++
			time.Sleep(time.Millisecond)
		}
		wg.Wait()
		agent.Close()
	}
	b.must("recover")
	b.must("ingest")
	b.must("recover")
	doc, err := os.ReadFile(tools)
	if err != nil {
		t.Fatal(err)
	}
	for i := range lines {
		if n := strings.Count(string(doc), fmt.Sprintf("- AGENT-%d.\n", i)); n != 1 {
			t.Errorf("the agent's line %d stands %d times", i, n)
		}
	}
	for n := range rounds * each {
		if i := n % each; i%2 == 1 && i < 9 {
			if c := strings.Count(string(doc), fmt.Sprintf("- DOC-%d text\n", n)); c != 1 {
				t.Errorf("block %d stands %d times", n, c)
			}
			continue
		}
		card, err := os.ReadFile(filepath.Join(b.dir, fmt.Sprintf("memory/cards/card-%d.md", n)))
		if err != nil || strings.Count(string(card), fmt.Sprintf("CARD-%d text", n)) != 1 {
			t.Errorf("card %d: %v %q", n, err, card)
		}
	}
	for name, want := range map[string]int{"*.md": 0, "processed/*.md": rounds * each} {
		got, err := filepath.Glob(filepath.Join(inbox, name))
		if err != nil || len(got) != want {
			t.Errorf("%s: %d files, want %d (%v)", name, len(got), want, err)
		}
	}
}

// TestKilledAccepts: mem inbox accept and mem handoff prune, killed at every
// stage as processes: in the end each text stands in one place.
func TestKilledAccepts(t *testing.T) {
	b := newBox(t)
	put := func(name, text string) {
		t.Helper()
		full := filepath.Join(b.dir, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		old := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
		if err := os.Chtimes(full, old, old); err != nil {
			t.Fatal(err)
		}
	}
	const n = 12
	for i := range n {
		put(fmt.Sprintf("memory/handoff-inbox/20261130T090000.000000Z-%012d-a.md", i), fmt.Sprintf("<!-- mem:review reason=near-duplicate target=memory/cards/card-%d.md sha256=0 at=x -->\n%s", i, cardHandoff(i)))
		put(fmt.Sprintf("%s/processed/2026-01-01-%d--0123456789ab.md", boxDir, i), fmt.Sprintf("OLD-%d.\n", i))
	}
	for i := range n { // at the operations in turn
		for _, args := range [][]string{{"inbox", "accept", fmt.Sprintf("%012d", i)}, {"handoff", "prune"}} {
			if err := b.cmd([]string{fmt.Sprintf("MEM_TEST_KILL_AT=%d", 1+2*i)}, args...).Run(); err == nil && i < 5 {
				t.Errorf("mem %v was not killed at %d", args, 1+2*i)
			}
		}
	}
	b.must("recover")
	b.must("handoff", "prune")
	for i := range n {
		draft := fmt.Sprintf("memory/handoff-inbox/20261130T090000.000000Z-%012d-a.md", i)
		if _, err := os.Lstat(filepath.Join(b.dir, draft)); err == nil {
			b.must("inbox", "accept", fmt.Sprintf("%012d", i))
		}
	}
	var cards, trash strings.Builder
	err := filepath.WalkDir(b.dir, func(name string, d os.DirEntry, err error) error {
		if err != nil || !d.Type().IsRegular() {
			return err
		}
		text, err := os.ReadFile(name)
		switch {
		case strings.Contains(name, "/.mem/trash/"):
			trash.Write(text)
		case strings.Contains(name, "/memory/"):
			cards.Write(text)
		case strings.Contains(name, "/processed/"):
			t.Errorf("%s was not put away", name)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for i := range n {
		if c := strings.Count(cards.String(), fmt.Sprintf("CARD-%d text", i)); c != 1 {
			t.Errorf("card %d stands %d times", i, c)
		}
		if c := strings.Count(trash.String(), fmt.Sprintf("SOURCE-%d\n", i)); c != 1 {
			t.Errorf("draft %d is in the trash %d times", i, c)
		}
		if c := strings.Count(trash.String(), fmt.Sprintf("OLD-%d.", i)); c != 1 {
			t.Errorf("old handoff %d is in the trash %d times", i, c)
		}
	}
}

// TestDiscoversManyRepositories: 195 handoffs in 35 repositories, some under
// git with a tracked file (case 46).
func TestDiscoversManyRepositories(t *testing.T) {
	b := newBox(t)
	root := t.TempDir()
	git := func(dir string, args ...string) {
		t.Helper()
		cmd := exec.Command("git", append([]string{"-C", dir, "-c", "user.name=t", "-c", "user.email=t@example.org"}, args...)...)
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("git %v: %v\n%s", args, err, out)
		}
	}
	_, nogit := exec.LookPath("git")
	const repos, handoffs = 35, 195
	harness := []string{".claude", ".codex", ".hermes"}
	tracked := 0
	for i := range handoffs {
		repo := filepath.Join(root, fmt.Sprintf("org-%d", i%repos%4), fmt.Sprintf("repo-%d", i%repos))
		dir := filepath.Join(repo, harness[i%len(harness)], "memory-handoffs")
		if err := os.MkdirAll(dir, 0o755); err != nil {
			t.Fatal(err)
		}
		name := filepath.Join(dir, fmt.Sprintf("2026-11-%02d-%d.md", 1+i%30, i))
		if err := os.WriteFile(name, []byte(cardHandoff(i)), 0o644); err != nil {
			t.Fatal(err)
		}
		if i < 5 && nogit == nil {
			git(repo, "init", "-q")
			git(repo, "add", "-f", name)
			tracked++
		}
	}
	if err := os.WriteFile(filepath.Join(b.dir, "mem.yaml"), fmt.Appendf(nil, "layout: canonical\nhandoffs:\n  discover:\n  - {root: %q, depth: 4}\n", root), 0o644); err != nil {
		t.Fatal(err)
	}
	b.must("trust")
	dry := strings.ReplaceAll(b.must("ingest", "--dry-run"), "[dry-run] ", "")
	wet := b.must("ingest")
	if dry != wet {
		t.Errorf("the dry run says other things than the run:\n%s\n%s", dry, wet)
	}
	want := fmt.Sprintf("Processed %d  Promoted %d  Reinforced 0  Routed 0  Inboxed 0  Skipped %d  Duplicate 0  Malformed 0\n", handoffs-tracked, handoffs-tracked, tracked)
	if !strings.HasSuffix(wet, want) {
		t.Errorf("got %q, want %q", wet[max(0, len(wet)-200):], want)
	}
	cards, err := filepath.Glob(filepath.Join(b.dir, "memory/cards/card-*.md"))
	if err != nil || len(cards) != handoffs-tracked {
		t.Errorf("%d cards, want %d (%v)", len(cards), handoffs-tracked, err)
	}
	if again := b.must("ingest"); !strings.Contains(again, "NO_UPDATES") {
		t.Errorf("a second run says %q", again)
	}
}

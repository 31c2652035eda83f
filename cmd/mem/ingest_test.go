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

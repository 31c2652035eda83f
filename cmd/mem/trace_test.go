package main

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/tieredmem/mem/durable"
)

var update = flag.Bool("update", false, "write the golden files anew")

// TestTraces: every operation that changes the disk, command by command, is a
// reviewed golden file. A missing fsync, or one too many, is a visible diff.
func TestTraces(t *testing.T) {
	rules := testRules(t, "canonical")
	hash := regexp.MustCompile(`[0-9a-f]{64}|[0-9a-f]{32}|\b[0-9a-f]{8}\b`)
	process, size := regexp.MustCompile(`-\d+\.tmp`), regexp.MustCompile(`(TXID-\d+)-\d+`)
	id := regexp.MustCompile(`\d{8}T\d{6}\.\d{6}Z-[0-9a-f]{12}`)
	for _, s := range scenarios() {
		t.Run(s.name, func(t *testing.T) {
			var sb strings.Builder
			syncs := map[string]int{}
			c := s.on(t, rules, nil)
			err := c.Run(durable.Watch(c.Disk(), func(op durable.Op, done bool) error {
				if done || !op.Changes() {
					return nil
				}
				if op.Kind == "fsync" || strings.HasPrefix(op.Kind, "sync") {
					syncs[op.Kind]++
				}
				line := id.ReplaceAllString(hash.ReplaceAllString(strings.TrimSpace(op.String()), "HASH"), "TXID")
				if strings.HasPrefix(s.name, "mem hook") { // what it writes names this process and its directories
					line = size.ReplaceAllString(process.ReplaceAllString(line, "-PID.tmp"), "$1-SIZE")
				}
				sb.WriteString(line + "\n")
				return nil
			}))
			if err != nil {
				t.Fatal(err)
			}
			fmt.Fprintf(&sb, "# %d fsyncs: %d of files, %d of directories, %d of everything\n", syncs["fsync"]+syncs["syncdir"]+syncs["syncall"], syncs["fsync"], syncs["syncdir"], syncs["syncall"])
			name := filepath.Join("testdata", "traces", strings.NewReplacer(" ", "-", ",", "").Replace(s.name)+".txt")
			if *update {
				if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
					t.Fatal(err)
				}
				if err := os.WriteFile(name, []byte(sb.String()), 0o644); err != nil {
					t.Fatal(err)
				}
			}
			want, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(strings.Split(string(want), "\n"), strings.Split(sb.String(), "\n")); d != "" {
				t.Errorf("the trace has changed; review it, then -update:\n%s", d)
			}
		})
	}
}

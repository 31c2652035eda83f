package tiers

import (
	"fmt"
	"path"
	"testing"
	"testing/fstest"
	"time"
)

// TestInAgreesWithTierOf: both ways to a file's tier are one.
func TestInAgreesWithTierOf(t *testing.T) {
	names := []string{
		"MEMORY.md", "TOOLS.md", "USER.md", "x.md", "rules/a.md", "memory/a.md", "memory/2026-11-30.md", "memory/2026-11-30-x.md", "memory/episodic/2026-11-30.md", "memory/episodic/notes.md",
		"memory/semantic/a.md", "memory/semantic/b/c/a.md", "memory/procedural/a.md", "memory/cards/a.md", "memory/cards/b/a.md", "memory/topics/a.md", "memory/topics/b/a.md",
		"memory/archive/2026/01/2026-01-05.md", "memory/archive/learnings/2026/01/ERRORS.md", "memory/working-buffer.md", ".learnings/ERRORS.md", ".learnings/x.md",
		"memory_sessions/long_memory.md", "memory_sessions/logs/2026-11-30.md", "memory_sessions/logs/archives/x.md", "memory/feedback.md",
	}
	for _, layout := range Layouts() {
		c, err := ParseConfig("mem.yaml", []byte("layout: "+layout+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Load(Sources{Memory: fstest.MapFS{}, Mem: &c, Zone: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		for _, n := range names {
			if got, _ := r.In(path.Dir(n))(path.Base(n)); got != r.TierOf(n) {
				t.Errorf("%s: %s: In says %q, TierOf %q", layout, n, got, r.TierOf(n))
			}
		}
	}
}

func TestOwner(t *testing.T) {
	r := Rules{Layout: rules.Layouts["canonical"]}
	for name, want := range map[string]bool{"memory/semantic/decisions.md": true, "memory/procedural/ssh.md": true, "memory/procedural/a/b.md": false, "memory/semantic/other.md": false} {
		if r.Owner(name) != want {
			t.Errorf("Owner(%q) is %v", name, !want)
		}
	}
}

// TestValidDay: the quick look is time.Parse's.
func TestValidDay(t *testing.T) {
	for y := range 10000 {
		for _, md := range []string{"00-01", "01-00", "01-31", "01-32", "02-28", "02-29", "02-30", "04-30", "04-31", "12-31", "13-01", "6-015", "aa-bb"} {
			s := fmt.Sprintf("%04d-%s", y, md)
			if _, err := time.Parse(time.DateOnly, s); (err == nil) != ValidDay(s) {
				t.Fatalf("ValidDay(%q) is %v", s, ValidDay(s))
			}
		}
	}
}

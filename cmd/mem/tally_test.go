package main

import (
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/tieredmem/mem/crash"
)

var (
	crashDepth  = flag.Int("crash.depth", -1, "how deep crashes nest in recovery, for every scenario and disk (-1: the usual choice)")
	crashWidth  = flag.Int("crash.width", 0, "with -crash.depth: how many states of each level have their recovery crashed again (0: all)")
	crashReport = flag.String("crash.report", "", "a file for the counts by command")
)

// deep are the scenarios that are explored with crashes nested two deep in
// recovery in the normal test run.
var deep = []string{"rotate", "recover rotating that is in its note", "note", "note without a buffer", "write a new file", "write over a file", "close", "undo a note", "undo a rotation", "undo a write", "first use"}

// usual is how far a scenario is explored in the normal test run, on the i-th
// kind of disk; ok is false where it is not. Of each level some states at
// random are crashed again, others in each run; make crash takes more.
func usual(s scenario, i int) (o crash.Options, ok bool) {
	if (i > 0 || raceEnabled) && (s.many() || s.program()) {
		return o, false // the same plans, carried out by the same code, are explored there as parts
	}
	switch {
	case raceEnabled || testing.Short() || s.program():
	case strings.HasPrefix(s.name, "ingest") || s.name == "record" || s.name == "promote sessions": // many operations
	case i == 0 && slices.Contains(deep, s.name):
		o = crash.Options{Depth: 2, Width: 30}
	case i == 0 && !strings.HasPrefix(s.name, "rotate the") && !strings.HasPrefix(s.name, "rotate text") || s.name == "undo a write":
		o = crash.Options{Depth: 1, Width: 10}
	}
	return o, true
}

// many reports whether it makes many files at once, which leaves many states.
// What fails there, fails alike in the small ones; only without a width is nothing left out.
func (s scenario) many() bool {
	return s.name == "ingest many" || strings.HasPrefix(s.name, "mem init") && !strings.HasSuffix(s.name, "rules")
}

// program reports whether the scenario is a whole command line.
func (s scenario) program() bool { return strings.HasPrefix(s.name, "mem ") }

// command is the command that a scenario is one of.
func (s scenario) command() string {
	if s.cmd != "" {
		return s.cmd
	}
	word, _, _ := strings.Cut(s.name, " ")
	switch word = strings.TrimSuffix(word, ","); {
	case s.name == "promote sessions" || word == "record":
		return "session"
	case word == "first":
		return "note"
	case word == "an": // edit that changes nothing
		return "close"
	case word == "fix":
		return "health"
	case word == "take":
		return "ingest"
	case word == "prune":
		return "handoff"
	case word == "accept":
		return "inbox"
	case word == "tidy":
		return "heartbeat"
	}
	return word
}

// tally counts what was explored, by command.
var tally tallies

type tallies struct {
	mu sync.Mutex
	by map[string]*counts4
}

type counts4 struct{ scenarios, states, unique, violations int }

func (t *tallies) add(command string, r *crash.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	if t.by == nil {
		t.by = map[string]*counts4{}
	}
	c := t.by[command]
	if c == nil {
		c = &counts4{}
		t.by[command] = c
	}
	c.scenarios, c.states, c.unique, c.violations = c.scenarios+1, c.states+r.States, c.unique+r.Unique, c.violations+r.Total()
}

func (t *tallies) String() string {
	var sb strings.Builder
	var all counts4
	fmt.Fprintf(&sb, "%-12s %12s %12s %12s %12s\n", "command", "explorations", "states", "different", "violations")
	for _, name := range slices.Sorted(maps.Keys(t.by)) {
		c := t.by[name]
		fmt.Fprintf(&sb, "%-12s %12d %12d %12d %12d\n", name, c.scenarios, c.states, c.unique, c.violations)
		all = counts4{all.scenarios + c.scenarios, all.states + c.states, all.unique + c.unique, all.violations + c.violations}
	}
	fmt.Fprintf(&sb, "%-12s %12d %12d %12d %12d\n", "all", all.scenarios, all.states, all.unique, all.violations)
	fmt.Fprintf(&sb, "%d states, %d violations\n", all.states, all.violations)
	return sb.String()
}

// report writes the counts where -crash.report says.
func report() {
	if *crashReport == "" {
		return
	}
	if err := os.WriteFile(*crashReport, []byte(tally.String()), 0o644); err != nil {
		fmt.Fprintln(os.Stderr, err)
	}
}

func init() { cleanups = append(cleanups, report) }

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"sync"
	"testing/fstest"
	"time"

	"github.com/tieredmem/mem/feedback"
	"github.com/tieredmem/mem/heartbeat"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/session"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/workspace"
)

// rulesOf are the rules of a layout, for features that are given them.
func rulesOf(layout string) func() tiers.Rules {
	return sync.OnceValue(func() tiers.Rules {
		c, err := tiers.ParseConfig("mem.yaml", []byte("layout: "+layout+"\n"))
		if err != nil {
			panic(err)
		}
		r, err := tiers.Load(tiers.Sources{Memory: fstest.MapFS{}, Mem: &c, Zone: time.UTC})
		if err != nil {
			panic(err)
		}
		return r
	})
}

var sessionRules, claudeRules = rulesOf("sessions"), rulesOf("claude")

// recordNow is what a Stop hook of the sessions layout does, its extractor
// having answered.
func recordNow(w *workspace.Workspace) error {
	s := session.Spooled{Exchange: session.Exchange{Human: "EXCHANGE-1", Assistant: "done", ID: "u"}, At: at0, Host: "claude", Session: "s", Project: session.Root}
	if _, known := session.Known(w.View(), at0, s.Key()); !known {
		b, err := json.Marshal(s)
		if err != nil {
			return err
		}
		if err := w.Drop("spool/"+s.Key()+".json", b); err != nil {
			return err
		}
	}
	_, _, err := w.Update("session record", func(m fs.FS) (plan.Plan, error) {
		list, trouble, err := session.Spool(m)
		if err == nil && len(trouble) > 0 {
			err = errors.New(trouble[0])
		}
		if err != nil || len(list) == 0 {
			return plan.Plan{}, err
		}
		var notes []session.Note
		for _, s := range list {
			notes = append(notes, session.Note{Spooled: s, Raw: []byte("{}"), Answer: session.Answer{
				"root": {"context": {"LOGGED-1 of root"}, session.Long: {"LASTING-1"}}, "docs": {"decisions_made": {"DECIDED-1"}},
			}})
		}
		return session.Record(m, sessionRules(), notes, map[string]string{"root": "memory_sessions", "docs": "docs/memory_sessions"})
	})
	return err
}

func promoteSession(w *workspace.Workspace) error {
	_, _, err := w.Update("session promote", func(m fs.FS) (plan.Plan, error) {
		p, _, err := session.Promote(m, sessionRules(), w.At, "memory_sessions", session.Options{All: true})
		return p, err
	})
	return err
}

func feedbackNow(w *workspace.Workspace) error {
	_, _, err := w.Update("feedback add", func(m fs.FS) (plan.Plan, error) {
		p, _, err := feedback.Add(m, claudeRules(), w.At, feedback.New{Rule: "RULE-1 to be kept", Why: "because", How: "when it matters"})
		var near *feedback.NearError
		if errors.As(err, &near) {
			return plan.Plan{}, nil // it is there
		}
		return p, err
	})
	return err
}

func tidyNow(w *workspace.Workspace) error {
	_, _, err := w.Update("heartbeat", func(m fs.FS) (plan.Plan, error) {
		p, _, err := heartbeat.Tidy(m, claudeRules(), w.At)
		return p, err
	})
	return err
}

// layouts are the scenarios of the sessions and the claude layout.
func layouts() []scenario {
	var long, big strings.Builder
	long.WriteString("# Long-term memory\n")
	longFacts := map[string]int{"a person's line": -1}
	for _, year := range []string{"2024", "2025"} {
		fmt.Fprintf(&long, "\n## %s-06-01\n", year)
		for i := range 160 {
			fmt.Fprintf(&long, "- %s-FACT-%03d.\n", year, i)
			longFacts[fmt.Sprintf("%s-FACT-%03d.", year, i)] = 1
		}
	}
	delete(longFacts, "a person's line")
	longFacts["OLD-LOG"], longFacts["NEW-DECISION"] = 1, 2 // in its log, too
	for i := range 260 {
		fmt.Fprintf(&big, "- BIG-%03d and so on, long enough to count\n", i)
	}
	return []scenario{
		{
			name: "record", run: recordNow, mend: recordNow,
			files: map[string]string{bufPath: idle, "memory_sessions/logs/2026-11-30.md": "# Session log — 2026-11-30\n\n## Mine\n- OLD-LINE\n", "memory_sessions/long_memory.md": "# Long-term memory\n"},
			edit:  map[string]string{"memory_sessions/logs/2026-11-30.md": "- a person's line\n"},
			want:  want{facts: map[string]int{"OLD-LINE": 1}, made: map[string]int{"LOGGED-1": 1, "DECIDED-1": 1, "LASTING-1": 1}, trash: map[string]int{"EXCHANGE-1": 1}, buffer: true},
		},
		{
			name: "promote sessions", run: promoteSession, mend: promoteSession,
			files: map[string]string{bufPath: idle, "memory_sessions/long_memory.md": long.String(), "memory_sessions/logs/2026-01-02.md": "OLD-LOG\n", "memory_sessions/logs/2026-11-29.md": "## Decisions made\n- NEW-DECISION\n"},
			edit:  map[string]string{"memory_sessions/long_memory.md": "- a person's line\n"},
			want:  want{facts: longFacts, buffer: true},
		},
		{
			name: "feedback", run: feedbackNow, mend: feedbackNow,
			files: map[string]string{bufPath: idle, feedback.File: "# Feedback\n\n### F001: OLD-RULE (2026-01-01)\n- **Why**: x\n"},
			edit:  map[string]string{feedback.File: "- a person's line\n"},
			want:  want{facts: map[string]int{"OLD-RULE": 1}, made: map[string]int{"RULE-1": 1, "### F002": 1}, buffer: true},
		},
		{
			name: "tidy", run: tidyNow, mend: tidyNow,
			files: map[string]string{bufPath: idle, "MEMORY.md": "# Memory\n\n## user\n\n- WHO\n\n## reference\n\n### Big\n\n" + big.String() + "\n### Small\n- STAYS\n"},
			edit:  map[string]string{"MEMORY.md": "- a person's line\n"},
			want:  want{facts: map[string]int{"WHO": 1, "STAYS": 1, "BIG-000": 1, "BIG-259": 1}, made: map[string]int{"See [memory/topics/big.md]": 1}, buffer: true},
		},
	}
}

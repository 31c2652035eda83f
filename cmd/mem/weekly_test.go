package main

import (
	"errors"
	"io/fs"

	"github.com/tieredmem/mem/archive"
	"github.com/tieredmem/mem/durable/faultfs"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/lessons"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/review"
	"github.com/tieredmem/mem/workspace"
)

const (
	oldDay    = "memory/episodic/2026-01-05.md"
	errorsMD  = ".learnings/ERRORS.md"
	someNotes = "# Errors\n\n- 2026-01-01: FACT-LESSON gggggggg\n- 2026-11-29: FACT-NEWER hhhhhhhh\n"
	// idle is a buffer whose session ended hours ago.
	idle = "# Working Buffer\ncreated: 2026-11-30T01:00:00Z\nlast_active: 2026-11-30T02:00:00Z\n\n## Active Task:\n"
)

func archiveNow(w *workspace.Workspace) error {
	receipt, _, err := w.Update("archive", func(m fs.FS) (plan.Plan, error) {
		p, _, err := archive.Notes(m, w.Rules, w.At, 30)
		if err != nil {
			return p, err
		}
		q, _, err := archive.Lessons(m, w.Rules, w.At, 30, false)
		p.Steps = append(p.Steps, q.Steps...)
		return p, err
	})
	if err == nil && receipt.Outcome == plan.Conflict {
		err = errors.New("conflict")
	}
	return err
}

func learnNow(w *workspace.Workspace) error {
	_, _, err := w.Update("learn", func(m fs.FS) (plan.Plan, error) {
		return lessons.Learn(m, w.Rules, w.At, "error", "FACT-LEARNED iiiiiiii", false)
	})
	return err
}

func promoteNow(w *workspace.Workspace) error {
	_, _, err := w.Update("promote", func(m fs.FS) (plan.Plan, error) {
		all, err := lessons.Read(m, w.Rules)
		if err != nil || len(all) == 0 {
			return plan.Plan{}, errors.Join(err, errors.New("no lessons"))
		}
		p, _, err := lessons.Promote(m, w.Rules, w.At, lessons.Promotion{ID: all[len(all)-1].Key})
		return p, err
	})
	return err
}

func reviewNow(w *workspace.Workspace) error {
	_, _, err := w.Update("review", func(m fs.FS) (plan.Plan, error) {
		report, err := health.Check(m, w.Rules, w.At, health.Options{})
		if err != nil {
			return plan.Plan{}, err
		}
		p, _, err := review.Review(m, w.Rules, w.At, report)
		return p, err
	})
	return err
}

func fixNow(w *workspace.Workspace) error {
	_, _, err := w.Update("health", func(m fs.FS) (plan.Plan, error) { return health.Fix(m, w.Rules, w.At) })
	return err
}

func verifyNow(w *workspace.Workspace) error {
	_, _, err := w.Update("verify", func(m fs.FS) (plan.Plan, error) {
		return health.Verify(m, w.Rules, w.At, []string{"memory/semantic/x.md"})
	})
	return err
}

// weekly are the scenarios of what the weekly job and its parts write.
func weekly() []scenario {
	old := "# 2026-01-05\n\n- FACT-OLD jjjjjjjj\n\nUpdated: 2026-01-05\nDecisions: none\nSignal: none\nOpen: none\n"
	facts := map[string]int{"FACT-OLD jjjjjjjj": 1, "FACT-LESSON gggggggg": 1, "FACT-NEWER hhhhhhhh": 1}
	files := map[string]string{bufPath: idle, oldDay: old, errorsMD: someNotes, notePath: oldNote, "MEMORY.md": "# M\n#tags: memory\n"}
	keep := map[string]string{notePath: oldNote}
	warm := "# Lessons\n#tags: errors\nlast_verified: 2026-11-01\n\n- FACT-WARM kkkkkkkk\n"
	return []scenario{
		{name: "archive", files: files, run: archiveNow, edit: map[string]string{errorsMD: "- a person's line\n"}, want: want{facts: facts, keep: keep, buffer: true}},
		{
			name: "archive beside a namesake", run: archiveNow, want: want{facts: facts, keep: map[string]string{"memory/archive/2026/01/2026-01-05.md": "another\n"}, buffer: true},
			files: map[string]string{bufPath: idle, oldDay: old, errorsMD: someNotes, "memory/archive/2026/01/2026-01-05.md": "another\n"},
		},
		{
			name: "archive to another disk", files: files, run: archiveNow, want: want{facts: facts, keep: keep, buffer: true},
			tweak: func(d *faultfs.Disk) { d.Mkdirs("memory/archive"); d.Far = "memory/archive" },
		},
		{name: "learn", files: files, run: learnNow, edit: map[string]string{errorsMD: "- a person's line\n"}, want: want{facts: facts, maybe: map[string]int{"FACT-LEARNED iiiiiiii": 1}, keep: keep, buffer: true}},
		{name: "learn first", files: map[string]string{bufPath: idle}, run: learnNow, want: want{maybe: map[string]int{"FACT-LEARNED iiiiiiii": 1}, buffer: true}},
		{
			name: "promote", run: promoteNow, want: want{facts: map[string]int{"FACT-LESSON gggggggg": 1, "FACT-WARM kkkkkkkk": 1}, maybe: map[string]int{"FACT-NEWER hhhhhhhh": 2, "#promoted:": 1}, buffer: true},
			files: map[string]string{bufPath: idle, errorsMD: someNotes, "memory/procedural/lessons-learned.md": warm},
		},
		{name: "review", files: files, run: reviewNow, want: want{facts: facts, maybe: map[string]int{"## Maintenance": 1}, keep: keep, buffer: true}},
		{
			name: "fix", run: fixNow, want: want{facts: map[string]int{"FACT-LATER llllllll": 1, "an earlier event": 1}, buffer: true},
			files: map[string]string{bufPath: idle, notePath: oldNote + "\n- FACT-LATER llllllll\n"}, tweak: func(d *faultfs.Disk) {
				d.Mkdirs("memory/semantic", "memory/procedural", "memory/archive", ".learnings")
			},
		},
		{name: "verify", files: map[string]string{bufPath: idle, "memory/semantic/x.md": warm}, run: verifyNow, want: want{facts: map[string]int{"FACT-WARM kkkkkkkk": 1}, maybe: map[string]int{"last_verified: 2026-11-30": 1}, buffer: true}},
	}
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/tieredmem/mem/handoff"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/inbox"
	"github.com/tieredmem/mem/schedule"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/workspace"
)

type handoffDoctorCmd struct{}

type boxView struct {
	Path      string `json:"path"`
	Problem   string `json:"problem"`
	Pending   int    `json:"pending"`
	Processed int    `json:"processed"`
	Malformed int    `json:"malformed"`
	OldestAge int    `json:"oldest_pending_days"`
	Watched   bool   `json:"watched"`
}

// Limits of the doctor (spec: handoffs, "Around it").
const (
	maxBacklog = 3 // days
	maxSilence = 90 * time.Minute
)

func (*handoffDoctorCmd) Run(a *app) error {
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	boxes, trouble := a.inboxes()
	list, bad := []boxView{}, attentionList(trouble)
	for i := range boxes {
		v := a.examine(&boxes[i])
		list = append(list, v)
		state := "ok"
		switch {
		case v.Problem != "":
			state = v.Problem
			if v.Problem != "opted-out" {
				bad = append(bad, v.Path+": "+boxes[i].Detail)
			}
		case v.OldestAge > maxBacklog:
			state = "backlog"
			bad = append(bad, fmt.Sprintf("%s: a handoff has waited for %d days", v.Path, v.OldestAge))
		}
		if v.Malformed > 0 {
			bad = append(bad, fmt.Sprintf("%s: %d malformed wait for a person in malformed/", v.Path, v.Malformed))
		}
		a.say("[%s] %s  pending=%d processed=%d malformed=%d", state, v.Path, v.Pending, v.Processed, v.Malformed)
	}
	for _, dir := range a.unwatched(boxes) {
		list = append(list, boxView{Path: dir})
		bad = append(bad, dir+": no source covers this inbox: handoffs.inboxes or handoffs.discover in mem.yaml")
		a.say("[unwatched] %s", dir)
	}
	job, err := health.ReadJob(ws.View(), ".mem/jobs/ingest.json")
	if err != nil {
		return err
	}
	age := "never"
	if !job.Success.IsZero() {
		age = a.at.Sub(job.Success).Round(time.Minute).String() + " ago"
	}
	timer := a.scheduled("ingest")
	a.say("last ingest: %s; scheduled: %s", age, timer)
	if timer == "installed" && a.at.Sub(job.Success) > maxSilence {
		bad = append(bad, "ingest is scheduled, and the last one was "+age)
	}
	for _, b := range bad {
		a.say("problem: %s", b)
	}
	outcome := "ok"
	if len(bad) > 0 {
		outcome, a.code = "problems", exitFindings
	}
	a.object(map[string]any{"outcome": outcome, "inboxes": list, "problems": bad, "last_ingest": job.Success, "scheduled": timer})
	return nil
}

// examine counts what is in and beside an inbox.
func (a *app) examine(b *inbox.Inbox) boxView {
	v := boxView{Path: b.Path, Problem: b.Problem, Watched: true}
	if b.Problem != "" {
		return v
	}
	items, err := b.List()
	if err != nil {
		v.Problem, b.Detail = "unreadable", err.Error()
		return v
	}
	for _, it := range items {
		if !b.Load(&it, handoff.MaxSize) {
			continue
		}
		if r, ok := handoff.Find(it.Code); ok && r.Verdict == handoff.Skipped {
			continue
		}
		v.Pending++
		v.OldestAge = max(v.OldestAge, a.ageOf(it.Name, it.Written()))
	}
	var errs [2]error
	v.Processed, errs[0] = b.Count("processed")
	v.Malformed, errs[1] = b.Count("malformed")
	if err := errors.Join(errs[:]...); err != nil {
		v.Problem, b.Detail = "unreadable", err.Error()
	}
	b.Close()
	return v
}

// ageOf is a handoff's age in days: by the day in its name, else by when it
// was written.
func (a *app) ageOf(name string, written time.Time) int {
	today := tiers.DayNumber(a.ws.Rules.Day(a.at))
	if len(name) > 10 && tiers.ValidDay(name[:10]) {
		return int(today - tiers.DayNumber(name[:10]))
	}
	if written.IsZero() {
		return 0
	}
	return int(today - tiers.DayNumber(a.ws.Rules.Day(written)))
}

// unwatched lists inboxes above or beside the working directory that no source
// covers.
func (a *app) unwatched(boxes []inbox.Inbox) []string {
	cwd, err := a.env.getwd()
	if err != nil {
		return nil
	}
	covered := map[string]bool{}
	for _, b := range boxes {
		covered[b.Path] = true
	}
	var out []string
	for dir := cwd; ; dir = filepath.Dir(dir) {
		found, _ := inbox.Find(inbox.Config{Workspace: dir})
		for _, b := range found {
			if !covered[b.Path] && !covered[resolved(b.Path)] {
				out = append(out, b.Path)
			}
		}
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || dir == filepath.Dir(dir) {
			return out
		}
	}
}

func resolved(p string) string {
	if r, err := filepath.EvalSymlinks(p); err == nil {
		return r
	}
	return p
}

// scheduled tells the state of a job in this system's scheduler.
func (a *app) scheduled(name string) string {
	s, err := (scheduleFlags{Job: name}).open(a, false)
	if err != nil {
		return "unknown"
	}
	j, _ := schedule.Find(name)
	v, err := s.status(j)
	if err != nil {
		return "unknown"
	}
	return v.State
}

type handoffPruneCmd struct {
	OlderThan string `default:"30d" placeholder:"AGE" help:"Age, such as 30d."`
}

func (*handoffPruneCmd) Help() string {
	return "Moves processed handoffs that are old to the trash. What is malformed stays until\nsomebody has looked at it."
}

func (c *handoffPruneCmd) Run(a *app) error {
	limit, err := ageDays(c.OlderThan)
	if err != nil {
		return err
	}
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	boxes, trouble := a.inboxes()
	for _, t := range trouble {
		a.warn("%s", t)
	}
	n := 0
	for i := range boxes {
		b := &boxes[i]
		if b.Problem != "" {
			continue
		}
		// Old by the day in its name, where it has one, and by when it was
		// written: what came late is kept as long as what came in time.
		past := func(name string, written time.Time) bool {
			return a.ageOf(name, written) > limit && a.ageOf("", written) > limit
		}
		old := past
		if a.DryRun {
			old = func(name string, written time.Time) bool {
				if past(name, written) {
					n++
					a.say("[dry-run] put %s away", filepath.Join(b.Path, "processed", name))
				}
				return false
			}
		}
		put, err := pruneProcessed(ws, b, old)
		n += put
		if err != nil {
			a.warn("inbox %s: %v", b.Path, err)
			a.code = exitFailed
		}
		b.Close()
	}
	a.say("put %s away", plural(n, "processed handoff"))
	a.object(map[string]any{"outcome": "pruned", "removed": n})
	return nil
}

// pruneProcessed brings processed handoffs that are old to the trash: each is
// kept there, durably, before it goes. A crash between leaves both, and the
// next run finds it kept.
func pruneProcessed(ws *workspace.Workspace, b *inbox.Inbox, old func(name string, written time.Time) bool) (n int, err error) {
	err = b.Folder("processed", func(name string, written time.Time, open func() ([]byte, error)) error {
		if !old(name, written) {
			return nil
		}
		text, err := open()
		if err != nil {
			return err
		}
		if err := ws.Keep("handoff prune", bytes.Clone(text)); err != nil {
			return err
		}
		n++
		return b.Remove("processed", name)
	})
	return n, errors.Join(err, b.Sync())
}

package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"

	"github.com/tieredmem/mem/archive"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/review"
	"github.com/tieredmem/mem/workspace"
)

type reviewCmd struct {
	IfDue bool `help:"Only if Monday 9:00 has passed since the last review: for hooks and other jobs, to make up for missed ones."`
	Again bool `help:"Once more in the same week."`
	ended bool // this session has ended: what it left in the buffer is no sign of life
}

func (*reviewCmd) Help() string {
	return "The weekly job: waits while a session is active, stops if the memory is not healthy,\narchives notes and lessons, lists what recurs as candidates for promotion, and writes\na maintenance section into today's note. Once per ISO week. It promotes nothing,\nrotates nothing, refreshes no date of verification.\n\n  mem review\n  mem review --if-due\n  mem review --dry-run --at 2026-12-07T09:00:00+01:00"
}

// errAlready ends a run that found the week's review done, with the lock held.
var errAlready = errors.New("already reviewed")

func (c *reviewCmd) Run(a *app) error {
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	m, rules := ws.View(), ws.Rules
	week := review.Week(rules, a.at)
	if !c.Again {
		done, err := review.Done(m, rules, a.at)
		if err != nil {
			return err
		}
		due := false
		if c.IfDue && !done {
			if due, err = review.Due(m, rules, a.at); err != nil {
				return err
			}
		}
		switch {
		case done && !c.IfDue:
			a.say("already reviewed %s", week)
			a.reviewObject(review.Result{Outcome: review.Already, Week: week}, plan.Plan{})
			return nil
		case c.IfDue && !due:
			a.reviewObject(review.Result{Outcome: review.NotDue, Week: week}, plan.Plan{})
			return nil
		}
	}
	gate := review.Gate
	if c.ended {
		gate = review.GateOthers
	}
	session, err := gate(m, rules, a.at)
	if err != nil {
		return err
	}
	if session.Warning != "" {
		a.warn("%s", session.Warning)
	}
	if session.Active {
		a.say("deferred: a session is active (%s)", session.Reason)
		a.log().Info().Str("week", week).Str("reason", session.Reason).Msg("review deferred")
		if err := c.record(a, review.Result{Outcome: review.Deferred, Week: week}); err != nil {
			return err
		}
		a.reviewObject(review.Result{Outcome: review.Deferred, Week: week}, plan.Plan{})
		return nil
	}
	return c.work(a, ws, week)
}

// work does the review, in one transaction.
func (c *reviewCmd) work(a *app, ws *workspace.Workspace, week string) error {
	var r review.Result
	p, err := a.update(func(m fs.FS) (plan.Plan, error) {
		if !c.Again {
			// Another review may have run while we waited for the lock.
			done, err := review.Done(m, ws.Rules, a.at)
			if err != nil {
				return plan.Plan{}, err
			}
			if done {
				return plan.Plan{}, errAlready
			}
		}
		report, err := health.Check(m, ws.Rules, a.at, health.Options{})
		if err != nil {
			return plan.Plan{}, err
		}
		var p plan.Plan
		p, r, err = review.Review(m, ws.Rules, a.at, report)
		return p, err
	})
	var conflict *conflictError
	switch {
	case errors.Is(err, errAlready):
		a.say("already reviewed %s", week)
		a.reviewObject(review.Result{Outcome: review.Already, Week: week}, plan.Plan{})
		return nil
	case errors.Is(err, review.ErrUnhealthy):
		return c.unhealthy(a, r)
	case err != nil && !errors.As(err, &conflict):
		// A run that could not be made leaves its record, too.
		return errors.Join(err, c.record(a, review.Result{Outcome: "failed", Week: week}))
	}
	r.Decisions = outcomes(p, r.Decisions)
	if err := c.record(a, r); err != nil {
		return err
	}
	a.printReview(p, r)
	return nil
}

// unhealthy says what stops the review.
func (c *reviewCmd) unhealthy(a *app, r review.Result) error {
	a.say("Memory integrity check failed: the review stops until this is mended:")
	for _, f := range r.Findings {
		where := f.Path
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.Path, f.Line)
		}
		a.say("✗ %s %s  %s", where, f.Check, f.Message)
		if f.Command != "" {
			a.say("    %s", f.Command)
		} else {
			a.say("    %s", f.Fix)
		}
	}
	if err := c.record(a, r); err != nil {
		return err
	}
	a.code = exitFindings
	a.reviewObject(r, plan.Plan{})
	return nil
}

// record keeps what the run did: a job that did nothing tells so, too.
func (c *reviewCmd) record(a *app, r review.Result) error {
	if a.DryRun {
		return nil
	}
	m := a.ws.View()
	j, err := health.ReadJob(m, health.ReviewJob)
	if err != nil {
		j = health.Job{} // damaged: replaced
	}
	j.At, j.Outcome = a.at, r.Outcome
	if r.Outcome == review.Reviewed || r.Outcome == review.Nothing {
		files, entries := r.Moved()
		j.Success, j.Week = a.at, r.Week
		j.Counts = health.Counts{"notes": files, "lessons": entries, "candidates": len(r.Candidates), "friction": len(r.Friction)}
		names, err := review.Notes(m, a.ws.Rules)
		if err != nil {
			return err
		}
		if err := a.putRecord("jobs/notes.json", health.Notes{At: a.at, Notes: names}); err != nil {
			return err
		}
	}
	return a.putRecord("jobs/review.json", j)
}

func (a *app) putRecord(name string, v any) error {
	b, err := json.Marshal(v)
	if err != nil {
		return err
	}
	return a.ws.Record(a.command, name, append(b, '\n'))
}

func (a *app) printReview(p plan.Plan, r review.Result) {
	for _, g := range r.Candidates {
		a.say("candidate, on %s of the last 7: %s", plural(g.Recent, "day"), g.Lesson)
		for _, l := range g.Entries {
			a.say("    %s  %s  %s:%d", l.Key, l.Day, l.File, l.Line)
		}
	}
	for _, f := range r.Friction {
		a.say("friction: %s", f)
	}
	for _, v := range r.Vanished {
		a.warn("%s is gone since the last review, and no receipt tells of it", v)
	}
	for _, t := range r.Trouble {
		a.warn("%s", t)
		a.code = exitFailed
	}
	if r.Buffer != "" {
		a.warn("%s; it is not rotated here: mem rotate", r.Buffer)
	}
	if a.DryRun || a.Verbose {
		a.table(r.Decisions)
	}
	for _, d := range r.Decisions {
		if d.Outcome == archive.Skipped {
			a.code = exitFailed
		}
		if d.Outcome == archive.Skipped && !told(p, d.Path) {
			a.warn("%s: not archived: %s", d.Path, d.Reason)
		}
	}
	if r.Outcome == review.Nothing {
		a.say("No meaningful changes")
	} else {
		files, entries := r.Moved()
		prefix := ""
		if a.DryRun {
			prefix = "[dry-run] "
		}
		a.say("%sreviewed %s: %s and %s archived, %s; see %s", prefix, r.Week, plural(files, "note"), plural(entries, "lesson"), plural(len(r.Candidates), "candidate"), r.Note)
	}
	a.reviewObject(r, p)
}

func (a *app) reviewObject(r review.Result, p plan.Plan) {
	findings := r.Findings
	if findings == nil {
		findings = []health.Finding{}
	}
	files, entries := r.Moved()
	fields := map[string]any{
		"outcome": r.Outcome, "week": r.Week, "candidates": groupViews(r.Candidates), "findings": findings, "friction": attentionList(r.Friction), "vanished": attentionList(r.Vanished),
		"notes_archived": files, "lessons_archived": entries, "buffer": r.Buffer, "note": r.Note,
	}
	if p.ID != "" && !a.DryRun {
		fields["receipt"] = p.ID
	}
	a.object(fields)
}

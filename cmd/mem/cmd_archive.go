package main

import (
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tieredmem/mem/archive"
	"github.com/tieredmem/mem/plan"
)

type archiveCmd struct {
	What      string `arg:"" optional:"" default:"all" enum:"all,episodic,lessons" help:"episodic (daily notes), lessons (SCRATCH), or both."`
	OlderThan string `placeholder:"AGE" help:"Age in days, such as 30, 30d or 4w; without it, as configured (30d)."`
	Legacy    bool   `help:"Also move every file of .learnings that is not one of the canonical three, whatever its age."`
}

func (*archiveCmd) Help() string {
	return "Moves what is past its time to memory/archive: daily notes by the date of their name,\nlessons by the date inside the entry. Pinned and undated lessons stay, and so does\ntoday's note. Nothing is written over; one file that cannot move does not stop the\nothers (exit 2 at the end).\n\n  mem archive --dry-run\n  mem archive episodic --older-than 6w\n  mem archive --dry-run --at 2027-01-01"
}

func (c *archiveCmd) Run(a *app) error {
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	if c.Legacy && c.What == "episodic" {
		return &usageError{"--legacy is about lessons", "mem archive lessons --legacy"}
	}
	notes, scratch := days(ws.Rules.TTL.Notes), days(ws.Rules.TTL.Lessons)
	if c.OlderThan != "" {
		n, err := ageDays(c.OlderThan)
		if err != nil {
			return err
		}
		notes, scratch = n, n
	}
	var list []archive.Decision
	p, err := a.update(func(m fs.FS) (plan.Plan, error) {
		p := plan.Plan{Command: "archive"}
		list = nil
		if c.What != "lessons" {
			q, d, err := archive.Notes(m, ws.Rules, a.at, notes)
			if err != nil {
				return q, err
			}
			p.Steps, list = append(p.Steps, q.Steps...), append(list, d...)
		}
		if c.What != "episodic" {
			q, d, err := archive.Lessons(m, ws.Rules, a.at, scratch, c.Legacy)
			if err != nil {
				return q, err
			}
			p.Steps, list = append(p.Steps, q.Steps...), append(list, d...)
		}
		p.Facts = decisionFacts(list)
		return p, nil
	})
	var conflict *conflictError
	if err != nil && !errors.As(err, &conflict) {
		return err
	}
	a.printArchive(p, outcomes(p, list))
	return nil
}

func days(d time.Duration) int { return int(d / (24 * time.Hour)) }

// ageDays reads an age of whole days, at least one.
func ageDays(s string) (int, error) {
	bad := &usageError{fmt.Sprintf("--older-than %q is not an age in days", s), "for example 30, 30d or 4w; at least 1 day"}
	unit, num := 1, strings.TrimSuffix(s, "d")
	if w, ok := strings.CutSuffix(s, "w"); ok {
		unit, num = 7, w
	}
	n, err := strconv.Atoi(num)
	if err != nil || n < 1 || n > 36500 || strings.HasPrefix(num, "+") {
		return 0, bad
	}
	return n * unit, nil
}

// maxDecisions bounds how many kept files a receipt names one by one.
const maxDecisions = 1000

// decisionFacts is what a receipt says of each file that was considered.
func decisionFacts(list []archive.Decision) plan.Facts {
	count := map[string]int{}
	kept := []archive.Decision{}
	for _, d := range list {
		count[d.Outcome]++
		if d.Outcome != archive.Archived && len(kept) < maxDecisions {
			kept = append(kept, d)
		}
	}
	return plan.Facts{"archived": count[archive.Archived], "kept": count[archive.Kept], "skipped": count[archive.Skipped], "stayed": kept}
}

// outcomes brings what was decided together with what happened.
func outcomes(p plan.Plan, list []archive.Decision) []archive.Decision {
	failed := map[string]string{}
	for _, s := range p.Steps {
		if s.Outcome == plan.Conflict {
			failed[s.Path] = s.Reason
		}
	}
	if len(failed) == 0 {
		return list
	}
	out := slices.Clone(list)
	for i, d := range out {
		if why, ok := failed[d.Path]; ok && d.Outcome == archive.Archived {
			out[i].Outcome, out[i].Reason, out[i].To = archive.Skipped, why, ""
		}
	}
	return out
}

type movedView struct {
	From   string `json:"from"`
	To     string `json:"to"`
	Line   int    `json:"line,omitempty"`
	Age    int    `json:"age_days"`
	Reason string `json:"reason"`
}

type skippedView struct {
	Path   string `json:"path"`
	Line   int    `json:"line,omitempty"`
	Reason string `json:"reason"`
}

func (a *app) printArchive(p plan.Plan, list []archive.Decision) {
	moved, entries, skipped, left, undated := []movedView{}, []movedView{}, []skippedView{}, []skippedView{}, []skippedView{}
	kept := 0
	for _, d := range list {
		switch {
		case d.Outcome == archive.Archived && d.Line > 0:
			entries = append(entries, movedView{d.Path, d.To, d.Line, d.Age, d.Reason})
		case d.Outcome == archive.Archived:
			moved = append(moved, movedView{d.Path, d.To, 0, d.Age, d.Reason})
		case d.Outcome == archive.Left:
			left = append(left, skippedView{d.Path, d.Line, d.Reason})
		case d.Outcome == archive.Skipped:
			skipped = append(skipped, skippedView{d.Path, d.Line, d.Reason})
		default:
			kept++
			if strings.HasPrefix(d.Reason, "has no date") {
				undated = append(undated, skippedView{d.Path, d.Line, d.Reason})
			}
		}
	}
	if a.DryRun || a.Verbose {
		a.table(list)
	}
	for _, s := range skipped {
		if !told(p, s.Path) {
			a.warn("%s: not archived: %s", s.Path, s.Reason)
		}
	}
	for _, s := range left {
		a.say("%s stays: %s", s.Path, s.Reason)
	}
	for _, s := range undated {
		where := s.Path
		if s.Line > 0 {
			where = fmt.Sprintf("%s:%d", s.Path, s.Line)
		}
		a.say("%s stays: %s", where, s.Reason)
	}
	if len(skipped) > 0 {
		a.code = exitFailed
	}
	fields := map[string]any{"outcome": "archived", "archived": moved, "lessons": entries, "kept": kept, "skipped": append(skipped, left...), "undated": undated}
	if p.Empty() {
		fields["outcome"] = "nothing"
	}
	line := fmt.Sprintf("archived %s and %s; %d kept", plural(len(moved), "file"), plural(len(entries), "lesson"), kept)
	if len(skipped) > 0 {
		line += fmt.Sprintf(", %d skipped", len(skipped))
	}
	q := p
	if a.DryRun {
		q.Steps = nil // the table has said it
	}
	a.done(q, fields, "%s", line)
}

// told reports whether a file that did not move is in the receipt's notices.
func told(p plan.Plan, name string) bool {
	return slices.ContainsFunc(p.Notices, func(n string) bool { return strings.HasPrefix(n, name+": ") })
}

// table shows what is decided about each file, and why.
func (a *app) table(list []archive.Decision) {
	var sb strings.Builder
	w := tabwriter.NewWriter(&sb, 0, 0, 2, ' ', 0)
	for _, d := range list {
		name := d.Path
		if d.Line > 0 {
			name = fmt.Sprintf("%s:%d", d.Path, d.Line)
		}
		to := ""
		if d.To != "" {
			to = "→ " + d.To
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", d.Outcome, safe(name), safe(d.Reason), safe(to))
	}
	w.Flush()
	a.raw(sb.String())
}

// Package review is the weekly job: gate, health, archive, candidates and a
// maintenance note (source: tiered memory, "8. Weekly Review").
//
// [Gate] says whether it has to wait, [Due] whether it is time, and [Review]
// plans all it does as one change. It judges nothing: no lesson is promoted, no
// date of verification refreshed, no buffer rotated.
package review

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/archive"
	"github.com/tieredmem/mem/buffer"
	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/lessons"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Outcomes of a review.
const (
	Reviewed  = "reviewed"
	Nothing   = "nothing"   // no meaningful changes
	Deferred  = "deferred"  // a session is active
	Unhealthy = "unhealthy" // something must be mended first
	Already   = "already"   // done this week
	NotDue    = "not-due"
)

// Gate looks for an active session: the buffer's signs of life, or a stamp
// that a hook left.
func Gate(m fs.FS, rules tiers.Rules, now time.Time) (buffer.Session, error) {
	s, err := buffer.Inspect(m, rules)
	var unfit *buffer.UnfitError
	if err != nil && !errors.Is(err, buffer.ErrNoBuffer) && !errors.As(err, &unfit) {
		return buffer.Session{}, err
	}
	session := s.Session(rules, now)
	if session.Active {
		return session, nil
	}
	return stamped(m, rules, now, session), nil
}

// GateOthers is Gate at the end of a session: what that left in the buffer is
// no sign of life, the stamps of others are.
func GateOthers(m fs.FS, rules tiers.Rules, now time.Time) (buffer.Session, error) {
	return stamped(m, rules, now, buffer.Session{}), nil
}

func stamped(m fs.FS, rules tiers.Rules, now time.Time, session buffer.Session) buffer.Session {
	if ago, ok := health.Stamped(m, now); ok && ago < rules.TTL.AbandonedBuffer {
		session.Active, session.Reason = true, fmt.Sprintf("a session was active %s ago", max(ago, 0).Round(time.Minute))
	}
	return session
}

// Week names the ISO week of an instant's local day: 2026-W49.
func Week(rules tiers.Rules, t time.Time) string {
	y, w := t.In(rules.Location).ISOWeek()
	return fmt.Sprintf("%d-W%02d", y, w)
}

// hour is when the review is due on Mondays.
const hour = 9

// lastDue is the newest Monday 9:00, local time, that is not after now.
func lastDue(rules tiers.Rules, now time.Time) time.Time {
	t := now.In(rules.Location)
	back := (int(t.Weekday()) + 6) % 7
	monday := time.Date(t.Year(), t.Month(), t.Day()-back, hour, 0, 0, 0, rules.Location)
	if monday.After(now) {
		monday = time.Date(t.Year(), t.Month(), t.Day()-back-7, hour, 0, 0, 0, rules.Location)
	}
	return monday
}

// Done reports whether this week's review has been made.
func Done(m fs.FS, rules tiers.Rules, now time.Time) (bool, error) {
	j, err := last(m, rules, now)
	return err == nil && j.Week == Week(rules, now), err
}

// last is the last review that did its work: by its record, or, where a crash
// or a person has taken that away, by the receipts of the last two months.
func last(m fs.FS, rules tiers.Rules, now time.Time) (health.Job, error) {
	j, err := health.ReadJob(m, health.ReviewJob)
	if err != nil && !damaged(err) {
		return j, err
	}
	receipt, err := lastReceipt(m, now, j.Success)
	if err != nil || receipt.ID == "" {
		return j, err
	}
	week, _ := receipt.Facts["week"].(string)
	return health.Job{Success: receipt.At, Week: week}, nil
}

// lastReceipt is the newest receipt of a review after a time.
func lastReceipt(m fs.FS, now, after time.Time) (plan.Plan, error) {
	month := time.Date(now.UTC().Year(), now.UTC().Month(), 1, 0, 0, 0, 0, time.UTC)
	for range 2 {
		dir := ".mem/receipts/" + month.Format("2006/01")
		entries, err := fs.ReadDir(m, dir)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return plan.Plan{}, err
		}
		for _, e := range slices.Backward(entries) {
			at, ok := plan.IDTime(strings.TrimSuffix(e.Name(), ".json"))
			if !ok {
				continue
			}
			if !at.After(after) {
				return plan.Plan{}, nil
			}
			b, err := fs.ReadFile(m, path.Join(dir, e.Name()))
			if err != nil {
				return plan.Plan{}, err
			}
			if !bytes.Contains(b, []byte(`"review"`)) {
				continue
			}
			if r, err := plan.Decode(b); err == nil && r.Command == "review" && r.Facts["week"] != nil {
				return r, nil
			}
		}
		month = month.AddDate(0, -1, 0)
	}
	return plan.Plan{}, nil
}

func damaged(err error) bool {
	var syntax *json.SyntaxError
	var typ *json.UnmarshalTypeError
	return errors.As(err, &syntax) || errors.As(err, &typ)
}

// Due reports whether a review should be made up for: Monday 9:00 has passed
// since the last one. However many were missed, one is due.
func Due(m fs.FS, rules tiers.Rules, now time.Time) (bool, error) {
	j, err := last(m, rules, now)
	if err != nil || j.Week == Week(rules, now) {
		return false, err
	}
	due := lastDue(rules, now)
	return j.Success.Before(due) && j.Week != Week(rules, due), nil
}

// Result is what a review found, beside its plan.
type Result struct {
	Outcome    string
	Week       string
	Findings   []health.Finding // what stops it, the most urgent first
	Decisions  []archive.Decision
	Candidates []lessons.Group
	Friction   []string // places of #friction: marks, path:line
	Buffer     string   // a word about an oversized buffer, or ""
	Vanished   []string // notes that are gone since the last review
	Trouble    []string // what could not be looked at
	Note       string
}

// ErrUnhealthy says that something must be mended before the review can go on.
var ErrUnhealthy = errors.New("the memory is not healthy")

// mends are the checks that the review itself mends.
// (cold.vanished: it is told, and the new list begins without the note).
var mends = []string{"cold.count", "jobs.overdue", "cold.vanished"}

// Review plans the weekly work. report is the memory's health.
func Review(m fs.FS, rules tiers.Rules, now time.Time, report health.Report) (plan.Plan, Result, error) {
	r := Result{Week: Week(rules, now), Note: rules.NotePath(now)}
	for _, f := range report.Findings {
		if f.Check == "cold.vanished" && f.Severity == health.Fail {
			r.Vanished = append(r.Vanished, f.Path)
		}
		if f.Severity == health.Fail && !slices.Contains(mends, f.Check) {
			r.Findings = append(r.Findings, f)
		}
	}
	if len(r.Findings) > 0 {
		// A healthy buffer comes first (source: "Operational rule").
		slices.SortStableFunc(r.Findings, func(a, b health.Finding) int { return cmp.Compare(urgency(a.Check), urgency(b.Check)) })
		r.Outcome = Unhealthy
		return plan.Plan{}, r, ErrUnhealthy
	}
	p := plan.Plan{Command: "review"}
	notes, decided, err := archive.Notes(m, rules, now, days(rules.TTL.Notes))
	if err != nil {
		return p, r, err
	}
	scratch, more, err := archive.Lessons(m, rules, now, days(rules.TTL.Lessons), false)
	if err != nil {
		return p, r, err
	}
	r.Decisions = append(decided, more...)
	p.Steps = append(append(p.Steps, notes.Steps...), scratch.Steps...)
	if err := r.look(m, rules, now); err != nil {
		return p, r, err
	}
	if len(p.Steps) == 0 && len(r.Candidates) == 0 && len(r.Friction) == 0 && r.Buffer == "" && len(r.Vanished) == 0 {
		r.Outcome = Nothing
		return plan.Plan{}, r, nil
	}
	step, err := r.section(m, rules, now)
	if err != nil {
		return p, r, err
	}
	p.Steps = append(p.Steps, step)
	r.Outcome = Reviewed
	files, entries := r.Moved()
	p.Facts = plan.Facts{"week": r.Week, "note": r.Note, "notes_archived": files, "lessons_archived": entries, "candidates": len(r.Candidates), "friction": len(r.Friction)}
	return p, r, nil
}

func urgency(check string) int {
	switch {
	case check == "buffer.size":
		return 0
	case strings.HasPrefix(check, "buffer."):
		return 1
	}
	return 2
}

func days(d time.Duration) int { return int(d / (24 * time.Hour)) }

// look finds what the review only tells.
func (r *Result) look(m fs.FS, rules tiers.Rules, now time.Time) error {
	all, err := lessons.Read(m, rules)
	if err != nil && !errors.Is(err, lessons.ErrNoScratch) {
		r.Trouble = append(r.Trouble, err.Error())
	}
	r.Candidates = lessons.Candidates(all, rules, now)
	s, err := buffer.Inspect(m, rules)
	if err != nil && !errors.Is(err, buffer.ErrNoBuffer) {
		return err
	}
	if s.Buffer.Lines > rules.Limits.BufferLines {
		r.Buffer = fmt.Sprintf("%s has %d lines, the limit is %d", s.Path, s.Buffer.Lines, rules.Limits.BufferLines)
	}
	r.frictionIn(s.Path, s.Buffer.Raw)
	for i := range 7 {
		name := rules.NotePath(now.AddDate(0, 0, -i))
		if b, err := fs.ReadFile(m, name); err == nil {
			r.frictionIn(name, b)
		}
	}
	return nil
}

// frictionIn lists the #friction: marks of a text (source: tiered memory,
// "Friction Log").
func (r *Result) frictionIn(name string, b []byte) {
	n := 0
	for l := range bytes.Lines(b) {
		n++
		if bytes.Contains(l, []byte("#friction:")) {
			r.Friction = append(r.Friction, fmt.Sprintf("%s:%d", name, n))
		}
	}
}

// Moved counts the files and the lessons that were archived.
func (r Result) Moved() (files, entries int) {
	for _, d := range r.Decisions {
		switch {
		case d.Outcome != archive.Archived:
		case d.Line > 0:
			entries++
		default:
			files++
		}
	}
	return files, entries
}

// maxShown bounds how much of a lesson stands in the note, in characters.
const maxShown = 160

// section is the maintenance section of today's note.
func (r *Result) section(m fs.FS, rules tiers.Rules, now time.Time) (plan.Step, error) {
	var sb strings.Builder
	files, entries := r.Moved()
	fmt.Fprintf(&sb, "## Maintenance %s\n\n", r.Week)
	fmt.Fprintf(&sb, "- archived: %d notes, %d lessons\n", files, entries)
	for _, g := range r.Candidates {
		fmt.Fprintf(&sb, "- promotion candidate, on %d days of the last 7: %s (%s:%d)\n", g.Recent, shown(g.Lesson), g.Entries[0].File, g.Entries[0].Line)
	}
	if n := len(r.Friction); n > 0 {
		fmt.Fprintf(&sb, "- friction noted: %d (%s)\n", n, strings.Join(r.Friction[:min(n, 5)], ", "))
	}
	for _, v := range r.Vanished {
		fmt.Fprintf(&sb, "- gone since the last review, and no receipt tells of it: %s\n", v)
	}
	if r.Buffer != "" {
		fmt.Fprintf(&sb, "- %s\n", r.Buffer)
	}
	old, err := fs.ReadFile(m, r.Note)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return plan.Step{}, err
	case old == nil:
		old = []byte{}
	}
	text := strings.ReplaceAll(sb.String(), "\n", entry.EOL(old))
	place := entry.AboveClosure
	if rules.Closure {
		place = entry.WithClosure
	}
	return plan.Step{
		Kind: plan.Append, Path: r.Note, Before: plan.StateOf(old), Place: place, Stamp: rules.Day(now),
		Text: []byte(text), Seed: entry.NewNote(rules.Day(now), rules.Closure),
	}, nil
}

// shown is a lesson as it stands in a note: one line, and no mark of ours.
func shown(s string) string {
	runes := []rune(strings.Join(strings.Fields(s), " "))
	if len(runes) > maxShown {
		runes = append(runes[:maxShown], '…')
	}
	return strings.ReplaceAll(string(runes), "<!--", "<! --")
}

// Notes lists the daily notes that are active, for the next health check to
// notice one that is gone.
func Notes(m fs.FS, rules tiers.Rules) ([]string, error) {
	out := []string{}
	for _, dir := range rules.Notes {
		entries, err := fs.ReadDir(m, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if _, ok := tiers.NoteDay(e.Name()); ok && e.Type().IsRegular() {
				out = append(out, path.Join(dir, e.Name()))
			}
		}
	}
	return out, nil
}

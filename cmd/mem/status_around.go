package main

import (
	"fmt"
	"strings"
	"time"

	"github.com/tieredmem/mem/handoff"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/hooks"
	"github.com/tieredmem/mem/inbox"
)

// around is what goes on around the memory.
type around struct {
	Jobs      []jobState  `json:"jobs"`
	Waiting   []string    `json:"waiting"`    // for a person
	NotLoaded []string    `json:"not_loaded"` // by the layout's host
	Hooks     []hookState `json:"hooks"`
}

// jobState is one regular job.
type jobState struct {
	Job       string `json:"job"`
	Scheduled string `json:"scheduled"`
	Last      string `json:"last"` // RFC 3339, "" for never
	Outcome   string `json:"outcome"`
	Next      string `json:"next"` // RFC 3339, "" where nothing runs it
	Problem   string `json:"problem"`
}

// hookState is one host whose hooks are installed.
type hookState struct {
	Host string `json:"host"`
	Last string `json:"last"` // RFC 3339 of the last run of any, "" for never
}

func (a *app) around() (around, error) {
	out := around{Jobs: []jobState{}, Waiting: []string{}, NotLoaded: []string{}, Hooks: []hookState{}}
	r, err := a.checkHealth(health.Options{Only: []string{"jobs.overdue", "inbox.waiting", "load.simulated"}})
	if err != nil {
		return out, err
	}
	problem := map[string]string{}
	for _, f := range r.Findings {
		switch {
		case f.Check == "load.simulated":
			out.NotLoaded = append(out.NotLoaded, strings.TrimPrefix(f.Path+": "+f.Message, ": "))
		case f.Check == "inbox.waiting":
			out.Waiting = append(out.Waiting, f.Message)
		case f.Severity != health.Info && f.Path == health.ReviewJob:
			problem["review"] = f.Message
		case f.Severity != health.Info && f.Path == health.IngestJob:
			problem["ingest"] = f.Message
		case f.Severity != health.Info:
			out.Waiting = append(out.Waiting, f.Message)
		}
	}
	if n := a.pendingHandoffs(); n > 0 {
		out.Waiting = append(out.Waiting, plural(n, "handoff")+" in the inboxes (mem ingest)")
	}
	out.Waiting = append(out.Waiting, a.spoolWaiting()...)
	for _, name := range []string{"review", "ingest"} {
		j := jobState{Job: name, Scheduled: a.scheduled(name), Problem: problem[name]}
		if rec, err := health.ReadJob(a.ws.View(), ".mem/jobs/"+name+".json"); err == nil && !rec.At.IsZero() {
			j.Last, j.Outcome = rec.At.In(a.ws.Rules.Location).Format(time.RFC3339), rec.Outcome
		}
		if j.Scheduled == "installed" {
			j.Next = a.nextRun(name).Format(time.RFC3339)
		}
		out.Jobs = append(out.Jobs, j)
	}
	installs, err := health.ReadHookInstalls(a.ws.View())
	if err != nil {
		return out, nil //nolint:nilerr // among the findings above
	}
	for _, host := range hooks.Names() {
		h := hookState{Host: host}
		for _, i := range installs {
			if i.Host != host || len(i.Events) == 0 {
				continue
			}
			for _, e := range hooks.Events {
				if run, ok := health.ReadHookRun(a.ws.View(), host, e); ok {
					h.Last = max(h.Last, run.At.UTC().Format(time.RFC3339))
				}
			}
			out.Hooks = append(out.Hooks, h)
			break
		}
	}
	return out, nil
}

// pendingHandoffs counts what waits in the inboxes of the workspace itself;
// the others are far away, and mem handoff doctor looks at them.
func (a *app) pendingHandoffs() int {
	boxes, _ := inbox.Find(inbox.Config{Workspace: a.dir})
	n := 0
	for i := range boxes {
		if boxes[i].Problem != "" {
			continue
		}
		items, err := boxes[i].List()
		for _, it := range items {
			if r, ok := handoff.Find(it.Code); err == nil && (!ok || r.Verdict != handoff.Skipped) {
				n++
			}
		}
		boxes[i].Close()
	}
	return n
}

// nextRun is when a job that is scheduled runs next.
func (a *app) nextRun(name string) time.Time {
	t := a.at.In(a.ws.Rules.Location)
	if name == "ingest" {
		return t.Truncate(30 * time.Minute).Add(30 * time.Minute)
	}
	ahead := (8 - int(t.Weekday())) % 7
	next := time.Date(t.Year(), t.Month(), t.Day()+ahead, 9, 0, 0, 0, t.Location())
	if !next.After(t) {
		next = time.Date(t.Year(), t.Month(), t.Day()+ahead+7, 9, 0, 0, 0, t.Location())
	}
	return next
}

func (a *app) sayAround(x around) {
	a.say("")
	for _, j := range x.Jobs {
		last := "never ran"
		if t, err := time.Parse(time.RFC3339, j.Last); err == nil {
			last = fmt.Sprintf("last %s (%s)", a.stampOf(t), j.Outcome)
		}
		next := "not scheduled (mem schedule install " + j.Job + ")"
		if t, err := time.Parse(time.RFC3339, j.Next); err == nil {
			next = "next " + a.stampOf(t)
		} else if j.Scheduled != "absent" {
			next = "scheduled: " + j.Scheduled
		}
		a.say("%-8s%s; %s", j.Job, last, next)
		if j.Problem != "" {
			a.say("%-8s%s", "", j.Problem)
		}
	}
	for _, h := range x.Hooks {
		last := "never ran"
		if t, err := time.Parse(time.RFC3339, h.Last); err == nil {
			last = "last ran " + a.stampOf(t)
		}
		a.say("%-8s%s of %s", "hooks", last, h.Host)
	}
	for i, w := range x.Waiting {
		a.say("%-8s%s", first(i, "waiting"), w)
	}
	for i, w := range x.NotLoaded {
		a.say("%-8s%s", first(i, "unread"), w)
	}
}

func (a *app) stampOf(t time.Time) string {
	return t.In(a.ws.Rules.Location).Format("Mon 2006-01-02 15:04")
}

// first is a word that stands before the first of several lines only.
func first(i int, word string) string {
	if i > 0 {
		return ""
	}
	return word
}

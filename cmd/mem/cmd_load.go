package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/tieredmem/mem/buffer"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/load"
	"github.com/tieredmem/mem/search"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/workspace"
)

type loadCmd struct {
	Budget int    `default:"10000" help:"The most characters to print."`
	Since  string `placeholder:"DAY" help:"Daily notes from that day on; without it, yesterday's and today's."`
	Match  string `placeholder:"WORDS" help:"Of the lessons, those with one of these words; without it, or if none has, the latest."`
}

func (*loadCmd) Help() string {
	return "Prints, as Markdown, what a session should begin with: unfinished business, the\nalways-loaded file, the working buffer, the latest daily notes and lessons. What does\nnot fit into the budget is cut between entries, the newest kept, and named.\n\n  mem load\n  mem load --budget 4000 --match 'docker ports'"
}

// maxBudget bounds --budget, in characters.
const maxBudget = 10_000_000

func (c *loadCmd) Run(a *app) error {
	if _, err := a.open(false); err != nil {
		return err
	}
	d, err := a.load1(c.Budget, c.Since, c.Match)
	if err != nil {
		return err
	}
	return a.printLoad(d)
}

func (a *app) printLoad(d load.Document) error {
	text := d.Markdown()
	if a.env.stdoutTTY {
		for l := range strings.Lines(text) {
			a.say("%s", strings.TrimRight(l, "\r\n"))
		}
	} else {
		a.raw(text) // for an agent, as it stands on disk
	}
	outcome := "ok"
	if len(d.Trouble) > 0 {
		outcome = "partial"
	}
	sections := d.Sections
	if sections == nil {
		sections = []load.Section{}
	}
	a.object(map[string]any{"outcome": outcome, "markdown": text, "sections": sections, "left_out": attentionList(d.LeftOut), "trouble": attentionList(d.Trouble)})
	return nil
}

// load1 reads what a session begins with.
func (a *app) load1(budget int, since, match string) (load.Document, error) {
	switch {
	case budget < 1 || budget > maxBudget:
		return load.Document{}, &usageError{fmt.Sprintf("--budget %d: nothing could be printed", budget), fmt.Sprintf("a number of characters from 1 to %d", maxBudget)}
	case since != "" && !tiers.ValidDay(since):
		return load.Document{}, &usageError{fmt.Sprintf("--since %q is no day", since), "for example --since 2026-11-30"}
	case len(match) > maxQuery:
		return load.Document{}, &usageError{fmt.Sprintf("--match has more than %d bytes", maxQuery), "fewer words"}
	}
	business, err := a.business()
	if err != nil {
		return load.Document{}, err
	}
	return a.loadWith(business, budget, since, match)
}

// loadWith reads what a session begins with, after what is known already.
func (a *app) loadWith(business []string, budget int, since, match string) (load.Document, error) {
	o := load.Options{Budget: budget, Since: since, Business: business}
	if q := search.Parse(match); !q.Empty() {
		o.Match = q.Fits
	}
	d, err := load.Read(a.ws.View(), a.ws.Rules, a.at, o)
	for _, t := range d.Trouble {
		a.warn("not loaded: %s", t)
	}
	return d, err
}

// unfinished lists what a crash has left.
func (a *app) unfinished() (list []string, u workspace.Unfinished, session buffer.Session, state buffer.State, err error) {
	list = []string{}
	if u, err = a.ws.Unfinished(); err != nil {
		return list, u, session, state, err
	}
	for _, id := range u.Open {
		list = append(list, "open transaction "+id)
	}
	state, err = buffer.Inspect(a.ws.View(), a.ws.Rules)
	if err != nil {
		return list, u, session, state, nil //nolint:nilerr // health says what is wrong with the buffer
	}
	for _, p := range append(state.Pending, state.Rotating) {
		if p != "" {
			list = append(list, "interrupted rotation "+p)
		}
	}
	session = state.Session(a.ws.Rules, a.at)
	if session.StaleLock {
		list = append(list, session.Warning)
	}
	return list, u, session, state, nil
}

// maxBusiness bounds what is said of one problem, in characters.
const maxBusiness = 300

// business is what somebody should see to, a line each: for the beginning of a
// session.
func (a *app) business() ([]string, error) {
	list, u, _, _, err := a.unfinished()
	if err != nil {
		return nil, err
	}
	if u.Running != "" {
		list = nil // somebody is at it
	}
	for i := range list {
		list[i] += " (mem recover finishes it)"
	}
	r, err := a.checkHealth(health.Options{})
	if err != nil {
		return nil, err
	}
	var failed []string
	for _, f := range r.Findings {
		switch {
		case f.Check == "jobs.overdue" && f.Severity != health.Info, f.Check == "inbox.waiting":
			list = append(list, f.Message+" ("+f.Command+")")
		case f.Severity == health.Fail && !strings.HasPrefix(f.Check, "buffer.interrupted"):
			failed = append(failed, fmt.Sprintf("%s (%s)", f.Path, f.Check))
		}
	}
	if n := len(failed); n > 0 {
		more := ""
		if n > 3 {
			more = fmt.Sprintf(" and %d more", n-3)
		}
		list = append(list, fmt.Sprintf("the memory is not healthy: %s: %s%s (mem health)", plural(n, "problem"), strings.Join(failed[:min(n, 3)], ", "), more))
	}
	list = append(list, a.spoolWaiting()...)
	for i := range list {
		list[i] = oneLine(safe(list[i]), maxBusiness)
	}
	return list, nil
}

// exists reports whether a file of the workspace is there.
func (a *app) exists(name string) (bool, error) {
	_, err := fs.Lstat(a.ws.View(), path.Clean(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

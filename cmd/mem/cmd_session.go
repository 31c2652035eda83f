package main

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/guard"
	"github.com/tieredmem/mem/hooks"
	"github.com/tieredmem/mem/load"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/session"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/workspace"
)

type sessionCmd struct {
	Record  sessionRecordCmd  `cmd:"" help:"Put the last exchange into today's log: reads a Stop hook's JSON on stdin."`
	Load    sessionLoadCmd    `cmd:"" help:"Print long-term memory and the logs of today and yesterday."`
	Promote sessionPromoteCmd `cmd:"" help:"Archive old logs, and bring what lasts into long-term memory."`
}

func (*sessionCmd) Help() string {
	return "The sessions layout: a log for each day, filled from each exchange, and a digest of\nwhat lasts. What an exchange brought is chosen by an extractor of yours\n(extractor: in the configuration); without one it goes in as it was said.\n\n  mem session load\n  mem session promote\n  mem session promote --accept 1a2b"
}

// wantLayout refuses a workspace of another kind.
func (a *app) wantLayout(name string) error {
	if _, err := a.open(false); err != nil {
		return err
	}
	if got := a.ws.Rules.Name; got != name {
		return &hinted{fmt.Errorf("this workspace is of the layout %s; the command is for %s", got, name), "mem init --layout " + name + " makes one"}
	}
	return nil
}

type sessionRecordCmd struct {
	Host string `default:"claude" help:"Which host's transcript it is: claude or codex."`
}

func (c *sessionRecordCmd) Run(a *app) error {
	if a.env.getenv(inHook) != "" {
		a.object(map[string]any{"outcome": "nothing", "reason": "inside a hook"})
		return nil
	}
	b, err := io.ReadAll(io.LimitReader(a.env.stdin, hooks.MaxInput+1))
	if err != nil {
		return err
	}
	in, err := hooks.ReadInput(b)
	if err != nil {
		return &hinted{err, "give the JSON that a Stop hook gets on stdin"}
	}
	if in.StopHookActive {
		a.object(map[string]any{"outcome": "nothing", "reason": "a hook has brought the agent here"})
		return nil
	}
	if a.Workspace == "" && in.Dir != "" {
		if a.dir, err = workspace.Find(in.Dir, a.env.getenv("HOME")); err != nil {
			return err
		}
	}
	if err := a.wantLayout("sessions"); err != nil {
		return err
	}
	if a.DryRun {
		e, err := a.exchange(in)
		if err != nil {
			return err
		}
		a.say("[dry-run] record: %s", oneLine(e.Human, maxShown))
		a.object(map[string]any{"outcome": "would-record", "human": e.Human, "assistant": e.Assistant})
		return nil
	}
	r, err := a.recordExchange(in, c.Host)
	if err != nil {
		return err
	}
	for _, w := range r.Trouble {
		a.warn("%s", w)
	}
	a.say("%s: %s", r.Outcome, plural(r.Recorded, "exchange"))
	a.object(map[string]any{"outcome": r.Outcome, "recorded": r.Recorded, "waiting": r.Waiting, "receipt": r.Receipt, "trouble": attentionList(r.Trouble)})
	return nil
}

// recording is what a run of record did.
type recording struct {
	Outcome  string // recorded, waiting, nothing
	Recorded int
	Waiting  int
	Receipt  string
	Trouble  []string
}

// exchange finds what was said last.
func (a *app) exchange(in hooks.Input) (session.Exchange, error) {
	e, err := lastOf(in.Transcript)
	switch {
	case in.LastMessage == "":
	case err == nil:
		e.Assistant = in.LastMessage
	default: // it is what there is
		e = session.Exchange{Assistant: in.LastMessage}
		if errors.Is(err, session.ErrNoExchange) {
			err = nil
		}
	}
	return e, err
}

// lastOf finds the last exchange of a transcript.
func lastOf(name string) (e session.Exchange, err error) {
	if name == "" {
		return e, errors.New("the hook names no transcript")
	}
	f, err := os.Open(name)
	if err != nil {
		return e, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return e, err
	}
	if !info.Mode().IsRegular() {
		return e, fmt.Errorf("%s is no regular file", name)
	}
	return session.Last(f, info.Size())
}

// recordExchange spools the last exchange, then brings what waits into the
// logs.
func (a *app) recordExchange(in hooks.Input, host string) (recording, error) {
	r := recording{Outcome: "nothing"}
	e, err := a.exchange(in)
	if err != nil && !errors.Is(err, session.ErrNoExchange) {
		// What waits from before is brought in all the same.
		r.Trouble = append(r.Trouble, "the transcript cannot be read: "+err.Error())
	}
	if !e.Empty() {
		s := session.Spooled{Exchange: e, At: a.at, Host: host, Session: in.Session, Project: a.projectOf(in.Dir), Said: len(e.Assistant)}
		said, known := session.Known(a.ws.View(), a.at, s.Key())
		if more := s.Said - said; known && more > 0 {
			// The same exchange, and the agent has said more: that only.
			s.Human, s.Assistant = "", strings.TrimSpace(e.Assistant[said:])
			s.Exchange.ID += fmt.Sprintf("+%d", said)
			_, known = session.Known(a.ws.View(), a.at, s.Key())
		}
		s.Exchange = session.Bound(s.Exchange)
		if !known && !s.Empty() {
			b, err := json.MarshalIndent(s, "", " ")
			if err != nil {
				return r, err
			}
			if err := a.ws.Drop(strings.TrimPrefix(session.SpoolDir, ".mem/")+"/"+s.Key()+".json", append(b, '\n')); err != nil {
				return r, fmt.Errorf("the exchange could not be kept: %w", err)
			}
		}
	}
	return r, a.settle(&r)
}

// projectOf is the project that a directory belongs to: the nearest above it.
func (a *app) projectOf(dir string) string {
	best, name := "", session.Root
	real := resolved(dir)
	for p, memory := range session.Projects(a.ws.Rules) {
		home := a.expand(memory)
		if path.Base(memory) == path.Base(path.Dir(a.ws.Rules.Hot.File)) {
			home = filepath.Dir(home)
		}
		for _, d := range []string{dir, real} {
			if (d == home || strings.HasPrefix(d, home+string(filepath.Separator))) && (len(home) > len(best) || len(home) == len(best) && p < name) {
				best, name = home, p
			}
		}
	}
	return name
}

// perRun bounds how many exchanges one run brings in: an agent waits for it.
const perRun = 5

// maxAttempts is how often an exchange is given to an extractor before it goes
// into the log as it was said.
const maxAttempts = 5

// settle brings exchanges that wait into the logs.
func (a *app) settle(r *recording) error {
	list, trouble, err := session.Spool(a.ws.View())
	if err != nil {
		return err
	}
	r.Trouble = append(r.Trouble, trouble...)
	a.warnUntrusted("extractor", "projects")
	dirs := a.projectDirs()
	var notes []session.Note
	deadline := time.Now().Add(extractTimeout) // how long it takes, not what time it is
	// Those first that were tried the least, the oldest of them: one that its
	// extractor cannot deal with keeps nobody waiting.
	slices.SortStableFunc(list, func(x, y session.Spooled) int { return cmp.Compare(x.Attempts, y.Attempts) })
	for _, s := range list {
		if len(notes) == perRun || !time.Now().Before(deadline) {
			break
		}
		n := session.Note{Spooled: s}
		if _, ok := dirs[n.Project]; !ok {
			n.Project = session.Root
		}
		secret := len(guard.Secrets([]byte(s.Human+"\n"+s.Assistant))) > 0
		switch _, known := session.Known(a.ws.View(), a.at, s.Key()); {
		case known: // another run has recorded it: it only leaves the spool
		case secret:
			// It stays where only its owner reads it, and is sent nowhere.
			n.Answer = session.Answer{n.Project: {"context": {"an exchange held what looks like a credential: it is kept in the trash, not here (mem trash list)"}}}
		case len(a.ws.Rules.Extractor) > 0 && s.Attempts < maxAttempts:
			n.Raw, n.Answer, err = a.extract(s, n.Project, dirs, time.Until(deadline))
			if err == nil {
				r.Trouble = append(r.Trouble, unknownProjects(n.Answer, dirs)...)
				break
			}
			r.Trouble = append(r.Trouble, "the extractor: "+err.Error())
			if ferr := a.failedOnce(s, err); ferr != nil {
				r.Trouble = append(r.Trouble, ferr.Error())
			}
			if errors.Is(err, session.ErrAnswer) {
				continue // of this one it makes nothing; of others it may
			}
			deadline = time.Time{} // it does not work at all now
			continue
		case len(a.ws.Rules.Extractor) > 0:
			r.Trouble = append(r.Trouble, fmt.Sprintf("the extractor made nothing of an exchange in %d attempts: it goes into the log as it was said", s.Attempts))
		}
		notes = append(notes, n)
	}
	slices.SortStableFunc(notes, func(x, y session.Note) int { return x.At.Compare(y.At) })
	r.Waiting = len(list) - len(notes)
	if len(notes) == 0 {
		if r.Waiting > 0 {
			r.Outcome = "waiting"
		}
		return nil
	}
	inside := a.recordOutside(notes, dirs, r)
	p, err := a.update(func(m fs.FS) (plan.Plan, error) {
		var still []session.Note
		for _, n := range notes { // another run may have recorded some meanwhile
			b, err := fs.ReadFile(m, n.Name)
			if err != nil {
				continue
			}
			n.Spooled.Raw = bytes.Clone(b)
			if _, known := session.Known(m, a.at, n.Key()); known {
				n.Elsewhere, n.Answer, n.Raw = true, session.Answer{}, nil
			}
			still = append(still, n)
		}
		if len(still) == 0 {
			return plan.Plan{}, nil
		}
		return session.Record(m, a.ws.Rules, still, inside)
	})
	if err != nil {
		return err
	}
	r.Outcome, r.Recorded, r.Receipt = "recorded", len(notes), p.ID
	return nil
}

func unknownProjects(answer session.Answer, dirs map[string]string) []string {
	var out []string
	for _, name := range slices.Sorted(maps.Keys(answer)) {
		if _, ok := dirs[name]; !ok {
			out = append(out, fmt.Sprintf("the extractor named the project %q, which is not configured: what it says of it is only in .debug", name))
		}
	}
	return out
}

// projectDirs are the directories of the projects' memories, as configured.
func (a *app) projectDirs() map[string]string { return session.Projects(a.ws.Rules) }

// outside reports whether a project's memory is outside the workspace.
func outside(dir string) bool {
	return filepath.IsAbs(dir) || strings.HasPrefix(dir, "~") || !filepath.IsLocal(dir)
}

// recordOutside brings what belongs to projects outside the workspace into
// their own logs, and gives the projects that are inside. Merging is the same
// done twice, so a crash before the rest costs nothing. What cannot be written
// there goes to root's log.
func (a *app) recordOutside(notes []session.Note, dirs map[string]string, r *recording) map[string]string {
	inside := map[string]string{}
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		if !outside(dirs[name]) {
			inside[name] = dirs[name]
		}
	}
	for _, name := range slices.Sorted(maps.Keys(dirs)) {
		if !outside(dirs[name]) {
			continue
		}
		var theirs []session.Note
		for _, n := range notes {
			if _, ok := n.Answer[name]; ok || n.Project == name {
				n.Name, n.Raw = "", nil
				theirs = append(theirs, n)
			}
		}
		if len(theirs) == 0 {
			continue
		}
		err := a.recordThere(a.expand(dirs[name]), name, theirs)
		for i := range notes {
			if err == nil && notes[i].Project == name {
				notes[i].Elsewhere = true
			}
		}
		if err != nil {
			r.Trouble = append(r.Trouble, fmt.Sprintf("project %s (%s): %v: it goes to root's log", name, dirs[name], err))
			for i := range notes {
				if notes[i].Answer[name] != nil {
					notes[i].Answer = maps.Clone(notes[i].Answer)
					notes[i].Answer[session.Root] = addSections(notes[i].Answer[session.Root], notes[i].Answer[name])
				}
			}
		}
	}
	for i := range notes {
		if _, ok := inside[notes[i].Project]; !ok {
			notes[i].Project = session.Root
		}
	}
	return inside
}

func addSections(a, b session.Sections) session.Sections {
	out := session.Sections{}
	for _, s := range []session.Sections{a, b} {
		for k, items := range s {
			out[k] = append(out[k], items...)
		}
	}
	return out
}

// recordThere records into a memory outside the workspace: a workspace of its
// own, with its own lock.
func (a *app) recordThere(memory, name string, notes []session.Note) error {
	dir := filepath.Dir(memory)
	if _, err := os.Stat(dir); err != nil {
		return err // only directories in the workspace are made
	}
	disk, err := a.openWorkspace(dir)
	if err != nil {
		return err
	}
	if err := workspace.MayWrite(dir, disk, a.ws.Rules); err != nil {
		return err
	}
	there := &workspace.Workspace{Dir: dir, Rules: a.ws.Rules, Disk: disk, Lock: a.lock(dir), LockWait: a.LockWait, At: a.at, Host: a.ws.Host, Features: features(a.ws.Rules, a.at)}
	_, _, err = there.Update("session record", func(m fs.FS) (plan.Plan, error) {
		return session.Record(m, a.ws.Rules, notes, map[string]string{name: filepath.Base(memory)})
	})
	return err
}

type sessionLoadCmd struct {
	Project string `arg:"" optional:"" help:"A project of mem.yaml; without it, root."`
	Budget  int    `default:"20000" help:"The most characters to print."`
}

// projectRules are the rules of one project's memory.
func (a *app) projectRules(project string) (tiers.Rules, string, error) {
	rules := a.ws.Rules
	dirs := a.projectDirs()
	if project == "" {
		project = session.Root
	}
	dir, ok := dirs[project]
	if !ok {
		return rules, "", &hinted{fmt.Errorf("there is no project %q", project), "projects: " + strings.Join(slices.Sorted(maps.Keys(dirs)), ", ") + " (projects: in mem.yaml)"}
	}
	if outside(dir) {
		return rules, "", &hinted{fmt.Errorf("the project %s is outside this workspace", project), "mem --workspace " + filepath.Dir(a.expand(dir)) + " session …"}
	}
	rules.Hot.File = path.Join(dir, path.Base(rules.Hot.File))
	rules.Notes = []string{path.Join(dir, "logs")}
	return rules, dir, nil
}

func (c *sessionLoadCmd) Run(a *app) error {
	if err := a.wantLayout("sessions"); err != nil {
		return err
	}
	if c.Budget < 1 || c.Budget > maxBudget {
		return &usageError{fmt.Sprintf("--budget %d: nothing could be printed", c.Budget), fmt.Sprintf("a number of characters from 1 to %d", maxBudget)}
	}
	rules, _, err := a.projectRules(c.Project)
	if err != nil {
		return err
	}
	business, err := a.business()
	if err != nil {
		return err
	}
	d, err := load.Read(a.ws.View(), rules, a.at, load.Options{Budget: c.Budget, Business: business})
	if err != nil {
		return err
	}
	return a.printLoad(d)
}

type sessionPromoteCmd struct {
	Project string   `arg:"" optional:"" help:"A project of mem.yaml; without it, root."`
	Accept  []string `placeholder:"ID" help:"Write these candidates into long-term memory."`
	All     bool     `help:"Write all candidates."`
}

func (*sessionPromoteCmd) Help() string {
	return "Moves logs older than 30 days to logs/archives, lists decisions and knowledge of the\nothers that long-term memory lacks, and writes those that you accept. Over 300 lines\nlong-term memory is folded and its oldest sections move to logs/archives too; the\nnewest stay.\n\n  mem session promote --dry-run\n  mem session promote --accept 1a2b --accept 3c4d"
}

func (c *sessionPromoteCmd) Run(a *app) error {
	if err := a.wantLayout("sessions"); err != nil {
		return err
	}
	if c.All && len(c.Accept) > 0 {
		return &usageError{"--all and --accept exclude each other", "name ids, or take all"}
	}
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	_, dir, err := a.projectRules(c.Project)
	if err != nil {
		return err
	}
	var r session.Promotion
	p, err := a.update(func(m fs.FS) (p plan.Plan, err error) {
		p, r, err = session.Promote(m, ws.Rules, a.at, dir, session.Options{Accept: c.Accept, All: c.All})
		return p, err
	})
	if errors.Is(err, session.ErrNoCandidate) {
		return &hinted{err, "mem session promote lists them"}
	}
	if err != nil {
		return err
	}
	for _, m := range r.Archived {
		a.say("%s → %s (%d days)", m.From, m.To, m.Age)
	}
	accepted := map[string]bool{}
	for _, x := range r.Accepted {
		accepted[x.ID] = true
		a.say("accepted  %s  %s", x.ID, oneLine(x.Text, maxShown))
	}
	for _, x := range r.Candidates {
		if !accepted[x.ID] {
			a.say("candidate %s  %s  %s", x.ID, x.Day, oneLine(x.Text, maxShown))
		}
	}
	outcome := "promoted"
	if p.Empty() {
		outcome = "nothing"
	}
	a.done(p, map[string]any{"outcome": outcome, "archived": r.Archived, "candidates": r.Candidates, "accepted": r.Accepted, "lines": r.Lines, "limit": r.Limit, "moved": r.Moved, "folded": r.Folded},
		"long-term memory: %d of %d lines; %d moved to the archive, %d folded", r.Lines, r.Limit, r.Moved, r.Folded)
	return nil
}

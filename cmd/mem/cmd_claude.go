package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/tieredmem/mem/feedback"
	"github.com/tieredmem/mem/heartbeat"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
)

type feedbackCmd struct {
	Add  feedbackAddCmd  `cmd:"" help:"Add what a person has corrected or confirmed."`
	List feedbackListCmd `cmd:"" default:"withargs" help:"List the entries (the default)."`
}

func (*feedbackCmd) Help() string {
	return "Corrections and confirmations of the claude layout, numbered F001, F002, …; a number\nis never used again.\n\n  mem feedback add --correction 'check the docs first' --why 'guessed an API' --how 'before using a new library'\n  mem feedback add --confirmation 'small commits' --why 'easy to review' --context 'the parser work'"
}

type feedbackAddCmd struct {
	Correction   bool   `xor:"kind" help:"Something not to be done again."`
	Confirmation bool   `xor:"kind" help:"Something that was right, to be done again."`
	Rule         string `arg:"" help:"The rule, or the approach, in a line."`
	Why          string `required:"" help:"What went wrong, or what made it right."`
	How          string `help:"Of a correction: how to apply it."`
	Context      string `help:"Of a confirmation: what was being worked on."`
	Anyway       bool   `help:"Also if it names a relative day, or if another entry says much the same."`
}

func (c *feedbackAddCmd) Run(a *app) error {
	if err := a.wantLayout("claude"); err != nil {
		return err
	}
	n := feedback.New{Confirmation: c.Confirmation, Rule: c.Rule, Why: c.Why, How: c.How, Anyway: c.Anyway}
	switch {
	case !c.Correction && !c.Confirmation:
		return &usageError{"is it a correction or a confirmation?", "--correction or --confirmation"}
	case c.Correction && (c.How == "" || c.Context != ""):
		return &usageError{"a correction says how to apply it", "--how TEXT"}
	case c.Confirmation && (c.Context == "" || c.How != ""):
		return &usageError{"a confirmation says what was being worked on", "--context TEXT"}
	case c.Confirmation:
		n.How = c.Context
	}
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	if there, err := a.exists(feedback.Ledger); err != nil {
		return err
	} else if !there { // it was lost, or this is a clone: the receipts may tell
		if n.Floor, err = a.feedbackGiven(); err != nil {
			return err
		}
	}
	var e feedback.Entry
	p, err := a.update(func(m fs.FS) (p plan.Plan, err error) {
		p, e, err = feedback.Add(m, ws.Rules, a.at, n)
		return p, err
	})
	var near *feedback.NearError
	if errors.As(err, &near) {
		a.failFields = map[string]any{"entry": near.Entry, "id": near.Entry.Name()}
		return &conflicted{hinted{err, fmt.Sprintf("%s:%d has it; change that one with mem write if it should say more, or --anyway", feedback.File, near.Entry.Line)}}
	}
	if errors.Is(err, feedback.ErrIncomplete) {
		return &usageError{err.Error(), "mem feedback add --help"}
	}
	if err != nil {
		return err
	}
	a.done(p, map[string]any{"outcome": "added", "id": e.Name(), "entry": e}, "added %s: %s", e.Name(), e.Rule)
	return nil
}

// feedbackGiven is the highest number that receipts tell of.
func (a *app) feedbackGiven() (int, error) {
	ids, err := a.receiptIDs(1 << 30)
	if err != nil {
		return 0, err
	}
	last := 0
	for _, id := range ids {
		b, err := fs.ReadFile(a.ws.View(), journal.ReceiptPath(id))
		if err != nil || !bytes.Contains(b, []byte(`"feedback add"`)) {
			continue
		}
		var r struct {
			Facts struct {
				ID string `json:"id"`
			} `json:"facts"`
		}
		if json.Unmarshal(b, &r) == nil {
			last = max(last, feedback.Number(r.Facts.ID))
		}
	}
	return last, nil
}

type feedbackListCmd struct{}

func (*feedbackListCmd) Run(a *app) error {
	if err := a.wantLayout("claude"); err != nil {
		return err
	}
	b, err := fs.ReadFile(a.ws.View(), feedback.File)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	list := feedback.Parse(b)
	if list == nil {
		list = []feedback.Entry{}
	}
	for _, e := range list {
		kind := "correction"
		if e.Confirmed {
			kind = "confirmed"
		}
		a.say("%s  %-10s  %-10s  %s", e.Name(), kind, e.Date, e.Rule)
	}
	if len(list) == 0 {
		a.say("no feedback yet")
	}
	a.object(map[string]any{"outcome": "ok", "entries": list})
	return nil
}

type heartbeatCmd struct {
	Apply bool `help:"Carry out the fourth phase: move sections of an oversized MEMORY.md to topics."`
}

func (*heartbeatCmd) Help() string {
	return "The four-phase care of the claude layout, as far as it needs no model: four lists for\nan agent. What was verified is remembered, so that the next beat takes the next two.\nNothing is ever deleted.\n\n  mem heartbeat\n  mem heartbeat --apply"
}

// beats is where it is remembered when an entry was verified.
const beats = "heartbeat/verified.json"

func (c *heartbeatCmd) Run(a *app) error {
	if err := a.wantLayout("claude"); err != nil {
		return err
	}
	ws := a.ws
	checked := map[string]time.Time{}
	if b, err := fs.ReadFile(ws.View(), ".mem/"+beats); err == nil {
		if err := json.Unmarshal(b, &checked); err != nil {
			a.warn(".mem/%s is damaged and begun anew: %v", beats, err)
			checked = map[string]time.Time{}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	r, err := heartbeat.Look(ws.View(), ws.Rules, a.at, heartbeat.Options{Checked: checked, Exists: a.pathThere, Command: func(name string) bool {
		_, err := exec.LookPath(name)
		return err == nil
	}})
	if err != nil {
		return err
	}
	outcome, receipt := "ok", ""
	if c.Apply {
		if ws, err = a.open(true); err != nil {
			return err
		}
		p, err := a.update(func(m fs.FS) (p plan.Plan, err error) {
			p, r.Tidy, err = heartbeat.Tidy(m, ws.Rules, a.at)
			return p, err
		})
		if err != nil {
			return err
		}
		if !p.Empty() {
			outcome, receipt = "tidied", p.ID
		}
	}
	a.sayBeat(r, c.Apply)
	if !a.DryRun && len(r.Checked) > 0 {
		if _, err := a.open(true); err != nil {
			a.warn("what was verified is not remembered: %v", err)
		} else {
			for _, k := range r.Checked {
				checked[k] = a.at
			}
			b, err := json.Marshal(checked)
			if err == nil {
				err = ws.Record("heartbeat", beats, append(b, '\n'))
			}
			if err != nil {
				a.warn("what was verified is not remembered: %v", err)
			}
		}
	}
	fields := map[string]any{"outcome": outcome, "catch_up": r.CatchUp, "consolidate": r.Consolidate, "verify": r.Verify, "tidy": r.Tidy, "size": r.Size, "limit": r.Limit}
	if receipt != "" {
		fields["receipt"] = receipt
	}
	a.object(fields)
	return nil
}

// pathThere reports whether a path that the memory names is there: from the
// workspace, or absolute. What may be no path of this machine (an address of a
// service, say) is not said to be missing.
func (a *app) pathThere(name string) bool {
	for _, home := range []string{"$HOME/", "${HOME}/"} {
		if rest, ok := strings.CutPrefix(name, home); ok {
			name = "~/" + rest
		}
	}
	if strings.ContainsAny(name, "$<>{}") {
		return true // it is filled in when it is used
	}
	if i := strings.LastIndexByte(name, ':'); i > 0 && strings.Trim(name[i+1:], "0123456789") == "" {
		name = name[:i] // a line
	}
	full := filepath.Clean(a.expand(strings.TrimPrefix(name, "./")))
	if filepath.IsAbs(name) {
		top := string(filepath.Separator) + strings.SplitN(strings.TrimPrefix(full, string(filepath.Separator)), string(filepath.Separator), 2)[0]
		if _, err := os.Lstat(top); err != nil {
			return true
		}
	}
	for _, p := range []string{full, unescaped(full)} {
		if hits, err := filepath.Glob(p); err == nil && len(hits) > 0 {
			return true
		}
		if _, err := os.Lstat(p); err == nil || !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotDir) {
			return true
		}
	}
	return false
}

// unescaped is a path as a link writes it, as it is.
func unescaped(s string) string {
	if u, err := url.PathUnescape(s); err == nil {
		return u
	}
	return s
}

func (a *app) sayBeat(r heartbeat.Report, applied bool) {
	list := func(title string, items []heartbeat.Item, none string) {
		a.say("%s", title)
		for _, i := range items {
			where := i.Path
			if i.Line > 0 {
				where = fmt.Sprintf("%s:%d", i.Path, i.Line)
			}
			a.say("%s", strings.TrimRight("- "+where+"  "+i.Text, " "))
			a.say("    %s", i.Why)
		}
		if len(items) == 0 {
			a.say("- %s", none)
		}
	}
	list("1 Catch-up", r.CatchUp, "nothing is missing")
	list("2 Consolidate", r.Consolidate, "the latest notes hold nothing new")
	list("3 Verify", r.Verify, "no entry names a path or a program")
	a.say("4 Tidy")
	for _, m := range r.Tidy {
		verb := "would move"
		if applied && !a.DryRun {
			verb = "moved"
		}
		a.say("- %s %q (line %d, %d bytes) to %s", verb, m.Title, m.Line, m.Bytes, m.To)
	}
	left := r.Size
	for _, m := range r.Tidy {
		left -= m.Bytes
	}
	if len(r.Tidy) > 0 && left > r.Limit {
		a.say("    even so it is over its limit: about %d of %d bytes; split a section by hand", left, r.Limit)
	}
	switch {
	case len(r.Tidy) > 0 && !applied:
		a.say("    mem heartbeat --apply does it")
	case len(r.Tidy) == 0 && r.Size > r.Limit:
		a.say("- %s has %d bytes, at most %d, and no section that can be moved: split one by hand", a.ws.Rules.Hot.File, r.Size, r.Limit)
	case len(r.Tidy) == 0:
		a.say("- %s has %d of %d bytes", a.ws.Rules.Hot.File, r.Size, r.Limit)
	}
}

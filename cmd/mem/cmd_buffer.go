package main

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"strings"
	"unicode"

	"github.com/tieredmem/mem/buffer"
	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/guard"
	"github.com/tieredmem/mem/plan"
)

type noteCmd struct {
	Text        []string `arg:"" help:"The line; several words are joined."`
	AllowSecret bool     `help:"Write it even if it looks like a credential."`
}

func (*noteCmd) Help() string {
	return "Adds \"- TEXT\" under Active Task and stamps last_active. Write first, then\nanswer: what is in the buffer survives a restart.\n\n  mem note \"decided: port 8443, because 443 is taken\""
}

func (c *noteCmd) Run(a *app) error {
	text, err := oneText(strings.Join(c.Text, " "))
	if err != nil {
		return err
	}
	if hits := guard.Secrets([]byte(text)); len(hits) > 0 && !c.AllowSecret {
		return &hinted{fmt.Errorf("the text looks like a credential (%s); memory is no place for it", hits[0].Rule), "keep it in a secret store and note where; --allow-secret writes it all the same"}
	}
	p, err := a.update(func(m fs.FS) (plan.Plan, error) { return buffer.Note(m, a.ws.Rules, a.at, text) })
	if err != nil {
		return err
	}
	a.done(p, map[string]any{"outcome": "noted", "path": a.ws.Rules.Buffer.File}, "noted in %s", a.ws.Rules.Buffer.File)
	return nil
}

// maxText is the most a note on the command line may hold, in bytes.
const maxText = 64 << 10

// oneText checks a text that becomes a list item.
func oneText(s string) (string, error) {
	s = strings.ReplaceAll(s, "\r\n", "\n")
	if strings.TrimSpace(s) == "" {
		return "", &usageError{"the text is empty", "mem note \"what happened\""}
	}
	if len(s) > maxText {
		return "", &usageError{fmt.Sprintf("the text has %d bytes, at most %d", len(s), maxText), "write longer text to a file: mem write FILE"}
	}
	if i := entry.InvalidAt([]byte(s)); i >= 0 {
		return "", &usageError{fmt.Sprintf("the text is not UTF-8 (byte %d)", i), "convert it first"}
	}
	for _, r := range s {
		if unicode.IsControl(r) && r != '\n' && r != '\t' {
			return "", &usageError{fmt.Sprintf("the text holds the control character %U", r), "remove it"}
		}
	}
	return s, nil
}

type rotateCmd struct {
	Force bool `help:"Also below the limit."`
	Soft  bool `help:"Not while a session is active."`
}

func (*rotateCmd) Help() string {
	return "When the working buffer is over its limit (80 lines), its text goes into today's\nnote, above the closure block, and a fresh buffer takes its place. For the end of\na session. What an earlier crash left is recovered first.\n\n  mem rotate            # only above the limit\n  mem rotate --force    # whatever it holds"
}

func (c *rotateCmd) Run(a *app) error {
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	var d buffer.Decision
	receipt, err := a.rotate(c, &d)
	if err != nil {
		a.failFields = map[string]any{"lines": d.Lines, "note": d.Note}
		return a.pendingError(err)
	}
	fields := map[string]any{"outcome": "nothing", "lines": d.Lines, "limit": d.Limit, "note": d.Note, "reason": "below-limit"}
	switch {
	case !receipt.Empty():
		note, _ := receipt.Facts["note"].(string)
		lines := count(receipt.Facts["lines"])
		fields["outcome"], fields["lines"], fields["note"] = "rotated", lines, note
		delete(fields, "reason")
		a.done(receipt, fields, "rotated %s to %s", plural(lines, "line"), note)
		a.warnSecrets(note, receipt)
		return nil
	case d.Deferred != "":
		fields["outcome"], fields["reason"] = "deferred", d.Deferred
		a.say("deferred: a session is active (%s)", d.Deferred)
	case d.Empty:
		fields["reason"] = "empty"
		a.say("nothing to rotate: %s is empty", ws.Rules.Buffer.File)
	default:
		a.say("%d/%d lines", d.Lines, d.Limit)
	}
	a.object(fields)
	return nil
}

func (a *app) rotate(c *rotateCmd, d *buffer.Decision) (plan.Plan, error) {
	f := func(m fs.FS) (p plan.Plan, err error) {
		p, *d, err = buffer.Rotate(m, a.ws.Rules, a.at, buffer.Options{Force: c.Force, Soft: c.Soft})
		return p, err
	}
	// Most runs find the buffer below its limit. They need no lock: nothing is
	// changed, and what a crash left shows in the same look.
	s, err := buffer.Inspect(a.ws.View(), a.ws.Rules)
	if err == nil && s.Quiet(a.ws.Rules) && (s.Buffer.Empty() || !c.Force && s.Buffer.Lines <= a.ws.Rules.Limits.BufferLines) {
		if u, err := a.ws.Unfinished(); err == nil && len(u.Open) == 0 && u.Running == "" {
			return f(a.ws.View())
		}
	}
	if err == nil && c.Soft && len(s.Pending) == 0 && s.Rotating == "" {
		// Before recovery, which would take the sentinel for stale.
		if session := s.Session(a.ws.Rules, a.at); session.Active {
			*d = buffer.Decision{Lines: s.Buffer.Lines, Limit: a.ws.Rules.Limits.BufferLines, Note: a.ws.Rules.NotePath(a.at), Deferred: session.Reason}
			return plan.Plan{}, nil
		}
	}
	return a.update(f)
}

// pendingError tells where the text of a failed rotation waits.
func (a *app) pendingError(err error) error {
	s, ierr := buffer.Inspect(a.ws.View(), a.ws.Rules)
	if ierr != nil || len(s.Pending) == 0 {
		return err
	}
	a.failFields["outcome"], a.failFields["pending"] = "pending", s.Pending
	return &hinted{err, "the text waits in " + strings.Join(s.Pending, ", ") + "; mend the cause, then run mem recover"}
}

func plural(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func count(v any) int {
	switch n := v.(type) {
	case int:
		return n
	case float64:
		return int(n)
	}
	return 0
}

// warnSecrets says that rotated text holds what looks like a credential: it is
// kept, since nothing may be lost.
func (a *app) warnSecrets(note string, p plan.Plan) {
	for _, s := range p.Steps {
		if i := entry.InvalidAt(s.Text); i >= 0 {
			a.warn("%s: the rotated text is not UTF-8 at byte %d of its block; it was kept as it is", note, i)
		}
		for _, h := range guard.Secrets(s.Text) {
			a.warn("%s: the rotated text holds what looks like a credential (%s, line %d of the block); nothing was removed", note, h.Rule, h.Line)
		}
	}
}

type closeCmd struct {
	Decisions string `help:"What was changed."`
	Signal    string `help:"What was learned about the system."`
	Open      string `help:"What remains."`
}

func (*closeCmd) Help() string {
	return "Sets the four lines that end today's note: Updated, Decisions, Signal, Open.\nWhat is not given keeps its value, or is \"none\".\n\n  mem close --decisions \"moved to port 8443\" --open \"renew the certificate\""
}

func (c *closeCmd) Run(a *app) error {
	arg := entry.ClosureArg{}
	for _, f := range []struct {
		name string
		in   string
		to   *string
	}{{"decisions", c.Decisions, &arg.Decisions}, {"signal", c.Signal, &arg.Signal}, {"open", c.Open, &arg.Open}} {
		if f.in == "" {
			continue
		}
		text, err := oneText(f.in)
		if err != nil {
			return err
		}
		if strings.Contains(text, "\n") {
			return &usageError{"--" + f.name + " takes one line", "a closure block has one line a field"}
		}
		if hits := guard.Secrets([]byte(text)); len(hits) > 0 {
			return &hinted{fmt.Errorf("--%s looks like a credential (%s); memory is no place for it", f.name, hits[0].Rule), "keep it in a secret store and note where"}
		}
		*f.to = strings.TrimSpace(text)
	}
	p, err := a.update(func(m fs.FS) (plan.Plan, error) { return buffer.Close(m, a.ws.Rules, a.at, arg) })
	if err != nil {
		return err
	}
	note := a.ws.Rules.NotePath(a.at)
	a.done(p, map[string]any{"outcome": "closed", "note": note}, "closed %s", note)
	return nil
}

type recoverCmd struct{}

func (*recoverCmd) Help() string {
	return "Finishes interrupted transactions and rotations, brings .pending and .rotating\ntext to its note, carries over what was written to a file while it was being\nreplaced, and removes stale sentinels. A second run finds nothing to do.\nExit 2 when something needs a person; it is named."
}

func (*recoverCmd) Run(a *app) error {
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	rec, err := ws.Recover()
	if err != nil {
		return err
	}
	outcome := "clean"
	prefix := ""
	if a.DryRun {
		prefix = "[dry-run] "
	}
	if len(rec.Actions) > 0 {
		outcome = "recovered"
	}
	for _, s := range rec.Actions {
		a.say("%srecovered: %s", prefix, s)
	}
	for _, x := range rec.Attention {
		outcome = "attention"
		a.say("%sneeds a person: %s: %s", prefix, x.Path, x.Why)
		if x.Hint != "" {
			a.say("%s  %s", prefix, x.Hint)
		}
		a.code = exitFailed
	}
	if rec.Clean() {
		a.say("%sclean: nothing to recover", prefix)
	}
	receipts := []string{}
	for _, p := range rec.Receipts {
		receipts = append(receipts, p.ID)
	}
	if err := a.commitGit(rec.Receipts...); err != nil {
		a.notCommitted(err)
	}
	if rec.Actions == nil {
		rec.Actions = []string{}
	}
	fields := map[string]any{"outcome": outcome, "actions": rec.Actions, "attention": attentionList(rec.Attention), "receipts": receipts}
	if len(receipts) > 0 {
		fields["receipt"] = receipts[len(receipts)-1]
	}
	a.object(fields)
	return nil
}

func attentionList[T any](items []T) []T {
	if items == nil {
		return []T{}
	}
	return items
}

// jsonText is a compact JSON text of v, for humans in a table.
func jsonText(v any) string {
	b, err := json.Marshal(v)
	if err != nil {
		return err.Error()
	}
	return string(b)
}

package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"strconv"
	"strings"
	"syscall"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tieredmem/mem/buffer"
	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/workspace"
)

func (unlocked) Lock(context.Context, string) error { return nil }
func (unlocked) Unlock() error                      { return nil }

// errNotDir is what a path through a file is on this system.
var errNotDir = syscall.ENOTDIR

// hinted is an error with the command that mends it.
type hinted struct {
	err  error
	hint string
}

func (e *hinted) Error() string { return e.err.Error() }
func (e *hinted) Unwrap() error { return e.err }
func (e *hinted) Mend() string  { return e.hint }

// conflicted is a conflict with its own words.
type conflicted struct{ hinted }

// usageError is a mistake in how the command was called.
type usageError struct{ msg, hint string }

func (e *usageError) Error() string { return e.msg }
func (e *usageError) Mend() string  { return e.hint }

// conflictError: a target was not what the caller expected.
type conflictError struct {
	path, expected, found, draft, receipt string
	dryRun                                bool
}

func (e *conflictError) Error() string {
	s := fmt.Sprintf("%s is not what was expected (expected %s", e.path, e.expected)
	if e.found != "" {
		s += ", found " + e.found
	}
	return s + "); nothing was overwritten"
}

func (e *conflictError) Mend() string {
	if e.dryRun {
		return "the new text would be kept in " + e.draft
	}
	return "the new text is in " + e.draft + "; read " + e.path + " again and merge by hand"
}

// exitCode maps an error to the exit code: the only place that does.
func exitCode(err error) int {
	var (
		usage    *usageError
		locked   *workspace.LockedError
		conflict *conflictError
		other    *conflicted
		undo     *journal.UndoError
	)
	switch {
	case errors.As(err, &usage):
		return exitUsage
	case errors.As(err, &locked):
		return exitLocked
	case errors.As(err, &conflict), errors.As(err, &other), errors.As(err, &undo):
		return exitConflict
	}
	return exitFailed
}

// hint is what to do about an error.
func (a *app) hint(err error) string {
	var m interface{ Mend() string }
	var open *journal.OpenError
	var sync *durable.SyncError
	switch {
	case errors.As(err, &open):
		return "mem recover finishes it once the cause is mended"
	case errors.As(err, &m):
		return m.Mend()
	case errors.As(err, &sync) && sync.Dir:
		return "what was done is there, but a power cut could take it away: mend the cause, then run mem recover"
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return "make room on the disk, then run the command again; nothing was changed"
	case errors.Is(err, syscall.EROFS):
		return "the file system is mounted read-only; nothing was changed"
	case errors.Is(err, fs.ErrPermission):
		return "check who owns the workspace and its directories' modes; nothing was changed"
	case strings.Contains(err.Error(), "path escapes from parent"): // os.Root has no error to compare with
		return "a directory on the way is a symlink out of the workspace; mem works only inside it"
	case errors.Is(err, buffer.ErrNoBuffer):
		return "the canonical and openclaw layouts have one; mem status says which layout this is"
	case errors.Is(err, buffer.ErrInterrupted):
		return "mem recover says what is in the way"
	case errors.Is(err, syscall.EMFILE):
		return "too many open files: raise the limit with ulimit -n"
	}
	return ""
}

// fail prints an error and returns its exit code.
func (a *app) fail(err error) int {
	code := exitCode(err)
	hint := a.hint(err)
	fmt.Fprintf(a.env.stderr, "mem: error: %s\n", safe(err.Error()))
	if hint != "" {
		first, rest, _ := strings.Cut(hint, "\n")
		fmt.Fprintf(a.env.stderr, "mem: hint: %s\n", safe(first))
		for l := range strings.Lines(rest) { // to be copied as it is
			fmt.Fprintln(a.env.stderr, safe(strings.TrimRight(l, "\r\n")))
		}
	}
	if a.JSON {
		fields := map[string]any{"outcome": "error", "error": map[string]any{"message": err.Error(), "hint": hint, "exit": code}}
		var conflict *conflictError
		if errors.As(err, &conflict) {
			fields["outcome"], fields["path"], fields["draft"], fields["receipt"] = "conflict", conflict.path, conflict.draft, conflict.receipt
		}
		for k, v := range a.failFields {
			fields[k] = v
		}
		a.object(fields)
	}
	return code
}

// say prints a line of the result, unless quiet or JSON.
func (a *app) say(format string, args ...any) {
	if !a.Quiet && !a.JSON {
		fmt.Fprintln(a.env.stdout, safe(fmt.Sprintf(format, args...)))
	}
}

// raw prints text as it is: only for text that was made or escaped here.
func (a *app) raw(s string) {
	if !a.Quiet && !a.JSON {
		fmt.Fprint(a.env.stdout, s)
	}
}

// warn prints a warning to stderr.
func (a *app) warn(format string, args ...any) {
	fmt.Fprintf(a.env.stderr, "mem: warning: %s\n", safe(fmt.Sprintf(format, args...)))
}

// object prints the run's JSON object with the fixed parts.
func (a *app) object(fields map[string]any) {
	if !a.JSON {
		return
	}
	at := a.at
	if at.IsZero() {
		at = a.env.now
	}
	o := map[string]any{"command": a.command, "at": at.Format(time.RFC3339), "workspace": a.dir, "layout": ""}
	if a.ws != nil {
		o["layout"] = a.ws.Rules.Name
	}
	if a.DryRun {
		o["dry_run"] = true
	}
	if len(a.recovered) > 0 {
		o["recovered"] = a.recovered
	}
	if a.gitError != "" {
		o["git_error"] = a.gitError
	}
	for k, v := range fields {
		o[k] = v
	}
	e := json.NewEncoder(a.env.stdout)
	e.SetEscapeHTML(false)
	if err := e.Encode(o); err != nil {
		a.warn("%v", err)
	}
}

// done prints the result of a run that wrote: its line, and in a dry run the
// plan it would have carried out.
func (a *app) done(p plan.Plan, fields map[string]any, format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if a.DryRun {
		a.say("[dry-run] %s", line)
		for _, s := range p.Steps {
			a.say("[dry-run]   %s", describe(s))
		}
	} else {
		a.say("%s", line)
		if a.Verbose && p.ID != "" {
			a.say("receipt %s", p.ID)
		}
	}
	if p.ID != "" {
		fields["receipt"] = p.ID
		if a.DryRun {
			fields["receipt"], fields["plan"] = "", stepList(p)
		}
	}
	a.object(fields)
}

// describe says what a step does, for people.
func describe(s plan.Step) string {
	switch s.Kind {
	case plan.Mkdir:
		return "make the directory " + s.Path
	case plan.Create:
		return fmt.Sprintf("create %s (%d bytes)", s.Path, s.After.Size)
	case plan.Append:
		if !s.Before.Exists() {
			return fmt.Sprintf("create %s (%d bytes)", s.Path, s.After.Size)
		}
		return fmt.Sprintf("add %d bytes to %s", len(s.Added), s.Path)
	case plan.Edit:
		return "change " + s.Path + " (" + s.Place + ")"
	case plan.Replace:
		return fmt.Sprintf("replace %s (%d bytes by %d)", s.Path, s.Before.Size, s.After.Size)
	case plan.Seal:
		return "set " + s.Path + " aside, with a fresh one in its place"
	case plan.Trash:
		return "move " + s.Path + " to the trash"
	}
	return "move " + s.Path + " to " + s.To
}

type stepView struct {
	Kind    string `json:"kind"`
	Path    string `json:"path"`
	To      string `json:"to,omitempty"`
	Before  string `json:"before_sha256"`
	After   string `json:"after_sha256"`
	Outcome string `json:"outcome"`
	Reason  string `json:"reason,omitempty"`
}

func stepList(p plan.Plan) []stepView {
	out := []stepView{}
	for _, s := range p.Steps {
		v := stepView{string(s.Kind), s.Path, s.To, s.Before.Hash, s.After.Hash, s.Outcome, s.Reason}
		if v.Outcome == "" {
			v.Outcome = plan.Applied
		}
		out = append(out, v)
	}
	return out
}

// safe escapes control characters and damaged bytes, so that untrusted text
// cannot drive a terminal.
func safe(s string) string {
	clean := true
	for _, r := range s {
		if unprintable(r) {
			clean = false
			break
		}
	}
	if clean && utf8.ValidString(s) {
		return s
	}
	var sb strings.Builder
	for i := 0; i < len(s); {
		r, n := utf8.DecodeRuneInString(s[i:])
		switch {
		case r == utf8.RuneError && n == 1:
			fmt.Fprintf(&sb, `\x%02x`, s[i])
		case unprintable(r):
			q := strconv.QuoteRuneToASCII(r)
			sb.WriteString(q[1 : len(q)-1])
		default:
			sb.WriteRune(r)
		}
		i += n
	}
	return sb.String()
}

func unprintable(r rune) bool {
	return r == utf8.RuneError || unicode.IsControl(r) && r != '\t' || unicode.Is(unicode.Cf, r) || r == '\u2028' || r == '\u2029'
}

// Package buffer keeps the working buffer: notes into it, its rotation into
// the daily note, and recovery by the names that a rotation leaves.
//
// [Rotate] plans the first half of a rotation, which sets the buffer aside;
// [Next] plans the second half from what was set aside. [Recover] plans what
// to do about one leftover at a time: a .pending or .rotating file, a missing
// buffer, a stale sentinel. Nothing here writes a file.
package buffer

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// The names beside the buffer are a contract with agents that look at them
// (source: tiered memory, "Buffer Rotation").
const (
	lockSuffix     = ".lock"
	rotatingSuffix = ".rotating"
	pendingSuffix  = ".pending"
)

// ErrNoBuffer says that the layout has no working buffer.
var ErrNoBuffer = errors.New("this layout has no working buffer")

// UnfitError says that a file cannot take part in a rotation or a note until a
// person has mended it.
type UnfitError struct {
	Path, Msg, Hint string
}

func (e *UnfitError) Error() string { return e.Path + ": " + e.Msg }

// Mend is the hint that goes with the error.
func (e *UnfitError) Mend() string { return e.Hint }

// State is the working buffer and the names beside it.
type State struct {
	Path     string
	Present  bool
	Buffer   entry.Buffer
	Pending  []string  // .pending files, oldest first
	Rotating string    // the .rotating file, or ""
	Lock     string    // the sentinel, or ""
	Temps    []string  // staged files beside the buffer
	Touched  time.Time // when the sentinel, or else the buffer, was last written; for the stale check only
}

// Interrupted reports whether a rotation has left something.
func (s State) Interrupted() bool { return len(s.Pending) > 0 || s.Rotating != "" }

// Quiet reports whether nothing beside the buffer needs recovery.
func (s State) Quiet(rules tiers.Rules) bool {
	return !s.Interrupted() && s.Lock == "" && (s.Present || !rules.Buffer.Required)
}

// Inspect reads the working buffer and looks for the names beside it.
func Inspect(m fs.FS, rules tiers.Rules) (State, error) {
	s := State{Path: rules.Buffer.File}
	if s.Path == "" {
		return s, ErrNoBuffer
	}
	dir, base := path.Split(s.Path)
	entries, err := fs.ReadDir(m, path.Clean(dir))
	if errors.Is(err, fs.ErrNotExist) {
		return s, nil
	}
	if err != nil {
		return s, err
	}
	for _, e := range entries {
		name := dir + e.Name()
		if strings.HasPrefix(e.Name(), ".mem-") {
			s.Temps = append(s.Temps, name)
		}
		switch suffix, ok := strings.CutPrefix(e.Name(), base); {
		case !ok:
		case suffix == "":
			s.Present = true
		case suffix == lockSuffix:
			s.Lock = name
		case suffix == rotatingSuffix:
			s.Rotating = name
		case strings.HasPrefix(suffix, pendingSuffix):
			s.Pending = append(s.Pending, name)
		}
	}
	for _, name := range []string{s.Path, s.Lock} {
		if info, err := fs.Stat(m, name); name != "" && err == nil {
			s.Touched = info.ModTime()
		}
	}
	slices.SortFunc(s.Pending, func(a, b string) int { return pendingNumber(a) - pendingNumber(b) })
	if !s.Present {
		return s, nil
	}
	raw, err := read(m, s.Path)
	if err != nil {
		return s, err
	}
	s.Buffer = entry.ParseBuffer(raw)
	return s, nil
}

func pendingNumber(name string) int {
	_, n, _ := strings.Cut(name, pendingSuffix)
	if n == "" {
		return 1
	}
	v, err := strconv.Atoi(strings.TrimLeft(n, "-._"))
	if err != nil {
		return 1 << 30 // named by somebody else: last
	}
	return v
}

// read reads a file that must be UTF-8 text within the limit; nil: absent.
func read(m fs.FS, name string) ([]byte, error) {
	b, err := fs.ReadFile(m, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		info, serr := fs.Stat(m, name)
		if serr == nil && !info.Mode().IsRegular() {
			return nil, &UnfitError{name, "is " + kind(info.Mode()) + ", not a regular file", "move it away or replace it with a regular file, then run the command again"}
		}
		return nil, err
	}
	if b == nil {
		b = []byte{}
	}
	if err := entry.CheckText(b, entry.MaxNote); err != nil {
		hint := "split it by hand, then run the command again"
		if errors.Is(err, entry.ErrEncoding) {
			hint = "convert it to UTF-8 (iconv -f UTF-16 -t UTF-8), then run the command again"
		}
		return nil, &UnfitError{name, err.Error(), hint}
	}
	return b, nil
}

func kind(m fs.FileMode) string {
	switch {
	case m&fs.ModeSymlink != 0:
		return "a symlink"
	case m.IsDir():
		return "a directory"
	case m&fs.ModeNamedPipe != 0:
		return "a FIFO"
	case m&fs.ModeSocket != 0:
		return "a socket"
	}
	return "a device"
}

// Session says whether an agent's session is active (source: tiered memory,
// "Session detection"): the sentinel stands, or last_active is under the
// limit. Reason is for people; Warning names what is odd.
type Session struct {
	Active          bool
	StaleLock       bool
	Reason, Warning string
}

// inFuture is how far ahead of us a clock may be before we say so.
const inFuture = 5 * time.Minute

// Session looks at the buffer's signs of life.
func (s State) Session(rules tiers.Rules, now time.Time) Session {
	limit := rules.TTL.AbandonedBuffer
	t, ok := time.Time{}, false
	if s.Present {
		t, ok = s.Buffer.Active(rules.Location)
	}
	age := now.Sub(t)
	switch {
	case ok && age < -inFuture:
		return Session{Active: true, Reason: "last_active is in the future", Warning: fmt.Sprintf("%s: last_active %s is in the future; taken as active", s.Path, t.Format(time.RFC3339))}
	case ok && age < limit:
		return Session{Active: true, Reason: fmt.Sprintf("last active %s ago", max(age, 0).Round(time.Minute))}
	case s.Lock != "" && ok:
		return Session{StaleLock: true, Warning: fmt.Sprintf("%s: stale, the buffer was last active %s ago", s.Lock, age.Round(time.Minute))}
	case s.Lock != "" && !s.Touched.IsZero() && now.Sub(s.Touched) >= limit:
		return Session{StaleLock: true, Warning: fmt.Sprintf("%s: stale, written %s ago", s.Lock, now.Sub(s.Touched).Round(time.Minute))}
	case s.Lock != "":
		return Session{Active: true, Reason: s.Lock + " is there"}
	}
	return Session{}
}

// Note plans one more line under the buffer's Active Task. Lines of the text
// after the first are indented, so that it stays one list item.
func Note(m fs.FS, rules tiers.Rules, now time.Time, text string) (plan.Plan, error) {
	file := rules.Buffer.File
	if file == "" {
		return plan.Plan{}, ErrNoBuffer
	}
	raw, err := read(m, file)
	if err != nil {
		return plan.Plan{}, err
	}
	item := "- " + strings.ReplaceAll(strings.TrimRight(text, "\r\n"), "\n", "\n  ") + "\n"
	at := now.In(rules.Location)
	return plan.Plan{Command: "note", Facts: plan.Facts{"buffer": file}, Steps: []plan.Step{{
		Kind: plan.Append, Path: file, Before: plan.StateOf(raw), Place: entry.ActiveTask,
		Text: []byte(item), Seed: entry.Fresh(at, entry.Buffer{}), Stamp: at.Format(time.RFC3339),
	}}}, nil
}

// Close plans today's closure block; nothing where it says that already.
func Close(m fs.FS, rules tiers.Rules, now time.Time, c entry.ClosureArg) (plan.Plan, error) {
	note, raw, err := fitNote(m, rules.NotePath(now), 0)
	if err != nil {
		return plan.Plan{}, err
	}
	c.Updated = rules.Day(now)
	arg, err := marshal(c)
	if err != nil {
		return plan.Plan{}, err
	}
	if next, _, err := entry.Place(entry.Change{Place: entry.SetClosure, Text: arg, Seed: entry.NewNote(rules.Day(now), false)}, raw); err == nil && raw != nil && string(next) == string(raw) {
		return plan.Plan{}, nil
	}
	return plan.Plan{Command: "close", Facts: plan.Facts{"note": note}, Steps: []plan.Step{{
		Kind: plan.Edit, Path: note, Before: plan.StateOf(raw), Place: entry.SetClosure,
		Text: arg, Seed: entry.NewNote(rules.Day(now), false),
	}}}, nil
}

// fitNote reads a daily note and makes sure that more bytes can go into it.
func fitNote(m fs.FS, note string, more int) (string, []byte, error) {
	raw, err := read(m, note)
	if err != nil {
		return note, nil, err
	}
	if raw != nil {
		info, err := fs.Stat(m, note)
		if err != nil {
			return note, nil, err
		}
		if info.Mode().Perm()&0o200 == 0 {
			return note, nil, &UnfitError{note, "is read-only", "chmod u+w " + note}
		}
	}
	if len(raw)+more > entry.MaxNote {
		return note, nil, &UnfitError{note, fmt.Sprintf("would grow to %d bytes, over the limit of %d", len(raw)+more, entry.MaxNote), "move a part of it to memory/archive by hand"}
	}
	return note, raw, nil
}

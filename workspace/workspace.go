// Package workspace is a memory directory, opened safely.
//
// [Find] finds one, [Open] opens it. [Workspace.View] reads it, without a lock
// and without repairing anything. [Workspace.Update] takes the lock, finishes
// what a crash left, lets a feature plan a change and carries it out.
// [Workspace.Recover] does only the second.
package workspace

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"syscall"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Format is the version of .mem that this build writes.
const Format = 1

// maxChanged bounds how often a plan is made again because its target changed.
const maxChanged = 50

// Features are the functions of the features that carrying out a plan needs:
// package workspace knows none of them.
type Features struct {
	// Place computes an append's or edit's content.
	Place func(s plan.Step, old []byte) (next, added []byte, err error)
	// Next plans the second half of a rotation.
	Next func(m fs.FS, seal plan.Plan, sealed []byte) (plan.Plan, error)
	// Leftover plans the mending of the next leftover; the empty plan: none.
	Leftover func(m fs.FS, skip func(string) bool) (p plan.Plan, path, action string, err error)
}

// Locker excludes other writers.
type Locker interface {
	// Lock waits until ctx is done. who says what for, for others to read.
	Lock(ctx context.Context, who string) error
	Unlock() error
}

// Workspace is an open memory directory.
type Workspace struct {
	Dir      string // absolute; for messages
	Rules    tiers.Rules
	Disk     durable.FS
	Lock     Locker
	LockWait time.Duration
	At       time.Time
	Host     string
	Features Features

	j       *journal.Journal
	halfway bool // a file call failed in this run, and may have happened halfway
}

// LockedError says that another process held the lock for too long.
type LockedError struct{ Holder string }

func (e *LockedError) Error() string { return "locked by " + e.Holder }

// Mend is the hint that goes with the error.
func (e *LockedError) Mend() string {
	return "wait for it to end, or give more time with --lock-wait"
}

// AttentionError lists what recovery could not mend.
type AttentionError struct{ Items []Attention }

// Attention is one thing that needs a person.
type Attention struct {
	Path string `json:"path"`
	Err  error  `json:"-"`
	Why  string `json:"why"`
	Hint string `json:"hint,omitempty"`
}

func (e *AttentionError) Error() string {
	var parts []string
	for _, a := range e.Items {
		parts = append(parts, a.Why)
	}
	return "needs a person: " + strings.Join(parts, "; ")
}

func (e *AttentionError) Unwrap() []error {
	var out []error
	for _, a := range e.Items {
		out = append(out, a.Err)
	}
	return out
}

// Mend is the hint that goes with the error.
func (e *AttentionError) Mend() string {
	for _, a := range e.Items {
		if a.Hint != "" {
			return a.Hint
		}
	}
	return "mem recover says what is left to do"
}

// Recovered is what a recovery did.
type Recovered struct {
	Actions   []string
	Attention []Attention
	Receipts  []plan.Plan
}

// Clean reports whether there was nothing to do.
func (r Recovered) Clean() bool { return len(r.Actions) == 0 && len(r.Attention) == 0 }

func (w *Workspace) journal() *journal.Journal {
	if w.j == nil {
		w.j = &journal.Journal{Disk: w.Disk, Review: w.Rules.Review, At: w.At, Host: w.Host, Place: w.Features.Place, Next: w.next}
	}
	w.j.At = w.At
	return w.j
}

// next turns what a feature says of unfit text into the journal's word for it.
func (w *Workspace) next(m fs.FS, p plan.Plan, sealed []byte) (plan.Plan, error) {
	q, err := w.Features.Next(m, p, sealed)
	var mend interface{ Mend() string }
	if errors.As(err, &mend) {
		err = fmt.Errorf("%w: %w", journal.ErrUnfit, err)
	}
	return q, err
}

// View reads the memory.
func (w *Workspace) View() fs.FS { return durable.View(w.Disk, 0) }

// locked runs f with the lock held and the engine's directory in place.
func (w *Workspace) locked(who string, f func() error) (err error) {
	if err := w.ensure(); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.Background(), w.LockWait)
	defer cancel()
	if err := w.Lock.Lock(ctx, who); err != nil {
		return err
	}
	defer func() {
		if uerr := w.Lock.Unlock(); err == nil {
			err = uerr
		}
	}()
	if err := w.begin(); err != nil {
		return err
	}
	if err := w.ensureFiles(); err != nil {
		return err
	}
	err = f()
	w.end(err)
	return err
}

// running is there while a command changes something. Where it stands before
// one does, the run that made it was killed, or failed.
var running = path.Join(journal.Root, "running")

// begin makes everything durable that a killed run can have left without being
// so, down to the directories that it made: nothing may be built on what a
// power cut can still take away. The mark itself need not be durable: after a
// power cut, what is there is.
func (w *Workspace) begin() error {
	w.halfway = false
	f, err := w.Disk.Create(running, 0o600)
	switch {
	case err == nil:
		return f.Close()
	case errors.Is(err, fs.ErrExist):
		if info, err := w.Disk.Lstat(running); err == nil && info.Mode.IsDir() {
			return &fs.PathError{Op: "create", Path: running, Err: errors.New("a directory is in the way")}
		}
		return w.Disk.SyncAll()
	case errors.Is(err, syscall.ENOSPC), errors.Is(err, syscall.EDQUOT):
		return nil // nothing can be made then, and room must be
	}
	return err
}

// end takes the mark away, unless a file call failed, which can have happened
// halfway; what mem itself refused is whole. A mark that stays costs the next
// run a sync of the disk, and no more: it decides no result.
func (w *Workspace) end(err error) {
	var call syscall.Errno
	if w.halfway || errors.As(err, &call) {
		return
	}
	w.Disk.Remove(running) //nolint:errcheck // see above
}

// ensure makes .mem, which the lock needs, or refuses one that a newer mem
// wrote.
func (w *Workspace) ensure() error {
	info, err := w.Disk.Lstat(journal.Root)
	switch {
	case errors.Is(err, fs.ErrNotExist):
	case err != nil:
		return err
	case !info.Mode.IsDir():
		return &fs.PathError{Op: "open", Path: journal.Root, Err: errors.New("is not a directory")}
	default:
		_, err := w.CheckFormat()
		return err
	}
	return durable.MkdirAll(w.Disk, journal.Root, 0o700)
}

// ensureFiles makes the files in .mem, with the lock held.
func (w *Workspace) ensureFiles() error {
	if ok, err := w.CheckFormat(); ok || err != nil {
		return err
	}
	if err := w.engineFile(".gitignore", "*\n"); err != nil {
		return err
	}
	// Last: where it stands, the rest is there.
	if err := w.engineFile("version", fmt.Sprintf("%d\n", Format)); err != nil {
		return err
	}
	if err := w.Disk.SyncDir(journal.Root); err != nil {
		return err
	}
	return w.Disk.SyncDir(".") // .mem itself may be there since a kill
}

// engineFile makes a file of the engine's own whole or not at all.
func (w *Workspace) engineFile(name, text string) error {
	full := path.Join(journal.Root, name)
	if there, err := durable.Exists(w.Disk, full); err != nil || there {
		return err
	}
	tmp := full + ".tmp"
	if err := w.Disk.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := durable.WriteNew(w.Disk, tmp, []byte(text), 0o600, ""); err != nil {
		return err
	}
	return w.Disk.Rename(tmp, full)
}

// CheckFormat reports whether .mem is of this build's format. A newer one is
// an error: this build must not touch it.
func (w *Workspace) CheckFormat() (bool, error) {
	b, _, err := durable.ReadFile(w.Disk, path.Join(journal.Root, "version"), 64)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	v, err := strconv.Atoi(strings.TrimSpace(string(b)))
	if err != nil {
		return false, fmt.Errorf("%s/version: %q is no version", journal.Root, strings.TrimSpace(string(b)))
	}
	if v > Format {
		return false, &FormatError{v}
	}
	return true, nil
}

// FormatError says that a newer mem has written this workspace.
type FormatError struct{ Found int }

func (e *FormatError) Error() string {
	return fmt.Sprintf(".mem has format %d, this mem knows %d", e.Found, Format)
}

// Mend is the hint that goes with the error.
func (e *FormatError) Mend() string { return "use the mem that wrote it, or a newer one" }

// Update lets a feature plan a change and carries it out, with the lock held
// and after whatever a crash left has been finished. An empty plan changes
// nothing. When a target changed between reading and staging, f is called
// again.
func (w *Workspace) Update(who string, f func(m fs.FS) (plan.Plan, error)) (receipt plan.Plan, rec Recovered, err error) {
	err = w.locked(who, func() error {
		if rec, err = w.recoverFirst(); err != nil {
			return err
		}
		receipt, err = w.run(f)
		if err != nil || receipt.Empty() {
			return err
		}
		w.late(&rec, receipt.ID)
		return nil
	})
	return receipt, rec, err
}

func (w *Workspace) run(f func(m fs.FS) (plan.Plan, error)) (plan.Plan, error) {
	for n := 0; ; n++ {
		p, err := f(w.View())
		if err != nil || p.Empty() {
			return p, err
		}
		receipt, err := w.journal().Run(p)
		if !errors.Is(err, journal.ErrChanged) || n >= maxChanged {
			return receipt, err
		}
	}
}

func (r *Recovered) add(receipts []plan.Plan) {
	for _, p := range receipts {
		r.Receipts = append(r.Receipts, p)
		r.Actions = append(r.Actions, p.Notices...)
	}
}

// Unfinished is what a reader sees of business that is not finished.
type Unfinished struct {
	Running string   // who holds the lock, "" for nobody
	Open    []string // transaction ids
}

// Unfinished looks for open transactions without taking the lock.
func (w *Workspace) Unfinished() (Unfinished, error) {
	var u Unfinished
	if p, ok := w.Lock.(interface{ Holder() string }); ok {
		u.Running = p.Holder()
	}
	var err error
	u.Open, err = w.journal().Open()
	return u, err
}

// Journal gives read access to receipts.
func (w *Workspace) Journal() *journal.Journal { return w.journal() }

// Prune deletes files of the engine's own that pick chooses, below dir.
func (w *Workspace) Prune(who, dir string, pick func(name string) bool) error {
	return w.locked(who, func() error {
		// Pruning frees space, which an open transaction may be waiting for: it
		// is not finished first, and what it needs is left alone.
		j := w.journal()
		open, err := j.Open()
		if err != nil {
			return err
		}
		return j.Prune(dir, func(name string) bool {
			for _, id := range open {
				if strings.Contains(path.Base(name), id) {
					return false
				}
			}
			return pick(name)
		})
	})
}

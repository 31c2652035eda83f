package workspace

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"syscall"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
)

// maxLeftovers bounds how many leftovers one recovery deals with.
const maxLeftovers = 10_000

// attend tells of what needs a person.
func (w *Workspace) attend(rec *Recovered, a Attention) {
	var call syscall.Errno
	w.halfway = w.halfway || errors.As(a.Err, &call) && !errors.Is(a.Err, fs.ErrPermission)
	rec.Attention = append(rec.Attention, a)
}

// recoverFirst finishes what would be in a writer's way. What only a person
// can mend does not stop it, except open transactions.
func (w *Workspace) recoverFirst() (rec Recovered, err error) {
	if err := w.finish(&rec); err != nil {
		return rec, err
	}
	if err := w.late(&rec, ""); err != nil {
		return rec, err
	}
	return rec, w.leftovers(&rec, false)
}

// late carries over what was written late to backups, of one transaction or
// of all of the last day. What cannot be is told; it is an error only if it
// left a transaction open.
func (w *Workspace) late(rec *Recovered, only string) error {
	receipts, err := w.journal().Grown(only)
	rec.add(receipts)
	if err == nil {
		return nil
	}
	w.attend(rec, Attention{Path: path.Join(journal.Root, "trash"), Err: err, Why: "late writes could not be carried over: " + err.Error(), Hint: hintOf(err)})
	var open *journal.OpenError
	if errors.As(err, &open) {
		return err
	}
	return nil
}

// finish brings open transactions to their end, oldest first.
func (w *Workspace) finish(rec *Recovered) error {
	j := w.journal()
	open, err := j.Open()
	if err != nil {
		return err
	}
	if len(open) > 0 {
		// What the crashed run did need not be durable yet. Nothing may be
		// built on what a power cut can still take away.
		if err := w.Disk.SyncAll(); err != nil {
			return err
		}
	}
	var items []Attention
	for _, id := range open {
		p, err := j.Resume(id)
		if err != nil {
			items = append(items, Attention{Path: path.Join(journal.Root, "tx", id+".json"), Err: err, Why: err.Error(), Hint: hintOf(err)})
			continue
		}
		rec.Actions = append(rec.Actions, fmt.Sprintf("finished transaction %s (%s)", p.ID, p.Command))
		rec.add([]plan.Plan{p})
		if err := w.late(rec, p.ID); err != nil { // however long ago it began
			return err
		}
	}
	for _, a := range items {
		w.attend(rec, a)
	}
	if len(items) > 0 {
		return &AttentionError{items}
	}
	return nil
}

func hintOf(err error) string {
	var m interface{ Mend() string }
	if errors.As(err, &m) {
		return m.Mend()
	}
	if errors.Is(err, fs.ErrPermission) {
		return "give the workspace's owner the right to write there, then run mem recover"
	}
	return "mend the cause, then run mem recover"
}

// leftovers mends what the features find, one at a time. synced: all that is on
// the disk is durable.
func (w *Workspace) leftovers(rec *Recovered, synced bool) error {
	bad := map[string]bool{}
	skip := func(name string) bool { return bad[name] }
	for range maxLeftovers {
		p, name, action, err := w.Features.Leftover(w.View(), skip)
		if err == nil && p.Empty() {
			return nil
		}
		if err == nil && !synced {
			// What a killed run left need not be durable: a plan names it by its
			// hash, and a power cut would make that a lie.
			if err := w.Disk.SyncAll(); err != nil {
				return err
			}
			synced = true
		}
		if err == nil {
			var half bool
			if half, err = w.trashed(name); half {
				// It has landed, and its landing may have been edited since.
				b, _, rerr := durable.ReadFile(w.Disk, name, 0)
				p, action, err = plan.Plan{Command: "recover", Steps: []plan.Step{{Kind: plan.Trash, Path: name, Before: plan.StateOf(append([]byte{}, b...))}}}, "was in the trash already", rerr
			}
		}
		var receipt plan.Plan
		if err == nil {
			receipt, err = w.journal().Run(p)
		}
		if errors.Is(err, journal.ErrChanged) {
			continue
		}
		if err != nil {
			var open *journal.OpenError
			if name == "" || bad[name] || errors.As(err, &open) {
				return err // an open transaction comes before anything else
			}
			bad[name] = true
			w.attend(rec, Attention{Path: name, Err: err, Why: err.Error(), Hint: hintOf(err)})
			continue
		}
		rec.Actions = append(rec.Actions, name+": "+action)
		rec.Receipts = append(rec.Receipts, receipt)
	}
	return fmt.Errorf("more than %d leftovers", maxLeftovers)
}

// trashed reports whether a file, by its number and its content, stands in the
// trash as well: a rename that a power cut left by halves.
func (w *Workspace) trashed(name string) (bool, error) {
	b, info, err := durable.ReadFile(w.Disk, name, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil // what is missing is the leftover
	}
	if err != nil {
		return false, err
	}
	hash, found := plan.Hash(b), false
	err = fs.WalkDir(w.View(), path.Join(journal.Root, "trash"), func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() || !strings.HasPrefix(e.Name(), hash) {
			return err
		}
		there, err := w.Disk.Lstat(p)
		found = found || err == nil && there.ID == info.ID
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		err = nil
	}
	return found, err
}

// Recover finishes or rolls back whatever a crash left, and names what needs a
// person. A second call finds nothing to do.
func (w *Workspace) Recover() (rec Recovered, err error) {
	err = w.locked("recover", func() error {
		if err := w.Disk.SyncAll(); err != nil {
			return err
		}
		err := w.finish(&rec)
		var attention *AttentionError
		if errors.As(err, &attention) {
			// An open transaction's record decides about the files it names;
			// until it is finished they are no leftovers.
			return nil
		}
		if err != nil {
			return err
		}
		if err := w.sweep(&rec); err != nil {
			return err
		}
		if err := w.late(&rec, ""); err != nil {
			return err
		}
		if err := w.leftovers(&rec, true); err != nil || rec.Clean() {
			return err
		}
		return w.Disk.SyncAll() // nothing comes back, whatever happens next
	})
	return rec, err
}

// sweep moves staged files that no transaction knows to the trash. Only for
// recovery, with no transaction open: it walks the whole workspace.
func (w *Workspace) sweep(rec *Recovered) error {
	var found []string
	if err := w.walk(".", 0, &found); err != nil {
		return err
	}
	var p plan.Plan
	for _, name := range found {
		text, info, err := durable.ReadFile(w.Disk, name, 0)
		if err != nil {
			w.attend(rec, Attention{Path: name, Err: err, Why: err.Error(), Hint: "move it away by hand"})
			continue
		}
		b := append([]byte{}, text...)
		in, err := w.second(name, b, info)
		if err == nil && in == "" {
			var there bool
			if there, err = w.trashed(name); there {
				in = "what is in the trash"
			}
		}
		if err != nil {
			return err
		}
		if in != "" {
			// In the trash it would change under a name that says what it holds, or
			// a late write would be found there twice.
			if err := errors.Join(w.Disk.Remove(name), w.Disk.SyncDir(path.Dir(name))); err != nil {
				return err
			}
			rec.Actions = append(rec.Actions, name+": took away a second name of "+in)
			continue
		}
		p.Steps = append(p.Steps, plan.Step{Kind: plan.Trash, Path: name, Before: plan.StateOf(b), Reason: "staged by a run that never began"})
		rec.Actions = append(rec.Actions, name+": moved an unused staged file to the trash")
	}
	if p.Empty() {
		return nil
	}
	p.Command = "recover"
	receipt, err := w.journal().Run(p)
	if err == nil {
		rec.Receipts = append(rec.Receipts, receipt)
	}
	return err
}

// second finds the file in use that a staged name is a second name of: what a
// power cut left of a rename by halves.
func (w *Workspace) second(name string, text []byte, info durable.Info) (string, error) {
	entries, err := w.Disk.ReadDir(path.Dir(name))
	if err != nil {
		return "", err
	}
	for _, e := range entries {
		other := path.Join(path.Dir(name), e.Name())
		if _, staged := journal.StagedBy(e.Name()); staged || other == name || !e.Type().IsRegular() {
			continue
		}
		if there, err := w.Disk.Lstat(other); err != nil || there.ID != info.ID {
			continue
		}
		if b, _, err := durable.ReadFile(w.Disk, other, 0); err == nil && bytes.Equal(b, text) {
			return other, nil
		}
	}
	return "", nil
}

// maxDepth bounds directory walks.
const maxDepth = 64

func (w *Workspace) walk(dir string, depth int, found *[]string) error {
	entries, err := w.Disk.ReadDir(dir)
	if err != nil {
		if dir != "." && errors.Is(err, fs.ErrPermission) {
			return nil // a directory that is closed to us holds nothing of ours
		}
		return err
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		switch {
		case e.IsDir():
			if depth < maxDepth && e.Name() != ".git" && e.Name() != "node_modules" {
				if err := w.walk(name, depth+1, found); err != nil {
					return err
				}
			}
		case dir == journal.Root+"/tx" && strings.HasSuffix(e.Name(), ".tmp"):
			*found = append(*found, name)
		default:
			if _, ours := journal.StagedBy(e.Name()); ours {
				*found = append(*found, name)
			}
		}
	}
	return nil
}

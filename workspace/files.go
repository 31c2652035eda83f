package workspace

import (
	"errors"
	"io/fs"
	"maps"
	"path"
	"slices"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
)

// Record replaces one of the engine's own small files, such as a job's record,
// whole or not at all.
func (w *Workspace) Record(who, name string, b []byte) error {
	return w.locked(who, func() error {
		full := path.Join(journal.Root, name)
		if err := durable.MkdirAll(w.Disk, path.Dir(full), 0o700); err != nil {
			return err
		}
		return durable.Replace(w.Disk, full, full+".tmp", b, 0o600, "")
	})
}

// Stamp writes one of the engine's own files that nothing depends on, such as
// a sign of life: without the lock, and without making it durable. Another run
// that writes the same one at the same time must give another token.
func (w *Workspace) Stamp(name, token string, b []byte) error {
	if err := w.ensure(); err != nil {
		return err
	}
	full := path.Join(journal.Root, name)
	if err := durable.MkdirAll(w.Disk, path.Dir(full), 0o700); err != nil {
		return err
	}
	tmp := full + "." + token + ".tmp"
	if err := w.Disk.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := durable.WriteLater(w.Disk, tmp, b, 0o600, ""); err != nil {
		return err
	}
	return w.Disk.Rename(tmp, full)
}

// Drop writes one of the engine's own files, durably and without the lock: for
// what must be kept before anything else is done. Its name says what it holds,
// so that one that is there already is the same.
func (w *Workspace) Drop(name string, b []byte) error {
	if err := w.ensure(); err != nil {
		return err
	}
	full := path.Join(journal.Root, name)
	dir := path.Dir(full)
	if err := durable.MkdirAll(w.Disk, dir, 0o700); err != nil {
		return err
	}
	// No mark tells of a run that was killed here: what it made need not be
	// durable.
	for up := path.Dir(dir); ; up = path.Dir(up) {
		if err := w.Disk.SyncDir(up); err != nil {
			return err
		}
		if up == "." {
			break
		}
	}
	if there, err := durable.Exists(w.Disk, full); err != nil {
		return err
	} else if there {
		return w.Disk.SyncDir(dir)
	}
	return durable.Replace(w.Disk, full, full+".tmp", b, 0o600, "")
}

// Unstamp takes such a file away.
func (w *Workspace) Unstamp(name string) error {
	err := w.Disk.Remove(path.Join(journal.Root, name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	return err
}

// Swap replaces one of the engine's own small files if it is what the caller
// has read; otherwise another run has dealt with it, and nothing is done.
func (w *Workspace) Swap(who, name string, old, b []byte) error {
	full := path.Join(journal.Root, name)
	now, _, err := durable.ReadFile(w.Disk, full, 0)
	if errors.Is(err, fs.ErrNotExist) || err == nil && string(now) != string(old) {
		return nil
	}
	if err != nil {
		return err
	}
	return w.locked(who, func() error {
		now, _, err := durable.ReadFile(w.Disk, full, 0)
		if errors.Is(err, fs.ErrNotExist) || err == nil && string(now) != string(old) {
			return nil
		}
		if err != nil {
			return err
		}
		return durable.Replace(w.Disk, full, full+".tmp", b, 0o600, "")
	})
}

// Records replaces several of the engine's own small files, each whole or not
// at all. A power cut may bring back the records of the run before: only what
// people are told may depend on them.
func (w *Workspace) Records(who string, files map[string][]byte) error {
	return w.locked(who, func() error {
		names := slices.Sorted(maps.Keys(files))
		for _, name := range names {
			full := path.Join(journal.Root, name)
			if err := durable.MkdirAll(w.Disk, path.Dir(full), 0o700); err != nil {
				return err
			}
			if err := w.Disk.Remove(full + ".tmp"); err != nil && !errors.Is(err, fs.ErrNotExist) {
				return err
			}
			if _, err := durable.WriteNew(w.Disk, full+".tmp", files[name], 0o600, ""); err != nil {
				return err
			}
			if err := w.Disk.Rename(full+".tmp", full); err != nil {
				return err
			}
		}
		return nil
	})
}

// Keep puts a text that comes from outside the workspace into the trash, for
// somebody to bring back. The same text, kept twice on one day, is there once.
func (w *Workspace) Keep(who string, b []byte) error {
	return w.locked(who, func() error {
		id := plan.NewID(plan.Plan{Command: who, At: w.At.UTC().Truncate(24 * time.Hour)}, plan.Hash(b))
		dir := plan.TrashDir(journal.Root, w.At)
		if err := durable.MkdirAll(w.Disk, dir, 0o700); err != nil {
			return err
		}
		name := plan.TrashName(journal.Root, id, w.At, 0, plan.StateOf(b))
		if there, err := durable.Exists(w.Disk, name); err != nil {
			return err
		} else if there {
			return w.Disk.SyncDir(dir) // it may be there since a kill, and not be durable
		}
		tmp := path.Join(journal.Root, "kept.tmp") // not in the trash, where a name is its content's hash
		return durable.Replace(w.Disk, name, tmp, b, 0o600, "")
	})
}

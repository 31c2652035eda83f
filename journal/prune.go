package journal

import (
	"errors"
	"io/fs"
	"path"
	"strings"

	"github.com/tieredmem/mem/plan"
)

// Prune deletes the files below dir, a directory of the engine's own with a
// YYYY/MM tree, that pick chooses. What somebody wrote late to a file in the
// trash is carried over first. It is the only thing in mem that deletes.
func (j *Journal) Prune(dir string, pick func(name string) bool) error {
	years, err := j.Disk.ReadDir(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, y := range years {
		if !y.IsDir() {
			continue
		}
		months, err := j.Disk.ReadDir(path.Join(dir, y.Name()))
		if err != nil {
			return err
		}
		for _, m := range months {
			if !m.IsDir() {
				continue
			}
			if err := j.pruneMonth(path.Join(dir, y.Name(), m.Name()), pick); err != nil {
				return err
			}
		}
	}
	return nil
}

func (j *Journal) pruneMonth(dir string, pick func(name string) bool) error {
	entries, err := j.Disk.ReadDir(dir)
	if err != nil {
		return err
	}
	removed := false
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() || !pick(name) {
			continue
		}
		if t, ok := plan.ParseTrash(name); ok && strings.HasPrefix(dir, Root+"/trash/") {
			p, err := j.late(t)
			if err != nil {
				return err
			}
			if !p.Empty() {
				continue // it has another name now, and waits for the next time
			}
		}
		if err := j.Disk.Remove(name); err != nil {
			return err
		}
		removed = true
	}
	if !removed {
		return nil
	}
	return j.Disk.SyncDir(dir)
}

package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"syscall"

	"github.com/tieredmem/mem/durable"
)

// makeDirs makes a directory and those that are missing above it, durable.
// That holds for what an earlier run had made when it was killed, too: a
// directory with next to nothing in it may be such a one.
func (a *app) makeDirs(dir string, perm fs.FileMode) error {
	top := dir
	for {
		info, err := os.Stat(top)
		if err == nil && !info.IsDir() {
			return &fs.PathError{Op: "mkdir", Path: dir, Err: errors.New(top + " is not a directory")}
		}
		if err == nil {
			break
		}
		if !errors.Is(err, fs.ErrNotExist) || top == filepath.Dir(top) {
			return err
		}
		top = filepath.Dir(top)
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil {
		return err
	}
	d, err := a.openDisk(top)
	if err != nil {
		return err
	}
	defer d.Close()
	if err := durable.MkdirAll(d, filepath.ToSlash(rel), perm); err != nil {
		return err
	}
	if top, err = filepath.EvalSymlinks(top); err != nil {
		return err
	}
	for ; fresh(top) && top != filepath.Dir(top); top = filepath.Dir(top) {
		if err := a.syncDir(filepath.Dir(top)); err != nil {
			return err
		}
	}
	return nil
}

// syncDir makes a directory durable that is not ours to judge: it may be
// closed to us, or on something that has no fsync.
func (a *app) syncDir(dir string) error {
	d, err := a.openDisk(dir)
	if err == nil {
		err = d.SyncDir(".")
		d.Close()
	}
	for _, harmless := range []error{fs.ErrPermission, fs.ErrNotExist, syscall.EINVAL, syscall.ENOTSUP, syscall.EROFS, syscall.ENOSYS} {
		if errors.Is(err, harmless) {
			return nil
		}
	}
	return err
}

// settleFile makes a file outside the workspace durable that needs no change:
// it may be as it should be since a run that was killed, which then left its
// temp, too.
func (a *app) settleFile(name string) error {
	d, err := a.openDisk(filepath.Dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	return settle(d, tempOf(filepath.Base(name)))
}

func settle(d durable.FS, temps ...string) error {
	for _, tmp := range temps {
		err := d.Remove(tmp)
		if errors.Is(err, syscall.EROFS) {
			return nil // nobody has written there
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return d.SyncDir(".")
}

// tempOf is the name under which a file outside the workspace is written.
func tempOf(base string) string { return "." + base + ".mem.tmp" }

// writeWhole replaces a small file outside any workspace, whole or not at all.
func (a *app) writeWhole(file string, text []byte) error {
	d, err := a.openDisk(filepath.Dir(file))
	if err != nil {
		return err
	}
	defer d.Close()
	base := filepath.Base(file)
	like := ""
	if _, err := d.Lstat(base); err == nil {
		like = base
	}
	return durable.Replace(d, base, tempOf(base), text, 0o644, like)
}

// fresh reports whether a directory can be read and has next to nothing in it.
func fresh(dir string) bool {
	f, err := os.Open(dir)
	if err != nil {
		return false
	}
	defer f.Close()
	names, err := f.Readdirnames(2)
	return len(names) < 2 && (err == nil || errors.Is(err, io.EOF))
}

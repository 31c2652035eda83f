package main

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"

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
	for fresh(top) {
		up := filepath.Dir(top)
		f, err := os.Open(up)
		if up == top || err != nil {
			break
		}
		f.Close()
		top = up
	}
	rel, err := filepath.Rel(top, dir)
	if err != nil || rel == "." {
		return err
	}
	d, err := a.openDisk(top)
	if err != nil {
		return err
	}
	defer d.Close()
	rel = filepath.ToSlash(rel)
	if err := durable.MkdirAll(d, rel, perm); err != nil {
		return err
	}
	for ; rel != "."; rel = path.Dir(rel) {
		if err := d.SyncDir(path.Dir(rel)); err != nil {
			return err
		}
	}
	return nil
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

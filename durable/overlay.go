package durable

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
)

// Overlay returns a disk that shows base and keeps every change in memory: the
// same code runs on it for a dry run, and base is never written to. What it
// holds is only what was written, not what was read.
func Overlay(base FS, now time.Time) FS {
	return &overlay{base: base, names: map[string]*object{}, now: now}
}

type overlay struct {
	base  FS
	names map[string]*object // nil: taken away
	next  uint64
	now   time.Time
}

// object is a file: one of the base's under another name, or one in memory.
type object struct {
	from string // the base's name, "" if in memory
	info Info
	text []byte
}

func overlayError(op, name string, err error) error {
	return &fs.PathError{Op: op, Path: name, Err: err}
}

func (o *overlay) get(op, name string) (*object, error) {
	if x, ok := o.names[name]; ok {
		if x == nil {
			return nil, overlayError(op, name, fs.ErrNotExist)
		}
		return x, nil
	}
	info, err := o.base.Lstat(name)
	if err != nil {
		return nil, err
	}
	return &object{from: name, info: info}, nil
}

func (o *overlay) parent(op, name string) error {
	up, err := o.get(op, path.Dir(name))
	if err != nil {
		return err
	}
	if !up.info.Mode.IsDir() && up.info.Mode&fs.ModeSymlink == 0 {
		return overlayError(op, name, errors.New("not a directory"))
	}
	return nil
}

func (o *overlay) Open(name string) (Reader, error) {
	x, err := o.get("open", name)
	switch {
	case err != nil:
		return nil, err
	case x.from != "":
		return o.base.Open(x.from)
	case !x.info.Mode.IsRegular():
		return nil, overlayError("open", name, ErrNotRegular)
	}
	return &memReader{bytes.NewReader(x.text), x.info}, nil
}

type memReader struct {
	io.Reader
	info Info
}

func (r *memReader) Info() (Info, error) { return r.info, nil }
func (r *memReader) Close() error        { return nil }

func (o *overlay) ReadDir(name string) ([]fs.DirEntry, error) {
	x, err := o.get("readdir", name)
	if err != nil {
		return nil, err
	}
	found := map[string]fs.DirEntry{}
	if x.from != "" {
		entries, err := o.base.ReadDir(x.from)
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			found[e.Name()] = e
		}
	}
	for p, x := range o.names {
		if path.Dir(p) != name || p == "." {
			continue
		}
		if delete(found, path.Base(p)); x != nil {
			found[path.Base(p)] = fs.FileInfoToDirEntry(FileInfo{path.Base(p), x.info})
		}
	}
	return slices.SortedFunc(maps.Values(found), func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) }), nil
}

func (o *overlay) Lstat(name string) (Info, error) {
	x, err := o.get("lstat", name)
	if err != nil {
		return Info{}, err
	}
	return x.info, nil
}

func (o *overlay) add(op, name string, mode fs.FileMode) (*object, error) {
	if !fs.ValidPath(name) {
		return nil, overlayError(op, name, fs.ErrInvalid)
	}
	if _, err := o.get(op, name); err == nil {
		return nil, overlayError(op, name, fs.ErrExist)
	} else if !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	if err := o.parent(op, name); err != nil {
		return nil, err
	}
	o.next++
	x := &object{info: Info{Mode: mode, ModTime: o.now, ID: ID{Dev: ^uint64(0), Ino: o.next}, Links: 1}}
	o.names[name] = x
	return x, nil
}

func (o *overlay) Create(name string, perm fs.FileMode) (File, error) {
	x, err := o.add("create", name, perm.Perm())
	if err != nil {
		return nil, err
	}
	return &memFile{o, x}, nil
}

type memFile struct {
	o *overlay
	x *object
}

func (f *memFile) Write(b []byte) (int, error) {
	f.x.text = append(f.x.text, b...)
	f.x.info.Size = int64(len(f.x.text))
	return len(b), nil
}

func (f *memFile) Clone(like string) error {
	y, err := f.o.get("clone", like)
	if err == nil {
		f.x.info.Mode = y.info.Mode.Perm()
	}
	return err
}
func (f *memFile) Sync() error         { return nil }
func (f *memFile) Info() (Info, error) { return f.x.info, nil }
func (f *memFile) Close() error        { return nil }

func (o *overlay) Mkdir(name string, perm fs.FileMode) error {
	_, err := o.add("mkdir", name, fs.ModeDir|perm.Perm())
	return err
}

func (o *overlay) Rename(from, to string) error {
	x, err := o.get("rename", from)
	if err != nil {
		return err
	}
	if err := o.parent("rename", to); err != nil {
		return err
	}
	if y, err := o.get("rename", to); err == nil && x == y {
		return nil // two names of one file: rename(2) leaves both
	}
	o.names[from], o.names[to] = nil, x
	return nil
}

func (o *overlay) Move(from, to string) error {
	if _, err := o.get("move", from); err != nil {
		return err
	}
	if _, err := o.get("move", to); err == nil {
		return overlayError("move", to, fs.ErrExist)
	}
	return o.Rename(from, to)
}

func (o *overlay) Exchange(a, b string) error {
	x, err := o.get("exchange", a)
	if err != nil {
		return err
	}
	y, err := o.get("exchange", b)
	if err != nil {
		return err
	}
	o.names[a], o.names[b] = y, x
	return nil
}

func (o *overlay) Link(from, to string) error {
	x, err := o.get("link", from)
	if err != nil {
		return err
	}
	if _, err := o.get("link", to); err == nil {
		return overlayError("link", to, fs.ErrExist)
	}
	if err := o.parent("link", to); err != nil {
		return err
	}
	o.names[to] = x
	return nil
}

func (o *overlay) Remove(name string) error {
	if _, err := o.get("remove", name); err != nil {
		return err
	}
	o.names[name] = nil
	return nil
}

func (o *overlay) SyncDir(string) error { return nil }
func (o *overlay) SyncAll() error       { return nil }

func (o *overlay) Caps(dir string) Caps {
	for ; ; dir = path.Dir(dir) { // a directory made here is on its parent's disk
		if _, err := o.base.Lstat(dir); err == nil || dir == "." {
			return o.base.Caps(dir)
		}
	}
}

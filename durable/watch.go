package durable

import (
	"errors"
	"io/fs"
)

// Op is one file operation as a watcher sees it.
type Op struct {
	Kind string // open, read, readdir, lstat, create, clone, write, fsync, mkdir, rename, move, exchange, link, remove, syncdir, syncall
	Name string
	To   string
	Size int // bytes, for write
}

// Changes reports whether the operation can change what is on the disk.
func (o Op) Changes() bool {
	switch o.Kind {
	case "open", "read", "readdir", "lstat":
		return false
	}
	return true
}

func (o Op) String() string {
	s := o.Kind + " " + o.Name
	if o.To != "" {
		s += " " + o.To
	}
	return s
}

// ErrShort, returned by a watcher before a write, lets half of it happen.
var ErrShort = errors.New("short write")

// Watcher is told of every operation before it happens and again after it
// succeeded. An error it returns becomes the operation's: before, the
// operation does not happen; after, it has happened all the same.
type Watcher func(op Op, done bool) error

// Watch passes every operation on fsys by w: for traces, for debug logs, and
// for tests that fail or kill at each operation in turn.
func Watch(fsys FS, w Watcher) FS { return watched{fsys, w} }

type watched struct {
	FS
	w Watcher
}

func (d watched) do(op Op, f func() error) error {
	if err := d.w(op, false); err != nil {
		return wrapOp(op, err)
	}
	if err := f(); err != nil {
		return err
	}
	return wrapOp(op, d.w(op, true))
}

func wrapOp(op Op, err error) error {
	switch {
	case err == nil:
		return nil
	case op.Kind == "fsync" || op.Kind == "syncdir" || op.Kind == "syncall":
		return &SyncError{op.Name, op.Kind != "fsync", err}
	}
	return &fs.PathError{Op: op.Kind, Path: op.Name, Err: err}
}

func (d watched) Open(name string) (r Reader, err error) {
	err = d.do(Op{Kind: "open", Name: name}, func() error { r, err = d.FS.Open(name); return err })
	if err != nil {
		if r != nil {
			r.Close()
		}
		return nil, err
	}
	return watchedReader{r, d, name}, nil
}

func (d watched) ReadDir(name string) (out []fs.DirEntry, err error) {
	err = d.do(Op{Kind: "readdir", Name: name}, func() error { out, err = d.FS.ReadDir(name); return err })
	return out, err
}

func (d watched) Lstat(name string) (out Info, err error) {
	err = d.do(Op{Kind: "lstat", Name: name}, func() error { out, err = d.FS.Lstat(name); return err })
	return out, err
}

func (d watched) Create(name string, perm fs.FileMode) (f File, err error) {
	err = d.do(Op{Kind: "create", Name: name}, func() error { f, err = d.FS.Create(name, perm); return err })
	if err != nil {
		if f != nil {
			f.Close()
		}
		return nil, err
	}
	return watchedFile{f, d, name}, nil
}

func (d watched) Mkdir(name string, perm fs.FileMode) error {
	return d.do(Op{Kind: "mkdir", Name: name}, func() error { return d.FS.Mkdir(name, perm) })
}
func (d watched) Rename(from, to string) error {
	return d.do(Op{Kind: "rename", Name: from, To: to}, func() error { return d.FS.Rename(from, to) })
}
func (d watched) Move(from, to string) error {
	return d.do(Op{Kind: "move", Name: from, To: to}, func() error { return d.FS.Move(from, to) })
}
func (d watched) Exchange(a, b string) error {
	return d.do(Op{Kind: "exchange", Name: a, To: b}, func() error { return d.FS.Exchange(a, b) })
}
func (d watched) Link(from, to string) error {
	return d.do(Op{Kind: "link", Name: from, To: to}, func() error { return d.FS.Link(from, to) })
}
func (d watched) Remove(name string) error {
	return d.do(Op{Kind: "remove", Name: name}, func() error { return d.FS.Remove(name) })
}
func (d watched) SyncDir(name string) error {
	return d.do(Op{Kind: "syncdir", Name: name}, func() error { return d.FS.SyncDir(name) })
}

func (d watched) SyncAll() error {
	return d.do(Op{Kind: "syncall"}, d.FS.SyncAll)
}

type watchedReader struct {
	Reader
	d    watched
	name string
}

func (r watchedReader) Read(b []byte) (n int, err error) {
	if err := r.d.w(Op{Kind: "read", Name: r.name}, false); err != nil {
		return 0, err
	}
	return r.Reader.Read(b)
}

type watchedFile struct {
	File
	d    watched
	name string
}

func (f watchedFile) Write(b []byte) (n int, err error) {
	op := Op{Kind: "write", Name: f.name, Size: len(b)}
	if err := f.d.w(op, false); err != nil {
		if errors.Is(err, ErrShort) {
			n, _ = f.File.Write(b[:len(b)/2])
		}
		return n, wrapOp(op, err)
	}
	if n, err = f.File.Write(b); err != nil {
		return n, err
	}
	return n, wrapOp(op, f.d.w(op, true))
}

func (f watchedFile) Clone(like string) error {
	return f.d.do(Op{Kind: "clone", Name: f.name}, func() error { return f.File.Clone(like) })
}

func (f watchedFile) Sync() error {
	return f.d.do(Op{Kind: "fsync", Name: f.name}, f.File.Sync)
}

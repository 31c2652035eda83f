package durable

import (
	"errors"
	"io/fs"
	"os"
	"path"
	"slices"
	"strings"
)

// Open returns the disk below the directory root. On this system directories
// cannot be made durable: writes are atomic, not durable.
func Open(root string) (*OS, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	return &OS{root: r}, nil
}

// OS is the operating system's disk below one root.
type OS struct{ root *os.Root }

// Close releases the root.
func (d *OS) Close() error { return d.root.Close() }

// Open implements FS.
func (d *OS) Open(name string) (Reader, error) {
	st, err := d.root.Lstat(name)
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, &fs.PathError{Op: "open", Path: name, Err: ErrNotRegular}
	}
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	return &handle{f, d, name}, nil
}

// ReadDir implements FS.
func (d *OS) ReadDir(name string) ([]fs.DirEntry, error) {
	f, err := d.root.Open(name)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	out, err := f.ReadDir(-1)
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, err
}

// Lstat implements FS.
func (d *OS) Lstat(name string) (Info, error) {
	st, err := d.root.Lstat(name)
	if err != nil {
		return Info{}, err
	}
	return d.info(name, st)
}

func (d *OS) info(name string, st fs.FileInfo) (Info, error) {
	info := Info{Mode: st.Mode(), Size: st.Size(), ModTime: st.ModTime(), Links: 1}
	id, err := fileID(d.root, name, st)
	info.ID = id
	return info, err
}

// Create implements FS.
func (d *OS) Create(name string, perm fs.FileMode) (File, error) {
	f, err := d.root.OpenFile(name, os.O_WRONLY|os.O_CREATE|os.O_EXCL, perm)
	if err != nil {
		return nil, err
	}
	return &handle{f, d, name}, nil
}

// Mkdir implements FS.
func (d *OS) Mkdir(name string, perm fs.FileMode) error { return d.root.Mkdir(name, perm) }

// Rename implements FS.
func (d *OS) Rename(from, to string) error { return d.root.Rename(from, to) }

// Move implements FS.
func (d *OS) Move(from, to string) error {
	if err := d.root.Link(from, to); err == nil {
		return d.root.Remove(from)
	} else if errors.Is(err, fs.ErrExist) || errors.Is(err, fs.ErrNotExist) {
		return err
	}
	f, err := d.root.OpenFile(to, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	f.Close()
	return d.root.Rename(from, to)
}

// Exchange implements FS: never available here.
func (d *OS) Exchange(a, b string) error {
	return &fs.PathError{Op: "exchange", Path: a + " -> " + b, Err: errors.ErrUnsupported}
}

// Link implements FS.
func (d *OS) Link(from, to string) error { return d.root.Link(from, to) }

// Remove implements FS.
func (d *OS) Remove(name string) error { return d.root.Remove(name) }

// SyncDir implements FS: this system has no way to do it.
func (d *OS) SyncDir(name string) error {
	if _, err := d.root.Lstat(path.Clean(name)); err != nil {
		return &SyncError{name, true, err}
	}
	return nil
}

// SyncAll implements FS: this system has no way to do it.
func (d *OS) SyncAll() error { return nil }

// Caps implements FS.
func (d *OS) Caps(string) Caps { return Caps{Links: true} }

// Network is not detected on this system.
func (d *OS) Network() string { return "" }

type handle struct {
	*os.File
	d    *OS
	name string
}

func (h *handle) Info() (Info, error) {
	st, err := h.File.Stat()
	if err != nil {
		return Info{}, err
	}
	return h.d.info(h.name, st)
}

func (h *handle) Sync() error {
	if err := h.File.Sync(); err != nil {
		return &SyncError{h.name, false, err}
	}
	return nil
}

func (h *handle) Clone(like string) error {
	st, err := h.d.root.Lstat(like)
	if err != nil {
		return err
	}
	return h.File.Chmod(st.Mode().Perm())
}

// Package durable is the only package that changes files.
//
// [FS] is the seam: a small set of file operations below one root, each of
// which either happened or did not. [Open] gives the operating system's
// implementation; package faultfs gives a disk that fails and loses power.
// [View] shows the same files read-only, as an fs.FS.
//
// Every name is relative to the root, slash-separated, and stays below it:
// directories are opened through os.Root, leaves are never followed when they
// are symlinks and never block when they are FIFOs.
package durable

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"path"
	"time"
)

// ID names one file object.
type ID struct{ Dev, Ino uint64 }

// Info is what the file system knows about a name.
type Info struct {
	Mode    fs.FileMode
	Size    int64
	ModTime time.Time
	ID      ID
	Links   uint64
	UID     uint32
}

// Caps says what the file system below the root can be trusted with.
type Caps struct {
	Exchange bool // two names can be exchanged, and that is journalled
	Links    bool // hard links work
	SyncDir  bool // directories can be made durable
}

// FS is a disk below one root.
type FS interface {
	// Open opens a regular file for reading. Anything else is ErrNotRegular.
	Open(name string) (Reader, error)
	// ReadDir lists a directory, sorted by name.
	ReadDir(name string) ([]fs.DirEntry, error)
	// Lstat describes a name without following it.
	Lstat(name string) (Info, error)
	// Create makes a new file and fails with fs.ErrExist where one is.
	Create(name string, perm fs.FileMode) (File, error)
	// Mkdir makes one directory.
	Mkdir(name string, perm fs.FileMode) error
	// Rename moves a file and replaces what is there.
	Rename(from, to string) error
	// Move moves a file and fails with fs.ErrExist rather than replace.
	Move(from, to string) error
	// Exchange swaps two names in one step.
	Exchange(a, b string) error
	// Link gives a file a second name.
	Link(from, to string) error
	// Remove takes away one name (a file's, or an empty directory's).
	Remove(name string) error
	// SyncDir makes a directory's entries durable.
	SyncDir(name string) error
	// SyncAll makes everything on the disk durable, whoever wrote it.
	SyncAll() error
	// Caps tells what may be used for names in this directory.
	Caps(dir string) Caps
}

// Reader is a file open for reading.
type Reader interface {
	io.ReadCloser
	Info() (Info, error)
}

// File is a new file open for writing.
type File interface {
	io.WriteCloser
	// Clone takes over mode, owner and extended attributes of a name. Only a
	// mode that cannot be set is an error.
	Clone(name string) error
	Sync() error
	Info() (Info, error)
}

// ErrNotRegular marks a name that is no regular file: a symlink, directory,
// FIFO, socket or device.
var ErrNotRegular = errors.New("not a regular file")

// ErrReserved marks a symlink that leads to git's files or the engine's own.
var ErrReserved = errors.New("is a symlink to files that are not memory")

// ErrInTheWay marks something that stands where a directory should.
var ErrInTheWay = errors.New("is in the way and is not a directory")

// ErrTooLarge marks a file over the limit it was read with.
var ErrTooLarge = errors.New("file too large")

// SyncError is a failed fsync. It is never retried on the same descriptor:
// the kernel may have dropped the data and a second call would lie.
type SyncError struct {
	Name string
	Dir  bool
	Err  error
}

func (e *SyncError) Error() string { return fmt.Sprintf("fsync %s: %v", e.Name, e.Err) }
func (e *SyncError) Unwrap() error { return e.Err }

// ReadFile reads a regular file of at most limit bytes (0: no limit) and says
// what it was, both from the same descriptor.
func ReadFile(fsys FS, name string, limit int64) ([]byte, Info, error) {
	f, err := fsys.Open(name)
	if err != nil {
		return nil, Info{}, err
	}
	defer f.Close()
	info, err := f.Info()
	if err != nil {
		return nil, Info{}, err
	}
	if limit > 0 && info.Size > limit {
		return nil, info, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: %d bytes, the limit is %d", ErrTooLarge, info.Size, limit)}
	}
	b := make([]byte, 0, info.Size+1)
	for {
		if len(b) == cap(b) {
			b = append(b, 0)[:len(b)]
		}
		n, err := f.Read(b[len(b):cap(b)])
		b = b[:len(b)+n]
		if limit > 0 && int64(len(b)) > limit {
			return nil, info, &fs.PathError{Op: "read", Path: name, Err: fmt.Errorf("%w: over %d bytes", ErrTooLarge, limit)}
		}
		if err == io.EOF {
			return b, info, nil
		}
		if err != nil {
			return nil, info, &fs.PathError{Op: "read", Path: name, Err: err}
		}
	}
}

// WriteNew creates a file with the given content and makes the content
// durable. Where like is not empty its mode, owner and attributes are taken
// over. On failure the file is removed again. The directory entry is not
// durable yet: call SyncDir.
func WriteNew(fsys FS, name string, b []byte, perm fs.FileMode, like string) (Info, error) {
	return writeNew(fsys, name, b, perm, like, true)
}

// WriteLater is WriteNew without making the content durable: for many files at
// once, which the caller makes durable together with SyncAll. The file must be
// on the file system of the root.
func WriteLater(fsys FS, name string, b []byte, perm fs.FileMode, like string) (Info, error) {
	return writeNew(fsys, name, b, perm, like, false)
}

func writeNew(fsys FS, name string, b []byte, perm fs.FileMode, like string, sync bool) (Info, error) {
	f, err := fsys.Create(name, perm)
	if err != nil {
		return Info{}, err
	}
	info, err := fill(f, b, like, sync)
	if cerr := f.Close(); err == nil {
		err = cerr
	}
	if err != nil {
		fsys.Remove(name) // best effort; a leftover is named by health and swept by recovery
		return Info{}, err
	}
	return info, nil
}

func fill(f File, b []byte, like string, sync bool) (Info, error) {
	if like != "" {
		if err := f.Clone(like); err != nil {
			return Info{}, err
		}
	}
	if _, err := f.Write(b); err != nil {
		return Info{}, err
	}
	if sync {
		if err := f.Sync(); err != nil {
			return Info{}, err
		}
	}
	return f.Info()
}

// Replace makes a file say b, whole or not at all, and durably: by way of tmp,
// which must be on the same file system. Where like is not empty its mode,
// owner and attributes are taken over.
func Replace(fsys FS, name, tmp string, b []byte, perm fs.FileMode, like string) error {
	if err := fsys.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := WriteNew(fsys, tmp, b, perm, like); err != nil {
		return err
	}
	if err := fsys.Rename(tmp, name); err != nil {
		return err
	}
	return fsys.SyncDir(path.Dir(name))
}

// MkdirAll makes a directory and its missing parents, each durable before the
// next: fsync of the parent after every mkdir.
func MkdirAll(fsys FS, dir string, perm fs.FileMode) error {
	if dir == "." || dir == "" {
		return nil
	}
	info, err := fsys.Lstat(dir)
	if err == nil {
		if info.Mode.IsDir() || info.Mode&fs.ModeSymlink != 0 {
			return nil // an in-root symlink to a directory resolves at use, or fails there
		}
		return &fs.PathError{Op: "mkdir", Path: dir, Err: ErrInTheWay}
	}
	if !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if err := MkdirAll(fsys, path.Dir(dir), perm); err != nil {
		return err
	}
	if err := fsys.Mkdir(dir, perm); err != nil && !errors.Is(err, fs.ErrExist) {
		return err
	}
	return fsys.SyncDir(path.Dir(dir))
}

// Exists reports whether a name is there, whatever it is.
func Exists(fsys FS, name string) (bool, error) {
	_, err := fsys.Lstat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}

package durable

import (
	"io"
	"io/fs"
	"path"
	"time"
)

// View shows a disk read-only. Files over limit bytes fail with ErrTooLarge
// when they are read whole (0: no limit).
func View(fsys FS, limit int64) fs.FS { return view{fsys, limit} }

type view struct {
	disk  FS
	limit int64
}

func (v view) ReadFile(name string) ([]byte, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	b, _, err := ReadFile(v.disk, name, v.limit)
	return b, err
}

func (v view) ReadDir(name string) ([]fs.DirEntry, error) { return v.disk.ReadDir(name) }

func (v view) Lstat(name string) (fs.FileInfo, error) { return v.Stat(name) }

func (v view) ReadLink(name string) (string, error) {
	return "", &fs.PathError{Op: "readlink", Path: name, Err: fs.ErrInvalid}
}

func (v view) Stat(name string) (fs.FileInfo, error) {
	info, err := v.disk.Lstat(name)
	if err != nil {
		return nil, err
	}
	return FileInfo{path.Base(name), info}, nil
}

func (v view) Open(name string) (fs.File, error) {
	if !fs.ValidPath(name) {
		return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrInvalid}
	}
	info, err := v.disk.Lstat(name)
	if err != nil {
		return nil, err
	}
	if info.Mode.IsDir() {
		entries, err := v.disk.ReadDir(name)
		if err != nil {
			return nil, err
		}
		return &dirFile{FileInfo{path.Base(name), info}, entries}, nil
	}
	r, err := v.disk.Open(name)
	if err != nil {
		return nil, err
	}
	return &readFile{r, path.Base(name)}, nil
}

type readFile struct {
	Reader
	base string
}

func (f *readFile) Stat() (fs.FileInfo, error) {
	info, err := f.Info()
	return FileInfo{f.base, info}, err
}

type dirFile struct {
	info    FileInfo
	entries []fs.DirEntry
}

func (d *dirFile) Stat() (fs.FileInfo, error) { return d.info, nil }
func (d *dirFile) Close() error               { return nil }
func (d *dirFile) Read([]byte) (int, error) {
	return 0, &fs.PathError{Op: "read", Path: d.info.Name(), Err: fs.ErrInvalid}
}

func (d *dirFile) ReadDir(n int) ([]fs.DirEntry, error) {
	if n <= 0 {
		out := d.entries
		d.entries = nil
		return out, nil
	}
	if len(d.entries) == 0 {
		return nil, io.EOF
	}
	n = min(n, len(d.entries))
	out := d.entries[:n]
	d.entries = d.entries[n:]
	return out, nil
}

// FileInfo is an Info under a name, as an fs.FileInfo.
type FileInfo struct {
	Base string
	I    Info
}

// The fs.FileInfo methods; Sys returns the Info.
func (f FileInfo) Name() string       { return f.Base }
func (f FileInfo) Size() int64        { return f.I.Size }
func (f FileInfo) Mode() fs.FileMode  { return f.I.Mode }
func (f FileInfo) ModTime() time.Time { return f.I.ModTime }
func (f FileInfo) IsDir() bool        { return f.I.Mode.IsDir() }
func (f FileInfo) Sys() any           { return f.I }

// Links is how many names lead to the file.
func (f FileInfo) Links() uint64 { return f.I.Links }

// FileID names the file object: its device and inode number.
func (f FileInfo) FileID() (dev, ino uint64) { return f.I.ID.Dev, f.I.ID.Ino }

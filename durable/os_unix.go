//go:build linux || darwin

package durable

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// Open returns the disk below the directory root.
//
// Directories are opened once through os.Root, which refuses to leave the
// root, and kept; every operation is then one syscall relative to that
// descriptor, so containment is paid per directory and not per file.
func Open(root string) (*OS, error) {
	r, err := os.OpenRoot(root)
	if err != nil {
		return nil, err
	}
	return &OS{root: r, dirs: map[string]*os.File{}, caps: map[string]Caps{}, noReplace: renameNoReplace, link: link}, nil
}

// maxDirs bounds how many directories are held open; a process may have 256
// descriptors in all.
const maxDirs = 64

// OS is the operating system's disk below one root. It is not safe for
// concurrent use.
type OS struct {
	root *os.Root
	dirs map[string]*os.File
	caps map[string]Caps

	// noReplace and link are what a move tries first, one after the other; a
	// file system may have neither.
	noReplace, link func(f int, a string, t int, b string) error
}

// Close releases the directories that are held open.
func (d *OS) Close() error {
	for _, f := range d.dirs {
		f.Close()
	}
	return d.root.Close()
}

func (d *OS) dir(name string) (*os.File, error) {
	if f, ok := d.dirs[name]; ok {
		return f, nil
	}
	f, err := d.openDir(name)
	if err != nil {
		return nil, err
	}
	d.dirs[name] = f
	return f, nil
}

// openDir opens a directory from its parent's descriptor, without following a
// symlink. One that is a symlink is opened through os.Root, which keeps it in
// the root, unless it leads to git's or the engine's own files.
func (d *OS) openDir(name string) (*os.File, error) {
	const flags = unix.O_RDONLY | unix.O_DIRECTORY | unix.O_NONBLOCK
	if name == "." {
		return d.root.OpenFile(name, flags, 0)
	}
	up, err := d.dir(path.Dir(name))
	if err != nil {
		return nil, err
	}
	var h int
	err = retry(func() (err error) {
		h, err = unix.Openat(int(up.Fd()), path.Base(name), flags|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0)
		return err
	})
	if err == nil {
		return os.NewFile(uintptr(h), name), nil
	}
	if err != unix.ELOOP && err != unix.ENOTDIR {
		return nil, wrap("open", name, err)
	}
	real, err := filepath.EvalSymlinks(filepath.Join(d.root.Name(), filepath.FromSlash(name)))
	if err != nil {
		return nil, err
	}
	root, err := filepath.EvalSymlinks(d.root.Name())
	if err != nil {
		return nil, err
	}
	if real, err = filepath.Rel(root, real); err != nil {
		return nil, err
	}
	for _, part := range strings.Split(filepath.ToSlash(real), "/") {
		if strings.EqualFold(part, ".git") || part == ".mem" {
			return nil, wrap("open", name, ErrReserved)
		}
	}
	return d.root.OpenFile(name, flags, 0)
}

// at resolves a name to its directory's descriptor and its base name.
func (d *OS) at(op, name string) (int, string, error) {
	if !fs.ValidPath(name) || strings.ContainsRune(name, 0) {
		return 0, "", &fs.PathError{Op: op, Path: name, Err: fs.ErrInvalid}
	}
	f, err := d.dir(path.Dir(name))
	if err != nil {
		return 0, "", err
	}
	return int(f.Fd()), path.Base(name), nil
}

func retry(f func() error) error {
	for {
		if err := f(); err != unix.EINTR {
			return err
		}
	}
}

func wrap(op, name string, err error) error {
	if err == nil {
		return nil
	}
	return &fs.PathError{Op: op, Path: name, Err: err}
}

// Open implements FS.
func (d *OS) Open(name string) (Reader, error) {
	fd, base, err := d.at("open", name)
	if err != nil {
		return nil, err
	}
	var h int
	err = retry(func() (err error) {
		h, err = unix.Openat(fd, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
		return err
	})
	if err == unix.ELOOP || err == unix.ENXIO {
		return nil, wrap("open", name, ErrNotRegular)
	}
	if err != nil {
		return nil, wrap("open", name, err)
	}
	r := &handle{h, d, name}
	info, err := r.Info()
	if err == nil && !info.Mode.IsRegular() {
		err = wrap("open", name, ErrNotRegular)
	}
	if err != nil {
		r.Close()
		return nil, err
	}
	return r, nil
}

// ReadDir implements FS.
func (d *OS) ReadDir(name string) ([]fs.DirEntry, error) {
	if len(d.dirs) > maxDirs { // a walk: no other descriptor is in use here
		for n, f := range d.dirs {
			f.Close()
			delete(d.dirs, n)
		}
	}
	dir, err := d.dir(name)
	if err != nil {
		return nil, err
	}
	// A descriptor of its own: the kept one's ReadDir would stat every entry.
	var h int
	err = retry(func() (err error) {
		h, err = unix.Openat(int(dir.Fd()), ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
		return err
	})
	if err != nil {
		return nil, wrap("readdir", name, err)
	}
	f := os.NewFile(uintptr(h), filepath.Join(d.root.Name(), filepath.FromSlash(name))) // entries look themselves up below that name
	defer f.Close()
	out, err := f.ReadDir(-1)
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, err
}

// Lstat implements FS.
func (d *OS) Lstat(name string) (Info, error) {
	if name == "." {
		f, err := d.dir(".")
		if err != nil {
			return Info{}, err
		}
		return (&handle{int(f.Fd()), d, name}).Info()
	}
	fd, base, err := d.at("lstat", name)
	if err != nil {
		return Info{}, err
	}
	var st unix.Stat_t
	err = retry(func() error { return unix.Fstatat(fd, base, &st, unix.AT_SYMLINK_NOFOLLOW) })
	return infoOf(&st), wrap("lstat", name, err)
}

// Create implements FS.
func (d *OS) Create(name string, perm fs.FileMode) (File, error) {
	fd, base, err := d.at("create", name)
	if err != nil {
		return nil, err
	}
	var h int
	err = retry(func() (err error) {
		h, err = unix.Openat(fd, base, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, uint32(perm.Perm()))
		return err
	})
	if err != nil {
		return nil, wrap("create", name, err)
	}
	return &handle{h, d, name}, nil
}

// Mkdir implements FS.
func (d *OS) Mkdir(name string, perm fs.FileMode) error {
	fd, base, err := d.at("mkdir", name)
	if err != nil {
		return err
	}
	return wrap("mkdir", name, retry(func() error { return unix.Mkdirat(fd, base, uint32(perm.Perm())) }))
}

// Rename implements FS.
func (d *OS) Rename(from, to string) error {
	return d.two("rename", from, to, func(f int, a string, t int, b string) error { return unix.Renameat(f, a, t, b) })
}

// Move implements FS: a rename that refuses to replace; where the file system
// has none, a hard link and an unlink; where it has no links either, a rename
// over an empty placeholder of our own, verified to be still that.
func (d *OS) Move(from, to string) error {
	return d.two("move", from, to, func(f int, a string, t int, b string) error {
		err := d.noReplace(f, a, t, b)
		if !unsupported(err) {
			return err
		}
		err = d.link(f, a, t, b)
		if err == nil {
			if err := d.SyncDir(path.Dir(to)); err != nil {
				return err
			}
			return unix.Unlinkat(f, a, 0)
		}
		if !unsupported(err) && err != unix.EPERM && err != unix.EMLINK {
			return err
		}
		return moveOverPlaceholder(f, a, t, b)
	})
}

func moveOverPlaceholder(f int, a string, t int, b string) error {
	h, err := unix.Openat(t, b, unix.O_WRONLY|unix.O_CREAT|unix.O_EXCL|unix.O_NOFOLLOW|unix.O_CLOEXEC, 0o600)
	if err != nil {
		return err
	}
	var mine, now unix.Stat_t
	err = unix.Fstat(h, &mine)
	unix.Close(h)
	if err != nil {
		return err
	}
	if err := unix.Fstatat(t, b, &now, unix.AT_SYMLINK_NOFOLLOW); err != nil {
		return err
	}
	if now.Ino != mine.Ino || now.Dev != mine.Dev || now.Size != 0 {
		return unix.EEXIST
	}
	if err := unix.Renameat(f, a, t, b); err != nil {
		unix.Unlinkat(t, b, 0)
		return err
	}
	return nil
}

// Exchange implements FS.
func (d *OS) Exchange(a, b string) error { return d.two("exchange", a, b, renameExchange) }

// Link implements FS.
func (d *OS) Link(from, to string) error {
	return d.two("link", from, to, link)
}

func link(f int, a string, t int, b string) error { return unix.Linkat(f, a, t, b, 0) }

func (d *OS) two(op, from, to string, f func(int, string, int, string) error) error {
	ffd, fbase, err := d.at(op, from)
	if err != nil {
		return err
	}
	tfd, tbase, err := d.at(op, to)
	if err != nil {
		return err
	}
	err = retry(func() error { return f(ffd, fbase, tfd, tbase) })
	if err == nil {
		return nil
	}
	var sync *SyncError
	if errors.As(err, &sync) {
		return err
	}
	return &fs.PathError{Op: op, Path: from + " -> " + to, Err: err}
}

// Remove implements FS.
func (d *OS) Remove(name string) error {
	fd, base, err := d.at("remove", name)
	if err != nil {
		return err
	}
	err = retry(func() error { return unix.Unlinkat(fd, base, 0) })
	if err == unix.EISDIR || err == unix.EPERM {
		if derr := retry(func() error { return unix.Unlinkat(fd, base, unix.AT_REMOVEDIR) }); derr != unix.ENOTDIR {
			err = derr
		}
	}
	if f, ok := d.dirs[name]; ok && err == nil {
		f.Close()
		delete(d.dirs, name)
	}
	return wrap("remove", name, err)
}

// SyncDir implements FS.
func (d *OS) SyncDir(name string) error {
	f, err := d.dir(name)
	if err != nil {
		return &SyncError{name, true, err}
	}
	if err := f.Sync(); err != nil {
		return &SyncError{name, true, err}
	}
	return nil
}

// SyncAll implements FS.
func (d *OS) SyncAll() error {
	f, err := d.dir(".")
	if err != nil {
		return &SyncError{".", true, err}
	}
	if err := syncFS(f); err != nil {
		return &SyncError{".", true, err}
	}
	return nil
}

// Caps implements FS.
func (d *OS) Caps(dir string) Caps {
	if c, ok := d.caps[dir]; ok {
		return c
	}
	c := Caps{Links: true, SyncDir: true}
	if f, err := d.dir(dir); err == nil {
		c.Exchange = exchangeIsJournalled(int(f.Fd()))
	}
	d.caps[dir] = c
	return c
}

// Network returns the name of the network file system the root is on, or "".
func (d *OS) Network() string {
	f, err := d.dir(".")
	if err != nil {
		return ""
	}
	return networkFS(int(f.Fd()))
}

// handle is a bare descriptor: an os.File would ask the poller about each
// regular file first.
type handle struct {
	fd   int
	d    *OS
	name string
}

func (h *handle) Read(b []byte) (n int, err error) {
	err = retry(func() (err error) { n, err = unix.Read(h.fd, b); return err })
	if err != nil {
		return 0, wrap("read", h.name, err)
	}
	if n == 0 && len(b) > 0 {
		return 0, io.EOF
	}
	return n, nil
}

func (h *handle) Write(b []byte) (n int, err error) {
	for n < len(b) {
		var k int
		if err := retry(func() (err error) { k, err = unix.Write(h.fd, b[n:]); return err }); err != nil {
			return n, wrap("write", h.name, err)
		}
		if k == 0 {
			return n, wrap("write", h.name, io.ErrShortWrite)
		}
		n += k
	}
	return n, nil
}

func (h *handle) Close() error { return wrap("close", h.name, unix.Close(h.fd)) }

func (h *handle) Info() (Info, error) {
	var st unix.Stat_t
	err := retry(func() error { return unix.Fstat(h.fd, &st) })
	return infoOf(&st), wrap("stat", h.name, err)
}

func (h *handle) Sync() error {
	if err := retry(func() error { return syncFile(h.fd) }); err != nil {
		return &SyncError{h.name, false, err}
	}
	return nil
}

func (h *handle) Clone(like string) error {
	old, err := h.d.Lstat(like)
	if err != nil {
		return err
	}
	fd := h.fd
	var st unix.Stat_t
	if ofd, base, err := h.d.at("clone", like); err == nil {
		if unix.Fstatat(ofd, base, &st, unix.AT_SYMLINK_NOFOLLOW) == nil {
			unix.Fchown(fd, int(st.Uid), int(st.Gid)) // where allowed
			copyAttributes(ofd, base, fd)
		}
	}
	return wrap("chmod", h.name, retry(func() error { return unix.Fchmod(fd, uint32(old.Mode.Perm())|uint32(st.Mode)&0o7000) }))
}

func infoOf(st *unix.Stat_t) Info {
	mode := fs.FileMode(st.Mode & 0o777)
	switch st.Mode & unix.S_IFMT {
	case unix.S_IFDIR:
		mode |= fs.ModeDir
	case unix.S_IFLNK:
		mode |= fs.ModeSymlink
	case unix.S_IFIFO:
		mode |= fs.ModeNamedPipe
	case unix.S_IFSOCK:
		mode |= fs.ModeSocket
	case unix.S_IFBLK:
		mode |= fs.ModeDevice
	case unix.S_IFCHR:
		mode |= fs.ModeDevice | fs.ModeCharDevice
	}
	return Info{Mode: mode, Size: st.Size, ModTime: time.Unix(st.Mtim.Unix()), ID: ID{uint64(st.Dev), uint64(st.Ino)}, Links: uint64(st.Nlink), UID: st.Uid}
}

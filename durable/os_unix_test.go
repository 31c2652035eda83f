//go:build unix

package durable

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"golang.org/x/sys/unix"
)

func open(t *testing.T, dir string) *OS {
	t.Helper()
	d, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { d.Close() })
	return d
}

func write(t *testing.T, name, text string) {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(name), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(name, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
}

// names says what is in a directory, and the text of each file.
func names(t *testing.T, dir string) string {
	t.Helper()
	out := ""
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		b, _ := os.ReadFile(filepath.Join(dir, e.Name()))
		out += e.Name() + "=" + string(b) + " "
	}
	return out
}

func fails(err error) func(int, string, int, string) error {
	return func(int, string, int, string) error { return err }
}

// A move never replaces, whatever the file system lacks; a failed one leaves
// both names as they were.
func TestMoveOnPoorFileSystems(t *testing.T) {
	const real = unix.Errno(0) // the system's own call
	for _, c := range []struct {
		noReplace, link error
		from, to        string // before: "" none
		want            error
		after           string
	}{
		{real, real, "x", "", nil, "b=x "},
		{real, real, "x", "y", fs.ErrExist, "a=x b=y "},
		{unix.EIO, real, "x", "", unix.EIO, "a=x "},
		{unix.EINVAL, real, "x", "", nil, "b=x "},
		{unix.ENOSYS, real, "x", "y", fs.ErrExist, "a=x b=y "},
		{unix.EOPNOTSUPP, real, "", "", fs.ErrNotExist, ""},
		{unix.EINVAL, unix.EIO, "x", "", unix.EIO, "a=x "},
		{unix.EINVAL, unix.EPERM, "x", "", nil, "b=x "},
		{unix.EINVAL, unix.EMLINK, "x", "", nil, "b=x "},
		{unix.EINVAL, unix.ENOSYS, "x", "", nil, "b=x "},
		{unix.EINVAL, unix.EPERM, "x", "y", fs.ErrExist, "a=x b=y "},
		{unix.EINVAL, unix.EPERM, "", "", fs.ErrNotExist, ""}, // the placeholder is gone
	} {
		t.Run(fmt.Sprint(c), func(t *testing.T) {
			dir := t.TempDir()
			d := open(t, dir)
			if c.noReplace != real {
				d.noReplace = fails(c.noReplace)
			}
			if c.link != real {
				d.link = fails(c.link)
			}
			if c.from != "" {
				write(t, filepath.Join(dir, "a"), c.from)
			}
			if c.to != "" {
				write(t, filepath.Join(dir, "b"), c.to)
			}
			if err := d.Move("a", "b"); !errors.Is(err, c.want) {
				t.Errorf("%v, want %v", err, c.want)
			}
			if got := names(t, dir); got != c.after {
				t.Errorf("after: %q, want %q", got, c.after)
			}
		})
	}
}

// Between the link and the unlink the new name is made durable; where that
// fails both stay, and the error says what it was.
func TestMoveByLinkSyncs(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	write(t, filepath.Join(dir, "a"), "x")
	if err := os.Mkdir(filepath.Join(dir, "d"), 0o755); err != nil {
		t.Fatal(err)
	}
	d.noReplace = fails(unix.EINVAL)
	d.link = func(f int, a string, to int, b string) error {
		if err := link(f, a, to, b); err != nil {
			return err
		}
		d.dirs["d"].Close() // the sync meets a closed descriptor
		return nil
	}
	var s *SyncError
	if err := d.Move("a", "d/a"); !errors.As(err, &s) || !s.Dir || s.Name != "d" {
		t.Errorf("%v", err)
	}
	if got := names(t, dir) + names(t, filepath.Join(dir, "d")); got != "a=x d= a=x " {
		t.Error(got)
	}
}

// A walk over more directories than may be held open at once works, and holds
// few.
func TestManyDirectories(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	for i := range 2 * maxDirs {
		write(t, filepath.Join(dir, fmt.Sprint(i), "f"), "x")
	}
	most := 0
	for i := range 2 * maxDirs {
		if e, err := d.ReadDir(fmt.Sprint(i)); err != nil || len(e) != 1 {
			t.Fatal(e, err)
		}
		most = max(most, len(d.dirs))
	}
	if most != maxDirs+1 { // looked at before the next one is opened
		t.Errorf("%d directories were open at once", most)
	}
}

// Only regular files are opened; what else stands there is named by its kind.
func TestKindsOfFiles(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	write(t, filepath.Join(dir, "file"), "x")
	check(t, os.Symlink("file", filepath.Join(dir, "symlink")))
	check(t, unix.Mkfifo(filepath.Join(dir, "fifo"), 0o600))
	check(t, os.Mkdir(filepath.Join(dir, "dir"), 0o700))
	for name, mode := range map[string]fs.FileMode{"file": 0, "symlink": fs.ModeSymlink, "fifo": fs.ModeNamedPipe, "dir": fs.ModeDir} {
		i, err := d.Lstat(name)
		if err != nil || i.Mode.Type() != mode {
			t.Errorf("%s is %v, %v", name, i.Mode, err)
		}
		r, err := d.Open(name)
		if mode == 0 {
			if err != nil {
				t.Error(err)
				continue
			}
			r.Close()
		} else if !errors.Is(err, ErrNotRegular) {
			t.Errorf("open %s: %v", name, err)
		}
	}
	if i, err := open(t, "/dev").Lstat("null"); err != nil || i.Mode.Type() != fs.ModeDevice|fs.ModeCharDevice {
		t.Errorf("/dev/null is %v, %v", i.Mode, err)
	}
}

func check(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// Through a symlink the tree's own directories are reached, git's and the
// engine's are not.
func TestReservedThroughSymlinks(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	for _, n := range []string{"notes/f", ".git/f", "sub/.GIT/f", ".mem/f"} {
		write(t, filepath.Join(dir, n), "x")
	}
	for name, to := range map[string]string{"a": "notes", "b": ".git", "c": "sub/.GIT", "d": ".mem"} {
		check(t, os.Symlink(to, filepath.Join(dir, name)))
		_, _, err := ReadFile(d, name+"/f", 0)
		if ok := to == "notes"; (err == nil) != ok || (!ok && !errors.Is(err, ErrReserved)) {
			t.Errorf("%s, which is %s: %v", name, to, err)
		}
	}
	if _, _, err := ReadFile(d, "file/f", 0); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("below nothing: %v", err)
	}
}

// Remove takes empty directories too, and forgets the descriptor it held.
func TestRemoveDirectory(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	write(t, filepath.Join(dir, "d", "f"), "x")
	if err := d.Remove("d"); !errors.Is(err, unix.ENOTEMPTY) && !errors.Is(err, fs.ErrExist) {
		t.Errorf("a full directory: %v", err)
	}
	check(t, d.Remove("d/f"))
	check(t, d.Remove("d"))
	if _, held := d.dirs["d"]; held {
		t.Error("the removed directory is still held open")
	}
	check(t, d.Mkdir("d", 0o755))
	write(t, filepath.Join(dir, "d", "g"), "x")
	if e, err := d.ReadDir("d"); err != nil || len(e) != 1 || e[0].Name() != "g" {
		t.Errorf("the new one of that name: %v, %v", e, err)
	}
	if err := d.Remove("no"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
}

// A write that fails says how much was written, and why.
func TestWriteFails(t *testing.T) {
	fd, err := unix.Open("/dev/full", unix.O_WRONLY, 0)
	if err != nil {
		t.Skip("no /dev/full here: ", err)
	}
	h := &handle{fd: fd, name: "full"}
	defer h.Close()
	if n, err := h.Write([]byte("text")); n != 0 || !errors.Is(err, unix.ENOSPC) {
		t.Errorf("%d, %v", n, err)
	}
	if n, err := (&handle{fd: -1}).Write([]byte("text")); n != 0 || !errors.Is(err, unix.EBADF) {
		t.Errorf("%d, %v", n, err)
	}
}

// All of a write that the system takes in parts arrives.
func TestWriteInParts(t *testing.T) {
	r, w, err := os.Pipe()
	check(t, err)
	check(t, unix.SetNonblock(int(w.Fd()), false))
	want := bytes.Repeat([]byte("0123456789"), 30_000) // more than a pipe holds
	go func() {
		n, err := (&handle{fd: int(w.Fd())}).Write(want)
		if n != len(want) || err != nil {
			t.Error(n, err)
		}
		w.Close()
	}()
	got, err := io.ReadAll(r)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%d bytes, %v", len(got), err)
	}
}

// Reading nothing is not the end of the file.
func TestReadNothing(t *testing.T) {
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a"), "x")
	r, err := open(t, dir).Open("a")
	check(t, err)
	defer r.Close()
	if n, err := r.Read(nil); n != 0 || err != nil {
		t.Errorf("nothing: %d, %v", n, err)
	}
	if b, err := io.ReadAll(r); string(b) != "x" || err != nil {
		t.Errorf("%q, %v", b, err)
	}
}

// What stands in for a file takes over its mode and its extended attributes.
func TestCloneTakesOver(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	old := filepath.Join(dir, "old")
	write(t, old, "x")
	check(t, os.Chmod(old, 0o640))
	attributes := unix.Setxattr(old, "user.mem.a", []byte("first"), 0) == nil && unix.Setxattr(old, "user.mem.b", []byte("second"), 0) == nil
	f, err := d.Create("new", 0o600)
	check(t, err)
	defer f.Close()
	check(t, f.Clone("old"))
	i, err := d.Lstat("new")
	if err != nil || i.Mode.Perm() != 0o640 {
		t.Errorf("mode %v, %v", i.Mode, err)
	}
	if err := f.Clone("no"); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("like nothing: %v", err)
	}
	if !attributes {
		t.Log("no extended attributes here")
		return
	}
	for name, want := range map[string]string{"user.mem.a": "first", "user.mem.b": "second"} {
		b := make([]byte, 100)
		n, err := unix.Getxattr(filepath.Join(dir, "new"), name, b)
		if err != nil || string(b[:n]) != want {
			t.Errorf("%s: %q, %v", name, b[:max(n, 0)], err)
		}
	}
	// none at all, and a file that cannot be opened for them
	write(t, filepath.Join(dir, "bare"), "x")
	g, err := d.Create("new2", 0o600)
	check(t, err)
	defer g.Close()
	check(t, g.Clone("bare"))
}

// An owner may be another user, who stays it where we are allowed to.
func TestCloneKeepsTheOwner(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root: only it can give files away")
	}
	dir := t.TempDir()
	d := open(t, dir)
	write(t, filepath.Join(dir, "old"), "x")
	check(t, os.Chown(filepath.Join(dir, "old"), 1234, 1234))
	f, err := d.Create("new", 0o600)
	check(t, err)
	defer f.Close()
	check(t, f.Clone("old"))
	if i, err := d.Lstat("new"); err != nil || i.UID != 1234 {
		t.Errorf("owner %d, %v", i.UID, err)
	}
}

func TestCapsAndNetwork(t *testing.T) {
	dir := t.TempDir()
	d := open(t, dir)
	var st unix.Statfs_t
	check(t, unix.Statfs(dir, &st))
	if c := d.Caps("no such"); c.Exchange {
		t.Errorf("a directory that is not there can exchange: %+v", c)
	}
	if d.Network() != "" {
		t.Skip("this file system is a network's: ", d.Network())
	}
	check(t, d.Close())
	if n := open(t, t.TempDir()).Network(); n != "" {
		t.Error(n)
	}
}

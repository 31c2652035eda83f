package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

// syncFile: fsync(2) leaves the data in the drive's cache; F_FULLFSYNC does
// not, where the file system has it.
func syncFile(fd int) error {
	if _, err := unix.FcntlInt(uintptr(fd), unix.F_FULLFSYNC, 0); err == nil || err == unix.EINTR {
		return err
	}
	return unix.Fsync(fd)
}

// syncFS: sync(2) schedules, F_FULLFSYNC on the root waits.
func syncFS(root *os.File) error {
	if err := unix.Sync(); err != nil {
		return err
	}
	return root.Sync()
}

func renameNoReplace(f int, a string, t int, b string) error {
	return unix.RenameatxNp(f, a, t, b, unix.RENAME_EXCL)
}

func renameExchange(f int, a string, t int, b string) error {
	return unix.RenameatxNp(f, a, t, b, unix.RENAME_SWAP)
}

func unsupported(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.ENOTSUP
}

// exchangeIsJournalled: only APFS.
func exchangeIsJournalled(fd int) bool { return fsName(fd) == "apfs" }

func networkFS(fd int) string {
	switch n := fsName(fd); n {
	case "nfs", "smbfs", "afpfs", "webdav", "cifs":
		return n
	}
	return ""
}

func fsName(fd int) string {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return ""
	}
	return unix.ByteSliceToString(st.Fstypename[:])
}

// copyAttributes: extended attributes are left to the system on macOS, where
// ACLs are not attributes; mode and owner are copied by the caller.
func copyAttributes(int, string, int) {}

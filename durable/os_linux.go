package durable

import (
	"os"

	"golang.org/x/sys/unix"
)

func syncFile(fd int) error { return unix.Fsync(fd) }

func syncFS(root *os.File) error {
	return retry(func() error { return unix.Syncfs(int(root.Fd())) })
}

func renameNoReplace(f int, a string, t int, b string) error {
	return unix.Renameat2(f, a, t, b, unix.RENAME_NOREPLACE)
}

func renameExchange(f int, a string, t int, b string) error {
	return unix.Renameat2(f, a, t, b, unix.RENAME_EXCHANGE)
}

func unsupported(err error) bool {
	return err == unix.EINVAL || err == unix.ENOSYS || err == unix.EOPNOTSUPP
}

// exchangeIsJournalled names the file systems on which an exchange survives a
// power cut whole (spec: measured or documented); elsewhere it is not used.
func exchangeIsJournalled(fd int) bool {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return false
	}
	switch int64(st.Type) {
	case unix.EXT4_SUPER_MAGIC, unix.XFS_SUPER_MAGIC, unix.BTRFS_SUPER_MAGIC, unix.TMPFS_MAGIC:
		return true
	}
	return false
}

func networkFS(fd int) string {
	var st unix.Statfs_t
	if unix.Fstatfs(fd, &st) != nil {
		return ""
	}
	return map[int64]string{
		unix.NFS_SUPER_MAGIC: "NFS", unix.SMB_SUPER_MAGIC: "SMB", unix.SMB2_SUPER_MAGIC: "SMB", unix.CIFS_SUPER_MAGIC: "CIFS",
		unix.CEPH_SUPER_MAGIC: "Ceph", unix.AFS_SUPER_MAGIC: "AFS", unix.CODA_SUPER_MAGIC: "Coda", 0x0bd00bd0: "Lustre",
	}[int64(st.Type)]
}

// copyAttributes copies extended attributes (POSIX ACLs among them); what the
// file system or our rights refuse is left out.
func copyAttributes(dir int, base string, to int) {
	from, err := unix.Openat(dir, base, unix.O_RDONLY|unix.O_NOFOLLOW|unix.O_NONBLOCK|unix.O_CLOEXEC, 0)
	if err != nil {
		return
	}
	defer unix.Close(from)
	n, err := unix.Flistxattr(from, nil)
	if err != nil || n == 0 {
		return
	}
	names := make([]byte, n)
	if n, err = unix.Flistxattr(from, names); err != nil {
		return
	}
	start := 0
	for i := range names[:n] {
		if names[i] != 0 {
			continue
		}
		name := string(names[start:i])
		start = i + 1
		size, err := unix.Fgetxattr(from, name, nil)
		if err != nil {
			continue
		}
		value := make([]byte, size)
		if size, err = unix.Fgetxattr(from, name, value); err == nil {
			unix.Fsetxattr(to, name, value[:size], 0)
		}
	}
}

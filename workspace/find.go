package workspace

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/tiers"
)

// NotFoundError says that no workspace was found. There is no fallback.
type NotFoundError struct {
	From string
	Hint string
}

func (e *NotFoundError) Error() string { return "no workspace in " + e.From + " or above it" }

// Mend is the hint that goes with the error.
func (e *NotFoundError) Mend() string { return e.Hint }

// Find walks up from a directory to the first one that holds mem.yaml, or
// MEMORY.md beside memory/, or memory_sessions/.
func Find(from, home string) (string, error) {
	dir, err := filepath.Abs(from)
	if err != nil {
		return "", err
	}
	for d := dir; ; d = filepath.Dir(d) {
		if is(d, tiers.ConfigFile) || is(d, "MEMORY.md") && is(d, "memory") || is(d, "memory_sessions") {
			return d, nil
		}
		if d == filepath.Dir(d) {
			break
		}
	}
	hint := "mem init makes one here"
	if w := filepath.Join(home, ".openclaw", "workspace"); home != "" && is(w, ".") {
		hint += "; there is one at " + w + ": mem --workspace " + w
	}
	return "", &NotFoundError{dir, hint}
}

func is(dir, name string) bool {
	_, err := os.Stat(filepath.Join(dir, name))
	return err == nil
}

// OwnerError says that the workspace belongs to another user.
type OwnerError struct {
	Dir         string
	Owner, User uint32
}

func (e *OwnerError) Error() string {
	return fmt.Sprintf("%s belongs to user %d, this is user %d", e.Dir, e.Owner, e.User)
}

// Mend is the hint that goes with the error.
func (e *OwnerError) Mend() string {
	return fmt.Sprintf("run it as the owner (sudo -u '#%d' mem …), so that new files stay the owner's", e.Owner)
}

// NetworkError says that the workspace is on a network file system.
type NetworkError struct{ Dir, Kind string }

func (e *NetworkError) Error() string {
	return fmt.Sprintf("%s is on a network file system (%s), where locks and fsync do not hold across hosts", e.Dir, e.Kind)
}

// Mend is the hint that goes with the error.
func (e *NetworkError) Mend() string {
	return "if only this host ever writes there, set single_host: true in mem.yaml"
}

// Usable refuses a disk on which the engine's directory cannot be.
func Usable(dir string, disk durable.FS) error {
	if info, err := disk.Lstat(journal.Root); err == nil && !info.Mode.IsDir() {
		return fmt.Errorf("%s: %w", filepath.Join(dir, journal.Root), errors.New("is not a directory"))
	}
	return nil
}

// FileLock is the lock of a workspace directory.
func FileLock(dir string) Locker { return newFileLock(dir) }

// MayWrite refuses a workspace in which writing would not keep its promises:
// another user's, or one on a network file system.
func MayWrite(dir string, disk interface {
	durable.FS
	Network() string
}, rules tiers.Rules,
) error {
	info, err := disk.Lstat(".")
	if err != nil {
		return err
	}
	if uid := os.Geteuid(); uid >= 0 && info.UID != uint32(uid) {
		return &OwnerError{dir, info.UID, uint32(uid)}
	}
	if kind := disk.Network(); kind != "" && !rules.SingleHost {
		return &NetworkError{dir, kind}
	}
	return nil
}

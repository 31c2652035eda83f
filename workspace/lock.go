package workspace

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"

	"github.com/tieredmem/mem/journal"
)

// fileLock is the flock on .mem/lock. The file is never deleted; what it holds
// only tells others who has it.
type fileLock struct {
	path string
	f    *flock.Flock
}

// newFileLock returns the lock of a workspace.
func newFileLock(dir string) *fileLock {
	return &fileLock{path: filepath.Join(dir, journal.Root, "lock")}
}

const lockPoll = 5 * time.Millisecond

func (l *fileLock) Lock(ctx context.Context, who string) error {
	if info, err := os.Lstat(l.path); err == nil && !info.Mode().IsRegular() {
		return fmt.Errorf("%s is not a regular file", l.path)
	}
	for n := 0; ; n++ {
		if n > 0 && ctx.Err() != nil {
			return &LockedError{l.holder()}
		}
		l.f = flock.New(l.path, flock.SetFlag(os.O_CREATE|os.O_RDWR), flock.SetPermissions(0o600))
		ok, err := l.f.TryLock()
		if err == nil && !ok {
			ok, err = l.f.TryLockContext(ctx, lockPoll)
		}
		if errors.Is(err, context.DeadlineExceeded) || err == nil && !ok {
			return &LockedError{l.holder()}
		}
		if err != nil {
			return err
		}
		if l.named() {
			return l.note(who)
		}
		// Somebody deleted the file while we waited: others will lock its
		// successor, and so must we.
		if err := l.f.Unlock(); err != nil {
			return err
		}
	}
}

// named reports whether what is locked is what the name leads to.
func (l *fileLock) named() bool {
	mine, err := l.f.Stat()
	if err != nil {
		return false
	}
	now, err := os.Stat(l.path)
	return err == nil && os.SameFile(mine, now)
}

// note writes who holds the lock into it.
func (l *fileLock) note(who string) error {
	f, err := os.OpenFile(l.path, os.O_WRONLY, 0)
	if err != nil {
		return err
	}
	text := fmt.Sprintf("%-200s\n", fmt.Sprintf("mem %s, pid %d", who, os.Getpid()))
	_, err = f.WriteAt([]byte(text), 0)
	return errors.Join(err, f.Close())
}

func (l *fileLock) holder() string {
	b, err := os.ReadFile(l.path)
	if who := strings.TrimSpace(string(b)); err == nil && who != "" {
		if info, err := os.Stat(l.path); err == nil { // written when the lock was taken
			who += ", since " + info.ModTime().Format(time.RFC3339)
		}
		return who
	}
	return "another mem"
}

func (l *fileLock) Unlock() error { return l.f.Unlock() }

// Holder tells who holds the lock; "" for nobody. It takes the lock shared for
// a moment and leaves no trace.
func (l *fileLock) Holder() string {
	if info, err := os.Lstat(l.path); err != nil || !info.Mode().IsRegular() {
		return ""
	}
	f := flock.New(l.path, flock.SetFlag(os.O_RDONLY))
	ok, err := f.TryRLock()
	if err != nil {
		return ""
	}
	if !ok {
		return l.holder()
	}
	f.Close()
	return ""
}

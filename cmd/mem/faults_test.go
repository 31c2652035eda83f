//go:build unix

package main

import (
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/workspace"
)

// TestErrorsAtEveryCall: whatever call fails, reads too, once or from then on,
// a command never reports success with something missing, and leaves nothing
// that a run on a mended disk does not bring in order.
func TestErrorsAtEveryCall(t *testing.T) {
	t.Parallel() // on one processor, mostly
	if raceEnabled {
		t.Skip("ten times as slow under the race detector, and nothing in it is concurrent")
	}
	rules := testRules(t, "canonical")
	every := []error{syscall.ENOSPC, syscall.EIO, syscall.EACCES, syscall.EROFS, syscall.EMFILE, syscall.EDQUOT, syscall.EINTR, errShort}
	runs := 0
	for _, s := range scenarios() {
		errnos := every
		switch {
		case *faultsAll:
		case s.many() && s.program():
			continue // many calls that are all alike
		case s.program() || testing.Short():
			errnos = []error{syscall.EIO, errShort}
		default: // the others are of the same kinds; make faults has them all
			errnos = []error{syscall.ENOSPC, syscall.EIO, syscall.EACCES, syscall.EMFILE, errShort}
		}
		t.Run(s.name, func(t *testing.T) {
			c := s.on(t, rules, nil)
			calls := 0
			if err := c.Run(durable.Watch(c.Disk(), func(_ durable.Op, done bool) error {
				if !done {
					calls++
				}
				return nil
			})); err != nil {
				t.Fatal(err)
			}
			for n := 1; n <= calls; n++ {
				for _, errno := range errnos {
					for _, lasting := range []bool{false, true} {
						if errors.Is(errno, errShort) && lasting {
							continue // that is the full disk
						}
						runs++
						d := c.Disk()
						i, hit := 0, ""
						err := c.Run(durable.Watch(d, func(op durable.Op, done bool) error {
							if done {
								return nil
							}
							i++
							switch {
							case errors.Is(errno, errShort) && i >= n && hit == "" && op.Kind == "write":
							case !errors.Is(errno, errShort) && (i == n || lasting && i > n && touches(errno, op)):
							default:
								return nil
							}
							hit = op.String()
							return errno
						}))
						at := fmt.Sprintf("%v at call %d (%s), lasting %v", errno, n, hit, lasting)
						for f, want := range s.want.facts {
							if s.mend != nil { // the source, until it has landed
								want = min(want, 1)
							}
							if countText(d, f) < want {
								t.Errorf("%s: right after: %q is lost (err %v)", at, f, err)
							}
						}
						if err == nil {
							for _, v := range s.want.check(d, true) {
								t.Errorf("%s: reported success, but %s", at, v)
							}
						}
						if err := c.Mend(d); err != nil {
							t.Errorf("%s: recovery on the mended disk: %v", at, err)
							continue
						}
						for _, v := range s.want.check(d, err == nil) {
							t.Errorf("%s: after recovery: %s (err %v)", at, v, err)
						}
					}
				}
				if t.Failed() {
					break
				}
			}
		})
	}
	if !t.Failed() {
		fmt.Printf("faults: %d failing calls, 0 violations\n", runs)
	}
}

// errShort is half a write, and then no space.
var errShort = fmt.Errorf("%w: %w", durable.ErrShort, syscall.ENOSPC)

var faultsAll = flag.Bool("faults.all", false, "every kind of error at every call of every command line, too")

// touches reports whether a lasting fault meets this operation too: a full or
// read-only disk can still be read, an exhausted file table cannot.
func touches(errno error, op durable.Op) bool {
	is := func(errs ...syscall.Errno) bool {
		return slices.ContainsFunc(errs, func(e syscall.Errno) bool { return errors.Is(errno, e) })
	}
	switch {
	case is(syscall.ENOSPC, syscall.EDQUOT):
		return op.Kind == "create" || op.Kind == "write" || op.Kind == "mkdir"
	case is(syscall.EMFILE):
		return op.Kind == "open" || op.Kind == "create" || op.Kind == "readdir"
	case is(syscall.EROFS, syscall.EACCES):
		return op.Changes() && op.Kind != "fsync" && op.Kind != "syncdir" && op.Kind != "syncall"
	}
	return op.Changes()
}

// The tests below run mem as real processes.

type box struct {
	t   *testing.T
	dir string
	env []string
}

func newBox(t *testing.T) *box {
	t.Helper()
	b := &box{t: t, dir: filepath.Join(t.TempDir(), "w")}
	b.env = append(os.Environ(), "TZ=UTC", "HOME="+t.TempDir(), "XDG_CONFIG_HOME=", "XDG_STATE_HOME=", "MEM_TEST_KILL_AT=")
	b.must("init", b.dir)
	return b
}

func (b *box) cmd(env []string, args ...string) *exec.Cmd {
	b.t.Helper()
	name, err := exec.LookPath("mem") // this test binary: testscript.Main put it first on PATH
	if err != nil {
		b.t.Fatal(err)
	}
	c := exec.Command(name, args...)
	c.Env = append(append([]string{}, b.env...), env...)
	if _, err := os.Stat(b.dir); err == nil {
		c.Dir = b.dir
	}
	return c
}

func (b *box) must(args ...string) string {
	b.t.Helper()
	out, err := b.cmd(nil, args...).CombinedOutput()
	if err != nil {
		b.t.Fatalf("mem %v: %v\n%s", args, err, out)
	}
	return string(out)
}

func (b *box) append(name, text string) {
	b.t.Helper()
	f, err := os.OpenFile(filepath.Join(b.dir, name), os.O_APPEND|os.O_WRONLY, 0)
	if err != nil {
		b.t.Fatal(err)
	}
	if _, err := f.WriteString(text); err != nil {
		b.t.Fatal(err)
	}
	if err := f.Close(); err != nil {
		b.t.Fatal(err)
	}
}

// texts returns everything below memory/, and every name there.
func (b *box) texts() (string, []string) {
	b.t.Helper()
	var all bytes.Buffer
	var names []string
	err := filepath.WalkDir(filepath.Join(b.dir, "memory"), func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		rel, _ := filepath.Rel(b.dir, p)
		names = append(names, rel)
		text, err := os.ReadFile(p)
		all.Write(text)
		return err
	})
	if err != nil {
		b.t.Fatal(err)
	}
	return all.String(), names
}

// check wants each fact exactly once and nothing left over.
func (b *box) check(what string, facts []string) {
	b.t.Helper()
	all, names := b.texts()
	for _, f := range facts {
		if n := strings.Count(all, f+"\n"); n != 1 {
			b.t.Errorf("%s: %q stands %d times", what, f, n)
		}
	}
	for _, n := range names {
		for _, v := range checkName(filepath.ToSlash(n), "") {
			b.t.Errorf("%s: %s", what, v)
		}
	}
	open, err := os.ReadDir(filepath.Join(b.dir, ".mem", "tx"))
	if err != nil || len(open) > 0 {
		b.t.Errorf("%s: %d open transactions, %v", what, len(open), err)
	}
}

// TestKilledAtEachOperation: a real process ends, by its own SIGKILL, before
// its first operation, its second, its third …; each time mem recover brings
// everything in order.
func TestKilledAtEachOperation(t *testing.T) {
	for _, args := range [][]string{{"rotate", "--force"}, {"note", "a new line"}, {"close", "--signal", "x"}} {
		kills, step := 0, 1
		if raceEnabled {
			step = 5
		}
		for n := 1; ; n += step {
			b := newBox(t)
			facts := []string{fmt.Sprintf("- fact one of run %d", n), fmt.Sprintf("- fact two of run %d", n)}
			b.append("memory/working-buffer.md", strings.Join(facts, "\n")+"\n")
			err := b.cmd([]string{fmt.Sprintf("MEM_TEST_KILL_AT=%d", n)}, args...).Run()
			var exit *exec.ExitError
			killed := errors.As(err, &exit) && exit.Sys().(syscall.WaitStatus).Signal() == syscall.SIGKILL
			if err != nil && !killed {
				t.Fatalf("mem %v killed at %d: %v", args, n, err)
			}
			b.must("recover")
			b.check(fmt.Sprintf("mem %v killed at operation %d", args, n), facts)
			if out := b.must("recover"); !strings.Contains(out, "clean") {
				t.Errorf("a second recovery after a kill at %d: %s", n, out)
			}
			if !killed {
				break
			}
			kills++
		}
		if kills*step < 10 {
			t.Errorf("mem %v: only %d kills", args, kills)
		}
		t.Logf("mem %v: %d kills", args, kills)
	}
}

var stormTime = flag.Duration("storm", 4*time.Second, "how long TestRotationStorm runs")

// TestRotationStorm: eight rotations at once, again and again, each killed at
// a random moment or not, while writers that ignore the lock append through
// descriptors they opened before, and append anew by path. Every line stands
// exactly once in the end.
func TestRotationStorm(t *testing.T) {
	b := newBox(t)
	deadline := time.Now().Add(*stormTime)
	var mu sync.Mutex
	var facts []string
	kills, runs := 0, 0
	seed := uint32(1)
	random := func(n int) int { // reproducible enough; the scheduler is the real chance
		mu.Lock()
		defer mu.Unlock()
		seed = seed*1664525 + 1013904223
		return int(seed>>8) % n
	}
	buf := filepath.Join(b.dir, "memory", "working-buffer.md")
	var wg sync.WaitGroup
	for w := range 3 {
		wg.Go(func() {
			for i := 0; time.Now().Before(deadline); i++ {
				f, err := os.OpenFile(buf, os.O_APPEND|os.O_WRONLY, 0)
				if errors.Is(err, fs.ErrNotExist) {
					continue
				}
				if err != nil {
					t.Error(err)
					return
				}
				time.Sleep(time.Duration(random(2000)) * time.Microsecond) // an old descriptor by the time it writes
				fact := fmt.Sprintf("- writer %d line %d.", w, i)
				if _, err := f.WriteString(fact + "\n"); err != nil {
					t.Error(err)
				}
				f.Close()
				mu.Lock()
				facts = append(facts, fact)
				mu.Unlock()
			}
		})
	}
	for range 8 {
		wg.Go(func() {
			for time.Now().Before(deadline) {
				c := b.cmd(nil, "rotate", "--force")
				if err := c.Start(); err != nil {
					t.Error(err)
					return
				}
				mu.Lock()
				runs++
				mu.Unlock()
				if random(2) == 0 {
					time.Sleep(time.Duration(random(20000)) * time.Microsecond)
					if c.Process.Signal(syscall.SIGKILL) == nil {
						mu.Lock()
						kills++
						mu.Unlock()
					}
				}
				c.Wait()
			}
		})
	}
	wg.Wait()
	b.must("recover")
	b.must("recover")
	b.check("after the storm", facts)
	fmt.Printf("storm: %d rotations, %d killed, %d lines of writers that ignore the lock\n", runs, kills, len(facts))
	if runs == 0 || len(facts) == 0 {
		t.Error("nothing happened")
	}
}

// TestFullDisk: a real tmpfs of 64 KiB (case 5). Needs root.
func TestFullDisk(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount a tmpfs: make fulldisk")
	}
	dir := t.TempDir()
	if err := mountTmpfs(dir, "64k"); err != nil {
		t.Skipf("no tmpfs here: %v", err)
	}
	defer unmount(dir)
	b := newBox(t)
	if out, err := exec.Command("cp", "-a", b.dir+"/.", dir).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	b.dir = dir
	refused := 0
	for fill := 1; fill <= 64<<10; fill += 509 {
		fact := fmt.Sprintf("- fact at %d.", fill)
		b.append("memory/working-buffer.md", fact+"\n")
		ballast := filepath.Join(dir, "ballast")
		err := os.WriteFile(ballast, bytes.Repeat([]byte("x"), fill), 0o600)
		out, rerr := b.cmd(nil, "rotate", "--force").CombinedOutput()
		if rerr != nil {
			refused++
			var exit *exec.ExitError
			if !errors.As(rerr, &exit) || exit.ExitCode() != 2 || !bytes.Contains(out, []byte("mem: error:")) {
				t.Fatalf("full disk: %v: %s", rerr, out)
			}
		}
		all, _ := b.texts()
		if n := strings.Count(all, fact); n < 1 {
			t.Fatalf("disk filled with %d bytes (%v): %q is lost; %s", fill, err, fact, out)
		}
		if err := os.Remove(ballast); err != nil {
			t.Fatal(err)
		}
		b.must("recover")
		b.check(fmt.Sprintf("disk filled with %d bytes", fill), []string{fact})
		if fill%(509*8) == 1 { // keep the small disk from filling with receipts and trash
			b.must("trash", "prune", "--older-than", "1d", "--at", "2030-01-01")
			b.must("receipts", "prune", "--older-than", "1d", "--at", "2030-01-01")
		}
	}
	fmt.Printf("full disk: %d rotations refused, none lost anything\n", refused)
	if refused == 0 {
		t.Error("the disk was never full")
	}
}

// TestSecondUserIsRefused: another user's workspace is not written to.
func TestSecondUserIsRefused(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to give a workspace away")
	}
	b := newBox(t)
	if err := os.Chown(b.dir, 12345, 12345); err != nil {
		t.Fatal(err)
	}
	out, err := b.cmd(nil, "note", "x").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 2 || !bytes.Contains(out, []byte("belongs to user 12345")) || !bytes.Contains(out, []byte("hint:")) {
		t.Errorf("%v: %s", err, out)
	}
	b.must("status")
}

// TestHolderIsNamed: who waits too long is told for whom.
func TestHolderIsNamed(t *testing.T) {
	b := newBox(t)
	lock := workspace.FileLock(b.dir)
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := lock.Lock(ctx, "test of the lock"); err != nil {
		t.Fatal(err)
	}
	out, err := b.cmd(nil, "note", "x", "--lock-wait", "50ms").CombinedOutput()
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.ExitCode() != 3 || !bytes.Contains(out, []byte("locked by mem test of the lock, pid ")) {
		t.Errorf("%v: %s", err, out)
	}
	// Readers are not held up; they say who is at work (case 62).
	if out := b.must("status"); !strings.Contains(out, "running: mem test of the lock") {
		t.Error(out)
	}
	if err := lock.Unlock(); err != nil {
		t.Fatal(err)
	}
	b.must("note", "x", "--lock-wait", "0s")
}

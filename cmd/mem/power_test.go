//go:build linux && power

package main

import (
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"golang.org/x/sys/unix"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/workspace"
)

// These tests cut the power of real file systems: a process has its file
// system shut down in the middle of its work, as a power cut would leave it,
// and ends; the file system is mounted again, which replays its own log, and
// memory must be whole. They need root, loop devices, and mkfs; make power runs
// them.

var powerAll = flag.Bool("power.all", false, "cut every scenario, not only those of the five commands")

// powered are the scenarios of rotate, ingest, archive, review and record.
var powered = []string{"rotate", "rotate into a new note", "take one", "ingest", "ingest many", "archive", "review", "record", "promote sessions", "note", "write over a file", "accept"}

// ioctlShutdown is FS_IOC_SHUTDOWN: _IOR('X', 125, __u32).
const ioctlShutdown = 0x8004587d

// The ways to go down: with what the file system's own log holds written out,
// or without.
const (
	logFlush   = 1
	noLogFlush = 2
)

func init() { scenarioHook = scenarioProcess }

// scenarioProcess is one part of a scenario in a process of its own:
// NAME PART DIR, PART setup, run or mend.
func scenarioProcess() {
	name, part, dir := os.Args[1], os.Args[2], os.Args[3]
	all := scenarios()
	i := slices.IndexFunc(all, func(s scenario) bool { return s.name == name })
	disk, err := durable.Open(dir)
	if err != nil || i < 0 {
		fmt.Fprintln(os.Stderr, "scenario", name, err)
		os.Exit(2)
	}
	var d durable.FS = disk
	if at, err := strconv.Atoi(os.Getenv("MEM_TEST_CUT_AT")); err == nil {
		flag, _ := strconv.Atoi(os.Getenv("MEM_TEST_CUT_FLAG"))
		d = cutAt(d, dir, at, flag)
	}
	conf, err := tiers.ParseConfig("mem.yaml", []byte("layout: canonical\n"))
	if err == nil {
		var rules tiers.Rules
		rules, err = tiers.Load(tiers.Sources{Memory: os.DirFS(dir), Mem: &conf, Zone: time.UTC})
		if err == nil {
			w := func(at time.Time) *workspace.Workspace { return onDisk(d, rules, at) }
			switch part {
			case "setup":
				err = all[i].setup(w(at0.Add(-time.Minute)))
			case "run":
				err = all[i].run(w(at0))
			default:
				if all[i].mend != nil {
					err = all[i].mend(w(at0.Add(time.Minute)))
				}
				err = errors.Join(err, recoverNow(w(at0.Add(time.Minute))))
			}
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
	os.Exit(0)
}

// cutAt shuts the file system down before its n-th operation, and ends the
// process.
func cutAt(d durable.FS, dir string, n, flag int) durable.FS {
	ops := 0
	return durable.Watch(d, func(op durable.Op, done bool) error {
		if !op.Changes() || done {
			return nil
		}
		if ops++; ops == n {
			f, err := os.Open(dir)
			if err == nil {
				err = unix.IoctlSetPointerInt(int(f.Fd()), ioctlShutdown, flag)
			}
			if err != nil {
				fmt.Fprintln(os.Stderr, "shutdown:", err)
				os.Exit(3)
			}
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	})
}

// volume is a file system on a loop device.
type volume struct {
	name, image, dir string
	mkfs             []string
	options          string
}

func (v volume) mount() error {
	out, err := exec.Command("mount", "-o", "loop"+v.options, v.image, v.dir).CombinedOutput()
	if err != nil {
		return fmt.Errorf("mount: %w: %s", err, out)
	}
	return nil
}

func (v volume) unmount() error {
	for range 50 {
		if err := exec.Command("umount", v.dir).Run(); err == nil {
			return nil
		}
		time.Sleep(20 * time.Millisecond) // the killed process is being taken away
	}
	return errors.New("the volume stays busy")
}

func TestPowerCuts(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for loop devices")
	}
	cuts := 0
	for _, v := range []volume{
		{name: "ext4", mkfs: []string{"mkfs.ext4", "-q", "-F"}},
		{name: "ext4 noauto_da_alloc", mkfs: []string{"mkfs.ext4", "-q", "-F"}, options: ",noauto_da_alloc"},
		{name: "xfs", mkfs: []string{"mkfs.xfs", "-q", "-f"}},
	} {
		t.Run(v.name, func(t *testing.T) {
			if _, err := exec.LookPath(v.mkfs[0]); err != nil {
				t.Skip(v.mkfs[0] + " is not installed")
			}
			dir := t.TempDir()
			v.image, v.dir = filepath.Join(dir, "image"), filepath.Join(dir, "mnt")
			f, err := os.Create(v.image)
			if err == nil {
				err = errors.Join(f.Truncate(320<<20), f.Close(), os.Mkdir(v.dir, 0o755))
			}
			if err != nil {
				t.Fatal(err)
			}
			if out, err := exec.Command(v.mkfs[0], append(v.mkfs[1:], v.image)...).CombinedOutput(); err != nil {
				t.Skipf("%v: %s", err, out)
			}
			if err := v.mount(); err != nil {
				t.Skip(err)
			}
			defer exec.Command("umount", "-l", v.dir).Run() //nolint:errcheck // what a failed test has left mounted
			cuts += v.cutAll(t)
		})
	}
	fmt.Printf("power: %d cuts\n", cuts)
}

// cutAll cuts the power before every operation of every scenario, both ways.
func (v volume) cutAll(t *testing.T) (cuts int) {
	rules := testRules(t, "canonical")
	n := 0
	for _, s := range scenarios() {
		if s.tweak != nil || !*powerAll && !slices.Contains(powered, s.name) {
			continue
		}
		for _, how := range []int{logFlush, noLogFlush} {
			for at := 1; ; at++ {
				n++
				ws := filepath.Join(v.dir, fmt.Sprintf("w%d", n))
				v.lay(t, ws, s, rules)
				cut := v.run(t, s, ws, at, how)
				if err := v.unmount(); err != nil {
					t.Fatal(err)
				}
				if err := v.mount(); err != nil {
					t.Fatal(err)
				}
				where := fmt.Sprintf("%s, cut before operation %d, flag %d", s.name, at, how)
				if out, err := v.process(s, "mend", ws).CombinedOutput(); err != nil {
					t.Errorf("%s: recovery: %v: %s", where, err, out)
				}
				for _, bad := range s.want.check(v.read(t, ws), !cut) {
					t.Errorf("%s: %s", where, bad)
				}
				if t.Failed() {
					return cuts
				}
				if err := os.RemoveAll(ws); err != nil {
					t.Fatal(err)
				}
				if !cut {
					break
				}
				cuts++
			}
		}
	}
	return cuts
}

func (v volume) process(s scenario, part, ws string, env ...string) *exec.Cmd {
	name, err := exec.LookPath("scenario")
	if err != nil {
		panic(err)
	}
	c := exec.Command(name, s.name, part, ws)
	c.Env = append(append(os.Environ(), "MEM_TEST_CUT_AT="), env...)
	return c
}

// lay lays a scenario's files on the volume, durably.
func (v volume) lay(t *testing.T, ws string, s scenario, rules tiers.Rules) {
	t.Helper()
	d := engineDisk(t, rules, s.files)
	for _, name := range d.Names() {
		text, _ := d.Text(name)
		full := filepath.Join(ws, name)
		if err := os.MkdirAll(filepath.Dir(full), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(full, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, dir := range []string{"memory/episodic", ".mem/tx", ".mem/receipts/2026/11", ".mem/trash/2026/11"} {
		if err := os.MkdirAll(filepath.Join(ws, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	if s.setup != nil {
		if out, err := v.process(s, "setup", ws).CombinedOutput(); err != nil {
			t.Fatalf("%s: setup: %v: %s", s.name, err, out)
		}
	}
	syscall.Sync()
}

// run runs a scenario with the power cut at an operation; false if it ended
// before.
func (v volume) run(t *testing.T, s scenario, ws string, at, how int) (cut bool) {
	t.Helper()
	c := v.process(s, "run", ws, fmt.Sprintf("MEM_TEST_CUT_AT=%d", at), fmt.Sprintf("MEM_TEST_CUT_FLAG=%d", how))
	out, err := c.CombinedOutput()
	if err == nil {
		return false
	}
	var exit *exec.ExitError
	if !errors.As(err, &exit) || exit.Exited() {
		t.Fatalf("%s at %d: %v: %s", s.name, at, err, out)
	}
	return true
}

// read takes a tree into a disk of the oracle.
func (v volume) read(t *testing.T, ws string) *faultfs.Disk {
	t.Helper()
	d := faultfs.New()
	err := filepath.WalkDir(ws, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(ws, name)
		if err != nil {
			return err
		}
		b, err := os.ReadFile(name)
		if !strings.HasSuffix(rel, ".mem/lock") {
			d.Put(filepath.ToSlash(rel), string(b))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return d
}

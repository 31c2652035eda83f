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
// or without; or only the process, on file systems that cannot be shut down.
const (
	killOnly   = 0
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
			if flag != killOnly {
				f, err := os.Open(dir)
				if err == nil {
					err = unix.IoctlSetPointerInt(int(f.Fd()), ioctlShutdown, flag)
				}
				if err != nil {
					fmt.Fprintln(os.Stderr, "shutdown:", err)
					os.Exit(3)
				}
			}
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	})
}

// volume is a file system of its own: on a loop device, or through FUSE.
type volume struct {
	name, image, dir string
	mkfs             []string
	options          string
	fuse             []string // the program that mounts it; image and directory follow
	loop             bool     // it wants a block device
	size             int64    // bytes; 0: no image, a directory
}

// make makes the volume's image and mounts it.
func (v *volume) make(t *testing.T) {
	t.Helper()
	for _, tool := range append(slices.Clone(v.mkfs[:min(1, len(v.mkfs))]), v.fuse[:min(1, len(v.fuse))]...) {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skip(tool + " is not installed")
		}
	}
	dir := t.TempDir()
	v.image, v.dir = filepath.Join(dir, "image"), filepath.Join(dir, "mnt")
	err := os.Mkdir(v.dir, 0o755)
	if v.size == 0 {
		err = errors.Join(err, os.Mkdir(v.image, 0o755))
	} else if f, ferr := os.Create(v.image); ferr == nil {
		err = errors.Join(err, f.Truncate(v.size), f.Close())
	}
	if err != nil {
		t.Fatal(err)
	}
	if len(v.mkfs) > 0 {
		if out, err := exec.Command(v.mkfs[0], append(v.mkfs[1:], v.image)...).CombinedOutput(); err != nil {
			t.Skipf("%v: %s", err, out)
		}
	}
	if v.loop {
		out, err := exec.Command("losetup", "--find", "--show", v.image).Output()
		if err != nil {
			t.Skipf("losetup: %v", err)
		}
		v.image = strings.TrimSpace(string(out))
		t.Cleanup(func() { exec.Command("losetup", "-d", v.image).Run() }) //nolint:errcheck // likewise
	}
	if err := v.mount(); err != nil {
		t.Skip(err)
	}
	t.Cleanup(func() { exec.Command("umount", "-l", v.dir).Run() }) //nolint:errcheck // what a failed test has left mounted
}

func (v volume) mount() error {
	if len(v.fuse) > 0 {
		if out, err := exec.Command(v.fuse[0], append(v.fuse[1:], v.image, v.dir)...).CombinedOutput(); err != nil {
			return fmt.Errorf("%v: %w: %s", v.fuse, err, out)
		}
		return nil
	}
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
		{name: "ext4", mkfs: []string{"mkfs.ext4", "-q", "-F"}, size: 320 << 20},
		{name: "ext4 noauto_da_alloc", mkfs: []string{"mkfs.ext4", "-q", "-F"}, options: ",noauto_da_alloc", size: 320 << 20},
		{name: "xfs", mkfs: []string{"mkfs.xfs", "-q", "-f"}, size: 320 << 20},
	} {
		t.Run(v.name, func(t *testing.T) {
			v.make(t)
			cuts += v.cutAll(t, logFlush, noLogFlush)
		})
	}
	fmt.Printf("power: %d cuts\n", cuts)
}

// TestOtherFileSystems: no exchange of names (bindfs), no links either (exFAT),
// no stable file numbers: the process is killed before every operation.
func TestOtherFileSystems(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root to mount")
	}
	kills := 0
	for _, v := range []volume{
		{name: "bindfs", fuse: []string{"bindfs"}},
		{name: "exFAT", mkfs: []string{"mkfs.exfat"}, fuse: []string{"mount.exfat-fuse"}, loop: true, size: 64 << 20},
	} {
		t.Run(v.name, func(t *testing.T) {
			v.make(t)
			kills += v.cutAll(t, killOnly)
		})
	}
	fmt.Printf("other file systems: %d kills\n", kills)
}

// TestFullExt4: an unprivileged user's runs on an ext4 that has next to no room
// left, a block more each time (root could use what is set aside for it).
func TestFullExt4(t *testing.T) {
	if os.Geteuid() != 0 {
		t.Skip("needs root for a loop device")
	}
	v := volume{name: "ext4", mkfs: []string{"mkfs.ext4", "-q", "-F", "-b", "1024", "-O", "^has_journal"}, size: 3 << 20}
	v.make(t)
	const nobody = 65534
	b := newBox(t)
	ws := filepath.Join(v.dir, "w")
	if out, err := exec.Command("cp", "-a", b.dir, ws).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	for _, args := range [][]string{{"chown", "-R", "65534:65534", ws}, {"chmod", "755", v.dir, filepath.Dir(v.dir), filepath.Dir(filepath.Dir(v.dir))}} {
		if out, err := exec.Command(args[0], args[1:]...).CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	// A program that everybody may run.
	exe, err := exec.LookPath("mem")
	if err != nil {
		t.Fatal(err)
	}
	public := filepath.Join(filepath.Dir(v.dir), "mem")
	if out, err := exec.Command("cp", exe, public).CombinedOutput(); err != nil {
		t.Fatalf("%v %s", err, out)
	}
	b.dir = ws
	run := func(args ...string) ([]byte, error) {
		c := b.cmd(nil, args...)
		c.Path = public
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		return c.CombinedOutput()
	}
	as := func(name string, args ...string) error {
		c := exec.Command(name, args...)
		c.Dir = ws
		c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
		out, err := c.CombinedOutput()
		if err != nil {
			return fmt.Errorf("%v: %w %s", args, err, out)
		}
		return nil
	}
	refused, runs := 0, 0
	for _, args := range [][]string{{"rotate", "--force"}, {"note", "FACT-NEW"}, {"ingest"}, {"archive"}, {"learn", "error", "what failed"}, {"close", "--signal", "x"}, {"review"}} {
		for room := 0; room <= 40; room++ {
			fact := fmt.Sprintf("- fact of %s with room for %d.", args[0], room)
			b.append("memory/working-buffer.md", fact+"\n")
			b.handoff("handed over")
			must(t, exec.Command("chown", "-R", "65534:65534", ws).Run())
			must(t, as("sh", "-c", fmt.Sprintf("dd if=/dev/zero of=ballast bs=1024 2>/dev/null; [ %d = 0 ] || truncate -s -%dK ballast", room, room)))
			out, err := run(args...)
			runs++
			where := fmt.Sprintf("mem %v with room for %d blocks", args, room)
			if err != nil {
				refused++
				if !strings.Contains(string(out), "mem: ") {
					t.Fatalf("%s: %v without a word: %q", where, err, out)
				}
			}
			if all, _ := b.texts(); strings.Count(all, fact) < 1 {
				t.Fatalf("%s: %q is lost: %s", where, fact, out)
			}
			must(t, os.Remove(filepath.Join(ws, "ballast")))
			for _, again := range [][]string{{"recover"}, {"ingest"}, {"trash", "prune", "--older-than", "1d", "--at", "2030-01-01"}, {"receipts", "prune", "--older-than", "1d", "--at", "2030-01-01"}} {
				if out, err := run(again...); err != nil {
					t.Fatalf("%s: mem %v: %v: %s", where, again, err, out)
				}
			}
			b.check(where, []string{fact})
			must(t, as("sh", "-c", "rm -f .claude/memory-handoffs/processed/*"))
			must(t, os.WriteFile(filepath.Join(ws, "memory/working-buffer.md"), []byte("# Working Buffer\ncreated: 2026-11-30T08:00:00Z\nlast_active: 2026-11-30T08:00:00Z\n\n## Active Task:\n"), 0o644))
		}
	}
	fmt.Printf("full ext4: %d runs, %d refused, nothing lost\n", runs, refused)
	if refused == 0 {
		t.Error("the disk was never full")
	}
}

func must(t *testing.T, err error) {
	t.Helper()
	if err != nil {
		t.Fatal(err)
	}
}

// cutAll cuts the power before every operation of every scenario, both ways.
func (v volume) cutAll(t *testing.T, ways ...int) (cuts int) {
	rules := testRules(t, "canonical")
	n := 0
	for _, s := range scenarios() {
		if s.tweak != nil || !*powerAll && !slices.Contains(powered, s.name) {
			continue
		}
		for _, how := range ways {
			for at := 1; ; at++ {
				n++
				ws := filepath.Join(v.dir, fmt.Sprintf("w%d", n))
				v.lay(t, ws, s, rules)
				cut := v.run(t, s, ws, at, how)
				if how != killOnly || at%5 == 0 { // a disk mounted anew may number its files anew
					if err := v.unmount(); err != nil {
						t.Fatal(err)
					}
					if err := v.mount(); err != nil {
						t.Fatal(err)
					}
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

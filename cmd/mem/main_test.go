//go:build unix

package main

import (
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tieredmem/mem/durable"
)

// TestMain lets the test binary be mem: for scripts, and for tests that kill
// real processes. Only here can a process be told to kill itself.
func TestMain(m *testing.M) {
	os.Setenv("GORACE", noSleep)
	if at, err := strconv.Atoi(os.Getenv("MEM_TEST_KILL_AT")); err == nil {
		openDisk = killAt(at)
	}
	if d, err := time.ParseDuration(os.Getenv("MEM_TEST_EXTRACT_TIMEOUT")); err == nil {
		extractTimeout = d
	}
	commands := map[string]func(){"mem": main}
	if scenarioHook != nil {
		commands["scenario"] = scenarioHook
	}
	testscript.Main(mainAnd{m}, commands)
}

// mainAnd cleans up after all tests.
type mainAnd struct{ m *testing.M }

func (m mainAnd) Run() int {
	code := m.m.Run()
	for _, f := range cleanups {
		f()
	}
	return code
}

// scenarioHook runs parts of scenarios as processes; set by tests on real
// disks.
var scenarioHook func()

// noSleep keeps processes under the race detector from waiting a second before
// they end.
const noSleep = "atexit_sleep_ms=0"

// killAt ends the process, as SIGKILL does, before its n-th operation that
// changes the disk.
func killAt(n int) func(string) (disk, error) {
	var ops atomic.Int64 // on all its disks
	return watchDisks(func(op durable.Op, done bool) error {
		if op.Changes() && !done && ops.Add(1) == int64(n) {
			syscall.Kill(os.Getpid(), syscall.SIGKILL)
			select {}
		}
		return nil
	})
}

// watchDisks opens real directories with a watcher before them.
func watchDisks(w durable.Watcher) func(string) (disk, error) {
	return func(dir string) (disk, error) {
		d, err := durable.Open(dir)
		if err != nil {
			return nil, err
		}
		return watchedDisk{durable.Watch(d, w), d}, nil
	}
}

type watchedDisk struct {
	durable.FS
	real *durable.OS
}

func (d watchedDisk) Close() error    { return d.real.Close() }
func (d watchedDisk) Network() string { return d.real.Network() }

// TestScripts runs the transcripts in testdata/script, one per behaviour.
func TestScripts(t *testing.T) {
	testscript.Run(t, testscript.Params{
		Dir:                 filepath.Join("testdata", "script"),
		RequireExplicitExec: true,
		Setup: func(e *testscript.Env) error {
			e.Setenv("HOME", e.Getenv("WORK")+"/home")
			e.Setenv("TZ", "UTC")
			e.Setenv("GORACE", noSleep)
			e.Setenv("XDG_CONFIG_HOME", "")
			e.Setenv("XDG_STATE_HOME", "")
			e.Setenv("MEM_AT", "2026-11-30T09:30:00Z")
			return os.MkdirAll(e.Getenv("HOME"), 0o755)
		},
		Cmds: map[string]func(*testscript.TestScript, bool, []string){
			"exitcode": exitcodeCmd, "lines": linesCmd, "once": onceCmd, "utf16": utf16Cmd, "bytes": bytesCmd, "same": sameCmd, "fifo": fifoCmd, "handoff": handoffCmd0, "verdict": verdictCmd,
		},
		Condition: func(c string) (bool, error) {
			if c == "root" {
				return os.Geteuid() == 0, nil
			}
			return false, errors.New("unknown condition")
		},
		UpdateScripts: os.Getenv("UPDATE_SCRIPTS") != "",
	})
}

// exitcodeCmd: exitcode N mem ARGS… runs mem and wants exactly that code.
func exitcodeCmd(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 2 {
		ts.Fatalf("usage: exitcode N program args…")
	}
	want, err := strconv.Atoi(args[0])
	ts.Check(err)
	err = ts.Exec(args[1], args[2:]...)
	got := 0
	var exit interface{ ExitCode() int }
	if err != nil {
		var ok bool
		if exit, ok = err.(interface{ ExitCode() int }); !ok {
			ts.Fatalf("%v", err)
		}
		got = exit.ExitCode()
	}
	if got != want {
		ts.Fatalf("exit code %d, want %d", got, want)
	}
}

// linesCmd: lines FILE N adds N lines of work to a file.
func linesCmd(ts *testscript.TestScript, neg bool, args []string) {
	n, err := strconv.Atoi(args[1])
	ts.Check(err)
	f, err := os.OpenFile(ts.MkAbs(args[0]), os.O_APPEND|os.O_WRONLY|os.O_CREATE, 0o644)
	ts.Check(err)
	for i := range n {
		_, err := f.WriteString("- work " + strconv.Itoa(i+1) + ".\n")
		ts.Check(err)
	}
	ts.Check(f.Close())
}

// onceCmd: once TEXT wants the text exactly once below memory/; once N TEXT
// wants it N times.
func onceCmd(ts *testscript.TestScript, neg bool, args []string) {
	want := 1
	if len(args) == 2 {
		n, err := strconv.Atoi(args[0])
		ts.Check(err)
		want, args = n, args[1:]
	}
	got := 0
	ts.Check(filepath.WalkDir(ts.MkAbs("memory"), func(p string, e os.DirEntry, err error) error {
		if err != nil {
			return err
		}
		if e.Type().IsRegular() {
			b, err := os.ReadFile(p)
			if err != nil {
				return err
			}
			got += strings.Count(string(b), args[0])
		}
		return nil
	}))
	if got != want {
		ts.Fatalf("%q stands %d times, want %d", args[0], got, want)
	}
}

// utf16Cmd: utf16 FILE writes a little-endian UTF-16 file.
func utf16Cmd(ts *testscript.TestScript, neg bool, args []string) {
	b := []byte{0xff, 0xfe}
	for _, r := range "# Working Buffer\nsome text of an agent\n" {
		b = append(b, byte(r), 0)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), b, 0o644))
}

// bytesCmd: bytes FILE GO-QUOTED writes exactly these bytes.
func bytesCmd(ts *testscript.TestScript, neg bool, args []string) {
	s, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	if strings.HasPrefix(s, "@") { // @N: N bytes of text in one line
		n, err := strconv.Atoi(s[1:])
		ts.Check(err)
		s = strings.Repeat("x", n)
	}
	ts.Check(os.WriteFile(ts.MkAbs(args[0]), []byte(s), 0o644))
}

// sameCmd: same FILE GO-QUOTED wants the file to hold these bytes somewhere.
func sameCmd(ts *testscript.TestScript, neg bool, args []string) {
	s, err := strconv.Unquote(`"` + args[1] + `"`)
	ts.Check(err)
	b, err := os.ReadFile(ts.MkAbs(args[0]))
	ts.Check(err)
	if strings.Contains(string(b), s) == neg {
		ts.Fatalf("%s: contains %q: %v", args[0], s, !neg)
	}
}

// fifoCmd: fifo FILE makes a FIFO.
func fifoCmd(ts *testscript.TestScript, neg bool, args []string) {
	ts.Check(syscall.Mkfifo(ts.MkAbs(args[0]), 0o644))
}

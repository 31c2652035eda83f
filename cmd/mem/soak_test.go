//go:build unix

package main

import (
	"bytes"
	"errors"
	"flag"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

var soakTime = flag.Duration("soak", 3*time.Second, "how long TestSoak runs")

// soaker keeps account of what was written, by whom.
type soaker struct {
	*box
	mu       sync.Mutex
	seed     uint32
	deadline time.Time
	n        int
	kills    int
	runs     int
	certain  map[string]bool // facts that must stand once
	maybe    map[string]bool // facts of runs that were killed: at most once
	handoffs map[string]bool
}

func (s *soaker) random(n int) int { // reproducible enough; the scheduler is the real chance
	s.mu.Lock()
	defer s.mu.Unlock()
	s.seed = s.seed*1664525 + 1013904223
	return int(s.seed>>8) % n
}

func (s *soaker) fact(kind string) string {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.n++
	return fmt.Sprintf("%s fact number %d of the soak.", kind, s.n)
}

func (s *soaker) note(fact string, sure bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if sure {
		s.certain[fact] = true
	} else {
		s.maybe[fact] = true
	}
}

// run runs mem, perhaps killed on the way; true if it ended well.
func (s *soaker) run(args ...string) bool {
	c := s.cmd(nil, append(args, "--lock-wait", "20s")...)
	var out bytes.Buffer
	c.Stdout, c.Stderr = &out, &out
	if err := c.Start(); err != nil {
		s.t.Error(err)
		return false
	}
	s.mu.Lock()
	s.runs++
	s.mu.Unlock()
	if s.random(2) == 0 {
		time.Sleep(time.Duration(s.random(25_000)) * time.Microsecond)
		if c.Process.Signal(syscall.SIGKILL) == nil {
			s.mu.Lock()
			s.kills++
			s.mu.Unlock()
		}
	}
	err := c.Wait()
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.Exited() && bytes.Contains(out.Bytes(), []byte("panic")) {
		s.t.Errorf("mem %v: %s", args, out.String())
	}
	return err == nil
}

// command runs one of mem's writing commands.
func (s *soaker) command() {
	switch s.random(12) {
	case 0, 1, 2:
		f := s.fact("noted")
		s.note(f, s.run("note", f))
	case 3, 4:
		f := s.fact("learned")
		s.note(f, s.run("learn", "lesson", f))
	case 5, 6:
		s.run("rotate", "--force")
	case 7, 8:
		f := s.fact("handed over")
		s.mu.Lock()
		name := fmt.Sprintf("%06d.md", s.n)
		s.handoffs[f] = true
		s.mu.Unlock()
		text := fmt.Sprintf("## Title\nx\n\n## Recommended memory action\nno-card\n\n## Target document\nrules/soak.md\n\n## Suggested document content\n### At %s\n\n- %s\n", name, f)
		dir := filepath.Join(s.dir, boxDir)
		err := os.WriteFile(filepath.Join(dir, "."+name), []byte(text), 0o644)
		if err == nil {
			err = os.Rename(filepath.Join(dir, "."+name), filepath.Join(dir, name)) // as a careful agent does
		}
		if err != nil {
			s.t.Error(err)
		}
		s.run("ingest")
	case 9:
		s.run("close", "--decisions", "none")
	case 10:
		s.run("archive")
	default:
		s.run("recover")
	}
}

// append appends as a shell does, by path, to a file that others write, too.
func (s *soaker) append(file, kind string) {
	f, err := os.OpenFile(filepath.Join(s.dir, file), os.O_APPEND|os.O_WRONLY, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return
	}
	if err != nil {
		s.t.Error(err)
		return
	}
	time.Sleep(time.Duration(s.random(40)) * time.Millisecond) // an old descriptor by the time it writes
	fact := s.fact(kind)
	if _, err := f.WriteString("- " + fact + "\n"); err != nil {
		s.t.Error(err)
	}
	f.Close()
	s.note(fact, true)
}

// TestSoak: eight writers for a while: mem in its writing commands, half of the
// runs killed at a random moment; shells that append by path; an editor that
// saves by rename, and one that rewrites in place, each its own file. In the
// end each line is accounted for.
func TestSoak(t *testing.T) {
	s := &soaker{box: newBox(t), seed: 7, deadline: time.Now().Add(*soakTime), certain: map[string]bool{}, maybe: map[string]bool{}, handoffs: map[string]bool{}}
	for _, dir := range []string{boxDir, "rules"} {
		if err := os.MkdirAll(filepath.Join(s.dir, dir), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	defer func() { // a failure is looked at where it stands
		if t.Failed() {
			kept := filepath.Join(os.TempDir(), fmt.Sprintf("mem-soak-failed-%d", os.Getpid()))
			out, err := exec.Command("cp", "-a", s.dir, kept).CombinedOutput()
			t.Logf("the workspace is kept in %s (%v) %s", kept, err, out)
		}
	}()
	own := map[string]string{}
	var wg sync.WaitGroup
	loop := func(f func()) {
		wg.Go(func() {
			for time.Now().Before(s.deadline) {
				f()
			}
		})
	}
	for range 4 {
		loop(s.command)
	}
	loop(func() { s.append("memory/working-buffer.md", "appended") })
	loop(func() { s.append("memory/working-buffer.md", "added") })
	edit := func(name string, save func(full string, text []byte) error) {
		i := 0
		loop(func() {
			i++
			text := fmt.Sprintf("# Own\n\n- version %d of %s\n", i, name)
			if err := save(filepath.Join(s.dir, name), []byte(text)); err != nil {
				t.Error(err)
			}
			s.mu.Lock()
			own[name] = text
			s.mu.Unlock()
			time.Sleep(time.Millisecond)
		})
	}
	edit("memory/semantic/renamed.md", func(full string, text []byte) error {
		return errors.Join(os.WriteFile(full+"~", text, 0o644), os.Rename(full+"~", full))
	})
	edit("rules/inplace.md", func(full string, text []byte) error { return os.WriteFile(full, text, 0o644) })
	wg.Wait()
	for range 2 {
		s.must("recover")
		s.must("ingest")
	}
	s.must("recover")
	s.account(t, own)
	fmt.Printf("soak: %d runs, %d killed, %d lines, %d handoffs\n", s.runs, s.kills, len(s.certain)+len(s.maybe), len(s.handoffs))
	if s.runs == 0 || len(s.certain) == 0 {
		t.Error("nothing happened")
	}
}

// account looks where every line stands.
func (s *soaker) account(t *testing.T, own map[string]string) {
	t.Helper()
	var all, landed strings.Builder
	err := filepath.WalkDir(s.dir, func(name string, e fs.DirEntry, err error) error {
		if err != nil || !e.Type().IsRegular() {
			return err
		}
		rel, err := filepath.Rel(s.dir, name)
		if err != nil {
			return err
		}
		text, err := os.ReadFile(name)
		switch {
		case strings.HasPrefix(rel, ".mem/"), strings.HasPrefix(rel, ".claude/"):
		case strings.HasPrefix(rel, "memory/"), strings.HasPrefix(rel, ".learnings/"):
			all.Write(text)
		case rel == "rules/soak.md":
			landed.Write(text)
		}
		for _, bad := range checkName(filepath.ToSlash(rel), string(text)) {
			t.Errorf("%s: %s", rel, bad)
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	for f := range s.certain {
		if n := strings.Count(all.String(), f); n != 1 {
			t.Errorf("%q stands %d times", f, n)
		}
	}
	for f := range s.maybe {
		if n := strings.Count(all.String(), f); n > 1 {
			t.Errorf("%q, of a run that was killed, stands %d times", f, n)
		}
	}
	for f := range s.handoffs {
		if n := strings.Count(landed.String(), f); n != 1 {
			t.Errorf("the handoff %q has landed %d times", f, n)
		}
	}
	for name, text := range own {
		if b, err := os.ReadFile(filepath.Join(s.dir, name)); err != nil || string(b) != text {
			t.Errorf("%s is %q (%v), its only writer left %q", name, b, err, text)
		}
	}
}

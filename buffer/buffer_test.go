package buffer

import (
	"errors"
	"io/fs"
	"strconv"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

const file = "memory/working-buffer.md"

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func rules(t *testing.T, layout string) tiers.Rules {
	t.Helper()
	c, err := tiers.ParseConfig("mem.yaml", []byte("layout: "+layout+"\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tiers.Load(tiers.Sources{Memory: fstest.MapFS{}, Mem: &c, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s), Mode: 0o644} }

func header(active string) string {
	return "# Working Buffer\ncreated: 2026-11-30T08:00:00Z\nlast_active: " + active + "\n\n## Active Task:\n- x\n"
}

// The session rules of the source, one by one.
func TestSession(t *testing.T) {
	for _, c := range []struct {
		name, buffer  string
		lock          bool
		active, stale bool
		warns         bool
		lockAge       time.Duration // 0: unknown
	}{
		{"just now", header("2026-11-30T11:59:00Z"), false, true, false, false, 0},
		{"a minute under two hours", header("2026-11-30T10:01:00Z"), false, true, false, false, 0},
		{"two hours", header("2026-11-30T10:00:00Z"), false, false, false, false, 0},
		{"locked and recent", header("2026-11-30T11:00:00Z"), true, true, false, false, 0},
		{"locked, two hours", header("2026-11-30T10:00:00Z"), true, false, true, true, 0},
		{"locked, time unknown", "- x\n", true, true, false, false, 0},
		{"time unknown", "- x\n", false, false, false, false, 0},
		{"a little in the future", header("2026-11-30T12:04:00Z"), false, true, false, false, 0},
		{"in the future", header("2026-11-30T12:06:00Z"), false, true, false, true, 0},
		{"other offset", header("2026-11-30T19:59:00+08:00"), false, true, false, false, 0},
		{"five minutes in the future", header("2026-11-30T12:05:00Z"), false, true, false, false, 0},
		{"locked a minute under two hours ago, time unknown", "- x\n", true, true, false, false, 2*time.Hour - time.Minute},
		{"locked two hours ago, time unknown", "- x\n", true, false, true, true, 2 * time.Hour},
		{"locked three hours ago and recent", header("2026-11-30T11:00:00Z"), true, true, false, false, 3 * time.Hour},
	} {
		m := fstest.MapFS{file: text(c.buffer)}
		if c.lock {
			m[file+".lock"] = text("")
			if c.lockAge != 0 {
				m[file+".lock"].ModTime = now.Add(-c.lockAge)
			}
		}
		s, err := Inspect(m, rules(t, "canonical"))
		if err != nil {
			t.Fatal(err)
		}
		got := s.Session(rules(t, "canonical"), now)
		if got.Active != c.active || got.StaleLock != c.stale || (got.Warning != "") != c.warns {
			t.Errorf("%s: %+v", c.name, got)
		}
	}
}

func TestInspectOrdersPending(t *testing.T) {
	m := fstest.MapFS{file: text("- x\n")}
	for _, n := range []string{".pending-10", ".pending-2", ".pending", ".pending-x", ".rotating", ".lock", ".bak"} {
		m[file+n] = text("y")
	}
	s, err := Inspect(m, rules(t, "canonical"))
	if err != nil {
		t.Fatal(err)
	}
	want := ".pending .pending-2 .pending-10 .pending-x"
	got := strings.ReplaceAll(strings.Join(s.Pending, " "), file, "")
	if got != want || s.Rotating == "" || s.Lock == "" || s.Quiet(rules(t, "canonical")) {
		t.Errorf("%q, %+v", got, s)
	}
}

func TestNoteKeepsOneItem(t *testing.T) {
	p, err := Note(fstest.MapFS{file: text(header("2026-11-30T11:00:00Z"))}, rules(t, "canonical"), now, "one\ntwo\n\nthree\n")
	if err != nil || string(p.Steps[0].Text) != "- one\n  two\n  \n  three\n" {
		t.Errorf("%+v, %v", p.Steps, err)
	}
	if _, err := Note(fstest.MapFS{}, rules(t, "claude"), now, "x"); !errors.Is(err, ErrNoBuffer) {
		t.Error(err)
	}
}

func TestRotateDecides(t *testing.T) {
	r := rules(t, "canonical")
	long := header("2026-11-30T11:00:00Z") + strings.Repeat("- y\n", 80)
	for _, c := range []struct {
		name   string
		m      fstest.MapFS
		o      Options
		rotate bool
		err    error
	}{
		{"no buffer", fstest.MapFS{}, Options{Force: true}, false, nil},
		{"short", fstest.MapFS{file: text(header("2026-11-30T11:00:00Z"))}, Options{}, false, nil},
		{"short, forced", fstest.MapFS{file: text(header("2026-11-30T11:00:00Z"))}, Options{Force: true}, true, nil},
		{"long", fstest.MapFS{file: text(long)}, Options{}, true, nil},
		{"long, soft, active", fstest.MapFS{file: text(long)}, Options{Soft: true}, false, nil},
		{"interrupted", fstest.MapFS{file: text(long), file + ".pending": text("z")}, Options{}, false, ErrInterrupted},
	} {
		p, d, err := Rotate(c.m, r, now, c.o)
		if !errors.Is(err, c.err) || p.Empty() == c.rotate {
			t.Errorf("%s: %v %+v %v", c.name, p.Steps, d, err)
		}
		if c.rotate && (p.Phase != plan.PhaseSeal || p.Facts["note"] != "memory/episodic/2026-11-30.md") {
			t.Errorf("%s: %+v", c.name, p)
		}
	}
	unfit := fstest.MapFS{file: text(long), "memory/episodic/2026-11-30.md": &fstest.MapFile{Mode: fs.ModeDir | 0o755}}
	var u *UnfitError
	if _, _, err := Rotate(unfit, r, now, Options{}); !errors.As(err, &u) || u.Hint == "" {
		t.Error(err)
	}
}

// Next puts the text where the seal plan says, whatever day it is by then.
func TestNextKeepsTheDay(t *testing.T) {
	seal := plan.Plan{Facts: plan.Facts{"note": "memory/episodic/2026-11-29.md", "day": "2026-11-29"}, Steps: []plan.Step{{Kind: plan.Seal, Path: file, To: file + ".rotating"}}}
	p, err := Next(fstest.MapFS{}, rules(t, "canonical"), seal, []byte(header("2026-11-30T11:00:00Z")))
	if err != nil || len(p.Steps) != 2 || p.Steps[0].Path != "memory/episodic/2026-11-29.md" || !strings.HasPrefix(string(p.Steps[0].Seed), "# 2026-11-29\n") {
		t.Errorf("%+v, %v", p, err)
	}
	p, err = Next(fstest.MapFS{}, rules(t, "canonical"), seal, []byte("# Working Buffer\n"))
	if err != nil || len(p.Steps) != 1 || p.Steps[0].Kind != plan.Trash {
		t.Errorf("a template: %+v, %v", p, err)
	}
	if _, err = Next(fstest.MapFS{}, rules(t, "canonical"), seal, []byte("\xff\xfea\x00b\x00")); err == nil {
		t.Error("UTF-16 is taken")
	}
}

// What is no regular file is named by its kind.
func TestKinds(t *testing.T) {
	for mode, want := range map[fs.FileMode]string{fs.ModeSymlink: "a symlink", fs.ModeDir: "a directory", fs.ModeNamedPipe: "a FIFO", fs.ModeSocket: "a socket", fs.ModeDevice | fs.ModeCharDevice: "a device"} {
		if got := kind(mode); got != want {
			t.Errorf("%v is %s, want %s", mode, got, want)
		}
	}
}

// A closure block that says the same already is no change; a note that stands
// without one, and a missing one, are.
func TestCloseTwice(t *testing.T) {
	r := rules(t, "canonical")
	c := entry.ClosureArg{Decisions: "quartz"}
	p, err := Close(fstest.MapFS{}, r, now, c)
	if err != nil || len(p.Steps) != 1 {
		t.Fatal(p, err)
	}
	s := p.Steps[0]
	closed, _, err := entry.Place(entry.Change{Place: s.Place, Text: s.Text, Seed: s.Seed}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for what, m := range map[string]struct {
		m     fstest.MapFS
		steps int
	}{
		"closed the same way": {fstest.MapFS{s.Path: text(string(closed))}, 0},
		"closed another way":  {fstest.MapFS{s.Path: text(strings.Replace(string(closed), "quartz", "basalt", 1))}, 1},
		"open":                {fstest.MapFS{s.Path: text("# 2026-11-30\n")}, 1},
		"empty":               {fstest.MapFS{s.Path: text("")}, 1},
	} {
		if p, err := Close(m.m, r, now, c); err != nil || len(p.Steps) != m.steps {
			t.Errorf("%s: %+v, %v", what, p.Steps, err)
		}
	}
}

// A note may grow to the limit, and not by a byte more.
func TestFitNote(t *testing.T) {
	note := "memory/episodic/2026-11-30.md"
	m := fstest.MapFS{note: text("12345")}
	if _, _, err := fitNote(m, note, entry.MaxNote-5); err != nil {
		t.Error(err)
	}
	var u *UnfitError
	if _, _, err := fitNote(m, note, entry.MaxNote-4); !errors.As(err, &u) || !strings.Contains(u.Error(), strconv.Itoa(entry.MaxNote+1)) {
		t.Error(err)
	}
	m[note].Mode = 0o444
	if _, _, err := fitNote(m, note, 0); !errors.As(err, &u) || !strings.Contains(u.Error(), "read-only") {
		t.Error(err)
	}
}

// A buffer of as many lines as it may have stays; one more, and it goes. The
// note must have room for the block.
func TestRotateLimits(t *testing.T) {
	r := rules(t, "canonical")
	long := func(lines int) string { return header("2026-11-30T09:00:00Z") + strings.Repeat("- y\n", lines-6) } // the header has six
	for lines, rotates := range map[int]bool{r.Limits.BufferLines: false, r.Limits.BufferLines + 1: true} {
		p, d, err := Rotate(fstest.MapFS{file: text(long(lines))}, r, now, Options{})
		if err != nil || d.Lines != lines || p.Empty() == rotates {
			t.Errorf("%d lines: %+v, %v", lines, d, err)
		}
	}
	buffer := long(r.Limits.BufferLines + 1)
	note := "memory/episodic/2026-11-30.md"
	for over, fits := range []bool{true, false} {
		size := entry.MaxNote - len(buffer) - blockOverhead + over
		m := fstest.MapFS{file: text(buffer), note: text(strings.Repeat("0123456789abcde\n", size/16+1)[:size])}
		_, _, err := Rotate(m, r, now, Options{})
		var u *UnfitError
		if (err == nil) != fits || (err != nil && !errors.As(err, &u)) {
			t.Errorf("a note of %d bytes: %v", size, err)
		}
		// the second half asks the same of what was sealed
		seal := plan.Plan{Facts: plan.Facts{"note": note, "day": "2026-11-30"}, Steps: []plan.Step{{Kind: plan.Seal, Path: file, To: file + ".rotating"}}}
		if _, err := Next(m, r, seal, []byte(buffer)); (err == nil) != fits {
			t.Errorf("the second half, a note of %d bytes: %v", size, err)
		}
	}
}

// What recovery says it did with a text that was set aside.
func TestRecoverSays(t *testing.T) {
	r := rules(t, "canonical")
	note := "memory/episodic/2026-11-29.md"
	pending := header("2026-11-29T11:00:00Z")
	block := string(entry.Block([]byte(pending), plan.Hash([]byte(pending)), time.UTC, "\n"))
	for what, c := range map[string]struct {
		m      fstest.MapFS
		action string
		steps  int
	}{
		"text in no note":  {fstest.MapFS{file + ".pending": text(pending), note: text("# 2026-11-29\n")}, "brought its text to memory/episodic/2026-11-30.md", 2},
		"text in a note":   {fstest.MapFS{file + ".pending": text(pending), note: text("# 2026-11-29\n" + block)}, "its text was in a note already", 1},
		"a part in a note": {fstest.MapFS{file + ".pending": text(pending + "- late\n"), note: text("# 2026-11-29\n" + block)}, "brought its text to memory/episodic/2026-11-30.md", 2},
		"a template":       {fstest.MapFS{file + ".pending": text("# Working Buffer\n")}, "held only a template", 1},
		"nothing":          {fstest.MapFS{file + ".pending": text("")}, "held only a template", 1},
		"a buffer is gone": {fstest.MapFS{"memory/x.md": text("x")}, "created a fresh working buffer", 1},
		"a stale sentinel": {fstest.MapFS{file: text("- x\n"), file + ".lock": text("")}, "removed a stale sentinel", 1},
		"nothing to do":    {fstest.MapFS{file: text("- x\n")}, "", 0},
		"no memory at all": {fstest.MapFS{}, "", 0},
		"all but the dir":  {fstest.MapFS{"README.md": text("x")}, "", 0},
	} {
		p, l, err := Recover(c.m, r, now, func(string) bool { return false })
		if err != nil || l.Action != c.action || len(p.Steps) != c.steps {
			t.Errorf("%s: %q, %d steps, %v", what, l.Action, len(p.Steps), err)
		}
	}
	// What is no file is named, and by its kind; the rest goes on without it.
	for _, name := range []string{file + ".lock", file + ".rotating"} {
		m := fstest.MapFS{file: text("- x\n"), name + "/x": text("")}
		var u *UnfitError
		_, l, err := Recover(m, r, now, func(string) bool { return false })
		if !errors.As(err, &u) || !strings.Contains(err.Error(), "is a directory, not a regular file") || l.Path != name {
			t.Errorf("%s: %+v, %v", name, l, err)
		}
		if p, _, err := Recover(m, r, now, func(n string) bool { return n == name }); err != nil || len(p.Steps) != 0 {
			t.Errorf("%s skipped: %+v, %v", name, p, err)
		}
	}
}

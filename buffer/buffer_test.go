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

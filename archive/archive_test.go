package archive_test

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tieredmem/mem/archive"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

var now = time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)

func canonical(t *testing.T) tiers.Rules {
	t.Helper()
	r, err := tiers.Load(tiers.Sources{Memory: fstest.MapFS{"mem.yaml": {}}, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

func file(text string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(text)} }

func find(t *testing.T, ds []archive.Decision, path string) archive.Decision {
	t.Helper()
	i := slices.IndexFunc(ds, func(d archive.Decision) bool { return d.Path == path })
	if i < 0 {
		t.Fatalf("nothing was decided about %s: %v", path, ds)
	}
	return ds[i]
}

func TestNotesByAge(t *testing.T) {
	r := canonical(t)
	const dir = "memory/episodic/"
	old := fstest.MapFS{
		dir + "2026-11-30.md": file("today"),
		dir + "2026-11-29.md": file("yesterday"),
		dir + "2026-11-20.md": file("ten days"),
		dir + "2026-11-19.md": file("eleven days"),
		dir + "2026-12-24.md": file("a day to come"),
		dir + "notes.md":      file("a topic"),
	}
	for name, c := range map[string]struct {
		limit    int
		outcomes map[string]string
	}{
		"as old as the limit stays": {10, map[string]string{
			"2026-11-30.md": archive.Kept + ": today's note",
			"2026-11-29.md": archive.Kept + ": 1 day old, 10 stay",
			"2026-11-20.md": archive.Kept + ": 10 days old, 10 stay",
			"2026-11-19.md": archive.Archived + ": 11 days old, more than 10",
			"2026-12-24.md": archive.Kept + ": -24 days old, 10 stay",
		}},
		"one day": {1, map[string]string{
			"2026-11-29.md": archive.Kept + ": 1 day old, 1 stay",
			"2026-11-20.md": archive.Archived + ": 10 days old, more than 1",
		}},
		"no limit":                {0, map[string]string{"2026-11-19.md": archive.Kept + ": this layout archives no notes"}},
		"a limit that makes none": {-1, map[string]string{"2026-11-29.md": archive.Kept + ": this layout archives no notes"}},
	} {
		_, ds, err := archive.Notes(old, r, now, c.limit)
		if err != nil {
			t.Fatal(err)
		}
		for base, want := range c.outcomes {
			d := find(t, ds, dir+base)
			if got := d.Outcome + ": " + d.Reason; got != want {
				t.Errorf("%s: %s is %s, want %s", name, base, got, want)
			}
		}
	}
}

// What an interrupted rotation left may lie in a note: it stays where recovery
// looks.
func TestNotesWaitForRecovery(t *testing.T) {
	r := canonical(t)
	for beside, waits := range map[string]bool{".rotating": true, ".pending": true, ".pending-20261130": true, ".bak": false, "-old.md": false} {
		m := fstest.MapFS{"memory/episodic/2026-01-05.md": file("old"), r.Buffer.File + beside: file("- a line\n")}
		_, ds, err := archive.Notes(m, r, now, 10)
		if err != nil {
			t.Fatal(err)
		}
		if got := find(t, ds, "memory/episodic/2026-01-05.md").Outcome == archive.Kept; got != waits {
			t.Errorf("beside %s a note waits: %v, want %v", beside, got, waits)
		}
	}
}

// Whatever stands in the archive keeps its name, and no name is used twice.
func TestNamesakes(t *testing.T) {
	r := canonical(t)
	const name = "memory/episodic/2026-01-05.md"
	dir := r.ArchiveDir("2026-01-05")
	full := fstest.MapFS{name: file("text")}
	for n := 1; n < 1000; n++ {
		full[dir+"/"+numbered(n)] = file("other")
	}
	room := fstest.MapFS{}
	for n, f := range full {
		room[n] = f
	}
	delete(room, dir+"/"+numbered(999))
	for what, c := range map[string]struct {
		m           fstest.MapFS
		outcome, to string
		kind        plan.Kind
		reason      string
	}{
		"none":            {fstest.MapFS{name: file("text")}, archive.Archived, dir + "/2026-01-05.md", plan.Move, ""},
		"one":             {fstest.MapFS{name: file("text"), dir + "/2026-01-05.md": file("other")}, archive.Archived, dir + "/2026-01-05-2.md", plan.Move, ""},
		"the same text":   {fstest.MapFS{name: file("text"), dir + "/2026-01-05.md": file("text")}, archive.Archived, dir + "/2026-01-05.md", plan.Trash, ""},
		"a directory":     {fstest.MapFS{name: file("text"), dir + "/2026-01-05.md/x": file("")}, archive.Archived, dir + "/2026-01-05-2.md", plan.Move, ""},
		"the last number": {room, archive.Archived, dir + "/2026-01-05-999.md", plan.Move, ""},
		"every number":    {full, archive.Skipped, "", "", dir + "/2026-01-05.md has 1000 namesakes"},
	} {
		p, ds, err := archive.Notes(c.m, r, now, 10)
		if err != nil {
			t.Fatal(err)
		}
		d := find(t, ds, name)
		var kind plan.Kind
		if len(p.Steps) == 1 {
			kind = p.Steps[0].Kind
		}
		if d.Outcome != c.outcome || d.To != c.to || kind != c.kind || (c.reason != "" && d.Reason != c.reason) {
			t.Errorf("%s: %+v, step %q", what, d, kind)
		}
	}
}

func numbered(n int) string {
	if n == 1 {
		return "2026-01-05.md"
	}
	return fmt.Sprintf("2026-01-05-%d.md", n)
}

const lessons = `# Learnings

## [LRN-20261120-001] ten days
- Logged: 2026-11-20

ten

## [LRN-20261119-001] eleven days
- Logged: 2026-11-19

eleven
`

func TestLessonsByAge(t *testing.T) {
	r := canonical(t)
	name := r.Scratch.Dir + "/" + r.Scratch.Files[0]
	for limit, want := range map[int][2]string{
		10: {archive.Kept + ": 10 days old, 10 stay", archive.Archived + ": 11 days old, more than 10"},
		11: {archive.Kept + ": 10 days old, 11 stay", archive.Kept + ": 11 days old, 11 stay"},
		9:  {archive.Archived + ": 10 days old, more than 9", archive.Archived + ": 11 days old, more than 9"},
		0:  {archive.Kept + ": lessons are kept for ever", archive.Kept + ": lessons are kept for ever"},
		-1: {archive.Kept + ": lessons are kept for ever", archive.Kept + ": lessons are kept for ever"},
	} {
		_, ds, err := archive.Lessons(fstest.MapFS{name: file(lessons)}, r, now, limit, false)
		if err != nil || len(ds) != 2 {
			t.Fatal(ds, err)
		}
		for i, d := range ds {
			if got := d.Outcome + ": " + d.Reason; got != want[i] {
				t.Errorf("limit %d: entry %d is %s, want %s", limit, i+1, got, want[i])
			}
		}
	}
}

// A file of SCRATCH that is not canonical is dated by its name, else by the
// newest day in it that is no day to come.
func TestLegacyByAge(t *testing.T) {
	r := canonical(t)
	stays := "; --legacy moves it now"
	for what, c := range map[string]struct {
		base, text string
		limit      int
		all        bool
		want       string
	}{
		"as old as the limit":     {"a.md", "2026-11-20", 10, false, "kept: 10 days old, 10 stay" + stays},
		"older":                   {"a.md", "2026-11-19", 10, false, "archived: 11 days old, more than 10"},
		"by its name":             {"2026-11-19-a.md", "2026-11-30", 10, false, "archived: 11 days old, more than 10"},
		"by its newest day":       {"a.md", "2026-01-01, 2026-11-20, 2026-02-02", 10, false, "kept: 10 days old, 10 stay" + stays},
		"a day to come is none":   {"a.md", "2026-11-19 2026-12-01", 10, false, "archived: 11 days old, more than 10"},
		"today is no day to come": {"a.md", "2026-11-19 2026-11-30", 10, false, "kept: 0 days old, 10 stay" + stays},
		"no day of the calendar":  {"a.md", "2026-11-19 2026-11-31", 10, false, "archived: 11 days old, more than 10"},
		"digits beside it: 0":     {"a.md", "02026-11-19 2026-11-300", 10, false, "kept: has no date; --legacy moves it"},
		"digits beside it: 9":     {"a.md", "92026-11-19 2026-11-309", 10, false, "kept: has no date; --legacy moves it"},
		"one begins in another":   {"a.md", "- ERR-0001-02-2026-11-19 x", 10, false, "archived: 11 days old, more than 10"},
		"letters beside it":       {"a.md", "v2026-11-19z", 10, false, "archived: 11 days old, more than 10"},
		"no date":                 {"a.md", "text", 10, false, "kept: has no date; --legacy moves it"},
		"for ever":                {"a.md", "2026-11-19", 0, false, "kept: 11 days old, 0 stay" + stays},
		"all":                     {"a.md", "2026-11-29", 10, true, "archived: not one of the canonical files"},
		"all, no date":            {"a.md", "text", 10, true, "archived: not one of the canonical files"},
	} {
		_, ds, err := archive.Lessons(fstest.MapFS{r.Scratch.Dir + "/" + c.base: file(c.text)}, r, now, c.limit, c.all)
		if err != nil {
			t.Fatal(err)
		}
		d := find(t, ds, r.Scratch.Dir+"/"+c.base)
		if got := d.Outcome + ": " + d.Reason; got != c.want {
			t.Errorf("%s: %s, want %s", what, got, c.want)
		}
	}
	to := archive.LessonsRoot(r) + "/2026/11/a.md"
	p, ds, err := archive.Lessons(fstest.MapFS{r.Scratch.Dir + "/a.md": file("2026-11-19"), to: file("2026-11-19")}, r, now, 10, false)
	if err != nil || len(p.Steps) != 1 || p.Steps[0].Kind != plan.Trash || ds[0].To != to || !strings.Contains(ds[0].Reason, "the same text is in the archive") {
		t.Errorf("a copy of what the archive has: %v %+v %v", p.Steps, ds, err)
	}
}

// broken is a file system of which one file cannot be read.
type broken struct {
	fstest.MapFS
	name string
}

var errRead = errors.New("input/output error")

func (b broken) ReadFile(name string) ([]byte, error) {
	if name == b.name {
		return nil, &fs.PathError{Op: "read", Path: name, Err: errRead}
	}
	return b.MapFS.ReadFile(name)
}

// What cannot be read is skipped with the reason, and the rest goes on.
func TestUnreadable(t *testing.T) {
	r := canonical(t)
	scratch := r.Scratch.Dir + "/" + r.Scratch.Files[0]
	note := "memory/episodic/2026-01-05.md"
	in := r.ArchiveDir("2026-01-05") + "/2026-01-05.md"
	month := archive.LessonsRoot(r) + "/2026/11/" + strings.ToUpper(strings.TrimSuffix(r.Scratch.Files[0], ".md")) + ".md"
	m := fstest.MapFS{scratch: file(lessons), note: file("text"), in: file("other"), r.Scratch.Dir + "/2026-01-05.md": file("old"), month: file("# LEARNINGS, archived\n")}
	lessonsOf := func(m fs.FS) ([]archive.Decision, error) {
		_, ds, err := archive.Lessons(m, r, now, 10, false)
		return ds, err
	}
	notesOf := func(m fs.FS) ([]archive.Decision, error) {
		_, ds, err := archive.Notes(m, r, now, 10)
		return ds, err
	}
	for _, c := range []struct {
		broken, path, outcome string
		look                  func(fs.FS) ([]archive.Decision, error)
	}{
		{"", scratch, archive.Archived, lessonsOf},
		{scratch, scratch, archive.Skipped, lessonsOf},
		{month, scratch, archive.Skipped, lessonsOf},
		{scratch, r.Scratch.Dir + "/2026-01-05.md", archive.Archived, lessonsOf},
		{note, note, archive.Skipped, notesOf},
		{in, note, archive.Archived, notesOf}, // whatever stands there, it keeps its name
	} {
		ds, err := c.look(broken{m, c.broken})
		if err != nil {
			t.Fatal(err)
		}
		slices.SortStableFunc(ds, func(a, b archive.Decision) int { return cmp.Compare(b.Line, a.Line) })
		if d := find(t, ds, c.path); d.Outcome != c.outcome || (c.outcome == archive.Skipped && !strings.Contains(d.Reason, errRead.Error())) {
			t.Errorf("%s unreadable: %+v", c.broken, d)
		}
	}
}

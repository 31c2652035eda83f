package tiers

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"
)

func TestConfigErrors(t *testing.T) {
	for _, c := range []struct {
		text, want, hint string
		line             int
	}{
		{"colour: red\n", `unknown key "colour"`, "did you mean", 1},
		{"layout: canonical\nlimits:\n  hot_line: 3\n", `unknown key "limits.hot_line"`, `"limits.hot_lines"`, 3},
		{"timezon: UTC\n", `unknown key "timezon"`, `"timezone"`, 1},
		{"layout: a\nlayout: b\n", `key "layout" is already set in line 1`, "keep one", 2},
		{"limits: {hot_lines: 1, hot_lines: 2}\n", "already set", "keep one", 1},
		{"layout: nope\n", `unknown layout "nope"`, "canonical", 1},
		{"timezone: Mars/Base\n", "unknown time zone", "Europe/Berlin", 1},
		{"limits: {buffer_lines: 0}\n", "not a number of 1 or more", "mem config", 1},
		{"limits: {buffer_lines: 1e9}\n", "not a number of 1 or more", "", 1},
		{"ttl: {notes: soon}\n", "not an age", "", 1},
		{"ttl: {notes: 0d}\n", "not an age", "", 1},
		{"limits: 3\n", "holds several keys", "", 1},
		{"tags: &x {a: [b]}\n", "anchors and aliases", "write the value out", 1},
		{"extractor: !!seq [a]\n", "tags are not used", "", 1},
		{"handoffs: {<<: {host: x}}\n", "merges are not used", "", 1},
		{"extractor: claude\n", "is not a list", "", 1},
		{"note: ../{date}.md\n", "not a path in the workspace", "", 1},
		{"note: memory/note.md\n", "not a path in the workspace", "", 1},
		{"handoffs: {discover: [{depth: 2}]}\n", "names no root", "", 1},
		{"handoffs: {discover: [{root: x, promote: some}]}\n", "none, cards or all", "", 1},
		{"a: [b\n", "not YAML", "", 0},
		{"- a\n", "not a list of keys", "", 1},
		{strings.Repeat("[", 60000), "nested too deep", "", 0},
		{strings.Repeat("[\n", 30000), "nested too deep", "", 0},
		{"# " + strings.Repeat("x", 70<<10), "at most 65536", "", 0},
		{"layout: canonical\n---\nbogus: 1\n", "more than one document", "", 0},
		{"layout: canonical\n...\nbogus: 1\n", "", "", 0},
		{"note: .git/{date}.md\n", "not a path in the workspace", "", 1},
		{"git: {commit: maybe}\n", "neither true nor false", "", 1},
	} {
		start := time.Now()
		_, err := ParseConfig("mem.yaml", []byte(c.text))
		var ce *ConfigError
		if !errors.As(err, &ce) || !strings.Contains(ce.Msg, c.want) || !strings.Contains(ce.Hint, c.hint) || c.line > 0 && ce.Line != c.line {
			t.Errorf("%.40q: %v (hint %+v)", c.text, err, ce)
		}
		if d := time.Since(start); d > time.Second {
			t.Errorf("%.40q took %v", c.text, d)
		}
	}
}

func TestLoadOverrides(t *testing.T) {
	parse := func(name, s string) *Config {
		c, err := ParseConfig(name, []byte(s))
		if err != nil {
			t.Fatal(err)
		}
		return &c
	}
	user := parse("user", "limits: {buffer_lines: 70, open_questions: 9}\nextractor: [mine]\ntimezone: Asia/Tokyo\n")
	mem := parse("mem.yaml", "layout: openclaw\nlimits: {buffer_lines: 60}\nextractor: [theirs]\nttl: {notes: 4w}\nnote: log/{date}.md\nprojects: {a: sub/a}\n")
	s := Sources{Memory: fstest.MapFS{}, User: user, Mem: mem, Zone: time.UTC}
	r, err := Load(s)
	if err != nil {
		t.Fatal(err)
	}
	if r.Name != "openclaw" || r.Limits.BufferLines != 60 || r.Limits.OpenQuestions != 9 || r.TTL.Notes != 28*24*time.Hour || r.Extractor[0] != "mine" || r.Location.String() != "Asia/Tokyo" || r.Projects["a"] != "sub/a" {
		t.Errorf("%+v", r)
	}
	at := time.Date(2026, 11, 30, 20, 0, 0, 0, time.UTC)
	if got := r.NotePath(at); got != "log/2026-12-01.md" {
		t.Error(got)
	}
	s.Trusted = true
	if r, err = Load(s); err != nil || r.Extractor[0] != "theirs" {
		t.Errorf("%v %v", r.Extractor, err)
	}
	if len(rules.Layouts["openclaw"].Notes) != 2 {
		t.Error("loading one workspace's rules changed the layout")
	}
}

func TestGuardedProjects(t *testing.T) {
	for text, want := range map[string]int{
		"projects: {a: sub/a}\n": 0, "projects: {a: ../b}\n": 1, "projects: {a: /b}\n": 1, "projects: {a: ~/b}\n": 1,
		"git: {commit: false}\n": 0, "git: {commit: true}\n": 1, "handoffs: {host: h}\n": 0,
	} {
		c, err := ParseConfig("mem.yaml", []byte(text))
		if err != nil || len(c.Guarded()) != want {
			t.Errorf("%s: %v, %v", text, c.Guarded(), err)
		}
	}
}

func TestNoteDay(t *testing.T) {
	for name, want := range map[string]string{
		"2026-01-05.md": "2026-01-05", "2026-01-05-slug.md": "2026-01-05", "2026-01-05_slug.md": "2026-01-05", "2026-01-05-日本.md": "2026-01-05",
		"2026-02-30.md": "", "2026-1-5.md": "", "20260105.md": "", "2026-01-05-.md": "", "2026-01-05.txt": "", "2026-01-05x.md": "", "README.md": "", "notes.md": "", "0000-00-00.md": "",
	} {
		got, ok := NoteDay(name)
		if got != want || ok != (want != "") {
			t.Errorf("%s: %q %v", name, got, ok)
		}
	}
}

func TestDetectLayout(t *testing.T) {
	file := &fstest.MapFile{Data: []byte("x")}
	buf := &fstest.MapFile{Data: []byte("# Working Buffer\n")}
	for _, c := range []struct {
		want string
		m    fstest.MapFS
	}{
		{"canonical", fstest.MapFS{}},
		{"canonical", fstest.MapFS{"memory/episodic/x.md": file, "memory/2026-01-01.md": file}},
		{"canonical", fstest.MapFS{"memory/working-buffer.md": buf, ".learnings/ERRORS.md": file, "memory/2026-01-01.md": file}},
		{"canonical", fstest.MapFS{"memory/working-buffer.md": buf, "memory/semantic/x.md": file}},
		{"openclaw", fstest.MapFS{"memory/working-buffer.md": file, ".learnings/ERRORS.md": file, "memory/2026-01-01-x.md": file}},
		{"openclaw", fstest.MapFS{"memory/2026-01-01.md": file}},
		{"openclaw", fstest.MapFS{"MEMORY.md": file, "SOUL.md": file}},
		{"claude", fstest.MapFS{"memory/feedback.md": file, "memory/topics/x.md": file, "memory/2026-01-01.md": file}},
		{"sessions", fstest.MapFS{"memory_sessions/long_memory.md": file, "memory/episodic/x.md": file}},
	} {
		got, why, err := DetectLayout(c.m)
		if got != c.want || why == "" || err != nil {
			t.Errorf("%v: %s (%s), %v", c.m, got, why, err)
		}
	}
}

// Every layout's scaffold names what its rules name, and its own template of
// mem.yaml parses, commented out or not.
func TestScaffoldFitsRules(t *testing.T) {
	for _, name := range Layouts() {
		c, err := ParseConfig("mem.yaml", []byte("layout: "+name+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		r, err := Load(Sources{Memory: fstest.MapFS{}, Mem: &c, Zone: time.UTC})
		if err != nil {
			t.Fatal(err)
		}
		files, err := r.Scaffold("2026-11-30")
		if err != nil {
			t.Fatal(err)
		}
		hot := false
		for _, f := range files {
			hot = hot || f.Path == r.Hot.File
			if strings.Contains(f.Text, "{date}") || r.TierOf(f.Path) == "" {
				t.Errorf("%s: %s is in no tier or not filled in", name, f.Path)
			}
			if n := strings.Count(f.Text, "\n"); f.Path == "MEMORY.md" && n > 40 {
				t.Errorf("%s: MEMORY.md has %d lines", name, n)
			}
		}
		if !hot {
			t.Errorf("%s: no %s", name, r.Hot.File)
		}
		text := r.ConfigTemplate()
		if _, err := ParseConfig("mem.yaml", []byte(text)); err != nil {
			t.Errorf("%s: %v", name, err)
		}
		open := strings.ReplaceAll(text, "\n# ", "\n")
		for _, prose := range []string{"the value in force. mem config lists them with where each came from.\n", "These run a program or reach outside the workspace; they count only after\n", "mem trust, or in $XDG_CONFIG_HOME/mem/config.yaml.\n"} {
			open = strings.ReplaceAll(open, prose, "")
		}
		if _, err := ParseConfig("mem.yaml", []byte(open)); err != nil {
			t.Errorf("%s, every key set: %v\n%s", name, err, open)
		}
	}
}

// The plain scanner and the YAML library agree wherever the scanner answers.
func FuzzConfig(f *testing.F) {
	f.Add("layout: canonical\n# x\ntimezone: Europe/Berlin\n")
	f.Add("limits: {hot_lines: 3}\nttl:\n  notes: 3d\n")
	f.Fuzz(func(t *testing.T, s string) {
		start := time.Now()
		_, _ = ParseConfig("mem.yaml", []byte(s))
		if d := time.Since(start); d > 5*time.Second {
			t.Fatalf("took %v", d)
		}
		plain, ok, err := parsePlain("mem.yaml", []byte(s))
		if !ok || err != nil || len(plain.fields) == 0 {
			return
		}
		full, err := parse("mem.yaml", []byte(s+"\nzz: [a]\n"))
		if err != nil {
			t.Fatalf("%q: the scanner takes it, the library says %v", s, err)
		}
		for i, f := range plain.fields {
			if g := full.fields[i]; f.key != g.key || f.value.text != g.value.text || f.line != g.line {
				t.Fatalf("%q: %+v, %+v", s, f, g)
			}
		}
	})
}

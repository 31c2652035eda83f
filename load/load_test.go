package load

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/tieredmem/mem/tiers"
)

var now = time.Date(2026, 11, 30, 9, 30, 0, 0, time.UTC)

func rules(t testing.TB, layout string) tiers.Rules {
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

func memory(files map[string]string) fstest.MapFS {
	m := fstest.MapFS{}
	for name, text := range files {
		m[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return m
}

func rows(n int, text string) string {
	var sb strings.Builder
	for i := range n {
		fmt.Fprintf(&sb, "- %s %03d\n", text, i)
	}
	return sb.String()
}

func full() map[string]string {
	return map[string]string{
		"MEMORY.md":                            "# Memory\n\n" + rows(60, "hot fact"),
		"memory/working-buffer.md":             "# Working Buffer\ncreated: 2026-11-30T08:00:00Z\nlast_active: 2026-11-30T09:00:00Z\n\n## Active Task:\n" + rows(40, "task"),
		"memory/episodic/2026-11-30.md":        "# 2026-11-30\n\n" + rows(50, "today"),
		"memory/episodic/2026-11-30-travel.md": "- a slug\n",
		"memory/episodic/2026-11-29.md":        "# 2026-11-29\n\n" + rows(50, "yesterday"),
		"memory/episodic/2026-11-28.md":        "- too old\n",
		".learnings/ERRORS.md":                 "# Errors\n\n" + strings.ReplaceAll(rows(30, "2026-11-01: broke"), "- 2026", "- 2026"),
		".learnings/LEARNINGS.md":              "",
	}
}

func paths(d Document) []string {
	var out []string
	for _, s := range d.Sections {
		out = append(out, s.Path)
	}
	return out
}

func TestOrderAndChoice(t *testing.T) {
	d, err := Read(memory(full()), rules(t, "canonical"), now, Options{Budget: 100_000, Business: []string{"a thing"}})
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"", "MEMORY.md", "memory/working-buffer.md", "memory/episodic/2026-11-30-travel.md", "memory/episodic/2026-11-30.md", "memory/episodic/2026-11-29.md", ".learnings/ERRORS.md"}
	if got := paths(d); !slices.Equal(got, want) {
		t.Errorf("got %q\nwant %q", got, want)
	}
	text := d.Markdown()
	for _, s := range []string{"## Unfinished business\n\n- a thing\n", "## From MEMORY.md\n\n# Memory\n", "broke 029", "broke 010"} {
		if !strings.Contains(text, s) {
			t.Errorf("%q is missing", s)
		}
	}
	for _, s := range []string{"too old", "broke 009", "left out", "LEARNINGS"} {
		if strings.Contains(text, s) {
			t.Errorf("%q is there", s)
		}
	}
	d, err = Read(memory(full()), rules(t, "canonical"), now, Options{Budget: 100_000, Since: "2026-11-28", Match: func(s string) bool { return strings.Contains(s, "005") }})
	if err != nil {
		t.Fatal(err)
	}
	if text := d.Markdown(); !strings.Contains(text, "too old") || !strings.Contains(text, "broke 005") || strings.Contains(text, "broke 006") {
		t.Errorf("--since and --match: %s", text)
	}
}

// TestSilence: what is not there, or says nothing, is not mentioned.
func TestSilence(t *testing.T) {
	for _, files := range []map[string]string{
		{},
		{"MEMORY.md": "\n\n", "memory/working-buffer.md": "# Working Buffer\ncreated: 2026-11-30T08:00:00Z\nlast_active: 2026-11-30T09:00:00Z\n\n## Active Task:\n- \n", ".learnings/ERRORS.md": "# Errors\n"},
	} {
		d, err := Read(memory(files), rules(t, "canonical"), now, Options{Budget: 10_000})
		if err != nil || d.Markdown() != "" || len(d.Trouble) > 0 {
			t.Errorf("%q %v %v", d.Markdown(), d.Trouble, err)
		}
	}
	r := rules(t, "canonical")
	scaffold, err := r.Scaffold("2026-11-30")
	if err != nil {
		t.Fatal(err)
	}
	m := fstest.MapFS{}
	for _, f := range scaffold {
		m[f.Path] = &fstest.MapFile{Data: []byte(f.Text)}
	}
	d, err := Read(m, r, now, Options{Budget: 10_000})
	if got := paths(d); err != nil || !slices.Equal(got, []string{"MEMORY.md"}) {
		t.Errorf("a new workspace loads %v (%v)", got, err)
	}
}

func TestTrouble(t *testing.T) {
	m := memory(map[string]string{"MEMORY.md": "ok\n", "memory/episodic/2026-11-30.md": "\xff\xfe\x00a\x00"})
	d, err := Read(m, rules(t, "canonical"), now, Options{Budget: 10_000})
	if err != nil || len(d.Trouble) != 1 || !strings.Contains(d.Trouble[0], "2026-11-30.md") || !slices.Equal(paths(d), []string{"MEMORY.md"}) {
		t.Errorf("%v %v %v", paths(d), d.Trouble, err)
	}
}

// TestEveryBudget: whatever the budget, the text fits; the newest of what
// grows at its end is kept, whole entries of it; and what is left out is said.
func TestEveryBudget(t *testing.T) {
	files := full()
	files["memory/episodic/2026-11-29.md"] = strings.Repeat("日本語のとても長い一つの記録。", 300) + "\n"
	m, r := memory(files), rules(t, "canonical")
	whole, err := Read(m, r, now, Options{Budget: 1 << 20, Business: []string{"one", "two"}})
	if err != nil {
		t.Fatal(err)
	}
	size := utf8.RuneCountInString(whole.Markdown())
	for budget := 1; budget < size+300; budget += 7 {
		d, err := Read(m, r, now, Options{Budget: budget, Business: []string{"one", "two"}})
		if err != nil {
			t.Fatal(err)
		}
		text := d.Markdown()
		if n := utf8.RuneCountInString(text); n > budget {
			t.Fatalf("budget %d: %d characters", budget, n)
		}
		if !utf8.ValidString(text) {
			t.Fatalf("budget %d: cut inside a character", budget)
		}
		for _, s := range d.Sections {
			cut := s.Left > 0
			if cut && len(d.LeftOut) == 0 && !strings.Contains(text, "left out") {
				t.Fatalf("budget %d: %s is cut in silence", budget, s.Path)
			}
			newest := map[string]string{"memory/working-buffer.md": "task 039\n", "memory/episodic/2026-11-30.md": "today 049\n", ".learnings/ERRORS.md": "broke 029\n"}[s.Path]
			if newest != "" && len(s.Text) > 40 && !strings.HasSuffix(s.Text, newest) {
				t.Fatalf("budget %d: %s does not keep its newest: %q", budget, s.Path, s.Text)
			}
			if s.Path == "MEMORY.md" && !strings.HasPrefix(files[s.Path], strings.TrimSuffix(s.Text, "…\n")) {
				t.Fatalf("budget %d: the always-loaded file does not keep its beginning", budget)
			}
		}
	}
	d, err := Read(m, r, now, Options{Budget: size + 1000, Business: []string{"one", "two"}})
	if err != nil || d.Markdown() != whole.Markdown() {
		t.Errorf("with room for all something is left out (%v)", err)
	}
}

// TestManyNotes: a file of which nothing fits is named.
func TestManyNotes(t *testing.T) {
	files := map[string]string{"MEMORY.md": "# Memory\n"}
	for i := range 30 {
		files[fmt.Sprintf("memory/episodic/2026-11-30-s%02d.md", i)] = rows(20, "a line of a note that is long enough")
	}
	d, err := Read(memory(files), rules(t, "canonical"), now, Options{Budget: 10_000})
	if err != nil {
		t.Fatal(err)
	}
	text := d.Markdown()
	for name := range files {
		if !strings.Contains(text, name) && !strings.Contains(text, "more]") {
			t.Errorf("%s is not mentioned", name)
		}
	}
	if len(d.Sections)+len(d.LeftOut) != 31 || utf8.RuneCountInString(text) < 9000 || utf8.RuneCountInString(text) > 10_000 {
		t.Errorf("%d sections, %d left out, %d characters", len(d.Sections), len(d.LeftOut), utf8.RuneCountInString(text))
	}
	if d, err = Read(memory(files), rules(t, "canonical"), now, Options{Budget: 60}); err != nil || !strings.Contains(d.Markdown(), "30 more]") {
		t.Errorf("a tiny budget: %q (%v)", d.Markdown(), err)
	}
}

func TestSessionsLayout(t *testing.T) {
	m := memory(map[string]string{"memory_sessions/long_memory.md": "long\n", "memory_sessions/logs/2026-11-30.md": "today\n", "memory_sessions/logs/2026-11-29.md": "yesterday\n"})
	d, err := Read(m, rules(t, "sessions"), now, Options{Budget: 10_000})
	want := []string{"memory_sessions/long_memory.md", "memory_sessions/logs/2026-11-30.md", "memory_sessions/logs/2026-11-29.md"}
	if got := paths(d); err != nil || !slices.Equal(got, want) {
		t.Errorf("got %v, want %v (%v)", got, want, err)
	}
}

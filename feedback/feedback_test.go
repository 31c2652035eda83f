package feedback

import (
	"errors"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tieredmem/mem/tiers"
)

func TestParse(t *testing.T) {
	got := Parse([]byte("# Feedback\n\n<!-- Example:\n### F000: rule (2026-01-01)\n-->\n\n### F001: Check the docs (2026-04-01)\n- **Why**: x\n- **How to apply**: y\n\n### F2: Approach (confirmed 2026-04-02)\n- **Context**: z\n### F003: 方法（确认 2026-04-03）\n```\n### F999: in a fence (2026-01-01)\n```\n### F004: no date\n### not one\n"))
	want := []Entry{{1, "Check the docs", "2026-04-01", false, 7, ""}, {2, "Approach", "2026-04-02", true, 11, ""}, {3, "方法", "2026-04-03", true, 13, ""}, {4, "no date", "", false, 17, ""}}
	if len(got) != len(want) {
		t.Fatalf("%+v", got)
	}
	for i := range want {
		got[i].Text = ""
		if got[i] != want[i] {
			t.Errorf("%+v, want %+v", got[i], want[i])
		}
	}
}

func TestRelative(t *testing.T) {
	const today = "2026-11-30"
	for text, want := range map[string]string{
		"yesterday it broke": "yesterday 2026-11-29", "do it Tomorrow": "tomorrow 2026-12-01", "since last week.": "last week 2026-11-23", "last Friday we": "last Friday 2026-11-27", "next monday": "next monday 2026-12-07", "2 weeks ago": "2 weeks ago 2026-11-16", "three days ago": "three days ago 2026-11-27", "letztem Freitag": "letztem Freitag 2026-11-27", "vor einer Woche": "vor einer woche 2026-11-23", "上星期五": "上星期 2026-11-23", "先日": "先日 ", "3 days ago": "3 days ago 2026-11-27", "in 2 days": "in 2 days 2026-12-02",
		"gestern ging es": "gestern 2026-11-29", "übermorgen": "übermorgen 2026-12-02", "Vorgestern": "vorgestern 2026-11-28", "vor 5 Tagen": "vor 5 Tagen 2026-11-25", "letzte Woche": "letzte woche 2026-11-23",
		"hier soir": "hier 2026-11-29", "avant-hier": "avant-hier 2026-11-28", "la semaine prochaine": "la semaine prochaine 2026-12-07", "il y a 2 jours": "il y a 2 jours 2026-11-28", "Aujourd'hui": "aujourd'hui 2026-11-30",
		"ayer": "ayer 2026-11-29", "mañana": "mañana 2026-12-01", "hace 4 días": "hace 4 días 2026-11-26", "la semana pasada": "la semana pasada 2026-11-23",
		"我昨天说过": "昨天 2026-11-29", "上周开始": "上周 2026-11-23", "3天前": "3天前 2026-11-27", "明天再说": "明天 2026-12-01",
		"昨日の会議": "昨日 2026-11-29", "一昨日": "一昨日 2026-11-28", "来週まで": "来週 2026-12-07", "2日前": "2日前 2026-11-28", "明日": "明日 2026-12-01",
	} {
		word, day, found := Relative(text, today)
		if got := word + " " + day; !found || got != want {
			t.Errorf("%q: %q %v, want %q", text, got, found, want)
		}
	}
	for _, text := range []string{"2026-11-29 it broke", "the todays package", "Gesternstrasse", "hierarchy", "playing hierher", "use yesterdayish", "", "Hoya", "every day", "3日", "least recently used", "never write \"yesterday\"", "the word `today`", "mondays"} {
		if word, _, found := Relative(text, today); found {
			t.Errorf("%q: %q", text, word)
		}
	}
}

func TestAdd(t *testing.T) {
	c, err := tiers.ParseConfig("mem.yaml", []byte("layout: claude\n"))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tiers.Load(tiers.Sources{Memory: fstest.MapFS{}, Mem: &c, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	now := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	m := fstest.MapFS{File: {Data: []byte("# Feedback\n\n### F007: Check the docs before using an API (2026-04-01)\n- **Why**: x\n")}, Ledger: {Data: []byte("- F011\n")}}
	add := func(rule string) (Entry, error) {
		_, e, err := Add(m, r, now, New{Rule: rule, Why: "because", How: "when"})
		return e, err
	}
	if e, err := add("Ask first"); err != nil || e.Name() != "F012" {
		t.Errorf("%+v %v: a number that was given is given again", e, err)
	}
	var near *NearError
	if _, err := add("check the DOCS, before using an api!"); !errors.As(err, &near) || near.Entry.ID != 7 {
		t.Errorf("a near-duplicate: %v", err)
	}
	if _, err := add("Check the docs before using any API"); !errors.As(err, &near) {
		t.Errorf("a near-duplicate of other words: %v", err)
	}
	var rel *RelativeError
	if _, err := add("as said yesterday"); !errors.As(err, &rel) || !strings.Contains(rel.Mend(), "2026-11-29") {
		t.Errorf("a relative date: %v", err)
	}
	if _, err := add("  "); !errors.Is(err, ErrIncomplete) {
		t.Errorf("nothing: %v", err)
	}
	m[File].Data = append(m[File].Data, "\n### F008: Always use tabs for indentation in Go (2026-04-02)\n"...)
	if _, err := add("Never use tabs for indentation in Go"); err != nil {
		t.Errorf("the opposite of a rule is refused: %v", err)
	}
	if _, _, err := Add(m, r, now, New{Rule: "Hier immer testen", Why: "x", How: "y", Anyway: true}); err != nil {
		t.Errorf("anyway: %v", err)
	}
	m[File].Data = append(m[File].Data, "<!-- never closed\n"...)
	if _, err := add("Ask first"); err == nil {
		t.Error("an entry was added inside a comment")
	}
}

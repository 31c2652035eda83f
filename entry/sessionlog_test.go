package entry

import (
	"encoding/json"
	"strings"
	"testing"
)

func place(t *testing.T, name, old string, arg any) string {
	t.Helper()
	text, err := json.Marshal(arg)
	if err != nil {
		t.Fatal(err)
	}
	next, _, err := Place(Change{Place: name, Text: text}, []byte(old))
	if err != nil {
		t.Fatal(err)
	}
	return string(next)
}

func TestSessionLog(t *testing.T) {
	add := func(key string, items ...string) LogOp { return LogOp{Items: map[string][]string{key: items}} }
	const head = "# Session log — 2026-11-30\n"
	for name, c := range map[string]struct {
		old  string
		ops  []LogOp
		want string
	}{
		"new":               {"", []LogOp{add("objective", "a", "b"), add("context", "c")}, head + "\n## Context\n- c\n\n## Objective\n- a\n- b\n"},
		"again":             {head + "\n## Context\n- A thing.\n", []LogOp{add("context", "a THING", "new")}, head + "\n## Context\n- A thing.\n- new\n"},
		"in order":          {head + "\n## Context\n- c\n\n## Finalized\n- ✅ f\n", []LogOp{add("to_follow_up", "t")}, head + "\n## Context\n- c\n\n## To follow up\n- t\n\n## Finalized\n- ✅ f\n"},
		"unknown":           {head + "\n## Mine\ntext\n\n## Context\n- c", []LogOp{add("context", "d")}, head + "\n## Mine\ntext\n\n## Context\n- c\n- d\n"},
		"finalized":         {head, []LogOp{add("finalized", "x")}, head + "\n## Finalized\n- ✅ x\n"},
		"done, all":         {head + "\n## To follow up\n- a\n- b\n  more\n", []LogOp{{Done: true}}, head + "\n## To follow up\n\n## Finalized\n- ✅ a\n- ✅ b\n  more\n"},
		"done, by words":    {head + "\n## To follow up\n- fix a\n- fix b\n", []LogOp{{Done: true, Words: "FIX B"}}, head + "\n## To follow up\n- fix a\n\n## Finalized\n- ✅ fix b\n"},
		"done, as listed":   {head + "\n## To follow up\n- fix a\n- fix b\n", []LogOp{{Done: true, Items: map[string][]string{"finalized": {"Fix a", "other"}}}}, head + "\n## To follow up\n- fix b\n\n## Finalized\n- ✅ fix a\n- ✅ other\n"},
		"done, nothing":     {head, []LogOp{{Done: true}}, head},
		"a fence":           {head + "\n```\n## Context\n```\n", []LogOp{add("context", "c")}, head + "\n```\n## Context\n```\n\n## Context\n- c\n"},
		"an open fence":     {head + "\n```sh\nx", []LogOp{add("context", "c")}, head + "\n```sh\nx\n```\n\n## Context\n- c\n"},
		"done, with code":   {head + "\n## To follow up\n- apply:\n\n  ```yaml\n- keep: this\n  ```\n- other\n", []LogOp{{Done: true, Words: "apply"}}, head + "\n## To follow up\n- other\n\n## Finalized\n- ✅ apply:\n\n  ```yaml\n- keep: this\n  ```\n"},
		"done, whole words": {head + "\n## To follow up\n- start it\n- the art of it\n", []LogOp{{Done: true, Words: "it art"}}, head + "\n## To follow up\n- start it\n\n## Finalized\n- ✅ the art of it\n"},
		"numbers":           {head + "\n## Context\n- 1.5 s\n- offset 5\n- use 80, 81\n- ok ✅\n", []LogOp{add("context", "15 s", "offset -5", "use 8081", "ok ❌", "1.5 S!")}, head + "\n## Context\n- 1.5 s\n- offset 5\n- use 80, 81\n- ok ✅\n- 15 s\n- offset -5\n- use 8081\n- ok ❌\n"},
		"CRLF":              {"# x\r\n\r\n## Context\r\n- c\r\n", []LogOp{add("context", "d")}, "# x\r\n\r\n## Context\r\n- c\r\n- d\r\n"},
		"signs only":        {head, []LogOp{add("context", "→", "→", "!")}, head + "\n## Context\n- →\n- !\n"},
		"blank lines after": {head + "\n## Context\n- c\n\n\n## Objective\n", []LogOp{add("context", "d")}, head + "\n## Context\n- c\n- d\n\n\n## Objective\n"},
	} {
		got := place(t, SessionLog, c.old, LogArg{Day: "2026-11-30", Ops: c.ops})
		if got != c.want {
			t.Errorf("%s:\n got %q\nwant %q", name, got, c.want)
		}
		if again := place(t, SessionLog, got, LogArg{Day: "2026-11-30", Ops: c.ops}); again != got {
			t.Errorf("%s: the second time:\n got %q", name, again)
		}
	}
}

func TestLongMemory(t *testing.T) {
	got := place(t, LongMemory, "", LongArg{Days: []DayFacts{{"2026-11-29", []string{"a", "A."}}, {"2026-11-30", []string{"b", "a"}}}})
	want := "# Long-term memory\n\n## 2026-11-29\n- a\n\n## 2026-11-30\n- b\n"
	if got != want {
		t.Errorf("%q", got)
	}
	got = place(t, LongMemory, want, LongArg{Days: []DayFacts{{"2026-11-29", []string{"c"}}}, Cuts: []DayCut{{"2026-11-30", "## 2026-11-30\n- b\n"}}})
	if got != "# Long-term memory\n\n## 2026-11-29\n- a\n- c\n\n" {
		t.Errorf("%q", got)
	}
	if _, _, err := Place(Change{Place: LongMemory, Text: []byte(`{"cuts":[{"text":"gone"}]}`)}, []byte(want)); err == nil {
		t.Error("a section that has changed was cut")
	}
	for name, c := range map[string]struct {
		old  string
		cut  DayCut
		want string
	}{
		"a line of another day":  {"- x\n  - use\n\n## 2026-11-01\n- use\n- b\n", DayCut{"2026-11-01", "- use\n"}, "- x\n  - use\n\n## 2026-11-01\n- b\n"},
		"the same on two days":   {"## 2026-10-01\n- a\n## 2026-11-01\n- a\n", DayCut{"2026-11-01", "- a\n"}, "## 2026-10-01\n- a\n## 2026-11-01\n"},
		"part of a line is none": {"## 2026-11-01\n- ab\n- b\n", DayCut{"2026-11-01", "- b\n"}, "## 2026-11-01\n- ab\n"},
	} {
		if got := place(t, LongMemory, c.old, LongArg{Cuts: []DayCut{c.cut}}); got != c.want {
			t.Errorf("%s: %q", name, got)
		}
	}
	for in, want := range map[string]string{
		"```yaml\n- a\n- b\n- a\n```\n":              "```yaml\n- a\n- b\n- a\n```\n",
		"- see:\n\n  details\n- see:\n":              "- see:\n\n  details\n- see:\n",
		"### x\n- Status: ok\n### y\n- Status: ok\n": "### x\n- Status: ok\n### y\n- Status: ok\n",
		"## 2026-01-01\n- a\n\n## 2026-01-02\n- a\n": "## 2026-01-01\n\n## 2026-01-02\n- a\n",
	} {
		if got := string(FoldLines([]byte(in))); got != want {
			t.Errorf("fold %q: %q", in, got)
		}
	}
	if got := string(FoldLines([]byte("- a\n- b\n- a\n  more\n- b\n"))); got != "- a\n- a\n  more\n- b\n" {
		t.Errorf("%q", got)
	}
}

func FuzzSessionLog(f *testing.F) {
	f.Add("# x\n\n## Context\n- a\n", "b", "objective")
	f.Add("```\n## To follow up\n", "- x", "finalized")
	f.Fuzz(func(t *testing.T, old, item, key string) {
		item = OneItem(item, 100)
		arg, err := json.Marshal(LogArg{Day: "2026-11-30", Ops: []LogOp{{Items: map[string][]string{key: {item}}}}})
		if err != nil {
			t.Fatal(err)
		}
		next, _, err := Place(Change{Place: SessionLog, Text: arg}, []byte(old))
		if err != nil {
			return
		}
		// Nothing of what was there is gone.
		rest := string(next)
		for l := range strings.Lines(old) {
			if l = strings.TrimSpace(l); l == "" {
				continue
			}
			i := strings.Index(rest, l)
			if i < 0 {
				t.Fatalf("%q is gone from %q", l, next)
			}
			rest = rest[i+len(l):]
		}
		again, _, err := Place(Change{Place: SessionLog, Text: arg}, next)
		if err != nil || string(again) != string(next) {
			t.Fatalf("the second time changes it: %v\n%q\n%q", err, next, again)
		}
	})
}

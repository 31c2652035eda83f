package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func lines(host string) func(string) string {
	return func(event string) string { return Command("/usr/bin/mem", nil, event, host, false) }
}

var settings = []string{
	"",
	"{}",
	"{}\n",
	"{\n}\n",
	"{\"a\":1}",
	"{\n  \"a\": 1\n}\n",
	"{\n\t\"permissions\": {\"allow\": [\"Bash(ls:*)\"]},\n\t\"hooks\": {}\n}\n",
	"{\"hooks\":{\"Stop\":[]}}",
	"{\"hooks\":{\"Stop\":[{\"hooks\":[{\"type\":\"command\",\"command\":\"say hi\"}]}]},\"z\":[1,2 , 3]}",
	"{\n    \"hooks\" : {\n        \"SessionStart\" : [ { \"matcher\" : \"startup\", \"hooks\" : [ { \"type\" : \"command\", \"command\" : \"x hook run\" } ] } ]\n    }\n}",
	"{\r\n  \"a\": \"\\u00e9\",\r\n  \"b\": 1e400\r\n}\r\n",
	"{\"hooks\":{\"Stop\":[{\"hooks\":[]}],\"Other\":[{\"hooks\":[{\"type\":\"prompt\"}]}]}}",
}

func decoded(t *testing.T, b []byte) any {
	t.Helper()
	if len(bytes.TrimSpace(b)) == 0 {
		return map[string]any{}
	}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		t.Fatalf("%v in %s", err, b)
	}
	return v
}

// TestAddAndRemove: only our entries are added, twice is once, and without
// them the settings say what they said; everything that was there before keeps
// its bytes.
func TestAddAndRemove(t *testing.T) {
	for _, name := range []string{"claude", "codex"} {
		host, _ := Find(name)
		for _, text := range settings {
			with, err := Add([]byte(text), host, lines(name))
			if err != nil {
				t.Fatalf("%q: %v", text, err)
			}
			again, err := Add(with, host, lines(name))
			if err != nil || !bytes.Equal(again, with) {
				t.Errorf("%q: the second time changes it (%v):\n%s", text, err, cmp.Diff(string(with), string(again)))
			}
			events, command, err := Installed(with, host)
			if err != nil || len(events) != len(host.Hooks) || !strings.Contains(command, "/usr/bin/mem hook run") {
				t.Errorf("%q: installed %v %q (%v)", text, events, command, err)
			}
			rest := string(with)
			for part := range strings.FieldsFuncSeq(text, func(r rune) bool { return strings.ContainsRune("{}[],\r\n", r) }) {
				i := strings.Index(rest, part)
				if i < 0 {
					t.Errorf("%q: %q is not as it was in\n%s", text, part, with)
					break
				}
			}
			without, err := Remove(with, host)
			if err != nil {
				t.Fatal(err)
			}
			want := decoded(t, []byte(text))
			if m, ok := want.(map[string]any)["hooks"].(map[string]any); ok && len(m) == 0 {
				delete(want.(map[string]any), "hooks") // an empty one goes with ours
			} else if list, ok := m["Stop"].([]any); ok && len(list) == 0 {
				delete(want.(map[string]any), "hooks")
			}
			if got := decoded(t, without); !reflect.DeepEqual(got, want) {
				t.Errorf("%q: removed: %s", text, cmp.Diff(want, got))
			}
			if back, err := Remove([]byte(text), host); err != nil || text != "" && string(back) != text {
				t.Errorf("%q: nothing of ours, and it changes: %q (%v)", text, back, err)
			}
		}
	}
}

func TestUpgrade(t *testing.T) {
	host, _ := Find("claude")
	old, err := Add([]byte(settings[8]), host, func(e string) string { return Command("/old/mem", []string{"--workspace", "/w x"}, e, "claude", true) })
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(old), `/old/mem --workspace '/w x' hook run SessionStart --autoload --host claude`) {
		t.Errorf("%s", old)
	}
	with, err := Add(old, host, lines("claude"))
	if err != nil || strings.Contains(string(with), "/old/mem") || strings.Count(string(with), "hook run") != len(host.Hooks) {
		t.Errorf("%v\n%s", err, with)
	}
}

// TestForeignEdits: whatever another tool has changed since, the settings are
// JSON without us, and say what they said.
func TestForeignEdits(t *testing.T) {
	host, _ := Find("claude")
	for _, text := range []string{
		"{ \"a\" : 1 , \"hooks\" : {} }\n",
		"{\"hooks\" : {\"Stop\" : [ {\"hooks\":[{\"type\":\"command\",\"command\":\"say\"}]} ] } , \"z\" : 2 }",
		"{\n\t\"a\": 1 ,\n\t\"b\": 2\n}",
	} {
		with, err := Add([]byte(text), host, lines("claude"))
		if err != nil {
			t.Fatal(err)
		}
		edited := strings.NewReplacer("1", "11", ",\n", " ,\n").Replace(string(with))
		without, err := Remove([]byte(edited), host)
		if err != nil || !json.Valid(without) || strings.Contains(string(without), "hook run") {
			t.Errorf("%q: %v\n%s", text, err, without)
		}
	}
}

func TestOurs(t *testing.T) {
	for line, want := range map[string]bool{
		"/usr/bin/mem hook run Stop --host claude":                       true,
		"'/a b/mem' --workspace '/w '\\''x' hook run Stop --host claude": true,
		"mem hook run SessionStart --autoload --host claude":             true,
		"notify-send done; /opt/mem hook run Stop --host claude":         false,
		"/opt/mem hook run Stop --host claude && rm x":                   false,
		"x=$(mem hook run Stop --host claude":                            false,
		"/opt/other hook run Stop --host claude":                         false,
		"mem --json hook run Stop --host claude":                         false,
		"mem hook run Stop --host codex":                                 false,
	} {
		if _, got := Ours(line, "claude"); got != want {
			t.Errorf("%s: %v", line, got)
		}
	}
	if dir := WorkspaceOf("'/a b/mem' --workspace '/w '\\''x' hook run Stop --host claude"); dir != "/w 'x" {
		t.Errorf("workspace %q", dir)
	}
}

func TestRefuses(t *testing.T) {
	host, _ := Find("claude")
	for _, text := range []string{"// comment\n{}", "{\"a\":1,}", "[]", "null", "{\"a\":", "\xff", "{\"hooks\":[]}", "{\"hooks\":{\"Stop\":{}}}", "plain", `{"a":1}{"b":2}`, `{"hooks":{"Stop":[]},"b":1,"hooks":{"Other":[]}}`, `{"hooks":{"Stop":[],"Stop":[]}}`} {
		if out, err := Add([]byte(text), host, lines("claude")); !errors.Is(err, ErrSettings) {
			t.Errorf("%q: %v %s", text, err, out)
		}
	}
	if s := Snippet(host, lines("claude")); !json.Valid([]byte(s)) || strings.Count(s, "hook run") != 4 {
		t.Errorf("snippet: %s", s)
	}
}

func TestInput(t *testing.T) {
	for text, want := range map[string]Input{
		`{"session_id":"s","transcript_path":"/t.jsonl","cwd":"/w","hook_event_name":"SessionStart","source":"resume"}`: {Event: "SessionStart", Session: "s", Transcript: "/t.jsonl", Dir: "/w", Source: "resume"},
		`{"session_id":7,"transcript_path":null,"stop_hook_active":true,"x":{"y":[]}}`:                                  {StopHookActive: true},
		`{"stop_hook_active":"yes","reason":"clear","trigger":"auto"}`:                                                  {Reason: "clear", Trigger: "auto"},
	} {
		if got, err := ReadInput([]byte(text)); err != nil || got != want {
			t.Errorf("%s: %+v %v", text, got, err)
		}
	}
	for _, text := range []string{"", "null1", "[]", "\"x\"", "\x00", "{", strings.Repeat("[", 200_000)} {
		if _, err := ReadInput([]byte(text)); !errors.Is(err, ErrInput) {
			t.Errorf("%.20q: %v", text, err)
		}
	}
}

func TestContext(t *testing.T) {
	claude, _ := Find("claude")
	out, err := claude.Context(SessionStart, "a <b> & \"c\"\n")
	var o struct {
		H struct {
			Event   string `json:"hookEventName"`
			Context string `json:"additionalContext"`
		} `json:"hookSpecificOutput"`
	}
	if err != nil || json.Unmarshal([]byte(out), &o) != nil || o.H.Event != SessionStart || o.H.Context != "a <b> & \"c\"\n" {
		t.Errorf("%v %s", err, out)
	}
	if out, _ := claude.Context(SessionStart, ""); out != "" {
		t.Errorf("nothing to say, and it says %q", out)
	}
	codex, _ := Find("codex")
	if a, b := codex.Size(strings.Repeat("word ", 100)), codex.Size(strings.Repeat("記憶", 100)); a < 100 || a > 150 || b < 200 {
		t.Errorf("tokens: %d, %d", a, b)
	}
	if n := claude.Size("🗃a"); n != 3 {
		t.Errorf("UTF-16 units: %d", n)
	}
}

func TestRules(t *testing.T) {
	for _, text := range []string{"", "# Mine\n", "# Mine", "# Mine\n\n", "a\r\nb\r\n"} {
		with := AddRules(text)
		if AddRules(with) != with || !strings.Contains(with, Rules()) || !strings.HasPrefix(with, text) {
			t.Errorf("%q: %q", text, with)
		}
		if got := RemoveRules(with); strings.TrimRight(got, "\n") != strings.TrimRight(text, "\n") {
			t.Errorf("%q: without the block: %q", text, got)
		}
		if RemoveRules(text) != text {
			t.Errorf("%q: nothing of ours, and it changes", text)
		}
	}
	if !strings.HasPrefix(Skill(), "---\nname: mem\n") {
		t.Error("the skill does not begin with its frontmatter")
	}
}

// FuzzSettings: whatever the settings are, they are refused or taken, and what
// was there says the same afterwards.
func FuzzSettings(f *testing.F) {
	for _, s := range settings {
		f.Add([]byte(s))
	}
	host, _ := Find("claude")
	f.Fuzz(func(t *testing.T, text []byte) {
		with, err := Add(text, host, lines("claude"))
		if err != nil {
			return
		}
		if !json.Valid(with) {
			t.Fatalf("no JSON any more: %s", with)
		}
		if again, err := Add(with, host, lines("claude")); err != nil || !bytes.Equal(again, with) {
			t.Fatalf("twice: %v %s", err, again)
		}
		without, err := Remove(with, host)
		if err != nil || len(text) > 0 && !json.Valid(without) || bytes.Contains(without, []byte("hook run Stop --host claude")) && !bytes.Contains(text, []byte("hook run")) {
			t.Fatalf("removed: %v %s", err, without)
		}
	})
}

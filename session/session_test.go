package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"reflect"
	"strings"
	"testing"
	"time"
)

func line(role, uuid string, content any) string {
	b, err := json.Marshal(map[string]any{"type": role, "uuid": uuid, "message": map[string]any{"role": role, "content": content}})
	if err != nil {
		panic(err)
	}
	return string(b) + "\n"
}

func text(s string) []map[string]string { return []map[string]string{{"type": "text", "text": s}} }

func TestLast(t *testing.T) {
	result := []map[string]string{{"type": "tool_result", "content": "output"}}
	old := line("user", "1", "old") + line("assistant", "2", text("old answer"))
	for name, c := range map[string]struct {
		in   string
		want Exchange
	}{
		"plain":           {old + line("user", "3", "new") + line("assistant", "4", text("answer")), Exchange{"new", "answer", "3"}},
		"parts":           {line("user", "3", text("new")) + line("assistant", "4", text("one")) + line("user", "5", result) + line("assistant", "6", text("two")), Exchange{"new", "one\n\ntwo", "3"}},
		"torn":            {old + line("user", "3", "new") + line("assistant", "4", text("answer")) + `{"type":"assistant","message":{"rol`, Exchange{"new", "answer", "3"}},
		"torn at a brace": {old + line("user", "3", "new") + "{", Exchange{"new", "", "3"}},
		"no answer yet":   {old + line("user", "3", "new"), Exchange{"new", "", "3"}},
		"other kinds":     {line("user", "3", "new") + "\n\nprose\n[1]\n{\"type\":7}\n" + `{"type":"assistant","isSidechain":true,"message":{"role":"assistant","content":"side"}}` + "\n" + `{"type":"user","message":{"role":"tool","content":"x"}}` + "\n", Exchange{"new", "", "3"}},
		"host's own":      {line("user", "3", "new") + line("user", "4", "<command-name>/clear</command-name>") + line("user", "5", "<local-command-stdout>x") + line("user", "6", "[Request interrupted by user]"), Exchange{"new", "", "3"}},
		"codex":           {`{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"<environment_context>x"}]}}` + "\n" + `{"type":"response_item","payload":{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}}` + "\n" + `{"type":"response_item","payload":{"type":"message","role":"assistant","content":[{"type":"output_text","text":"ho"}]}}` + "\n", Exchange{"hi", "ho", "@134"}},
		"CRLF":            {strings.ReplaceAll(line("user", "3", "new")+line("assistant", "4", text("a")), "\n", "\r\n"), Exchange{"new", "a", "3"}},
		"only an answer":  {line("assistant", "4", text("a")), Exchange{"", "a", ""}},
		"no line end":     {strings.TrimSuffix(line("user", "3", "new"), "\n"), Exchange{"new", "", "3"}},
	} {
		got, err := Last(strings.NewReader(c.in), int64(len(c.in)))
		if err != nil || got != c.want {
			t.Errorf("%s: %+v %v", name, got, err)
		}
	}
	for _, in := range []string{"", "\n", "prose\n", line("user", "1", result), "{}\n", strings.Repeat("[", 100_000)} {
		if got, err := Last(strings.NewReader(in), int64(len(in))); !errors.Is(err, ErrNoExchange) {
			t.Errorf("%.20q: %+v %v", in, got, err)
		}
	}
}

// TestLastOfALargeTranscript: 100 MB of tool results are read from their end
// only as far as the exchange is away, across the boundaries of blocks.
func TestLastOfALargeTranscript(t *testing.T) {
	var b bytes.Buffer
	filler := line("user", "x", []map[string]string{{"type": "tool_result", "content": strings.Repeat("output ", 20_000)}})
	for b.Len() < 90<<20 {
		b.WriteString(filler)
	}
	b.WriteString(line("user", "far", "a question") + line("assistant", "y", text("before")))
	for b.Len() < 100<<20 {
		b.WriteString(filler)
	}
	b.WriteString(line("assistant", "z", text(strings.Repeat("long answer ", 200_000))))
	r := &counted{r: bytes.NewReader(b.Bytes())}
	got, err := Last(r, int64(b.Len()))
	if err != nil || got.Human != "a question" || got.ID != "far" || !strings.HasPrefix(got.Assistant, "before\n\nlong answer") {
		t.Errorf("%q %q %d %v", got.Human, got.ID, len(got.Assistant), err)
	}
	if far := b.Len() - 90<<20; r.n > 2*far {
		t.Errorf("%d bytes were read for an exchange that is %d away from the end", r.n, far)
	}
	if e := Bound(got); len(e.Assistant) > maxText+10 || !strings.HasSuffix(e.Assistant, "long answer") {
		t.Errorf("bounded to %d bytes", len(e.Assistant))
	}
}

// counted counts what is read.
type counted struct {
	r io.ReaderAt
	n int
}

func (c *counted) ReadAt(b []byte, at int64) (int, error) {
	n, err := c.r.ReadAt(b, at)
	c.n += n
	return n, err
}

func TestParseAnswer(t *testing.T) {
	for in, want := range map[string]Answer{
		`{"projects":{"a":{"context":["x"," - y "],"long_memory":["z"]},"b":{}}}`: {"a": {"context": {"x", "y"}, Long: {"z"}}},
		`{"context":["x"]}`:                       {"root": {"context": {"x"}}},
		"```json\n{\"objective\":[\"x\"]}\n```\n": {"root": {"objective": {"x"}}},
		"```\n{\"objective\":\"one\"}\n```":       {"root": {"objective": {"one"}}},
		`{}`:                                      {},
		`{"projects":{}}`:                         {},
		`{"context":["two\nlines","\u0000",""],"x":1}`: {"root": {"context": {"two lines", "\x00"}}},
	} {
		got, err := ParseAnswer([]byte(in), "root")
		if err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%s: %v %v", in, got, err)
		}
	}
	for _, in := range []string{"", "Sure!", "[]", "null1", `{"context":[1]}`, `{"projects":[]}`, `{"projects":{"a":[]}}`, `{"unknown":1}`, strings.Repeat("[", 100_000), `{"context":{}}`} {
		if got, err := ParseAnswer([]byte(in), "root"); !errors.Is(err, ErrAnswer) {
			t.Errorf("%.30s: %v %v", in, got, err)
		}
	}
	many, err := json.Marshal(map[string]any{"context": strings.Split(strings.Repeat("x,", 1000), ",")})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := ParseAnswer(many, "root"); err != nil || len(got["root"]["context"]) > maxItems {
		t.Errorf("%d items (%v)", len(got["root"]["context"]), err)
	}
}

func TestDone(t *testing.T) {
	for in, want := range map[string]string{"OK-done": "", " OK-done. ": "", "OK-done: the docs": "the docs", "OK-done:": ""} {
		if words, ok := Done(in); !ok || words != want {
			t.Errorf("%q: %q %v", in, words, ok)
		}
	}
	for _, in := range []string{"ok", "OK-doneish", "is it OK-done", ""} {
		if _, ok := Done(in); ok {
			t.Errorf("%q settles something", in)
		}
	}
}

func TestKeys(t *testing.T) {
	a := Spooled{Exchange: Exchange{"h", "a", "1"}, Host: "claude", Session: "s"}
	b := a
	b.At = time.Now()
	b.Attempts = 3
	if a.Key() != b.Key() {
		t.Error("the same exchange, told of again, is another")
	}
	b.ID = "2"
	if a.Key() == b.Key() {
		t.Error("the same words in another message are the same exchange")
	}
}

func FuzzLast(f *testing.F) {
	f.Add([]byte(line("user", "3", "new") + line("assistant", "4", text("a"))))
	f.Add([]byte("{\"message\":{\"role\":\"user\",\"content\":[{}]}}\n\xff\n"))
	f.Fuzz(func(t *testing.T, b []byte) {
		got, err := Last(bytes.NewReader(b), int64(len(b)))
		if err == nil && got.Empty() {
			t.Fatal("an empty exchange")
		}
		Bound(got)
	})
}

func FuzzAnswer(f *testing.F) {
	f.Add([]byte(`{"projects":{"a":{"context":["x"]}}}`))
	f.Add([]byte("```json\n{\"objective\":\"x\"}\n```"))
	f.Fuzz(func(t *testing.T, b []byte) {
		a, err := ParseAnswer(b, "root")
		if err != nil {
			return
		}
		for _, s := range a {
			for k, items := range s {
				for _, item := range items {
					if item == "" || strings.ContainsAny(item, "\n\r") {
						t.Fatalf("%s: %q", k, item)
					}
				}
			}
		}
	})
}

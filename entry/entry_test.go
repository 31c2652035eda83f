package entry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

func sum(b []byte) string {
	h := sha256.Sum256(b)
	return hex.EncodeToString(h[:])
}

func TestParseBuffer(t *testing.T) {
	head := "# Working Buffer\ncreated: 2026-04-05T14:31:00+08:00\nlast_active: 2026-04-05T14:31:00+0800\n\n"
	for _, c := range []struct {
		name, text        string
		dialect           string
		body              string
		empty, unfinished bool
		active            string // RFC 3339 in UTC, "" for unknown
	}{
		{"template", head + "## Active Task:\n", Canonical, "## Active Task:\n", true, false, "2026-04-05T06:31:00Z"},
		{"template with placeholder", head + "## Active Task:\n- ...\n", Canonical, "## Active Task:\n- ...\n", true, false, "2026-04-05T06:31:00Z"},
		{"work", head + "## Active Task:\n- x\n", Canonical, "## Active Task:\n- x\n", false, true, "2026-04-05T06:31:00Z"},
		{"done", head + "## Active Task:\n\n## Done\n- x\n", Canonical, "## Active Task:\n\n## Done\n- x\n", false, false, "2026-04-05T06:31:00Z"},
		{"bom and crlf", "\xef\xbb\xbf" + strings.ReplaceAll(head+"- x\n", "\n", "\r\n"), Canonical, "- x\r\n", false, true, "2026-04-05T06:31:00Z"},
		{"a comment is text", head + "## Active Task:\n<!-- why", Canonical, "## Active Task:\n<!-- why", false, true, "2026-04-05T06:31:00Z"},
		{"title only", "# Working Buffer\n", Plain, "# Working Buffer\n", true, false, ""},
		{"no header", "- x\n", Plain, "- x\n", false, true, ""},
		{"log", "# Log\n**Status:** ACTIVE\n## [2026-04-05T10:00:00Z] Human\nx\n## [2026-04-05T09:00:00Z] Agent\ny\n", Log, "", false, true, "2026-04-05T10:00:00Z"},
		{"idle log", "# Log\n**Status:** IDLE\n", Log, "", true, false, ""},
		{"nothing", "", Plain, "", true, false, ""},
	} {
		t.Run(c.name, func(t *testing.T) {
			b := ParseBuffer([]byte(c.text))
			if c.body == "" {
				c.body = c.text
			}
			if b.Dialect != c.dialect || string(b.Body()) != c.body || b.Empty() != c.empty || b.Unfinished() != c.unfinished {
				t.Errorf("dialect %s, body %q, empty %v, unfinished %v", b.Dialect, b.Body(), b.Empty(), b.Unfinished())
			}
			at, ok := b.Active(time.UTC)
			if got := at.UTC().Format(time.RFC3339); ok != (c.active != "") || ok && got != c.active {
				t.Errorf("active %v %v, want %q", got, ok, c.active)
			}
		})
	}
}

func TestFreshBuffersDiffer(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	seen := map[string]bool{}
	prev := Buffer{}
	for range 5 {
		text := Fresh(at, prev)
		if seen[string(text)] {
			t.Fatalf("twice: %s", text)
		}
		seen[string(text)] = true
		prev = ParseBuffer(text)
		if prev.Dialect != Canonical || !prev.Empty() {
			t.Fatalf("no template: %q", text)
		}
		if _, err := ParseInstant(prev.Created); err != nil {
			t.Error(err)
		}
	}
}

func TestFindClosure(t *testing.T) {
	block := "Updated: 2026-01-02\nDecisions: a\nSignal: b\nOpen: c\n"
	for _, c := range []struct {
		name, text string
		start      int // -1: none
		displaced  bool
	}{
		{"at the end", "# d\n\n" + block, 5, false},
		{"blank lines after", "x\n" + block + "\n\n", 2, false},
		{"text after", "x\n" + block + "\n- y\n", 2, true},
		{"the last counts", block + "\n" + block, len(block) + 1, false},
		{"no newline at the end", "x\n" + strings.TrimSuffix(block, "\n"), 2, false},
		{"crlf", strings.ReplaceAll("x\n"+block, "\n", "\r\n"), 3, false},
		{"three lines", "Updated: 2026-01-02\nDecisions: a\nSignal: b\n", -1, false},
		{"wrong order", "Decisions: a\nUpdated: 2026-01-02\nSignal: b\nOpen: c\n", -1, false},
		{"inside a rotated block", "<!-- mem:rotated sha256=0 bytes=1 -->\n" + block + BlockEnd + "\n", -1, false},
		{"above a rotated block", block + "<!-- mem:rotated sha256=0 bytes=1 -->\nx\n" + BlockEnd + "\n", -1, false},
		{"nothing", "", -1, false},
	} {
		got, ok := FindClosure([]byte(c.text))
		if ok != (c.start >= 0) || ok && (got.Start != c.start || got.Displaced != c.displaced || got.Decisions != "a") {
			t.Errorf("%s: %+v %v", c.name, got, ok)
		}
	}
}

func TestPlaceClosure(t *testing.T) {
	for _, c := range []struct{ name, old, arg, want string }{
		{"new note", "", `{"updated":"2026-01-02"}`, "# n\n\nUpdated: 2026-01-02\nDecisions: none\nSignal: none\nOpen: none\n"},
		{"keeps what is not given", "x\n\nUpdated: 2026-01-01\nDecisions: a\nSignal: b\nOpen: c\n", `{"updated":"2026-01-02","signal":"s"}`, "x\n\nUpdated: 2026-01-02\nDecisions: a\nSignal: s\nOpen: c\n"},
		{"puts a displaced block last", "Updated: 2026-01-01\nDecisions: a\nSignal: b\nOpen: c\n- late\n", `{"updated":"2026-01-02"}`, "- late\n\nUpdated: 2026-01-02\nDecisions: a\nSignal: b\nOpen: c\n"},
	} {
		var old []byte
		if c.old != "" {
			old = []byte(c.old)
		}
		got, _, err := Place(Change{Place: SetClosure, Text: []byte(c.arg), Seed: []byte("# n\n")}, old)
		if err != nil || string(got) != c.want {
			t.Errorf("%s: %q, %v", c.name, got, err)
		}
	}
	if _, _, err := Place(Change{Place: "elsewhere"}, nil); err == nil {
		t.Error("an unknown place is taken")
	}
}

func TestPlaceRefuses(t *testing.T) {
	utf16 := []byte("\xff\xfex\x00y\x00")
	if _, _, err := Place(Change{Place: AtEnd, Text: []byte("x")}, utf16); !errors.Is(err, ErrEncoding) {
		t.Error(err)
	}
	if _, _, err := Place(Change{Place: AtEnd, Text: bytes.Repeat([]byte("x"), MaxNote)}, []byte("y")); !errors.Is(err, ErrLimit) {
		t.Error(err)
	}
	if !IsUTF16([]byte("a\x00b\x00c\x00d\x00e\x00f\x00")) || IsUTF16([]byte("plain text, quite long\x00 with a NUL")) {
		t.Error("UTF-16 without a mark is not told from UTF-8")
	}
	if InvalidAt([]byte("ok \x92")) != 3 || InvalidAt([]byte("ok é")) != -1 {
		t.Error("InvalidAt")
	}
}

// lines keeps generated texts small and line-shaped.
var anyText = rapid.Custom(func(t *rapid.T) []byte {
	parts := rapid.SliceOfN(rapid.SampledFrom([]string{
		"# Working Buffer", "created: 2026-01-01T00:00:00Z", "last_active: 2026-01-01T00:00:00Z", "", "## Active Task:", "- x", "- ...",
		"Updated: 2026-01-01", "Decisions: a", "Signal: b", "Open: c", "<!-- mem:rotated sha256=00 bytes=3 -->", BlockEnd, "<!-- open", "-->", "**Status:** ACTIVE", "\x92\xff", "\xef\xbb\xbf",
	}), 0, 14).Draw(t, "parts")
	eol := rapid.SampledFrom([]string{"\n", "\r\n"}).Draw(t, "eol")
	s := strings.Join(parts, eol)
	if rapid.Bool().Draw(t, "final newline") {
		s += eol
	}
	return []byte(s)
})

// An addition adds and changes nothing else: taking out what was added gives
// back the text, stamps aside.
func TestPlaceOnlyAdds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		old := anyText.Draw(t, "old")
		place := rapid.SampledFrom([]string{AboveClosure, AtEnd, Late, ActiveTask}).Draw(t, "place")
		text := []byte("- UNIQUE\n")
		next, added, err := Place(Change{Place: place, Text: text}, old)
		if err != nil {
			t.Skip("drawn text that no note takes")
		}
		if bytes.Count(next, []byte("UNIQUE")) != 1 || bytes.Count(next, added) != 1 {
			t.Fatalf("%q", next)
		}
		if back := bytes.Replace(next, added, nil, 1); !bytes.Equal(back, old) {
			t.Fatalf("%s: %q became %q, and %q without the addition", place, old, next, back)
		}
	})
}

// Whatever a buffer holds: once it is in a note, none of it is left to bring;
// and if it has grown since, only the rest is.
func TestRestAfterBlock(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		raw, note, more := anyText.Draw(t, "raw"), anyText.Draw(t, "note"), anyText.Draw(t, "more")
		if len(raw) == 0 {
			t.Skip("nothing to bring")
		}
		if got := Rest(raw, [][]byte{note}, sum); !bytes.Equal(got, raw) {
			t.Fatalf("a note without the block covers %q", raw)
		}
		next, _, err := Place(Change{Place: AboveClosure, Text: Block(raw, sum(raw), time.UTC, EOL(note))}, note)
		if err != nil {
			t.Skip("drawn text that no note takes")
		}
		if got := Rest(raw, [][]byte{note, next}, sum); len(got) != 0 {
			t.Fatalf("left over: %q", got)
		}
		grown := append(bytes.Clone(raw), more...)
		if got := Rest(grown, [][]byte{next}, sum); !bytes.Equal(got, more) {
			t.Fatalf("of %q is left %q, want %q", grown, got, more)
		}
	})
}

func FuzzBuffer(f *testing.F) {
	f.Add([]byte("# Working Buffer\ncreated: x\n\n## Active Task:\n- a\n"))
	f.Add([]byte("\xef\xbb\xbf**Status:** IDLE\r\n<!--"))
	f.Fuzz(func(t *testing.T, b []byte) {
		p := ParseBuffer(b)
		if !bytes.Equal(append(bytes.Clone(p.Header()), p.Body()...), b) {
			t.Fatal("header and body are not the text")
		}
		p.Empty()
		p.Unfinished()
		p.Active(time.UTC)
		if c, ok := FindClosure(b); ok && (c.Start < 0 || c.End > len(b) || c.Start >= c.End) {
			t.Fatalf("%+v", c)
		}
	})
}

func FuzzPlace(f *testing.F) {
	f.Add([]byte("# d\n\nUpdated: x\nDecisions: x\nSignal: x\nOpen: x\n"), []byte("- a\n"), 0)
	places := []string{AboveClosure, AtEnd, Late, ActiveTask}
	f.Fuzz(func(t *testing.T, old, text []byte, n int) {
		if len(text) == 0 {
			return
		}
		place := places[(n%len(places)+len(places))%len(places)]
		next, added, err := Place(Change{Place: place, Text: text}, old)
		if err != nil {
			return
		}
		i := len(next) - len(added)
		if i != len(old) || !bytes.Contains(next, added) {
			t.Fatalf("%d bytes and %d added make %d", len(old), len(added), len(next))
		}
	})
}

func FuzzRest(f *testing.F) {
	f.Add([]byte("- a\n"), []byte("<!-- mem:rotated sha256=00 bytes=4 -->\n- a\n<!-- /mem:rotated -->\n"))
	f.Fuzz(func(t *testing.T, raw, note []byte) {
		if got := Rest(raw, [][]byte{note}, sum); !bytes.HasSuffix(raw, got) {
			t.Fatalf("%q is no rest of %q", got, raw)
		}
	})
}

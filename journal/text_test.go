package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/plan"
)

// TakeOut removes lines that stand there once, from the beginning of a line to
// the end of one.
func TestTakeOut(t *testing.T) {
	const no = "NO"
	for _, c := range []struct{ in, text, want string }{
		{"a\nb\nc\n", "b\n", "a\nc\n"},
		{"b\nc\n", "b\n", "c\n"},
		{"a\nb\n", "b\n", "a\n"},
		{"b", "b", ""},
		{"a\nb", "b", "a\n"},
		{"a\nb\nc", "b", "a\n\nc"},
		{"a\nb\r\nc", "b", "a\n\r\nc"},
		{"a\nbc\n", "b", no},
		{"a\ncb\n", "b\n", no},
		{"ab\nb\n", "b\n", "ab\n"},
		{"a\nb\nb\n", "b\n", no},
		{"a\n", "b\n", no},
		{"a\n", "", no},
		{"a\n\nb\n", "\n\nb\n", "a"}, // added where the last line had no end
		{"a\r\n\r\nb\r\n", "\r\n\r\nb\r\n", "a"},
		{"a\nb\n", "\nb\n", no},
		{"bbb", "bb", no},
	} {
		got, err := TakeOut([]byte(c.in), []byte(c.text))
		if err != nil {
			got = []byte(no)
		}
		if string(got) != c.want {
			t.Errorf("%q out of %q: %q, want %q", c.text, c.in, got, c.want)
		}
	}
	if _, err := TakeOut([]byte("b\nb\n"), []byte("b\n")); err == nil || !strings.Contains(err.Error(), "2 times") {
		t.Error(err)
	}
}

// TakeOutBlock removes a block, set off by blank lines or the file's ends, with
// what was put before it.
func TestTakeOutBlock(t *testing.T) {
	const no = "NO"
	for _, c := range []struct{ in, text, want string }{
		{"a\n\nb\n", "\nb\n", "a\n"},
		{"a\n\nb\n", "\n\nb\n", "a"},
		{"a\n\nb\n\nc\n", "\nb\n", "a\n\nc\n"},
		{"a\n\nb\n\nc\n", "\n\nb\n", "a\n\nc\n"}, // text follows now: the line above keeps its end
		{"b\n", "b\n", ""},
		{"\xef\xbb\xbfb\n", "b\n", "\xef\xbb\xbf"},
		{"a\r\n\r\nb\r\n", "\r\nb\r\n", "a\r\n"},
		{"a\n \nb\n", "\nb\n", "a\n "}, // it had no end
		{"a\n\t\nb\n", "b\n", "a\n\t\n"},
		{"a\nb\n", "b\n", no},            // no blank line before it
		{"a\n\nb\nc\n", "b\n", no},       // nor after it
		{"a\n\nxb\n", "b\n", no},         // not from the beginning of a line
		{"a\n\nbx\n", "b", no},           // nor to the end of one
		{"b\n\nb\n", "b\n", no},          // twice
		{"a\n", "b\n", no},               // not at all
		{"a\n", "\n", no},                // nothing
		{"```\n\nb\n\n```\n", "b\n", no}, // in a fence
		{"```\n\nb\n", "b\n", no},
		{"```\nx\n```\n\nb\n", "b\n", "```\nx\n```\n\n"},
		{"```\n\nb\n\n```\n\nb\n", "\nb\n", "```\n\nb\n\n```\n"},
		{"~~~\nx\n```\n\nb\n", "b\n", no},
		{"~~~~\nx\n~~~\n\nb\n", "b\n", no},
		{"~~~\nx\n~~~~\n\nb\n", "b\n", "~~~\nx\n~~~~\n\n"},
		{"```\nx\n``` y\n\nb\n", "b\n", no},
		{"``\n\nb\n", "b\n", "``\n\n"},
		{"   ```\n\nb\n", "b\n", no},
		{"    ```\n\nb\n", "b\n", "    ```\n\n"},
		{"``` a`b\n\nb\n", "b\n", "``` a`b\n\n"}, // inline code
		{"~~~ a`b\n\nb\n", "b\n", no},
		{"`~`\n\nb\n", "b\n", "`~`\n\n"},
		{"xxx\n\nb\n", "b\n", "xxx\n\n"},
		{"aaa\n\nb\n", "b\n", "aaa\n\n"},
		{"a\n\n\nb\n", "\n\nb\n", "a\n"},
	} {
		got, err := TakeOutBlock([]byte(c.in), []byte(c.text))
		if err != nil {
			got = []byte(no)
		}
		if string(got) != c.want {
			t.Errorf("%q out of %q: %q, want %q", c.text, c.in, got, c.want)
		}
	}
}

// A draft's name says where its text belongs, and fits a directory.
func TestDraftBase(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	hash := strings.Repeat("ab", 32)
	stamp := plan.Stamp(at) + "-abababababab-"
	fits := strings.Repeat("a", maxDraftPath-3) + ".md"
	for target, want := range map[string]string{
		"memory/notes/a.md": stamp + "memory--notes--a.md",
		fits:                stamp + fits,
		"x" + fits:          stamp + plan.Hash([]byte("x" + fits))[:12] + "--" + fits[20:],
	} {
		if got := draftBase(at, hash, target); got != want {
			t.Errorf("%s: %s, want %s", target, got, want)
		}
	}
	if got := draftBase(at, hash, strings.Repeat("ü", 200)); !strings.HasPrefix(got, stamp) || strings.ContainsRune(got, '\ufffd') || len(got) > len(stamp)+maxDraftPath {
		t.Error(got)
	}
}

// Nothing of a draft's text, and nothing that ends a comment, is in its head.
func TestDraftText(t *testing.T) {
	at := time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC)
	for _, c := range [][3]string{
		{"edited-while-staged: by somebody", "a b!~.md", "reason=edited-while-staged target=a b!~.md "},
		{"", "x", "reason=unknown target=x "},
		{": y", "-->\n<\x7f\x1f>\x1e", "reason=unknown target=--??????? "},
		{"r", "\x1f \x20", "reason=r target=?   "},
	} {
		got := string(DraftText(c[0], c[1], "TX", "EXP", []byte("text\n"), at))
		want := "<!-- mem:review " + c[2] + "expected=EXP sha256=" + plan.Hash([]byte("text\n")) + " tx=TX at=2026-11-30T09:00:00Z -->\ntext\n"
		if got != want {
			t.Errorf("%q\nwant %q", got, want)
		}
	}
}

// What no second try can help is told from what it can.
func TestHopeless(t *testing.T) {
	for err, want := range map[error]bool{
		nil: false, durable.ErrNotRegular: true, durable.ErrReserved: true, durable.ErrInTheWay: true, syscall.EBUSY: true, syscall.EPERM: true, syscall.ENOTDIR: true, syscall.EISDIR: true,
		errors.New("openat x: path escapes from parent"): true, syscall.ENOSPC: false, syscall.EIO: false, syscall.EMFILE: false, syscall.EACCES: false, fs.ErrNotExist: false,
	} {
		if got := hopeless(err); got != want {
			t.Errorf("%v: %v", err, got)
		}
		if err != nil && hopeless(fmt.Errorf("wrapped: %w", err)) != want {
			t.Errorf("wrapped %v: %v", err, !want)
		}
	}
}

// Backups are watched for a day, over the ends of months.
func TestWatchedMonths(t *testing.T) {
	for now, want := range map[string]string{
		"2026-11-15T12:00:00Z": "2026-11 2026-12",
		"2026-11-01T12:00:00Z": "2026-10 2026-11 2026-12",
		"2026-12-31T12:00:00Z": "2026-12 2027-01",
		"2026-01-30T12:00:00Z": "2026-01 2026-03", // the next month may be short: the one after it is looked at
	} {
		at, err := time.Parse(time.RFC3339, now)
		if err != nil {
			t.Fatal(err)
		}
		j := &Journal{At: at}
		var got []string
		for _, d := range j.watched("") {
			got = append(got, d[len(d)-len("2026-11"):])
		}
		if s := strings.Join(got, " "); strings.ReplaceAll(s, "/", "-") != want {
			t.Errorf("%s: %s, want %s", now, s, want)
		}
		for age, want := range map[time.Duration]bool{watchFor: true, watchFor + time.Second: false, -time.Hour: true, 0: true} {
			if got := j.recent(plan.Stamp(at.Add(-age)) + "-000000000000"); got != want {
				t.Errorf("%s: %v old is recent: %v", now, age, got)
			}
		}
	}
	if (&Journal{}).recent("no id") {
		t.Error("what is no id is recent")
	}
}

// A file has grown where what it was is its beginning, and there is more.
func TestGrownBy(t *testing.T) {
	was := plan.StateOf([]byte("ab"))
	for now, want := range map[string]string{"abc": "c", "ab\n": "\n", "ab": "", "a": "", "": "", "axc": "", "xabc": ""} {
		if got, ok := grownBy([]byte(now), was); string(got) != want || ok != (want != "") {
			t.Errorf("%q: %q, %v", now, got, ok)
		}
	}
	if _, ok := grownBy([]byte("a"), plan.StateOf(nil)); ok {
		t.Error("what was not there has grown")
	}
	if got, ok := grownBy([]byte("a"), plan.StateOf([]byte{})); !ok || string(got) != "a" {
		t.Errorf("what was empty: %q, %v", got, ok)
	}
}

// An append stands in a text where half of its lines are there more often than
// without it.
func TestSays(t *testing.T) {
	j := &Journal{}
	for _, c := range []struct {
		text, now, without string
		want               bool
	}{
		{"- a\n", "x\n- a\n", "x\n", true},
		{"- a\n", "x\n", "x\n", false},
		{"- a\n", "x\n- a\n", "x\n- a\n", false}, // it said that before
		{"- a\n", "x\n- a\n- a\n", "x\n- a\n", true},
		{"- a\n- b\n", "x\n- b, changed\n- a\n", "x\n", true},
		{"\n- a\n\n", "x\n\n\n", "x\n", false}, // blank lines say nothing
		{"- a\n", "x\r\n  - a\r\n", "x\r\n", true},
		{"- a\n", "", "x\n", false},
		{"a\nb\nc\nd\n", "x\na\nb\n", "x\n", true}, // half of it
		{"a\nb\nc\nd\n", "x\na\n", "x\n", false},
		{"a\nb\nc\n", "x\na\n", "x\n", false},
		{"\n", "x\n", "x\n", true}, // nothing is to be said
	} {
		if got := j.says(plan.Step{Kind: plan.Append, Text: []byte(c.text)}, []byte(c.now), []byte(c.without)); got != c.want {
			t.Errorf("%q in %q, without it %q: %v", c.text, c.now, c.without, got)
		}
	}
}

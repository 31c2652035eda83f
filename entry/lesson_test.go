package entry

import (
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseLessons(t *testing.T) {
	type short struct{ Form, ID, Day, Title, Summary, Status, Pattern string }
	tests := []struct {
		name, text string
		want       []short
	}{
		{"typed, with sections", "# Learnings\n\n## [LRN-20260401-001] correction\n\n**Logged**: 2026-04-01T10:00:00Z\n**Status**: pending\n\n### Summary\nUse rg, not grep\n\n### Metadata\n- Pattern-Key: shell.search\n\n---\n\n## [LRN-20260402-001] other\n", []short{
			{TypedForm, "LRN-20260401-001", "2026-04-01", "correction", "Use rg, not grep", "pending", "shell.search"},
			{TypedForm, "LRN-20260402-001", "2026-04-02", "other", "other", "", ""},
		}},
		{"level 3, dashes in the date, id without brackets", "### [LRN-2026-03-07-001]\n### Summary\nsame level\n## ERR-20260609-003: title\n- **Status:** Won't fix\n", []short{
			{TypedForm, "LRN-2026-03-07-001", "2026-03-07", "", "same level", "", ""},
			{TypedForm, "ERR-20260609-003", "2026-06-09", "title", "title", "won't fix", ""},
		}},
		{"dated headings", "## 2026-02-08 — title\ntext\n### 2026-02-09 | pattern: x\n## 2026-02-30 — no day\n", []short{
			{DatedForm, "", "2026-02-08", "title", "title", "", ""},
			{DatedForm, "", "2026-02-09", "pattern: x", "pattern: x", "", "x"},
		}},
		{"bullets", "# Errors\n\n- 2026-04-05: one\n- [2026-04-06] two\n  goes on\n- plain\n* star\n\ntext\n- after\n", []short{
			{BulletForm, "", "2026-04-05", "one", "one", "", ""},
			{BulletForm, "", "2026-04-06", "two", "two", "", ""},
			{BulletForm, "", "", "plain", "plain", "", ""},
			{BulletForm, "", "", "star", "star", "", ""},
			{BulletForm, "", "", "after", "after", "", ""},
		}},
		{"bullets inside an entry are its text", "## 2026-02-08 — title\n- a\n- b\n# Other\n- c\n", []short{
			{DatedForm, "", "2026-02-08", "title", "title", "", ""},
			{BulletForm, "", "", "c", "c", "", ""},
		}},
		{"fences, comments, placeholders, rules", "```\n## [LRN-20260401-001] in a fence\n```\n<!--\n## [LRN-20260401-002] in a comment\n- x\n-->\n## [LRN-YYYYMMDD-XXX] template\n## [LRN-20260401-XXX] template\n---\n- - -\n", nil},
		{"keys of time stamps are none", "## [LRN-20260401-001] a\n### Metadata\n- Pattern-Key: strategy.1767225600000\n", []short{
			{TypedForm, "LRN-20260401-001", "2026-04-01", "a", "a", "", ""},
		}},
		{"an impossible date", "## [ERR-20261345-001] a\n- 2026-13-45: b\n", []short{{TypedForm, "ERR-20261345-001", "", "a", "a", "", ""}}},
		{"CRLF and a byte order mark", "\xef\xbb\xbf- 2026-04-05: one\r\n- 2026-04-06: two\r\n", []short{
			{BulletForm, "", "2026-04-05", "one", "one", "", ""}, {BulletForm, "", "2026-04-06", "two", "two", "", ""},
		}},
		{"an open fence runs to the end", "- 2026-04-05: one\n```\n- not\n", []short{{BulletForm, "", "2026-04-05", "one", "one", "", ""}}},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			var got []short
			for _, l := range ParseLessons([]byte(tt.text)) {
				got = append(got, short{l.Form, l.ID, l.Day, l.Title, l.Summary, l.Status, l.Pattern})
			}
			if d := cmp.Diff(tt.want, got); d != "" {
				t.Error(d)
			}
		})
	}
}

func TestPinned(t *testing.T) {
	for text, want := range map[string]bool{
		"- a #pinned\n": true, "- a #pinned: keep\n": true, "- a\n  #pinned\n": true, "- a #pinnedness\n": false, "- a pinned\n": false,
		"## 2026-02-08 — a\n```\n#pinned\n```\n": true, "- a #unpinned\n": false,
	} {
		l := ParseLessons([]byte(text))
		if len(l) != 1 || l[0].Pinned != want {
			t.Errorf("%q: %+v, want pinned %v", text, l, want)
		}
	}
}

// FuzzParseLessons: lessons and what is between them are the file.
func FuzzParseLessons(f *testing.F) {
	f.Add([]byte("# T\n\n- 2026-04-05: one\n\n## [LRN-20260401-001] x\n### Summary\ny\n"))
	f.Add([]byte("```\n- a\n"))
	f.Add([]byte("## LRN-20260401-"))
	f.Add([]byte("- 2026-04-05 10:00"))
	f.Fuzz(func(t *testing.T, b []byte) {
		at := 0
		for _, l := range ParseLessons(b) {
			if l.Start < at || l.End < l.Start || l.End > len(b) {
				t.Fatalf("%d..%d after %d of %d", l.Start, l.End, at, len(b))
			}
			if l.Start > 0 && b[l.Start-1] != '\n' && l.Start != len(bom) {
				t.Fatalf("starts inside a line at %d", l.Start)
			}
			at = l.End
		}
	})
}

func BenchmarkParseLessons(b *testing.B) {
	text := []byte("# Learnings\n")
	for range 1000 {
		text = append(text, "\n## [LRN-20260401-001] correction\n\n**Logged**: 2026-04-01\n**Status**: pending\n\n### Summary\nUse this and not that, because it is quicker\n\n### Details\nA longer text of several words that goes on for a while and then ends.\n\n---\n"...)
	}
	n := CountLines(text)
	for b.Loop() {
		ParseLessons(text)
	}
	b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N*n), "ns/line")
}

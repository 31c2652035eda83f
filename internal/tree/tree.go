// Package tree makes workspaces that look like real ones, of any size, for
// tests and benchmarks. The same seed makes the same files; the text is made up
// from a word list.
package tree

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"time"
)

// Options of a tree.
type Options struct {
	Files int       // about how many Markdown files
	Today time.Time // notes go back from this day
	Seed  uint64
	Odd   bool // with the odd shapes of the field: damaged text, long lines, CRLF, other names
	Flat  bool // all daily notes within 30 days of today, in so many slugs a day as it takes
}

// Make writes a workspace in the canonical layout below dir and returns the
// number of Markdown files in it.
func Make(dir string, o Options) (int, error) {
	g := &gen{dir: dir, rng: rng(o.Seed + 1), o: o}
	g.write("mem.yaml", "layout: canonical\ntimezone: UTC\n")
	g.write("MEMORY.md", hot)
	g.write("memory/working-buffer.md", fmt.Sprintf("# Working Buffer\ncreated: %[1]s\nlast_active: %[1]s\n\n## Active Task:\n", o.Today.Add(-5*time.Hour).Format(time.RFC3339)))
	for _, f := range []string{"ERRORS", "LEARNINGS", "FEATURE_REQUESTS"} {
		g.write(".learnings/"+f+".md", g.lessons(f, min(40, 4+o.Files/50)))
	}
	warm := max(4, o.Files/20)
	for i := range warm {
		name := fmt.Sprintf("memory/semantic/topic-%04d.md", i)
		if i%2 == 1 {
			name = fmt.Sprintf("memory/procedural/how-to-%04d.md", i)
		}
		g.write(name, g.warm(i))
	}
	for i := 0; g.n < o.Files; i++ {
		g.note(i)
	}
	if o.Odd {
		g.odd()
	}
	return g.n, g.err
}

const hot = "# Memory\n#tags: memory\n\n## Active Decisions\n\n- ports stay as they are: memory/semantic/topic-0000.md\n\n## Open Questions\n\n- which disk comes next\n"

type rng uint64

// next is splitmix64: small, and the same everywhere.
func (r *rng) next() uint64 {
	*r += 0x9e3779b97f4a7c15
	z := uint64(*r)
	z = (z ^ z>>30) * 0xbf58476d1ce4e5b9
	z = (z ^ z>>27) * 0x94d049bb133111eb
	return z ^ z>>31
}

func (r *rng) below(n int) int { return int(r.next() % uint64(n)) }

type gen struct {
	dir string
	rng rng
	o   Options
	n   int
	err error
	sub map[string]bool
}

func (g *gen) write(name, text string) {
	if g.err != nil {
		return
	}
	full := filepath.Join(g.dir, filepath.FromSlash(name))
	if d := filepath.Dir(full); !g.sub[d] {
		if g.sub == nil {
			g.sub = map[string]bool{}
		}
		g.sub[d] = true
		if g.err = os.MkdirAll(d, 0o755); g.err != nil {
			return
		}
	}
	g.err = os.WriteFile(full, []byte(text), 0o644)
	if strings.HasSuffix(name, ".md") {
		g.n++
	}
}

var words = strings.Fields("agent memory note server port disk update branch release test queue index cache retry backup review lint token window timer socket buffer commit merge deploy build schema table record cluster proxy gateway monitor alert ticket customer report invoice travel garden recipe library music route bridge harbour signal engine battery sensor firmware driver kernel")

var verbs = strings.Fields("moved checked replaced restarted measured documented removed compared renamed reviewed postponed fixed")

func (g *gen) sentence(n int) string {
	var sb strings.Builder
	for i := range n {
		if i > 0 {
			sb.WriteByte(' ')
		}
		if i == 1 {
			sb.WriteString(verbs[g.rng.below(len(verbs))])
			continue
		}
		sb.WriteString(words[g.rng.below(len(words))])
	}
	fmt.Fprintf(&sb, " %d", g.rng.below(100000))
	return sb.String()
}

func (g *gen) day(back int) string { return g.o.Today.AddDate(0, 0, -back).Format(time.DateOnly) }

func (g *gen) warm(i int) string {
	var sb strings.Builder
	tags := []string{"docker", "ssh", "networking", "workflow", "audit", "backup", "errors"}
	fmt.Fprintf(&sb, "# Topic %d\n#tags: %s, %s\nlast_verified: %s\n\n## Facts\n\n", i, tags[i%7], tags[(i+3)%7], g.day(i%28))
	for range 6 + g.rng.below(8) {
		fmt.Fprintf(&sb, "- %s\n", g.sentence(8))
	}
	fmt.Fprintf(&sb, "\n## Why\n\n%s. See [the first](%s).\n", g.sentence(14), "../semantic/topic-0000.md")
	return sb.String()
}

var slugs = strings.Fields("standup deploy incident planning review research travel notes debugging handover")

func (g *gen) note(i int) {
	back := i % 30
	if !g.o.Flat && g.o.Files > 200 {
		back = i % 365
	}
	day := g.day(back)
	name := day + ".md"
	if i >= 30 {
		name = fmt.Sprintf("%s-%s-%d.md", day, slugs[g.rng.below(len(slugs))], i)
	}
	dir := "memory/episodic/"
	if back > 30 {
		dir = "memory/archive/" + strings.ReplaceAll(day[:7], "-", "/") + "/"
	}
	g.write(dir+name, g.text(day))
}

func (g *gen) text(day string) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "# %s\n\n", day)
	for range 5 + g.rng.below(12) {
		fmt.Fprintf(&sb, "- %02d:%02d %s\n", g.rng.below(24), g.rng.below(60), g.sentence(9))
	}
	if g.rng.below(3) == 0 {
		fmt.Fprintf(&sb, "\n## Details\n\n%s. %s; https://example.org/%d\n", g.sentence(16), g.sentence(11), g.rng.below(1000))
	}
	fmt.Fprintf(&sb, "\nUpdated: %s\nDecisions: %s\nSignal: %s\nOpen: none\n", day, g.sentence(5), g.sentence(4))
	return sb.String()
}

func (g *gen) lessons(file string, n int) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "# %s\n\n", file)
	for i := range n {
		day := g.day(i % 30)
		switch i % 4 {
		case 0:
			fmt.Fprintf(&sb, "- %s: %s\n", day, g.sentence(8))
		case 1:
			fmt.Fprintf(&sb, "\n## [LRN-%s-%03d] correction\n\n**Logged**: %s\n**Status**: pending\n\n### Summary\n%s\n\n### Metadata\n- Pattern-Key: strategy.%d\n\n---\n\n", strings.ReplaceAll(day, "-", ""), i, day, g.sentence(9), 1767225600000+i)
		case 2:
			fmt.Fprintf(&sb, "\n## %s — %s\n\n%s\n\n", day, g.sentence(4), g.sentence(15))
		default:
			fmt.Fprintf(&sb, "\n### [ERR-%s-%03d]\n**Status:** resolved\n### Summary\n%s\n```sh\n- 2020-01-01: not an entry\n```\n\n", day, i, g.sentence(7))
		}
	}
	return sb.String()
}

// odd adds what is found in the field.
func (g *gen) odd() {
	day := g.day(3)
	note := g.text(day)
	g.write("memory/episodic/"+day+"-日本語のメモ.md", strings.ReplaceAll(note, "Details", "詳細 内容"))
	g.write("memory/episodic/"+day+"_under-score.md", note)
	g.write("memory/episodic/"+day+"-bom.md", "\xef\xbb\xbf"+note)
	g.write("memory/episodic/"+day+"-crlf.md", strings.ReplaceAll(note, "\n", "\r\n"))
	g.write("memory/episodic/"+day+"-long-line.md", "# long\n\n- "+strings.Repeat("x", 49316)+"\n"+note)
	g.write("memory/episodic/"+day+"-damaged.md", "caf\xe9 \xff and then\n"+note)
	g.write("memory/episodic/"+day+"-no-newline.md", strings.TrimSuffix(note, "\n"))
	g.write("memory/episodic/notes.md", "not a day\n")
	g.write("memory/episodic/20260105.md", "not a day\n")
	g.write("memory/semantic/CAPITALS.md", g.warm(8))
	g.write("memory/semantic/größe und maß.md", g.warm(9))
	g.write("memory/semantic/README.md", "what is here\n")
	var big strings.Builder
	for big.Len() < 875_000 {
		big.WriteString(g.lessons("OLD", 40))
	}
	g.write(".learnings/OLD_NOTES.md", big.String())
	g.write(".learnings/errors.md", "# lower case\n\n- 2026-04-05: another file than ERRORS.md\n")
	for i, log := range []string{"# Working Buffer\n\n**Status:** ACTIVE\n\n## [2026-04-05 10:00] Human\n\nhello\n", "free text, no header\n"} {
		g.write(fmt.Sprintf("memory/cards/dialect-%d.md", i), log)
	}
}

package search

import (
	"bytes"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"
	"unicode/utf8"

	"github.com/tieredmem/mem/tiers"
)

func rules(t testing.TB) tiers.Rules {
	t.Helper()
	c, err := tiers.ParseConfig("mem.yaml", []byte("layout: canonical\n"))
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

var files = map[string]string{
	"MEMORY.md":                            "# Memory\n#tags: memory\n\n- The gateway runs on port 8080\n",
	"memory/working-buffer.md":             "# Working Buffer\n\n- migrating the gateway today\n",
	"memory/semantic/infrastructure.md":    "# Infrastructure\n#tags: docker, ssh\nlast_verified: 2026-11-20\n\n## Docker\n\n- Container restarts happen nightly\n- restarting by hand: `docker restart web`\n\n## Café hosts\n\n- naïve résumé parser on host Zürich\n- 東京タワーの近くのサーバー\n- Straße 5\n",
	"memory/procedural/backup.md":          "# Backup\n#tags: backup\nlast_verified: 2026-11-20\n\n```sh\nrestic backup /srv\nrestic forget --keep-daily 7\n```\n\nThe quick brown fox\njumps over backups.\n",
	".learnings/ERRORS.md":                 "- 2026-11-02: port conflict after the gateway upgrade\n",
	"memory/episodic/2026-11-29.md":        "# 2026-11-29\n\n- gateway port conflict, solved\n- nothing else\n",
	"memory/episodic/2026-11-30.md":        "# 2026-11-30\n\n- gateway talk #incident\n",
	"memory/archive/2026/01/2026-01-05.md": "# 2026-01-05\n\n- ancient gateway\n",
	"memory/handoff-inbox/x.md":            "- gateway in a draft\n",
	"README.md":                            "gateway\n",
}

func find(t *testing.T, query string, o Options) []string {
	t.Helper()
	r, err := Search(memory(files), rules(t), Parse(query), o)
	if err != nil {
		t.Fatal(err)
	}
	var out []string
	for _, h := range r.Hits {
		out = append(out, fmt.Sprintf("%s:%d", h.Path, h.Line))
	}
	return out
}

func TestFinds(t *testing.T) {
	const (
		infra  = "memory/semantic/infrastructure.md"
		backup = "memory/procedural/backup.md"
	)
	all := Options{All: true}
	for _, c := range []struct {
		query string
		o     Options
		want  []string
	}{
		// Tier order, COLD last; drafts and other files are no memory.
		{"gateway", all, []string{"memory/working-buffer.md:3", "MEMORY.md:4", ".learnings/ERRORS.md:1", "memory/archive/2026/01/2026-01-05.md:3", "memory/episodic/2026-11-30.md:3", "memory/episodic/2026-11-29.md:3"}},
		// COLD only where the rest holds too little.
		{"gateway", Options{Min: 3}, []string{"memory/working-buffer.md:3", "MEMORY.md:4", ".learnings/ERRORS.md:1"}},
		{"conflict", Options{Min: 5}, []string{".learnings/ERRORS.md:1", "memory/episodic/2026-11-29.md:3"}},
		{"gateway", Options{Tiers: []tiers.Tier{tiers.COLD}, Limit: 1}, []string{"memory/archive/2026/01/2026-01-05.md:3"}},
		// Endings, case, accents, width.
		{"RESTART", all, []string{infra + ":8", infra + ":7"}},
		{"restarted", all, []string{infra + ":8", infra + ":7"}},
		{"cafe", all, []string{infra + ":10"}},
		{"resume", all, []string{infra + ":12"}},
		{"zurich", all, []string{infra + ":12"}},
		{"ZÜRICH", all, []string{infra + ":12"}},
		{"ｄｏｃｋｅｒ web", all, []string{infra + ":8", infra + ":5", infra + ":2"}},
		{"strasse", all, []string{infra + ":14"}},
		// Scripts without spaces, by two characters.
		{"東京", all, []string{infra + ":13"}},
		{"タワーの近く", all, []string{infra + ":13"}},
		{"京都", all, nil},
		// Phrases, beginnings, tags, paths, days.
		{`"port conflict"`, all, []string{".learnings/ERRORS.md:1", "memory/episodic/2026-11-29.md:3"}},
		{`"conflict port"`, all, nil},
		{"cont*", all, []string{infra + ":7"}},
		{"restart #docker", all, []string{infra + ":8", infra + ":7"}},
		{"restart #backup", all, nil},
		{"#incident", all, []string{"memory/episodic/2026-11-30.md:3"}},
		{"#ssh", all, []string{infra + ":2"}},
		{"gateway path:episodic", all, []string{"memory/episodic/2026-11-30.md:3", "memory/episodic/2026-11-29.md:3"}},
		{"gateway after:2026-11-30", all, []string{"memory/episodic/2026-11-30.md:3"}},
		{"gateway before:2026-11-01", all, []string{"memory/archive/2026/01/2026-01-05.md:3"}},
		// A block of code and a paragraph are one entry each; the line is that of the word.
		{"forget", all, []string{backup + ":7"}},
		{"jumping", all, []string{backup + ":11"}},
		// What makes no sense is text, or nothing.
		{`"port conflict`, Options{Tiers: []tiers.Tier{tiers.SCRATCH}}, []string{".learnings/ERRORS.md:1"}},
		{"after:yesterday", all, nil},
		{"!?… --- ( ) \" \"", all, nil},
		{"", all, nil},
		{"#", all, nil},
		{"zebra", all, nil},
		// Words that say nothing do not count, unless there are no others.
		{"what is the forgetting of it", all, []string{backup + ":7"}},
		{"over", all, []string{backup + ":11"}},
	} {
		if got := find(t, c.query, c.o); !slices.Equal(got, c.want) {
			t.Errorf("%q %+v:\n got %v\nwant %v", c.query, c.o, got, c.want)
		}
	}
}

// TestScripts: text in whatever form it stands on disk is found in whatever
// form it is asked for.
func TestScripts(t *testing.T) {
	for _, c := range []struct{ text, query string }{
		{"- กินข้าวที่บ้าน", "กิน"}, {"- กินข้าวที่บ้าน", "ข้าว"},
		{"- \u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165 \u1109\u1165\u1107\u1165", "한국어"}, {"- 한국어 서버", "\u1112\u1161\u11ab\u1100\u116e\u11a8\u110b\u1165"},
		{"- カ\u3099イト\u3099", "ガイド"}, {"- ガイド", "カ\u3099イト\u3099"}, {"- ｻｰﾊﾞｰ", "サーバー"}, {"- サーバー", "ｻｰﾊﾞｰ"}, {"- ｻｰﾊﾞｰ", "ｻｰﾊﾞｰ"},
		{"- cafe\u0301", "café"}, {"- café", "cafe\u0301"}, {"- Привет мир", "привет"}, {"- Ελληνικά", "ελληνικα"},
		{"- latency is 5 µs", "µs"}, {"- latency is 5 μs", "µs"}, {"- 𠮷 rare", "𠮷"}, {"- m² of floor", "m²"}, {"- m² of floor", "m2"}, {"- Foo™", "Foo™"},
		{"- dock\u2026er or docker", "docker"}, {"- \u201cdocker\u201d", "docker"}, {"- a—docker—b", "docker"}, {"- ﬁle system", "file"},
		{"- " + strings.Repeat("a1", 100), strings.Repeat("a1", 100)},
		{"- use #docker-compose and #docker", "#docker"}, {"- alphaonly", "alphaonly betaonly alphaonly*"}, {"- betaonly", "alphaonly betaonly alphaonly*"},
	} {
		m := memory(map[string]string{"memory/semantic/a.md": "# A\n\nother\n\n" + c.text + "\n\nmore\n"})
		r, err := Search(m, rules(t), Parse(c.query), Options{All: true})
		if err != nil || len(r.Hits) != 1 || r.Hits[0].Line != 5 || r.Hits[0].Match != c.text {
			t.Errorf("%q in %q: %+v (%v)", c.query, c.text, r.Hits, err)
		}
	}
	for _, c := range []struct{ text, query string }{{"- see page#docker", "#docker"}, {"- #dockerfile", "#docker"}, {"- 京都", "東京"}, {"- mango", "mang"}} {
		m := memory(map[string]string{"memory/semantic/a.md": c.text + "\n"})
		if r, err := Search(m, rules(t), Parse(c.query), Options{All: true}); err != nil || len(r.Hits) > 0 {
			t.Errorf("%q in %q: %+v (%v)", c.query, c.text, r.Hits, err)
		}
	}
	m := memory(map[string]string{"memory/semantic/a.md": "- nulword\n\x00\n"})
	if r, err := Search(m, rules(t), Parse("nulword"), Options{}); err != nil || len(r.Trouble) != 1 {
		t.Errorf("a file with NUL bytes is passed over in silence: %+v (%v)", r, err)
	}
}

// TestNeighboursAndHeadings: what stands beside or above changes the rank and
// never makes a hit.
func TestNeighboursAndHeadings(t *testing.T) {
	m := memory(map[string]string{
		"memory/semantic/a.md": "# A\n\n- lantern alone\n\n- filler\n- filler\n- filler\n- filler\n\n- where does the lantern fuel come from\n- the lantern burns oil from Jaffa\n- unrelated\n\n## Fuel\n\n- the lantern again\n",
	})
	r, err := Search(m, rules(t), Parse("lantern fuel"), Options{All: true})
	if err != nil {
		t.Fatal(err)
	}
	rank := map[int]int{}
	for i, h := range r.Hits {
		rank[h.Line] = i + 1
		if !strings.Contains(strings.ToLower(h.Text), "lantern") && !strings.Contains(strings.ToLower(h.Text), "fuel") {
			t.Errorf("line %d holds no word: %q", h.Line, h.Text)
		}
	}
	if rank[11] == 0 || rank[3] == 0 || rank[11] > rank[3] {
		t.Errorf("the answer beside its question is not before the same word alone: %v", rank)
	}
	if rank[16] == 0 || rank[16] > rank[3] {
		t.Errorf("an entry below a heading with the word is not before one without: %v", rank)
	}
}

// TestNear: what is compared before a word is stemmed never hides a word of
// the same stem.
func TestNear(t *testing.T) {
	words := strings.Fields(`die dies dying died lie lying tie tying sky skies idle idly gentle gently ugly only early singly happy happier happiness
		happily hope hoping hoped hop hopping run running runs runner able ability abilities sensible sensibility organize organization organizer organizing
		nation national rational relate relational relation conform conformity generous generously operate operator operating operation trouble troubling
		study studies studying day days key keys argue arguing argument agree agreed agreement feed fed feeling luxury luxurious luxuriate conflate
		electric electrical electricity hopeful hopefulness callous callousness formal formality formalize sensitive sensitivity vile vilely homologous
		analogy analogous effective effectively replace replacement adjust adjustment depend dependent dependence adopt adoption activate activation
		be bees bed beds as ass gas gases x xs ax axes ox oxen a i of off news proceed exceed succeed outing inning canning herring earring skis dry dries
		cry cried cries buy bought says said say enjoy enjoyed pay paid port ports ported porting the those generate general generic`)
	for _, a := range words {
		q := Parse(a)
		if len(q.terms) != 1 {
			t.Fatalf("%q has %d terms", a, len(q.terms))
		}
		for _, b := range words {
			same := stem(a) == stem(b)
			if got := q.Fits("see " + b + ", there"); got != same {
				t.Errorf("query %q (stem %q, near %q) on %q (stem %q): %v", a, stem(a), q.terms[0].near, b, stem(b), got)
			}
		}
	}
}

// FuzzSearch: whatever is asked of whatever text, each hit is an entry that is
// there and holds a word.
func FuzzSearch(f *testing.F) {
	for _, q := range []string{"gateway port", `"a b" c*`, "#x path:y 東京 é", "\xff\xfe", strings.Repeat("a ", 200)} {
		for _, text := range []string{files["memory/semantic/infrastructure.md"], "```\nx\n", "- a\n\xff\n# b\n", "東京é\u0301 ßtraße a_b", "1. x\n2) y\n   cont\n"} {
			f.Add(q, []byte(text))
		}
	}
	r := rules(f)
	f.Fuzz(func(t *testing.T, query string, text []byte) {
		m := fstest.MapFS{"memory/semantic/a.md": {Data: text}}
		q := Parse(query)
		res, err := Search(m, r, q, Options{All: true})
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Count(text, []byte("\n")) + 1
		for _, h := range res.Hits {
			body := strings.TrimSuffix(h.Text, "…")
			if h.Line < 1 || h.Line > lines || utf8.ValidString(body) && len(h.Text) < maxText && !bytes.Contains(text, []byte(h.Text)) {
				t.Fatalf("hit %+v is not in the text", h)
			}
			if len(q.terms) > 0 && len(h.Text) < maxText && !q.Fits(h.Text) {
				t.Fatalf("%q holds no word of %q", h.Text, query)
			}
		}
	})
}

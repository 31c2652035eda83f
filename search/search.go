// Package search finds entries of a memory by words: list items, paragraphs
// and headings, ranked within their tier.
//
// [Parse] reads a query, [Search] looks through a workspace. There is no
// index: every file is read, and nothing is found that is not on disk.
package search

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"math"
	"path/filepath"
	"runtime"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/walk"
)

// Hit is one entry that fits.
type Hit struct {
	Path    string  `json:"path"`
	Line    int     `json:"line"` // from 1: the first that holds a word of the query
	Tier    string  `json:"tier"`
	Date    string  `json:"date"`    // the note's day, "" for other files
	Heading string  `json:"heading"` // those above the entry, from the top
	Score   float64 `json:"score"`   // comparable within one result only
	Text    string  `json:"text"`    // the entry, at most maxText bytes
	Match   string  `json:"match"`   // the line of it that Line names
}

// Options choose what Search looks at.
type Options struct {
	Tiers []tiers.Tier // only these; empty: all
	All   bool         // COLD too, however much the others hold
	Min   int          // COLD too if HOT and WARM hold fewer hits
	Limit int          // of hits; 0: no limit
	// Walk reads the workspace's files; nil: through m.
	Walk func(walk.Options) error
}

// Result is what was found.
type Result struct {
	Hits    []Hit
	Total   int      // before Limit
	Cold    bool     // COLD was looked at
	Files   int      // that were read
	Trouble []string // what could not be read
}

// MaxFile is the largest file that is read, in bytes.
const MaxFile = 16 << 20

// maxText bounds the text of a hit, in bytes.
const maxText = 4096

// The ranking: BM25 over entries, with a share of what the entries beside
// hold and of the headings above. Measured with bench/locomo.
const (
	saturation = 1.0  // BM25 k1
	length     = 0.35 // BM25 b
	above      = 0.3  // of a word's weight if a heading above holds it
)

// before and after are the shares of the scores of the entries before and
// after one, the nearest first: an answer often stands behind its question.
var (
	before = [...]float64{0.4, 0.3}
	after  = [...]float64{0.3, 0.2}
)

// found is an entry with words of the query.
type found struct {
	Hit
	file  int // number of its file, with its worker's
	index int // among the entries of the file
	count []termCount
	size  int // bytes
	score float64
}

type termCount struct {
	term int
	n    float64
}

// worker is what one goroutine of the walk has gathered.
type worker struct {
	*scanner
	found   []found
	files   int
	entries int // about
	bytes   int
	trouble []string
	parts   []part
	heads   []heading
	_       [64]byte // apart from the next worker's
}

// pass is one look through a workspace.
type pass struct {
	rules   tiers.Rules
	q       Query
	o       Options
	workers []worker
}

// Search looks for entries. An error means that the memory could not be looked
// at; a single file that cannot be read is named in the result.
func Search(m fs.FS, rules tiers.Rules, q Query, o Options) (Result, error) {
	if q.Empty() {
		return Result{}, nil
	}
	p := &pass{rules: rules, q: q, o: o, workers: make([]worker, min(4, runtime.GOMAXPROCS(0)))}
	for i := range p.workers {
		p.workers[i].scanner = newScanner(&p.q)
	}
	read := o.Walk
	if read == nil {
		read = func(w walk.Options) error { return walk.FS(m, w) }
	}
	if err := read(walk.Options{Enter: rules.Enter, Want: p.want, Visit: p.visit, Workers: len(p.workers), Limit: MaxFile, Light: true}); err != nil {
		return Result{}, err
	}
	return p.result(), nil
}

func (p *pass) want(dir string) func(string, fs.FileMode) (visit, body bool) {
	in := p.rules.In(dir)
	filtered := len(p.q.paths) > 0 || p.q.after != "" || p.q.before != ""
	return func(base string, typ fs.FileMode) (bool, bool) {
		tier, _ := in(base)
		if tier == "" || typ.Type()&fs.ModeSymlink != 0 || len(p.o.Tiers) > 0 && !slices.Contains(p.o.Tiers, tier) {
			return false, false
		}
		if !filtered {
			return true, true
		}
		name := join(dir, base)
		return p.q.fits(name, p.day(name)), true
	}
}

func join(dir, base string) string {
	if dir == "." {
		return base
	}
	return dir + "/" + base
}

// day is the day of a note, also of one that was archived.
func (p *pass) day(name string) string {
	if day, ok := p.rules.NoteDay(name); ok {
		return day
	}
	if p.rules.TierOf(name) == tiers.COLD {
		day, _ := tiers.NoteDay(name[strings.LastIndexByte(name, '/')+1:])
		return day
	}
	return ""
}

func (p *pass) visit(n int, f *walk.File) {
	w := &p.workers[n]
	switch {
	case errors.Is(f.Err, fs.ErrNotExist):
		return // it was archived meanwhile; where it is now is looked at, too
	case f.Err != nil:
		w.trouble = append(w.trouble, fmt.Sprintf("%s: %v", f.Path(), f.Err))
		return
	case f.Body == nil:
		return
	case bytes.IndexByte(f.Body, 0) >= 0:
		w.trouble = append(w.trouble, f.Path()+": holds NUL bytes: no text")
		return
	}
	w.files++
	w.bytes += len(f.Body)
	occurrences := w.scan(f.Body)
	tagged := len(p.q.tags) > 0 && p.hasTags(f.Body)
	if len(p.q.terms) > 0 && len(occurrences) == 0 || len(p.q.terms) == 0 && !tagged && bytes.IndexByte(f.Body, '#') < 0 {
		w.entries += bytes.Count(f.Body, []byte("\n")) + 1
		return
	}
	p.entries(w, n, f, occurrences, tagged)
}

// hasTags reports whether a file's tags line has all tags of the query.
func (p *pass) hasTags(b []byte) bool {
	h := entry.ParseHeader(b)
	for _, t := range p.q.tags {
		if !slices.ContainsFunc(h.Tags, func(x string) bool { return foldString(x) == t }) {
			return false
		}
	}
	return true
}

// entries makes hits of a file's occurrences.
func (p *pass) entries(w *worker, n int, f *walk.File, occurrences []occurrence, tagged bool) {
	parts, heads := split(f.Body, w.parts[:0], w.heads[:0])
	w.parts, w.heads = parts, heads
	w.entries += len(parts)
	name := f.Path()
	day := p.day(name)
	tier := string(p.rules.TierOf(name))
	inHeads := p.headingTerms(w, parts, occurrences)
	k := 0
	for i, e := range parts {
		from := k
		for k < len(occurrences) && occurrences[k].at < e.end {
			k++
		}
		own := occurrences[from:k]
		text := f.Body[e.start:e.end]
		first := 0
		if len(own) > 0 {
			first = own[0].at - e.start
		}
		switch {
		case len(p.q.terms) > 0 && len(own) == 0:
			continue
		case len(p.q.tags) > 0 && !tagged && !p.tagsIn(text):
			continue
		case len(p.q.terms) == 0 && !p.tagsIn(text) && !p.tagsLine(text, tagged):
			continue
		case len(p.q.phrases) > 0 && !p.phrasesIn(text):
			continue
		}
		h := found{file: w.files*len(p.workers) + n, index: i, size: e.end - e.start}
		h.Hit = Hit{Path: name, Line: e.line + bytes.Count(text[:first], []byte("\n")), Tier: tier, Date: day, Heading: path(heads, e.heading), Text: short(text), Match: short(lineAt(text, first))}
		for _, o := range own {
			h.add(o.term, 1)
		}
		for _, t := range inHeads.at(heads, e.heading) {
			h.context(t)
		}
		w.found = append(w.found, h)
	}
}

func (h *found) add(term int, n float64) {
	for i := range h.count {
		if h.count[i].term == term {
			h.count[i].n += n
			return
		}
	}
	h.count = append(h.count, termCount{term, n})
}

// context adds a word that only a heading above holds.
func (h *found) context(term int) {
	for _, c := range h.count {
		if c.term == term {
			return
		}
	}
	h.count = append(h.count, termCount{term, -above})
}

// headTerms are the query's words in each heading of a file.
type headTerms [][]int

func (p *pass) headingTerms(w *worker, parts []part, occurrences []occurrence) headTerms {
	var out headTerms
	k := 0
	for _, e := range parts {
		var row []int
		for k < len(occurrences) && occurrences[k].at < e.end {
			row = append(row, occurrences[k].term)
			k++
		}
		if e.title {
			out = append(out, row)
		}
	}
	return out
}

func (t headTerms) at(heads []heading, i int) []int {
	var out []int
	for ; i >= 0; i = heads[i].above {
		out = append(out, t[i]...)
	}
	return out
}

// tagsIn reports whether a text holds all tags of the query, as #tag.
func (p *pass) tagsIn(text []byte) bool {
	folded := foldString(string(text))
	for _, t := range p.q.tags {
		found := false
		for from := 0; !found; {
			i := strings.Index(folded[from:], "#"+t)
			if i < 0 {
				return false
			}
			i += from
			from = i + 1
			before, _ := utf8.DecodeLastRuneInString(folded[:i])
			behind, _ := utf8.DecodeRuneInString(folded[i+1+len(t):])
			begins := i == 0 || !wordRune(before) && before != '#' && before != '/'
			found = begins && !wordRune(behind) && behind != '-'
		}
	}
	return true
}

// tagsLine reports whether a text is the tags line of a file that has the tags.
func (p *pass) tagsLine(text []byte, tagged bool) bool {
	return tagged && bytes.Contains(text, []byte("#tags:"))
}

// phrasesIn reports whether a text holds all phrases of the query.
func (p *pass) phrasesIn(text []byte) bool {
	var words []string
	eachToken(string(text), func(t token) { words = append(words, t.text) })
	for _, row := range p.q.phrases {
		found := false
		for i := 0; i+len(row) <= len(words) && !found; i++ {
			found = slices.Equal(words[i:i+len(row)], row)
		}
		if !found {
			return false
		}
	}
	return true
}

// lineAt is the line of a text that a byte is in.
func lineAt(b []byte, at int) []byte {
	start := bytes.LastIndexByte(b[:at], '\n') + 1
	line, _, _ := bytes.Cut(b[start:], []byte("\n"))
	return line
}

// short is a hit's text: whole lines as they stand, cut if there are many.
func short(b []byte) string {
	b = bytes.TrimRight(b, " \t\r\n")
	if len(b) > maxText {
		return strings.ToValidUTF8(string(b[:maxText]), "") + "…"
	}
	return string(b)
}

// result ranks what the workers have found.
func (p *pass) result() Result {
	var r Result
	var all []found
	entries, size := 0, 0
	for i := range p.workers {
		w := &p.workers[i]
		all = append(all, w.found...)
		entries, size, r.Files = entries+w.entries, size+w.bytes, r.Files+w.files
		r.Trouble = append(r.Trouble, w.trouble...)
	}
	slices.Sort(r.Trouble)
	p.score(all, max(entries, len(all)), size)
	warm := 0
	for _, h := range all {
		if h.Tier != string(tiers.COLD) {
			warm++
		}
	}
	r.Cold = p.o.All || slices.Contains(p.o.Tiers, tiers.COLD) || len(p.o.Tiers) == 0 && warm < p.o.Min
	if !r.Cold {
		all = slices.DeleteFunc(all, func(h found) bool { return h.Tier == string(tiers.COLD) })
	}
	slices.SortFunc(all, func(a, b found) int {
		return cmp.Or(rank(a.Tier)-rank(b.Tier), cmp.Compare(b.Score, a.Score), strings.Compare(b.Date, a.Date), strings.Compare(a.Path, b.Path), a.Line-b.Line)
	})
	r.Total = len(all)
	if p.o.Limit > 0 && len(all) > p.o.Limit {
		all = all[:p.o.Limit]
	}
	r.Hits = make([]Hit, len(all))
	for i, h := range all {
		r.Hits[i] = h.Hit
		r.Hits[i].Path = filepath.ToSlash(h.Path)
	}
	return r
}

// rank is a tier's place in the order of results: what an agent has before it,
// then what is kept up, then the past.
func rank(t string) int {
	switch tiers.Tier(t) {
	case tiers.HOT, tiers.BUFFER:
		return 0
	case tiers.WARM, tiers.SCRATCH:
		return 1
	}
	return 2
}

// score gives each entry its score.
func (p *pass) score(all []found, entries, size int) {
	df := make([]float64, len(p.q.terms))
	for _, h := range all {
		for _, c := range h.count {
			if c.n > 0 {
				df[c.term]++
			}
		}
	}
	n, mean := float64(entries), float64(max(size, 1))/float64(max(entries, 1))
	idf := make([]float64, len(df))
	for i := range df {
		idf[i] = math.Log(1 + (n-df[i]+0.5)/(df[i]+0.5))
	}
	for i := range all {
		h := &all[i]
		norm := saturation * (1 - length + length*float64(h.size)/mean)
		for _, c := range h.count {
			if c.n < 0 {
				h.score += idf[c.term] * -c.n
			} else {
				h.score += idf[c.term] * c.n * (saturation + 1) / (c.n + norm)
			}
		}
		h.Score = h.score
	}
	// Entries of one file stand together, in their order.
	for i := range all {
		for k := max(i-len(before), 0); k <= min(i+len(after), len(all)-1); k++ {
			if all[k].file != all[i].file {
				continue
			}
			switch d := all[k].index - all[i].index; {
			case d > 0 && d <= len(after):
				all[i].Score += after[d-1] * all[k].score
			case d < 0 && -d <= len(before):
				all[i].Score += before[-d-1] * all[k].score
			}
		}
		all[i].Score = math.Round(all[i].Score*1e4) / 1e4
	}
}

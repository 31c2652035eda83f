package search

import (
	"slices"
	"strings"
	"unicode"

	"github.com/tieredmem/mem/tiers"
)

// Query is what is looked for.
type Query struct {
	terms   []term
	phrases [][]string // folded words in a row
	tags    []string   // folded, without #
	paths   []string   // parts of paths, folded
	after   string     // a day: entries of that day or later
	before  string     // a day: entries of an earlier day
}

// term is one word, or two characters of a script without spaces.
type term struct {
	stem   string // folded; of a CJK term the characters
	prefix bool   // matches whatever begins with it
	cjk    []rune
	near   string // what every word of that stem begins with
}

// maxTerms bounds how many terms of a query count: bits of a mask.
const maxTerms = 64

// Parse reads a query: words, "phrases", word* for a beginning, #tag, path:PART,
// after:DAY and before:DAY. A quote that is not closed is text like any other,
// and so is a filter that makes no sense.
func Parse(s string) Query {
	var q Query
	for s = strings.TrimSpace(s); s != ""; s = strings.TrimSpace(s) {
		if s[0] == '"' {
			if i := strings.IndexByte(s[1:], '"'); i >= 0 {
				q.phrase(s[1 : i+1])
				s = s[i+2:]
				continue
			}
			s = s[1:]
			continue
		}
		word := s
		if i := strings.IndexFunc(s, unicode.IsSpace); i >= 0 {
			word = s[:i]
		}
		s = s[len(word):]
		if !q.filter(word) {
			q.words(word)
		}
	}
	q.dropStopWords()
	if len(q.terms) > maxTerms {
		q.terms = q.terms[:maxTerms]
	}
	return q
}

// Empty reports whether the query asks for nothing: then nothing is found.
func (q Query) Empty() bool { return len(q.terms) == 0 && len(q.tags) == 0 }

func (q *Query) filter(word string) bool {
	key, value, ok := strings.Cut(word, ":")
	switch {
	case strings.HasPrefix(word, "#") && len(word) > 1:
		if tag := strings.TrimRight(word[1:], ".,;:!?"); tag != "" && strings.Trim(tag, "#") != "" {
			q.tags = append(q.tags, foldString(tag))
			return true
		}
	case !ok || value == "":
	case key == "path":
		q.paths = append(q.paths, strings.ToLower(value))
		return true
	case key == "after" && tiers.ValidDay(value):
		q.after = value
		return true
	case key == "before" && tiers.ValidDay(value):
		q.before = value
		return true
	}
	return false
}

func (q *Query) phrase(s string) {
	var row []string
	eachToken(s, func(t token) {
		row = append(row, t.text)
		q.add(t, false)
	})
	if len(row) > 1 {
		q.phrases = append(q.phrases, row)
	}
}

func (q *Query) words(s string) {
	var all []token
	eachToken(s, func(t token) { all = append(all, t) })
	for i, t := range all {
		q.add(t, i == len(all)-1 && len(s) > 1 && strings.HasSuffix(s, "*") && t.cjk == nil)
	}
}

func (q *Query) add(t token, prefix bool) {
	n := term{stem: t.text, cjk: t.cjk, prefix: prefix, near: t.text}
	if t.cjk == nil && !prefix {
		n.stem = stem(t.text)
		n.near = near(t.text, n.stem)
	}
	if !slices.ContainsFunc(q.terms, func(o term) bool { return o.stem == n.stem && o.prefix == n.prefix }) {
		q.terms = append(q.terms, n)
	}
}

// dropStopWords leaves words that say nothing out, unless nothing else is left.
func (q *Query) dropStopWords() {
	kept := slices.DeleteFunc(slices.Clone(q.terms), func(t term) bool { return !t.prefix && stopWords()[t.stem] })
	if len(kept) > 0 {
		q.terms = kept
	}
}

// fits reports whether a file of that path and day can hold a hit.
func (q *Query) fits(name, day string) bool {
	for _, p := range q.paths {
		if !strings.Contains(strings.ToLower(name), p) {
			return false
		}
	}
	if q.after != "" && (day == "" || day < q.after) || q.before != "" && (day == "" || day >= q.before) {
		return false
	}
	return true
}

// Fits reports whether a text holds a word of the query.
func (q Query) Fits(text string) bool {
	return len(q.terms) > 0 && len(newScanner(&q).scan([]byte(text))) > 0
}

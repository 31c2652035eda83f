package search

import (
	"bytes"
	"strings"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// occurrence is one place of a term in a file.
type occurrence struct {
	at   int // byte
	term int
}

// scanner finds a query's terms in texts. Each goroutine has its own.
type scanner struct {
	q     *Query
	class [256]uint8 // of a byte
	first [256]bool  // a word that begins with it may be one
	cjk   map[[2]rune]int
	alone map[rune]int   // CJK terms of one character
	known map[string]int // folded words that were looked up: term + 1, 0 for none
	buf   []byte
	found []occurrence
	quick quick
}

const (
	noWord = iota
	ascii
	high // part of a character beyond ASCII
)

func newScanner(q *Query) *scanner {
	s := &scanner{q: q, quick: newQuick(q), known: map[string]int{}, cjk: map[[2]rune]int{}, alone: map[rune]int{}}
	for c := range 256 {
		switch {
		case c >= utf8.RuneSelf:
			s.class[c] = high
		case c >= '0' && c <= '9', c >= 'a' && c <= 'z', c >= 'A' && c <= 'Z', c == '_':
			s.class[c] = ascii
		}
	}
	for i, t := range q.terms {
		switch len(t.cjk) {
		case 0:
			if t.near == "" {
				continue // a word beyond ASCII: looked at as a whole
			}
			for _, c := range []byte{t.near[0], bytes.ToUpper([]byte{t.near[0]})[0]} {
				s.first[c] = true
			}
		case 1:
			s.alone[t.cjk[0]] = i
		default:
			s.cjk[[2]rune{t.cjk[0], t.cjk[1]}] = i
		}
	}
	return s
}

// scan lists where the query's terms stand in a text, in their order.
func (s *scanner) scan(b []byte) []occurrence {
	s.found = s.found[:0]
	if !s.quick.may(b) {
		return nil
	}
	if lines := unfolded(b); lines != nil {
		return s.folded(b, lines)
	}
	return s.look(b)
}

// unfolded gives a text whose characters are not as a query's are (accents
// apart from their letters, other widths) as one that is, line by line; nil
// where there is nothing to do.
func unfolded(b []byte) []byte {
	if norm.NFKC.IsNormal(b) {
		return nil
	}
	var out bytes.Buffer
	for line := range bytes.Lines(b) {
		end := len(line)
		if end > 0 && line[end-1] == '\n' {
			end--
		}
		out.WriteString(strings.ReplaceAll(foldString(string(line[:end])), "\n", " "))
		out.Write(line[end:])
	}
	return out.Bytes()
}

// folded looks through a folded text; what it finds is at the beginning of its
// line in the text itself.
func (s *scanner) folded(b, text []byte) []occurrence {
	s.look(text)
	at, from := 0, 0 // the lines' beginnings in both
	k := 0
	for k < len(s.found) {
		n := bytes.IndexByte(text[from:], '\n')
		end := len(text)
		if n >= 0 {
			end = from + n + 1
		}
		for k < len(s.found) && s.found[k].at < end {
			s.found[k].at = at
			k++
		}
		if n < 0 {
			break
		}
		from = end
		at += bytes.IndexByte(b[at:], '\n') + 1
	}
	return s.found
}

func (s *scanner) look(b []byte) []occurrence {
	s.found = s.found[:0]
	var before rune // the character before, if it is CJK and touches
	for i := 0; i < len(b); {
		switch s.class[b[i]] {
		case noWord:
			i++
			before = 0
			continue
		case high:
			r, n := utf8.DecodeRune(b[i:])
			if isCJK(r) {
				s.character(before, r, i)
				before = r
				i += n
				continue
			}
			before = 0
			if !unicode.IsLetter(r) && !unicode.IsDigit(r) {
				i += n
				continue
			}
			i = s.foreign(b, i, i)
			continue
		}
		before = 0
		j := i + 1
		for j < len(b) && s.class[b[j]] == ascii {
			j++
		}
		if j < len(b) && s.class[b[j]] == high {
			i = s.foreign(b, i, j)
			continue
		}
		if s.first[b[i]] {
			s.word(b[i:j], i)
		}
		i = j
	}
	return s.found
}

// foreign looks at a word with characters beyond ASCII; it begins at start and
// is known up to j. It returns where the word ends.
func (s *scanner) foreign(b []byte, start, j int) int {
	for j < len(b) {
		if s.class[b[j]] == ascii {
			j++
			continue
		}
		r, n := utf8.DecodeRune(b[j:])
		if s.class[b[j]] == noWord || isCJK(r) || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !unicode.Is(unicode.M, r) {
			break
		}
		j += n
	}
	if j == start {
		return start + 1
	}
	word := string(b[start:j])
	if isASCII(word) {
		if s.first[word[0]] {
			s.word(b[start:j], start)
		}
		return j
	}
	i, known := s.known[word]
	if !known {
		i = s.lookup(foldString(word))
		s.known[word] = i
	}
	if i > 0 {
		s.found = append(s.found, occurrence{start, i - 1})
	}
	return j
}

// maxWord bounds what is taken for a word, in bytes: longer ones are data.
const maxWord = 1024

func (s *scanner) word(w []byte, at int) {
	if len(w) > maxWord {
		return
	}
	s.buf = s.buf[:0]
	for _, c := range w {
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		s.buf = append(s.buf, c)
	}
	near := false
	for i := range s.q.terms {
		if t := &s.q.terms[i]; t.cjk == nil && len(s.buf) >= len(t.near) && string(s.buf[:len(t.near)]) == t.near {
			near = true
			break
		}
	}
	if !near {
		return
	}
	i, known := s.known[string(s.buf)]
	if !known {
		i = s.lookup(string(s.buf))
		s.known[string(s.buf)] = i
	}
	if i > 0 {
		s.found = append(s.found, occurrence{at, i - 1})
	}
}

// lookup finds the term that a folded word is, plus one; 0 for none.
func (s *scanner) lookup(word string) int {
	st := stem(word)
	for i, t := range s.q.terms {
		if t.cjk == nil && (t.stem == st && !t.prefix || t.prefix && len(word) >= len(t.stem) && word[:len(t.stem)] == t.stem) {
			return i + 1
		}
	}
	return 0
}

func (s *scanner) character(before, r rune, at int) {
	if i, ok := s.alone[r]; ok {
		s.found = append(s.found, occurrence{at, i})
	}
	if before != 0 {
		if i, ok := s.cjk[[2]rune{before, r}]; ok {
			s.found = append(s.found, occurrence{at - utf8.RuneLen(before), i})
		}
	}
}

package health

import (
	"bytes"
	"cmp"
	"fmt"
	"hash/maphash"
	"slices"
	"unicode"
	"unicode/utf8"
)

// fact is a list item or paragraph by the hash of its folded text.
type fact struct {
	hash uint64
	ref  int32 // index of its file in refs
	line int32
}

var seed = maphash.MakeSeed()

func hash(s string) uint64 { return maphash.String(seed, s) }

// minWords is how many words make a fact; fewer say too little to be the same.
const minWords = 6

// facts collects the facts of a HOT or WARM file.
func (f *file) facts() {
	if !f.p.on["warm.duplicates"] {
		return
	}
	ref := int32(-1)
	var buf []byte
	start, at, line := 0, 0, 0
	flush := func() {
		words, folded := fold(buf[:0:cap(buf)], f.body[start:at])
		buf = folded
		if words >= minWords {
			if ref < 0 {
				f.w.refs = append(f.w.refs, f.path)
				ref = int32(len(f.w.refs) - 1)
			}
			f.w.facts = append(f.w.facts, fact{maphash.Bytes(seed, folded), ref, int32(line)})
		}
	}
	in, fence := false, false
	for n := 1; at < len(f.body); n++ {
		end := len(f.body)
		if i := bytes.IndexByte(f.body[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		t := bytes.TrimLeft(f.body[at:end], " \t")
		kind := lineKind(t)
		if kind == fenceLine {
			fence = !fence
		}
		switch {
		case fence || kind == fenceLine || kind == blankLine || kind == otherLine:
			if in {
				flush()
			}
			in = false
		case kind == itemLine || !in:
			if in {
				flush()
			}
			in, start, line = true, at, n
		}
		at = end
	}
	if in {
		flush()
	}
}

type kindOfLine int

const (
	textLine kindOfLine = iota
	blankLine
	itemLine
	fenceLine
	otherLine // headings, tags, tables, comments, fields
)

func lineKind(t []byte) kindOfLine {
	if len(t) == 0 {
		return blankLine
	}
	switch c := t[0]; {
	case c == '\n' || c == '\r':
		return blankLine
	case c == '#' || c == '|' || c == '<' || c == '>':
		return otherLine
	case (c == '`' || c == '~') && len(t) > 2 && t[1] == c && t[2] == c:
		return fenceLine
	case (c == '-' || c == '*' || c == '+') && len(t) > 1 && (t[1] == ' ' || t[1] == '\t'):
		return itemLine
	case c >= '0' && c <= '9':
		i := 1
		for i < len(t) && t[i] >= '0' && t[i] <= '9' {
			i++
		}
		if i < len(t)-1 && (t[i] == '.' || t[i] == ')') && t[i+1] == ' ' {
			return itemLine
		}
	}
	if bytes.HasPrefix(t, []byte("last_verified:")) || bytes.HasPrefix(t, []byte("---")) {
		return otherLine
	}
	return textLine
}

// fold appends a text's folded form: lower case, one blank between words, no
// list mark, no punctuation at the ends. It counts words; each character of a
// script without blanks is one.
func fold(out, text []byte) (words int, folded []byte) {
	text = bytes.TrimLeft(text, " \t-*+0123456789.)")
	blank := true
	for i := 0; i < len(text); {
		c := text[i]
		if c < utf8.RuneSelf {
			i++
			switch {
			case c == ' ' || c == '\t' || c == '\n' || c == '\r':
				if !blank {
					out = append(out, ' ')
				}
				blank = true
				continue
			case c >= 'A' && c <= 'Z':
				c |= 0x20
			}
			if blank {
				words++
			}
			blank = false
			out = append(out, c)
			continue
		}
		r, n := utf8.DecodeRune(text[i:])
		i += n
		if unicode.IsSpace(r) {
			if !blank {
				out = append(out, ' ')
			}
			blank = true
			continue
		}
		if blank || r >= 0x2e80 && unicode.IsLetter(r) {
			words++
		}
		blank = false
		out = utf8.AppendRune(out, unicode.ToLower(r))
	}
	return words, bytes.TrimFunc(out, func(r rune) bool { return unicode.IsPunct(r) || r == ' ' || r == '`' })
}

// pairs calls f for each fact that stands in a second file.
func pairs(facts []fact, refs []string, f func(first, again fact)) {
	slices.SortFunc(facts, func(a, b fact) int {
		if a.hash != b.hash {
			return cmp.Compare(a.hash, b.hash)
		}
		return cmp.Or(cmp.Compare(refs[a.ref], refs[b.ref]), cmp.Compare(a.line, b.line))
	})
	for i := 0; i < len(facts); {
		j := i + 1
		for j < len(facts) && facts[j].hash == facts[i].hash {
			if facts[j].ref != facts[j-1].ref && facts[j].ref != facts[i].ref {
				f(facts[i], facts[j])
			}
			j++
		}
		i = j
	}
}

func (p *pass) duplicateFacts(all *found) {
	p.pairs(all, "warm.duplicates", all.facts, "this fact also stands in")
}

func (p *pass) duplicateLessons(all *found) {
	p.pairs(all, "scratch.duplicates", all.lessons, "this lesson also stands in")
}

func (p *pass) pairs(all *found, check string, facts []fact, says string) {
	c, _ := Find(check)
	pairs(facts, all.refs, func(a, b fact) {
		first, again := all.refs[a.ref], all.refs[b.ref]
		p.add(all, Fail, Finding{
			Check: check, Tier: string(p.rules.TierOf(again)), Path: again, Line: int(b.line),
			Message: fmt.Sprintf("%s %s:%d", says, first, a.line), Fix: c.Mend,
		})
	})
}

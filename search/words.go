package search

import (
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"github.com/blevesearch/snowballstem"
	"github.com/blevesearch/snowballstem/english"
	"golang.org/x/text/unicode/norm"
)

// token is a folded word, or two characters of a script without spaces (one,
// where it stands alone).
type token struct {
	text string
	cjk  []rune
}

// eachToken folds a text into tokens: case and accents do not count.
func eachToken(s string, f func(token)) {
	var row []rune // CJK
	flush := func() {
		switch len(row) {
		case 0:
		case 1:
			f(token{string(row), row})
		default:
			for i := range len(row) - 1 {
				f(token{string(row[i : i+2]), row[i : i+2]})
			}
		}
		row = nil
	}
	var word strings.Builder
	end := func() {
		if word.Len() > 0 {
			f(token{text: word.String()})
			word.Reset()
		}
	}
	for _, r := range foldString(s) {
		switch {
		case isCJK(r):
			end()
			row = append(row, r)
		case wordRune(r):
			flush()
			word.WriteRune(r)
		default:
			flush()
			end()
		}
	}
	flush()
	end()
}

func wordRune(r rune) bool {
	return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' || unicode.Is(unicode.M, r)
}

// isCJK reports whether a character is of a script that is written without
// spaces between words.
func isCJK(r rune) bool {
	return r >= 0x0e00 && unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai) || r == 'ー' || r == 0x3099 || r == 0x309a
}

// foldString folds case, accents and width. Marks that make another letter, as
// those of Thai and of kana do, stay.
func foldString(s string) string {
	if isASCII(s) {
		return strings.ToLower(s)
	}
	var sb strings.Builder
	for _, r := range norm.NFKD.String(s) {
		switch {
		case r >= 0x300 && r < 0x370: // an accent
		case r == 'ß':
			sb.WriteString("ss")
		default:
			sb.WriteRune(unicode.ToLower(r))
		}
	}
	return norm.NFC.String(sb.String())
}

func isASCII(s string) bool {
	for i := range len(s) {
		if s[i] >= utf8.RuneSelf {
			return false
		}
	}
	return true
}

// stem is a word without its English ending. Words of other languages lose an
// ending that looks English, in the query as in the memory.
func stem(word string) string {
	if len(word) < 3 || word[0] >= '0' && word[0] <= '9' {
		return word
	}
	env := snowballstem.NewEnv(word)
	english.Stem(env)
	return env.Current()
}

// maxNear bounds how much of a stem is compared before a word is looked at.
const maxNear = 5

// near is what every word of a stem begins with: the stemmer changes letters
// at the end of a stem only, but for a few words that it knows by heart.
func near(word, stem string) string {
	switch stem {
	case "die", "lie", "tie", "sky", "idl", "gentl", "ugli", "earli", "onli", "singl":
		return stem[:1]
	}
	n := 0
	for n < len(word) && n < len(stem) && word[n] == stem[n] {
		n++
	}
	n = min(n, max(len(stem)-2, 1), maxNear)
	for n > 0 && n < len(stem) && !utf8.RuneStart(stem[n]) {
		n--
	}
	return stem[:n]
}

// stopWords are stems of words that say nothing about what is looked for.
var stopWords = sync.OnceValue(func() map[string]bool {
	m := map[string]bool{}
	for _, w := range strings.Fields(`a about after all also am an and any are as at be because been before being but by
		can could did do does doing during each for from had has have having he her here hers him his how i if in into is it its
		just me might mine more most my no nor not of off on once only or other our ours out over own s same she should so some
		such t than that the their theirs them then there these they this those through to too under until up us very was we were
		what when where which while who whom whose why will with would you your yours d ll m re ve
		der die das und oder ist ein eine el la los las de y un una le les des et est`) {
		m[stem(w)] = true
	}
	return m
})

package entry

import (
	"strings"
	"unicode"
)

// Words splits a text into folded words; text of scripts without spaces into
// pairs of characters.
func Words(s string) []string {
	var out []string
	var word []rune
	var before rune
	end := func() {
		if len(word) > 0 {
			out = append(out, string(word))
			word = nil
		}
	}
	for _, r := range s {
		switch {
		case unicode.In(r, unicode.Han, unicode.Hiragana, unicode.Katakana, unicode.Hangul, unicode.Thai):
			end()
			if before != 0 {
				out = append(out, string([]rune{before, r}))
			}
			before = r
			continue
		case unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r):
			word = append(word, unicode.ToLower(r))
		case r == '\'' || r == '’': // don't is one word
		default:
			end()
		}
		before = 0
	}
	end()
	return out
}

// Overlap is how much two lists of words have in common: 0 to 1.
func Overlap(a, b []string) float64 {
	in := map[string]int{}
	for _, w := range a {
		in[w] |= 1
	}
	for _, w := range b {
		in[w] |= 2
	}
	both := 0
	for _, n := range in {
		if n == 3 {
			both++
		}
	}
	if len(in) == 0 {
		return 0
	}
	return float64(both) / float64(len(in))
}

// Covered is how much of a list of words another holds: 0 to 1.
func Covered(words, by []string) float64 {
	in := map[string]bool{}
	for _, w := range by {
		in[w] = true
	}
	n := 0
	for _, w := range words {
		if in[w] {
			n++
		}
	}
	if len(words) == 0 {
		return 0
	}
	return float64(n) / float64(len(words))
}

// VisibleLines calls f for each line of a text that is not in a comment or a
// code fence, with its number.
func VisibleLines(b []byte, f func(n int, line string)) {
	fence, comment := "", false
	n := 0
	for l := range strings.Lines(string(b)) {
		n++
		line := strings.TrimRight(l, "\r\n")
		t := strings.TrimSpace(line)
		switch {
		case comment:
			comment = !strings.Contains(line, "-->")
		case fence != "":
			if strings.HasPrefix(t, fence) && strings.Trim(t, fence[:1]) == "" {
				fence = ""
			}
		case strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~"):
			fence = t[:3]
		case strings.HasPrefix(t, "<!--"):
			comment = !strings.Contains(line, "-->")
		default:
			f(n, line)
		}
	}
}

package guard

import (
	"bytes"
	"regexp"
	"strings"
	"sync"
	"unicode"
	"unicode/utf8"

	"golang.org/x/text/unicode/norm"
)

// Hidden returns the places where a text holds characters that a person does
// not see (Unicode TR 36 and TR 39): tag characters, direction controls,
// zero-width and other format characters, private use, controls. A byte order
// mark at the start, and joiners between letters of scripts and emoji that
// need them, are none.
func Hidden(text []byte) []Finding {
	if ascii(text) {
		return nil
	}
	var out []Finding
	prev := rune(0)
	for i := 0; i < len(text); {
		r, n := utf8.DecodeRune(text[i:])
		first := i == 0 && r == 0xfeff
		if rule := hidden(r, prev, text[i+n:]); rule != "" && !first {
			out = append(out, Finding{rule, lineOf(text, i), i, i + n})
		}
		prev, i = r, i+n
	}
	return out
}

func ascii(text []byte) bool {
	for _, c := range text {
		if c >= utf8.RuneSelf || c < ' ' && c != '\t' && c != '\n' && c != '\r' || c == 0x7f {
			return false
		}
	}
	return true
}

func hidden(r, prev rune, rest []byte) string {
	switch {
	case r < ' ' && r != '\t' && r != '\n' && r != '\r', r == 0x7f, r >= 0x80 && r < 0xa0:
		return "control-character"
	case r >= 0xe0000 && r <= 0xe007f:
		return "tag-character"
	case r >= 0x202a && r <= 0x202e, r >= 0x2066 && r <= 0x2069:
		return "bidi-control"
	case r == 0x200c || r == 0x200d: // joiners
		next, _ := utf8.DecodeRune(rest)
		if joins(prev) && joins(next) {
			return ""
		}
		return "invisible-character"
	case r == 0xad || r == 0x34f || r == 0x115f || r == 0x1160 || r == 0x3164 || r == 0xffa0:
		return "invisible-character"
	case r >= 0xe000 && r <= 0xf8ff, r >= 0xf0000:
		return "private-use"
	case r >= 0xfe00 && r <= 0xfe0f, r == 0xfffd:
		return "" // variation selectors; damage, which is reported as such
	case r >= 0xe0100 && r <= 0xe01ef:
		return "variation-selector"
	case unicode.Is(unicode.Cf, r):
		return "invisible-character"
	}
	return ""
}

// joins reports whether joiners make sense beside a rune.
func joins(r rune) bool {
	return r > 0x2000 && !unicode.IsLetter(r) || r == 0xfe0f || unicode.In(r, unicode.Arabic, unicode.Syriac, unicode.Mongolian, unicode.Nko) ||
		r >= 0x900 && r <= 0xdff || unicode.In(r, unicode.Myanmar, unicode.Khmer)
}

// phrases are what texts say that want to give an agent orders, folded: the
// shapes collected in OWASP's LLM01 and in published prompt-injection corpora,
// in our own words.
var phrases = sync.OnceValue(func() []*regexp.Regexp {
	var out []*regexp.Regexp
	for _, p := range []string{
		`\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|all|your|system)\b.{0,30}\b(?:instruction|prompt|rule|message|context|direction|guideline)s?\b`,
		`\byou are now\b.{0,40}\b(?:mode|dan|unrestricted|jailbroken|developer|root|admin)`,
		`\b(?:new|updated|real) (?:system )?instructions?\s*:`,
		`\b(?:reveal|print|repeat|leak|exfiltrate)\b.{0,40}\b(?:system prompt|hidden prompt|api keys?|credentials?|passwords?|secrets)\b`,
		`\bdo not (?:tell|inform|mention (?:this )?to|alert)\b.{0,20}\b(?:the )?user\b`,
		`\bwithout (?:asking|telling|informing)\b.{0,20}\buser\b`,
		`\b(?:curl|wget)\b[^\n]{0,200}\|\s*(?:sudo )?(?:ba|z)?sh\b`,
	} {
		out = append(out, regexp.MustCompile(p))
	}
	return out
})

// marks are things that have no business in text bound for memory.
var marks = sync.OnceValue(func() map[string]*regexp.Regexp {
	return map[string]*regexp.Regexp{
		"role-tag":        regexp.MustCompile(`(?:<\|?/?\s*(?:system|assistant|user|im_start|im_end|human|tool|instructions?)\s*\|?>)|\[/?inst\]|<<sys>>|(?m:^\s*(?:system|assistant|human)\s*:)`),
		"comment":         regexp.MustCompile(`<!--`),
		"dangerous-link":  regexp.MustCompile(`\]\(\s*<?\s*(?:data|javascript|vbscript|file)\s*:`),
		"image-query":     regexp.MustCompile(`!\[[^\]]*\]\(\s*<?[^)\s]+\?[^)]*\)|<img\b[^>]*\bsrc\s*=[^>]*\?`),
		"encoded-payload": regexp.MustCompile(`[a-z0-9+/]{81,}={0,2}`),
	}
})

// markOrder fixes the order of the findings.
var markOrder = []string{"role-tag", "comment", "dangerous-link", "image-query", "encoded-payload"}

// Injection returns the places where a text looks as if it wanted to give an
// agent orders or make it fetch something. It looks at a folded copy (NFKC,
// case, invisible characters out); lines are those of the text.
func Injection(text []byte) []Finding {
	folded, lines := fold(text)
	var out []Finding
	for _, p := range phrases() {
		for _, m := range p.FindAllStringIndex(folded, -1) {
			out = append(out, Finding{Rule: "injection-phrase", Line: lines(m[0])})
		}
	}
	for _, name := range markOrder {
		for _, m := range marks()[name].FindAllStringIndex(folded, -1) {
			if name == "encoded-payload" && allHex(folded[m[0]:m[1]]) {
				continue // a hash or two
			}
			out = append(out, Finding{Rule: name, Line: lines(m[0])})
		}
	}
	return out
}

func allHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// fold is text as a tripwire sees it. NFKC changes no line ends.
func fold(text []byte) (string, func(at int) int) {
	clean := bytes.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && r != '\r' && (hidden(r, 0, nil) != "" || unicode.Is(unicode.Mn, r) && r >= 0xfe00 && r <= 0xfe0f) {
			return -1
		}
		return r
	}, text)
	s := strings.ToLower(string(norm.NFKC.Bytes(clean)))
	return s, func(at int) int { return 1 + strings.Count(s[:at], "\n") }
}

func lineOf(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte("\n")) }

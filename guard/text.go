package guard

import (
	"bytes"
	"regexp"
	"slices"
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

// tripwire is a shape of text, with words of which one must stand there: a
// cheap look first.
type tripwire struct {
	name, pattern string
	near          []string
}

// tripwires are, first, what texts say that want to give an agent orders: the
// shapes collected in OWASP's LLM01 and in published prompt-injection corpora,
// in our own words; then things that have no business in text bound for memory.
var tripwires = []tripwire{
	{"injection-phrase", `\b(?:ignore|disregard|forget|override)\b.{0,30}\b(?:previous|prior|above|earlier|all|your|system)\b.{0,30}\b(?:instruction|prompt|rule|message|context|direction|guideline)s?\b`, []string{"ignore", "disregard", "forget", "override"}},
	{"injection-phrase", `\byou are now\b.{0,40}\b(?:mode|dan|unrestricted|jailbroken|developer|root|admin)`, []string{"you are now"}},
	{"injection-phrase", `\b(?:new|updated|real) (?:system )?instructions?\s*:`, []string{"instruction"}},
	{"injection-phrase", `\b(?:reveal|print|repeat|leak|exfiltrate)\b.{0,40}\b(?:system prompt|hidden prompt|api keys?|credentials?|passwords?|secrets)\b`, []string{"reveal", "print", "repeat", "leak", "exfiltrate"}},
	{"injection-phrase", `\bdo not (?:tell|inform|mention (?:this )?to|alert)\b.{0,20}\b(?:the )?user\b`, []string{"do not "}},
	{"injection-phrase", `\bwithout (?:asking|telling|informing)\b.{0,20}\buser\b`, []string{"without "}},
	{"injection-phrase", `\b(?:curl|wget)\b[^\n]{0,200}\|\s*(?:sudo )?(?:ba|z)?sh\b`, []string{"curl", "wget"}},
	{"role-tag", `(?:<\|?/?\s*(?:system|assistant|user|im_start|im_end|human|tool|instructions?)\s*\|?>)|\[/?inst\]|<<sys>>|(?m:^\s*(?:system|assistant|human)\s*:)`, []string{"<", "inst]", "system", "assistant", "human"}},
	{"comment", `<!--`, []string{"<!--"}},
	{"dangerous-link", `\]\(\s*<?\s*(?:data|javascript|vbscript|file)\s*:`, []string{"]("}},
	{"image-query", `!\[[^\]]*\]\(\s*<?[^)\s]+\?[^)]*\)|<img\b[^>]*\bsrc\s*=[^>]*\?`, []string{"![", "<img"}},
}

var wires = func() []func() *regexp.Regexp {
	out := make([]func() *regexp.Regexp, len(tripwires))
	for i, t := range tripwires {
		out[i] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(t.pattern) })
	}
	return out
}()

// Injection returns the places where a text looks as if it wanted to give an
// agent orders or make it fetch something. It looks at a folded copy (NFKC,
// case, invisible characters out); lines are those of the text.
func Injection(text []byte) []Finding {
	folded := fold(text)
	var out []Finding
	for i, t := range tripwires {
		if !slices.ContainsFunc(t.near, func(n string) bool { return strings.Contains(folded, n) }) {
			continue
		}
		for _, m := range wires[i]().FindAllStringIndex(folded, maxFindings) {
			out = append(out, Finding{Rule: t.name, Line: 1 + strings.Count(folded[:m[0]], "\n")})
		}
	}
	return append(out, payloads(folded)...)
}

// maxPayload is how long a word of base64 may be (spec: 80 characters).
const maxPayload = 80

// payloads finds long words of base64 that are no hashes.
func payloads(folded string) []Finding {
	var out []Finding
	for i := maxPayload; i < len(folded); i += maxPayload {
		if !base64Byte[folded[i]] {
			continue
		}
		from, to := i, i
		for from > 0 && base64Byte[folded[from-1]] {
			from--
		}
		for to < len(folded) && base64Byte[folded[to]] {
			to++
		}
		if to-from > maxPayload && !allHex(folded[from:to]) && len(out) < maxFindings {
			out = append(out, Finding{Rule: "encoded-payload", Line: 1 + strings.Count(folded[:from], "\n")})
		}
		i = max(i, to)
	}
	return out
}

var base64Byte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c == '+' || c == '/'
	}
	return t
}()

func allHex(s string) bool { return strings.Trim(s, "0123456789abcdef") == "" }

// fold is text as a tripwire sees it. NFKC changes no line ends.
func fold(text []byte) string {
	if ascii(text) {
		return string(bytes.ToLower(text))
	}
	clean := bytes.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && r != '\r' && (hidden(r, 0, nil) != "" || unicode.Is(unicode.Mn, r) && r >= 0xfe00 && r <= 0xfe0f) {
			return -1
		}
		return r
	}, text)
	return strings.ToLower(string(norm.NFKC.Bytes(clean)))
}

// Plain is a text without what nobody sees, in NFKC: credentials that were
// disguised stand plain in it. Text of ASCII is itself.
func Plain(text []byte) []byte {
	if ascii(text) {
		return text
	}
	return norm.NFKC.Bytes(bytes.Map(func(r rune) rune {
		if r != '\n' && r != '\t' && r != '\r' && hidden(r, 0, nil) != "" {
			return -1
		}
		return r
	}, text))
}

func lineOf(text []byte, at int) int { return 1 + bytes.Count(text[:at], []byte("\n")) }

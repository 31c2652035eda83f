package search

import (
	"bytes"
	"encoding/binary"
)

// quick tells of most texts at once that none of a query's words can be in
// them. It looks for the rarest letter of what each word begins with.
type quick struct {
	needles []needle
}

type needle struct {
	near         string
	at           int // where in near the rarest letter is
	lower, upper byte
}

// rarity orders letters by how seldom they are in English text.
const rarity = "jqxz_vkwygbpfmucdlhrsniaote"

func newQuick(q *Query) quick {
	var k quick
	for _, t := range q.terms {
		if t.cjk != nil {
			continue // its characters call for a closer look by themselves
		}
		n := needle{near: t.near}
		best := -1
		for i := range len(t.near) {
			c := t.near[i]
			if c >= 0x80 {
				best = -1
				break
			}
			r := bytes.IndexByte([]byte(rarity), c) // digits: -1, seldom enough
			if best < 0 || r < best {
				best, n.at = max(r, 0), i
			}
		}
		if best < 0 {
			continue // of another script, likewise
		}
		n.lower = t.near[n.at]
		n.upper = bytes.ToUpper([]byte{n.lower})[0]
		k.needles = append(k.needles, n)
	}
	return k
}

// may reports whether a text may hold a word of the query.
func (k *quick) may(b []byte) bool {
	if closer(b) {
		return true
	}
	for i := range k.needles {
		if k.needles[i].in(b) {
			return true
		}
	}
	return false
}

// closer reports whether a text has characters that only a closer look can
// tell: letters with accents, other scripts, other widths. Punctuation beyond
// ASCII, arrows, lines and pictures are none.
func closer(b []byte) bool {
	const highBits = 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:])&highBits != 0 && closerAny(b[i:min(i+9, len(b))], 8) {
			return true
		}
	}
	return closerAny(b[i:], len(b)-i)
}

func closerAny(b []byte, n int) bool {
	for i, c := range b[:n] {
		if c < 0xc0 {
			continue
		}
		var next byte
		if i+1 < len(b) {
			next = b[i+1]
		}
		switch c {
		case 0xc2: // ª ² ³ µ ¹ º ¼ ½ ¾
			if next == 0xaa || next == 0xb2 || next == 0xb3 || next == 0xb5 || next >= 0xb9 && next <= 0xbe {
				return true
			}
		case 0xe2: // all but punctuation, arrows, signs and boxes
			if next != 0x80 && (next < 0x86 || next > 0x8f) && (next < 0x94 || next > 0xaf) {
				return true
			}
		case 0xf0: // all but pictures
			if next != 0x9f {
				return true
			}
		default:
			return true
		}
	}
	return false
}

// in reports whether a word of a text begins with the needle.
func (n *needle) in(b []byte) bool {
	for _, c := range [2]byte{n.lower, n.upper} {
		for from := 0; from < len(b); {
			i := bytes.IndexByte(b[from:], c)
			if i < 0 {
				break
			}
			i += from
			from = i + 1
			start := i - n.at
			if start < 0 || start+len(n.near) > len(b) || start > 0 && isWord(b[start-1]) || !sameFold(b[start:start+len(n.near)], n.near) {
				continue
			}
			return true
		}
		if n.upper == n.lower {
			break
		}
	}
	return false
}

func isWord(c byte) bool {
	return c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_'
}

// sameFold reports whether b is near, whatever the case of its letters.
func sameFold(b []byte, near string) bool {
	for i := range len(near) {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c += 'a' - 'A'
		}
		if c != near[i] {
			return false
		}
	}
	return true
}

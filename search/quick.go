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
// tell: letters with accents, other scripts, full width. Punctuation beyond
// ASCII, arrows and pictures are none.
func closer(b []byte) bool {
	const highBits = 0x8080808080808080
	i := 0
	for ; i+8 <= len(b); i += 8 {
		if binary.LittleEndian.Uint64(b[i:])&highBits == 0 {
			continue
		}
		for _, c := range b[i : i+8] {
			if c >= 0xc0 && c != 0xc2 && c != 0xe2 && c < 0xf0 {
				return true
			}
		}
	}
	for _, c := range b[i:] {
		if c >= 0xc0 && c != 0xc2 && c != 0xe2 && c < 0xf0 {
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

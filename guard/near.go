package guard

import (
	"bytes"
	"encoding/binary"
)

// tokenRun is the least length of a credential that is known by its prefix.
const tokenRun = 20

// window is how far apart one may look at eight bytes and still see eight of
// every run of tokenRun.
const window = tokenRun - 8 + 1

// hasBlank reports whether one of eight bytes is a blank, a line end or another
// control (Bit Twiddling Hacks, "Determine if a word has a byte less than n").
func hasBlank(x uint64) bool {
	return (x-0x2121212121212121)&^x&0x8080808080808080 != 0
}

// suspicious is a quick look that finds nothing in nearly every note: without
// a long word that holds a known prefix, an assignment to a telling name, a
// private key's head or a URL with a password there is no credential.
func suspicious(text []byte) bool {
	for i := 0; i+8 <= len(text); i += window {
		if hasBlank(binary.LittleEndian.Uint64(text[i:])) || !tokenByte[text[i+3]] {
			continue
		}
		from, to := i+3, i+4
		for from > 0 && tokenByte[text[from-1]] {
			from--
		}
		for to < len(text) && tokenByte[text[to]] {
			to++
		}
		if to-from >= tokenRun && (prefixed(text[from:to]) || bytes.HasSuffix(bytes.TrimSpace(text[max(0, from-40):from]), []byte("earer"))) {
			return true
		}
		i += max(0, to-8-i) / window * window
	}
	for _, sep := range []byte{':', '=', '|'} {
		for at := 0; ; at++ {
			i := bytes.IndexByte(text[at:], sep)
			if i < 0 {
				break
			}
			at += i
			if assigned(text, at) {
				return true
			}
		}
	}
	return bytes.Contains(text, []byte("PRIVATE KEY"))
}

var tokenByte = func() (t [256]bool) {
	for c := range t {
		t[c] = c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c == '_' || c == '-' || c == '.' || c == '/' || c == '+' || c == '~'
	}
	return t
}()

// prefixes are what the rules for tokens look for, by their first byte.
var prefixes = func() (t [256][]string) {
	for _, r := range rules[:len(rules)-1] {
		for _, n := range r.near {
			if n != "://" && n != "PRIVATE KEY" && n != "earer " {
				t[n[0]] = append(t[n[0]], n)
			}
		}
	}
	return t
}()

func prefixed(run []byte) bool {
	for i, c := range run {
		for _, p := range prefixes[c] {
			if len(run)-i >= len(p) && string(run[i:i+len(p)]) == p {
				return true
			}
		}
	}
	return false
}

// telling are the names that assigned secrets have, by their first byte.
var telling = func() (t [256][]string) {
	for _, n := range rules[len(rules)-1].near {
		t[n[0]] = append(t[n[0]], n)
	}
	return t
}()

// endOfName are the last letters of telling names, in both cases.
var endOfName = func() (t [256]bool) {
	for _, n := range []string{"password", "passwd", "secret", "token", "key"} {
		c := n[len(n)-1]
		t[c], t[c-0x20] = true, true
	}
	return t
}()

func tells(word []byte) bool {
	for i, c := range word {
		for _, n := range telling[c|0x20] {
			if len(word)-i >= len(n) && sameFold(word[i:i+len(n)], n) {
				return true
			}
		}
	}
	return false
}

func sameFold(b []byte, lower string) bool {
	for i := range len(lower) {
		c := b[i]
		if c >= 'A' && c <= 'Z' {
			c |= 0x20
		}
		if c != lower[i] {
			return false
		}
	}
	return true
}

// maxURL is how far a URL's user and password may reach, in bytes.
const maxURL = 310

// assigned reports whether the separator at i assigns to a telling name, or
// belongs to a URL that may hold a password.
func assigned(text []byte, i int) bool {
	if rest := text[i:]; len(rest) > 3 && rest[1] == '/' && rest[2] == '/' {
		rest = rest[:min(len(rest), maxURL)]
		end := bytes.IndexAny(rest, " \t\r\n")
		if end < 0 {
			end = len(rest)
		}
		return bytes.IndexByte(rest[:end], '@') > 0
	}
	to := i
	for to > 0 && (text[to-1] == ' ' || text[to-1] == '\t' || text[to-1] == '\n' || text[to-1] == '\r' || text[to-1] == '\f' || text[to-1] == '"' || text[to-1] == '\'' || text[to-1] == '*' || text[to-1] == '`') {
		to--
	}
	// The telling name ends where the separator begins.
	if to < 5 || !endOfName[text[to-1]] {
		return false
	}
	from := to
	for from > 0 && to-from < 40 && (tokenByte[text[from-1]]) {
		from--
	}
	if to-from < 4 {
		return false
	}
	return tells(text[from:to])
}

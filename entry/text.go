// Package entry reads memory files and gives back the same bytes: working
// buffer, daily note, closure block.
//
// [ParseBuffer] and [FindClosure] say where things stand in a file;
// [Place] computes a file's next content from what it holds now. Nothing is
// normalised: line ends, a byte order mark and damaged bytes stay as they are.
package entry

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"unicode/utf8"
)

// MaxNote is the largest daily note or working buffer, in bytes (spec: limits).
const MaxNote = 4 << 20

// ErrEncoding marks text that is not UTF-8 throughout its length, such as
// UTF-16; single damaged bytes are no such error.
var ErrEncoding = errors.New("is UTF-16, not UTF-8")

// ErrLimit marks text over a limit.
var ErrLimit = errors.New("is over the limit")

var bom = []byte("\xef\xbb\xbf")

// CheckText refuses what must never be appended to: UTF-16, and more than
// limit bytes.
func CheckText(b []byte, limit int) error {
	if IsUTF16(b) {
		return ErrEncoding
	}
	if len(b) > limit {
		return fmt.Errorf("%w: %d bytes, at most %d", ErrLimit, len(b), limit)
	}
	return nil
}

// IsUTF16 recognises UTF-16 by its byte order mark, or without one by NUL
// bytes on one side of nearly every pair.
func IsUTF16(b []byte) bool {
	if len(b) >= 2 && (b[0] == 0xff && b[1] == 0xfe || b[0] == 0xfe && b[1] == 0xff) {
		return true
	}
	n := min(len(b), 4096) &^ 1
	if n < 8 {
		return false
	}
	even, odd := 0, 0
	for i := 0; i < n; i += 2 {
		if b[i] == 0 {
			even++
		}
		if b[i+1] == 0 {
			odd++
		}
	}
	most := n / 2 * 7 / 10
	return (even >= most) != (odd >= most)
}

// InvalidAt returns the offset of the first byte that is not UTF-8, or -1.
func InvalidAt(b []byte) int {
	for i := 0; i < len(b); {
		if b[i] < utf8.RuneSelf {
			i++
			continue
		}
		r, n := utf8.DecodeRune(b[i:])
		if r == utf8.RuneError && n == 1 {
			return i
		}
		i += n
	}
	return -1
}

// CountLines counts lines; a last one without a newline counts.
func CountLines(b []byte) int {
	n := bytes.Count(b, []byte("\n"))
	if len(b) > 0 && b[len(b)-1] != '\n' {
		n++
	}
	return n
}

// EOL is the line end a text uses: "\r\n" if its first line ends so, else "\n".
func EOL(b []byte) string {
	if i := bytes.IndexByte(b, '\n'); i > 0 && b[i-1] == '\r' {
		return "\r\n"
	}
	return "\n"
}

// A line of a file: its text without the line end, and where it stands.
type line struct {
	text       string
	start, end int // end is past the line end
}

func lines(b []byte) []line {
	out := make([]line, 0, bytes.Count(b, []byte("\n"))+1)
	for start := 0; start < len(b); {
		end := len(b)
		if i := bytes.IndexByte(b[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		text := strings.TrimSuffix(strings.TrimSuffix(string(b[start:end]), "\n"), "\r")
		out = append(out, line{text, start, end})
		start = end
	}
	return out
}

func blank(s string) bool { return strings.TrimSpace(s) == "" }

// heading splits an ATX heading into its level and title; level 0: none.
func heading(s string) (level int, title string) {
	t := strings.TrimLeft(s, " ")
	if len(s)-len(t) > 3 {
		return 0, ""
	}
	for level < len(t) && t[level] == '#' {
		level++
	}
	if level == 0 || level > 6 || level < len(t) && t[level] != ' ' && t[level] != '\t' {
		return 0, ""
	}
	return level, strings.TrimSpace(t[level:])
}

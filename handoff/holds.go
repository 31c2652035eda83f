package handoff

import (
	"bytes"
)

// Holds reports whether a document holds a block: whole lines, set off by
// blank lines or the file's ends. How the lines end does not count.
func Holds(doc, block []byte) bool {
	doc, block = unixLines(bytes.TrimPrefix(doc, []byte("\xef\xbb\xbf"))), unixLines(bytes.TrimRight(block, " \t\r\n"))
	if len(block) == 0 {
		return false
	}
	for from := 0; ; {
		i := bytes.Index(doc[from:], block)
		if i < 0 {
			return false
		}
		i += from
		before, after := doc[:i], doc[i+len(block):]
		if !inert(before) && (i == 0 || before[i-1] == '\n' && blankLine(lastLine(before[:i-1])) || i == 1) && blankEnd(after) {
			return true
		}
		from = i + 1
	}
}

// inert reports whether a place, by what stands before it, is inside a code
// fence or a comment: what stands there is not said.
func inert(before []byte) bool {
	var inside fence
	for l := range bytes.Lines(before) {
		inside.next(string(bytes.TrimRight(l, "\r\n")))
	}
	return inside != "" || bytes.LastIndex(before, []byte("<!--")) > bytes.LastIndex(before, []byte("-->"))
}

func lastLine(b []byte) []byte { return b[bytes.LastIndexByte(b, '\n')+1:] }

func blankLine(b []byte) bool { return len(bytes.TrimSpace(b)) == 0 }

// blankEnd reports whether a text begins with the end of its line and then a
// blank line, or its own end.
func blankEnd(b []byte) bool {
	line, rest, ok := bytes.Cut(b, []byte("\n"))
	if !blankLine(line) {
		return false
	}
	if !ok || len(rest) == 0 {
		return true
	}
	next, _, _ := bytes.Cut(rest, []byte("\n"))
	return blankLine(next)
}

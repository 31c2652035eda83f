package search

import (
	"bytes"
	"strings"
)

// part is one entry of a file: a list item, a paragraph, a heading, a block of
// code.
type part struct {
	start, end int
	line       int // of start
	heading    int // index of the heading it stands below, -1 for none
	title      bool
}

// heading is one heading of a file.
type heading struct {
	level int
	text  string
	above int // index of the heading above it, -1 for none
}

// split takes a file apart, into the given slices.
func split(b []byte, parts []part, heads []heading) ([]part, []heading) {
	open, under, fence := false, -1, ""
	line := 0
	for at := 0; at < len(b); {
		end := len(b)
		if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		line++
		text := bytes.TrimRight(b[at:end], " \t\r\n")
		bare := bytes.TrimLeft(text, " \t")
		mark := fenceOf(bare)
		switch {
		case fence != "":
			parts[len(parts)-1].end = end
			if mark != "" && mark[0] == fence[0] && len(mark) >= len(fence) && len(bare) == len(mark) {
				fence, open = "", false
			}
		case mark != "":
			if !open {
				parts = append(parts, part{at, end, line, under, false})
			}
			parts[len(parts)-1].end = end
			fence, open = mark, true
		case len(bare) == 0:
			open = false
		case headingLevel(text) > 0:
			n := headingLevel(text)
			for under >= 0 && heads[under].level >= n {
				under = heads[under].above
			}
			heads = append(heads, heading{n, strings.Trim(string(text[n:]), " \t#"), under})
			under = len(heads) - 1
			parts = append(parts, part{at, end, line, heads[under].above, true})
			open = false
		case isItem(bare) || !open:
			parts = append(parts, part{at, end, line, under, false})
			open = true
		default:
			parts[len(parts)-1].end = end
		}
		at = end
	}
	return parts, heads
}

func headingLevel(l []byte) int {
	n := 0
	for n < len(l) && l[n] == '#' {
		n++
	}
	if n == 0 || n > 6 || n < len(l) && l[n] != ' ' && l[n] != '\t' {
		return 0
	}
	return n
}

func fenceOf(l []byte) string {
	n := 0
	for n < len(l) && (l[n] == '`' || l[n] == '~') && l[n] == l[0] {
		n++
	}
	if n < 3 {
		return ""
	}
	return string(l[:n])
}

func isItem(l []byte) bool {
	if len(l) > 1 && (l[0] == '-' || l[0] == '*' || l[0] == '+') && (l[1] == ' ' || l[1] == '\t') {
		return true
	}
	n := 0
	for n < len(l) && n < 9 && l[n] >= '0' && l[n] <= '9' {
		n++
	}
	return n > 0 && n+1 < len(l) && (l[n] == '.' || l[n] == ')') && l[n+1] == ' '
}

// path is a heading with those above it, from the top.
func path(heads []heading, i int) string {
	var row []string
	for ; i >= 0; i = heads[i].above {
		row = append([]string{heads[i].text}, row...)
	}
	return strings.Join(row, " > ")
}

package entry

import (
	"bytes"
	"fmt"
	"strings"
	"time"
)

// Header is what stands at the head of a WARM or HOT file: tags on line 2, and
// when somebody last made sure that it is true.
type Header struct {
	Tagged       bool // line 2 is a tags line
	Tags         []string
	Verified     string // as written
	VerifiedLine int    // 0: none
	start, end   int    // the value's place
}

// headerLines bounds how far a header reaches, in lines.
const headerLines = 20

const (
	tagsKey     = "#tags:"
	verifiedKey = "last_verified:"
)

// ParseHeader reads a file's header: its first lines, up to a heading of level
// 2 or deeper. last_verified may stand plain, in a quote or in frontmatter.
func ParseHeader(b []byte) Header {
	var h Header
	for n, at := 1, 0; n <= headerLines && at < len(b); n++ {
		end := len(b)
		if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
			end = at + i
		}
		line := bytes.TrimSuffix(b[at:end], []byte("\r"))
		if n == 2 && bytes.HasPrefix(line, []byte(tagsKey)) {
			h.Tagged = true
			h.Tags = splitTags(string(line[len(tagsKey):]))
		} else if bytes.HasPrefix(line, []byte("##")) {
			break
		}
		rest := bytes.TrimLeft(line, "> \t")
		if h.VerifiedLine == 0 && bytes.HasPrefix(rest, []byte(verifiedKey)) {
			value := bytes.TrimLeft(rest[len(verifiedKey):], " \t")
			h.end = at + len(line)
			h.start = h.end - len(value)
			value = bytes.TrimRight(value, " \t")
			if i := bytes.IndexAny(value, " \t"); i == len(time.DateOnly) { // a remark behind it
				value = value[:i]
			}
			h.end = h.start + len(value)
			h.Verified, h.VerifiedLine = strings.Trim(string(value), `"'`), n
		}
		at = end + 1
	}
	return h
}

// splitTags splits at commas, bars and blanks; each tag may have a leading #.
func splitTags(s string) []string {
	var out []string
	for _, t := range strings.FieldsFunc(s, func(r rune) bool { return r == ',' || r == '|' || r == ' ' || r == '\t' }) {
		if t = strings.TrimPrefix(t, "#"); t != "" {
			out = append(out, t)
		}
	}
	return out
}

// VerifiedDay is the day of last_verified.
func (h Header) VerifiedDay(loc *time.Location) (string, error) {
	if _, err := time.Parse(time.DateOnly, h.Verified); err == nil {
		return h.Verified, nil
	}
	t, err := ParseTime(h.Verified, loc)
	if err != nil {
		return "", fmt.Errorf("%q is not a date", h.Verified)
	}
	return t.Format(time.DateOnly), nil
}

// setVerified stamps a day into the header: over the old one, else under the
// tags line, else under the first line.
func setVerified(old []byte, day string) []byte {
	h := ParseHeader(old)
	if h.VerifiedLine > 0 {
		return bytes.Join([][]byte{old[:h.start], []byte(day), old[h.end:]}, nil)
	}
	ls := lines(old)
	at := 0
	for i, l := range ls {
		if i == 0 || i == 1 && h.Tagged {
			at = l.end
		}
	}
	eol := EOL(old)
	line := verifiedKey + " " + day + eol
	if at > 0 && old[at-1] != '\n' {
		line = eol + line
	}
	return bytes.Join([][]byte{old[:at], []byte(line), old[at:]}, nil)
}

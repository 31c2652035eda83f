package entry

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"strings"
	"time"
	"unicode"
)

// Forms of lessons that are found in the field.
const (
	TypedForm  = "typed"  // a heading with an id: ## [LRN-20260401-001] correction
	DatedForm  = "dated"  // a heading with a date: ## 2026-02-08 — title
	BulletForm = "bullet" // one list item: - 2026-04-05: text
)

// Lesson is one entry of SCRATCH, as parsed. What stands between lessons
// (titles, introductions) belongs to none.
type Lesson struct {
	Start, End int // its bytes in the file
	Line       int // its first line, from 1
	Form       string
	ID         string // as written, of typed entries; not unique
	Day        string // YYYY-MM-DD, "" where it has none
	Title      string // the heading or list item without id and date
	Summary    string // the first paragraph of its Summary section, else Title
	Status     string // pending, in_progress, resolved, wont_fix, promoted, or as written
	Pattern    string // a pattern key that means something, or ""
	Task       string // the task it was written in, where it says so
	Pinned     bool   // kept in SCRATCH whatever its age
	Promoted   bool   // has its durable home already
}

// Text is the lesson's bytes.
func (l Lesson) Text(b []byte) []byte { return b[l.Start:l.End] }

// Key is the text that tells lessons apart: without blanks at its end.
func (l Lesson) Key(b []byte) []byte { return bytes.TrimRight(l.Text(b), " \t\r\n") }

// ArchivedMark begins the line that stands before each archived entry.
const ArchivedMark = "<!-- mem:archived"

// sectionNames are headings that belong to a lesson whatever their level.
var sectionNames = []string{"summary", "details", "suggested action", "suggested fix", "metadata", "resolution", "error", "context", "requested capability", "user context", "complexity estimate", "suggested implementation", "root cause", "fix"}

// ParseLessons finds the lessons of a file, in order. Headings in code fences
// and comments are none, and ids with placeholders are none.
func ParseLessons(b []byte) []Lesson {
	p := lessonParser{b: b}
	var fence []byte
	comment := false
	start := 0
	if bytes.HasPrefix(b, bom) {
		start = len(bom)
	}
	for n := 1; start < len(b); n++ {
		end := len(b)
		if i := bytes.IndexByte(b[start:], '\n'); i >= 0 {
			end = start + i + 1
		}
		line := bytes.TrimRight(b[start:end], "\r\n")
		switch {
		case comment:
			comment = !bytes.Contains(line, []byte("-->"))
		case fence != nil:
			if bytes.HasPrefix(bytes.TrimLeft(line, " "), fence) {
				fence = nil
			}
		case startsFence(line) != nil:
			fence = startsFence(line)
		case bytes.HasPrefix(line, []byte(ArchivedMark)):
			p.finish(start)
		case bytes.HasPrefix(bytes.TrimLeft(line, " \t"), []byte("<!--")):
			comment = !bytes.Contains(line, []byte("-->"))
			p.text(line)
		default:
			p.line(line, start, n)
		}
		p.blank = len(bytes.TrimSpace(line)) == 0
		start = end
	}
	p.finish(len(b))
	return p.out
}

func startsFence(line []byte) []byte {
	t := bytes.TrimLeft(line, " ")
	if len(line)-len(t) > 3 || len(t) < 3 || t[0] != '`' && t[0] != '~' {
		return nil
	}
	n := 0
	for n < len(t) && t[n] == t[0] {
		n++
	}
	if n < 3 || t[0] == '`' && bytes.IndexByte(t[n:], '`') >= 0 {
		return nil
	}
	return t[:n]
}

type lessonParser struct {
	b       []byte
	out     []Lesson
	cur     *Lesson
	level   int    // of the open headed entry
	section string // the open section of it
	bullet  bool   // the open entry is a list item
	blank   bool   // the line before was blank
}

func (p *lessonParser) finish(end int) {
	if p.cur == nil {
		return
	}
	p.cur.End = end
	p.complete()
	p.cur = nil
}

func (p *lessonParser) begin(l Lesson, level int) {
	p.finish(l.Start)
	p.out = append(p.out, l)
	p.cur = &p.out[len(p.out)-1]
	p.level, p.section, p.bullet = level, "", l.Form == BulletForm
}

func (p *lessonParser) line(line []byte, start, n int) {
	if len(line) == 0 {
		return
	}
	switch line[0] {
	case '#', ' ':
		if level, title := headingBytes(line); level > 0 {
			p.heading(level, title, start, n)
			return
		}
	case '-', '*', '+':
		if len(line) > 2 && (line[1] == ' ' || line[1] == '\t') && (p.cur == nil || p.bullet) && !rule(line) {
			p.begin(bulletLesson(line, start, n), 0)
			return
		}
	}
	if p.bullet && p.cur != nil && p.blank && line[0] != ' ' && line[0] != '\t' {
		p.finish(start) // a paragraph ends the list; right below, it is the item's own
		return
	}
	p.text(line)
}

// rule recognises a thematic break.
func rule(line []byte) bool {
	n := 0
	for _, c := range line {
		switch c {
		case line[0]:
			n++
		case ' ', '\t':
		default:
			return false
		}
	}
	return n >= 3
}

func headingBytes(line []byte) (int, []byte) {
	t := bytes.TrimLeft(line, " ")
	if len(line)-len(t) > 3 {
		return 0, nil
	}
	n := 0
	for n < len(t) && t[n] == '#' {
		n++
	}
	if n == 0 || n > 6 || n < len(t) && t[n] != ' ' && t[n] != '\t' {
		return 0, nil
	}
	return n, bytes.TrimSpace(t[n:])
}

func (p *lessonParser) heading(level int, title []byte, start, n int) {
	if l, ok := headedLesson(title); ok {
		l.Start, l.Line = start, n
		p.begin(l, level)
		return
	}
	if p.cur == nil {
		return
	}
	name := strings.ToLower(string(title))
	if p.bullet || level <= p.level && !known(name) {
		p.finish(start)
		return
	}
	p.section = name
}

func known(name string) bool {
	for _, s := range sectionNames {
		if s == name {
			return true
		}
	}
	return false
}

// headedLesson reads a heading that begins an entry.
func headedLesson(title []byte) (l Lesson, ok bool) {
	s := string(title)
	t := strings.TrimLeft(s, "[")
	if day, rest, ok := cutDay(t); ok {
		l.Form, l.Day = DatedForm, day
		rest = strings.TrimLeft(strings.TrimPrefix(rest, "]"), " \t")
		for _, sep := range []string{"—", "–", "-", "|", ":"} {
			if r, ok := strings.CutPrefix(rest, sep); ok {
				rest = strings.TrimSpace(r)
				break
			}
		}
		if p, ok := cutFold(rest, "pattern:"); ok {
			l.Pattern = meaningful(p)
		}
		l.Title = rest
		return l, true
	}
	id, rest := cutID(t)
	if id == "" {
		return l, false
	}
	l.Form, l.ID = TypedForm, id
	l.Day = idDay(id)
	rest = strings.TrimLeft(strings.TrimPrefix(rest, "]"), " \t:—–-")
	l.Title = strings.TrimSpace(rest)
	return l, true
}

// cutDay cuts a leading calendar date that ends there.
func cutDay(s string) (day, rest string, ok bool) {
	if len(s) < 10 || s[0] < '0' || s[0] > '9' {
		return "", s, false
	}
	if _, err := time.Parse(time.DateOnly, s[:10]); err != nil {
		return "", s, false
	}
	if len(s) > 10 && (isWord(s[10]) && s[10] != 'T') {
		return "", s, false
	}
	rest = s[10:]
	if strings.HasPrefix(rest, "T") || len(rest) > 5 && rest[0] == ' ' && rest[3] == ':' && allDigits(rest[1:3]) && allDigits(rest[4:6]) { // a time of day
		if i := strings.IndexAny(rest[1:], " ]"); i >= 0 {
			rest = rest[1+i:]
		} else {
			rest = ""
		}
	}
	return s[:10], rest, true
}

func isWord(c byte) bool {
	return c == '_' || c >= '0' && c <= '9' || c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z'
}

// cutID cuts a typed id: LRN-20260401-001, ERR-2026-03-07-001. Placeholders
// (YYYYMMDD, XXX) have no digits and are none.
func cutID(s string) (id, rest string) {
	n := 0
	for n < len(s) && (isWord(s[n]) || s[n] == '-') {
		n++
	}
	id = s[:n]
	kind, tail, ok := strings.Cut(id, "-")
	if !ok || len(kind) < 2 || len(kind) > 6 || strings.ToUpper(kind) != kind || strings.ContainsAny(kind, "0123456789_") {
		return "", s
	}
	digits := strings.ReplaceAll(tail, "-", "")
	if len(digits) < 9 || !allDigits(digits[:8]) || strings.Contains(tail, "XXX") || strings.HasSuffix(tail, "-") {
		return "", s
	}
	if tail[8] == '-' || len(tail) > 10 && tail[4] == '-' && tail[7] == '-' && tail[10] == '-' {
		return id, s[n:]
	}
	return "", s
}

func idDay(id string) string {
	_, tail, _ := strings.Cut(id, "-")
	d := strings.ReplaceAll(tail, "-", "")[:8]
	day := d[:4] + "-" + d[4:6] + "-" + d[6:8]
	if _, err := time.Parse(time.DateOnly, day); err != nil {
		return ""
	}
	return day
}

func allDigits(s string) bool {
	return s != "" && strings.Trim(s, "0123456789") == ""
}

func bulletLesson(line []byte, start, n int) Lesson {
	l := Lesson{Start: start, Line: n, Form: BulletForm}
	t := strings.TrimSpace(string(line[2:]))
	s := strings.TrimLeft(t, "[")
	if day, rest, ok := cutDay(s); ok {
		l.Day = day
		t = strings.TrimLeft(strings.TrimPrefix(rest, "]"), " \t:—–-|")
	} else if id, rest := cutID(s); id != "" {
		l.ID, l.Day = id, idDay(id)
		t = strings.TrimLeft(strings.TrimPrefix(rest, "]"), " \t:—–-|")
	}
	l.Title = withoutMark(t)
	return l
}

// withoutMark cuts what MarkPromoted wrote behind an entry's text.
func withoutMark(s string) string {
	if i := strings.Index(s, " #promoted:"); i >= 0 {
		return strings.TrimSpace(s[:i])
	}
	return s
}

func cutFold(s, prefix string) (string, bool) {
	if len(s) < len(prefix) || !strings.EqualFold(s[:len(prefix)], prefix) {
		return s, false
	}
	return strings.TrimSpace(s[len(prefix):]), true
}

// text reads a line inside an entry: a field, or the text of a section.
func (p *lessonParser) text(line []byte) {
	if p.cur == nil {
		return
	}
	t := bytes.TrimLeft(line, "- \t*+")
	if len(t) == 0 {
		return
	}
	if i := bytes.IndexByte(t, ':'); i > 0 && i < 24 && bytes.Contains(line, []byte("**")) || p.section == "metadata" && i > 0 {
		key := strings.ToLower(strings.TrimSpace(strings.Trim(string(t[:i]), "*")))
		value := strings.TrimSpace(strings.Trim(strings.TrimLeft(string(t[i+1:]), "* "), "`"))
		p.field(key, value)
		return
	}
	if p.section == "summary" && p.cur.Summary == "" {
		p.cur.Summary = strings.TrimSpace(string(line))
	}
}

func (p *lessonParser) field(key, value string) {
	switch strings.ReplaceAll(key, "_", "-") {
	case "status":
		p.cur.Status = status(value)
	case "pattern-key", "pattern":
		p.cur.Pattern = meaningful(value)
	case "task", "task-id", "session":
		p.cur.Task = value
	case "logged", "date":
		if day, _, ok := cutDay(value); ok && p.cur.Day == "" {
			p.cur.Day = day
		}
	case "promoted", "promoted-to":
		switch strings.ToLower(value) {
		case "", "-", "no", "none", "false", "not yet":
		default:
			p.cur.Promoted = true
		}
	case "summary":
		if p.cur.Summary == "" {
			p.cur.Summary = value
		}
	}
}

func status(v string) string {
	v = strings.ToLower(strings.TrimSpace(v))
	word, _, _ := strings.Cut(v, " ")
	word = strings.ReplaceAll(strings.TrimRight(word, ".,;"), "-", "_")
	switch word {
	case "pending", "in_progress", "resolved", "wont_fix", "promoted":
		return word
	case "done", "fixed", "closed":
		return "resolved"
	case "open", "new":
		return "pending"
	}
	if strings.HasPrefix(word, "promoted") {
		return "promoted"
	}
	return v
}

// meaningful is a pattern key that can recur; a key whose last part is all
// digits, such as a time stamp, names one occasion.
func meaningful(key string) string {
	key = strings.TrimSpace(key)
	tail := key[strings.LastIndexAny(key, ".:-_ ")+1:]
	if key == "" || len(tail) >= 6 && allDigits(tail) || allDigits(key) || strings.EqualFold(key, "none") || key == "-" {
		return ""
	}
	return key
}

// complete derives what needs the whole entry.
func (p *lessonParser) complete() {
	l := p.cur
	text := l.Text(p.b)
	if l.Summary == "" {
		l.Summary = l.Title
	}
	for rest := text; ; {
		i := bytes.Index(rest, []byte("#pinned"))
		if i < 0 {
			break
		}
		rest = rest[i+len("#pinned"):]
		if len(rest) == 0 || !isWord(rest[0]) && rest[0] != '-' {
			l.Pinned = true
			break
		}
	}
	if l.Status == "promoted" || bytes.Contains(text, []byte("#promoted:")) {
		l.Promoted = true
	}
}

// Fold is a lesson's or fact's text as compared: case, white space and
// punctuation at the ends do not count.
func Fold(s string) string {
	s = strings.Join(strings.Fields(strings.ToLower(s)), " ")
	return strings.TrimFunc(s, func(r rune) bool { return unicode.IsPunct(r) || unicode.IsSpace(r) || r == '`' })
}

// LessonKey is the short hash by which plans and people name an entry.
func LessonKey(key []byte) string {
	sum := sha256.Sum256(key)
	return hex.EncodeToString(sum[:8])
}

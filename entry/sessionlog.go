package entry

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"unicode"
)

// LogSections are the sections of a session's daily log, in their order, by
// the names that an extractor gives them (source: session memory, template 1).
var LogSections = []struct{ Key, Title string }{
	{"context", "Context"}, {"objective", "Objective"}, {"problems_encountered", "Problems encountered"}, {"knowledge_gained", "Knowledge gained"},
	{"work_produced", "Work produced"}, {"decisions_made", "Decisions made"}, {"to_follow_up", "To follow up"}, {"finalized", "Finalized"},
}

// LogArg is the argument of SessionLog.
type LogArg struct {
	Day string  `json:"day"`
	Ops []LogOp `json:"ops"`
}

// LogOp is what one exchange adds to a log.
type LogOp struct {
	Items map[string][]string `json:"items,omitempty"` // by a section's key
	// Done moves open items of To follow up to Finalized: those that Items
	// lists as finalized, else those with Words in them, else all.
	Done  bool   `json:"done,omitempty"`
	Words string `json:"words,omitempty"`
}

// LongArg is the argument of LongMemory.
type LongArg struct {
	Days []DayFacts `json:"days,omitempty"`
	Fold bool       `json:"fold,omitempty"` // then lines that stand twice are one
	Cuts []DayCut   `json:"cuts,omitempty"` // then these go, each as it stands
}

// DayCut is text of a dated section, whole lines; of none: Day is "".
type DayCut struct {
	Day  string `json:"day,omitempty"`
	Text string `json:"text"`
}

// Encode is the argument as a plan carries it.
func (a LongArg) Encode() ([]byte, error) { return json.Marshal(a) }

// DayFacts are durable facts of a day.
type DayFacts struct {
	Day   string   `json:"day"`
	Facts []string `json:"facts"`
}

// check marks what is finalized.
const check = "✅ "

// SameItem folds an item, so that two that say the same are equal: case, white
// space and punctuation do not count. Digits, signs and pictures do, and so do
// the marks in numbers: 1.5 is not 15, and -5 not 5.
func SameItem(s string) string {
	var sb strings.Builder
	rs := []rune(s)
	at := func(i int) rune {
		if i < 0 || i >= len(rs) {
			return 0
		}
		return rs[i]
	}
	var last rune
	apart := false // something was left out since last
	for i, r := range rs {
		keep := unicode.IsLetter(r) || unicode.IsDigit(r) || unicode.IsMark(r) || unicode.IsSymbol(r) || strings.ContainsRune("/\\%&#@*", r)
		if unicode.IsDigit(at(i+1)) && (strings.ContainsRune(".,:", r) && unicode.IsDigit(at(i-1)) || r == '-' && !unicode.IsLetter(at(i-1))) {
			keep = true
		}
		if !keep {
			apart = true
			continue
		}
		if apart && unicode.IsDigit(last) && unicode.IsDigit(r) {
			sb.WriteByte(' ')
		}
		sb.WriteRune(unicode.ToLower(r))
		last, apart = r, false
	}
	if sb.Len() == 0 { // punctuation only: it is all that it says
		return strings.TrimSpace(s)
	}
	return sb.String()
}

// OneItem makes one line of a text, as an item of a list: at most limit
// characters.
func OneItem(s string, limit int) string {
	s = strings.Join(strings.Fields(strings.ToValidUTF8(s, "\ufffd")), " ")
	for _, mark := range []string{"- ", "* ", "+ ", check} {
		s = strings.TrimPrefix(s, mark)
	}
	if r := []rune(s); len(r) > limit {
		s = string(r[:limit-1]) + "…"
	}
	return s
}

// logPart is one section of a log, by its lines.
type logPart struct {
	title string
	lines []string // the heading first; of what stands before all headings, none
	code  []bool   // of each line: it is in a code fence, or begins or ends one
}

// logFile is a log taken apart: what is in no known section stays as it is.
type logFile struct {
	parts []logPart
	eol   string
	open  string // the marks of a code fence that never ends
}

// parseLog takes a log apart. A code fence that never ends is ended: what is
// added behind it would not count.
func parseLog(b []byte) logFile {
	f := logFile{parts: []logPart{{}}, eol: EOL(b)}
	fence := ""
	for line := range strings.Lines(string(b)) {
		t := strings.TrimSpace(line)
		mark := t[:len(t)-len(strings.TrimLeft(t, "`"))]
		if mark == "" {
			mark = t[:len(t)-len(strings.TrimLeft(t, "~"))]
		}
		code := fence != ""
		switch {
		case fence == "" && len(mark) >= 3:
			fence, code = mark, true
		case fence != "" && len(mark) >= len(fence) && mark[0] == fence[0] && mark == t:
			fence = ""
		}
		if title, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "## "); ok && !code {
			f.parts = append(f.parts, logPart{title: strings.TrimSpace(title)})
		}
		p := &f.parts[len(f.parts)-1]
		p.lines, p.code = append(p.lines, line), append(p.code, code)
	}
	f.open = fence
	return f
}

// closeFence ends a code fence that never ends.
func (f *logFile) closeFence() {
	if f.open == "" {
		return
	}
	p := &f.parts[len(f.parts)-1]
	if last := &p.lines[len(p.lines)-1]; !strings.HasSuffix(*last, "\n") {
		*last += f.eol
	}
	p.lines, p.code = append(p.lines, f.open+f.eol), append(p.code, true)
	f.open = ""
}

func (f *logFile) text() []byte {
	var out bytes.Buffer
	for _, p := range f.parts {
		for _, l := range p.lines {
			out.WriteString(l)
		}
	}
	return out.Bytes()
}

func (f *logFile) find(title string) *logPart {
	for i := range f.parts {
		if strings.EqualFold(f.parts[i].title, title) {
			return &f.parts[i]
		}
	}
	return nil
}

// section gives a section, which is made in its place if it is not there.
func (f *logFile) section(n int) *logPart {
	title := LogSections[n].Title
	if p := f.find(title); p != nil {
		return p
	}
	at := len(f.parts)
	for _, later := range LogSections[n+1:] {
		if i := slices.IndexFunc(f.parts, func(p logPart) bool { return strings.EqualFold(p.title, later.Title) }); i >= 0 {
			at = min(at, i)
		}
	}
	before := &f.parts[at-1]
	if k := len(before.lines); k > 0 {
		if !strings.HasSuffix(before.lines[k-1], "\n") {
			before.lines[k-1] += f.eol
		}
		if strings.TrimSpace(before.lines[k-1]) != "" {
			before.put(k, f.eol)
		}
	}
	p := logPart{title: title}
	p.put(0, "## "+title+f.eol)
	if at < len(f.parts) {
		p.put(1, f.eol)
	}
	f.parts = slices.Insert(f.parts, at, p)
	return &f.parts[at]
}

// put puts a line in.
func (p *logPart) put(at int, line string) {
	p.lines, p.code = slices.Insert(p.lines, at, line), slices.Insert(p.code, at, false)
}

// begins reports whether a list item of the section itself begins at a line.
func (p *logPart) begins(i int) bool {
	return !p.code[i] && (strings.HasPrefix(p.lines[i], "- ") || strings.HasPrefix(p.lines[i], "* "))
}

// items lists a section's list items: the index of each one's first line.
func (p *logPart) items() []int {
	var out []int
	for i := range p.lines {
		if p.begins(i) {
			out = append(out, i)
		}
	}
	return out
}

// item is the text of the item that begins at a line, and where it ends, with
// all that belongs to it: what is indented, and code.
func (p *logPart) item(i int) (text string, end int) {
	end = i + 1
	for k := i + 1; k < len(p.lines); k++ {
		l := p.lines[k]
		blank := strings.TrimSpace(l) == ""
		if !blank && !p.code[k] && !strings.HasPrefix(l, "  ") && !strings.HasPrefix(l, "\t") {
			break
		}
		if !blank {
			end = k + 1
		}
	}
	return OneItem(strings.Join(p.lines[i:end], " "), 1<<20), end
}

// has reports whether an item says the same.
func (p *logPart) has(key string) bool {
	return slices.ContainsFunc(p.items(), func(i int) bool {
		text, _ := p.item(i)
		return SameItem(text) == key
	})
}

// add puts an item behind the others, unless one says the same.
func (p *logPart) add(item, mark, eol string) {
	if item == "" || p.has(SameItem(item)) {
		return
	}
	p.append([]string{"- " + mark + item + eol}, []bool{false}, eol)
}

// append puts lines behind what stands in the section.
func (p *logPart) append(lines []string, code []bool, eol string) {
	at := len(p.lines)
	for at > 1 && strings.TrimSpace(p.lines[at-1]) == "" {
		at--
	}
	if !strings.HasSuffix(p.lines[at-1], "\n") {
		p.lines[at-1] += eol
	}
	p.lines, p.code = slices.Insert(p.lines, at, lines...), slices.Insert(p.code, at, code...)
}

// sessionLog merges what exchanges have brought into a day's log. What stands
// there already is not added again; what somebody wrote there stays.
func sessionLog(old, arg []byte) ([]byte, error) {
	var a LogArg
	if err := json.Unmarshal(arg, &a); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(old)) == 0 {
		old = fmt.Appendf(old, "# Session log — %s\n", a.Day)
	}
	f := parseLog(old)
	f.closeFence()
	for _, op := range a.Ops {
		finalized := op.Items["finalized"]
		if op.Done {
			f.done(op)
		}
		for n, s := range LogSections {
			items, mark := op.Items[s.Key], ""
			if s.Key == "finalized" {
				items, mark = finalized, check
			}
			if len(items) == 0 {
				continue
			}
			p := f.section(n)
			for _, item := range items {
				p.add(item, mark, f.eol)
			}
		}
	}
	return f.text(), nil
}

// done moves the open items that an exchange has settled from To follow up to
// Finalized, with all that belongs to them: those that are listed as
// finalized, else those that hold the words, else all.
func (f *logFile) done(op LogOp) {
	p := f.find("To follow up")
	if p == nil {
		return
	}
	listed := map[string]bool{}
	for _, item := range op.Items["finalized"] {
		listed[SameItem(item)] = true
	}
	words := Words(op.Words)
	var lines []string
	var code []bool
	for _, i := range slices.Backward(p.items()) {
		text, end := p.item(i)
		if fits := listed[SameItem(text)]; !fits && (len(listed) > 0 || Covered(words, Words(text)) < 1 && len(words) > 0) {
			continue
		}
		moved := slices.Clone(p.lines[i:end])
		if k := len(moved) - 1; !strings.HasSuffix(moved[k], "\n") {
			moved[k] += f.eol
		}
		moved[0] = "- " + check + strings.TrimPrefix(strings.TrimPrefix(moved[0][2:], check), " ")
		lines, code = append(moved, lines...), append(slices.Clone(p.code[i:end]), code...)
		p.lines, p.code = slices.Delete(p.lines, i, end), slices.Delete(p.code, i, end)
	}
	if len(lines) > 0 {
		f.section(len(LogSections)-1).append(lines, code, f.eol)
	}
}

// longMemory adds durable facts under their day. One that stands anywhere in
// the file is not added again.
func longMemory(old, arg []byte) ([]byte, error) {
	var a LongArg
	if err := json.Unmarshal(arg, &a); err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(old)) == 0 {
		old = []byte("# Long-term memory\n")
	}
	f := parseLog(old)
	if len(a.Days) > 0 {
		f.closeFence()
	}
	known := map[string]bool{}
	for i := range f.parts {
		for _, k := range f.parts[i].items() {
			text, _ := f.parts[i].item(k)
			known[SameItem(text)] = true
		}
	}
	for _, d := range a.Days {
		for _, fact := range d.Facts {
			key := SameItem(fact)
			if key == "" || known[key] {
				continue
			}
			known[key] = true
			f.dated(d.Day).add(fact, "", f.eol)
		}
	}
	out := f.text()
	if a.Fold {
		out = FoldLines(out)
	}
	for _, c := range a.Cuts {
		i := c.in(out)
		if i < 0 {
			return nil, errors.New("a section that was to move has changed")
		}
		out = slices.Concat(out[:i], out[i+len(c.Text):])
	}
	return out, nil
}

// in finds the cut in a text: whole lines, in the section of its day.
func (c DayCut) in(b []byte) int {
	text := []byte(c.Text)
	if len(bytes.TrimSpace(text)) == 0 {
		return -1
	}
	from := 0
	if c.Day != "" {
		mark := []byte("## " + c.Day)
		for {
			i := bytes.Index(b[from:], mark)
			if i < 0 {
				return -1
			}
			if from += i; from == 0 || b[from-1] == '\n' {
				break
			}
			from++
		}
	}
	for {
		i := bytes.Index(b[from:], text)
		if i < 0 {
			return -1
		}
		i += from
		end := i + len(text)
		if (i == 0 || b[i-1] == '\n') && (end == len(b) || text[len(text)-1] == '\n') {
			return i
		}
		from = i + 1
	}
}

// FoldLines drops list items of one line that stand again further down, under
// the same heading of level 3 or none: the newest stays. Code is left alone,
// and so is what has more to it than its line.
func FoldLines(b []byte) []byte {
	f := parseLog(b)
	seen := map[string]bool{}
	for n := len(f.parts) - 1; n >= 0; n-- {
		p := &f.parts[n]
		below := make([]string, len(p.lines)) // the heading of level 3 above
		head := ""
		for i, l := range p.lines {
			if strings.HasPrefix(l, "### ") && !p.code[i] {
				head = strings.TrimSpace(l)
			}
			below[i] = head
		}
		for _, i := range slices.Backward(p.items()) {
			if _, end := p.item(i); end > i+1 {
				continue
			}
			key := below[i] + "\x00" + strings.TrimRight(p.lines[i], " \t\r\n")
			if seen[key] {
				p.lines, p.code = slices.Delete(p.lines, i, i+1), slices.Delete(p.code, i, i+1)
			}
			seen[key] = true
		}
	}
	return f.text()
}

// dated gives the section of a day, which is made at the end if it is not
// there.
func (f *logFile) dated(day string) *logPart {
	if p := f.find(day); p != nil {
		return p
	}
	last := &f.parts[len(f.parts)-1]
	if k := len(last.lines); k > 0 {
		if !strings.HasSuffix(last.lines[k-1], "\n") {
			last.lines[k-1] += f.eol
		}
		if strings.TrimSpace(last.lines[k-1]) != "" {
			last.put(k, f.eol)
		}
	}
	f.parts = append(f.parts, logPart{title: day})
	p := &f.parts[len(f.parts)-1]
	p.put(0, "## "+day+f.eol)
	return p
}

// LogItems lists the items of a log's sections, by their titles; keys says
// which, nil: all known.
func LogItems(b []byte, keys ...string) []string {
	f := parseLog(b)
	var out []string
	for _, s := range LogSections {
		if len(keys) > 0 && !slices.Contains(keys, s.Key) {
			continue
		}
		if p := f.find(s.Title); p != nil {
			for _, i := range p.items() {
				text, _ := p.item(i)
				out = append(out, text)
			}
		}
	}
	return out
}

// Items lists all list items of a text.
func Items(b []byte) []string {
	f := parseLog(b)
	var out []string
	for i := range f.parts {
		for _, k := range f.parts[i].items() {
			text, _ := f.parts[i].item(k)
			out = append(out, text)
		}
	}
	return out
}

// takeOut removes texts that each stand exactly once, as they are.
func takeOut(old, arg []byte) ([]byte, error) {
	var a TakeArg
	if err := json.Unmarshal(arg, &a); err != nil {
		return nil, err
	}
	out := old
	for _, c := range a.Cuts {
		if n := bytes.Count(out, []byte(c.Text)); n != 1 || c.Text == "" {
			return nil, fmt.Errorf("the text to move stands there %d times", n)
		}
		out = bytes.Replace(out, []byte(c.Text), []byte(c.By), 1)
	}
	return out, nil
}

// TakeArg is the argument of TakeOut.
type TakeArg struct {
	Cuts []Cut `json:"cuts"`
}

// Cut is a text that goes, and what stands in its place.
type Cut struct {
	Text string `json:"text"`
	By   string `json:"by"`
}

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
	Cuts []string   `json:"cuts,omitempty"` // then these go, each as it stands
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
// space and punctuation do not count, digits and operators do.
func SameItem(s string) string {
	key := strings.Map(func(r rune) rune {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			return unicode.ToLower(r)
		case strings.ContainsRune("+=<>/\\%&|^~$€#@", r):
			return r
		}
		return -1
	}, s)
	if key == "" { // signs only: they are all that it says
		return strings.TrimSpace(s)
	}
	return key
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
}

// logFile is a log taken apart: what is in no known section stays as it is.
type logFile struct {
	parts []logPart
	eol   string
	open  bool // a code fence never ends: what is added behind it would not count
}

func parseLog(b []byte) logFile {
	f := logFile{parts: []logPart{{}}, eol: EOL(b)}
	fence := ""
	for line := range strings.Lines(string(b)) {
		t := strings.TrimSpace(line)
		mark := t[:len(t)-len(strings.TrimLeft(t, "`"))]
		if mark == "" {
			mark = t[:len(t)-len(strings.TrimLeft(t, "~"))]
		}
		switch {
		case fence == "" && len(mark) >= 3:
			fence = mark
		case fence != "" && len(mark) >= len(fence) && mark[0] == fence[0] && mark == t:
			fence = ""
		}
		if title, ok := strings.CutPrefix(strings.TrimRight(line, "\r\n"), "## "); ok && fence == "" {
			f.parts = append(f.parts, logPart{title: strings.TrimSpace(title)})
		}
		p := &f.parts[len(f.parts)-1]
		p.lines = append(p.lines, line)
	}
	f.open = fence != ""
	return f
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
			before.lines = append(before.lines, f.eol)
		}
	}
	p := logPart{title: title, lines: []string{"## " + title + f.eol}}
	if at < len(f.parts) {
		p.lines = append(p.lines, f.eol)
	}
	f.parts = slices.Insert(f.parts, at, p)
	return &f.parts[at]
}

// items lists a section's list items: the index of each one's first line.
func (p *logPart) items() []int {
	var out []int
	for i, l := range p.lines {
		if strings.HasPrefix(l, "- ") || strings.HasPrefix(l, "* ") {
			out = append(out, i)
		}
	}
	return out
}

// item is the text of the item that begins at a line, and where it ends.
func (p *logPart) item(i int) (text string, end int) {
	for end = i + 1; end < len(p.lines); end++ {
		l := p.lines[end]
		if strings.TrimSpace(l) == "" || !strings.HasPrefix(l, "  ") && !strings.HasPrefix(l, "\t") {
			break
		}
	}
	return OneItem(strings.Join(p.lines[i:end], " "), 1<<20), end
}

// add puts an item behind the others, unless one says the same.
func (p *logPart) add(item, mark, eol string) {
	key := SameItem(item)
	if key == "" {
		return
	}
	for _, i := range p.items() {
		if text, _ := p.item(i); SameItem(text) == key {
			return
		}
	}
	at := len(p.lines)
	for at > 1 && strings.TrimSpace(p.lines[at-1]) == "" {
		at--
	}
	if !strings.HasSuffix(p.lines[at-1], "\n") {
		p.lines[at-1] += eol
	}
	p.lines = slices.Insert(p.lines, at, "- "+mark+item+eol)
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
	if f.open {
		return nil, ErrOpen
	}
	for _, op := range a.Ops {
		finalized := op.Items["finalized"]
		if op.Done {
			finalized = f.done(op)
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

// done takes the open items that an exchange has settled out of To follow up,
// and lists what is finalized.
func (f *logFile) done(op LogOp) []string {
	p := f.find("To follow up")
	if p == nil {
		return op.Items["finalized"]
	}
	open := map[string]int{} // key → line
	var order []string
	for _, i := range p.items() {
		text, _ := p.item(i)
		if _, twice := open[SameItem(text)]; !twice {
			order = append(order, text)
		}
		open[SameItem(text)] = i
	}
	pick := func(fits func(string) bool) []string {
		var out []string
		for _, text := range order {
			if fits(text) {
				out = append(out, text)
			}
		}
		return out
	}
	listed := map[string]bool{}
	for _, item := range op.Items["finalized"] {
		listed[SameItem(item)] = true
	}
	chosen := pick(func(s string) bool { return listed[SameItem(s)] })
	out := slices.Clone(op.Items["finalized"])
	if len(listed) == 0 {
		words := SameItem(op.Words)
		chosen = pick(func(s string) bool { return strings.Contains(SameItem(s), words) })
		out = chosen
	}
	gone := map[string]bool{}
	for _, s := range chosen {
		gone[SameItem(s)] = true
	}
	items := p.items()
	slices.Reverse(items)
	for _, i := range items {
		if text, end := p.item(i); gone[SameItem(text)] {
			p.lines = slices.Delete(p.lines, i, end)
		}
	}
	return out
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
	if f.open && len(a.Days) > 0 {
		return nil, ErrOpen
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
	for _, text := range a.Cuts {
		i := bytes.Index(out, []byte(text))
		if i < 0 || text == "" {
			return nil, errors.New("a section that was to move has changed")
		}
		out = slices.Concat(out[:i], out[i+len(text):])
	}
	return out, nil
}

// FoldLines drops list items of one line that stand again further down: the
// newest stays.
func FoldLines(b []byte) []byte {
	rows := strings.SplitAfter(string(b), "\n")
	seen := map[string]bool{}
	for i, l := range slices.Backward(rows) {
		key := strings.TrimRight(l, " \t\r\n")
		alone := i+1 == len(rows) || !strings.HasPrefix(rows[i+1], "  ") && !strings.HasPrefix(rows[i+1], "\t")
		if !strings.HasPrefix(key, "- ") || !alone {
			continue
		}
		if seen[key] {
			rows[i] = ""
		}
		seen[key] = true
	}
	return []byte(strings.Join(rows, ""))
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
			last.lines = append(last.lines, f.eol)
		}
	}
	f.parts = append(f.parts, logPart{title: day, lines: []string{"## " + day + f.eol}})
	return &f.parts[len(f.parts)-1]
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

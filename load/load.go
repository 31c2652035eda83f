// Package load gathers what an agent should read when a session begins.
//
// [Read] collects the always-loaded file, the working buffer, the latest daily
// notes and lessons, within a budget; [Document.Markdown] prints them. What
// did not fit is said, with its path. Nothing here writes.
package load

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/tiers"
)

// Section is one file, or what of it fits.
type Section struct {
	Tier string `json:"tier"` // "" for unfinished business
	Path string `json:"path"` // "" likewise
	Text string `json:"text"` // whole lines
	Left int    `json:"left"` // lines that did not fit
}

// Document is what a session begins with, in the order of reading.
type Document struct {
	Sections []Section
	LeftOut  []string // paths of which nothing fits
	Trouble  []string // what could not be read
	budget   int
}

// Options say what to gather.
type Options struct {
	Budget   int    // characters of the whole Markdown; at least 1
	Since    string // a day: notes from there on; "": yesterday
	Business []string
	// Match picks lessons; nil: the latest.
	Match func(text string) bool
}

// lessons is how many entries, or lines, of a SCRATCH file are read (source:
// tiered memory, "On session start").
const lessons = 20

// MaxFile is the largest file that is read, in bytes.
const MaxFile = 4 << 20

// Read gathers a session's beginning. A file that is not there, or has nothing
// in it, is not mentioned.
func Read(m fs.FS, rules tiers.Rules, now time.Time, o Options) (Document, error) {
	r := reader{m: m, rules: rules}
	var all []wanted
	if len(o.Business) > 0 {
		all = append(all, wanted{Section: Section{Text: "- " + strings.Join(o.Business, "\n- ") + "\n"}, share: 0.2})
	}
	all = append(all, r.file(tiers.HOT, rules.Hot.File, 0.5, false, nil)...)
	all = append(all, r.file(tiers.BUFFER, rules.Buffer.File, 0.25, true, func(b []byte) []byte {
		if entry.ParseBuffer(b).Empty() {
			return nil
		}
		return b
	})...)
	notes, err := r.notes(now, o.Since)
	if err != nil {
		return Document{}, err
	}
	for i, name := range notes {
		all = append(all, r.file(tiers.COLD, name, 0.15/float64(i+1), true, nil)...)
	}
	for _, f := range rules.Scratch.Files {
		all = append(all, r.file(tiers.SCRATCH, path.Join(rules.Scratch.Dir, f), 0.05, true, func(b []byte) []byte {
			if string(b) == r.template(path.Join(rules.Scratch.Dir, f)) {
				return nil
			}
			return latest(b, o.Match)
		})...)
	}
	d := Document{Trouble: r.trouble, budget: o.Budget}
	d.Sections, d.LeftOut = fit(all, o.Budget)
	return d, nil
}

type reader struct {
	m       fs.FS
	rules   tiers.Rules
	trouble []string
}

// wanted is a section before it is fitted into the budget.
type wanted struct {
	Section
	share float64 // of the budget that it may have before the others are looked at
	tail  bool    // its end is what is new
}

// file reads one file; pick takes what matters of it.
func (r *reader) file(tier tiers.Tier, name string, share float64, tail bool, pick func([]byte) []byte) []wanted {
	if name == "" {
		return nil
	}
	info, err := fs.Lstat(r.m, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	var b []byte
	switch {
	case err != nil:
	case !info.Mode().IsRegular():
		err = errors.New("is no regular file")
	case info.Size() > MaxFile:
		err = fmt.Errorf("has %d bytes", info.Size())
	default:
		b, err = fs.ReadFile(r.m, name)
	}
	if err == nil {
		err = entry.CheckText(b, MaxFile)
	}
	if err != nil {
		r.trouble = append(r.trouble, fmt.Sprintf("%s: %v", name, err))
		return nil
	}
	if pick != nil {
		b = pick(b)
	}
	text := strings.Trim(strings.ToValidUTF8(strings.TrimPrefix(string(b), "\ufeff"), "\ufffd"), "\r\n")
	if strings.TrimSpace(text) == "" {
		return nil
	}
	return []wanted{{Section: Section{Tier: string(tier), Path: name, Text: text + "\n"}, share: share, tail: tail}}
}

// template is what a file of a new workspace says: nothing yet.
func (r *reader) template(name string) string {
	files, err := r.rules.Scaffold("")
	if err != nil {
		return ""
	}
	for _, f := range files {
		if f.Path == name {
			return f.Text
		}
	}
	return ""
}

// notes lists the daily notes from a day on, those with a suffix too; the
// newest first.
func (r *reader) notes(now time.Time, since string) ([]string, error) {
	if since == "" {
		local := now.In(r.rules.Location)
		since = time.Date(local.Year(), local.Month(), local.Day()-1, 12, 0, 0, 0, time.UTC).Format(time.DateOnly)
	}
	type note struct{ day, name string }
	var found []note
	for _, dir := range r.rules.Notes {
		entries, err := fs.ReadDir(r.m, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if day, ok := tiers.NoteDay(e.Name()); ok && day >= since && day <= r.rules.Day(now) {
				found = append(found, note{day, path.Join(dir, e.Name())})
			}
		}
	}
	slices.SortFunc(found, func(a, b note) int {
		if a.day != b.day {
			return strings.Compare(b.day, a.day)
		}
		return strings.Compare(a.name, b.name)
	})
	var out []string
	for _, n := range found {
		out = append(out, n.name)
	}
	return out, nil
}

// latest is the last entries of a SCRATCH file, or those that match.
func latest(b []byte, match func(string) bool) []byte {
	all := entry.ParseLessons(b)
	if match != nil {
		var sb strings.Builder
		for _, l := range all {
			if text := string(l.Key(b)); match(text) {
				sb.WriteString(text + "\n")
			}
		}
		if sb.Len() > 0 {
			return []byte(sb.String())
		}
	}
	if len(all) > 0 {
		return b[all[max(0, len(all)-lessons)].Start:]
	}
	rows := strings.SplitAfter(strings.TrimRight(string(b), "\r\n"), "\n")
	rows = rows[max(0, len(rows)-lessons):]
	if !slices.ContainsFunc(rows, func(l string) bool { l = strings.TrimSpace(l); return l != "" && l[0] != '#' }) {
		return nil // titles only
	}
	return []byte(strings.Join(rows, ""))
}

// Markdown prints a document: each section under the path it comes from.
func (d Document) Markdown() string {
	var sb strings.Builder
	for i, s := range d.Sections {
		if i > 0 {
			sb.WriteString("\n")
		}
		sb.WriteString(s.Title() + "\n\n" + s.Text)
		if s.Left > 0 {
			sb.WriteString(s.note() + "\n")
		}
	}
	if len(d.LeftOut) > 0 {
		sb.WriteString(d.leftOut(d.budget - utf8.RuneCountInString(sb.String())))
	}
	return sb.String()
}

// leftOut names what did not fit at all, as far as there is room for that.
func (d Document) leftOut(room int) string {
	for n := len(d.LeftOut); n >= 0; n-- {
		text := "\n[left out whole: " + strings.Join(d.LeftOut[:n], ", ")
		switch more := len(d.LeftOut) - n; {
		case more > 0 && n > 0:
			text += fmt.Sprintf(" and %d more", more)
		case more > 0:
			text = fmt.Sprintf("\n[%d files left out", more)
		}
		if text += "]\n"; utf8.RuneCountInString(text) <= room {
			return text
		}
	}
	return ""
}

// Title is the heading that a section stands under.
func (s Section) Title() string {
	if s.Path == "" {
		return "## Unfinished business"
	}
	return "## From " + s.Path
}

func (s Section) note() string {
	lines := "lines"
	if s.Left == 1 {
		lines = "line"
	}
	if s.Path == "" {
		return fmt.Sprintf("[%d %s left out: mem status]", s.Left, lines)
	}
	return fmt.Sprintf("[%d %s of %s left out]", s.Left, lines, s.Path)
}

// overhead is what a section costs beyond its text, in characters: blank
// lines, its title, and the note that says what was left out.
func (s Section) overhead() int {
	s.Left = 1_000_000
	return utf8.RuneCountInString(s.Title()) + 3 + utf8.RuneCountInString(s.note()) + 1
}

// Room that is kept for naming what does not fit at all, and the least that a
// section is worth beginning with, in characters.
const (
	nameRoom = 150
	least    = 40
)

// fit cuts sections so that all together have at most budget characters. Each
// gets its share first, if that is worth it; what is left over goes to those
// that want more, in the order of reading. It also gives the paths of which
// nothing fits.
func fit(all []wanted, budget int) ([]Section, []string) {
	need := make([]int, len(all))
	got := make([]int, len(all))
	sum := 0
	for i, w := range all {
		need[i] = utf8.RuneCountInString(w.Text) + w.overhead()
		sum += need[i]
	}
	left := budget
	if sum > budget {
		left = max(budget-nameRoom, 0)
	}
	total := left
	for i, w := range all {
		want := min(need[i], int(w.share*float64(total)), left)
		if want < need[i] && want < w.overhead()+least {
			continue
		}
		got[i] = want
		left -= want
	}
	for i, w := range all {
		more := min(need[i]-got[i], left)
		if got[i] == 0 && more < need[i] && more < w.overhead()+least {
			continue
		}
		got[i] += more
		left -= more
	}
	var out []Section
	var none []string
	for i, w := range all {
		s, ok := w.cut(got[i] - w.overhead())
		switch {
		case ok:
			out = append(out, s)
		case w.Path == "":
			none = append(none, "unfinished business (mem status)")
		default:
			none = append(none, w.Path)
		}
	}
	return out, none
}

// cut shortens a section to at most so many characters, at the boundaries of
// entries; an entry that alone is larger is cut at a character.
func (w wanted) cut(limit int) (Section, bool) {
	s := w.Section
	if limit <= 0 {
		return s, false
	}
	if utf8.RuneCountInString(s.Text) <= limit {
		return s, true
	}
	blocks := blocksOf(s.Text)
	if w.tail {
		slices.Reverse(blocks)
	}
	var kept []string
	room := limit
	for _, b := range blocks {
		n := utf8.RuneCountInString(b)
		if n > room {
			if len(kept) == 0 {
				kept = append(kept, string([]rune(b)[:max(room-2, 0)])+"…\n")
			}
			break
		}
		kept = append(kept, b)
		room -= n
	}
	if w.tail {
		slices.Reverse(kept)
	}
	all := strings.Count(s.Text, "\n")
	s.Text = strings.Join(kept, "")
	s.Left = max(all-strings.Count(s.Text, "\n"), 1)
	return s, strings.TrimSpace(s.Text) != "…"
}

// blocksOf splits a text where entries begin: at list items, headings, and
// after blank lines.
func blocksOf(s string) []string {
	var out []string
	fence := false
	blank := true
	for line := range strings.Lines(s) {
		t := strings.TrimSpace(line)
		begins := blank || strings.HasPrefix(line, "#") || len(t) > 1 && strings.ContainsRune("-*+", rune(line[0])) && t[1] == ' '
		if fence || t == "" || !begins || len(out) == 0 {
			if len(out) == 0 {
				out = append(out, "")
			}
			out[len(out)-1] += line
		} else {
			out = append(out, line)
		}
		if strings.HasPrefix(t, "```") || strings.HasPrefix(t, "~~~") {
			fence = !fence
		}
		blank = t == "" && !fence
	}
	return out
}

// Package heartbeat is the four-phase care of the claude layout: what can be
// decided without a model, each phase a list for the agent (source: four-type
// memory, "Heartbeat Maintenance").
//
// [Look] reads the memory, [Tidy] plans the fourth phase. Nothing is ever
// deleted or expired.
package heartbeat

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/feedback"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Item is one thing for the agent to look at.
type Item struct {
	Path string `json:"path"`
	Line int    `json:"line"` // 0: the file as a whole
	Text string `json:"text"`
	Why  string `json:"why"`
}

// Report is what the phases found.
type Report struct {
	CatchUp     []Item `json:"catch_up"`
	Consolidate []Item `json:"consolidate"`
	Verify      []Item `json:"verify"`
	Tidy        []Move `json:"tidy"`
	Size        int    `json:"size"`  // of the always-loaded file, in bytes
	Limit       int    `json:"limit"` // of that
	// Checked are the entries that Verify lists, by their keys: for the ledger.
	Checked []string `json:"-"`
}

// Options give what a look at the memory alone does not tell.
type Options struct {
	// Checked tells when an entry was checked last, by its key.
	Checked map[string]time.Time
	// Exists reports whether a path that an entry names is there, and Command
	// whether a program is.
	Exists  func(name string) bool
	Command func(name string) bool
}

// notesBack is how many daily notes are looked at.
const notesBack = 3

// Look goes through the phases.
func Look(m fs.FS, rules tiers.Rules, now time.Time, o Options) (Report, error) {
	r := Report{CatchUp: []Item{}, Consolidate: []Item{}, Verify: []Item{}, Tidy: []Move{}, Limit: rules.Hot.Max}
	hot, err := read(m, rules.Hot.File)
	if err != nil {
		return r, err
	}
	r.Size = len(hot)
	notes, err := latest(m, rules, now)
	if err != nil {
		return r, err
	}
	if err := catchUp(m, rules, now, notes, &r); err != nil {
		return r, err
	}
	if err := consolidate(m, rules, notes, &r); err != nil {
		return r, err
	}
	verify(rules, hot, o, &r)
	_, r.Tidy, err = Tidy(m, rules, now)
	return r, err
}

// note is a daily note.
type note struct {
	day, path string
	text      []byte
}

// latest reads the latest notes up to today, the newest first.
func latest(m fs.FS, rules tiers.Rules, now time.Time) ([]note, error) {
	var all []note
	for _, dir := range rules.Notes {
		entries, err := fs.ReadDir(m, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if day, ok := tiers.NoteDay(e.Name()); ok && day <= rules.Day(now) && e.Type().IsRegular() {
				all = append(all, note{day: day, path: path.Join(dir, e.Name())})
			}
		}
	}
	slices.SortFunc(all, func(a, b note) int { return strings.Compare(b.day+b.path, a.day+a.path) })
	all = all[:min(len(all), notesBack)]
	for i := range all {
		b, err := fs.ReadFile(m, all[i].path)
		if err != nil {
			return nil, err
		}
		all[i].text = slices.Clone(b)
	}
	return all, nil
}

// said are the words by which people correct and confirm.
var said = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^\pL])(?:don['’]?t|do not|never|always|stop doing|keep doing|yes,? exactly|that was right|from now on|immer|niemals|nie wieder|genau so|toujours|jamais|siempre|nunca)(?:$|[^\pL])|不要|总是|總是|以后都|就是这样|必ず|しないで`)
})

// covered is how much of a line's words an entry must hold to be about it.
const covered = 0.5

// catchUp finds what a person said that is not in the feedback yet.
func catchUp(m fs.FS, rules tiers.Rules, now time.Time, notes []note, r *Report) error {
	if today := rules.Day(now); len(notes) == 0 || notes[0].day != today {
		r.CatchUp = append(r.CatchUp, Item{Path: rules.NotePath(now), Why: "there is no daily note for today"})
	}
	b, err := read(m, feedback.File)
	if err != nil {
		return err
	}
	entries := feedback.Parse(b)
	for _, n := range notes {
		entry.VisibleLines(n.text, func(line int, text string) {
			if strings.HasPrefix(text, "#") || !said().MatchString(text) {
				return
			}
			words := entry.Words(text)
			for _, e := range entries {
				if entry.Covered(words, entry.Words(e.Rule+" "+e.Text)) >= covered {
					return
				}
			}
			r.CatchUp = append(r.CatchUp, Item{n.path, line, entry.OneItem(text, 200), "reads like feedback, and no entry of " + feedback.File + " covers it"})
		})
	}
	return nil
}

// similar is from which overlap of words on two items may say the same.
const similar = 0.5

// least is how many words an item has that is worth to be kept.
const least = 3

// consolidate finds what the latest notes say that stands nowhere else.
func consolidate(m fs.FS, rules tiers.Rules, notes []note, r *Report) error {
	var known []Item
	var texts []string
	files := []string{rules.Hot.File, feedback.File}
	topics, err := markdown(m, "memory/topics")
	if err != nil {
		return err
	}
	for _, name := range append(files, topics...) {
		b, err := read(m, name)
		if err != nil {
			return err
		}
		texts = append(texts, entry.SameItem(string(b)))
		entry.VisibleLines(b, func(n int, line string) {
			if t := entry.OneItem(line, 500); t != "" && !strings.HasPrefix(line, "#") {
				known = append(known, Item{Path: name, Line: n, Text: t})
			}
		})
	}
	for _, n := range notes {
		entry.VisibleLines(n.text, func(line int, text string) {
			t := strings.TrimSpace(text)
			if !strings.HasPrefix(t, "- ") && !strings.HasPrefix(t, "* ") || said().MatchString(t) {
				return
			}
			item := entry.OneItem(t, 500)
			words := entry.Words(item)
			key := entry.SameItem(item)
			if len(words) < least || slices.ContainsFunc(texts, func(s string) bool { return strings.Contains(s, key) }) {
				return
			}
			why := "stands in no topic and not in " + rules.Hot.File
			best := similar
			for _, k := range known {
				if o := entry.Overlap(words, entry.Words(k.Text)); o >= best {
					best, why = o, fmt.Sprintf("much like %s:%d: merge them: %s", k.Path, k.Line, entry.OneItem(k.Text, 100))
				}
			}
			r.Consolidate = append(r.Consolidate, Item{n.path, line, entry.OneItem(item, 200), why})
		})
	}
	return nil
}

// markdown lists the Markdown files below a directory.
func markdown(m fs.FS, dir string) ([]string, error) {
	var out []string
	err := fs.WalkDir(m, dir, func(name string, e fs.DirEntry, err error) error {
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err == nil && e.Type().IsRegular() && strings.HasSuffix(name, ".md") {
			out = append(out, name)
		}
		return err
	})
	return out, err
}

var (
	quoted = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile("`([^`]+)`") })
	linked = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`\]\(([^)\s]+)\)`) })
	// bare are paths that stand in the text as they are.
	bare = sync.OnceValue(func() *regexp.Regexp {
		return regexp.MustCompile(`(?:^|[\s(,;])((?:~|\.{0,2})/[\w.@+/-]*[\w/]|[\w.-]+/[\w.@+/-]*\.\w{1,5})`)
	})
	useful = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[a-z][a-z0-9._+-]*$`) })
)

// technical is an entry of the always-loaded file that names paths or programs.
type technical struct {
	Item
	key      string
	paths    []string
	commands []string
}

// perBeat is how many entries are verified at a time.
const perBeat = 2

// verify picks the entries that were checked the longest ago, and looks
// whether what they name is there.
func verify(rules tiers.Rules, hot []byte, o Options, r *Report) {
	var all []technical
	entry.VisibleLines(hot, func(n int, line string) {
		if strings.HasPrefix(line, "#") {
			return
		}
		t := technical{Item: Item{Path: rules.Hot.File, Line: n, Text: entry.OneItem(line, 200)}}
		t.key = plan.Hash([]byte(entry.SameItem(line)))[:16]
		for _, m := range linked().FindAllStringSubmatch(line, -1) {
			if target, _, _ := strings.Cut(m[1], "#"); target != "" && !strings.Contains(target, ":") {
				t.paths = append(t.paths, target)
			}
		}
		plain := line
		for _, m := range quoted().FindAllStringSubmatch(line, -1) {
			plain = strings.Replace(plain, m[0], " ", 1)
			t.named(m[1])
		}
		for _, m := range bare().FindAllStringSubmatch(linked().ReplaceAllString(plain, ""), -1) {
			t.paths = append(t.paths, m[1])
		}
		if len(t.paths)+len(t.commands) > 0 {
			all = append(all, t)
		}
	})
	slices.SortStableFunc(all, func(a, b technical) int { return o.Checked[a.key].Compare(o.Checked[b.key]) })
	for _, t := range all[:min(len(all), perBeat)] {
		r.Checked = append(r.Checked, t.key)
		var wrong []string
		for _, p := range t.paths {
			if !o.Exists(p) {
				wrong = append(wrong, p+" does not exist")
			}
		}
		for _, c := range t.commands {
			if !o.Command(c) {
				wrong = append(wrong, "the program "+c+" is not found")
			}
		}
		if t.Why = "check it: what it names is there"; len(wrong) > 0 {
			t.Why = strings.Join(wrong, "; ")
		}
		r.Verify = append(r.Verify, t.Item)
	}
}

// named sorts what stands in code marks: a path, or a program with arguments.
func (t *technical) named(s string) {
	words := strings.Fields(s)
	switch {
	case len(words) == 0:
	case len(words) == 1 && (strings.Contains(s, "/") || strings.HasPrefix(s, "~")) && !strings.Contains(s, "://"):
		t.paths = append(t.paths, s)
	case len(words) > 1 && useful().MatchString(words[0]):
		t.commands = append(t.commands, words[0])
	case len(words) > 1 && strings.Contains(words[0], "/") && !strings.Contains(words[0], "://"):
		t.paths = append(t.paths, words[0])
	}
}

// read reads a file; nil where there is none.
func read(m fs.FS, name string) ([]byte, error) {
	b, err := fs.ReadFile(m, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	return slices.Clone(b), err
}

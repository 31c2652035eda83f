package heartbeat

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"slices"
	"strings"
	"sync"
	"time"
	"unicode"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Move is one section of the always-loaded file that goes to a topic.
type Move struct {
	Title string `json:"title"`
	Line  int    `json:"line"`
	Bytes int    `json:"bytes"`
	To    string `json:"to"`
}

// section is a part of the always-loaded file below one heading, without the
// sections below that.
type section struct {
	title      string
	above      string // the heading of level 2 that it is in
	level      int
	line       int
	start      int // of the heading
	body       int // behind it
	end        int // of all below it
	candidates bool
}

// sections lists the headings of levels 2 and 3, with what is below each.
func sections(b []byte) []section {
	var out []section
	at := map[int]int{} // line → its first byte
	n, off := 0, 0
	for l := range strings.Lines(string(b)) {
		n++
		at[n] = off
		off += len(l)
	}
	at[n+1] = off
	above := ""
	entry.VisibleLines(b, func(line int, text string) {
		level := len(text) - len(strings.TrimLeft(text, "#"))
		if level < 1 || level > 3 || len(text) == level || text[level] != ' ' {
			return
		}
		for i := range out {
			if out[i].end < 0 && out[i].level >= level {
				out[i].end = at[line]
			}
		}
		title := strings.TrimSpace(text[level:])
		if level < 3 {
			above = title
		}
		if level == 1 {
			return
		}
		out = append(out, section{title: title, above: above, level: level, line: line, start: at[line], body: at[line+1], end: -1})
	})
	for i := range out {
		if out[i].end < 0 {
			out[i].end = len(b)
		}
	}
	return out
}

// order ranks the four types by how soon a section of theirs may go: what is
// used rarely first, what a person is last; feedback has a file of its own.
func order(above string) int {
	switch strings.ToLower(above) {
	case "feedback":
		return -1
	case "user":
		return 3
	case "project":
		return 2
	case "reference":
		return 0
	}
	return 1
}

// Tidy plans what brings the always-loaded file under its limit: whole
// sections go to topics, and a pointer stays. The plan is empty where the file
// is within it.
func Tidy(m fs.FS, rules tiers.Rules, now time.Time) (plan.Plan, []Move, error) {
	p := plan.Plan{Command: "heartbeat"}
	moves := []Move{}
	hot, err := read(m, rules.Hot.File)
	if err != nil || len(hot) <= rules.Hot.Max {
		return p, moves, err
	}
	all := sections(hot)
	for i := range all {
		s := &all[i]
		// Sections of level 3 go whole; of level 2 what stands in them, where
		// there are none of level 3.
		below := slices.ContainsFunc(all, func(o section) bool { return o.level == 3 && o.start > s.start && o.start < s.end })
		s.candidates = order(s.above) >= 0 && !definitions().Match(hot[s.body:s.end]) && s.end-s.body > 3*pointerSize && (s.level == 3 || !below)
	}
	pick := slices.DeleteFunc(slices.Clone(all), func(s section) bool { return !s.candidates })
	slices.SortStableFunc(pick, func(a, b section) int {
		if d := order(a.above) - order(b.above); d != 0 {
			return d
		}
		return (b.end - b.body) - (a.end - a.body)
	})
	size := len(hot)
	var cuts []entry.Cut
	taken := map[string]bool{}
	today, eol := rules.Day(now), entry.EOL(hot)
	for _, s := range pick {
		if size <= rules.Hot.Max {
			break
		}
		body := string(hot[s.body:s.end])
		if strings.Count(string(hot), body) != 1 {
			continue // which one would go is not for us to say
		}
		topic, err := free(m, slug(s.title), taken)
		if err != nil {
			return p, moves, err
		}
		pointer := strings.ReplaceAll(fmt.Sprintf("\nSee [%s](%s).\n\n", topic, topic), "\n", eol)
		cuts = append(cuts, entry.Cut{Text: body, By: pointer})
		size += len(pointer) - len(body)
		text := fmt.Sprintf("# %s\n\n> Created: %s | Updated: %s\n\n%s", s.title, today, today, relink(strings.TrimLeft(body, "\r\n"), rules.Hot.File))
		p.Steps = append(p.Steps, plan.Step{Kind: plan.Create, Path: topic, Before: plan.StateOf(nil), Content: []byte(text)})
		moves = append(moves, Move{s.title, s.line, len(body), topic})
	}
	if len(cuts) == 0 {
		return plan.Plan{}, moves, nil
	}
	arg, err := json.Marshal(entry.TakeArg{Cuts: cuts})
	if err != nil {
		return p, moves, err
	}
	p.Steps = append(p.Steps, plan.Step{Kind: plan.Edit, Path: rules.Hot.File, Before: plan.StateOf(hot), Place: entry.TakeOut, Text: arg})
	return p, moves, nil
}

var (
	// definitions are targets that links all over the file refer to.
	definitions = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(?m)^ {0,3}\[[^\]]+\]:\s`) })
	links       = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`(\]\()([^)\s]+)`) })
)

// relink makes the relative links of a text lead, from memory/topics, where
// they led from the always-loaded file.
func relink(s, hot string) string {
	own := map[string]bool{} // headings that move along
	entry.VisibleLines([]byte(s), func(_ int, line string) {
		if strings.HasPrefix(line, "#") {
			own[slug(strings.TrimLeft(line, "# "))] = true
		}
	})
	return links().ReplaceAllStringFunc(s, func(l string) string {
		target := strings.TrimPrefix(l, "](")
		if anchor, ok := strings.CutPrefix(target, "#"); ok {
			if own[anchor] {
				return l
			}
			return "](../../" + hot + target
		}
		if strings.HasPrefix(target, "/") || strings.HasPrefix(target, "<") || strings.Contains(target, ":") {
			return l
		}
		if rest, ok := strings.CutPrefix(target, "memory/topics/"); ok {
			return "](" + rest
		}
		if rest, ok := strings.CutPrefix(target, "memory/"); ok {
			return "](../" + rest
		}
		return "](../../" + strings.TrimPrefix(target, "./")
	})
}

// pointerSize is about what a pointer takes, in bytes: less than three times
// that is not worth to be moved.
const pointerSize = 60

// maxTopics bounds how many topics of one name there are.
const maxTopics = 100

// free is the first topic of that name that is not there.
func free(m fs.FS, stem string, taken map[string]bool) (string, error) {
	for n := 1; n < maxTopics; n++ {
		name := path.Join("memory/topics", stem+".md")
		if n > 1 {
			name = path.Join("memory/topics", fmt.Sprintf("%s-%d.md", stem, n))
		}
		if taken[name] {
			continue
		}
		_, err := fs.Lstat(m, name)
		if errors.Is(err, fs.ErrNotExist) {
			taken[name] = true
			return name, nil
		}
		if err != nil {
			return "", err
		}
	}
	return "", fmt.Errorf("memory/topics has %d files named %s", maxTopics, stem)
}

// slug is a title as a file name.
func slug(s string) string {
	var sb strings.Builder
	for _, r := range strings.ToLower(s) {
		switch {
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			sb.WriteRune(r)
		case sb.Len() > 0 && !strings.HasSuffix(sb.String(), "-"):
			sb.WriteByte('-')
		}
		if sb.Len() > 60 {
			break
		}
	}
	if out := strings.Trim(sb.String(), "-"); out != "" {
		return out
	}
	return "topic"
}

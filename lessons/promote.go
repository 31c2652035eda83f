package lessons

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Promotion is what a person has decided about a lesson.
type Promotion struct {
	ID    string // a typed id, or the beginning of a key
	As    string // the kind of fact: decides its home
	Topic string // of a how-to
	To    string // the file, whatever the kind says
	Text  string // how the fact is put; "" is the lesson's summary
}

// Promoted is what Promote decided.
type Promoted struct {
	Lesson  Lesson
	To      string
	Warning string
}

// newTopic is how many promotions of one topic make a file of its own (source:
// tiered memory, "Target mapping for promotion").
const newTopic = 3

// PostMortem is the kind of fact that a lesson is unless a person says
// otherwise.
const PostMortem = "post-mortem"

// Promote plans a lesson's way to its durable home: the fact is written there
// once, and the entry says where it went.
func Promote(m fs.FS, rules tiers.Rules, now time.Time, a Promotion) (plan.Plan, Promoted, error) {
	var d Promoted
	all, err := Read(m, rules)
	if err != nil {
		return plan.Plan{}, d, err
	}
	if d.Lesson, err = pick(all, a.ID); err != nil {
		return plan.Plan{}, d, err
	}
	if d.Lesson.Promoted {
		return plan.Plan{}, d, &RefusedError{fmt.Sprintf("%s:%d is promoted already", d.Lesson.File, d.Lesson.Line), "mem lessons --all shows where"}
	}
	if err := target(m, rules, a, all, &d); err != nil {
		return plan.Plan{}, d, err
	}
	fact := strings.Join(strings.Fields(a.Text), " ")
	if fact == "" {
		fact = strings.Join(strings.Fields(d.Lesson.Summary), " ")
	}
	if name, line := standing(m, rules, fact); name != "" {
		return plan.Plan{}, d, &RefusedError{fmt.Sprintf("the fact stands in %s:%d already", name, line), "each fact has one home; mark the lesson resolved by hand"}
	}
	old, err := read(m, d.To)
	if err != nil {
		return plan.Plan{}, d, err
	}
	src, err := read(m, d.Lesson.File)
	if err != nil {
		return plan.Plan{}, d, err
	}
	mark, err := json.Marshal(entry.PromotedArg{Key: d.Lesson.Key, To: d.To, Topic: a.Topic})
	if err != nil {
		return plan.Plan{}, d, err
	}
	line := "- " + fact
	if day := d.Lesson.Day; day != "" {
		line += " (" + day + ")"
	}
	return plan.Plan{Command: "promote", Facts: plan.Facts{"lesson": d.Lesson.Key, "from": d.Lesson.File, "to": d.To}, Steps: []plan.Step{
		{Kind: plan.Append, Path: d.To, Before: plan.StateOf(old), Place: entry.AtLine, Text: []byte(line + "\n"), Seed: seed(rules, now, d.To, a.Topic)},
		{Kind: plan.Edit, Path: d.Lesson.File, Before: plan.StateOf(src), Place: entry.MarkPromoted, Text: mark},
	}}, d, nil
}

func pick(all []Lesson, id string) (Lesson, error) {
	var hits []Lesson
	for _, l := range all {
		if l.ID != "" && strings.EqualFold(l.ID, id) || len(id) >= 4 && strings.HasPrefix(l.Key, strings.ToLower(id)) {
			hits = append(hits, l)
		}
	}
	// Copies of one lesson are one; which of them is marked does not matter.
	same := !slices.ContainsFunc(hits, func(l Lesson) bool { return entry.Fold(l.Summary) != entry.Fold(hits[0].Summary) })
	switch {
	case len(hits) == 0:
		return Lesson{}, &RefusedError{fmt.Sprintf("no lesson %q", id), "mem lessons --all shows the ids"}
	case !same:
		var keys []string
		for _, h := range hits {
			keys = append(keys, fmt.Sprintf("%s (%s:%d)", h.Key, h.File, h.Line))
		}
		return Lesson{}, &RefusedError{fmt.Sprintf("%q is %d different lessons", id, len(hits)), "one of " + strings.Join(keys, ", ")}
	}
	return hits[0], nil
}

// target decides the file.
func target(m fs.FS, rules tiers.Rules, a Promotion, all []Lesson, d *Promoted) error {
	owners := rules.Owners
	if a.To != "" {
		d.To = a.To
		switch {
		case rules.TierOf(a.To) != tiers.WARM || strings.HasPrefix(path.Base(a.To), "."):
			return &RefusedError{a.To + " is no WARM file", "durable facts live in " + homes(rules)}
		case !rules.Owner(a.To):
			d.Warning = a.To + " owns no kind of fact; facts are looked for in " + homes(rules)
		case a.As != "" && !strings.Contains(owners[a.As], "{topic}") && owners[a.As] != a.To:
			d.Warning = fmt.Sprintf("a fact of the kind %q has its home in %s", a.As, owners[a.As])
		default:
			stem := strings.TrimSuffix(path.Base(a.To), ".md")
			if _, err := fs.Stat(m, a.To); err != nil && a.To == strings.ReplaceAll(owners["how-to"], "{topic}", stem) {
				if n := onTopic(m, rules, all, stem); n < newTopic-1 {
					d.Warning = fmt.Sprintf("%s is made for one fact; a topic has a file of its own from its promotion %d on", a.To, newTopic)
				}
			}
		}
		return nil
	}
	kind := a.As
	if kind == "" && a.Topic != "" {
		kind = "how-to"
	} else if kind == "" {
		kind = PostMortem
	}
	file, ok := owners[kind]
	if len(owners) == 0 {
		return &RefusedError{"this layout has no homes for facts", "name a file with --to"}
	}
	if !ok {
		var kinds []string
		for k := range owners {
			kinds = append(kinds, k)
		}
		slices.Sort(kinds)
		return &RefusedError{fmt.Sprintf("no kind of fact %q", kind), "one of " + strings.Join(kinds, ", ")}
	}
	if !strings.Contains(file, "{topic}") {
		d.To = file
		return nil
	}
	if !safeTopic(a.Topic) {
		return &RefusedError{fmt.Sprintf("topic %q is no file name", a.Topic), "--topic with letters, digits and dashes, such as ssh"}
	}
	d.To = strings.ReplaceAll(file, "{topic}", a.Topic)
	if _, err := fs.Stat(m, d.To); err == nil {
		return nil
	}
	if n := onTopic(m, rules, all, a.Topic); n < newTopic-1 {
		d.To = owners[PostMortem]
		d.Warning = fmt.Sprintf("a file for the topic %q comes with its promotion %d; this is number %d, so it goes to %s", a.Topic, newTopic, n+1, d.To)
	}
	return nil
}

func safeTopic(s string) bool {
	return s != "" && len(s) <= 60 && strings.Trim(s, "abcdefghijklmnopqrstuvwxyz0123456789-") == "" && s[0] != '-'
}

func homes(rules tiers.Rules) string {
	var out []string
	for _, f := range rules.Owners {
		out = append(out, f)
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// onTopic counts the promotions on a topic, in SCRATCH and in its archive.
func onTopic(m fs.FS, rules tiers.Rules, all []Lesson, topic string) int {
	n := 0
	count := func(b []byte) {
		for _, l := range entry.ParseLessons(b) {
			if l.Promoted && hasWord(l.Text(b), "#topic:"+topic) {
				n++
			}
		}
	}
	seen := map[string]bool{}
	for _, l := range all {
		if !seen[l.File] {
			seen[l.File] = true
			if b, err := fs.ReadFile(m, l.File); err == nil {
				count(b)
			}
		}
	}
	root := path.Join(path.Dir(path.Dir(rules.ArchiveDir("2000-01-01"))), "learnings")
	files, err := fs.Glob(m, root+"/*/*/*.md")
	if err != nil {
		return n
	}
	for _, f := range files {
		if b, err := fs.ReadFile(m, f); err == nil {
			count(b)
		}
	}
	return n
}

func hasWord(b []byte, word string) bool {
	i := bytes.Index(b, []byte(word))
	if i < 0 {
		return false
	}
	rest := b[i+len(word):]
	return len(rest) == 0 || strings.ContainsRune(" \t\r\n", rune(rest[0]))
}

// standing looks for a fact in WARM and HOT.
func standing(m fs.FS, rules tiers.Rules, fact string) (string, int) {
	want := entry.Fold(fact)
	var name string
	var line int
	var look func(dir string, depth int)
	look = func(dir string, depth int) {
		entries, err := fs.ReadDir(m, dir)
		if err != nil || depth > 8 {
			return
		}
		in := rules.In(dir)
		for _, e := range entries {
			full := path.Join(dir, e.Name())
			if e.IsDir() {
				if rules.Enter(full) {
					look(full, depth+1)
				}
				continue
			}
			t, _ := in(e.Name())
			if name != "" || t != tiers.WARM && t != tiers.HOT || !e.Type().IsRegular() {
				continue
			}
			b, err := fs.ReadFile(m, full)
			if err != nil {
				continue
			}
			n := 0
			for l := range bytes.Lines(b) {
				n++
				if entry.Fold(withoutDay(strings.TrimLeft(strings.TrimSpace(string(l)), "-*+ "))) == want {
					name, line = full, n
					break
				}
			}
		}
	}
	look(".", 0)
	return name, line
}

// withoutDay cuts the day that Promote writes behind a fact.
func withoutDay(s string) string {
	if i := strings.LastIndex(s, " ("); i >= 0 && len(s)-i == len(" (2006-01-02)") {
		if _, err := time.Parse(time.DateOnly, s[i+2:len(s)-1]); err == nil {
			return s[:i]
		}
	}
	return s
}

// seed is a new WARM file's head, as health wants it. The person who promotes
// has just made sure of what goes into it.
func seed(rules tiers.Rules, now time.Time, name, topic string) []byte {
	stem := strings.TrimSuffix(path.Base(name), ".md")
	words := []rune(strings.ReplaceAll(stem, "-", " "))
	words[0] = unicode.ToUpper(words[0])
	head := "# " + string(words) + "\n"
	if _, tagged := rules.In(path.Dir(name))(path.Base(name)); !tagged {
		return []byte(head + "\n")
	}
	if tag := seedTag(rules, topic, stem); tag != "" {
		head += "#tags: " + tag + "\n"
	}
	return []byte(head + "last_verified: " + rules.Day(now) + "\n\n")
}

// seedTag is a tag of the vocabulary that fits a new file, or its first one.
func seedTag(rules tiers.Rules, topic, stem string) string {
	var all []string
	for _, list := range rules.Tags {
		all = append(all, list...)
	}
	slices.Sort(all)
	for _, want := range []string{topic, stem, "postmortem", "troubleshooting"} {
		if slices.Contains(all, want) {
			return want
		}
	}
	if len(all) == 0 {
		return ""
	}
	return all[0]
}

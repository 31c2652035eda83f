package tiers

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strconv"
	"strings"
	"time"
)

// ConfigFile is the workspace's optional configuration.
const ConfigFile = "mem.yaml"

// maxConfig bounds a configuration file, in bytes.
const maxConfig = 64 << 10

// Config is one configuration file as read: its values by key, in the order of
// the file.
type Config struct {
	Name   string // as shown in messages
	Values []Value
}

// Value is one configured value.
type Value struct {
	Key  string // dotted: limits.hot_lines
	Line int
	Node node
}

// ConfigError is a mistake in a configuration file.
type ConfigError struct {
	Name string
	Line int
	Msg  string
	Hint string
}

func (e *ConfigError) Error() string {
	if e.Line == 0 {
		return e.Name + ": " + e.Msg
	}
	return fmt.Sprintf("%s:%d: %s", e.Name, e.Line, e.Msg)
}

// Mend is the hint that goes with the error.
func (e *ConfigError) Mend() string { return e.Hint }

// guarded are the keys that run a program or reach outside the workspace.
var guarded = []string{"extractor", "handoffs.inboxes", "handoffs.discover", "git.commit", "projects"}

// setters are the keys of mem.yaml and what each does; the only list of them.
var setters = map[string]func(*Rules, node) error{
	"layout":                func(*Rules, node) error { return nil }, // resolved before the others
	"timezone":              func(*Rules, node) error { return nil },
	"note":                  setNote,
	"single_host":           func(r *Rules, n node) error { return n.bool(&r.SingleHost) },
	"limits.hot_lines":      func(r *Rules, n node) error { return n.hot(r, "lines") },
	"limits.hot_characters": func(r *Rules, n node) error { return n.hot(r, "characters") },
	"limits.hot_bytes":      func(r *Rules, n node) error { return n.hot(r, "bytes") },
	"limits.buffer_lines":   func(r *Rules, n node) error { return n.positive(&r.Limits.BufferLines) },
	"limits.open_questions": func(r *Rules, n node) error { return n.positive(&r.Limits.OpenQuestions) },
	"ttl.notes":             func(r *Rules, n node) error { return n.duration(&r.TTL.Notes) },
	"ttl.lessons":           func(r *Rules, n node) error { return n.duration(&r.TTL.Lessons) },
	"ttl.verified":          func(r *Rules, n node) error { return n.duration(&r.TTL.Verified) },
	"ttl.abandoned_buffer":  func(r *Rules, n node) error { return n.duration(&r.TTL.AbandonedBuffer) },
	"ttl.processed":         func(r *Rules, n node) error { return n.duration(&r.TTL.Processed) },
	"tags":                  setTags,
	"handoffs.host":         func(r *Rules, n node) error { return n.string(&r.Handoffs.Host) },
	"handoffs.inboxes":      func(r *Rules, n node) error { return n.strings(&r.Handoffs.Inboxes) },
	"handoffs.discover":     setDiscover,
	"projects":              setProjects,
	"checks":                setChecks,
	"extractor":             func(r *Rules, n node) error { return n.strings(&r.Extractor) },
	"git.commit":            func(r *Rules, n node) error { return n.bool(&r.GitCommit) },
}

// Keys lists every key of mem.yaml, sorted.
func Keys() []string {
	out := make([]string, 0, len(setters))
	for k := range setters {
		out = append(out, k)
	}
	sort.Strings(out)
	return out
}

// sections are the keys that only hold others.
var sections = []string{"limits", "ttl", "handoffs", "git"}

// ParseConfig reads a configuration file strictly: an unknown key is an error
// with its line and the nearest known key.
func ParseConfig(name string, b []byte) (Config, error) {
	c := Config{Name: name}
	if len(b) > maxConfig {
		return c, &ConfigError{name, 0, fmt.Sprintf("%d bytes, at most %d", len(b), maxConfig), "shorten it"}
	}
	root, err := parse(name, b)
	if err != nil {
		return c, err
	}
	for _, f := range root.fields {
		if slices.Contains(sections, f.key) {
			if f.value.kind != mapping {
				return c, &ConfigError{name, f.line, f.key + " holds several keys", "see mem config --help"}
			}
			for _, g := range f.value.fields {
				c.Values = append(c.Values, Value{f.key + "." + g.key, g.line, g.value})
			}
			continue
		}
		c.Values = append(c.Values, Value{f.key, f.line, f.value})
	}
	for _, v := range c.Values {
		if _, ok := setters[v.Key]; !ok {
			return c, &ConfigError{name, v.Line, fmt.Sprintf("unknown key %q", v.Key), fmt.Sprintf("did you mean %q? mem config lists every key", Nearest(v.Key, Keys()))}
		}
		// Each value is checked here, on scratch rules, so that a file is
		// refused whole whoever may use it.
		scratch := Rules{Location: time.UTC}
		scratch.Note = "{date}.md"
		if err := c.set(&scratch, v); err != nil {
			return c, err
		}
	}
	return c, c.checkNames()
}

func (c Config) set(r *Rules, v Value) error {
	if err := setters[v.Key](r, v.Node); err != nil {
		return &ConfigError{c.Name, v.Line, v.Key + ": " + err.Error(), "mem config shows the value in force"}
	}
	return nil
}

func (c Config) checkNames() error {
	for _, v := range c.Values {
		switch v.Key {
		case "layout":
			if v.Node.text != "auto" && !slices.Contains(Layouts(), v.Node.text) {
				return &ConfigError{c.Name, v.Line, fmt.Sprintf("unknown layout %q", v.Node.text), "one of auto, " + strings.Join(Layouts(), ", ")}
			}
		case "timezone":
			if _, err := Zone(v.Node.text); err != nil {
				return &ConfigError{c.Name, v.Line, "timezone: " + err.Error(), "a name such as Europe/Berlin"}
			}
		}
	}
	return nil
}

// Get returns a key's text, for the keys that are resolved first.
func (c Config) Get(key string) (string, bool) {
	for _, v := range c.Values {
		if v.Key == key {
			return v.Node.text, true
		}
	}
	return "", false
}

// Guarded lists the keys in the file that count only after mem trust.
func (c Config) Guarded() []string {
	var out []string
	for _, v := range c.Values {
		if isGuarded(v) {
			out = append(out, v.Key)
		}
	}
	return out
}

func isGuarded(v Value) bool {
	if v.Key == "projects" {
		for _, f := range v.Node.fields {
			if outside(f.value.text) {
				return true
			}
		}
		return false
	}
	if v.Key == "git.commit" && v.Node.text == "false" {
		return false
	}
	return slices.Contains(guarded, v.Key)
}

func outside(p string) bool {
	return strings.HasPrefix(p, "~") || path.IsAbs(p) || !fs.ValidPath(path.Clean(p)) || strings.ContainsAny(p, `\:`)
}

// Zone returns a time zone by its IANA name. Never a silent UTC.
func Zone(name string) (*time.Location, error) {
	if name == "" || name == "Local" {
		return nil, errors.New("no time zone named")
	}
	loc, err := time.LoadLocation(name)
	if err != nil {
		return nil, fmt.Errorf("unknown time zone %q", name)
	}
	return loc, nil
}

func (n node) string(to *string) error {
	if n.kind != scalar {
		return errors.New("is not a single value")
	}
	*to = n.text
	return nil
}

func (n node) bool(to *bool) error {
	switch n.text {
	case "true":
		*to = true
	case "false":
		*to = false
	default:
		return fmt.Errorf("%q is neither true nor false", n.text)
	}
	return nil
}

func (n node) positive(to *int) error {
	v, err := strconv.Atoi(n.text)
	if err != nil || v < 1 || v > 1<<30 {
		return fmt.Errorf("%q is not a number of 1 or more", n.text)
	}
	*to = v
	return nil
}

func (n node) hot(r *Rules, unit string) error {
	if err := n.positive(&r.Hot.Max); err != nil {
		return err
	}
	r.Hot.Unit = unit
	return nil
}

func (n node) duration(to *time.Duration) error {
	d, err := ParseAge(n.text)
	if err != nil {
		return err
	}
	*to = d
	return nil
}

// ParseAge reads an age: 30 or 30d (days), 4w, 2h. The least is one hour.
func ParseAge(s string) (time.Duration, error) {
	bad := fmt.Errorf("%q is not an age such as 30d, 4w or 2h", s)
	unit, digits := 24*time.Hour, s
	for suffix, u := range map[string]time.Duration{"h": time.Hour, "d": 24 * time.Hour, "w": 7 * 24 * time.Hour} {
		if head, ok := strings.CutSuffix(s, suffix); ok {
			unit, digits = u, head
		}
	}
	v, err := strconv.Atoi(digits)
	if err != nil || v < 1 || v > 36500 || strings.HasPrefix(digits, "+") {
		return 0, bad
	}
	return time.Duration(v) * unit, nil
}

func (n node) strings(to *[]string) error {
	if n.kind != sequence {
		return errors.New("is not a list")
	}
	out := []string{}
	for _, i := range n.items {
		if i.kind != scalar || i.text == "" {
			return errors.New("holds something that is not a text")
		}
		out = append(out, i.text)
	}
	*to = out
	return nil
}

func setNote(r *Rules, n node) error {
	p := n.text
	if strings.Count(p, "{date}") != 1 || !strings.HasSuffix(p, "{date}.md") || outside(p) || strings.HasPrefix(p, ".") || strings.Contains(p, "/.") {
		return fmt.Errorf("%q is not a path in the workspace that ends in {date}.md", p)
	}
	r.Note = path.Clean(p)
	if dir := path.Dir(r.Note); !slices.Contains(r.Notes, dir) {
		r.Notes = append(slices.Clone(r.Notes), dir)
	}
	return nil
}

func setTags(r *Rules, n node) error {
	if n.kind != mapping {
		return errors.New("is not a list of tags by category")
	}
	r.Tags = map[string][]string{}
	for _, f := range n.fields {
		var list []string
		if err := f.value.strings(&list); err != nil {
			return fmt.Errorf("%s %w", f.key, err)
		}
		r.Tags[f.key] = list
	}
	return nil
}

// Severities of a health check, and its absence.
var severities = []string{"fail", "warn", "info", "off"}

func setChecks(r *Rules, n node) error {
	if n.kind != mapping {
		return errors.New("is not a list of severities by check")
	}
	all := map[string]string{}
	for k, v := range r.Checks {
		all[k] = v
	}
	for _, f := range n.fields {
		if f.value.kind != scalar || !slices.Contains(severities, f.value.text) {
			return fmt.Errorf("%s is none of %s", f.key, strings.Join(severities, ", "))
		}
		all[f.key] = f.value.text
	}
	r.Checks = all
	return nil
}

func setProjects(r *Rules, n node) error {
	if n.kind != mapping {
		return errors.New("is not a list of directories by name")
	}
	r.Projects = map[string]string{}
	for _, f := range n.fields {
		if f.value.kind != scalar || f.value.text == "" {
			return fmt.Errorf("%s is not a directory", f.key)
		}
		r.Projects[f.key] = f.value.text
	}
	return nil
}

func setDiscover(r *Rules, n node) error {
	if n.kind != sequence {
		return errors.New("is not a list")
	}
	r.Handoffs.Discover = nil
	for _, i := range n.items {
		d := Discover{Depth: 4, Promote: "all"}
		for _, f := range i.fields {
			var err error
			switch f.key {
			case "root":
				err = f.value.string(&d.Root)
			case "depth":
				err = f.value.positive(&d.Depth)
			case "promote":
				if d.Promote = f.value.text; !slices.Contains([]string{"none", "cards", "all"}, d.Promote) {
					err = fmt.Errorf("promote is none, cards or all, not %q", d.Promote)
				}
			default:
				err = fmt.Errorf("unknown key %q (root, depth, promote)", f.key)
			}
			if err != nil {
				return err
			}
		}
		if d.Root == "" {
			return errors.New("an entry names no root")
		}
		r.Handoffs.Discover = append(r.Handoffs.Discover, d)
	}
	return nil
}

// nearest is the known word with the smallest edit distance.
// Nearest returns the known name that is most like s; of dotted ones also by
// their last part.
func Nearest(s string, known []string) string {
	best, least := "", 1<<30
	for _, k := range known {
		d := distance(s, k)
		if _, leaf, ok := strings.Cut(k, "."); ok {
			d = min(d, distance(s, leaf))
		}
		if d < least {
			best, least = k, d
		}
	}
	return best
}

func distance(a, b string) int {
	prev := make([]int, len(b)+1)
	for j := range prev {
		prev[j] = j
	}
	for i := range len(a) {
		cur := make([]int, len(b)+1)
		cur[0] = i + 1
		for j := range len(b) {
			cost := 1
			if a[i] == b[j] {
				cost = 0
			}
			cur[j+1] = min(prev[j]+cost, prev[j+1]+1, cur[j]+1)
		}
		prev = cur
	}
	return prev[len(b)]
}

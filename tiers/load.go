package tiers

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"time"
)

// Sources are where a workspace's rules come from.
type Sources struct {
	Memory  fs.FS          // the workspace, read
	Mem     *Config        // its mem.yaml, or nil
	User    *Config        // the user's own configuration, or nil
	Trusted bool           // mem.yaml may use guarded keys
	Zone    *time.Location // the process's time zone
}

// Setting is one effective value and where it came from.
type Setting struct {
	Key, Value, From string
	Ignored          string // why a configured value does not count
}

// Load returns the effective rules.
func Load(s Sources) (Rules, error) {
	name, why, err := s.layout()
	if err != nil {
		return Rules{}, err
	}
	l := rules.Layouts[name]
	l.Name = name
	hours := func(key string) time.Duration { return time.Duration(rules.TTL[key]) * time.Hour }
	r := Rules{
		Layout: l, Why: why, Location: s.Zone, Limits: rules.Limits, Tags: rules.Tags,
		TTL: TTLs{
			Notes: time.Duration(l.TTL) * time.Hour, Lessons: hours("lessons"), Verified: hours("verified"),
			AbandonedBuffer: hours("abandoned_buffer"), Processed: hours("processed"),
		},
	}
	for _, c := range s.configs() {
		for _, v := range c.Values {
			if s.ignored(c, v) {
				continue
			}
			if err := c.set(&r, v); err != nil {
				return r, err
			}
		}
		if z, ok := c.Get("timezone"); ok {
			if r.Location, err = Zone(z); err != nil {
				return r, err
			}
		}
	}
	return r, nil
}

func (s Sources) configs() []*Config {
	var out []*Config
	for _, c := range []*Config{s.User, s.Mem} {
		if c != nil {
			out = append(out, c)
		}
	}
	return out
}

func (s Sources) ignored(c *Config, v Value) bool {
	return c == s.Mem && !s.Trusted && isGuarded(v)
}

// Untrusted lists the keys of mem.yaml that do not count until mem trust.
func (s Sources) Untrusted() []string {
	if s.Mem == nil || s.Trusted {
		return nil
	}
	return s.Mem.Guarded()
}

func (s Sources) layout() (name, why string, err error) {
	for _, c := range []*Config{s.Mem, s.User} {
		if c == nil {
			continue
		}
		if v, ok := c.Get("layout"); ok && v != "auto" {
			return v, "layout: " + v + " in " + c.Name, nil
		}
	}
	return DetectLayout(s.Memory)
}

// DetectLayout tells which layout a directory has, and why.
func DetectLayout(m fs.FS) (name, why string, err error) {
	for _, d := range rules.Detect {
		ok, err := d.fits(m)
		if err != nil {
			return "", "", err
		}
		if ok {
			return d.Layout, d.Why, nil
		}
	}
	return "", "", errors.New("no layout fits")
}

func (d Detect) fits(m fs.FS) (bool, error) {
	for _, name := range d.Have {
		if _, err := fs.Stat(m, name); errors.Is(err, fs.ErrNotExist) {
			return false, nil
		} else if err != nil {
			return false, err
		}
	}
	if d.Buffer {
		b, err := fs.ReadFile(m, rules.Layouts[d.Layout].Buffer.File)
		if err != nil || !bytes.HasPrefix(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")), []byte("# Working Buffer")) {
			return false, nil //nolint:nilerr // a buffer that cannot be read is no evidence
		}
	}
	if d.Notes {
		entries, err := fs.ReadDir(m, "memory")
		if err != nil {
			return false, nil //nolint:nilerr // memory may be a file
		}
		return slices.ContainsFunc(entries, func(e fs.DirEntry) bool {
			_, ok := NoteDay(e.Name())
			return ok
		}), nil
	}
	return true, nil
}

// Settings lists every effective value with its origin, sorted by key.
func (s Sources) Settings(r Rules) []Setting {
	from, ignored := map[string]string{}, map[string]string{}
	for _, c := range s.configs() {
		for _, v := range c.Values {
			at := fmt.Sprintf("%s:%d", c.Name, v.Line)
			if s.ignored(c, v) {
				ignored[v.Key] = at + " is not trusted: mem trust"
				continue
			}
			from[v.Key] = at
		}
	}
	var out []Setting
	for key, value := range r.values() {
		o := from[key]
		if o == "" {
			o = "layout " + r.Name
			if key == "layout" {
				o = r.Why
			}
			if key == "timezone" {
				o = "the system's time zone"
			}
		}
		out = append(out, Setting{key, value, o, ignored[key]})
	}
	sort.Slice(out, func(i, j int) bool { return out[i].Key < out[j].Key })
	return out
}

func (r Rules) values() map[string]string {
	hot := func(unit string) string {
		if r.Hot.Unit == unit {
			return fmt.Sprint(r.Hot.Max)
		}
		return "-"
	}
	list := func(l []string) string { return "[" + strings.Join(l, ", ") + "]" }
	byName := func(m map[string]string) string {
		var out []string
		for k, v := range m {
			out = append(out, k+": "+v)
		}
		sort.Strings(out)
		return "{" + strings.Join(out, ", ") + "}"
	}
	tags := map[string]string{}
	for k, v := range r.Tags {
		tags[k] = list(v)
	}
	var discover []string
	for _, d := range r.Handoffs.Discover {
		discover = append(discover, fmt.Sprintf("{root: %s, depth: %d, promote: %s}", d.Root, d.Depth, d.Promote))
	}
	host := r.Handoffs.Host
	if host == "" {
		host = "-"
	}
	return map[string]string{
		"layout": r.Name, "timezone": zoneName(r.Location), "note": r.Note, "single_host": fmt.Sprint(r.SingleHost),
		"limits.hot_lines": hot("lines"), "limits.hot_characters": hot("characters"), "limits.hot_bytes": hot("bytes"),
		"limits.buffer_lines": fmt.Sprint(r.Limits.BufferLines), "limits.open_questions": fmt.Sprint(r.Limits.OpenQuestions),
		"ttl.notes": Age(r.TTL.Notes), "ttl.lessons": Age(r.TTL.Lessons), "ttl.verified": Age(r.TTL.Verified),
		"ttl.abandoned_buffer": Age(r.TTL.AbandonedBuffer), "ttl.processed": Age(r.TTL.Processed),
		"tags": byName(tags), "handoffs.host": host, "handoffs.inboxes": list(r.Handoffs.Inboxes), "handoffs.discover": list(discover),
		"projects": byName(r.Projects), "checks": byName(r.Checks), "extractor": list(r.Extractor), "git.commit": fmt.Sprint(r.GitCommit),
	}
}

func zoneName(l *time.Location) string {
	if l == time.Local {
		return "the system's"
	}
	return l.String()
}

// Age writes a duration as ParseAge reads it; zero is "never".
func Age(d time.Duration) string {
	switch {
	case d == 0:
		return "never"
	case d%(24*time.Hour) == 0:
		return fmt.Sprintf("%dd", d/(24*time.Hour))
	}
	return fmt.Sprintf("%dh", d/time.Hour)
}

// ArchiveDir is where a daily note of a day is archived.
func (r Rules) ArchiveDir(day string) string {
	return path.Clean(strings.ReplaceAll(r.Archive, "{month}", strings.ReplaceAll(day[:7], "-", "/")))
}

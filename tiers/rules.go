// Package tiers says what the tiers and layouts of agent memory are, and every
// rule, limit and word list about them.
//
// [Load] gives the [Rules] of one workspace: the layout's, from rules.yaml,
// with what mem.yaml and the user's own configuration override. A layout is
// data: adding one needs no code outside rules.yaml.
package tiers

//go:generate go test -run TestRulesAreGenerated -update .

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/bmatcuk/doublestar/v4"
)

// Tier is a kind of memory, by how soon an agent reads it.
type Tier string

// The tiers.
const (
	HOT     Tier = "HOT"
	WARM    Tier = "WARM"
	COLD    Tier = "COLD"
	BUFFER  Tier = "BUFFER"
	SCRATCH Tier = "SCRATCH"
)

// Tiers lists the tiers in reading order.
var Tiers = []Tier{HOT, BUFFER, WARM, COLD, SCRATCH}

// Layout is how one memory system lays out its files.
type Layout struct {
	Name    string              `yaml:"-"`
	Source  string              `yaml:"source"`
	Hot     Hot                 `yaml:"hot"`
	Buffer  BufferRule          `yaml:"buffer"`
	Note    string              `yaml:"note"`      // daily note, with {date}
	Dirs    []string            `yaml:"dirs"`      // made by mem init
	Notes   []string            `yaml:"note_dirs"` // where daily notes may stand
	Closure bool                `yaml:"closure"`   // daily notes end with a closure block
	Scratch Scratch             `yaml:"scratch"`
	Archive string              `yaml:"archive"` // with {month}
	Review  string              `yaml:"review"`  // the review inbox
	TTL     int                 `yaml:"ttl_notes"`
	Tiers   map[string][]string `yaml:"tiers"`
	Tagged  []string            `yaml:"tagged"` // files that carry tags, and in WARM a verification date
	Checks  map[string]string   `yaml:"checks"` // health check → fail, warn, info or off, where not the usual
	Load    HostLoad            `yaml:"load"`
	Owners  map[string]string   `yaml:"owners"` // where a fact of a kind has its one home
}

// HostLoad is what the layout's host puts into a session by itself, and where
// it cuts. Zero: nothing is known of a host.
type HostLoad struct {
	Files           []string `yaml:"files"` // in this order
	FileCharacters  int      `yaml:"file_characters"`
	TotalCharacters int      `yaml:"total_characters"`
	NoteDays        int      `yaml:"note_days"` // daily notes of so many days up to today
	NoteCharacters  int      `yaml:"note_characters"`
	NotesCharacters int      `yaml:"notes_characters"` // of all notes together
	NoteBytes       int      `yaml:"note_bytes"`       // larger notes are skipped
}

// Hot is the always-loaded file and its budget.
type Hot struct {
	File string `yaml:"file"`
	Max  int    `yaml:"max"`
	Unit string `yaml:"unit"` // lines, characters, bytes
}

// BufferRule is the working buffer's file and rules.
type BufferRule struct {
	File     string `yaml:"file"` // empty: the layout has none
	Required bool   `yaml:"required"`
	Header   bool   `yaml:"header"`
}

// Scratch is where lessons are written.
type Scratch struct {
	Dir   string   `yaml:"dir"`
	Files []string `yaml:"files"`
}

// Limits on files, in the unit of their name.
type Limits struct {
	HotLines      int `yaml:"hot_lines"`
	HotCharacters int `yaml:"hot_characters"`
	HotBytes      int `yaml:"hot_bytes"`
	BufferLines   int `yaml:"buffer_lines"`
	OpenQuestions int `yaml:"open_questions"`
}

// TTLs say how long things stay where they are. Zero: for ever.
type TTLs struct {
	Notes, Lessons, Verified, AbandonedBuffer, Processed time.Duration
}

// Detect is one rule of layout: auto.
type Detect struct {
	Layout string   `yaml:"layout"`
	Have   []string `yaml:"have"`
	Buffer bool     `yaml:"buffer"` // a buffer with the canonical first line
	Notes  bool     `yaml:"notes"`  // daily notes directly in memory/
	Why    string   `yaml:"why"`
}

// File is rules.yaml as decoded.
type File struct {
	Tags   map[string][]string `yaml:"tags"`
	Limits Limits              `yaml:"limits"`
	TTL    map[string]int      `yaml:"ttl"` // hours
	// NotMemory are base names that are no memory files, Leave directories that
	// are never looked into.
	NotMemory []string `yaml:"not_memory"`
	Leave     []string `yaml:"leave"`

	Layouts map[string]Layout `yaml:"layouts"`
	Detect  []Detect          `yaml:"detect"`
}

// Rules are the effective rules of one workspace.
type Rules struct {
	Layout
	Why       string // why this layout
	Location  *time.Location
	Limits    Limits
	TTL       TTLs
	Tags      map[string][]string
	Handoffs  Handoffs
	Projects  map[string]string
	Extractor []string
	GitCommit bool
	// SingleHost allows a workspace on a network file system.
	SingleHost bool
}

// Handoffs says where handoffs come from.
type Handoffs struct {
	Host     string
	Inboxes  []string
	Discover []Discover
}

// Discover is one root that is walked for handoff inboxes.
type Discover struct {
	Root    string `yaml:"root"`
	Depth   int    `yaml:"depth"`
	Promote string `yaml:"promote"` // none, cards, all
}

// Layouts lists the layouts' names.
func Layouts() []string { return []string{"canonical", "openclaw", "sessions", "claude"} }

// Day is the local calendar day of an instant, YYYY-MM-DD.
func (r Rules) Day(at time.Time) string { return at.In(r.Location).Format(time.DateOnly) }

// NotePath is the daily note of an instant's local day.
func (r Rules) NotePath(at time.Time) string {
	return strings.ReplaceAll(r.Note, "{date}", r.Day(at))
}

// Owner reports whether a file is the one home of some kind of fact.
func (r Rules) Owner(name string) bool {
	for _, file := range r.Owners {
		pattern := strings.ReplaceAll(file, "{topic}", "*")
		if doublestar.MatchUnvalidated(pattern, name) {
			return true
		}
	}
	return false
}

// Enter reports whether a directory may hold memory: hidden ones, the review
// inbox and other tools' do not.
func (r Rules) Enter(dir string) bool {
	if dir == "." || dir == r.Scratch.Dir {
		return true
	}
	base := path.Base(dir)
	if strings.HasPrefix(base, ".") || dir == r.Review || slices.Contains(rules.Leave, base) {
		return false
	}
	return strings.Contains(dir, "/") || r.Top(dir)
}

// NotMemory reports whether a base name is no memory file's, whatever directory
// it stands in.
func NotMemory(base string) bool { return slices.Contains(rules.NotMemory, base) }

// In returns TierOf for the files of one directory: the patterns are matched
// against the directory once. tagged reports whether a file carries tags.
func (r Rules) In(dir string) func(base string) (t Tier, tagged bool) {
	type rule struct {
		tier Tier
		base string
	}
	var fits []rule
	split := func(tier Tier, pattern string) {
		d, b := path.Split(pattern)
		d = path.Clean(d)
		if d == dir || doublestar.MatchUnvalidated(d, dir) {
			fits = append(fits, rule{tier, b})
		}
	}
	if slices.Contains(r.Notes, dir) {
		fits = append(fits, rule{COLD, ""})
	}
	for _, t := range Tiers {
		for _, p := range r.Layout.Tiers[string(t)] {
			split(t, p)
		}
	}
	const carries = "tagged"
	for _, p := range r.Tagged {
		split(carries, p)
	}
	return func(base string) (tier Tier, tagged bool) {
		if !strings.HasSuffix(base, ".md") || NotMemory(base) {
			return "", false
		}
		for _, f := range fits {
			var ok bool
			switch f.base {
			case "":
				_, ok = NoteDay(base)
			case "*.md":
				ok = true
			default:
				ok = f.base == base || doublestar.MatchUnvalidated(f.base, base)
			}
			switch {
			case !ok:
			case f.tier == carries:
				tagged = true
			case tier == "":
				tier = f.tier
			}
		}
		return tier, tagged
	}
}

// TierOf tells which tier a path belongs to; "" for none. A daily note is COLD
// wherever the layout keeps it.
func (r Rules) TierOf(name string) Tier {
	if _, ok := r.NoteDay(name); ok {
		return COLD
	}
	for _, t := range Tiers {
		for _, pattern := range r.Layout.Tiers[string(t)] {
			if doublestar.MatchUnvalidated(pattern, name) {
				return t
			}
		}
	}
	return ""
}

// NoteDay tells the day of a daily note from its path. The file name is the
// date; text inside never overrides it.
func (r Rules) NoteDay(name string) (string, bool) {
	dir := path.Dir(name)
	for _, d := range r.Notes {
		if d == dir {
			return NoteDay(path.Base(name))
		}
	}
	return "", false
}

// NoteDay tells the day of a daily note's base name: D.md, D-suffix.md or
// D_suffix.md, D a valid calendar date.
func NoteDay(base string) (string, bool) {
	stem, ok := strings.CutSuffix(base, ".md")
	if !ok || len(stem) < 10 {
		return "", false
	}
	day, rest := stem[:10], stem[10:]
	if !ValidDay(day) {
		return "", false
	}
	if rest != "" && (len(rest) < 2 || rest[0] != '-' && rest[0] != '_') {
		return "", false
	}
	return day, true
}

// ValidDay reports whether s is a calendar day, YYYY-MM-DD.
func ValidDay(s string) bool {
	if len(s) != 10 || s[4] != '-' || s[7] != '-' {
		return false
	}
	n := [3]int{}
	for i, part := range [3]string{s[:4], s[5:7], s[8:]} {
		for k := range len(part) {
			if part[k] < '0' || part[k] > '9' {
				return false
			}
			n[i] = n[i]*10 + int(part[k]-'0')
		}
	}
	y, m, d := n[0], n[1], n[2]
	if m < 1 || m > 12 || d < 1 {
		return false
	}
	last := [...]int{31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31}[m-1]
	if m == 2 && y%4 == 0 && (y%100 != 0 || y%400 == 0) {
		last = 29
	}
	return d <= last
}

// Top reports whether some pattern of the layout starts with this directory of
// the workspace's root.
func (r Rules) Top(dir string) bool {
	for _, patterns := range r.Layout.Tiers {
		for _, p := range patterns {
			if head, _, ok := strings.Cut(p, "/"); ok && head == dir {
				return true
			}
		}
	}
	for _, d := range r.Notes {
		if head, _, _ := strings.Cut(d, "/"); head == dir {
			return true
		}
	}
	return false
}

// Package session keeps the logs of the sessions layout: what each exchange
// brought, the durable facts, and their promotion.
//
// [Last] finds an exchange in a transcript, [Record] plans what exchanges add
// to the logs, [Promote] the archival of old logs and the choice of facts.
// Calling an extractor is the caller's.
package session

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// SpoolDir is where exchanges wait until they stand in a log.
const SpoolDir = ".mem/spool"

// Spooled is an exchange that waits.
type Spooled struct {
	Exchange
	At       time.Time `json:"at"`
	Host     string    `json:"host"`
	Session  string    `json:"session"`
	Project  string    `json:"project"`
	Said     int       `json:"said"` // bytes of the agent's side, whole
	Attempts int       `json:"attempts"`
	Error    string    `json:"error,omitempty"` // of the last attempt

	Name string `json:"-"` // its file
	Raw  []byte `json:"-"` // its text as it stands on disk
}

// maxText bounds what is kept of one side of an exchange, in bytes: its end is
// where the result stands.
const maxText = 64 << 10

// Key names an exchange: the same one, recorded again, is the same file. Where
// the host names the person's message that is enough: what the agent says
// after it may still grow.
func (s Spooled) Key() string {
	text := s.ID
	if text == "" {
		text = s.Human + "\x00" + s.Assistant
	}
	return plan.Hash([]byte(s.Host + "\x00" + s.Session + "\x00" + text))[:24]
}

// Bound cuts an exchange to what is kept.
func Bound(e Exchange) Exchange {
	cut := func(s string) string {
		if len(s) > maxText {
			s = "…" + strings.ToValidUTF8(s[len(s)-maxText:], "")
		}
		return s
	}
	e.Human, e.Assistant = cut(e.Human), cut(e.Assistant)
	return e
}

// Spool lists the exchanges that wait, oldest first. What cannot be read is
// named in trouble.
func Spool(m fs.FS) (list []Spooled, trouble []string, err error) {
	entries, err := fs.ReadDir(m, SpoolDir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".json") {
			continue
		}
		name := path.Join(SpoolDir, e.Name())
		b, err := fs.ReadFile(m, name)
		if errors.Is(err, fs.ErrNotExist) {
			continue // recorded since
		}
		s := Spooled{Name: name, Raw: slices.Clone(b)}
		if err == nil {
			err = json.Unmarshal(b, &s)
		}
		if err != nil {
			trouble = append(trouble, fmt.Sprintf("%s: %v", name, err))
			continue
		}
		list = append(list, s)
	}
	slices.SortStableFunc(list, func(a, b Spooled) int { return a.At.Compare(b.At) })
	return list, trouble, nil
}

// recorded is where the keys of a month's exchanges are kept that stand in a
// log.
func recorded(at time.Time) string {
	return ".mem/session/" + at.UTC().Format("2006-01") + ".txt"
}

// Known reports whether an exchange was recorded, and how much of the agent's
// side, in bytes: a host may tell of the same one again, with more of it.
func Known(m fs.FS, at time.Time, key string) (said int, ok bool) {
	for _, t := range []time.Time{at, at.AddDate(0, 0, -28)} {
		b, err := fs.ReadFile(m, recorded(t))
		if err != nil {
			continue
		}
		for line := range strings.Lines(string(b)) {
			rest, fits := strings.CutPrefix(line, "- "+key+" ")
			if n, err := strconv.Atoi(strings.TrimSpace(rest)); fits && err == nil {
				said, ok = max(said, n), true
			}
		}
	}
	return said, ok
}

// Projects are the projects of a workspace: their names, and where each one's
// memory is. There is always one named root.
func Projects(rules tiers.Rules) map[string]string {
	out := map[string]string{Root: path.Dir(rules.Hot.File)}
	for name, dir := range rules.Projects {
		out[name] = strings.TrimSuffix(dir, "/")
	}
	return out
}

// Root is the project that everything belongs to that belongs to no other.
const Root = "root"

// Note is one exchange as it goes into the logs.
type Note struct {
	Spooled
	Answer Answer // nil: there is no extractor, and it goes in as it was said
	Raw    []byte // what the extractor said
	// Elsewhere: what it brings its own project stands in a log outside.
	Elsewhere bool
}

// doneMark is what a person says to settle what was to be followed up.
const doneMark = "OK-done"

// Done reports whether a person settles open items, and which words these hold.
func Done(human string) (words string, ok bool) {
	rest, ok := strings.CutPrefix(strings.TrimSpace(human), doneMark)
	if !ok {
		return "", false
	}
	if rest == "" || rest == "." || rest == "!" {
		return "", true
	}
	words, ok = strings.CutPrefix(rest, ":")
	return strings.TrimSpace(words), ok
}

// Bounds of an exchange that goes in as it was said, in characters.
const (
	maxHuman     = 300
	maxAssistant = 600
)

// ops are what a note adds to a project's log.
func (n Note) ops(project string, answered Sections) entry.LogOp {
	op := entry.LogOp{Items: map[string][]string{}}
	for k, items := range answered {
		if k != Long {
			op.Items[k] = items
		}
	}
	if project != n.Project || n.Elsewhere {
		return op
	}
	op.Words, op.Done = Done(n.Human)
	if n.Answer == nil {
		var parts []string
		if h := entry.OneItem(n.Human, maxHuman); h != "" && !op.Done {
			parts = append(parts, "Person: "+h)
		}
		if a := entry.OneItem(n.Assistant, maxAssistant); a != "" {
			parts = append(parts, "Agent: "+a)
		}
		if len(parts) > 0 {
			op.Items["context"] = []string{strings.Join(parts, " — ")}
		}
	}
	return op
}

// Record plans what exchanges add to the logs of the projects that dirs lists
// (name → directory in the workspace), and their way out of the spool.
func Record(m fs.FS, rules tiers.Rules, notes []Note, dirs map[string]string) (plan.Plan, error) {
	p := plan.Plan{Command: "session record"}
	logs, longs := map[string]*entry.LogArg{}, map[string]*entry.LongArg{}
	var order, longOrder []string
	for _, n := range notes {
		day := rules.Day(n.At)
		names := []string{n.Project}
		for name := range n.Answer {
			if name != n.Project {
				names = append(names, name)
			}
		}
		slices.Sort(names[1:])
		for _, name := range names {
			dir, ok := dirs[name]
			if !ok {
				continue
			}
			op := n.ops(name, n.Answer[name])
			if len(op.Items) > 0 || op.Done {
				file := path.Join(dir, "logs", day+".md")
				if logs[file] == nil {
					logs[file] = &entry.LogArg{Day: day}
					order = append(order, file)
				}
				logs[file].Ops = append(logs[file].Ops, op)
			}
			if facts := n.Answer[name][Long]; len(facts) > 0 {
				file := path.Join(dir, path.Base(rules.Hot.File))
				if longs[file] == nil {
					longs[file] = &entry.LongArg{}
					longOrder = append(longOrder, file)
				}
				longs[file].Days = append(longs[file].Days, entry.DayFacts{Day: day, Facts: facts})
			}
		}
		debug(m, &p, dirs, n)
	}
	for _, file := range order {
		if err := edit(m, &p, file, entry.SessionLog, logs[file]); err != nil {
			return p, err
		}
	}
	for _, file := range longOrder {
		if err := edit(m, &p, file, entry.LongMemory, longs[file]); err != nil {
			return p, err
		}
	}
	return p, settle(m, &p, notes)
}

// settle takes the exchanges out of the spool, and remembers them.
func settle(m fs.FS, p *plan.Plan, notes []Note) error {
	keys := map[string]string{} // file → lines
	for _, n := range notes {
		keys[recorded(n.At)] += fmt.Sprintf("- %s %d\n", n.Key(), n.Said)
		if n.Name != "" {
			p.Steps = append(p.Steps, plan.Step{Kind: plan.Trash, Path: n.Name, Before: plan.StateOf(n.Spooled.Raw)})
		}
	}
	for _, file := range slices.Sorted(maps.Keys(keys)) {
		old, err := read(m, file)
		if err != nil {
			return err
		}
		p.Steps = append(p.Steps, plan.Step{Kind: plan.Append, Path: file, Before: plan.StateOf(old), Place: entry.AtLine, Text: []byte(keys[file])})
	}
	return nil
}

// edit plans a change that a place computes, if it changes anything. A file
// that already has it twice in one plan is changed once.
func edit(m fs.FS, p *plan.Plan, file, place string, arg any) error {
	text, err := json.Marshal(arg)
	if err != nil {
		return err
	}
	if slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Path == file }) {
		return fmt.Errorf("%s is changed twice in one plan", file)
	}
	old, err := read(m, file)
	if err != nil {
		return err
	}
	next, _, err := entry.Place(entry.Change{Place: place, Text: text}, old)
	if err != nil {
		return fmt.Errorf("%s: %w", file, err)
	}
	if old != nil && string(next) == string(old) {
		return nil
	}
	p.Steps = append(p.Steps, plan.Step{Kind: plan.Edit, Path: file, Before: plan.StateOf(old), Place: place, Text: text})
	return nil
}

// debug keeps what an extractor said, out of git's sight.
func debug(m fs.FS, p *plan.Plan, dirs map[string]string, n Note) {
	dir, ok := dirs[n.Project]
	if !ok || len(n.Raw) == 0 {
		return
	}
	dir = path.Join(dir, "logs", ".debug")
	create := func(name string, text []byte) {
		if _, err := fs.Lstat(m, name); errors.Is(err, fs.ErrNotExist) && !slices.ContainsFunc(p.Steps, func(s plan.Step) bool { return s.Path == name }) {
			p.Steps = append(p.Steps, plan.Step{Kind: plan.Create, Path: name, Before: plan.StateOf(nil), Content: text})
		}
	}
	create(path.Join(dir, ".gitignore"), []byte("*\n"))
	create(path.Join(dir, plan.Stamp(n.At)+"-"+n.Key()[:12]+".json"), n.Raw)
}

// read reads a file of the memory; nil where there is none.
func read(m fs.FS, name string) ([]byte, error) {
	b, err := fs.ReadFile(m, name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err == nil && b == nil {
		b = []byte{}
	}
	return b, err
}

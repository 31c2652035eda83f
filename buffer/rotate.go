package buffer

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Options of a rotation.
type Options struct {
	Force bool // below the limit too
	Soft  bool // not while a session is active
}

// Decision is what Rotate found, beside its plan.
type Decision struct {
	Lines, Limit int
	Empty        bool
	Deferred     string // why a soft rotation waits
	Note         string
}

// ErrInterrupted says that an earlier rotation has to be recovered first.
var ErrInterrupted = errors.New("an earlier rotation was interrupted")

// blockOverhead bounds what a block adds to the body, in bytes.
const blockOverhead = 512

// Rotate plans a rotation's first half: a fresh buffer takes the place of the
// full one, which waits as .rotating. The plan is empty where there is nothing
// to rotate. The note is fixed here, by the run's day.
func Rotate(m fs.FS, rules tiers.Rules, now time.Time, o Options) (plan.Plan, Decision, error) {
	s, err := Inspect(m, rules)
	d := Decision{Lines: s.Buffer.Lines, Limit: rules.Limits.BufferLines, Note: rules.NotePath(now)}
	if err != nil {
		return plan.Plan{}, d, err
	}
	if s.Interrupted() {
		return plan.Plan{}, d, ErrInterrupted
	}
	d.Empty = !s.Present || s.Buffer.Empty()
	if d.Empty || !o.Force && d.Lines <= d.Limit {
		return plan.Plan{}, d, nil
	}
	if o.Soft {
		if session := s.Session(rules, now); session.Active {
			d.Deferred = session.Reason
			return plan.Plan{}, d, nil
		}
	}
	if _, _, err := fitNote(m, d.Note, len(s.Buffer.Raw)+blockOverhead); err != nil {
		return plan.Plan{}, d, err
	}
	p := plan.Plan{
		Command: "rotate", Phase: plan.PhaseSeal, Sign: s.Path + lockSuffix,
		Facts: plan.Facts{"note": d.Note, "day": rules.Day(now)},
		Steps: []plan.Step{{
			Kind: plan.Seal, Path: s.Path, To: s.Path + rotatingSuffix, Before: plan.StateOf(s.Buffer.Raw),
			Content: entry.Fresh(now.In(rules.Location), s.Buffer),
		}},
	}
	return p, d, nil
}

// Next plans a rotation's second half from what was sealed: the text into the
// note, the sealed file to the trash.
func Next(m fs.FS, rules tiers.Rules, seal plan.Plan, sealed []byte) (plan.Plan, error) {
	note, _ := seal.Facts["note"].(string)
	day, _ := seal.Facts["day"].(string)
	if note == "" || day == "" {
		return plan.Plan{}, fmt.Errorf("plan %s names no note", seal.ID)
	}
	if sealed == nil {
		sealed = []byte{}
	}
	if err := entry.CheckText(sealed, entry.MaxNote); err != nil {
		return plan.Plan{}, &UnfitError{seal.Steps[0].Path, err.Error(), "mend the .pending file, then run mem recover"}
	}
	return landing(m, rules, day, note, seal.Steps[0].To, seal.Steps[0].Path, sealed, sealed)
}

// landing plans the way of set-aside text into a note: text is what of raw is
// not in any note yet.
func landing(m fs.FS, rules tiers.Rules, day, note, from, origin string, raw, text []byte) (plan.Plan, error) {
	b := entry.ParseBuffer(text)
	p := plan.Plan{Facts: plan.Facts{"note": note, "day": day, "lines": b.Lines}}
	if len(text) > 0 && !b.Empty() {
		_, old, err := fitNote(m, note, len(text)+blockOverhead)
		if err != nil {
			return plan.Plan{}, err
		}
		p.Steps = append(p.Steps, plan.Step{
			Kind: plan.Append, Path: note, Before: plan.StateOf(old), Place: entry.AboveClosure,
			Text: entry.Block(text, plan.Hash(text), rules.Location, entry.EOL(old)),
			Seed: entry.NewNote(day, rules.Closure),
		})
	} else {
		p.Facts["lines"] = 0
	}
	p.Steps = append(p.Steps, plan.Step{Kind: plan.Trash, Path: from, Origin: origin, Before: plan.StateOf(raw)})
	return p, nil
}

// Leftover is one thing that Recover deals with.
type Leftover struct {
	Path   string
	Action string
}

// Recover plans the mending of the first leftover it finds, in this order:
// .pending files, oldest first; .rotating; a missing buffer; the sentinel. It
// is called again until the plan is empty. Open transactions are finished
// before it is called, so whatever stands under these names has no record:
// only a block whose hash and body fit proves that text is in a note already.
func Recover(m fs.FS, rules tiers.Rules, now time.Time, skip func(string) bool) (plan.Plan, Leftover, error) {
	s, err := Inspect(m, rules)
	if errors.Is(err, ErrNoBuffer) {
		return plan.Plan{}, Leftover{}, nil
	}
	var unfit *UnfitError
	if err != nil && !errors.As(err, &unfit) {
		return plan.Plan{}, Leftover{}, err
	}
	if unfit != nil && !skip(s.Path) {
		return plan.Plan{}, Leftover{Path: s.Path}, err
	}
	for _, name := range append(s.Pending, s.Rotating) {
		if name == "" || skip(name) {
			continue
		}
		p, l, err := recoverText(m, rules, now, s.Path, name)
		p.Command = "recover"
		return p, l, err
	}
	dir, err := fs.Stat(m, path.Dir(s.Path))
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return plan.Plan{}, Leftover{}, err
	}
	if !s.Present && err == nil && dir.IsDir() && (rules.Buffer.Required || s.Interrupted()) && !skip(s.Path) {
		fresh := entry.Fresh(now.In(rules.Location), entry.Buffer{})
		return plan.Plan{Command: "recover", Steps: []plan.Step{{
			Kind: plan.Create, Path: s.Path, Before: plan.StateOf(nil), Content: fresh,
		}}}, Leftover{s.Path, "created a fresh working buffer"}, nil
	}
	if s.Lock != "" && !skip(s.Lock) {
		l := Leftover{s.Lock, "removed a stale sentinel"}
		raw, err := fs.ReadFile(m, s.Lock)
		if err != nil {
			return plan.Plan{}, l, unfitName(m, s.Lock, err)
		}
		return plan.Plan{Command: "recover", Steps: []plan.Step{{
			Kind: plan.Trash, Path: s.Lock, Before: plan.StateOf(append([]byte{}, raw...)),
		}}}, l, nil
	}
	return plan.Plan{}, Leftover{}, nil
}

func unfitName(m fs.FS, name string, err error) error {
	if info, serr := fs.Stat(m, name); serr == nil && !info.Mode().IsRegular() {
		return &UnfitError{name, "is " + kind(info.Mode()) + ", not a regular file", "move it away by hand"}
	}
	return err
}

func recoverText(m fs.FS, rules tiers.Rules, now time.Time, file, name string) (plan.Plan, Leftover, error) {
	l := Leftover{Path: name}
	raw, err := read(m, name)
	if err != nil {
		return plan.Plan{}, l, err
	}
	if raw == nil {
		return plan.Plan{}, l, fmt.Errorf("%s: %w", name, fs.ErrNotExist)
	}
	rest := raw
	if !entry.ParseBuffer(raw).Empty() {
		notes, err := activeNotes(m, rules)
		if err != nil {
			return plan.Plan{}, l, err
		}
		rest = entry.Rest(raw, notes, plan.Hash)
	}
	note := rules.NotePath(now)
	p, err := landing(m, rules, rules.Day(now), note, name, file, raw, rest)
	switch {
	case err != nil:
	case len(p.Steps) == 2:
		l.Action = "brought its text to " + note
	case len(rest) < len(raw):
		l.Action = "its text was in a note already"
	default:
		l.Action = "held only a template"
	}
	return p, l, err
}

// activeNotes reads every daily note that is not archived: midnight or another
// time zone may lie between a rotation and its recovery.
func activeNotes(m fs.FS, rules tiers.Rules) ([][]byte, error) {
	var out [][]byte
	for _, dir := range rules.Notes {
		entries, err := fs.ReadDir(m, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			if _, ok := tiers.NoteDay(e.Name()); !ok || !e.Type().IsRegular() {
				continue
			}
			b, err := fs.ReadFile(m, path.Join(dir, e.Name()))
			if err != nil {
				return nil, err
			}
			if strings.Contains(string(b), entry.BlockEnd) {
				out = append(out, b)
			}
		}
	}
	return out, nil
}

func marshal(v any) ([]byte, error) { return json.Marshal(v) }

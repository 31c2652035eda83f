package handoff

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Draft is one thing that waits in the review inbox.
type Draft struct {
	ID     string // how people name it
	Path   string
	Reason string // a code
	Target string // where it wanted to go; "" where that is not known
	At     string // stamp
	Text   []byte // what was kept, without the line that says why
	// Quarantined is where the text is, where that is not Path.
	Quarantined string
	Handoff     bool // the text is a handoff; otherwise it is the target's text
	Lost        bool // it was quarantined, and is not there any more
}

var draftName0 = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`^(\d{8}T\d{6}(?:\.\d+)?Z)-([0-9a-f]{12})-`)
})

// Drafts lists what waits in the review inbox, oldest first. Files that are no
// drafts of ours are named in strange.
func Drafts(m fs.FS, rules tiers.Rules) (list []Draft, strange []string, err error) {
	entries, err := fs.ReadDir(m, rules.Review)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil, nil
	}
	if err != nil {
		return nil, nil, err
	}
	for _, e := range entries {
		name := path.Join(rules.Review, e.Name())
		match := draftName0().FindStringSubmatch(e.Name())
		if match == nil || !e.Type().IsRegular() {
			if !strings.HasPrefix(e.Name(), ".") {
				strange = append(strange, name)
			}
			continue
		}
		b, err := fs.ReadFile(m, name)
		if err != nil {
			strange = append(strange, name)
			continue
		}
		d := Draft{ID: match[2], Path: name, At: match[1]}
		d.read(m, b)
		list = append(list, d)
	}
	return list, strange, nil
}

// read takes the head line of a draft apart.
func (d *Draft) read(m fs.FS, b []byte) {
	head, rest, ok := bytes.Cut(b, []byte("\n"))
	if !ok || !bytes.HasPrefix(head, []byte("<!-- mem:review ")) {
		d.Text = b
		return
	}
	for _, f := range strings.Fields(strings.Trim(string(head), "<>! -")) {
		k, v, _ := strings.Cut(f, "=")
		switch k {
		case "reason":
			d.Reason = v
		case "target":
			if v != "none" && v != "unknown.md" {
				d.Target = v
			}
		case "tx":
			d.Handoff = false
		}
	}
	d.Handoff = !bytes.Contains(head, []byte(" tx="))
	d.Text = rest
	kept := path.Join(Quarantine, path.Base(d.Path))
	if q, err := fs.ReadFile(m, kept); err == nil {
		d.Quarantined = kept
		_, d.Text, _ = bytes.Cut(q, []byte("\n"))
	} else if string(rest) == stub+d.ID+"\n" {
		d.Text, d.Lost = nil, true
	}
}

// Accept plans what a person has decided: the draft's text goes where it
// wanted to, or merged text in its stead, and the draft to the trash.
func Accept(m fs.FS, rules tiers.Rules, d Draft, merged []byte) (plan.Plan, error) {
	target, content, whole := d.Target, d.Text, true
	if d.Lost && merged == nil {
		return plan.Plan{}, errors.New("its text is no longer in quarantine")
	}
	if d.Handoff && !d.Lost {
		var ok bool
		target, content, whole, ok = Landing(d.Text)
		docs := Batch{rules: rules}
		if ok && !docs.allowed(target) && path.Dir(target) != "memory/cards" {
			return plan.Plan{}, fmt.Errorf("%q is no document that handoffs may write", target)
		}
	}
	if target == "" {
		return plan.Plan{}, errors.New("it names no target to write")
	}
	if merged != nil {
		content, whole = merged, true
	}
	if !writable(target) {
		return plan.Plan{}, fmt.Errorf("%q is no file of the memory", target)
	}
	if err := plainParents(m, target); err != nil {
		return plan.Plan{}, err
	}
	old, err := fs.ReadFile(m, target)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case err != nil:
		return plan.Plan{}, err
	case old == nil:
		old = []byte{}
	}
	if !whole && Holds(old, content) {
		whole, content = true, old // it is there already: only the draft goes
	}
	s := plan.Step{Path: target, Before: plan.StateOf(old)}
	switch {
	case !whole:
		s.Kind, s.Place, s.Text = plan.Append, entry.AtEnd, InLines(content, old)
	case old == nil:
		s.Kind, s.Content = plan.Create, content
	default:
		s.Kind, s.Content = plan.Replace, content
	}
	p := plan.Plan{Command: "inbox accept", Facts: plan.Facts{"draft": d.Path, "id": d.ID, "target": target}}
	if old == nil || whole && !bytes.Equal(old, content) || !whole {
		p.Steps = append(p.Steps, s)
	}
	return away(m, p, d)
}

// InLines is a block with the line ends of the document that it goes to.
func InLines(block, doc []byte) []byte {
	return blockText(strings.TrimRight(string(block), "\r\n"), doc)
}

// writable reports whether a path that a draft names is one of the workspace's,
// and not git's or the engine's: drafts are files that anybody may have written.
func writable(name string) bool {
	if !fs.ValidPath(name) || !strings.HasSuffix(name, ".md") {
		return false
	}
	for part := range strings.SplitSeq(name, "/") {
		if strings.HasPrefix(part, ".") && part != ".learnings" {
			return false // hosts' and tools' own
		}
	}
	return true
}

// Reject plans a draft's way to the trash.
func Reject(m fs.FS, d Draft, reason string) (plan.Plan, error) {
	return away(m, plan.Plan{Command: "inbox reject", Facts: plan.Facts{"draft": d.Path, "id": d.ID, "reason": reason}}, d)
}

func away(m fs.FS, p plan.Plan, d Draft) (plan.Plan, error) {
	for _, name := range []string{d.Path, d.Quarantined} {
		if name == "" {
			continue
		}
		b, err := fs.ReadFile(m, name)
		if err != nil {
			return plan.Plan{}, err
		}
		p.Steps = append(p.Steps, plan.Step{Kind: plan.Trash, Path: name, Before: plan.StateOf(append([]byte{}, b...))})
	}
	return p, nil
}

package health

import (
	"errors"
	"io/fs"
	"path"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Fix plans the repairs that need no judgement and lose nothing: missing
// directories, a missing buffer, a closure block that text stands after.
// Leftovers of a crash, stale sentinels among them, are recovered before any
// plan is carried out. It never invents content.
func Fix(m fs.FS, rules tiers.Rules, now time.Time) (plan.Plan, error) {
	p := plan.Plan{Command: "health", Facts: plan.Facts{"fix": true}}
	for _, dir := range rules.Dirs {
		if _, err := fs.Stat(m, dir); errors.Is(err, fs.ErrNotExist) {
			p.Steps = append(p.Steps, plan.Step{Kind: plan.Mkdir, Path: dir})
		} else if err != nil {
			return plan.Plan{}, err
		}
	}
	if b := rules.Buffer; b.File != "" && b.Required {
		if _, err := fs.Stat(m, b.File); errors.Is(err, fs.ErrNotExist) {
			p.Steps = append(p.Steps, plan.Step{Kind: plan.Create, Path: b.File, Before: plan.StateOf(nil), Content: entry.Fresh(now.In(rules.Location), entry.Buffer{})})
		}
	}
	if !rules.Closure {
		return p, nil
	}
	for _, dir := range rules.Notes {
		entries, err := fs.ReadDir(m, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return plan.Plan{}, err
		}
		for _, e := range entries {
			if _, ok := tiers.NoteDay(e.Name()); !ok || !e.Type().IsRegular() {
				continue
			}
			name := path.Join(dir, e.Name())
			b, err := fs.ReadFile(m, name)
			if err != nil || entry.CheckText(b, entry.MaxNote) != nil {
				continue // a finding, but not one that can be mended
			}
			if c, ok := entry.FindClosure(b); ok && c.Displaced {
				p.Steps = append(p.Steps, plan.Step{Kind: plan.Edit, Path: name, Before: plan.StateOf(b), Place: entry.ClosureLast})
			}
		}
	}
	return p, nil
}

// Verify plans today's date as last_verified in the named files. The caller
// has made sure that they tell the truth.
func Verify(m fs.FS, rules tiers.Rules, now time.Time, files []string) (plan.Plan, error) {
	p := plan.Plan{Command: "verify", Facts: plan.Facts{"files": files}}
	day := rules.Day(now)
	for _, name := range files {
		b, err := fs.ReadFile(m, name)
		if err != nil {
			return plan.Plan{}, err
		}
		if h := entry.ParseHeader(b); h.Verified == day {
			continue
		}
		p.Steps = append(p.Steps, plan.Step{Kind: plan.Edit, Path: name, Before: plan.StateOf(b), Place: entry.Verified, Text: []byte(day)})
	}
	return p, nil
}

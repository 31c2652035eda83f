package main

import (
	"io/fs"
	"time"

	"github.com/tieredmem/mem/buffer"
	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/workspace"
)

// features gives the workspace what carrying out a plan needs of the features.
func features(rules tiers.Rules, at time.Time) workspace.Features {
	return workspace.Features{
		Place: place,
		Next: func(m fs.FS, seal plan.Plan, sealed []byte) (plan.Plan, error) {
			return buffer.Next(m, rules, seal, sealed)
		},
		Leftover: func(m fs.FS, skip func(string) bool) (plan.Plan, string, string, error) {
			p, l, err := buffer.Recover(m, rules, at, skip)
			return p, l.Path, l.Action, err
		},
	}
}

func place(s plan.Step, old []byte) (next, added []byte, err error) {
	switch s.Place {
	case journal.PlaceRemove:
		next, err = journal.TakeOut(old, s.Text)
		return next, nil, err
	case journal.PlaceRemoveBlock:
		next, err = journal.TakeOutBlock(old, s.Text)
		return next, nil, err
	}
	return entry.Place(entry.Change{Place: s.Place, Text: s.Text, Seed: s.Seed, Stamp: s.Stamp}, old)
}

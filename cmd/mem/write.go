package main

import (
	"errors"
	"io/fs"

	"github.com/tieredmem/mem/plan"
)

// planWrite plans a file's new content. expect is the state the caller has
// seen: a hash, plan.Absent, or "" for whatever is there now.
func planWrite(m fs.FS, name string, content []byte, expect string) (plan.Plan, error) {
	old, err := fs.ReadFile(m, name)
	if errors.Is(err, fs.ErrNotExist) {
		old, err = nil, nil
	} else if err == nil && old == nil {
		old = []byte{}
	}
	if err != nil {
		return plan.Plan{}, err
	}
	before := plan.StateOf(old)
	if expect != "" {
		before.Hash = expect
	}
	kind := plan.Replace
	if !before.Exists() {
		kind = plan.Create
	}
	if content == nil {
		content = []byte{}
	}
	return plan.Plan{Command: "write", Facts: plan.Facts{"path": name}, Steps: []plan.Step{{Kind: kind, Path: name, Before: before, Content: content}}}, nil
}

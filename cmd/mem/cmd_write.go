package main

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"regexp"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

type writeCmd struct {
	File   string `arg:"" help:"The file, in the workspace."`
	Expect string `placeholder:"SHA256|absent" help:"Write only if the file's content has this hash, or if there is no file."`
}

func (*writeCmd) Help() string {
	return "Replaces a file with what comes on stdin: whole or not at all, whatever crashes.\nThe old content goes to the trash. With --expect a file that somebody else\nchanged is not overwritten (exit 4); the new text is kept in the review inbox.\n\n  sha256sum memory/semantic/projects.md\n  mem write memory/semantic/projects.md --expect HASH < new.md"
}

// maxWrite is the most that mem write takes, in bytes.
const maxWrite = 16 << 20

func (c *writeCmd) Run(a *app) error {
	if _, err := a.open(true); err != nil {
		return err
	}
	name, err := a.inWorkspace(c.File)
	if err != nil {
		return err
	}
	if c.Expect != "" && c.Expect != plan.Absent {
		c.Expect = string(bytes.ToLower([]byte(c.Expect)))
		if !regexp.MustCompile(`^[0-9a-f]{64}$`).MatchString(c.Expect) {
			return &usageError{fmt.Sprintf("--expect %q is neither 64 hex digits nor absent", c.Expect), "sha256sum FILE gives the hash"}
		}
	}
	text, err := io.ReadAll(io.LimitReader(a.env.stdin, maxWrite+1))
	if err != nil {
		return err
	}
	if len(text) > maxWrite {
		return fmt.Errorf("stdin has more than %d bytes", maxWrite)
	}
	if name == tiers.ConfigFile { // a broken one would lock every command out
		if _, err := tiers.ParseConfig(name, text); err != nil {
			return err
		}
	}
	same := false
	p, err := a.update(func(m fs.FS) (plan.Plan, error) {
		p, err := planWrite(m, name, text, c.Expect)
		same = p.Empty()
		return p, err
	})
	if err != nil {
		return err
	}
	fields := map[string]any{"outcome": "written", "path": name, "sha256": plan.Hash(text), "bytes": len(text)}
	if same {
		fields["outcome"] = "unchanged"
		a.done(p, fields, "%s is that already", name)
		return nil
	}
	a.done(p, fields, "wrote %d bytes to %s", len(text), name)
	return nil
}

// planWrite plans a file's new content. expect is the state the caller has
// seen: a hash, plan.Absent, or "" for whatever is there now. Where the file
// is not that, the plan says so when it is carried out: a conflict.
func planWrite(m fs.FS, name string, content []byte, expect string) (plan.Plan, error) {
	old, err := fs.ReadFile(m, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		old = nil
	case errors.Is(err, durable.ErrNotRegular):
		return plan.Plan{}, &hinted{err, "mem writes regular files only; move it away first"}
	case err != nil:
		return plan.Plan{}, err
	case old == nil:
		old = []byte{}
	}
	before := plan.StateOf(old)
	if expect != "" && expect != before.Hash {
		before = plan.State{Hash: expect}
	} else if old != nil && bytes.Equal(old, content) {
		return plan.Plan{}, nil
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

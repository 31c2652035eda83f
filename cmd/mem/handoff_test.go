package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/handoff"
	"github.com/tieredmem/mem/inbox"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/workspace"
)

// below is a directory of a disk as a disk of its own.
type below struct {
	durable.FS
	dir string
}

func (b below) at(name string) string { return path.Join(b.dir, name) }

func (b below) Open(name string) (durable.Reader, error)   { return b.FS.Open(b.at(name)) }
func (b below) ReadDir(name string) ([]fs.DirEntry, error) { return b.FS.ReadDir(b.at(name)) }
func (b below) Lstat(name string) (durable.Info, error)    { return b.FS.Lstat(b.at(name)) }
func (b below) Mkdir(name string, perm fs.FileMode) error  { return b.FS.Mkdir(b.at(name), perm) }
func (b below) Rename(from, to string) error               { return b.FS.Rename(b.at(from), b.at(to)) }
func (b below) Move(from, to string) error                 { return b.FS.Move(b.at(from), b.at(to)) }
func (b below) Remove(name string) error                   { return b.FS.Remove(b.at(name)) }
func (b below) SyncDir(name string) error                  { return b.FS.SyncDir(b.at(name)) }
func (b below) Exchange(x, y string) error                 { return b.FS.Exchange(b.at(x), b.at(y)) }
func (b below) Link(from, to string) error                 { return b.FS.Link(b.at(from), b.at(to)) }
func (b below) Caps(name string) durable.Caps              { return b.FS.Caps(b.at(name)) }

func (b below) Create(name string, perm fs.FileMode) (durable.File, error) {
	f, err := b.FS.Create(b.at(name), perm)
	if err != nil {
		return nil, err
	}
	return fileBelow{f, b}, nil
}

type fileBelow struct {
	durable.File
	b below
}

func (f fileBelow) Clone(like string) error { return f.File.Clone(f.b.at(like)) }

const boxDir = ".claude/memory-handoffs"

// ingestNow is what mem ingest does, on any disk.
func ingestNow(w *workspace.Workspace) error {
	box := inbox.On("/w/"+boxDir, "all", below{w.Disk, boxDir})
	items, err := box.List()
	if err != nil {
		return err
	}
	for i := range items {
		box.Load(&items[i], handoff.MaxSize)
	}
	var errs []error
	items = slices.DeleteFunc(items, func(it inbox.Item) bool { // it stays
		errs = append(errs, it.Err)
		return it.Err != nil
	})
	var verdicts []handoff.Verdict
	p, _, err := w.Update("ingest", func(m fs.FS) (plan.Plan, error) {
		known, err := handoff.Ledger(m)
		if err != nil {
			return plan.Plan{}, err
		}
		b := handoff.NewBatch(m, w.Rules, plan.Stamp(w.At), w.Rules.Day(w.At))
		b.Known = func(sum string) bool { return known[sum] }
		verdicts = nil
		for _, it := range items {
			verdicts = append(verdicts, b.Judge(handoff.Source{Name: it.Name, Text: it.Text, Promote: "all"}))
		}
		return b.Plan()
	})
	if err != nil {
		return err
	}
	if p.Outcome == plan.Conflict {
		return errors.New("conflict")
	}
	for i, it := range items {
		if verdicts[i].Verdict == handoff.Skipped {
			errs = append(errs, errors.New(verdicts[i].Reason))
			continue
		}
		folder := "processed"
		if verdicts[i].Verdict == handoff.Malformed {
			folder = "malformed"
		}
		_, err := box.Archive(it, folder, handoff.ID(it.Text), verdicts[i].Code == "secret")
		errs = append(errs, err)
	}
	return errors.Join(append(errs, box.Sync())...)
}

func cardHandoff(n int) string {
	return fmt.Sprintf("# Memory Handoff\n\n## Title\nSOURCE-%d\n\n## Recommended memory action\ncreate-card\n\n## Target card\ncard-%d.md\n\n## Suggested card content\n---\ntopic: t%d\n---\n\nCARD-%d text\n", n, n, n, n)
}

func docHandoff(n int) string {
	return fmt.Sprintf("# Memory Handoff\n\n## Title\nSOURCE-%d\n\n## Recommended memory action\nno-card\n\n## Target document\nTOOLS.md\n\n## Suggested document content\n### Note\n\n- DOC-%d text\n", n, n)
}

func acceptNow(w *workspace.Workspace) error {
	_, _, err := w.Update("inbox accept", func(m fs.FS) (plan.Plan, error) {
		drafts, strange, err := handoff.Drafts(m, w.Rules)
		if err == nil && len(strange) > 0 {
			err = errors.New("a draft cannot be read")
		}
		if err != nil || len(drafts) == 0 {
			return plan.Plan{}, err
		}
		return handoff.Accept(m, w.Rules, drafts[0], nil)
	})
	return err
}

// pruneNow is what mem handoff prune does, on any disk.
func pruneNow(w *workspace.Workspace) error {
	box := inbox.On("/w/"+boxDir, "all", below{w.Disk, boxDir})
	_, err := pruneProcessed(w, &box, func(name string, _ time.Time) bool { return name < "2026-11" })
	return err
}

// handoffs are the scenarios of ingest. After the recovery ingest runs again:
// then each handoff has landed once, and its source stands in one place.
func handoffs() []scenario {
	small := map[string]string{bufPath: idle, "TOOLS.md": "# Tools\n\n- OLD-TOOL\n", boxDir + "/a.md": cardHandoff(1), boxDir + "/b.md": docHandoff(2), boxDir + "/c.md": "broken SOURCE-3\n"}
	facts := map[string]int{"OLD-TOOL": 1, "SOURCE-1": 1, "SOURCE-2": 1, "SOURCE-3": 1, "CARD-1": 2, "DOC-2": 2}
	many := map[string]string{bufPath: idle, "TOOLS.md": "# Tools\n\n- OLD-TOOL\n"}
	manyFacts := map[string]int{"OLD-TOOL": 1}
	for i := 1; i <= 8; i++ {
		text, landed := cardHandoff(i), fmt.Sprintf("CARD-%d", i)
		if i%3 == 0 {
			text, landed = docHandoff(i), fmt.Sprintf("DOC-%d", i)
		}
		many[fmt.Sprintf("%s/%d.md", boxDir, i)] = text
		manyFacts[landed], manyFacts[fmt.Sprintf("SOURCE-%d", i)] = 2, 1
	}
	waiting := map[string]string{bufPath: idle, "memory/cards/card-1.md": "another\n", boxDir + "/a.md": cardHandoff(1)}
	draft := map[string]string{
		bufPath: idle, "memory/cards/card-1.md": "another\n",
		"memory/handoff-inbox/20261130T090000.000000Z-0123456789ab-a.md": "<!-- mem:review reason=card-exists target=memory/cards/card-1.md sha256=0 at=x -->\n" + cardHandoff(1),
	}
	old := map[string]string{
		bufPath: idle, boxDir + "/processed/2026-01-01-a--0123456789ab.md": "SOURCE-1\n",
		boxDir + "/processed/2026-01-02-b--0123456789ac.md": "SOURCE-2\n", boxDir + "/processed/2026-11-29-c--0123456789ad.md": "SOURCE-3\n",
	}
	return []scenario{
		{name: "prune", files: old, run: pruneNow, mend: pruneNow, want: want{facts: map[string]int{"SOURCE-1": 0, "SOURCE-2": 0, "SOURCE-3": 1}, trash: map[string]int{"SOURCE-1": 1, "SOURCE-2": 1, "SOURCE-3": 0}, buffer: true}},
		{name: "take one", files: map[string]string{bufPath: idle, boxDir + "/a.md": cardHandoff(1)}, run: ingestNow, mend: ingestNow, want: want{facts: map[string]int{"SOURCE-1": 1, "CARD-1": 2}, buffer: true}},
		{name: "ingest", files: small, run: ingestNow, mend: ingestNow, edit: map[string]string{"TOOLS.md": "- a person's line\n"}, want: want{facts: facts, buffer: true}},
		{name: "ingest many", files: many, run: ingestNow, mend: ingestNow, edit: map[string]string{"TOOLS.md": "- a person's line\n"}, want: want{facts: manyFacts, buffer: true}},
		{name: "ingest to review", files: waiting, run: ingestNow, mend: ingestNow, want: want{facts: map[string]int{"another": 1, "SOURCE-1": 2, "CARD-1": 2}, buffer: true}},
		{name: "accept", files: draft, run: acceptNow, mend: acceptNow, want: want{facts: map[string]int{"CARD-1": 1, "another": 0}, buffer: true}},
	}
}

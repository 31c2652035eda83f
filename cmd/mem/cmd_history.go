package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/handoff"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

type receiptsCmd struct {
	List  receiptsListCmd  `cmd:"" default:"withargs" help:"List the newest receipts, or show one (the default)."`
	Prune receiptsPruneCmd `cmd:"" help:"Remove old receipts."`
}

func (*receiptsCmd) Help() string {
	return "Every run that changed something leaves a receipt: what it read, wrote and moved,\nwith hashes. An id may be shortened to a unique prefix or to its last part."
}

type receiptsListCmd struct {
	ID    string `arg:"" optional:"" help:"A receipt's id."`
	Limit int    `default:"20" help:"How many to list."`

	Handoff string `placeholder:"NAME|SHA" help:"What became of a handoff: the beginning of its name or hash."`
}

// runsOf finds what the records of runs say of handoffs that did not land:
// malformed, rejected, duplicate.
func (a *app) runsOf(id string) ([]handoffView, error) {
	hits := []handoffView{}
	var bad error
	err := eachMonth(a.ws.Disk, path.Join(journal.Root, "ingest/runs"), func(dir string, entries []fs.DirEntry) bool {
		for _, e := range slices.Backward(entries) {
			b, _, err := durable.ReadFile(a.ws.Disk, path.Join(dir, e.Name()), 0)
			if err != nil {
				bad = err
				return false
			}
			var run struct {
				Handoffs []handoffView `json:"handoffs"`
			}
			if err := json.Unmarshal(b, &run); err != nil {
				a.warn("%s/%s: %v", dir, e.Name(), err)
				continue
			}
			for _, h := range run.Handoffs {
				if h.TxID == "" && names(h, id) {
					hits = append(hits, h)
				}
			}
		}
		return true
	})
	return hits, errors.Join(err, bad)
}

// names reports whether an id means a handoff: the beginning of its hash, or
// of its name.
func names(h handoffView, id string) bool {
	return id != "" && (strings.HasPrefix(h.SHA256, strings.ToLower(id)) || strings.HasPrefix(filepath.Base(h.Source), id))
}

// handoffReceipts finds what receipts say of a handoff, by the beginning of its
// hash or its name; newest first.
func (a *app) handoffReceipts(id string) ([]handoffView, error) {
	ids, err := a.receiptIDs(1 << 30)
	if err != nil {
		return nil, err
	}
	hits, err := a.runsOf(id)
	if err != nil {
		return nil, err
	}
	for _, tx := range ids {
		b, _, err := durable.ReadFile(a.ws.Disk, journal.ReceiptPath(tx), 0)
		if err != nil {
			return nil, err
		}
		if !bytes.Contains(b, []byte(`"handoffs"`)) || !bytes.Contains(b, []byte(id)) && !bytes.Contains(b, []byte(strings.ToLower(id))) {
			continue
		}
		var r struct {
			ID    string      `json:"id"`
			Steps []plan.Step `json:"steps"`
			Facts struct {
				Handoffs []handoffView `json:"handoffs"`
			} `json:"facts"`
		}
		if err := json.Unmarshal(b, &r); err != nil {
			a.warn("receipt %s: %v", tx, err)
			continue
		}
		for _, h := range r.Facts.Handoffs {
			if names(h, id) {
				h.TxID = r.ID
				for _, s := range r.Steps {
					if s.Outcome == plan.Conflict && s.Path == h.Target && h.Verdict == handoff.Applied {
						h.Verdict, h.Code, h.Draft, h.After = handoff.Review, "target-changed", s.To, ""
					}
				}
				hits = append(hits, h)
			}
		}
	}
	return hits, nil
}

func (c *receiptsListCmd) Run(a *app) error {
	if c.Handoff != "" {
		if _, err := a.open(false); err != nil {
			return err
		}
		return a.landed(c.Handoff)
	}
	if _, err := a.open(false); err != nil {
		return err
	}
	if c.ID != "" {
		return a.showReceipt(c.ID)
	}
	if c.Limit < 1 {
		return &usageError{"--limit is 1 or more", "mem receipts --limit 50"}
	}
	ids, err := a.receiptIDs(c.Limit)
	if err != nil {
		return err
	}
	list := []map[string]any{}
	var sb strings.Builder
	w := tabwriter.NewWriter(&sb, 0, 0, 2, ' ', 0)
	for _, id := range ids {
		p, _, err := a.ws.Journal().Load(id)
		if err != nil {
			a.warn("%v", err)
			a.code = exitFailed
			continue
		}
		list = append(list, receiptFields(p, false))
		paths := p.Paths()
		more := ""
		if len(paths) > 3 {
			more = fmt.Sprintf(" and %d more", len(paths)-3)
			paths = paths[:3]
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", safe(p.ID), safe(p.Command), safe(p.Outcome), safe(strings.Join(paths, ", ")+more))
	}
	w.Flush()
	a.raw(sb.String())
	if len(ids) == 0 {
		a.say("no receipts yet")
	}
	a.object(map[string]any{"outcome": "ok", "receipts": list})
	return nil
}

func receiptFields(p plan.Plan, open bool) map[string]any {
	f := map[string]any{
		"id": p.ID, "command": p.Command, "at": p.At.Format(time.RFC3339), "outcome": p.Outcome, "open": open,
		"paths": attentionList(p.Paths()), "steps": stepList(p), "facts": p.Facts, "notices": attentionList(p.Notices),
	}
	if p.Facts == nil {
		f["facts"] = plan.Facts{}
	}
	return f
}

func (a *app) showReceipt(id string) error {
	p, open, err := a.receipt(id)
	if err != nil {
		return err
	}
	a.say("%s  %s  %s", p.ID, p.Command, p.Outcome)
	a.say("at %s on %s", p.At.In(a.at.Location()).Format(time.RFC3339), p.Host)
	if open {
		a.say("this transaction is still open: mem recover")
	}
	for _, s := range p.Steps {
		line := "  " + describe(s)
		if s.Outcome == plan.Conflict {
			line += "  (not done: " + s.Reason + ")"
		}
		a.say("%s", line)
		if s.Kind != plan.Move && s.Kind != plan.Trash {
			a.say("      before %s", s.Before.Hash)
			a.say("      after  %s", s.After.Hash)
		}
	}
	for _, n := range p.Notices {
		a.say("  note: %s", n)
	}
	if len(p.Facts) > 0 {
		a.say("  facts: %s", jsonText(p.Facts))
	}
	a.object(map[string]any{"outcome": "ok", "receipts": []map[string]any{receiptFields(p, open)}})
	return nil
}

// receiptIDs lists the newest receipts, newest first, reading no more months
// than needed.
func (a *app) receiptIDs(limit int) ([]string, error) {
	var out []string
	err := eachMonth(a.ws.Disk, path.Join(journal.Root, "receipts"), func(dir string, entries []fs.DirEntry) bool {
		for _, e := range slices.Backward(entries) {
			if id, ok := receiptID(e); ok && len(out) < limit {
				out = append(out, id)
			}
		}
		return len(out) < limit
	})
	return out, err
}

func receiptID(e fs.DirEntry) (string, bool) {
	id, ok := strings.CutSuffix(e.Name(), ".json")
	_, ours := plan.IDTime(id)
	return id, ok && ours && !e.IsDir()
}

// eachMonth walks YYYY/MM directories from the newest to the oldest until f
// returns false.
func eachMonth(d durable.FS, root string, f func(dir string, entries []fs.DirEntry) bool) error {
	years, err := d.ReadDir(root)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, y := range slices.Backward(years) {
		if !y.IsDir() {
			continue
		}
		months, err := d.ReadDir(path.Join(root, y.Name()))
		if err != nil {
			return err
		}
		for _, m := range slices.Backward(months) {
			if !m.IsDir() {
				continue
			}
			dir := path.Join(root, y.Name(), m.Name())
			entries, err := d.ReadDir(dir)
			if err != nil {
				return err
			}
			if !f(dir, entries) {
				return nil
			}
		}
	}
	return nil
}

// receipt finds a receipt or open transaction by its id, a unique prefix of
// it, or its last part.
func (a *app) receipt(id string) (plan.Plan, bool, error) {
	j := a.ws.Journal()
	if p, open, err := j.Load(id); err == nil || !errors.Is(err, fs.ErrNotExist) {
		return p, open, err
	}
	matches := []string{}
	fits := func(full string) {
		_, tail, _ := strings.Cut(full, "-")
		if strings.HasPrefix(full, id) || strings.HasPrefix(tail, id) {
			matches = append(matches, full)
		}
	}
	open, err := j.Open()
	if err != nil {
		return plan.Plan{}, false, err
	}
	for _, o := range open {
		fits(o)
	}
	err = eachMonth(a.ws.Disk, path.Join(journal.Root, "receipts"), func(_ string, entries []fs.DirEntry) bool {
		for _, e := range entries {
			if full, ok := receiptID(e); ok {
				fits(full)
			}
		}
		return true
	})
	switch {
	case err != nil:
		return plan.Plan{}, false, err
	case len(matches) == 0 || id == "":
		return plan.Plan{}, false, &hinted{fmt.Errorf("no receipt %q", id), "mem receipts lists them"}
	case len(matches) > 1:
		return plan.Plan{}, false, &hinted{fmt.Errorf("%q could be %d receipts, %s among them", id, len(matches), matches[0]), "give more of the id"}
	}
	return j.Load(matches[0])
}

type receiptsPruneCmd struct {
	OlderThan string `required:"" placeholder:"AGE" help:"Age, such as 90d or 26w."`
}

func (c *receiptsPruneCmd) Run(a *app) error {
	age, err := ageFlag("--older-than", c.OlderThan)
	if err != nil {
		return err
	}
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	n := 0
	err = ws.Prune("receipts prune", path.Join(journal.Root, "receipts"), func(name string) bool {
		t, ok := plan.IDTime(strings.TrimSuffix(path.Base(name), ".json"))
		if ok = ok && a.at.Sub(t) > age; ok {
			n++
		}
		return ok
	})
	if err != nil {
		return err
	}
	a.done(plan.Plan{}, map[string]any{"outcome": "pruned", "removed": n}, "removed %d receipts older than %s", n, c.OlderThan)
	return nil
}

func ageFlag(name, s string) (time.Duration, error) {
	age, err := tiers.ParseAge(s)
	if err != nil {
		return 0, &usageError{name + " " + err.Error(), name + " 30d"}
	}
	return age, nil
}

type diffCmd struct {
	ID string `arg:"" help:"A receipt's id."`
}

func (*diffCmd) Help() string {
	return "Prints what a transaction changed, as a unified diff. What is no longer on the\ndisk, because the trash was pruned or the file changed again, is said."
}

func (c *diffCmd) Run(a *app) error {
	if _, err := a.open(false); err != nil {
		return err
	}
	p, _, err := a.receipt(c.ID)
	if err != nil {
		return err
	}
	files := []map[string]any{}
	for i, s := range p.Steps {
		f := map[string]any{"path": s.Path, "kind": string(s.Kind), "diff": "", "missing": ""}
		switch s.Kind {
		case plan.Mkdir:
			continue
		case plan.Move, plan.Trash:
			a.say("%s", describe(s))
			files = append(files, f)
			continue
		}
		before, after, err := a.sides(p, i)
		if err != nil {
			f["missing"] = err.Error()
			a.say("%s: %s", s.Path, err)
		} else {
			d := udiff.Unified("a/"+s.Path, "b/"+s.Path, string(before), string(after))
			f["diff"] = d
			a.raw(a.colour(d))
		}
		files = append(files, f)
	}
	a.object(map[string]any{"outcome": "ok", "id": p.ID, "files": files})
	return nil
}

// sides are a file's content before and after a step.
func (a *app) sides(p plan.Plan, i int) (before, after []byte, err error) {
	s := p.Steps[i]
	j := a.ws.Journal()
	if s.Before.Exists() {
		if before, err = j.Backup(p, i); err != nil {
			return nil, nil, fmt.Errorf("the text before is no longer in the trash (sha256 %s)", s.Before.Hash)
		}
	}
	cur, _, err := durable.ReadFile(a.ws.Disk, s.Path, 0)
	if err == nil && plan.Hash(cur) == s.After.Hash {
		return before, cur, nil
	}
	if s.Place != "" { // a pure function of the text before
		if next, _, err := place(s, before); err == nil && plan.Hash(next) == s.After.Hash {
			return before, next, nil
		}
	}
	if b, ok := a.inTrash(s.After.Hash); ok {
		return before, b, nil
	}
	return nil, nil, fmt.Errorf("the text after is no longer there: the file has changed since (sha256 %s)", s.After.Hash)
}

// inTrash finds content by its hash: what a later transaction replaced.
func (a *app) inTrash(hash string) ([]byte, bool) {
	var out []byte
	err := eachMonth(a.ws.Disk, path.Join(journal.Root, "trash"), func(dir string, entries []fs.DirEntry) bool {
		for _, e := range entries {
			if strings.HasPrefix(e.Name(), hash) {
				if b, _, err := durable.ReadFile(a.ws.Disk, path.Join(dir, e.Name()), 0); err == nil && plan.Hash(b) == hash {
					out = b
					return false
				}
			}
		}
		return true
	})
	return out, err == nil && out != nil
}

// colour escapes a diff line by line, and colours it on a terminal.
func (a *app) colour(d string) string {
	on := a.env.stdoutTTY && a.env.getenv("NO_COLOR") == ""
	var sb strings.Builder
	for _, l := range strings.SplitAfter(d, "\n") {
		text, nl := strings.CutSuffix(l, "\n")
		code := map[byte]string{'+': "32", '-': "31", '@': "36"}
		if on && text != "" && code[text[0]] != "" {
			sb.WriteString("\x1b[" + code[text[0]] + "m" + safe(text) + "\x1b[0m")
		} else {
			sb.WriteString(safe(text))
		}
		if nl {
			sb.WriteByte('\n')
		}
	}
	return sb.String()
}

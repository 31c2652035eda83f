package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
)

type trashCmd struct {
	List    trashListCmd    `cmd:"" default:"1" help:"List what is in the trash (the default)."`
	Restore trashRestoreCmd `cmd:"" help:"Put a copy of something back."`
	Prune   trashPruneCmd   `cmd:"" help:"Delete what is older than an age: the only command that deletes."`
}

type trashItem struct {
	ID      string `json:"id"`
	Origin  string `json:"origin"`
	Bytes   int64  `json:"bytes"`
	Receipt string `json:"receipt"`
	Command string `json:"command"`
	At      string `json:"at"`
	Path    string `json:"path"`
}

func (a *app) trashed() ([]trashItem, error) {
	out := []trashItem{}
	cache := map[string]plan.Plan{}
	err := eachMonth(a.ws.Disk, path.Join(journal.Root, "trash"), func(dir string, entries []fs.DirEntry) bool {
		for _, e := range entries {
			t, ok := plan.ParseTrash(path.Join(dir, e.Name()))
			if !ok {
				continue
			}
			p, seen := cache[t.TxID]
			if !seen {
				p, _, _ = a.ws.Journal().Load(t.TxID) // a pruned receipt leaves the origin unknown
				cache[t.TxID] = p
			}
			origin, _ := journal.Origin(p, t.N)
			at, _ := plan.IDTime(t.TxID)
			out = append(out, trashItem{fmt.Sprintf("%s-%d", t.TxID[strings.Index(t.TxID, "-")+1:], t.N), origin, t.Size, t.TxID, p.Command, at.Format(time.RFC3339), t.Path})
		}
		return true
	})
	slices.SortStableFunc(out, func(x, y trashItem) int { return strings.Compare(y.At, x.At) })
	return out, err
}

type trashListCmd struct{}

type trashRestoreCmd struct {
	ID string `arg:"" help:"The id that mem trash list shows, or a unique prefix."`
	To string `placeholder:"FILE" help:"Where to; without it, where it came from."`
}

type trashPruneCmd struct {
	OlderThan string `required:"" placeholder:"AGE" help:"Age, such as 90d or 26w."`
}

func (*trashListCmd) Run(a *app) error {
	if _, err := a.open(false); err != nil {
		return err
	}
	items, err := a.trashed()
	if err != nil {
		return err
	}
	var sb strings.Builder
	w := tabwriter.NewWriter(&sb, 0, 0, 2, ' ', 0)
	for _, t := range items {
		origin := t.Origin
		if origin == "" {
			origin = "?"
		}
		fmt.Fprintf(w, "%s\t%s\t%d bytes\t%s\t%s\n", t.ID, t.At, t.Bytes, safe(t.Command), safe(origin))
	}
	w.Flush()
	a.raw(sb.String())
	if len(items) == 0 {
		a.say("the trash is empty")
	}
	a.object(map[string]any{"outcome": "ok", "items": items})
	return nil
}

func (c *trashRestoreCmd) Run(a *app) error {
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	items, err := a.trashed()
	if err != nil {
		return err
	}
	var hit []trashItem
	for _, t := range items {
		if t.ID == c.ID {
			hit = []trashItem{t}
			break
		}
		if c.ID != "" && (strings.HasPrefix(t.ID, c.ID) || strings.HasPrefix(path.Base(t.Path), c.ID)) {
			hit = append(hit, t)
		}
	}
	if len(hit) != 1 {
		return &hinted{fmt.Errorf("%q fits %d things in the trash", c.ID, len(hit)), "mem trash list shows the ids"}
	}
	to := hit[0].Origin
	if c.To != "" {
		if to, err = a.inWorkspace(c.To); err != nil {
			return err
		}
	}
	if to == "" {
		return &hinted{errors.New("no receipt tells where it came from"), "name a file with --to"}
	}
	b, _, err := durable.ReadFile(ws.Disk, hit[0].Path, 0)
	if err != nil {
		return err
	}
	if _, err := ws.Disk.Lstat(to); err == nil {
		if cur, _, err := durable.ReadFile(ws.Disk, to, 0); err == nil && bytes.Equal(cur, b) {
			a.done(plan.Plan{}, map[string]any{"outcome": "unchanged", "path": to}, "%s is that already", to)
			return nil
		}
		return &conflicted{hinted{fmt.Errorf("something else is at %s; nothing was overwritten", to), "restore it beside: mem trash restore " + c.ID + " --to FILE"}}
	}
	p, err := a.update(func(fs.FS) (plan.Plan, error) {
		return plan.Plan{Command: "trash restore", Steps: []plan.Step{{Kind: plan.Create, Path: to, Before: plan.StateOf(nil), Content: append([]byte{}, b...)}}}, nil
	})
	if err != nil {
		return err
	}
	a.done(p, map[string]any{"outcome": "restored", "path": to}, "restored %s (%d bytes)", to, len(b))
	return nil
}

func (c *trashPruneCmd) Run(a *app) error {
	age, err := ageFlag("--older-than", c.OlderThan)
	if err != nil {
		return err
	}
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	n, size := 0, int64(0)
	err = ws.Prune("trash prune", path.Join(journal.Root, "trash"), func(name string) bool {
		t, ok := plan.ParseTrash(name)
		at, _ := plan.IDTime(t.TxID)
		if ok = ok && a.at.Sub(at) > age; ok {
			n++
			size += t.Size
		}
		return ok
	})
	if err != nil {
		return err
	}
	a.done(plan.Plan{}, map[string]any{"outcome": "pruned", "removed": n, "bytes": size}, "deleted %d things (%d bytes) older than %s", n, size, c.OlderThan)
	return nil
}

func (*trashCmd) Help() string {
	return "What mem removes or replaces stays in .mem/trash until it is pruned."
}

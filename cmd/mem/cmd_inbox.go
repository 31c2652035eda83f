package main

import (
	"bytes"
	"fmt"
	"io/fs"
	"os"
	"path"
	"strings"
	"text/tabwriter"

	"github.com/aymanbagabas/go-udiff"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/guard"
	"github.com/tieredmem/mem/handoff"
	"github.com/tieredmem/mem/plan"
)

type inboxCmd struct {
	List   inboxListCmd   `cmd:"" default:"withargs" help:"List what waits for a person (the default)."`
	Show   inboxShowCmd   `cmd:"" help:"Show one draft: why it waits, and what it would change today."`
	Accept inboxAcceptCmd `cmd:"" help:"Apply a draft, as it is or merged by hand."`
	Reject inboxRejectCmd `cmd:"" help:"Put a draft away."`
}

func (*inboxCmd) Help() string {
	return "The review inbox: handoffs that were not safe to land by themselves, and texts whose\ntarget changed while they were written.\n\n  mem inbox\n  mem inbox show ID\n  mem inbox accept ID\n  mem inbox accept ID --merge merged.md\n  mem inbox reject ID --reason 'known already'"
}

type draftView struct {
	ID          string `json:"id"`
	Path        string `json:"path"`
	Reason      string `json:"reason_code"`
	Means       string `json:"reason"`
	Target      string `json:"target"`
	At          string `json:"at"`
	Bytes       int    `json:"bytes"`
	Quarantined bool   `json:"quarantined"`
	Lost        bool   `json:"lost"` // it was, and is not there any more
}

func viewOf(d handoff.Draft) draftView {
	target := d.Target
	if d.Handoff {
		target, _, _, _ = handoff.Landing(d.Text)
	}
	return draftView{d.ID, d.Path, d.Reason, means(d.Reason), target, d.At, len(d.Text), d.Quarantined != "", d.Lost}
}

// means says what a reason code means, those of conflicts among them.
func means(code string) string {
	if r, ok := handoff.Find(code); ok {
		return r.Means
	}
	return strings.ReplaceAll(code, "-", " ")
}

type inboxListCmd struct{}

func (*inboxListCmd) Run(a *app) error {
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	drafts, strange, err := handoff.Drafts(ws.View(), ws.Rules)
	if err != nil {
		return err
	}
	list := []draftView{}
	var sb strings.Builder
	w := tabwriter.NewWriter(&sb, 0, 0, 2, ' ', 0)
	for _, d := range drafts {
		v := viewOf(d)
		list = append(list, v)
		target := v.Target
		if target == "" {
			target = "-"
		}
		fmt.Fprintf(w, "%s\t%s\t%s\t%s\n", v.ID, safe(v.At[:8]), safe(v.Reason), safe(target))
	}
	w.Flush()
	a.raw(sb.String())
	for _, s := range strange {
		a.say("no draft of mem's: %s", s)
	}
	if len(list) == 0 {
		a.say("nothing waits")
	} else {
		a.say("mem inbox show ID says why, and what it would change")
	}
	a.object(map[string]any{"outcome": "ok", "drafts": list, "strange": attentionList(strange)})
	return nil
}

// draft finds a draft by a prefix of its id.
func (a *app) draft(id string) (handoff.Draft, error) {
	drafts, _, err := handoff.Drafts(a.ws.View(), a.ws.Rules)
	if err != nil {
		return handoff.Draft{}, err
	}
	var hit []handoff.Draft
	var fits []string
	for _, d := range drafts {
		if d.Path == id || path.Base(d.Path) == id {
			return d, nil
		}
		if id != "" && strings.HasPrefix(d.ID, strings.ToLower(id)) {
			hit = append(hit, d)
			fits = append(fits, d.Path)
		}
	}
	if len(hit) == 0 {
		return handoff.Draft{}, &hinted{fmt.Errorf("%q fits no draft", id), "mem inbox lists their ids"}
	}
	if len(hit) > 1 {
		return handoff.Draft{}, &hinted{fmt.Errorf("%q fits %d drafts: %s", id, len(hit), strings.Join(fits, ", ")), "name the file instead"}
	}
	return hit[0], nil
}

type inboxShowCmd struct {
	ID string `arg:"" help:"A draft's id, or the beginning of it."`
}

func (c *inboxShowCmd) Run(a *app) error {
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	d, err := a.draft(c.ID)
	if err != nil {
		return err
	}
	v := viewOf(d)
	a.say("%s  %s", v.ID, v.Path)
	a.say("waits because: %s (%s)", v.Means, v.Reason)
	if r, ok := handoff.Find(v.Reason); ok && r.Mend != "" {
		a.say("its writer should: %s", r.Mend)
	}
	if d.Lost {
		a.say("its text was kept in %s, and is gone from there: mem inbox reject %s, or find the handoff in processed/", handoff.Quarantine, v.ID)
	}
	if v.Quarantined {
		a.say("its text is kept in %s, where no host indexes it", d.Quarantined)
	}
	diff := ""
	target, content, whole, ok := d.Target, d.Text, true, d.Target != "" && !d.Lost
	if d.Handoff {
		target, content, whole, ok = handoff.Landing(d.Text)
	}
	if ok {
		old, err := fs.ReadFile(ws.View(), target)
		name := target
		if err != nil {
			name = "(absent)"
		}
		next := content
		if !whole {
			next, _, err = entry.Place(entry.Change{Place: entry.AtEnd, Text: handoff.InLines(content, old)}, old)
			if err != nil {
				return err
			}
		}
		if bytes.Equal(old, next) {
			a.say("%s is that already", target)
		}
		diff = udiff.Unified(name, target, string(old), string(next))
	}
	shown := diff
	if shown == "" {
		shown = string(d.Text)
	}
	for l := range strings.Lines(shown) {
		a.say("%s", strings.TrimRight(l, "\r\n"))
	}
	a.object(map[string]any{"outcome": "ok", "draft": v, "text": string(d.Text), "diff": diff})
	return nil
}

type inboxAcceptCmd struct {
	ID          string `arg:"" help:"A draft's id, or the beginning of it."`
	Merge       string `placeholder:"FILE" help:"The target's whole new text, merged by hand."`
	AllowSecret bool   `help:"Take text that looks like a credential."`
}

func (c *inboxAcceptCmd) Run(a *app) error {
	if _, err := a.open(true); err != nil {
		return err
	}
	var merged []byte
	if c.Merge != "" {
		b, err := os.ReadFile(c.Merge)
		if err != nil {
			return err
		}
		if len(b) > maxWrite {
			return fmt.Errorf("%s has more than %d bytes", c.Merge, maxWrite)
		}
		merged = append([]byte{}, b...)
	}
	d, err := a.draft(c.ID)
	if err != nil {
		return err
	}
	text := merged
	if text == nil {
		text = d.Text
	}
	if hits := guard.Secrets(text); len(hits) > 0 && !c.AllowSecret {
		return &hinted{fmt.Errorf("the text looks like a credential (%s)", hits[0].Rule), "take it out with --merge, or --allow-secret"}
	}
	p, err := a.update(func(m fs.FS) (plan.Plan, error) { return handoff.Accept(m, a.ws.Rules, d, merged) })
	if err != nil {
		return err
	}
	target, _ := p.Facts["target"].(string)
	a.done(p, map[string]any{"outcome": "accepted", "id": d.ID, "target": target}, "accepted %s: %s", d.ID, target)
	return nil
}

type inboxRejectCmd struct {
	ID     string `arg:"" help:"A draft's id, or the beginning of it."`
	Reason string `help:"Why, for the receipt."`
}

func (c *inboxRejectCmd) Run(a *app) error {
	if _, err := a.open(true); err != nil {
		return err
	}
	d, err := a.draft(c.ID)
	if err != nil {
		return err
	}
	p, err := a.update(func(m fs.FS) (plan.Plan, error) { return handoff.Reject(m, d, c.Reason) })
	if err != nil {
		return err
	}
	a.done(p, map[string]any{"outcome": "rejected", "id": d.ID}, "rejected %s; mem trash restore brings it back", d.ID)
	return nil
}

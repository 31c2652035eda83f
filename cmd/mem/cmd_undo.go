package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tieredmem/mem/handoff"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/session"
)

type undoCmd struct {
	ID      string  `arg:"" help:"A receipt's id."`
	Handoff *string `placeholder:"SHA" help:"Of an ingest, take back only this handoff: the beginning of its hash."`
}

func (*undoCmd) Help() string {
	return "Takes a transaction back, as a transaction of its own: replaced files get their\nold content where they still are what the transaction left, an added block is\nremoved where it stands exactly once, moved files move back. Anything else is a\nconflict (exit 4), and nothing is changed."
}

func (c *undoCmd) Run(a *app) error {
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	var id, what string
	p, err := a.update(func(fs.FS) (plan.Plan, error) {
		p, open, err := a.receipt(c.ID)
		if err != nil {
			return p, err
		}
		if open {
			return p, &hinted{fmt.Errorf("transaction %s is still open", p.ID), "mem recover, then undo it"}
		}
		id = p.ID
		before, err := a.undone(p.ID)
		if err != nil {
			return p, err
		}
		if before.by != "" {
			return p, &conflicted{hinted{fmt.Errorf("%s was undone by %s", p.ID, before.by), "mem undo " + before.by + " brings it back"}}
		}
		if c.Handoff == nil {
			if len(before.parts) > 0 {
				return p, &conflicted{hinted{fmt.Errorf("%d of its handoffs were undone by themselves", len(before.parts)), "undo the others one by one: mem receipts " + p.ID + " names them, mem undo " + p.ID + " --handoff SHA"}}
			}
			return ws.Journal().Undo(withoutLedger(p))
		}
		part, sha, err := handoffPart(p, *c.Handoff)
		if err != nil {
			return p, err
		}
		what = "handoff " + sha[:12] + " of "
		if by := before.parts[sha]; by != "" {
			return p, &conflicted{hinted{fmt.Errorf("that handoff was undone by %s", by), "mem undo " + by + " brings it back"}}
		}
		q, err := ws.Journal().Undo(part)
		q.Facts = plan.Facts{"undoes_part": id, "handoff": sha}
		return q, err
	})
	if err != nil {
		return err
	}
	if p.Empty() {
		a.done(p, map[string]any{"outcome": "nothing", "undone": id}, "%s%s changed nothing that could be undone", what, id)
		return nil
	}
	a.done(p, map[string]any{"outcome": "undone", "undone": id, "paths": attentionList(p.Paths())}, "undone %s%s: %s", what, id, strings.Join(p.Paths(), ", "))
	return nil
}

// handoffPart is what of an ingest one handoff has changed, as a plan.
func handoffPart(p plan.Plan, sha string) (part plan.Plan, full string, err error) {
	b, err := json.Marshal(p.Facts["handoffs"])
	if err != nil {
		return p, "", err
	}
	var all []handoffView
	if err := json.Unmarshal(b, &all); err != nil {
		return p, "", fmt.Errorf("receipt %s: %w", p.ID, err)
	}
	fits := func(h handoffView) bool { return sha != "" && strings.HasPrefix(h.SHA256, strings.ToLower(sha)) }
	i := slices.IndexFunc(all, fits)
	if i >= 0 && slices.ContainsFunc(all[i+1:], fits) {
		return p, "", &hinted{fmt.Errorf("%s fits several handoffs of receipt %s", sha, p.ID), "give more of the hash"}
	}
	if i < 0 {
		return p, "", &hinted{fmt.Errorf("receipt %s tells of no handoff %s", p.ID, sha), "mem receipts " + p.ID}
	}
	h := all[i]
	out := p
	out.Steps = slices.Clone(p.Steps)
	for k := range out.Steps {
		s := &out.Steps[k]
		switch {
		case s.Path == h.Target && h.Verdict == handoff.Applied && s.Kind == plan.Append:
			if h.AddedAt+h.AddedBytes > len(s.Text) || h.AddedBytes == 0 {
				return p, "", fmt.Errorf("receipt %s does not say what the handoff added", p.ID)
			}
			s.Text, s.Added, s.After = s.Text[h.AddedAt:h.AddedAt+h.AddedBytes], nil, plan.State{} // not the only block
		case s.Path == h.Target && h.Verdict == handoff.Applied, h.Draft != "" && path.Base(s.Path) == path.Base(h.Draft):
		default:
			s.Outcome = plan.Conflict // another's: taken for a step that changed nothing
		}
	}
	return out, h.SHA256, nil
}

// ledgers are the engine's lists of what has happened: undoing does not unmake
// that.
var ledgers = []string{handoff.LedgerDir + "/", ".mem/feedback/", ".mem/session/"}

// withoutLedger is a transaction without its entries in the ledgers: a handoff
// that was taken back stays known, or it would be applied again where its file
// could not be moved away; a number that was given is not given again.
func withoutLedger(p plan.Plan) plan.Plan {
	p.Steps = slices.Clone(p.Steps)
	for i := range p.Steps {
		spooled := p.Steps[i].Kind == plan.Trash && strings.HasPrefix(p.Steps[i].Path, session.SpoolDir+"/")
		if spooled || slices.ContainsFunc(ledgers, func(dir string) bool { return strings.HasPrefix(p.Steps[i].Path, dir) }) {
			p.Steps[i].Outcome = plan.Conflict // taken for a step that changed nothing
		}
	}
	return p
}

// undoings is how a transaction was taken back: as a whole, or which of its
// handoffs; by which receipts.
type undoings struct {
	by    string
	parts map[string]string
}

// undone looks through the receipts for what has taken a transaction back and
// still stands.
func (a *app) undone(id string) (undoings, error) {
	type undo struct{ id, whole, part, sha string }
	var all []undo
	ids, err := a.receiptIDs(1 << 30)
	if err != nil {
		return undoings{}, err
	}
	view := a.ws.View()
	for _, r := range ids {
		b, err := fs.ReadFile(view, journal.ReceiptPath(r))
		if err != nil || !bytes.Contains(b, []byte(`"undoes`)) {
			continue
		}
		var doc struct {
			Facts struct {
				Whole string `json:"undoes"`
				Part  string `json:"undoes_part"`
				SHA   string `json:"handoff"`
			} `json:"facts"`
		}
		if json.Unmarshal(b, &doc) == nil && doc.Facts.Whole+doc.Facts.Part != "" {
			all = append(all, undo{r, doc.Facts.Whole, doc.Facts.Part, doc.Facts.SHA})
		}
	}
	stands := map[string]bool{}
	var standing func(id string) bool
	standing = func(id string) bool { // an undoing that was itself undone does not count
		if s, known := stands[id]; known {
			return s
		}
		stands[id] = true
		stands[id] = !slices.ContainsFunc(all, func(u undo) bool { return u.whole == id && standing(u.id) })
		return stands[id]
	}
	out := undoings{parts: map[string]string{}}
	for _, u := range all {
		switch {
		case !standing(u.id):
		case u.whole == id:
			out.by = u.id
		case u.part == id:
			out.parts[u.sha] = u.id
		}
	}
	return out, nil
}

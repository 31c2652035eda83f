package main

import (
	"bytes"
	"encoding/json"
	"io/fs"

	"github.com/tieredmem/mem/archive"
	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/handoff"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
)

// archivedLesson tells whether every lesson of a text was archived before.
func archivedLesson(m fs.FS, a *app) func([]byte) bool {
	var ledger map[string]string
	return func(text []byte) bool {
		if ledger == nil {
			var err error
			if ledger, err = archive.Ledger(m, a.ws.Rules); err != nil {
				a.warn("%v", err)
				ledger = map[string]string{}
			}
		}
		all := entry.ParseLessons(text)
		at := 0
		for _, l := range all {
			if len(bytes.TrimSpace(text[at:l.Start])) > 0 {
				return false // it says more than the lessons do
			}
			at = l.End
			if ledger[entry.LessonKey(l.Key(text))] == "" {
				return false
			}
		}
		return len(all) > 0 && len(bytes.TrimSpace(text[at:])) == 0
	}
}

// bench is where handoffs are judged one after the other, in the light of the
// memory as it is and of those before.
type bench struct {
	*handoff.Batch
	q queued // the one that is judged
}

func (a *app) bench(m fs.FS) (*bench, error) {
	known, err := handoff.Ledger(m)
	if err != nil {
		return nil, err
	}
	var lost []string
	if len(known) == 0 { // a new workspace, or one whose ledger is gone: the receipts tell
		if lost, err = a.ingested(); err != nil {
			return nil, err
		}
		for _, sum := range lost {
			known[sum] = true
		}
	}
	b := &bench{Batch: handoff.NewBatch(m, a.ws.Rules, plan.Stamp(a.at), a.ws.Rules.Day(a.at))}
	b.Lost = lost
	b.Archived = archivedLesson(m, a)
	b.Known = func(sum string) bool {
		return known[sum] || b.q.box.Path != "" && b.q.box.Processed(sum[:12], b.q.item.Text)
	}
	return b, nil
}

// ingested lists the hashes of the handoffs that receipts tell of.
func (a *app) ingested() ([]string, error) {
	ids, err := a.receiptIDs(1 << 30)
	if err != nil {
		return nil, err
	}
	var out []string
	for _, id := range ids {
		b, err := fs.ReadFile(a.ws.View(), journal.ReceiptPath(id))
		if err != nil || !bytes.Contains(b, []byte(`"handoffs"`)) {
			continue
		}
		var r struct {
			Facts struct {
				Handoffs []handoffView `json:"handoffs"`
			} `json:"facts"`
		}
		if json.Unmarshal(b, &r) != nil {
			continue
		}
		for _, h := range r.Facts.Handoffs {
			if len(h.SHA256) == 64 {
				out = append(out, h.SHA256)
			}
		}
	}
	return out, nil
}

// judge decides about one handoff.
func (b *bench) judge(q queued) handoff.Verdict {
	if q.item.Err != nil {
		return handoff.Verdict{Verdict: handoff.Skipped, Code: "unreadable", Reason: reasonOf(q.item.Err)}
	}
	if q.item.Code != "" {
		r, _ := handoff.Find(q.item.Code)
		v := handoff.Verdict{Verdict: r.Verdict, Code: r.Code, Reason: q.item.Why}
		if v.Reason == "" {
			v.Reason = r.Means
		}
		return v
	}
	if q.item.Withheld {
		r, _ := handoff.Find("secret")
		return handoff.Verdict{Verdict: r.Verdict, Code: r.Code, Reason: "its name looks like a credential"}
	}
	b.q = q
	return b.Judge(handoff.Source{Name: q.item.Name, Path: q.view.Source, Inbox: q.box.Path, Text: q.item.Text, Promote: q.box.Promote})
}

func view(q queued, v handoff.Verdict) handoffView {
	w := q.view
	w.Verdict, w.Code, w.Reason, w.Line, w.Target, w.Before, w.After, w.Draft = v.Verdict, v.Code, v.Reason, v.Line, v.Target, v.Before, v.After, v.Draft
	if q.item.Text != nil {
		w.SHA256 = plan.Hash(q.item.Text)
		w.ID = w.SHA256[:12]
	}
	w.AddedAt, w.AddedBytes = v.Offset, len(v.Added)
	return w
}

// views are what a receipt says of its handoffs.
func views(part []queued, verdicts []handoff.Verdict) []handoffView {
	var out []handoffView
	for i, q := range part {
		if v := verdicts[i]; v.Verdict == handoff.Applied || v.Verdict == handoff.Review {
			out = append(out, view(q, v))
		}
	}
	return out
}

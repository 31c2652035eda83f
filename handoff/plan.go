package handoff

import (
	"fmt"
	"path"
	"strings"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
)

// Quarantine is where drafts are kept that hosts must not index.
const Quarantine = ".mem/quarantine"

// ID is the short form of a handoff's hash, by which people name it.
func ID(text []byte) string { return plan.Hash(text)[:12] }

// draft plans a handoff's way to the review inbox: verbatim under a comment
// that says why, without a word of its own in that. Text that could take
// effect where it is only indexed is kept apart, and a stub stands for it.
func (b *Batch) draft(s Source, sum string, v *Verdict) {
	base := fmt.Sprintf("%s-%s-%s", b.at, sum[:12], draftName(s.Name))
	head := fmt.Sprintf("<!-- mem:review reason=%s target=%s sha256=%s at=%s -->\n", v.Code, commentSafe(v.Target), sum, b.at)
	v.Draft = path.Join(b.rules.Review, base)
	text := append([]byte(head), s.Text...)
	if v.Hostile {
		kept := path.Join(Quarantine, base)
		b.extra = append(b.extra, plan.Step{Kind: plan.Create, Path: kept, Before: plan.StateOf(nil), Content: text, Reason: v.Code})
		text = []byte(head + stub + sum[:12] + "\n")
	}
	b.extra = append(b.extra, plan.Step{Kind: plan.Create, Path: v.Draft, Before: plan.StateOf(nil), Content: text, Reason: v.Code})
}

// stub is what stands in the review inbox for what is in quarantine, before
// the id.
const stub = "\nA handoff waits for a person in quarantine: mem inbox show "

// draftName is a handoff's name as part of another: plain, and not too long.
func draftName(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, strings.TrimSuffix(s, ".md"))
	if len(s) > 80 {
		s = s[:80]
	}
	return strings.TrimLeft(s, ".-") + ".md"
}

func commentSafe(s string) string {
	if s == "" {
		return "none"
	}
	return strings.Map(func(r rune) rune {
		if r <= ' ' || r == '<' || r == '>' || r == 0x7f || r > 0x7e {
			return '?'
		}
		return r
	}, s)
}

// Plan is everything that the judged handoffs change, as one. All appends to a
// document are one step. The hashes of the handoffs land in the ledger with
// the rest, so that whatever crashes each counts once.
func (b *Batch) Plan() (plan.Plan, error) {
	p := plan.Plan{Command: "ingest"}
	for _, name := range b.order {
		f := b.files[name]
		s := plan.Step{Path: name, Before: plan.StateOf(f.orig)}
		switch {
		case f.blocks != nil:
			s.Kind, s.Place, s.Text = plan.Append, entry.AtEnd, f.blocks
		case f.orig == nil:
			s.Kind, s.Content = plan.Create, f.now
		default:
			s.Kind, s.Content = plan.Replace, f.now
		}
		p.Steps = append(p.Steps, s)
	}
	p.Steps = append(p.Steps, b.extra...)
	if len(b.landed) == 0 {
		return p, nil
	}
	ledger, err := b.ledgerStep()
	p.Steps = append(p.Steps, ledger)
	return p, err
}

package main

import (
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/handoff"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/inbox"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/review"
	"github.com/tieredmem/mem/vcs"
)

type ingestCmd struct {
	Strict   bool `help:"Exit 1 if anything was malformed or rejected."`
	WhenIdle bool `help:"Wait for another time while a session is active: a card that lands in the middle costs the agent its prompt cache."`
}

func (*ingestCmd) Help() string {
	return "Takes the handoffs that agents left in their inboxes: checks each, lands what is safe\nand guarded by hashes, puts the rest where a person finds it (mem inbox), and moves\neach file to processed/ or malformed/ beside it. Each lands exactly once, whatever\ncrashes; one bad file never stops the others.\n\n  mem ingest --dry-run\n  mem ingest"
}

// chunk is how many handoffs are read and landed as one transaction: enough
// that its fsyncs do not count, few enough that memory stays flat.
const chunk = 2_500

// handoffView is one handoff in JSON, receipts and latest.json.
type handoffView struct {
	Source  string `json:"source"`
	Inbox   string `json:"inbox"`
	ID      string `json:"id"`
	SHA256  string `json:"sha256"`
	Verdict string `json:"verdict"`
	Code    string `json:"reason_code"`
	Reason  string `json:"reason"`
	Line    int    `json:"line,omitempty"`
	Target  string `json:"target"`
	Before  string `json:"before_sha256"`
	After   string `json:"after_sha256"`
	TxID    string `json:"txid"`
	Draft   string `json:"draft,omitempty"`
	Moved   string `json:"moved,omitempty"` // where the file is now
	Note    string `json:"note,omitempty"`
	// UndoneBy is the receipt that took it back, where one did.
	UndoneBy string `json:"undone_by,omitempty"`
	// Of an append: where its block stands in the text of the receipt's step.
	AddedAt    int `json:"added_at,omitempty"`
	AddedBytes int `json:"added_bytes,omitempty"`
}

// ingestion is one run.
type ingestion struct {
	a       *app
	boxes   []inbox.Inbox
	trouble []string
	partial bool
	views   []handoffView
	queue   []queued
	txids   []string
	skipped int
	before  *handoff.Batch // of the part before
}

type queued struct {
	box  *inbox.Inbox
	item inbox.Item
	view handoffView
	gone bool // another run has taken it
}

func (c *ingestCmd) Run(a *app) error {
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	a.warnUntrusted("handoffs.inboxes", "handoffs.discover")
	if host := ws.Rules.Handoffs.Host; host != "" && host != ws.Host {
		return &hinted{fmt.Errorf("handoffs are ingested on %s only, and this is %s", host, ws.Host), "run it there, or change handoffs.host in mem.yaml"}
	}
	in := &ingestion{a: a}
	in.find()
	if c.WhenIdle {
		session, err := review.Gate(ws.View(), ws.Rules, a.at)
		if err != nil {
			return err
		}
		if session.Active {
			a.say("deferred: a session is active (%s)", session.Reason)
			a.object(map[string]any{"outcome": "deferred", "status": "empty", "mode": "apply", "counts": counts(nil), "handoffs": []handoffView{}, "missing_inboxes": in.missing()})
			return nil
		}
	}
	in.list()
	if err := in.land(); err != nil {
		return err
	}
	in.report(c.Strict)
	return nil
}

// find lists the inboxes.
func (in *ingestion) find() {
	a := in.a
	in.boxes, in.trouble = a.inboxes()
	for _, t := range in.trouble {
		a.warn("%s", t)
	}
}

// inboxes finds every inbox that this workspace takes handoffs from.
func (a *app) inboxes() ([]inbox.Inbox, []string) {
	h := a.ws.Rules.Handoffs
	cfg := inbox.Config{Workspace: a.dir, Tracked: vcs.Tracked, Open: a.openBox}
	for _, d := range h.Inboxes {
		cfg.Declared = append(cfg.Declared, a.expand(d))
	}
	for _, d := range h.Discover {
		cfg.Roots = append(cfg.Roots, inbox.Root{Dir: a.expand(d.Root), Depth: d.Depth, Promote: d.Promote})
	}
	return inbox.Find(cfg)
}

// expand makes a configured path absolute.
func (a *app) expand(p string) string {
	if p == "~" || strings.HasPrefix(p, "~/") {
		return filepath.Join(a.env.getenv("HOME"), p[1:])
	}
	if !filepath.IsAbs(p) {
		return filepath.Join(a.dir, p)
	}
	return p
}

// list lists every inbox. What cannot be read is told and stays.
func (in *ingestion) list() {
	a := in.a
	for i := range in.boxes {
		b := &in.boxes[i]
		if b.Problem != "" {
			if b.Problem == "unreadable" {
				in.partial = true
			}
			if b.Problem != "opted-out" || a.Verbose {
				a.warn("inbox %s: %s", b.Path, b.Detail)
			}
			continue
		}
		items, err := b.List()
		if err != nil {
			a.warn("inbox %s: %v", b.Path, err)
			b.Problem, b.Detail, in.partial = "unreadable", err.Error(), true
			continue
		}
		for _, it := range items {
			it.Withheld = secretName(it.Name)
			source := filepath.Join(b.Path, shown(it))
			in.queue = append(in.queue, queued{box: b, item: it, view: handoffView{Source: source, Inbox: b.Path}})
		}
		if len(items) == 0 {
			b.Close()
		}
	}
	slices.SortStableFunc(in.queue, func(x, y queued) int {
		return cmp.Or(strings.Compare(x.item.Name, y.item.Name), strings.Compare(x.box.Path, y.box.Path))
	})
}

// land judges and lands the handoffs, and moves each on.
func (in *ingestion) land() error {
	for start := 0; start < len(in.queue); start += chunk {
		part := slices.Clone(in.queue[start:min(start+chunk, len(in.queue))])
		for i := range part {
			part[i].gone = !part[i].box.Load(&part[i].item, handoff.MaxSize)
		}
		part = slices.DeleteFunc(part, func(q queued) bool { return q.gone })
		// Each part's receipt has an instant of its own: they are listed in order.
		in.a.ws.At = in.a.at.Add(time.Duration(start/chunk) * time.Microsecond)
		if err := in.landPart(part); err != nil {
			return err
		}
		in.a.progress(min(start+chunk, len(in.queue)), len(in.queue), "handoffs")
	}
	for i := range in.boxes {
		if err := in.boxes[i].Sync(); err != nil {
			in.a.warn("inbox %s: %v", in.boxes[i].Path, err)
			in.partial = true
		}
		in.boxes[i].Close()
	}
	return nil
}

func (in *ingestion) landPart(part []queued) error {
	a := in.a
	var verdicts []handoff.Verdict
	p, err := a.update(func(m fs.FS) (plan.Plan, error) {
		b, err := a.bench(m)
		if err != nil {
			return plan.Plan{}, err
		}
		if in.before != nil {
			b.Continue(in.before)
		}
		in.before = b.Batch
		verdicts = make([]handoff.Verdict, len(part))
		for i, q := range part {
			verdicts[i] = b.judge(q)
		}
		p, err := b.Plan()
		if err != nil || p.Empty() {
			return plan.Plan{}, err
		}
		p.Facts = plan.Facts{"handoffs": views(part, verdicts)}
		if closed := in.closed(); len(closed) > 0 {
			p.Facts["closed_inboxes"] = closed
		}
		return p, nil
	})
	var conflict *conflictError
	if err != nil && !errors.As(err, &conflict) {
		return err
	}
	changed, after := map[string]plan.Step{}, map[string]string{}
	for _, s := range p.Steps {
		after[s.Path] = s.After.Hash
		if s.Outcome == plan.Conflict {
			changed[s.Path] = s
		}
	}
	if p.ID != "" && !a.DryRun {
		in.txids = append(in.txids, p.ID)
	}
	for i := range part {
		q, v := &part[i], verdicts[i]
		if s, ok := changed[v.Target]; ok && v.Verdict == handoff.Applied {
			r, _ := handoff.Find("target-changed")
			v.Verdict, v.Code, v.Reason, v.Draft = handoff.Review, r.Code, r.Means, s.To
		}
		if v.Code == "appended" { // with what else this run added
			v.After = after[v.Target]
		}
		q.view = view(*q, v)
		if p.ID != "" && !a.DryRun && (v.Verdict == handoff.Applied || v.Verdict == handoff.Review) {
			q.view.TxID = p.ID
		}
		in.moveOn(q)
		if q.view.Verdict != handoff.Skipped || a.Verbose || q.view.Code != "dotfile" && q.view.Code != "template" {
			in.views = append(in.views, q.view)
		} else {
			in.skipped++
		}
	}
	return nil
}

// moveOn moves a handoff to where files of its verdict go.
func (in *ingestion) moveOn(q *queued) {
	folder := ""
	switch q.view.Verdict {
	case handoff.Applied, handoff.Review, handoff.Duplicate:
		folder = "processed"
	case handoff.Malformed, handoff.Rejected:
		folder = "malformed"
	default:
		if q.view.Code == "unreadable" {
			in.a.warn("%s: %s", q.view.Source, q.view.Reason)
			in.partial = true
		}
		return
	}
	if in.a.DryRun {
		return
	}
	to, err := q.box.Archive(q.item, folder, q.view.ID, q.view.Code == "secret")
	q.view.Moved = to
	switch {
	case errors.Is(err, inbox.ErrChanged):
		q.view.Note = "it changed since it was read; what it says now is for the next run"
	case err != nil:
		q.view.Note = "cannot be moved to " + folder + "/: " + reasonOf(err)
		if q.view.Verdict != handoff.Duplicate {
			in.partial = true
			known := ""
			if q.view.Verdict == handoff.Applied || q.view.Verdict == handoff.Review {
				known = "; it is known by its hash and will not be applied again"
			}
			in.a.warn("%s: %s%s", q.view.Source, q.view.Note, known)
		}
	}
}

func reasonOf(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

// counts are a run's figures, as the summary line names them.
func counts(views []handoffView) map[string]int {
	n := map[string]int{"processed": 0, "promoted": 0, "reinforced": 0, "routed": 0, "inboxed": 0, "skipped": 0, "duplicate": 0, "malformed": 0, "rejected": 0}
	for _, v := range views {
		if v.Verdict != handoff.Skipped {
			n["processed"]++
		}
		switch {
		case v.Code == "created":
			n["promoted"]++
		case v.Code == "updated":
			n["reinforced"]++
		case v.Code == "appended":
			n["routed"]++
		case v.Verdict == handoff.Review:
			n["inboxed"]++
		default:
			n[v.Verdict]++
		}
	}
	return n
}

// report prints the result and keeps it as latest.json.
func (in *ingestion) report(strict bool) {
	a := in.a
	n := counts(in.views)
	n["skipped"] += in.skipped
	prefix := ""
	if a.DryRun {
		prefix = "[dry-run] "
	}
	var log strings.Builder
	line := func(format string, args ...any) {
		s := prefix + fmt.Sprintf(format, args...)
		a.say("%s", s)
		log.WriteString(safe(s) + "\n")
	}
	for _, v := range in.views {
		to := v.Target
		if v.Verdict == handoff.Review {
			to = v.Draft
		}
		switch {
		case v.Verdict == handoff.Applied || v.Verdict == handoff.Review && v.Code == "":
			line("%-9s %s → %s", v.Verdict, path.Base(filepath.ToSlash(v.Source)), to)
		case v.Verdict == handoff.Review:
			line("%-9s %s → %s (%s: %s)", v.Verdict, path.Base(filepath.ToSlash(v.Source)), to, v.Code, v.Reason)
		default:
			line("%-9s %s (%s: %s)", v.Verdict, path.Base(filepath.ToSlash(v.Source)), v.Code, v.Reason)
		}
	}
	line("Processed %d  Promoted %d  Reinforced %d  Routed %d  Inboxed %d  Skipped %d  Duplicate %d  Malformed %d",
		n["processed"], n["promoted"], n["reinforced"], n["routed"], n["inboxed"], n["skipped"], n["duplicate"], n["malformed"]+n["rejected"])
	status := "ingested"
	if n["processed"] == 0 {
		status = "empty"
		line("NO_UPDATES")
	}
	outcome, mode := "ok", "apply"
	if in.partial {
		outcome, a.code = "partial", exitFailed
	} else if strict && n["malformed"]+n["rejected"] > 0 {
		a.code = exitFindings
	}
	if a.DryRun {
		mode = "dry-run"
	}
	boxes := []map[string]any{}
	for _, b := range in.boxes {
		boxes = append(boxes, map[string]any{"path": b.Path, "promote": b.Promote, "problem": b.Problem})
	}
	views := in.views
	if views == nil {
		views = []handoffView{}
	}
	fields := map[string]any{
		"outcome": outcome, "status": status, "mode": mode, "counts": n, "handoffs": views, "missing_inboxes": in.missing(), "inboxes": boxes, "trouble": attentionList(in.trouble),
	}
	if len(in.txids) > 0 {
		fields["receipt"], fields["receipts"] = in.txids[0], in.txids
	}
	if len(in.txids) > 1 {
		line("%d receipts, to be undone in this order: %s", len(in.txids), strings.Join(backwards(in.txids), " "))
	}
	a.object(fields)
	if !a.DryRun {
		in.keep(fields, log.String(), status)
	}
}

func backwards(s []string) []string {
	s = slices.Clone(s)
	slices.Reverse(s)
	return s
}

// missing are the inboxes that are not there.
func (in *ingestion) missing() []string {
	out := []string{}
	for _, b := range in.boxes {
		if b.Problem == "missing" {
			out = append(out, b.Path)
		}
	}
	return out
}

// closed are the inboxes that were not read though somebody may think they
// are, for the receipt.
func (in *ingestion) closed() map[string]string {
	out := map[string]string{}
	for _, b := range in.boxes {
		if b.Problem != "" && b.Problem != "opted-out" {
			out[b.Path] = b.Problem
		}
	}
	return out
}

// keep writes the run's records: latest.json, the log beside it, the job's.
func (in *ingestion) keep(fields map[string]any, log, status string) {
	a := in.a
	latest := map[string]any{"command": "ingest", "at": a.at.Format(time.RFC3339), "workspace": a.dir, "layout": a.ws.Rules.Name}
	for k, v := range fields {
		latest[k] = v
	}
	job := health.Job{At: a.at, Outcome: status, Success: a.at, Scheduled: a.scheduled("ingest") == "installed"}
	b, err := json.MarshalIndent(latest, "", " ")
	var j []byte
	if err == nil {
		j, err = json.MarshalIndent(job, "", " ")
	}
	if err == nil {
		records := map[string][]byte{
			"ingest/latest.json": append(b, '\n'), "ingest/latest.log": []byte(log), "jobs/ingest.json": append(j, '\n'),
		}
		if status != "empty" {
			// What landed is in a receipt; what did not is told here, and later.
			records["ingest/runs/"+a.at.UTC().Format("2006/01/")+plan.Stamp(a.at)+".json"] = append(b, '\n')
		}
		err = a.ws.Records("ingest", records)
	}
	if err != nil {
		a.warn("the record of this run could not be written: %v", err)
		a.code = exitFailed
	}
}

// progress shows on a terminal how far long work is.
func (a *app) progress(done, all int, what string) {
	if a.env.stderrTTY && !a.Quiet && all > done {
		fmt.Fprintf(a.env.stderr, "\r%d of %d %s", done, all, what)
	}
}

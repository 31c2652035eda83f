package main

import (
	"cmp"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"unicode"

	"github.com/tieredmem/mem/guard"
	"github.com/tieredmem/mem/handoff"
	"github.com/tieredmem/mem/inbox"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/vcs"
)

type handoffCmd struct {
	New    handoffNewCmd    `cmd:"" help:"Write a handoff into an inbox."`
	Lint   handoffLintCmd   `cmd:"" help:"Say what ingest would decide, and what would make it better."`
	List   handoffListCmd   `cmd:"" help:"List what waits in the inboxes."`
	Show   handoffShowCmd   `cmd:"" help:"Show a waiting handoff, or what became of one."`
	Doctor handoffDoctorCmd `cmd:"" help:"Look whether handoffs get through."`
	Prune  handoffPruneCmd  `cmd:"" help:"Put processed handoffs away that are old."`
}

func (*handoffCmd) Help() string {
	return "Handoffs: one Markdown file that an agent leaves at the end of a task, in\n.claude/memory-handoffs, .codex/memory-handoffs or the like. mem ingest takes them.\n\n  mem handoff new --type bugfix --title 'Port taken' --document rules/ports.md < text.md\n  mem handoff lint\n  mem handoff doctor"
}

type handoffNewCmd struct {
	Type        string `required:"" help:"setup, workflow, bugfix, decision, security, preference, research or project-context."`
	Title       string `required:"" help:"Short and specific."`
	Summary     string `help:"Two to four sentences."`
	Facts       string `help:"Durable facts, a list."`
	Evidence    string `help:"Files, commands, error texts."`
	Card        string `placeholder:"NAME" help:"The card to create or update: memory/cards/NAME."`
	Document    string `placeholder:"DOC" help:"The document to add to: TOOLS.md, USER.md, rules/NAME.md, .learnings/…"`
	ContentFile string `placeholder:"FILE" help:"The content; without it, stdin."`
	Inbox       string `placeholder:"DIR" help:"The inbox; without it, .claude/memory-handoffs of the repository or workspace one is in."`
}

func (*handoffNewCmd) Help() string {
	return "Writes a valid handoff under the right name. For a card that is there it becomes an\nupdate with the card's present hash. The content comes from stdin or --content-file.\nA new inbox is added to the repository's own .git/info/exclude: git would take its\nfiles for repository content otherwise, and ingest skips those."
}

func (c *handoffNewCmd) Run(a *app) error {
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	if c.Card != "" && c.Document != "" {
		return &usageError{"--card and --document exclude each other", "write two handoffs"}
	}
	n := handoff.New{Type: c.Type, Title: c.Title, Summary: c.Summary, Facts: c.Facts, Evidence: c.Evidence, Card: c.Card, Document: c.Document, Action: "no-card"}
	if c.Card != "" {
		if !strings.HasSuffix(c.Card, ".md") {
			n.Card += ".md"
		}
		n.Action = "create-card"
		if b, err := fs.ReadFile(ws.View(), "memory/cards/"+n.Card); err == nil {
			n.Action, n.Expected = "update-card", plan.Hash(b)
		}
	}
	if c.Card != "" || c.Document != "" {
		if n.Content, err = c.content(a); err != nil {
			return err
		}
	}
	text := n.Text()
	if len(text) > handoff.MaxSize {
		return fmt.Errorf("the handoff would have %d bytes, at most %d are taken", len(text), handoff.MaxSize)
	}
	v, err := a.wouldBe(&inbox.Inbox{Promote: "all"}, inbox.Item{Name: "new.md", Text: text})
	if err != nil {
		return err
	}
	for _, p := range problems(text, v) {
		a.warn("%s: %s", p.Code, p.Message)
	}
	if v.Verdict == handoff.Malformed {
		return &conflicted{hinted{fmt.Errorf("ingest would refuse it: %s", v.Reason), "mend the text and write it again"}}
	}
	name := a.at.In(ws.Rules.Location).Format("2006-01-02-1504") + "-" + slug(c.Title) + ".md"
	dir, err := c.dir(a)
	if err != nil {
		return err
	}
	fields := map[string]any{"outcome": "written", "path": filepath.Join(dir, name), "sha256": plan.Hash(text), "verdict": v.Verdict, "reason_code": v.Code}
	if a.DryRun {
		a.say("[dry-run] write %s (ingest: %s)", filepath.Join(dir, name), v.Verdict)
		a.object(fields)
		return nil
	}
	box, err := a.makeInbox(dir)
	if err != nil {
		return err
	}
	defer box.Close()
	full, err := box.Put(name, text)
	if err != nil {
		return err
	}
	fields["path"] = full
	a.say("wrote %s (ingest: %s)", full, v.Verdict)
	a.object(fields)
	return nil
}

func (c *handoffNewCmd) content(a *app) (string, error) {
	in := a.env.stdin
	if c.ContentFile != "" {
		f, err := os.Open(c.ContentFile)
		if err != nil {
			return "", err
		}
		defer f.Close()
		in = f
	}
	b, err := io.ReadAll(io.LimitReader(in, handoff.MaxSize+1))
	if err != nil {
		return "", err
	}
	if len(b) > handoff.MaxSize {
		return "", fmt.Errorf("the content has more than %d bytes", handoff.MaxSize)
	}
	return string(b), nil
}

// dir is the inbox to write to.
func (c *handoffNewCmd) dir(a *app) (string, error) {
	cwd, err := a.env.getwd()
	if err != nil {
		return "", err
	}
	if c.Inbox != "" {
		if filepath.IsAbs(c.Inbox) {
			return c.Inbox, nil
		}
		return filepath.Join(cwd, c.Inbox), nil
	}
	for dir := cwd; ; dir = filepath.Dir(dir) {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil || dir == a.dir {
			return filepath.Join(dir, ".claude", inbox.Folder), nil
		}
		if dir == filepath.Dir(dir) {
			return filepath.Join(a.dir, ".claude", inbox.Folder), nil
		}
	}
}

// makeInbox opens an inbox, making it where it is not there yet.
func (a *app) makeInbox(dir string) (*inbox.Inbox, error) {
	if err := a.makeDirs(dir, 0o777); err != nil {
		return nil, err
	}
	if fresh(dir) { // now, or by a run that was killed before it came to this
		if file, err := vcs.Exclude(dir, filepath.Base(filepath.Dir(dir))+"/"+inbox.Folder+"/", a.writeWhole); err != nil {
			a.warn("git may take the handoffs for repository content: %v", err)
		} else if file != "" {
			a.say("added to %s", file)
		}
	}
	box := inbox.At(dir, "", a.openBox)
	return &box, nil
}

// slug is a title as part of a file name.
func slug(s string) string {
	s = strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9':
			return r
		case r >= 'A' && r <= 'Z':
			return unicode.ToLower(r)
		case unicode.IsLetter(r) || unicode.IsDigit(r):
			return -1
		}
		return '-'
	}, s)
	for strings.Contains(s, "--") {
		s = strings.ReplaceAll(s, "--", "-")
	}
	s = strings.Trim(s, "-")
	if len(s) > 60 {
		s = strings.Trim(s[:60], "-")
	}
	if s == "" {
		return "handoff"
	}
	return s
}

// wouldBe judges one handoff as an ingest of it alone would.
func (a *app) wouldBe(box *inbox.Inbox, it inbox.Item) (handoff.Verdict, error) {
	b, err := a.bench(a.ws.View())
	if err != nil {
		return handoff.Verdict{}, err
	}
	return b.judge(queued{box: box, item: it}), nil
}

// problems are a verdict's reason and what could be better.
func problems(text []byte, v handoff.Verdict) []handoff.Problem {
	var out []handoff.Problem
	if v.Verdict != handoff.Applied {
		r, _ := handoff.Find(v.Code)
		out = append(out, handoff.Problem{Line: v.Line, Code: v.Code, Warning: v.Verdict == handoff.Duplicate, Message: v.Verdict + ": " + v.Reason, Hint: r.Mend})
	}
	if v.Code != "secret" && v.Verdict != handoff.Malformed {
		out = append(out, handoff.Quality(handoff.Parse(text))...)
	}
	return out
}

type handoffLintCmd struct {
	Files []string `arg:"" optional:"" name:"file" help:"Handoffs; without any, all that wait in the inboxes."`
}

type lintView struct {
	Path     string            `json:"path"`
	Verdict  string            `json:"verdict"`
	Code     string            `json:"reason_code"`
	Target   string            `json:"target"`
	Problems []handoff.Problem `json:"problems"`
}

func (c *handoffLintCmd) Run(a *app) error {
	if _, err := a.open(false); err != nil {
		return err
	}
	var list []lintView
	b, err := a.bench(a.ws.View())
	if err != nil {
		return err
	}
	lint := func(box *inbox.Inbox, it inbox.Item) {
		name := filepath.Join(box.Path, shown(it))
		v := lintView{Path: name, Problems: []handoff.Problem{}}
		switch {
		case it.Err != nil:
			v.Verdict, v.Code = handoff.Skipped, "unreadable"
			v.Problems = []handoff.Problem{{Code: "unreadable", Message: reasonOf(it.Err)}}
		case it.Code != "":
			r, _ := handoff.Find(it.Code)
			v.Verdict, v.Code = r.Verdict, r.Code
			v.Problems = []handoff.Problem{{Code: r.Code, Warning: r.Verdict == handoff.Skipped, Message: r.Verdict + ": " + r.Means, Hint: r.Mend}}
		default:
			w := b.judge(queued{box: box, item: it})
			v.Verdict, v.Code, v.Target, v.Problems = w.Verdict, w.Code, w.Target, append(v.Problems, problems(it.Text, w)...)
		}
		list = append(list, v)
	}
	if len(c.Files) == 0 {
		// In the order in which ingest takes them: each in the light of the others.
		var all []func()
		var names []string
		if err := a.eachWaiting(func(b *inbox.Inbox, it inbox.Item) {
			names = append(names, it.Name)
			all = append(all, func() { lint(b, it) })
		}); err != nil {
			return err
		}
		for _, i := range order(names) {
			all[i]()
		}
	}
	for _, f := range c.Files {
		box, it, err := a.one(f)
		if err != nil {
			return err
		}
		if b, err = a.bench(a.ws.View()); err != nil {
			return err
		}
		lint(box, it)
		box.Close()
	}
	a.printLint(list)
	return nil
}

// one reads one handoff, as ingest would where it stands in an inbox.
func (a *app) one(file string) (*inbox.Inbox, inbox.Item, error) {
	dir, err := filepath.Abs(filepath.Dir(file))
	if err != nil {
		return nil, inbox.Item{}, err
	}
	boxes, _ := a.inboxes()
	for i := range boxes {
		b := &boxes[i]
		if b.Problem != "" || b.Path != dir && b.Path != resolved(dir) {
			continue
		}
		items, err := b.List()
		if err != nil {
			return nil, inbox.Item{}, err
		}
		for _, it := range items {
			if it.Name == filepath.Base(file) {
				b.Load(&it, handoff.MaxSize)
				it.Withheld = secretName(it.Name)
				return b, it, nil
			}
		}
	}
	box := inbox.At(filepath.Dir(file), "all", a.openBox)
	it, err := box.Read(filepath.Base(file), handoff.MaxSize)
	it.Withheld = secretName(it.Name)
	return &box, it, err
}

// secretName reports whether a file's name is one that must not be repeated.
func secretName(name string) bool {
	return len(guard.Secrets([]byte(name))) > 0 || len(guard.Secrets(guard.Plain([]byte(name)))) > 0
}

// shown is an item's name, for people.
func shown(it inbox.Item) string {
	if it.Withheld {
		return "(a name that looks like a credential)"
	}
	return it.Name
}

// order is the order of names, as indexes.
func order(names []string) []int {
	out := make([]int, len(names))
	for i := range out {
		out[i] = i
	}
	slices.SortStableFunc(out, func(x, y int) int { return strings.Compare(names[x], names[y]) })
	return out
}

func (a *app) printLint(list []lintView) {
	bad := 0
	for _, v := range list {
		a.say("%s: %s", v.Path, v.Verdict)
		failed := false
		for _, p := range v.Problems {
			kind := "error"
			if p.Warning {
				kind = "warning"
			} else {
				failed = true
			}
			a.say("  %s:%d: %s %s: %s", filepath.Base(v.Path), p.Line, kind, p.Code, p.Message)
			if p.Hint != "" {
				a.say("      %s", p.Hint)
			}
		}
		if failed {
			bad++
		}
	}
	outcome := "clean"
	if bad > 0 {
		outcome, a.code = "problems", exitFindings
	}
	a.say("%s, %d with errors", plural(len(list), "handoff"), bad)
	if list == nil {
		list = []lintView{}
	}
	a.object(map[string]any{"outcome": outcome, "handoffs": list})
}

// eachWaiting calls f for each handoff that waits in an inbox.
func (a *app) eachWaiting(f func(*inbox.Inbox, inbox.Item)) error {
	boxes, trouble := a.inboxes()
	for _, t := range trouble {
		a.warn("%s", t)
	}
	for i := range boxes {
		b := &boxes[i]
		if b.Problem != "" {
			a.warn("inbox %s: %s", b.Path, b.Detail)
			continue
		}
		items, err := b.List()
		if err != nil {
			a.warn("inbox %s: %v", b.Path, err)
			a.code = exitFailed
			continue
		}
		for _, it := range items {
			if b.Load(&it, handoff.MaxSize) {
				it.Withheld = secretName(it.Name)
				f(b, it)
			}
		}
		b.Close()
	}
	return nil
}

type handoffListCmd struct{}

type waitingView struct {
	ID    string `json:"id"`
	Path  string `json:"path"`
	Title string `json:"title"`
	Code  string `json:"reason_code"` // why it is not read, or ""
}

func (*handoffListCmd) Run(a *app) error {
	if _, err := a.open(false); err != nil {
		return err
	}
	list := []waitingView{}
	err := a.eachWaiting(func(b *inbox.Inbox, it inbox.Item) {
		v := waitingView{Path: filepath.Join(b.Path, shown(it)), Code: it.Code}
		if it.Text != nil {
			v.ID = handoff.ID(it.Text)
			if len(guard.Secrets(it.Text)) == 0 {
				v.Title, _ = handoff.Parse(it.Text).Field(handoff.Title)
			}
		}
		list = append(list, v)
		a.say("%-12s  %s  %s%s", v.ID, v.Path, v.Title, v.Code)
	})
	if err != nil {
		return err
	}
	if len(list) == 0 {
		a.say("no handoff waits")
	}
	a.object(map[string]any{"outcome": "ok", "handoffs": list})
	return nil
}

type handoffShowCmd struct {
	ID string `arg:"" help:"The beginning of a handoff's hash, or of its name."`
}

func (c *handoffShowCmd) Run(a *app) error {
	if _, err := a.open(false); err != nil {
		return err
	}
	found := false
	var failed error
	err := a.eachWaiting(func(b *inbox.Inbox, it inbox.Item) {
		if found || it.Text == nil || !strings.HasPrefix(handoff.ID(it.Text), strings.ToLower(c.ID)) && !strings.HasPrefix(it.Name, c.ID) {
			return
		}
		found = true
		var v handoff.Verdict
		if v, failed = a.wouldBe(b, it); failed != nil {
			return
		}
		a.say("%s  %s", handoff.ID(it.Text), filepath.Join(b.Path, it.Name))
		a.say("ingest: %s %s", v.Verdict, v.Target)
		if v.Reason != "" && v.Verdict != handoff.Applied {
			a.say("  %s: %s", v.Code, v.Reason)
		}
		text := string(it.Text)
		if v.Code == "secret" {
			text = "(not shown: it looks like a credential)\n"
		}
		for l := range strings.Lines(text) {
			a.say("%s", strings.TrimRight(l, "\r\n"))
		}
		a.object(map[string]any{"outcome": "waiting", "id": handoff.ID(it.Text), "path": filepath.Join(b.Path, it.Name), "verdict": v.Verdict, "reason_code": v.Code, "target": v.Target, "text": text})
	})
	if err = cmp.Or(err, failed); err != nil || found {
		return err
	}
	return a.landed(c.ID)
}

// notUndone looks whether a handoff that landed was taken back.
func (a *app) notUndone(h *handoffView) error {
	if h.TxID == "" {
		return nil
	}
	u, err := a.undone(h.TxID)
	if h.UndoneBy = u.by; u.by == "" {
		h.UndoneBy = u.parts[h.SHA256]
	}
	return err
}

// landed shows what became of a handoff, by the receipts, newest first.
func (a *app) landed(id string) error {
	hits, err := a.handoffReceipts(id)
	if err != nil {
		return err
	}
	if len(hits) == 0 {
		return &hinted{fmt.Errorf("no handoff %q waits, and no receipt tells of one", id), "mem handoff list, mem inbox"}
	}
	for i := range hits {
		if err := a.notUndone(&hits[i]); err != nil {
			return err
		}
	}
	for _, h := range hits {
		a.say("%s  %s", h.ID, h.Source)
		to := h.Target
		if h.Verdict == handoff.Review {
			to = h.Draft
		}
		a.say("  %s (%s) → %s", h.Verdict, h.Code, to)
		if h.UndoneBy != "" {
			a.say("  and taken back by %s: mem undo %s brings it again", h.UndoneBy, h.UndoneBy)
		}
		if h.TxID != "" {
			a.say("  receipt %s", h.TxID)
		} else {
			a.say("  %s", h.Reason)
		}
	}
	a.object(map[string]any{"outcome": "ok", "handoffs": hits})
	return nil
}

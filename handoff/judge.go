package handoff

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"strings"
	"sync"
	"unicode/utf8"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/guard"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

// Verdict is what happens to one handoff, and why.
type Verdict struct {
	Verdict string
	Code    string
	Reason  string // for people; never holds a credential
	Line    int    // in the handoff, where there is one
	Target  string
	Before  string // hash of the target before; plan.Absent
	After   string // hash after, as planned
	Draft   string // where it waits for a person
	Hostile bool   // kept where hosts do not index it
	Added   []byte // the block, of an append
	Offset  int    // where that begins in the text of the plan's step
}

func verdict(code string, line int, format string, args ...any) Verdict {
	r, _ := Find(code)
	v := Verdict{Verdict: r.Verdict, Code: code, Line: line, Reason: fmt.Sprintf(format, args...)}
	if v.Reason == "" {
		v.Reason = r.Means
	}
	return v
}

// Source is one handoff as it was found.
type Source struct {
	Name    string // base name
	Path    string // as found, for people and receipts
	Inbox   string
	Text    []byte
	Promote string // all, cards, none
}

// cardName is what a card may be called; reserved names are those of Windows.
var cardName = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,120}\.md$`) })

var reserved = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)^(?:con|prn|aux|nul|com[0-9]|lpt[0-9])(?:\..*)?$`)
})

func safeName(s string) bool {
	return cardName().MatchString(s) && !reserved().MatchString(s) && !strings.Contains(s, "..")
}

// budgets are the most that documents of a name may hold, in bytes (source:
// handoffs; they are loaded into every session).
var budgets = map[string]int{"TOOLS.md": 10_000, "USER.md": 8_000}

// Scan looks at a handoff's bytes before anything is made of it. ok is false
// if they can't be taken.
func Scan(text []byte) (v Verdict, ok bool) {
	if len(bytes.TrimSpace(text)) == 0 {
		return verdict("empty", 0, ""), false
	}
	for _, t := range [][]byte{text, guard.Plain(text)} {
		if found := guard.Secrets(t); len(found) > 0 {
			return verdict("secret", found[0].Line, "looks like a credential (%s)", found[0].Rule), false
		}
	}
	if !utf8.Valid(text) {
		at := entry.InvalidAt(text)
		return verdict("invalid-utf8", lineOf(text, at), "not valid UTF-8 at byte %d", at), false
	}
	for _, f := range guard.Hidden(text) {
		switch f.Rule {
		case "control-character", "tag-character", "bidi-control":
			return verdict(f.Rule, f.Line, ""), false
		}
	}
	return Verdict{}, true
}

func lineOf(b []byte, at int) int { return 1 + bytes.Count(b[:max(at, 0)], []byte("\n")) }

// structure is what is wrong with a handoff whatever the memory holds.
func structure(h Handoff) (Verdict, bool) {
	switch {
	case h.Unclosed > 0:
		return verdict("unclosed-fence", h.Unclosed, ""), false
	case len(h.Sections) == 0:
		return verdict("no-sections", 0, ""), false
	case len(h.Duplicates) > 0:
		d := h.Duplicates[0]
		return verdict("duplicate-section", d.Line, "the section %q stands twice", d.Name), false
	}
	card := h.Get(Card) != "" || h.Get(Content) != ""
	doc := h.Get(Document) != "" || h.Get(Block) != ""
	if card && doc {
		line := 0
		for _, s := range h.Sections {
			if (s.Name == Document || s.Name == Block) && line == 0 {
				line = s.Line
			}
		}
		return verdict("both-branches", line, ""), false
	}
	return Verdict{}, true
}

// Batch judges handoffs in a row.
type Batch struct {
	m     fs.FS
	rules tiers.Rules
	at    string // stamp of the run, for names
	day   string

	// Known reports whether a file of that hash was ingested before.
	Known func(sha256 string) bool
	// Lost are hashes that the ledger should hold and does not: they go into it
	// with those of this run.
	Lost []string
	// Archived reports whether a lesson of that text was archived.
	Archived func(text []byte) bool

	seen  map[string]bool  // hashes in this run
	files map[string]*file // targets that this run has looked at
	cards map[string]string
	order []string // targets that this run changes
	extra []plan.Step

	landed []string // hashes for the ledger
}

// file is a target as it is, and as this run leaves it.
type file struct {
	orig, now []byte // nil: absent
	err       error  // it can't be a target
	trouble   error  // it could not be looked at
	updated   bool
	blocks    []byte          // what is appended
	lines     map[string]bool // of the document, as this run leaves it
	before    string
}

// hash is that of the file before the run.
func (f *file) hash() string {
	if f.before == "" {
		f.before = stateHash(f.orig)
	}
	return f.before
}

// holds reports whether the document, as this run leaves it, holds a block.
// Most do not even hold its first line, which is known at once.
func (f *file) holds(block []byte) bool {
	if f.lines == nil {
		f.lines = map[string]bool{}
		f.addLines(f.orig)
	}
	first, _, _ := bytes.Cut(block, []byte("\n"))
	return f.lines[string(bytes.TrimSpace(first))] && (Holds(f.orig, block) || Holds(f.blocks, block))
}

// content is the document whose line ends count.
func (f *file) content() []byte {
	if len(f.orig) > 0 {
		return f.orig
	}
	return f.blocks
}

func (f *file) addLines(b []byte) {
	for l := range bytes.Lines(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))) {
		f.lines[string(bytes.TrimSpace(l))] = true
	}
}

func (f *file) add(block []byte) {
	if len(f.blocks) > 0 {
		f.blocks = append(f.blocks, entry.EOL(block)...)
	}
	f.blocks = append(f.blocks, block...)
	f.addLines(block)
}

// NewBatch begins a run. stamp is the run's instant as it stands in names.
func NewBatch(m fs.FS, rules tiers.Rules, stamp, day string) *Batch {
	return &Batch{m: m, rules: rules, at: stamp, day: day, seen: map[string]bool{}, files: map[string]*file{}}
}

// Judge decides about one handoff and remembers what it changes.
func (b *Batch) Judge(s Source) Verdict {
	sum := plan.Hash(s.Text)
	if v, ok := Scan(s.Text); !ok {
		return v
	}
	h := Parse(s.Text)
	if v, ok := structure(h); !ok {
		return v
	}
	if b.seen[sum] || b.Known != nil && b.Known(sum) {
		return verdict("already-ingested", 0, "")
	}
	v := b.route(s, h)
	if v.Target != "" && b.files[v.Target].trouble != nil {
		return verdict("unreadable", 0, "%s: %v", v.Target, b.files[v.Target].trouble) // it waits: nothing is decided on a disk that fails
	}
	if v.Verdict == Review {
		// A draft holds the whole handoff, whatever part of it was judged.
		v.Hostile = v.Hostile || len(guard.Hidden(s.Text)) > 0 || len(guard.Injection(s.Text)) > 0
		b.draft(s, sum, &v)
	}
	if v.Verdict == Review || v.Verdict == Applied {
		b.landed = append(b.landed, sum)
	}
	b.seen[sum] = true
	return v
}

// route decides where a well-formed handoff goes.
func (b *Batch) route(s Source, h Handoff) Verdict {
	if s.Promote == "none" {
		if v := b.copy(s.Text); v.Verdict == Duplicate {
			return v
		}
		return verdict("promote-none", 0, "")
	}
	action, _ := h.Field(Action)
	switch strings.ToLower(action) {
	case "create-card", "update-card":
		return b.card(h, strings.ToLower(action) == "update-card")
	case "no-card":
		if s.Promote == "cards" && h.Get(Document) != "" {
			return verdict("promote-cards", 0, "")
		}
		return b.document(h)
	}
	a, _ := h.Section(Action)
	if action == "" {
		return verdict("unknown-action", a.Line, "no Recommended memory action")
	}
	return verdict("unknown-action", a.Line, "%q is no Recommended memory action", short(action))
}

// copy looks whether the memory holds what a handoff says already.
func (b *Batch) copy(text []byte) Verdict {
	target, content, whole, ok := Landing(text)
	if !ok || !b.allowed(target) && !strings.HasPrefix(target, "memory/cards/") {
		return Verdict{}
	}
	f := b.file(target)
	switch {
	case whole && f.now != nil && bytes.Equal(f.now, content):
		return targeted(verdict("same-card", 0, ""), target)
	case !whole && f.holds(content):
		return targeted(verdict("same-block", 0, ""), target)
	}
	return Verdict{}
}

// short is untrusted text in a message: one line, not long.
func short(s string) string {
	r := []rune(strings.Join(strings.Fields(s), " "))
	if len(r) > 60 {
		r = append(r[:60], '…')
	}
	return string(r)
}

func (b *Batch) card(h Handoff, update bool) Verdict {
	name, one := h.Field(Card)
	sec, _ := h.Section(Card)
	content := peel(h.Get(Content))
	con, _ := h.Section(Content)
	switch {
	case name == "":
		return verdict("no-target", sec.Line, "no Target card")
	case !one || !safeName(name):
		return verdict("unsafe-target", sec.Line, "%q is no plain card name", short(name))
	case content == "":
		return verdict("no-content", con.Line, "no Suggested card content")
	}
	front, code, err := readFrontmatter(content)
	if err != nil {
		return verdict(code, con.Line, "%v", err)
	}
	if v, bad := tripwires(content, con.Line); bad {
		return v
	}
	target := "memory/cards/" + name
	f := b.file(target)
	if f.err != nil {
		return targeted(verdict("target-unfit", sec.Line, "%s: %v", target, f.err), target)
	}
	text := cardText(content)
	if f.now != nil && bytes.Equal(f.now, text) {
		return targeted(verdict("same-card", 0, ""), target)
	}
	var v Verdict
	if update {
		v = b.update(h, f, target)
	} else {
		v = b.create(f, target, front)
	}
	v.Target = target
	v.Before, v.After = stateHash(f.now), plan.Hash(text)
	if v.Verdict != Applied {
		v.After = ""
		return v
	}
	b.change(target, f)
	b.forget(target, f.now)
	f.now, f.updated = text, true
	b.index(target, text)
	return v
}

// cardText is a card as it is stored: the content, ended by one line end of
// its own kind.
func cardText(content string) []byte {
	return []byte(strings.TrimRight(content, " \t\r\n") + entry.EOL([]byte(content)))
}

// blockText is a block as it is added to a document: with the line ends that
// the document has, if it is there, else its own.
func blockText(block string, doc []byte) []byte {
	eol := entry.EOL([]byte(block))
	if len(doc) > 0 {
		eol = entry.EOL(doc)
	}
	return append(bytes.ReplaceAll(unixLines([]byte(block)), []byte("\n"), []byte(eol)), eol...)
}

// unixLines is a text with LF for CRLF: how its lines end does not count where
// texts are compared.
func unixLines(b []byte) []byte { return bytes.ReplaceAll(b, []byte("\r\n"), []byte("\n")) }

func targeted(v Verdict, target string) Verdict {
	v.Target = target
	return v
}

func stateHash(b []byte) string { return plan.StateOf(b).Hash }

func (b *Batch) create(f *file, target string, front frontmatter) Verdict {
	if f.now != nil {
		return verdict("card-exists", 0, "%s is there already", target)
	}
	if twin := b.twin(front); twin != "" && twin != target {
		return verdict("near-duplicate", 0, "%s has the same topic and text", twin)
	}
	return verdict("created", 0, "")
}

func (b *Batch) update(h Handoff, f *file, target string) Verdict {
	sec, _ := h.Section(Expected)
	want, _ := h.Field(Expected)
	want = strings.ToLower(want)
	switch {
	case f.now == nil:
		return verdict("card-missing", 0, "%s is not there", target)
	case want == "":
		return verdict("missing-hash", sec.Line, "")
	case len(want) != 64 || strings.Trim(want, "0123456789abcdef") != "":
		return verdict("bad-hash", sec.Line, "")
	case f.updated:
		return verdict("hash-conflict", sec.Line, "another handoff of this run has changed %s", target)
	case stateHash(f.now) != want:
		return verdict("hash-conflict", sec.Line, "%s is %s, not what its writer had read", target, stateHash(f.now)[:12])
	}
	return verdict("updated", 0, "")
}

func (b *Batch) document(h Handoff) Verdict {
	name, one := h.Field(Document)
	sec, _ := h.Section(Document)
	block := h.Get(Block)
	con, _ := h.Section(Block)
	switch {
	case name == "" && block == "":
		return verdict("no-target", 0, "nothing to write: neither a card nor a document")
	case name == "":
		return verdict("no-target", con.Line, "no Target document")
	case !one || !b.allowed(name):
		return verdict("unsafe-target", sec.Line, "%q is no document that handoffs may write", short(name))
	case block == "":
		return verdict("no-content", con.Line, "no Suggested document content")
	}
	if line := levelTwo(block); line > 0 {
		return verdict("heading-in-document", con.Line+line, "")
	}
	if v, bad := tripwires(block, con.Line); bad {
		return v
	}
	f := b.file(name)
	if f.err != nil {
		return targeted(verdict("target-unfit", sec.Line, "%s: %v", name, f.err), name)
	}
	text := blockText(block, f.content())
	if f.holds(text) {
		return targeted(verdict("same-block", 0, ""), name)
	}
	if path.Dir(name) == b.rules.Scratch.Dir && b.Archived != nil && b.Archived(text) {
		return targeted(verdict("archived-lesson", 0, ""), name)
	}
	const separators = 4 // a line end that is missing, and a blank line, at most
	size := len(f.orig) + len(f.blocks) + len(text) + separators
	if size > entry.MaxNote {
		return targeted(verdict("target-unfit", sec.Line, "%s would grow to %d bytes, over the limit", name, size), name)
	}
	if limit := budgets[name]; limit > 0 && size-separators+1 > limit {
		return targeted(verdict("over-budget", sec.Line, "%s would have %d bytes, at most %d", name, size-separators+1, limit), name)
	}
	v := targeted(verdict("appended", 0, ""), name)
	v.Before, v.Added, v.Offset = f.hash(), text, len(f.blocks)
	if v.Offset > 0 {
		v.Offset += len(entry.EOL(text)) // a blank line
	}
	b.change(name, f)
	f.add(text)
	return v
}

// allowed reports whether handoffs may append to a document.
func (b *Batch) allowed(name string) bool {
	if name == "TOOLS.md" || name == "USER.md" {
		return true
	}
	for _, f := range b.rules.Scratch.Files {
		if name == path.Join(b.rules.Scratch.Dir, f) {
			return true
		}
	}
	base, ok := strings.CutPrefix(name, "rules/")
	return ok && safeName(base)
}

// levelTwo finds a heading of level 2, or a bare one, outside code fences.
func levelTwo(s string) int {
	var inside fence
	n := 0
	// A carriage return alone ends a line for those who show the text.
	s = strings.ReplaceAll(strings.ReplaceAll(s, "\r\n", "\n"), "\r", "\n")
	for line := range strings.Lines(s) {
		n++
		line = strings.TrimRight(line, "\n")
		if inside.next(line) || strings.HasPrefix(line, "    ") { // code
			continue
		}
		if rest, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "##"); ok && (rest == "" || rest[0] == ' ' || rest[0] == '\t') {
			return n
		}
	}
	return 0
}

// tripwires looks for text that wants more than to be remembered.
func tripwires(content string, line int) (Verdict, bool) {
	if found := guard.Hidden([]byte(content)); len(found) > 0 {
		v := verdict("hidden-text", line+found[0].Line, "%s", found[0].Rule)
		v.Hostile = true
		return v, true
	}
	if found := guard.Injection([]byte(content)); len(found) > 0 {
		v := verdict("injection", line+found[0].Line, "%s", found[0].Rule)
		v.Hostile = true
		return v, true
	}
	return Verdict{}, false
}

// file looks at a target once.
func (b *Batch) file(name string) *file {
	if f, ok := b.files[name]; ok {
		return f
	}
	f := &file{}
	b.files[name] = f
	if f.err = plainParents(b.m, name); f.err != nil {
		var p *fs.PathError
		if errors.As(f.err, &p) {
			f.trouble = f.err
		}
		return f
	}
	info, err := fs.Lstat(b.m, name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return f
	case err != nil:
		f.err, f.trouble = err, err
	case !info.Mode().IsRegular():
		f.err = errors.New("is no regular file")
	case info.Size() > entry.MaxNote:
		f.err = fmt.Errorf("has %d bytes", info.Size())
	}
	if f.err != nil {
		return f
	}
	text, err := fs.ReadFile(b.m, name)
	if f.trouble = err; err == nil {
		err = entry.CheckText(text, entry.MaxNote)
	}
	if f.err = err; err == nil {
		if text == nil {
			text = []byte{}
		}
		f.orig, f.now = text, text
	}
	return f
}

// plainParents makes sure that no directory on the way is a symlink or a file.
func plainParents(m fs.FS, name string) error {
	for dir := path.Dir(name); dir != "."; dir = path.Dir(dir) {
		info, err := fs.Lstat(m, dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return err
		}
		if !info.IsDir() {
			return fmt.Errorf("%s is no directory", dir)
		}
	}
	return nil
}

func (b *Batch) change(name string, f *file) {
	if f.blocks == nil && !f.updated {
		b.order = append(b.order, name)
	}
}

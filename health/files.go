package health

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/guard"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/walk"
)

// file is one memory file in the hands of a worker.
type file struct {
	p      *pass
	w      *found
	path   string
	dir    string
	base   string
	tier   tiers.Tier
	tagged bool
	day    string // of an active daily note
	body   []byte
	nlinks int
}

func (f *file) add(check string, line int, format string, args ...any) {
	f.most(Fail, check, line, format, args...)
}

// most adds a finding that is at most so severe.
func (f *file) most(s Severity, check string, line int, format string, args ...any) {
	c, _ := Find(check)
	f.p.add(f.w, s, Finding{Check: check, Tier: string(f.tier), Path: f.path, Line: line, Message: fmt.Sprintf(format, args...), Fix: c.Mend})
}

// visit looks at one file. It runs in several goroutines, each with its own i.
func (p *pass) visit(i int, v *walk.File) {
	w := &p.workers[i]
	if v.Dir != w.dir || w.in == nil {
		w.dir, w.in, w.daily = v.Dir, p.rules.In(v.Dir), slices.Contains(p.rules.Notes, v.Dir)
	}
	f := file{p: p, w: w, path: v.Base, dir: v.Dir, base: v.Base, body: v.Body}
	if v.Dir != "." {
		f.path = v.Dir + "/" + v.Base
	}
	f.tier, f.tagged = w.in(v.Base)
	if v.Mode.IsDir() {
		if !errors.Is(v.Err, fs.ErrNotExist) {
			f.add("fs.shape", 0, "cannot be read: %v", reason(v.Err))
		}
		return
	}
	if strings.HasPrefix(v.Base, ".mem-") {
		most := Warn
		if p.running != "" {
			most = Info
		}
		f.most(most, "buffer.interrupted", 0, "a killed run left this staged file")
		p.fixLast(w, "mem recover")
		return
	}
	w.files++
	if oddName(v.Base) {
		w.odd = append(w.odd, named{v.Dir, v.Base})
	}
	if day, ok := tiers.NoteDay(v.Base); ok && w.daily {
		f.day = day
		w.addNotes(civil(day), 1, f.path)
		if w.places == nil || !w.places[v.Dir] {
			w.place(v.Dir)
		}
		if day > p.today {
			f.tier = tiers.COLD
			f.add("cold.names", 0, "is dated in the future")
		}
	} else if f.dir == path.Dir(p.rules.Note) && f.tier != tiers.WARM && f.tier != tiers.HOT && f.tier != tiers.BUFFER && !tiers.NotMemory(v.Base) {
		f.tier = tiers.COLD
		f.add("cold.names", 0, "is not named by a day")
	}
	switch {
	case v.Mode&fs.ModeSymlink != 0:
		f.add("fs.shape", 0, "is a symlink; mem does not follow it")
		return
	case v.Mode.Type() != 0:
		f.add("fs.shape", 0, "is no regular file")
		return
	case errors.Is(v.Err, walk.ErrTooLarge):
		f.add("fs.shape", 0, "has %d bytes, more than the %d that are read", v.Size, MaxFile)
		return
	case v.Err != nil:
		if !errors.Is(v.Err, fs.ErrNotExist) { // gone since it was listed
			f.add("fs.shape", 0, "cannot be read: %v", reason(v.Err))
		}
		return
	}
	if v.Links > 1 {
		f.add("fs.shape", 0, "has %d names (hard links): a write to one may change the others", v.Links)
	}
	if f.tier == "" || v.Body == nil {
		return
	}
	f.check()
}

func reason(err error) string {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err.Error()
	}
	return err.Error()
}

func oddName(base string) bool {
	for i := range len(base) {
		if c := base[i]; c >= 'A' && c <= 'Z' || c >= utf8.RuneSelf {
			return true
		}
	}
	return false
}

// check looks into a file.
func (f *file) check() {
	if !f.encoding() {
		return
	}
	if f.p.on["cold.secrets"] {
		for _, s := range guard.Secrets(f.body) {
			f.add("cold.secrets", s.Line, "looks like a credential (%s); its text is not shown", s.Rule)
		}
	}
	switch f.tier {
	case tiers.HOT:
		f.hot()
		f.tags()
		f.facts()
	case tiers.WARM:
		f.tags()
		if f.p.on["warm.links"] {
			f.links("warm.links", 0, len(f.body))
		}
		f.facts()
	case tiers.BUFFER:
		f.buffer()
	case tiers.COLD:
		if f.day != "" {
			f.closure()
		}
	case tiers.SCRATCH:
		f.scratch()
	}
}

// encoding checks that the text is UTF-8; false: it can't be looked into.
func (f *file) encoding() bool {
	nul := bytes.IndexByte(f.body, 0)
	if nul < 0 && utf8.Valid(f.body) {
		return true
	}
	if entry.IsUTF16(f.body) {
		f.add("text.encoding", 0, "is UTF-16, not UTF-8: it cannot be appended to, and is not searched")
		f.p.fixLast(f.w, "iconv -f "+utf16(f.body)+" -t UTF-8 "+shellWord(f.path)+" | mem write "+shellWord(f.path))
		return false
	}
	if at := entry.InvalidAt(f.body); at >= 0 {
		f.most(Warn, "text.encoding", lineAt(f.body, at), "is not valid UTF-8 at byte %d", at)
	} else {
		f.most(Warn, "text.encoding", lineAt(f.body, nul), "holds a NUL at byte %d", nul)
	}
	return true
}

// utf16 is iconv's name for the kind of UTF-16 that a text is.
func utf16(b []byte) string {
	switch {
	case b[0] == 0xff && b[1] == 0xfe, b[0] == 0xfe && b[1] == 0xff:
		return "UTF-16"
	case b[0] == 0:
		return "UTF-16BE"
	}
	return "UTF-16LE"
}

func lineAt(b []byte, at int) int { return 1 + bytes.Count(b[:at], []byte("\n")) }

// fixLast names the command of the finding that was added last.
func (p *pass) fixLast(w *found, command string) {
	if n := len(w.findings); n > 0 && strings.IndexFunc(command, unicode.IsControl) < 0 {
		w.findings[n-1].Command = command // names with line ends make no command
	}
}

// shellWord quotes a word for a shell where it must be.
func shellWord(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-./@:+,=") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// tags checks line 2, and in WARM the date of verification.
func (f *file) tags() {
	if !f.tagged {
		return
	}
	h := entry.ParseHeader(f.body)
	switch {
	case !h.Tagged:
		f.add("tags.line2", 2, "line 2 is not a #tags: line")
	case len(h.Tags) == 0:
		f.add("tags.line2", 2, "the #tags: line has no tag")
	}
	for _, t := range h.Tags {
		if !f.p.vocab[t] {
			f.add("tags.vocabulary", 2, "%q is not in the frozen vocabulary; nearest: %s", t, f.p.nearestTag(t))
			f.p.fixLast(f.w, "mem tags")
		}
	}
	if f.tier != tiers.WARM || !f.p.on["warm.verified"] {
		return
	}
	verify := "mem verify " + shellWord(f.path)
	switch day, err := h.VerifiedDay(f.p.rules.Location); {
	case h.VerifiedLine == 0:
		f.add("warm.verified", 1, "has no last_verified in its header")
	case err != nil:
		f.add("warm.verified", h.VerifiedLine, "last_verified: %v", err)
	case day > f.p.today:
		f.add("warm.verified", h.VerifiedLine, "last_verified %s is in the future", day)
	default:
		age, limit := int(civil(f.p.today)-civil(day)), days(f.p.rules.TTL.Verified)
		if limit == 0 || age < limit {
			return
		}
		f.add("warm.verified", h.VerifiedLine, "last verified %d days ago (%s); the limit is %d", age, day, limit)
	}
	f.p.fixLast(f.w, verify)
}

func days(d time.Duration) int { return int(d / (24 * time.Hour)) }

func (p *pass) nearestTag(t string) string {
	return tiers.Nearest(strings.ToLower(t), p.tagList())
}

func (p *pass) tagList() []string {
	var out []string
	for _, list := range p.rules.Tags {
		out = append(out, list...)
	}
	slices.Sort(out)
	return out
}

// closure checks the end of a daily note.
func (f *file) closure() {
	if !f.p.on["cold.closure"] {
		return
	}
	most, command := Fail, ""
	if f.day == f.p.today {
		most, command = Warn, "mem close"
	}
	problem := func(line int, format string, args ...any) {
		f.most(most, "cold.closure", line, format, args...)
		if n := len(f.w.findings); n > 0 && command != "" {
			f.w.findings[n-1].Command = command
		}
	}
	updated, ok := entry.Closes(f.body)
	if ok {
		if !tiers.ValidDay(updated) {
			problem(lineAt(f.body, bytes.LastIndex(f.body, []byte("Updated:"))), "closure block: Updated: %q is not a date", updated)
		}
		return
	}
	c, ok := entry.FindClosure(f.body)
	if !ok {
		problem(entry.CountLines(f.body), "does not end with a closure block (Updated, Decisions, Signal, Open)")
		return
	}
	at := lineAt(f.body, c.Start)
	if c.Displaced {
		command = "mem health --fix"
		problem(at, "text stands after the closure block")
		return
	}
	for i, v := range []string{c.Updated, c.Decisions, c.Signal, c.Open} {
		if v == "" {
			problem(at+i, "closure block: %s is empty", [...]string{"Updated", "Decisions", "Signal", "Open"}[i])
		}
	}
}

// buffer checks the working buffer itself.
func (f *file) buffer() {
	b := entry.ParseBuffer(f.body)
	rules := f.p.rules
	if n := b.Lines; n > rules.Limits.BufferLines {
		f.add("buffer.size", rules.Limits.BufferLines+1, "%d lines, the limit is %d", n, rules.Limits.BufferLines)
		f.p.fixLast(f.w, "mem rotate")
	}
	if f.p.on["buffer.header"] && !b.Empty() || b.Dialect != entry.Canonical {
		f.header(b)
	}
	if b.Unfinished() {
		if t, ok := b.Active(rules.Location); ok && rules.TTL.AbandonedBuffer > 0 && f.p.now.Sub(t) > rules.TTL.AbandonedBuffer {
			f.add("buffer.abandoned", 0, "unfinished, and last active %s ago", ago(f.p.now.Sub(t)))
			f.p.fixLast(f.w, "mem rotate --force")
		}
	}
}

func (f *file) header(b entry.Buffer) {
	line, message := headerProblem(f.body)
	if line == 0 {
		return
	}
	f.add("buffer.header", line, "%s", message)
	f.p.fixLast(f.w, "mem rotate --force")
}

// headerProblem names the first line of a buffer's header that is not as it
// must be.
func headerProblem(body []byte) (line int, message string) {
	rest := bytes.TrimPrefix(body, []byte("\xef\xbb\xbf"))
	var head [4]string
	n := 0
	for l := range bytes.Lines(rest) {
		if n == len(head) {
			break
		}
		head[n] = strings.TrimRight(string(l), "\r\n")
		n++
	}
	if head[0] != entry.Title {
		return 1, "line 1 is not \"" + entry.Title + "\""
	}
	for i, key := range []string{"created:", "last_active:"} {
		value, ok := strings.CutPrefix(head[1+i], key)
		if !ok {
			return 2 + i, fmt.Sprintf("line %d is not %q with a time", 2+i, key)
		}
		if _, err := entry.ParseInstant(value); err != nil {
			return 2 + i, key + " " + err.Error()
		}
	}
	if strings.TrimSpace(head[3]) != "" {
		return 4, "line 4 is not blank"
	}
	return 0, ""
}

func ago(d time.Duration) string {
	if d >= 48*time.Hour {
		return fmt.Sprintf("%d days", d/(24*time.Hour))
	}
	return fmt.Sprintf("%d h %d min", d/time.Hour, d%time.Hour/time.Minute)
}

// scratch checks a SCRATCH file's name and collects its lessons.
func (f *file) scratch() {
	canonical := false
	for _, name := range f.p.rules.Scratch.Files {
		if name == f.base {
			canonical = true
		} else if strings.EqualFold(name, f.base) {
			f.w.spelled = append(f.w.spelled, spelled{f.path, path.Join(f.dir, name)})
			return
		}
	}
	if !canonical {
		f.add("scratch.canonical", 0, "is not one of %s", strings.Join(f.p.rules.Scratch.Files, ", "))
		f.p.fixLast(f.w, "mem archive lessons --legacy")
		return
	}
	if !f.p.on["scratch.duplicates"] {
		return
	}
	ref := int32(-1)
	for _, l := range entry.ParseLessons(f.body) {
		text := entry.Fold(l.Summary)
		if len(strings.Fields(text)) < 3 {
			continue // "test", "later": says too little to be the same
		}
		if ref < 0 {
			f.w.refs = append(f.w.refs, f.path)
			ref = int32(len(f.w.refs) - 1)
		}
		f.w.lessons = append(f.w.lessons, fact{hash(text), ref, int32(l.Line)})
	}
}

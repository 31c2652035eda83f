package health

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/tiers"
)

// whole adds a finding about no single file's text.
func (p *pass) note(all *found, most Severity, check, name string, line int, command, format string, args ...any) {
	c, _ := Find(check)
	tier := string(p.rules.TierOf(name))
	if tier == "" {
		tier = c.Tier
	}
	p.add(all, most, Finding{Check: check, Tier: tier, Path: name, Line: line, Message: fmt.Sprintf(format, args...), Fix: c.Mend, Command: command})
}

func (p *pass) hotPresent(all *found) {
	file := p.rules.Hot.File
	info, err := fs.Lstat(p.m, file)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		p.note(all, Fail, "hot.present", file, 0, "mem init", "is missing")
	case err != nil:
		p.note(all, Fail, "hot.present", file, 0, "", "cannot be looked at: %v", reason(err))
	case !info.Mode().IsRegular():
		p.note(all, Fail, "hot.present", file, 0, "", "is not a regular file")
	}
	entries, err2 := fs.ReadDir(p.m, path.Dir(file))
	if err2 != nil {
		return
	}
	for _, e := range entries {
		name := path.Join(path.Dir(file), e.Name())
		if name == file || !strings.EqualFold(name, file) {
			continue
		}
		if other, err := fs.Lstat(p.m, name); err == nil && info != nil && sameFile(info, other) {
			continue
		}
		p.note(all, Warn, "hot.present", name, 0, "", "stands beside %s, which is the one that is read", path.Base(file))
	}
}

func sameFile(a, b fs.FileInfo) bool {
	type ided interface{ FileID() (dev, ino uint64) }
	x, ok := a.(ided)
	y, ok2 := b.(ided)
	if !ok || !ok2 {
		return false
	}
	d1, i1 := x.FileID()
	d2, i2 := y.FileID()
	return d1 == d2 && i1 == i2
}

func (p *pass) bufferPresent(all *found) {
	file := p.rules.Buffer.File
	info, err := fs.Lstat(p.m, file)
	switch {
	case errors.Is(err, fs.ErrNotExist) && p.rules.Buffer.Required:
		p.note(all, Fail, "buffer.header", file, 0, "mem health --fix", "there is no working buffer")
	case err == nil && !info.Mode().IsRegular():
		p.note(all, Fail, "buffer.header", file, 0, "", "is not a regular file")
	}
}

// interrupted looks for what a crash leaves.
func (p *pass) interrupted(all *found) {
	most, why := Fail, ""
	if p.running != "" {
		most, why = Info, " ("+p.running+" is running)"
	}
	if file := p.rules.Buffer.File; file != "" {
		dir, base := path.Split(file)
		entries, err := fs.ReadDir(p.m, path.Clean(dir))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			p.note(all, Fail, "buffer.interrupted", path.Clean(dir), 0, "", "cannot be read: %v", reason(err))
		}
		for _, e := range entries {
			name := dir + e.Name()
			switch suffix, ok := strings.CutPrefix(e.Name(), base+"."); {
			case !ok:
			case suffix == "rotating", strings.HasPrefix(suffix, "pending"):
				p.note(all, most, "buffer.interrupted", name, 0, "mem recover", "an interrupted rotation left its text here%s", why)
			case suffix == "lock" && p.staleLock(name):
				p.note(all, most, "buffer.interrupted", name, 0, "mem recover", "is stale: the buffer was last active long before%s", why)
			}
		}
	}
	entries, err := fs.ReadDir(p.m, ".mem/tx")
	if err != nil {
		return
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".json") && !e.IsDir() {
			p.note(all, most, "buffer.interrupted", ".mem/tx/"+e.Name(), 0, "mem recover", "a transaction is not finished%s", why)
		}
	}
}

// staleLock reports whether a sentinel is older than any session could be.
func (p *pass) staleLock(lock string) bool {
	t, ok := p.lastActive()
	for _, name := range []string{p.rules.Buffer.File, lock} {
		if info, err := fs.Stat(p.m, name); !ok && err == nil {
			t = info.ModTime() // where nothing tells, for this only
		}
	}
	return !t.IsZero() && p.now.Sub(t) >= p.rules.TTL.AbandonedBuffer
}

func (p *pass) lastActive() (time.Time, bool) {
	b, err := fs.ReadFile(p.m, p.rules.Buffer.File)
	if err != nil {
		return time.Time{}, false
	}
	return entry.ParseBuffer(b).Active(p.rules.Location)
}

func (p *pass) sessionActive(all *found) {
	if ago2, ok := Stamped(p.m, p.now); ok && ago2 < p.rules.TTL.AbandonedBuffer {
		p.note(all, Info, "session.active", activeDir, 0, "", "a session was active %s ago; the weekly review would wait", ago(max(ago2, 0)))
	}
	t, ok := p.lastActive()
	age := p.now.Sub(t)
	switch {
	case ok && age < 0:
		p.note(all, Info, "session.active", p.rules.Buffer.File, 0, "", "last_active %s is in the future; taken as an active session", t.Format(time.RFC3339))
	case ok && age < p.rules.TTL.AbandonedBuffer:
		p.note(all, Info, "session.active", p.rules.Buffer.File, 0, "", "a session is active (last active %s ago); the weekly review would wait", ago(age))
	case !ok:
		if _, err := fs.Stat(p.m, p.rules.Buffer.File+".lock"); err == nil {
			p.note(all, Info, "session.active", p.rules.Buffer.File+".lock", 0, "", "a session is active; the weekly review would wait")
		}
	}
}

// lateBy is how many days past its time a note fails the check: nobody
// archives (spec: two weekly reviews missed).
const lateBy = 14

func (p *pass) noteCount(all *found) {
	limit := days(p.rules.TTL.Notes)
	if limit == 0 {
		return
	}
	today := civil(p.today)
	n, total, oldest := 0, 0, int32(1<<30)
	for day, d := range all.notes {
		total += d.n
		if int(today-day) > limit {
			n += d.n
			oldest = min(oldest, day)
		}
	}
	if n == 0 {
		return
	}
	age, most := int(today-oldest), Warn
	if age > limit+lateBy {
		most = Fail
	}
	p.note(all, most, "cold.count", all.notes[oldest].first, 0, "mem archive", "%d of %d daily notes are older than %d days; this one is the oldest, %d days", n, total, limit, age)
}

// Neighbours of a note are notes within so many days; a note with none, but
// with some at the same time of another year, has the wrong year.
const (
	neighbourhood = 31
	sameTime      = 3
	year          = 365
)

func (p *pass) noteNames(all *found) {
	within := func(from, to int32) int {
		n := 0
		for d := from; d <= to; d++ {
			n += all.notes[d].n
		}
		return n
	}
	for day, d := range all.notes {
		if day > civil(p.today) || within(day-neighbourhood, day+neighbourhood) > 1 {
			continue
		}
		for _, off := range []int32{year, -year} {
			if k := within(day+off-sameTime, day+off+sameTime+1); k >= 2 {
				p.note(all, Fail, "cold.names", d.first, 0, "", "has no note near it, but %d at the same time of another year: is its year right?", k)
				break
			}
		}
	}
	if len(all.places) > 1 {
		dirs := slices.Sorted(maps.Keys(all.places))
		p.note(all, Fail, "cold.names", dirs[0], 0, "", "daily notes stand in %s: agents look in one place", strings.Join(dirs, " and in "))
	}
}

// shapes looks for names that differ only in case, and for the layout's
// directories.
func (p *pass) shapes(all *found) {
	first := map[string]string{}
	slices.SortFunc(all.odd, func(a, b named) int { return cmp.Or(cmp.Compare(a.dir, b.dir), cmp.Compare(a.base, b.base)) })
	for _, o := range all.odd {
		name, low := path.Join(o.dir, o.base), path.Join(o.dir, strings.ToLower(o.base))
		twin := first[low]
		if twin == "" && low != name && p.listed(o.dir, path.Base(low)) {
			twin = low
		}
		if first[low] == "" {
			first[low] = name
		}
		if twin != "" && !strings.EqualFold(name, p.rules.Hot.File) {
			p.note(all, Fail, "fs.shape", name, 0, "", "differs only in case from %s: on other systems they are one file", twin)
			all.findings[len(all.findings)-1].Fix = "merge the two, or rename one"
		}
	}
	for _, dir := range p.rules.Dirs {
		info, err := fs.Lstat(p.m, dir)
		switch {
		case errors.Is(err, fs.ErrNotExist):
			p.note(all, Fail, "fs.shape", dir, 0, "mem health --fix", "the directory is missing")
		case err == nil && info.Mode()&fs.ModeSymlink == 0 && !info.IsDir():
			p.note(all, Fail, "fs.shape", dir, 0, "", "is not a directory")
		case err == nil && info.Mode()&fs.ModeSymlink != 0:
			p.note(all, Fail, "fs.shape", dir, 0, "", "is a symlink; mem does not follow it")
		}
	}
}

// listed reports whether a directory lists exactly this name: a file system
// that ignores case would find it anyway.
func (p *pass) listed(dir, base string) bool {
	if _, err := fs.Stat(p.m, path.Join(dir, base)); err != nil {
		return false
	}
	entries, err := fs.ReadDir(p.m, dir)
	return err == nil && slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return e.Name() == base })
}

// spelling names SCRATCH files that agents do not find by their names.
func (p *pass) spelling(all *found) {
	for _, s := range all.spelled {
		if p.there(s.want) {
			p.note(all, Fail, "scratch.canonical", s.path, 0, "", "stands beside %s, which agents read", s.want)
			all.findings[len(all.findings)-1].Fix = "move its entries there by hand, then remove it"
			continue
		}
		p.note(all, Fail, "scratch.canonical", s.path, 0, "mv "+shellWord(s.path)+" "+shellWord(s.want), "agents look for %s", s.want)
	}
}

// waitFor is how many days a draft may wait.
const waitFor = 14

func (p *pass) waiting(all *found) {
	boxes, err := fs.Glob(p.m, ".*/memory-handoffs/malformed")
	for _, dir := range boxes {
		if n := len(p.entries(dir)); n > 0 && err == nil {
			p.note(all, Fail, "inbox.waiting", dir, 0, "mem handoff doctor", "%d malformed handoffs wait for a person", n)
		}
	}
	entries, err := fs.ReadDir(p.m, p.rules.Review)
	if err != nil {
		return
	}
	n, old, oldest := 0, 0, ""
	for _, e := range entries {
		head, _, _ := strings.Cut(e.Name(), "-")
		at, err := time.Parse("20060102T150405.000000Z", head)
		if err != nil || e.IsDir() {
			continue
		}
		n++
		if p.now.Sub(at) > waitFor*24*time.Hour {
			if old++; oldest == "" {
				oldest = e.Name()
			}
		}
	}
	switch {
	case old > 0:
		p.note(all, Fail, "inbox.waiting", path.Join(p.rules.Review, oldest), 0, "mem inbox", "%d of %d review drafts wait for more than %d days; this is the oldest", old, n, waitFor)
	case n > 0:
		p.note(all, Info, "inbox.waiting", p.rules.Review, 0, "mem inbox", "%d review drafts wait for a person", n)
	}
}

// hostLoad says what the layout's host will not load.
func (p *pass) hostLoad(all *found) {
	h := p.rules.Load
	total := 0
	for _, name := range h.Files {
		b, err := fs.ReadFile(p.m, name)
		if err != nil {
			continue
		}
		n, past := measure(b, "characters", h.FileCharacters)
		left := h.TotalCharacters - total
		switch {
		case n > h.FileCharacters:
			p.note(all, Fail, "load.simulated", name, past, "", "the host loads the first %d of %d characters; line %d is the first that it cuts", h.FileCharacters, n, past)
		case n > left:
			_, past = measure(b, "characters", max(left, 0))
			p.note(all, Fail, "load.simulated", name, past, "", "with the files before it the host loads %d of its %d characters (%d in all)", max(left, 0), n, h.TotalCharacters)
		}
		total += min(n, h.FileCharacters)
	}
	p.hostNotes(all, h)
}

func (p *pass) hostNotes(all *found, h tiers.HostLoad) {
	dir := path.Dir(p.rules.Note)
	entries, err := fs.ReadDir(p.m, dir)
	if err != nil {
		return
	}
	var recent []string
	for _, e := range entries {
		day, ok := tiers.NoteDay(e.Name())
		if !ok {
			continue
		}
		if age := civil(p.today) - civil(day); age >= 0 && int(age) < h.NoteDays {
			recent = append(recent, path.Join(dir, e.Name()))
		}
	}
	slices.Sort(recent)
	slices.Reverse(recent) // the newest first
	total := 0
	for _, name := range recent {
		b, err := fs.ReadFile(p.m, name)
		if err != nil {
			continue
		}
		n := utf8.RuneCount(b)
		loads := min(n, h.NoteCharacters, max(h.NotesCharacters-total, 0))
		switch {
		case len(b) > h.NoteBytes:
			p.note(all, Fail, "load.simulated", name, 0, "", "has %d bytes; the host skips notes over %d", len(b), h.NoteBytes)
			continue
		case loads < n:
			p.note(all, Info, "load.simulated", name, 0, "", "the host loads the first %d of its %d characters", loads, n)
		}
		total += loads
	}
}

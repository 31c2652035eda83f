package health

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
)

// The records of the jobs, beside the receipts. A run that changed nothing
// leaves no receipt, but updates its record.
const (
	ReviewJob = ".mem/jobs/review.json"
	NotesFile = ".mem/jobs/notes.json"
	IngestJob = ".mem/jobs/ingest.json"
)

// Job is the record of a job's last run and last success.
type Job struct {
	At      time.Time `json:"at"` // of the last run
	Outcome string    `json:"outcome"`
	Success time.Time `json:"success,omitzero"` // of the last run that did its work
	Week    string    `json:"week,omitempty"`   // of that
	Counts  Counts    `json:"counts,omitempty"`
	// Scheduled: this system's scheduler runs it.
	Scheduled bool `json:"scheduled,omitempty"`
}

// Counts are a run's figures, by name.
type Counts map[string]int

// ReadJob reads a job's record; the zero record where there is none.
func ReadJob(m fs.FS, name string) (Job, error) {
	var j Job
	b, err := fs.ReadFile(m, name)
	if errors.Is(err, fs.ErrNotExist) {
		return j, nil
	}
	if err != nil {
		return j, err
	}
	return j, json.Unmarshal(b, &j)
}

// activeDir is where hooks leave a stamp of each session's last activity.
const activeDir = ".mem/active"

// Stamped tells how long ago a session left its newest stamp of activity.
func Stamped(m fs.FS, now time.Time) (ago time.Duration, ok bool) {
	entries, err := fs.ReadDir(m, activeDir)
	if err != nil {
		return 0, false
	}
	for _, e := range entries {
		b, err := fs.ReadFile(m, path.Join(activeDir, e.Name()))
		if err != nil {
			continue // it ended meanwhile
		}
		if t, err := entry.ParseInstant(string(b)); err == nil && (!ok || now.Sub(t) < ago) {
			ago, ok = now.Sub(t), true
		}
	}
	return ago, ok
}

// Notes is the list of daily notes that the last review saw.
type Notes struct {
	At    time.Time `json:"at"`
	Notes []string  `json:"notes"`
}

// overdueAfter is a week and a day of grace.
const overdueAfter = 8 * 24 * time.Hour

func (p *pass) overdue(all *found) {
	p.ingestOverdue(all)
	p.hooksOverdue(all)
	j, err := ReadJob(p.m, ReviewJob)
	switch {
	case err != nil:
		p.note(all, Fail, "jobs.overdue", ReviewJob, 0, "mem review", "the record of the weekly review cannot be read: %v", reason(err))
	case j.Success.IsZero():
		most := Info
		for day := range all.notes {
			if civil(p.today)-day > 8 {
				most = Fail
			}
		}
		p.note(all, most, "jobs.overdue", ReviewJob, 0, "mem review", "the weekly review has never run")
	case p.now.Sub(j.Success) > overdueAfter:
		p.note(all, Fail, "jobs.overdue", ReviewJob, 0, "mem review", "the last weekly review was %s ago (%s)", ago(p.now.Sub(j.Success)), j.Success.In(p.rules.Location).Format(time.DateOnly))
	}
}

// maxSilence is how long an ingest that runs every half hour may be silent.
const maxSilence = 90 * time.Minute

// ingestOverdue: where handoffs were ingested by a schedule, they still are.
func (p *pass) ingestOverdue(all *found) {
	j, err := ReadJob(p.m, IngestJob)
	if err != nil || !j.Scheduled {
		return
	}
	if age := p.now.Sub(j.Success); age > maxSilence {
		p.note(all, Fail, "jobs.overdue", IngestJob, 0, "mem handoff doctor", "the last scheduled ingest was %s ago", ago(age))
	}
}

// receipts calls f for each receipt since a time whose text holds one of the
// given parts: most need not be decoded.
func (p *pass) receipts(since time.Time, parts []string, f func(plan.Plan)) {
	for month := time.Date(since.UTC().Year(), since.UTC().Month(), 1, 0, 0, 0, 0, time.UTC); !month.After(p.now); month = month.AddDate(0, 1, 0) {
		dir := ".mem/receipts/" + month.Format("2006/01")
		entries, err := fs.ReadDir(p.m, dir)
		if err != nil {
			continue // no receipts of that month
		}
		for _, e := range entries {
			id, ok := strings.CutSuffix(e.Name(), ".json")
			if at, valid := plan.IDTime(id); !ok || !valid || at.Before(since) || e.IsDir() {
				continue
			}
			b, err := fs.ReadFile(p.m, path.Join(dir, e.Name()))
			if err != nil || !slices.ContainsFunc(parts, func(s string) bool { return bytes.Contains(b, []byte(s)) }) {
				continue
			}
			if r, err := plan.Decode(b); err == nil {
				f(r)
			}
		}
	}
}

// watched is how long rotations are looked after.
const watched = 30 * 24 * time.Hour

// orphans makes sure that what was rotated stands in its note.
func (p *pass) orphans(all *found) {
	undone := map[string]bool{}
	var rotations []plan.Plan
	p.receipts(p.now.Add(-watched), []string{"mem:rotated", `"undoes"`}, func(r plan.Plan) {
		if id, ok := r.Facts["undoes"].(string); ok {
			undone[id] = true
		}
		rotations = append(rotations, r)
	})
	texts := map[string][]byte{}
	for _, r := range rotations {
		if undone[r.ID] {
			continue
		}
		for i, s := range r.Steps {
			if s.Kind == plan.Append && s.Place == entry.AboveClosure && s.Outcome != plan.Conflict && bytes.Contains(s.Text, []byte("<!-- mem:rotated")) {
				p.orphan(all, texts, r, i)
			}
		}
	}
}

func (p *pass) orphan(all *found, texts map[string][]byte, r plan.Plan, i int) {
	s := r.Steps[i]
	block := s.Text[bytes.Index(s.Text, []byte("<!-- mem:rotated")):]
	mark, _, _ := bytes.Cut(block, []byte("\n"))
	mark = bytes.TrimRight(mark, "\r")
	for _, name := range p.whereabouts(s.Path) {
		text, seen := texts[name]
		if !seen {
			text, _ = fs.ReadFile(p.m, name)
			texts[name] = text
		}
		if bytes.Contains(text, bytes.TrimRight(block, "\r\n")) {
			return
		}
		if standsIn(text, block) { // put back by hand, or without its marks
			return
		}
		if at := bytes.Index(text, mark); at >= 0 {
			p.note(all, Info, "buffer.orphans", name, lineAt(text, at), "mem diff "+r.ID, "the text rotated by %s was edited since", r.ID)
			return
		}
	}
	command := "mem receipts " + r.ID
	for _, t := range r.Steps {
		if t.Kind == plan.Trash && t.To != "" {
			if _, err := fs.Stat(p.m, t.To); err == nil {
				command = "mem trash restore " + path.Base(t.To)[:12] + " --to memory/restored.md"
			}
		}
	}
	p.note(all, Fail, "buffer.orphans", s.Path, 0, command, "the text that rotation %s brought here is gone", r.ID)
}

// standsIn reports whether every line of a block but its marks stands in a text.
func standsIn(text, block []byte) bool {
	have := map[string]bool{}
	for l := range bytes.Lines(text) {
		have[string(bytes.TrimSpace(l))] = true
	}
	for l := range bytes.Lines(block) {
		t := bytes.TrimSpace(l)
		if len(t) > 0 && !bytes.HasPrefix(t, []byte("<!-- mem:rotated")) && string(t) != entry.BlockEnd && !have[string(t)] {
			return false
		}
	}
	return true
}

// entries lists a directory once.
func (p *pass) entries(dir string) []fs.DirEntry {
	list, ok := p.dirs[dir]
	if !ok {
		list, _ = fs.ReadDir(p.m, dir) // what cannot be listed holds nothing that could be found
		p.dirs[dir] = list
	}
	return list
}

// whereabouts are the paths where a daily note may stand by now: its own, with
// another suffix, or in the archive.
func (p *pass) whereabouts(name string) []string {
	out := []string{name}
	day, ok := p.rules.NoteDay(name)
	if !ok {
		return out
	}
	dir := p.rules.ArchiveDir(day)
	stem := strings.TrimSuffix(path.Base(name), ".md")
	out = append(out, path.Join(dir, stem+".md"))
	for _, d := range []string{dir, path.Dir(name)} {
		list := p.entries(d)
		i, _ := slices.BinarySearchFunc(list, stem, func(e fs.DirEntry, s string) int { return strings.Compare(e.Name(), s) })
		for ; i < len(list) && strings.HasPrefix(list[i].Name(), stem); i++ {
			if rest := list[i].Name()[len(stem):]; strings.HasSuffix(rest, ".md") && (rest[0] == '-' || rest[0] == '_') {
				out = append(out, path.Join(d, list[i].Name()))
			}
		}
	}
	return out
}

// vanished names daily notes that are gone without a trace.
func (p *pass) vanished(all *found) {
	b, err := fs.ReadFile(p.m, NotesFile)
	if err != nil {
		return // no review yet
	}
	var list Notes
	if err := json.Unmarshal(b, &list); err != nil {
		p.note(all, Warn, "cold.vanished", NotesFile, 0, "mem review", "the list of the last review cannot be read: %v", err)
		return
	}
	var gone []string
	for _, name := range list.Notes {
		if !slices.ContainsFunc(p.whereabouts(name), p.there) {
			gone = append(gone, name)
		}
	}
	if len(gone) == 0 {
		return
	}
	p.receipts(list.At.Add(-time.Hour), gone, func(r plan.Plan) {
		for _, s := range r.Steps {
			if s.Kind == plan.Move || s.Kind == plan.Trash {
				gone = slices.DeleteFunc(gone, func(g string) bool { return g == s.Path })
			}
		}
	})
	for _, name := range gone {
		p.note(all, Fail, "cold.vanished", name, 0, "mem trash list", "was there at the last review (%s) and is gone; no receipt tells of it", list.At.In(p.rules.Location).Format(time.DateOnly))
	}
}

func (p *pass) there(name string) bool {
	_, err := fs.Stat(p.m, name)
	return err == nil || !errors.Is(err, fs.ErrNotExist)
}

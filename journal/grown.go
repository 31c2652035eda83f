package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/plan"
)

// watchFor is how long a backup is looked at for late writes: a writer that
// opened the file before it was replaced may hold its descriptor that long.
const watchFor = 24 * time.Hour

// PlaceLate is the place of text that a writer added, through an old
// descriptor, to a file that had been replaced meanwhile.
const PlaceLate = "late"

// Grown looks at the backups of the last day, all or those of one
// transaction, and brings what was written to them late to where it belongs:
// appended text to the current file, a rewritten file to the review inbox.
// It returns the receipts of what it did.
func (j *Journal) Grown(only string) ([]plan.Plan, error) {
	names, known := j.kept[only]
	if !known {
		var err error
		if names, err = j.backups(only); err != nil {
			return nil, err
		}
	}
	var done []plan.Plan
	var errs []error
	for _, name := range names {
		t, ok := plan.ParseTrash(name)
		if !ok || only == "" && !j.recent(t.TxID) {
			continue
		}
		p, err := j.late(t)
		if err != nil {
			errs = append(errs, err)
		} else if !p.Empty() {
			done = append(done, p)
		}
	}
	return done, errors.Join(errs...)
}

// backups lists what may be a backup to look at. A month holds many, so names
// are sorted out before they are parsed.
func (j *Journal) backups(only string) (names []string, err error) {
	since := plan.Stamp(j.At.Add(-watchFor))
	for _, dir := range j.watched(only) {
		entries, err := j.Disk.ReadDir(dir)
		if errors.Is(err, fs.ErrNotExist) {
			continue
		}
		if err != nil {
			return nil, err
		}
		for _, e := range entries {
			_, rest, _ := strings.Cut(e.Name(), "-")
			if strings.HasPrefix(rest, only) && (only != "" || rest >= since) {
				names = append(names, dir+"/"+e.Name())
			}
		}
	}
	return names, nil
}

// watched are the months to look at: a transaction's own, or, for all of the
// last day, this one and its neighbours, since clocks are set back too.
func (j *Journal) watched(only string) []string {
	if t, ok := plan.IDTime(only); ok {
		return []string{plan.TrashDir(Root, t)}
	}
	var out []string
	for _, t := range []time.Time{j.At.Add(-watchFor), j.At, j.At.AddDate(0, 0, 31)} {
		out = appendNew(out, plan.TrashDir(Root, t))
	}
	return out
}

func (j *Journal) recent(txid string) bool {
	t, ok := plan.IDTime(txid)
	return ok && j.At.Sub(t) <= watchFor
}

// late deals with one backup. The empty plan means that it is as it was.
func (j *Journal) late(t plan.Trashed) (plan.Plan, error) {
	info, err := j.Disk.Lstat(t.Path)
	if errors.Is(err, fs.ErrNotExist) {
		return plan.Plan{}, nil // pruned, or never made
	}
	if err != nil {
		return plan.Plan{}, err
	}
	if info.Size == t.Size {
		if at, _ := plan.IDTime(t.TxID); info.ModTime.Before(at) {
			return plan.Plan{}, nil // same length, last written before it was replaced
		}
	}
	b, info, err := j.read(t.Path)
	if err != nil || plan.Hash(b) == t.Hash {
		return plan.Plan{}, err
	}
	target, known := j.origin(t)
	if _, staged := StagedBy(path.Base(target)); staged {
		known = false // what it was to replace, or had replaced, nobody knows
	}
	if now, err := j.Disk.Lstat(target); known && err == nil && now.ID == info.ID {
		return plan.Plan{}, nil // it is in use, and nothing of it is late
	}
	tail, grown := grownBy(b, plan.State{Hash: t.Hash, Size: t.Size})
	moved := plan.Step{Kind: plan.Move, Path: t.Path, Before: stateOf(b, info),
		To: path.Join(path.Dir(t.Path), fmt.Sprintf("%s-%s-%d-%d", plan.Hash(b), t.TxID, t.N, len(b)))}
	p := plan.Plan{Command: "recover"}
	if grown && known {
		cur, _, err := j.read(target)
		if err == nil {
			p.Steps = []plan.Step{{Kind: plan.Append, Path: target, Before: plan.StateOf(cur), Place: PlaceLate, Text: tail, Reason: "late write"}, moved}
			p.Notices = []string{fmt.Sprintf("%s: %d bytes were written to it after it had been replaced; carried over", target, len(tail))}
			receipt, err := j.Run(p)
			var open *OpenError
			if err == nil || errors.As(err, &open) || errors.Is(err, ErrChanged) {
				return receipt, err
			}
			// The current file cannot take it (UTF-16, too large): the review
			// inbox does.
			p.Steps = nil
		}
	}
	if !known {
		target = "unknown.md"
	}
	name := path.Join(j.Review, draftBase(j.At, plan.Hash(b), target))
	text := DraftText("backup-rewritten", target, t.TxID, t.Hash, b, j.At)
	if there, err := durable.Exists(j.Disk, name); err != nil {
		return p, err
	} else if !there {
		p.Steps = append(p.Steps, plan.Step{Kind: plan.Create, Path: name, Before: plan.State{Hash: plan.Absent}, Content: text, Reason: "backup rewritten"})
	}
	p.Steps = append(p.Steps, moved)
	p.Notices = []string{fmt.Sprintf("%s: somebody rewrote the replaced file in place; kept in %s", target, name)}
	return j.Run(p)
}

// origin tells which file's content a name in the trash was.
func (j *Journal) origin(t plan.Trashed) (string, bool) {
	p, _, err := j.Load(t.TxID)
	if err != nil {
		return "", false
	}
	return Origin(p, t.N)
}

// Origin tells which file's content the n-th step of a transaction put in the
// trash.
func Origin(p plan.Plan, n int) (string, bool) {
	if n < 0 || n >= len(p.Steps) {
		return "", false
	}
	s := p.Steps[n]
	if s.Origin != "" {
		return s.Origin, true
	}
	return s.Path, true
}

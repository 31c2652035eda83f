package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/plan"
)

// carryOut brings a published plan to its end. Every part of it asks the disk
// what has already happened, so it may be called again after any crash.
func (j *Journal) carryOut(p *plan.Plan) error {
	if p.Phase == plan.PhaseSeal {
		if err := j.seal(p); err != nil {
			return err
		}
	}
	replans := 0
	for i := 0; i < len(p.Steps); i++ {
		again, err := j.land(p, i)
		if err != nil {
			return err
		}
		if again {
			if replans++; replans > maxReplans {
				return fmt.Errorf("%s keeps changing: gave up after %d attempts", p.Steps[i].Path, replans)
			}
			i = -1
		}
	}
	var dirs []string
	for _, s := range p.Steps {
		if s.Stage.Name != "" && !s.Done && s.Kind != plan.Seal {
			dirs = appendNew(dirs, path.Dir(s.Path))
		}
	}
	if err := j.syncPresent(dirs); err != nil {
		return err
	}
	if err := j.drafts(p); err != nil {
		return err
	}
	if err := j.clear(p); err != nil {
		return err
	}
	return j.retire(*p)
}

func appendNew(list []string, s string) []string {
	if slices.Contains(list, s) {
		return list
	}
	return append(list, s)
}

// land brings one step's staged content to its target. again means that the
// plan was written anew and must be gone through from the start.
func (j *Journal) land(p *plan.Plan, i int) (again bool, err error) {
	s := &p.Steps[i]
	if s.Stage.Name == "" || s.Done || s.Kind == plan.Seal || s.Outcome == plan.Conflict {
		return false, nil
	}
	if j.fresh != nil && s.Kind == plan.Create && !s.Before.Exists() {
		// Staged by this very run: there is nothing to look at first.
		switch err := j.Disk.Move(s.Stage.Name, s.Path); {
		case err == nil:
			j.fresh[i] = true
			return false, nil
		case !errors.Is(err, fs.ErrExist) && !errors.Is(err, fs.ErrNotExist) && !hopeless(err):
			return false, err
		}
	}
	for range maxReplans {
		info, err := j.Disk.Lstat(s.Stage.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return j.absent(p, i)
		}
		if err != nil {
			return false, err
		}
		var next verdict
		if plan.ID(info.ID) == s.Stage.File {
			next, err = j.commit(p, i)
		} else {
			next, err = j.settle(p, i, info)
		}
		if err != nil {
			return false, err
		}
		switch next {
		case landed:
			return false, nil
		case replanned:
			return true, nil
		}
	}
	return false, fmt.Errorf("%s keeps changing", s.Path)
}

// absent: nothing is under the staged name. The step was carried out and the
// backup moved on; or somebody removed the staged file by hand, which shows in
// a target that still is what it was and no backup of it in the trash.
func (j *Journal) absent(p *plan.Plan, i int) (again bool, err error) {
	s := &p.Steps[i]
	if !s.Before.Exists() {
		there, err := durable.Exists(j.Disk, s.Path)
		if err != nil || there {
			return false, err
		}
		return j.stageRemoved(p, i)
	}
	if kept, err := durable.Exists(j.Disk, plan.TrashName(Root, p.ID, p.At, i, s.Before)); err != nil || kept {
		return false, err
	}
	if kept, err := durable.Exists(j.Disk, keepName(s.Stage.Name)); err != nil || kept {
		return false, err
	}
	cur, info, err := j.read(s.Path)
	if errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge) {
		return false, nil // not what it was: carried out, and replaced since
	}
	if err != nil {
		return false, err
	}
	if cur == nil || plan.ID(info.ID) != s.Before.File || plan.Hash(cur) != s.Before.Hash {
		return false, nil // not what it was: carried out
	}
	return j.stageRemoved(p, i)
}

// stageRemoved: the staged file is gone and the step was not carried out. A
// block is in the plan and is staged again; a whole file is not, and that is
// said.
func (j *Journal) stageRemoved(p *plan.Plan, i int) (again bool, err error) {
	s := &p.Steps[i]
	if s.Kind == plan.Append || s.Kind == plan.Edit {
		next, err := j.replan(p, i, nil, nil)
		return next == replanned, err
	}
	s.Outcome, s.Reason, p.Outcome = plan.Conflict, "stage-removed", plan.Conflict
	p.Notices = appendNew(p.Notices, s.Path+": not written: somebody removed "+s.Stage.Name+", which held its text")
	return false, j.publish(*p)
}

// keepName is the second name of the old object where names cannot be
// exchanged.
func keepName(stage string) string { return strings.TrimSuffix(stage, ".tmp") + ".old.tmp" }

type verdict int

const (
	look      verdict = iota // look at the staged name again
	landed                   // the step is over
	replanned                // a new plan was published
)

// commit: the staged name holds the planned object, so the step has not been
// carried out, or was swapped back.
func (j *Journal) commit(p *plan.Plan, i int) (verdict, error) {
	s := &p.Steps[i]
	staged, _, err := j.read(s.Stage.Name)
	if err != nil {
		return look, err
	}
	var tail []byte
	edited := false
	if plan.Hash(staged) != s.After.Hash {
		// It was in place for a moment and somebody wrote to it.
		if tail, edited = grownBy(staged, s.After); !edited {
			if err := j.draft(p, s, "edited-while-staged", staged); err != nil {
				return look, err
			}
			edited = true
		}
	}
	cur, info, err := j.read(s.Path)
	if errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge) {
		return j.conflict(p, i, "target-unfit", err.Error())
	}
	if err != nil {
		return look, err
	}
	if cur != nil && plan.ID(info.ID) == s.Stage.File {
		// Both names lead to it: a move by link and unlink was cut in two.
		return landed, j.Disk.Remove(s.Stage.Name)
	}
	if !edited && !s.Before.Exists() && cur == nil {
		switch err := j.Disk.Move(s.Stage.Name, s.Path); {
		case errors.Is(err, fs.ErrExist):
			return look, nil
		case hopeless(err):
			return j.conflict(p, i, "target-unfit", err.Error())
		case err != nil:
			return look, err
		}
		return landed, nil
	}
	if !edited && cur != nil && plan.Hash(cur) == s.Before.Hash {
		if !j.Disk.Caps(path.Dir(s.Path)).Exchange {
			return j.replaceByLink(p, i, info)
		}
		err := j.Disk.Exchange(s.Stage.Name, s.Path)
		if hopeless(err) { // a mount point, an immutable file
			return j.conflict(p, i, "target-unfit", err.Error())
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return look, err
		}
		return look, nil // and see what came out
	}
	if s.Kind == plan.Append || s.Kind == plan.Edit {
		return j.replan(p, i, staged, tail)
	}
	return j.conflict(p, i, "target-changed", "found "+plan.StateOf(cur).Hash)
}

// settle: the staged name holds another object than planned. It was exchanged;
// what came out is what the target held at that moment.
func (j *Journal) settle(p *plan.Plan, i int, info durable.Info) (verdict, error) {
	s := &p.Steps[i]
	old, _, err := j.read(s.Stage.Name)
	if err != nil {
		return look, err
	}
	target, terr := j.Disk.Lstat(s.Path)
	if terr != nil && !errors.Is(terr, fs.ErrNotExist) {
		return look, terr
	}
	if plan.Hash(old) == s.After.Hash && s.Before.Hash == s.After.Hash {
		return landed, nil // the step changes nothing: whichever object is in place says the same
	}
	if plan.Hash(old) == s.After.Hash {
		// What was planned, as another object: the workspace was copied, or its
		// disk has another number since it was mounted anew. What an exchange
		// takes out is never that. Adopt it.
		s.Stage.File, s.Back = plan.ID(info.ID), plan.ID{}
		return look, j.publish(*p)
	}
	if s.Back != (plan.ID{}) && plan.ID(info.ID) != s.Back && terr == nil && plan.ID(target.ID) == s.Back {
		// Swapped back over a newer save: the newer save wins.
		if err := j.Disk.Exchange(s.Stage.Name, s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return look, err
		}
		return look, j.Disk.SyncDir(path.Dir(s.Path))
	}
	if plan.Hash(old) == s.Before.Hash {
		return landed, nil
	}
	if _, ok := grownBy(old, s.Before); ok {
		return landed, nil // a late write; it is carried over as a grown backup
	}
	if terr == nil && plan.ID(target.ID) == s.Stage.File {
		return j.swapBack(p, i, info) // somebody saved in between
	}
	return j.savedOver(p, i, old)
}

// savedOver: what was put in place has been saved over, and what came out of the
// exchange, old, was saved before it. That goes to the review inbox. Whoever
// saved last may have read the file before the exchange.
func (j *Journal) savedOver(p *plan.Plan, i int, old []byte) (verdict, error) {
	s := &p.Steps[i]
	if err := j.draft(p, s, "saved-during-write", old); err != nil {
		return look, err
	}
	if s.Kind != plan.Append && s.Kind != plan.Edit {
		return landed, nil
	}
	if moved, err := j.beside(path.Dir(s.Path), s.Stage.File); err != nil || moved {
		return landed, err // somebody has moved it aside, with all that is in it
	}
	cur, _, unfit := j.read(s.Path)
	if unfit != nil && !errors.Is(unfit, durable.ErrNotRegular) && !errors.Is(unfit, durable.ErrTooLarge) {
		return look, unfit
	}
	if unfit == nil {
		if j.says(*s, cur, old) {
			return landed, nil
		}
		if _, _, unfit = j.Place(*s, cur); unfit == nil {
			return j.replan(p, i, old, nil)
		}
	}
	if s.Kind == plan.Edit { // it brings no text
		p.Notices = appendNew(p.Notices, s.Path+": left as somebody saved it: "+unfit.Error())
		return landed, nil
	}
	// The outcome is the plan's, not the step's: what is staged is somebody's text.
	text := slices.Concat(s.Text, s.Tail)
	s.Reason, s.To, p.Outcome = "target-unfit: "+unfit.Error(), j.draftName(*p, *s, plan.Hash(text)), plan.Conflict
	if err := j.draft(p, s, "target-unfit", text); err != nil {
		return look, err
	}
	return landed, j.publish(*p)
}

// beside reports whether a file is in a directory, under any name.
func (j *Journal) beside(dir string, file plan.ID) (bool, error) {
	entries, err := j.Disk.ReadDir(dir)
	if err != nil {
		if errors.Is(err, fs.ErrNotExist) {
			err = nil
		}
		return false, err
	}
	for _, e := range entries {
		info, err := j.Disk.Lstat(path.Join(dir, e.Name()))
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return false, err // it may be the one: nothing is planned again on a guess
		}
		if err == nil && plan.ID(info.ID) == file {
			return true, nil
		}
	}
	return false, nil
}

// says reports whether a text holds what a step was to bring into it: for an
// append, half of its lines more often than the text that it was not in. Somebody
// may have changed the others since.
func (j *Journal) says(s plan.Step, b, without []byte) bool {
	if s.Kind == plan.Edit {
		next, _, err := j.Place(s, b)
		return err == nil && bytes.Equal(next, b)
	}
	have, had, ours := countLines(b), countLines(without), countLines(s.Text)
	n := 0
	for line := range ours {
		if have[line] > had[line] {
			n++
		}
	}
	return 2*n >= len(ours)
}

// countLines counts the lines of a text that are not blank.
func countLines(b []byte) map[string]int {
	lines := map[string]int{}
	for l := range bytes.Lines(b) {
		if l = bytes.TrimSpace(l); len(l) > 0 {
			lines[string(l)]++
		}
	}
	return lines
}

// grownBy tells whether b is a state's content with something added, and what.
func grownBy(b []byte, s plan.State) ([]byte, bool) {
	if !s.Exists() || int64(len(b)) <= s.Size || plan.Hash(b[:s.Size]) != s.Hash {
		return nil, false
	}
	return b[s.Size:], true
}

// swapBack undoes an exchange that took out something newer than was planned
// for. It is written into the plan first, so that a crash in it is understood,
// and so is what comes out of that.
func (j *Journal) swapBack(p *plan.Plan, i int, out durable.Info) (verdict, error) {
	s := &p.Steps[i]
	if s.Back != plan.ID(out.ID) {
		s.Back = plan.ID(out.ID)
		return look, j.publish(*p)
	}
	if err := j.Disk.Exchange(s.Stage.Name, s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return look, err
	}
	return look, j.Disk.SyncDir(path.Dir(s.Path))
}

// replaceByLink replaces a target where names cannot be exchanged: a second
// name for the old object first, then a rename over it.
func (j *Journal) replaceByLink(p *plan.Plan, i int, target durable.Info) (verdict, error) {
	s := &p.Steps[i]
	dir := path.Dir(s.Path)
	keep := keepName(s.Stage.Name)
	links := j.Disk.Caps(dir).Links
	if kept, err := j.Disk.Lstat(keep); err == nil && kept.ID != target.ID {
		// From an attempt before a crash.
		if err := j.dropKept(p, i, keep, links); err != nil {
			return look, err
		}
	}
	linked := false
	if links {
		err := j.Disk.Link(s.Path, keep)
		linked = err == nil || errors.Is(err, fs.ErrExist)
	}
	if !linked {
		b, _, err := j.read(s.Path)
		if err != nil {
			return look, err
		}
		if _, err := durable.WriteNew(j.Disk, keep, b, 0o600, s.Path); err != nil && !errors.Is(err, fs.ErrExist) {
			return look, err
		}
	}
	if err := j.Disk.SyncDir(dir); err != nil {
		return look, err
	}
	kept, info, err := j.read(keep)
	if err != nil {
		return look, err
	}
	now, err := j.Disk.Lstat(s.Path)
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return look, err
	}
	_, grown := grownBy(kept, s.Before)
	if err != nil || (linked && now.ID != info.ID) || (plan.Hash(kept) != s.Before.Hash && (!linked || !grown)) {
		if linked && now.ID == info.ID {
			return look, j.Disk.Remove(keep) // a second name of what is in place
		}
		return look, nil
	}
	if !linked {
		cur, _, err := j.read(s.Path)
		if err != nil {
			return look, err
		}
		if plan.Hash(cur) != s.Before.Hash {
			return look, j.Disk.Remove(keep) // a copy of what is no longer there
		}
		p.Notices = appendNew(p.Notices, "degraded: "+s.Path+": the file system has no links; late writers are not covered")
	}
	return landed, j.Disk.Rename(s.Stage.Name, s.Path)
}

// dropKept takes a backup name out of the way: a second name of what an editor
// has replaced meanwhile stays in the trash, a copy of our own is removed.
func (j *Journal) dropKept(p *plan.Plan, i int, keep string, links bool) error {
	if !links {
		return j.Disk.Remove(keep)
	}
	b, info, err := j.read(keep)
	if err != nil {
		return err
	}
	for n := i + 1000; ; n++ { // numbers that no step has
		to := plan.TrashName(Root, p.ID, p.At, n, stateOf(b, info))
		err := j.moveTo(keep, to)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		return j.syncAll([]string{path.Dir(to), path.Dir(keep)})
	}
}

// replan plans an append or an edit again on what the target holds now, with
// tail, which was written to the staged copy meanwhile. seen is what the staged
// name was found to hold, nil where nothing is there; what it holds beyond that
// is a late write.
func (j *Journal) replan(p *plan.Plan, i int, seen, tail []byte) (verdict, error) {
	s := p.Steps[i]
	cur, info, err := j.read(s.Path)
	if err != nil {
		return look, err
	}
	stale := s.Stage
	if len(tail) > 0 && s.Kind == plan.Append {
		s.Text = append(slices.Clone(s.Text), tail...)
	} else if len(tail) > 0 {
		s.Tail = append(slices.Clone(s.Tail), tail...)
	}
	s.Back = plan.ID{}
	next := *p
	next.Steps = slices.Clone(p.Steps)
	// The abandoned stage leaves through the trash, and so does a second name of
	// what was to be replaced: late writers may hold them.
	second := false
	for _, name := range []string{stale.Name, keepName(stale.Name)} {
		b, sinfo, err := j.read(name)
		if err != nil {
			return look, err
		}
		if b != nil && cur != nil && sinfo.ID == info.ID { // a second name of what is in place
			if name == stale.Name {
				second = true // goes when the new plan stands
			} else if err := j.Disk.Remove(name); err != nil {
				return look, err
			}
			continue
		}
		if b != nil {
			if name == stale.Name && seen != nil {
				b = seen // what was added to it since is a late write, and told by the name
			}
			gone := plan.Step{Kind: plan.Trash, Path: name, Origin: s.Path, Before: stateOf(b, sinfo), Reason: "abandoned stage"}
			gone.To = plan.TrashName(Root, p.ID, p.At, len(next.Steps), gone.Before)
			next.Steps = append(next.Steps, gone)
		}
	}
	dir, err := j.restage(&next, i, &s, cur, info)
	if err != nil {
		if errors.Is(err, errPlace) {
			return j.conflict(p, i, "target-unfit", err.Error())
		}
		return look, err
	}
	if err := j.Disk.SyncDir(dir); err != nil {
		return look, err
	}
	if err := j.publish(next); err != nil {
		return look, err
	}
	*p = next
	if second {
		return replanned, j.Disk.Remove(stale.Name)
	}
	return replanned, nil
}

var errPlace = errors.New("cannot be placed")

func (j *Journal) restage(next *plan.Plan, i int, s *plan.Step, cur []byte, info durable.Info) (string, error) {
	if err := durable.MkdirAll(j.Disk, path.Dir(s.Path), 0o777); err != nil {
		return "", err
	}
	base := cur
	if len(s.Tail) > 0 { // first what a writer added to it meanwhile
		var err error
		if base, _, err = j.Place(plan.Step{Kind: plan.Append, Place: PlaceLate, Text: s.Tail}, cur); err != nil {
			return "", fmt.Errorf("%w: %w", errPlace, err)
		}
	}
	content, added, err := j.Place(*s, base)
	if err != nil {
		return "", fmt.Errorf("%w: %w", errPlace, err)
	}
	s.Before, s.Added = stateOf(cur, info), added
	dir, err := j.put(next, s, content)
	next.Steps[i] = *s
	return dir, err
}

// conflict records that a step will not be carried out; the draft follows.
func (j *Journal) conflict(p *plan.Plan, i int, reason, detail string) (verdict, error) {
	s := &p.Steps[i]
	s.Outcome, s.Reason = plan.Conflict, reason
	if detail != "" {
		s.Reason += ": " + detail
	}
	s.To = j.draftName(*p, *s, s.After.Hash)
	p.Outcome = plan.Conflict
	return landed, j.publish(*p)
}

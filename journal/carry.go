package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"

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
	if err := j.syncAll(dirs); err != nil {
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
		return false, nil
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
	if s.Kind == plan.Append || s.Kind == plan.Edit {
		next, err := j.replan(p, i, nil)
		return next == replanned, err
	}
	s.Outcome, s.Reason, p.Outcome = plan.Conflict, "stage-removed", plan.Conflict
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
	if !edited && !s.Before.Exists() && cur == nil {
		switch err := j.Disk.Move(s.Stage.Name, s.Path); {
		case errors.Is(err, fs.ErrExist):
			return look, nil
		case err != nil:
			return look, err
		}
		return landed, nil
	}
	if !edited && cur != nil && plan.Hash(cur) == s.Before.Hash {
		if !j.Disk.Caps(path.Dir(s.Path)).Exchange {
			return j.replaceByLink(p, i, info)
		}
		if err := j.Disk.Exchange(s.Stage.Name, s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return look, err
		}
		return look, nil // and see what came out
	}
	if s.Kind == plan.Append || s.Kind == plan.Edit {
		return j.replan(p, i, tail)
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
	if plan.Hash(old) == s.After.Hash && terr == nil {
		cur, _, err := j.read(s.Path)
		if err != nil && !errors.Is(err, durable.ErrNotRegular) {
			return look, err
		}
		if cur != nil && plan.Hash(cur) == s.Before.Hash {
			// A copy of the workspace: same content, other objects. Adopt the
			// staged file.
			s.Stage.File, s.Back = plan.ID(info.ID), plan.ID{}
			return look, j.publish(*p)
		}
	}
	return landed, j.draft(p, s, "saved-during-write", old)
}

// grownBy tells whether b is a state's content with something added, and what.
func grownBy(b []byte, s plan.State) ([]byte, bool) {
	if !s.Exists() || int64(len(b)) <= s.Size || plan.Hash(b[:s.Size]) != s.Hash {
		return nil, false
	}
	return b[s.Size:], true
}

// swapBack undoes an exchange that took out something newer than was planned
// for. It is written into the plan first, so that a crash in it is understood.
func (j *Journal) swapBack(p *plan.Plan, i int, out durable.Info) (verdict, error) {
	s := &p.Steps[i]
	if s.Back != plan.ID(out.ID) {
		s.Back = plan.ID(out.ID)
		return look, j.publish(*p)
	}
	if err := j.Disk.Exchange(s.Stage.Name, s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return look, err
	}
	if info, err := j.Disk.Lstat(s.Stage.Name); err != nil {
		return look, err
	} else if plan.ID(info.ID) != s.Stage.File {
		if err := j.Disk.Exchange(s.Stage.Name, s.Path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return look, err
		}
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

// replan plans an append again on what the target holds now, with what was
// written to the staged copy meanwhile.
func (j *Journal) replan(p *plan.Plan, i int, tail []byte) (verdict, error) {
	s := p.Steps[i]
	cur, info, err := j.read(s.Path)
	if err != nil {
		return look, err
	}
	stale := s.Stage
	if len(tail) > 0 && s.Kind == plan.Append {
		s.Text = append(slices.Clone(s.Text), tail...)
	}
	s.Back = plan.ID{}
	next := *p
	next.Steps = slices.Clone(p.Steps)
	// The abandoned stage leaves through the trash: late writers may hold it.
	b, sinfo, err := j.read(stale.Name)
	if err != nil {
		return look, err
	}
	if b != nil {
		gone := plan.Step{Kind: plan.Trash, Path: stale.Name, Origin: s.Path, Before: stateOf(b, sinfo), Reason: "abandoned stage"}
		gone.To = plan.TrashName(Root, p.ID, p.At, len(next.Steps), gone.Before)
		next.Steps = append(next.Steps, gone)
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
	if len(tail) > 0 && s.Kind != plan.Append {
		next.Notices = append(next.Notices, "written to "+s.Path+" while it was being changed: "+string(tail))
	}
	if err := j.publish(next); err != nil {
		return look, err
	}
	*p = next
	return replanned, nil
}

var errPlace = errors.New("cannot be placed")

func (j *Journal) restage(next *plan.Plan, i int, s *plan.Step, cur []byte, info durable.Info) (string, error) {
	content, added, err := j.Place(*s, cur)
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

func (j *Journal) draftName(p plan.Plan, s plan.Step, hash string) string {
	t, _ := plan.IDTime(p.ID)
	return path.Join(j.Review, draftBase(t, hash, s.Path))
}

// maxDraftPath bounds what of a target's path goes into a draft's name: a file
// name has at most 255 bytes, and drafts are staged under a longer one.
const maxDraftPath = 120

// draftBase is a draft's file name: time, hash of the text, where it belongs.
func draftBase(at time.Time, hash, target string) string {
	flat := strings.ReplaceAll(target, "/", "--")
	if len(flat) > maxDraftPath {
		tail := strings.ToValidUTF8(flat[len(flat)-maxDraftPath+20:], "")
		flat = plan.Hash([]byte(target))[:12] + "--" + tail
	}
	return fmt.Sprintf("%s-%s-%s", plan.Stamp(at), hash[:12], flat)
}

// drafts brings the text of steps that met a conflict to the review inbox.
func (j *Journal) drafts(p *plan.Plan) error {
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Outcome != plan.Conflict || s.Stage.Name == "" || s.Kind == plan.Seal {
			continue
		}
		b, _, err := j.read(s.Stage.Name)
		if err != nil {
			return err
		}
		if b == nil { // moved on: the draft was durable before that
			continue
		}
		if err := j.writeDraft(p, s, s.To, s.Reason, b); err != nil {
			return err
		}
	}
	return nil
}

// draft keeps somebody's text in the review inbox.
func (j *Journal) draft(p *plan.Plan, s *plan.Step, reason string, text []byte) error {
	name := j.draftName(*p, *s, plan.Hash(text))
	p.Notices = appendNew(p.Notices, fmt.Sprintf("%s: %s: kept in %s", s.Path, reason, name))
	return j.writeDraft(p, s, name, reason, text)
}

func (j *Journal) writeDraft(p *plan.Plan, s *plan.Step, name, reason string, text []byte) error {
	if there, err := durable.Exists(j.Disk, name); err != nil || there {
		return err
	}
	if err := durable.MkdirAll(j.Disk, j.Review, 0o777); err != nil {
		return err
	}
	body := DraftText(reason, s.Path, p.ID, s.Before.Hash, text, p.At)
	tmp := path.Join(j.Review, fmt.Sprintf(".mem-%s-draft.tmp", p.ID))
	if _, err := durable.WriteNew(j.Disk, tmp, body, 0o666, ""); errors.Is(err, fs.ErrExist) {
		if err := j.Disk.Remove(tmp); err != nil {
			return err
		}
		if _, err := durable.WriteNew(j.Disk, tmp, body, 0o666, ""); err != nil {
			return err
		}
	} else if err != nil {
		return err
	}
	if err := j.moveTo(tmp, name); err != nil {
		return err
	}
	return j.Disk.SyncDir(j.Review)
}

// DraftText is a review draft: the text, unchanged, under a comment that says
// why it is there. Nothing of the text is in the comment.
func DraftText(reason, target, txid, expected string, text []byte, at time.Time) []byte {
	if reason, _, _ = strings.Cut(reason, ":"); reason == "" {
		reason = "unknown"
	}
	head := fmt.Sprintf("<!-- mem:review reason=%s target=%s expected=%s sha256=%s tx=%s at=%s -->\n",
		reason, safe(target), expected, plan.Hash(text), txid, at.UTC().Format(time.RFC3339))
	return append([]byte(head), text...)
}

func safe(s string) string {
	return strings.Map(func(r rune) rune {
		if r < ' ' || r == '>' || r == '<' || r == 0x7f {
			return '?'
		}
		return r
	}, s)
}

// clear moves sources and backups away, and takes the sentinel down. A rename
// is one change to the disk, so making the destination durable is enough for
// what only mem looks at; a file that others would see under its old name too,
// should a power cut leave a rename by halves, has its source synced after.
func (j *Journal) clear(p *plan.Plan) error {
	var to, from []string
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kind == plan.Move || s.Kind == plan.Trash {
			src, err := j.moveStep(p, s)
			if err != nil {
				return err
			}
			to = appendNew(to, path.Dir(s.To))
			if s.Origin == "" {
				from = appendNew(from, path.Dir(src))
			}
			continue
		}
		if s.Stage.Name == "" || s.Done || s.Kind == plan.Seal {
			continue
		}
		for _, name := range []string{s.Stage.Name, keepName(s.Stage.Name)} {
			dst, err := j.backup(p, i, name)
			if err != nil {
				return err
			}
			if dst != "" {
				to = appendNew(to, path.Dir(dst))
			}
		}
		if s.Before.Exists() || s.Outcome == plan.Conflict {
			// Also when a run before a crash moved them: it may not have synced.
			to = appendNew(to, plan.TrashDir(Root, p.At))
		}
	}
	if p.Sign != "" {
		if err := j.Disk.Remove(p.Sign); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := j.syncAll(to); err != nil {
		return err
	}
	return j.syncAll(slices.DeleteFunc(from, func(d string) bool { return slices.Contains(to, d) }))
}

// backup moves what a step replaced to the trash and returns where to.
func (j *Journal) backup(p *plan.Plan, i int, name string) (string, error) {
	s := &p.Steps[i]
	b, info, err := j.read(name)
	if err != nil || b == nil {
		return "", err
	}
	// Named by what it should hold: what it holds beyond that was written late,
	// and the check for grown backups finds it by the difference. Text that is
	// in the review inbox already is named by what it is.
	st := s.Before
	if s.Outcome == plan.Conflict && name == s.Stage.Name {
		st = s.After
	}
	if _, grown := grownBy(b, st); !grown && plan.Hash(b) != st.Hash {
		drafted, err := durable.Exists(j.Disk, j.draftName(*p, *s, plan.Hash(b)))
		if err != nil {
			return "", err
		}
		if drafted || !st.Exists() {
			st = stateOf(b, info)
		}
	}
	if err := durable.MkdirAll(j.Disk, plan.TrashDir(Root, p.At), 0o700); err != nil {
		return "", err
	}
	dst := plan.TrashName(Root, p.ID, p.At, i, st)
	return dst, j.moveTo(name, dst)
}

// moveStep carries out a Move or Trash step and returns the source's name.
func (j *Journal) moveStep(p *plan.Plan, s *plan.Step) (string, error) {
	src := s.Path
	there, err := durable.Exists(j.Disk, src)
	if err != nil {
		return src, err
	}
	if p.Steps[0].Kind == plan.Seal && s.Path == p.Steps[0].To {
		if src, there, err = j.findSealed(p.Steps[0]); err != nil {
			return src, err
		}
	}
	if !there {
		return s.Path, nil // moved before a crash, or taken away by its owner
	}
	if err := durable.MkdirAll(j.Disk, path.Dir(s.To), permFor(s.To)); err != nil {
		return src, err
	}
	err = j.moveTo(src, s.To)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return src, nil
	case errors.Is(err, fs.ErrExist):
		if info, lerr := j.Disk.Lstat(src); lerr == nil && s.Before.File != (plan.ID{}) && plan.ID(info.ID) != s.Before.File {
			return src, nil // ours moved before a crash; this is a newer file of that name
		}
		s.Outcome, s.Reason, p.Outcome = plan.Conflict, "destination-exists", plan.Conflict
		return src, j.publish(*p)
	case isCrossDevice(err):
		return src, j.moveAcross(p, src, s.To)
	}
	return src, err
}

// moveAcross moves a file to another file system: copy, verify, then the
// original to the trash, or away if the trash is where it went.
func (j *Journal) moveAcross(p *plan.Plan, src, to string) error {
	b, _, err := j.read(src)
	if err != nil {
		return err
	}
	tmp := path.Join(path.Dir(to), fmt.Sprintf(".mem-%s-across.tmp", p.ID))
	if err := j.Disk.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := durable.WriteNew(j.Disk, tmp, b, 0o600, src); err != nil {
		return err
	}
	if c, _, err := j.read(tmp); err != nil || !bytes.Equal(b, c) {
		return errors.Join(fmt.Errorf("copy of %s to %s does not read back", src, to), err)
	}
	if err := j.moveTo(tmp, to); err != nil {
		return err
	}
	if err := j.Disk.SyncDir(path.Dir(to)); err != nil {
		return err
	}
	if !strings.HasPrefix(to, Root+"/trash/") {
		t := plan.TrashName(Root, p.ID, p.At, len(p.Steps), plan.StateOf(b))
		if err := j.moveTo(src, t); !isCrossDevice(err) {
			return err
		}
	}
	return j.Disk.Remove(src)
}

package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/plan"
)

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
		if err := j.writeDraft(p, s, s.To, s.Reason, b); hopeless(err) {
			p.Notices = appendNew(p.Notices, fmt.Sprintf("%s: the review inbox cannot be written (%v); the text is kept in the trash", s.Path, err))
		} else if err != nil {
			return err
		}
	}
	return nil
}

// draft keeps somebody's text in the review inbox.
func (j *Journal) draft(p *plan.Plan, s *plan.Step, reason string, text []byte) error {
	name := j.draftName(*p, *s, plan.Hash(text))
	p.Notices = appendNew(p.Notices, fmt.Sprintf("%s: %s: kept in %s", s.Path, reason, name))
	if err := j.writeDraft(p, s, name, reason, text); !hopeless(err) {
		return err
	}
	p.Notices = appendNew(p.Notices, s.Path+": the review inbox cannot be written; the text is kept in the trash")
	return nil
}

// hopeless reports whether trying again cannot help until somebody changes
// what is there: unlike a full disk, a failing one, or too many open files.
func hopeless(err error) bool {
	if err == nil {
		return false
	}
	for _, e := range []error{durable.ErrNotRegular, durable.ErrReserved, durable.ErrInTheWay, syscall.EBUSY, syscall.EPERM, syscall.ENOTDIR, syscall.ENAMETOOLONG, syscall.ELOOP, syscall.EISDIR} {
		if errors.Is(err, e) {
			return true
		}
	}
	return strings.Contains(err.Error(), "path escapes from parent") // os.Root has no error to compare with
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
	before := p.Outcome
	for i := range p.Steps {
		s := &p.Steps[i]
		if s.Kind == plan.Move || s.Kind == plan.Trash {
			src, err := j.moveStep(p, s)
			if err != nil {
				return err
			}
			if s.Outcome == plan.Conflict {
				before = ""
				continue
			}
			to = appendNew(to, path.Dir(s.To))
			if s.Origin == "" {
				from = appendNew(from, path.Dir(src))
			}
			continue
		}
		if s.Stage.Name == "" || s.Done || s.Kind == plan.Seal || j.fresh[i] {
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
	if before == "" { // the receipt must tell of what did not move
		if err := j.publish(*p); err != nil {
			return err
		}
	}
	if p.Sign != "" {
		if err := j.Disk.Remove(p.Sign); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	if err := j.syncPresent(to); err != nil {
		return err
	}
	return j.syncPresent(slices.DeleteFunc(from, func(d string) bool { return slices.Contains(to, d) }))
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
	if p.Steps[0].Kind == plan.Seal && s.Path == p.Steps[0].To {
		var there bool
		var err error
		if src, there, err = j.findSealed(p.Steps[0]); err != nil || !there {
			return s.Path, err // moved before a crash, or taken away by its owner
		}
	}
	err := j.moveTo(src, s.To)
	if errors.Is(err, fs.ErrNotExist) {
		// Either it is gone, or the directory that it goes to is.
		if err := durable.MkdirAll(j.Disk, path.Dir(s.To), permFor(s.To)); err != nil && !refuses(err) {
			return src, err
		}
		err = j.moveTo(src, s.To)
	}
	switch {
	case err == nil || errors.Is(err, fs.ErrNotExist):
		return src, nil
	case errors.Is(err, fs.ErrExist):
		same, serr := j.sameText(src, s.To)
		if serr != nil {
			return src, serr
		}
		if same { // copied to another file system before a crash, or by somebody else
			return src, j.away(p, src)
		}
		if info, lerr := j.Disk.Lstat(src); lerr == nil && s.Before.File != (plan.ID{}) && plan.ID(info.ID) != s.Before.File {
			return src, nil // ours moved before a crash; this is a newer file of that name
		}
		s.Outcome, s.Reason, p.Outcome = plan.Conflict, "destination-exists", plan.Conflict
		stays(p, s, "something else is at "+s.To)
	case isCrossDevice(err):
		return src, j.moveAcross(p, src, s.To)
	case s.Kind == plan.Move && refuses(err):
		// It stays where it is; the others go on.
		s.Outcome, s.Reason, p.Outcome = plan.Conflict, "cannot-move: "+err.Error(), plan.Conflict
		stays(p, s, err.Error())
	default:
		return src, err
	}
	return src, nil
}

// maxStays bounds how many files that did not move are told one by one; the
// receipt has them all.
const maxStays = 100

func stays(p *plan.Plan, s *plan.Step, why string) {
	if len(p.Notices) < maxStays {
		p.Notices = appendNew(p.Notices, s.Path+": not moved: "+why)
	}
}

// refuses reports whether a move was refused for what the files and directories
// are, not for a passing trouble.
func refuses(err error) bool { return hopeless(err) || errors.Is(err, fs.ErrPermission) }

// moveAcross moves a file to another file system: copy, verify, then the
// original to the trash, or away if the trash is where it went.
func (j *Journal) moveAcross(p *plan.Plan, src, to string) error {
	b, _, err := j.read(src)
	if err != nil || b == nil { // gone: a run before a crash was done with it
		return err
	}
	there, err := durable.Exists(j.Disk, to)
	if err != nil {
		return err
	}
	if there {
		same, err := j.sameText(src, to)
		if err != nil {
			return err
		}
		if same { // copied before a crash
			return j.away(p, src)
		}
		i := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.To == to })
		s := &p.Steps[i]
		s.Outcome, s.Reason, p.Outcome = plan.Conflict, "destination-exists", plan.Conflict
		stays(p, s, "something else is at "+to)
		return nil
	}
	if err := durable.MkdirAll(j.Disk, path.Dir(to), permFor(to)); err != nil {
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
	if strings.HasPrefix(to, Root+"/trash/") {
		if err := j.Disk.SyncDir(path.Dir(to)); err != nil {
			return err
		}
		return j.Disk.Remove(src)
	}
	return j.away(p, src)
}

func (j *Journal) sameText(a, b string) (bool, error) {
	x, _, err := j.read(a)
	if err != nil {
		return false, err
	}
	y, _, err := j.read(b)
	if errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge) {
		return false, nil
	}
	return x != nil && y != nil && bytes.Equal(x, y), err
}

// away takes a file that stands where it should go already to the trash.
func (j *Journal) away(p *plan.Plan, src string) error {
	for _, s := range p.Steps {
		if s.Path == src && s.To != "" {
			if err := j.Disk.SyncDir(path.Dir(s.To)); err != nil {
				return err
			}
		}
	}
	b, _, err := j.read(src)
	if err != nil || b == nil {
		return err
	}
	if err := durable.MkdirAll(j.Disk, plan.TrashDir(Root, p.At), 0o700); err != nil {
		return err
	}
	n := slices.IndexFunc(p.Steps, func(s plan.Step) bool { return s.Path == src })
	t := plan.TrashName(Root, p.ID, p.At, len(p.Steps)+1+n, plan.StateOf(b))
	switch err := j.moveTo(src, t); {
	case isCrossDevice(err):
		return j.Disk.Remove(src)
	case errors.Is(err, fs.ErrExist): // it went there before, and a power cut left the rename by halves
		if same, err := j.sameText(src, t); err != nil || !same {
			return errors.Join(err, fmt.Errorf("move %s to %s: %w", src, t, fs.ErrExist))
		}
		if err := j.Disk.SyncDir(path.Dir(t)); err != nil {
			return err
		}
		return j.Disk.Remove(src)
	case err != nil:
		return err
	}
	return j.Disk.SyncDir(path.Dir(t))
}

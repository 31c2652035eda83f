// Package journal carries out a plan entirely or not at all, and finishes what
// a crash left.
//
// [Journal.Run] stages new content beside its target, writes the plan to
// .mem/tx/ID.json (the point of no return), carries it out step by step, and
// retires it by one rename to .mem/receipts. [Journal.Resume] does the same
// from a plan that a crash left there: it is the same code. What was replaced
// goes to .mem/trash; nothing is deleted.
//
// The order of the operations, and why each fsync stands where it does, is in
// docs/design/durability.md.
package journal

import (
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

// Root is the engine's own directory in a workspace.
const Root = ".mem"

// MaxFile is the largest file a step may rewrite, in bytes.
const MaxFile = 64 << 20

// maxReplans bounds how often one run follows a target that keeps changing.
const maxReplans = 100

// Journal carries out plans on one disk.
type Journal struct {
	Disk   durable.FS
	Review string    // directory of the review inbox
	At     time.Time // the run's instant
	Host   string

	// Place computes an Append or Edit step's new content from what the
	// target holds now (nil: absent), and what was added. It must be a pure
	// function of its arguments. An error makes the step a conflict.
	Place func(s plan.Step, old []byte) (next, added []byte, err error)
	// Next plans what follows a seal: the steps that bring the sealed text
	// (at s.To of the plan's first step) to where it belongs. An error that is
	// ErrUnfit leaves the sealed text set aside for a person.
	Next func(m fs.FS, p plan.Plan, sealed []byte) (plan.Plan, error)

	batch *batch              // set while many steps are staged
	fresh map[int]bool        // of the plan that this run staged itself: the creations that have landed; nil in recovery
	made  string              // the directory that was made for the last move
	month string              // whose directories this run has made
	kept  map[string][]string // what each plan that this run carried out from the beginning put in the trash
}

// ErrChanged says that a file was no longer what the feature had read when its
// step was staged. Nothing has happened; plan again.
var ErrChanged = errors.New("changed since it was read")

// ErrUnfit says that text cannot be brought where it belongs until a person
// has mended something.
var ErrUnfit = errors.New("needs a person")

// OpenError says that a plan was written and could not be carried out to the
// end. The transaction stays open; recovery finishes it.
type OpenError struct {
	ID  string
	Err error
}

func (e *OpenError) Error() string { return fmt.Sprintf("transaction %s left open: %v", e.ID, e.Err) }
func (e *OpenError) Unwrap() error { return e.Err }

func (j *Journal) txPath(id string) string { return path.Join(Root, "tx", id+".json") }

// ReceiptPath is where the receipt of a transaction stands.
func ReceiptPath(id string) string {
	t, _ := plan.IDTime(id)
	return path.Join(Root, "receipts", t.Format("2006/01"), id+".json")
}

// Run carries out a plan and returns its receipt. Without an *OpenError, an
// error means that nothing has changed.
func (j *Journal) Run(p plan.Plan) (plan.Plan, error) {
	p.Format, p.At, p.Host, p.Outcome = plan.Format, j.At, j.Host, plan.Applied
	id, err := j.freshID(p)
	if err != nil {
		return p, err
	}
	p.ID = id
	if j.kept == nil {
		j.kept = map[string][]string{}
	}
	j.kept[p.ID] = nil
	if err := j.prepare(&p, 0); err != nil {
		j.drop(p)
		return p, err
	}
	if err := j.publish(p); err != nil {
		if there, lerr := durable.Exists(j.Disk, j.txPath(p.ID)); lerr == nil && !there {
			j.drop(p)
			return p, err
		}
		return p, &OpenError{p.ID, err}
	}
	j.fresh = map[int]bool{}
	err = j.carryOut(&p)
	j.fresh = nil
	if err != nil {
		return p, j.setAside(&p, err)
	}
	return p, nil
}

// freshID returns a transaction id that no plan and no receipt has yet.
func (j *Journal) freshID(p plan.Plan) (string, error) {
	for n := 0; ; n++ {
		id := plan.NewID(p, fmt.Sprint(n))
		open, err := durable.Exists(j.Disk, j.txPath(id))
		if err != nil {
			return "", err
		}
		done, err := durable.Exists(j.Disk, ReceiptPath(id))
		if err != nil {
			return "", err
		}
		if !open && !done {
			return id, nil
		}
	}
}

// Open lists the transactions that are not finished, oldest first.
func (j *Journal) Open() ([]string, error) {
	entries, err := j.Disk.ReadDir(path.Join(Root, "tx"))
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var out []string
	for _, e := range entries {
		id, ok := strings.CutSuffix(e.Name(), ".json")
		if _, ours := plan.IDTime(id); ok && ours && !e.IsDir() {
			out = append(out, id)
		}
	}
	return out, nil
}

// Load reads an open plan or a receipt.
func (j *Journal) Load(id string) (p plan.Plan, open bool, err error) {
	if _, ok := plan.IDTime(id); !ok {
		return p, false, &fs.PathError{Op: "open", Path: id, Err: fs.ErrNotExist}
	}
	b, _, err := durable.ReadFile(j.Disk, ReceiptPath(id), 0)
	if errors.Is(err, fs.ErrNotExist) {
		open = true
		b, _, err = durable.ReadFile(j.Disk, j.txPath(id), 0)
	}
	if err != nil {
		return p, open, err
	}
	if p, err = decode(b, id); err != nil {
		return p, open, fmt.Errorf("read transaction %s: %w", id, err)
	}
	return p, open, nil
}

// Resume finishes an open transaction. Everything on the disk must be durable
// before it is called: the crash may have come between the plan's rename and
// its fsync, and acting on a plan that a power cut can still take away would
// leave its steps without their record.
func (j *Journal) Resume(id string) (plan.Plan, error) {
	b, _, err := durable.ReadFile(j.Disk, j.txPath(id), 0)
	if err != nil {
		return plan.Plan{}, err
	}
	p, err := decode(b, id)
	if err != nil {
		return p, &CorruptError{j.txPath(id), err}
	}
	if err := j.dirs(); err != nil {
		return p, err
	}
	if err := j.carryOut(&p); err != nil {
		return p, j.setAside(&p, err)
	}
	return p, nil
}

// decode reads a stored plan and makes sure that it is the one of that id.
func decode(b []byte, id string) (plan.Plan, error) {
	p, err := plan.Decode(b)
	if err == nil {
		err = p.Check()
	}
	if err == nil && p.ID != id {
		err = fmt.Errorf("holds the plan of %q", p.ID)
	}
	return p, err
}

// CorruptError says that an open transaction's plan cannot be read.
type CorruptError struct {
	Name string
	Err  error
}

func (e *CorruptError) Error() string { return "read " + e.Name + ": " + e.Err.Error() }
func (e *CorruptError) Unwrap() error { return e.Err }

// Mend is the hint that goes with the error.
func (e *CorruptError) Mend() string {
	return "restore it from a copy, or move it away; then mem recover brings what it had staged to the trash"
}

// dirs makes the engine's directories for this run's month.
func (j *Journal) dirs() error {
	month := j.At.UTC().Format("2006/01")
	if month == j.month {
		return nil
	}
	for _, d := range []string{path.Join(Root, "tx"), path.Join(Root, "receipts", month), path.Join(Root, "trash", month)} {
		if err := durable.MkdirAll(j.Disk, d, 0o700); err != nil {
			return err
		}
	}
	j.month = month
	return nil
}

// prepare stages every step from index first on, and makes what the plan
// stands on durable: staged content, then the directories that hold it.
func (j *Journal) prepare(p *plan.Plan, first int) error {
	if err := j.dirs(); err != nil {
		return err
	}
	if p.Sign != "" && first == 0 {
		if err := j.sign(*p); err != nil {
			return err
		}
	}
	j.made = ""
	if j.batch = nil; len(p.Steps)-first >= batchFrom {
		root, err := j.Disk.Lstat(".")
		if err != nil {
			return err
		}
		j.batch = &batch{dev: root.ID.Dev, dirs: map[string]bool{}}
		defer func() { j.batch = nil }()
	}
	var dirs []string
	for i := first; i < len(p.Steps); i++ {
		dir, err := j.stage(p, i)
		if err != nil {
			return err
		}
		if dir != "" && !slices.Contains(dirs, dir) {
			dirs = append(dirs, dir)
		}
	}
	if j.batch != nil {
		// One sync of the file system for all staged files and their names.
		if err := j.Disk.SyncAll(); err != nil {
			return err
		}
		dirs = slices.DeleteFunc(dirs, func(d string) bool { return j.batch.dirs[d] })
	}
	return j.syncAll(dirs)
}

// batchFrom is how many steps are made durable together: below, an fsync of
// each staged file costs less than one of the whole file system.
const batchFrom = 8

// batch is a row of steps that are staged without an fsync each.
type batch struct {
	dev    uint64
	dirs   map[string]bool // directories on the root's file system
	staged int
}

// covered reports whether SyncAll makes a directory durable: it does for the
// file system that the root is on.
func (b *batch) covered(disk durable.FS, dir string) bool {
	ok, seen := b.dirs[dir]
	if !seen {
		info, err := disk.Lstat(dir)
		ok = err == nil && info.ID.Dev == b.dev
		b.dirs[dir] = ok
	}
	return ok
}

func (j *Journal) syncAll(dirs []string) error {
	for _, d := range dirs {
		if err := j.Disk.SyncDir(d); err != nil {
			return err
		}
	}
	return nil
}

// syncPresent makes directories durable that may have been taken away, with
// all in them, by their owner.
func (j *Journal) syncPresent(dirs []string) error {
	for _, d := range dirs {
		if err := j.Disk.SyncDir(d); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

// sign puts the visible sentinel where agents look. The caller holds the lock,
// so one that is already there is stale, whoever wrote it.
func (j *Journal) sign(p plan.Plan) error {
	text := fmt.Sprintf("{\"tx\":%q,\"at\":%q,\"host\":%q}\n", p.ID, p.At.Format(time.RFC3339), p.Host)
	f, err := j.Disk.Create(p.Sign, 0o644)
	if errors.Is(err, fs.ErrExist) {
		if err := j.Disk.Remove(p.Sign); err != nil {
			return err
		}
		f, err = j.Disk.Create(p.Sign, 0o644)
	}
	if err != nil {
		return err
	}
	_, err = f.Write([]byte(text)) // a sign, not data: nothing depends on it being durable
	return errors.Join(err, f.Close())
}

// StagedBy tells the transaction a file name was staged or kept for.
func StagedBy(base string) (id string, ok bool) {
	rest, ok := strings.CutPrefix(base, ".mem-")
	if !ok || !strings.HasSuffix(rest, ".tmp") {
		return "", false
	}
	parts := strings.SplitN(rest, "-", 3)
	if len(parts) != 3 {
		return "", false
	}
	id = parts[0] + "-" + parts[1]
	_, ok = plan.IDTime(id)
	return id, ok
}

// stage puts a step's new content beside its target and returns the directory
// that must be synced for it.
func (j *Journal) stage(p *plan.Plan, i int) (string, error) {
	s := &p.Steps[i]
	if s.Done {
		return "", nil
	}
	switch s.Kind {
	case plan.Mkdir:
		s.Done = true
		return "", durable.MkdirAll(j.Disk, s.Path, 0o777)
	case plan.Move, plan.Trash:
		if s.Before.File == (plan.ID{}) {
			info, err := j.Disk.Lstat(s.Path)
			if err != nil {
				return "", err
			}
			s.Before.File, s.Before.Size, s.Before.ModTime = plan.ID(info.ID), info.Size, info.ModTime.UTC()
		}
		if s.Kind == plan.Trash {
			s.To = plan.TrashName(Root, p.ID, p.At, i, s.Before)
		}
		if dir := path.Dir(s.To); dir != j.made { // moves come in rows; moveStep makes it anew if it must
			err := durable.MkdirAll(j.Disk, dir, permFor(s.To))
			if err != nil && (s.Kind == plan.Trash || !refuses(err)) {
				return "", err
			}
			j.made = dir
		}
		return "", nil
	case plan.Seal:
		return j.stageSeal(p, s)
	case plan.Append, plan.Edit:
		if err := durable.MkdirAll(j.Disk, path.Dir(s.Path), 0o777); err != nil {
			return "", err
		}
		old, info, err := j.read(s.Path)
		if err != nil {
			return "", err
		}
		if plan.StateOf(old).Hash != s.Before.Hash {
			return "", fmt.Errorf("%s: %w", s.Path, ErrChanged)
		}
		return j.stagePlaced(p, s, old, info)
	}
	if dir := path.Dir(s.Path); dir != j.made {
		if err := durable.MkdirAll(j.Disk, dir, permFor(s.Path)); err != nil {
			return "", err
		}
		j.made = dir
	}
	return j.put(p, s, s.Content)
}

func permFor(name string) fs.FileMode {
	if strings.HasPrefix(name, Root+"/") {
		return 0o700
	}
	return 0o777
}

// stagePlaced stages an Append or Edit on top of what the target holds.
func (j *Journal) stagePlaced(p *plan.Plan, s *plan.Step, old []byte, info durable.Info) (string, error) {
	next, added, err := j.Place(*s, old)
	if err != nil {
		return "", err
	}
	s.Before, s.Added = stateOf(old, info), added
	return j.put(p, s, next)
}

// put writes a step's staged file, durable but for its name.
func (j *Journal) put(p *plan.Plan, s *plan.Step, content []byte) (string, error) {
	s.Stage = plan.Stage{}
	n := 0
	if j.batch != nil && j.batch.staged > 0 {
		n = j.batch.staged
	} else {
		for _, other := range p.Steps {
			if other.Stage.Name != "" {
				n++
			}
		}
	}
	write := durable.WriteNew
	if j.batch != nil {
		j.batch.staged = n + 1
		if j.batch.covered(j.Disk, path.Dir(s.Path)) {
			write = durable.WriteLater
		}
	}
	s.After = plan.StateOf(content)
	if content == nil {
		s.After = plan.State{Hash: plan.Hash(nil)}
	}
	like, perm := "", fs.FileMode(0o666)
	if s.Before.Exists() && s.Kind != plan.Seal {
		like, perm = s.Path, 0o600
	}
	if s.Kind == plan.Seal {
		if _, err := j.Disk.Lstat(s.Path); err == nil {
			like, perm = s.Path, 0o600 // the fresh buffer takes the old one's mode
		}
	}
	for ; ; n++ {
		name := path.Join(path.Dir(s.Path), fmt.Sprintf(".mem-%s-%d.tmp", p.ID, n))
		info, err := write(j.Disk, name, content, perm, like)
		if errors.Is(err, fs.ErrNotExist) && like != "" {
			like, perm = "", 0o666 // no such target: carrying it out will find the conflict
			info, err = write(j.Disk, name, content, perm, like)
		}
		if errors.Is(err, fs.ErrExist) {
			continue // left by an attempt that a crash ended before its plan
		}
		if err != nil {
			return "", err
		}
		s.Stage = plan.Stage{Name: name, File: plan.ID(info.ID)}
		return path.Dir(name), nil
	}
}

func stateOf(b []byte, info durable.Info) plan.State {
	s := plan.StateOf(b)
	if b != nil {
		s.ModTime, s.File = info.ModTime.UTC(), plan.ID(info.ID)
	}
	return s
}

// read returns a file's content, nil if it is absent.
func (j *Journal) read(name string) ([]byte, durable.Info, error) {
	b, info, err := durable.ReadFile(j.Disk, name, MaxFile)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, durable.Info{}, nil
	}
	return b, info, err
}

// publish writes the plan: from the rename on it will be carried out.
func (j *Journal) publish(p plan.Plan) error {
	b, err := p.Encode()
	if err != nil {
		return err
	}
	name := j.txPath(p.ID)
	tmp := name + ".tmp"
	if _, err = durable.WriteNew(j.Disk, tmp, b, 0o600, ""); errors.Is(err, fs.ErrExist) {
		if err = j.Disk.Remove(tmp); err == nil {
			_, err = durable.WriteNew(j.Disk, tmp, b, 0o600, "")
		}
	}
	if err != nil {
		return err
	}
	if err := j.Disk.Rename(tmp, name); err != nil {
		j.Disk.Remove(tmp)
		return err
	}
	return j.Disk.SyncDir(path.Join(Root, "tx"))
}

// drop takes away what a plan that was never published had staged.
func (j *Journal) drop(p plan.Plan) {
	for _, s := range p.Steps {
		if s.Stage.Name != "" && !s.Done {
			if info, err := j.Disk.Lstat(s.Stage.Name); err == nil && plan.ID(info.ID) == s.Stage.File {
				j.Disk.Remove(s.Stage.Name)
			}
		}
	}
	if p.Sign != "" {
		j.Disk.Remove(p.Sign)
	}
}

// retire turns the finished plan into its receipt by one rename. It is synced
// so that what was reported as done needs no recovery after a power cut; the
// promise would hold without, since every step can be told to be over.
func (j *Journal) retire(p plan.Plan) error {
	tx, receipt := j.txPath(p.ID), ReceiptPath(p.ID)
	if err := durable.MkdirAll(j.Disk, path.Dir(receipt), 0o700); err != nil {
		return err
	}
	err := j.moveTo(tx, receipt)
	if errors.Is(err, fs.ErrExist) {
		// A receipt of that id is there, as another file: this plan came back
		// from a backup, and has been carried out long since.
		b, _, rerr := j.read(tx)
		if rerr != nil {
			return rerr
		}
		err = j.moveTo(tx, plan.TrashName(Root, p.ID, p.At, len(p.Steps)+2000, plan.StateOf(b)))
	}
	if err != nil {
		return err
	}
	return j.Disk.SyncDir(path.Dir(receipt))
}

// moveTo moves a file; a power cut may have left it under both names.
func (j *Journal) moveTo(from, to string) error {
	if id := plan.TrashedBy(to); id != "" {
		if names, ours := j.kept[id]; ours {
			j.kept[id] = append(names, to)
		}
	}
	err := j.Disk.Move(from, to)
	if !errors.Is(err, fs.ErrExist) {
		return err
	}
	a, aerr := j.Disk.Lstat(from)
	b, berr := j.Disk.Lstat(to)
	if aerr == nil && berr == nil && a.ID == b.ID {
		return j.Disk.Remove(from)
	}
	return err
}

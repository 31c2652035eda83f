package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/plan"
)

// A rotation is two plans under one transaction: seal sets the buffer aside
// as .rotating with a fresh one in its place, and what to do with the sealed
// text is planned from what was sealed and replaces the seal plan by rename.

// stageSeal puts the fresh buffer where the sealed one will come out: at the
// .rotating name, from which it is exchanged with the buffer. Where names
// cannot be exchanged it waits beside the buffer instead.
func (j *Journal) stageSeal(p *plan.Plan, s *plan.Step) (string, error) {
	if err := durable.MkdirAll(j.Disk, path.Dir(s.Path), 0o777); err != nil {
		return "", err
	}
	dir, err := j.put(p, s, s.Content)
	if err != nil {
		return "", err
	}
	if !j.Disk.Caps(dir).Exchange {
		return dir, nil
	}
	tmp := s.Stage.Name
	s.Stage.Name = s.To
	if err := j.Disk.Move(tmp, s.To); err != nil {
		j.Disk.Remove(tmp)
		return "", err
	}
	// No fsync of the directory here: until it is exchanged, .rotating holds
	// only our template, and the fsync after the exchange covers both. If a
	// power cut takes the name away, the plan finds that nothing was sealed.
	return "", nil
}

// seal carries out the seal, plans what follows and publishes that in its
// place. On return p is the plan to go on with.
func (j *Journal) seal(p *plan.Plan) error {
	s := &p.Steps[0]
	if err := j.exchangeBuffer(s); err != nil {
		return err
	}
	if err := j.Disk.SyncDir(path.Dir(s.Path)); err != nil {
		return err
	}
	for range maxReplans {
		name, there, err := j.findSealed(*s)
		if err != nil {
			return err
		}
		if !there { // there was no buffer
			s.Done, p.Phase = true, ""
			return nil
		}
		sealed, info, err := j.read(name)
		if err == nil && sealed == nil {
			continue
		}
		var next plan.Plan
		if err == nil {
			s.Before = stateOf(sealed, info)
			next, err = j.Next(durable.View(j.Disk, MaxFile), *p, sealed)
		}
		if errors.Is(err, ErrUnfit) || errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge) {
			return j.giveUp(p, err)
		}
		if err != nil {
			return err
		}
		next = follow(*p, next)
		if err := j.prepare(&next, 1); err != nil {
			j.drop(plan.Plan{Steps: next.Steps[1:]})
			if errors.Is(err, ErrChanged) {
				continue
			}
			return err
		}
		if err := j.publish(next); err != nil {
			return err
		}
		*p = next
		return nil
	}
	return fmt.Errorf("what %s belongs to keeps changing", s.To)
}

// follow makes the second plan of a rotation from what Next returned.
func follow(first, next plan.Plan) plan.Plan {
	out := first
	out.Phase = ""
	head := first.Steps[0]
	head.Done = true
	out.Steps = append([]plan.Step{head}, next.Steps...)
	for i := range out.Steps {
		if s := &out.Steps[i]; s.Kind == plan.Trash && s.Path == head.To {
			s.Before = head.Before // it may wait under a .pending name by now
		}
	}
	out.Facts = next.Facts
	out.Notices = append(slices.Clone(first.Notices), next.Notices...)
	return out
}

// exchangeBuffer puts the fresh buffer in place, if it is not there yet.
func (j *Journal) exchangeBuffer(s *plan.Step) error {
	for range maxReplans {
		info, err := j.Disk.Lstat(s.Stage.Name)
		if errors.Is(err, fs.ErrNotExist) {
			return nil
		}
		if err != nil {
			return err
		}
		if plan.ID(info.ID) != s.Stage.File {
			b, _, err := j.read(s.Stage.Name)
			if err != nil {
				return err
			}
			if b == nil || plan.Hash(b) != s.After.Hash {
				return nil // exchanged: the sealed text is here
			}
			s.Stage.File = plan.ID(info.ID) // our template, in a copied workspace
		}
		if s.Stage.Name == s.To {
			err = j.Disk.Exchange(s.To, s.Path)
			if errors.Is(err, fs.ErrNotExist) { // no buffer, or an agent is replacing it
				err = j.Disk.Move(s.To, s.Path)
			}
		} else {
			err = j.renameBuffer(s)
		}
		if !errors.Is(err, fs.ErrExist) {
			return err
		}
	}
	return fmt.Errorf("%s keeps changing", s.Path)
}

// renameBuffer seals without an exchange: the buffer becomes .rotating, then
// the fresh one takes its name; a buffer an agent made meanwhile wins.
func (j *Journal) renameBuffer(s *plan.Step) error {
	dir := path.Dir(s.Path)
	there, err := durable.Exists(j.Disk, s.To)
	if err != nil {
		return err
	}
	if !there {
		if _, there, err = j.findSealed(*s); err != nil {
			return err
		}
	} else if a, err := j.Disk.Lstat(s.To); err == nil {
		// A move by link and unlink may have been cut in two.
		if b, err := j.Disk.Lstat(s.Path); err == nil && a.ID == b.ID {
			if err := j.Disk.Remove(s.Path); err != nil {
				return err
			}
			if err := j.Disk.SyncDir(dir); err != nil {
				return err
			}
		}
	}
	if !there {
		err := j.Disk.Move(s.Path, s.To)
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		if err := j.Disk.SyncDir(dir); err != nil {
			return err
		}
	}
	err = j.Disk.Move(s.Stage.Name, s.Path)
	if errors.Is(err, fs.ErrExist) {
		return j.Disk.Remove(s.Stage.Name) // our own template
	}
	return err
}

// Pending is the stem of the names under which a failed rotation keeps its
// text: STEM, STEM-2, STEM-3.
func Pending(buffer string) string { return buffer + ".pending" }

// findSealed finds the sealed text: under .rotating, or, after a failure,
// under a .pending name.
func (j *Journal) findSealed(s plan.Step) (name string, there bool, err error) {
	known := s.Before.File != (plan.ID{})
	info, err := j.Disk.Lstat(s.To)
	if err == nil && plan.ID(info.ID) != s.Stage.File && (!known || plan.ID(info.ID) == s.Before.File || !s.Done) {
		return s.To, true, nil
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return s.To, false, err
	}
	entries, err := j.Disk.ReadDir(path.Dir(s.Path))
	if err != nil {
		return s.To, false, err
	}
	stem := path.Base(Pending(s.Path))
	for _, e := range entries {
		if e.Name() != stem && !strings.HasPrefix(e.Name(), stem+"-") {
			continue
		}
		name := path.Join(path.Dir(s.Path), e.Name())
		info, err := j.Disk.Lstat(name)
		if err != nil {
			return s.To, false, err
		}
		if !info.Mode.IsRegular() || plan.ID(info.ID) == s.Stage.File || known && plan.ID(info.ID) != s.Before.File {
			continue
		}
		return name, true, nil
	}
	if !known {
		return s.To, false, nil
	}
	// By content: in a copied workspace, or on a disk mounted anew, the objects
	// have other numbers.
	names := []string{s.To}
	for _, e := range entries {
		if e.Name() == stem || strings.HasPrefix(e.Name(), stem+"-") {
			names = append(names, path.Join(path.Dir(s.Path), e.Name()))
		}
	}
	for _, name := range names {
		b, _, err := j.read(name)
		if errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge) {
			continue
		}
		if err != nil {
			return s.To, false, err
		}
		if _, grown := grownBy(b, s.Before); b != nil && (grown || plan.Hash(b) == s.Before.Hash) {
			return name, true, nil
		}
	}
	return s.To, false, nil
}

// giveUp ends a rotation whose sealed text has nowhere to go until a person
// mends something: the text waits as .pending, the transaction is over.
func (j *Journal) giveUp(p *plan.Plan, cause error) error {
	s := &p.Steps[0]
	if err := j.park(*s); err != nil {
		return err
	}
	s.Done, s.Outcome, s.Reason = true, plan.Conflict, cause.Error()
	p.Phase, p.Outcome = "", plan.Conflict
	p.Facts = plan.Facts{"pending": Pending(s.Path)}
	return j.publish(*p)
}

// setAside is what happens when carrying out a plan fails. A rotation's sealed
// text is moved to .pending, where agents look for it; that needs no space.
// After a failed fsync of a
// directory nothing more is touched.
func (j *Journal) setAside(p *plan.Plan, cause error) error {
	open := &OpenError{p.ID, cause}
	s := p.Steps[0]
	var sync *durable.SyncError
	if s.Kind != plan.Seal || errors.As(cause, &sync) && sync.Dir {
		return open
	}
	if p.Phase == plan.PhaseSeal && s.Stage.Name == s.To {
		if info, err := j.Disk.Lstat(s.To); err == nil && plan.ID(info.ID) == s.Stage.File {
			return j.withdraw(p, open)
		}
	}
	if err := j.park(s); err == nil && p.Sign != "" {
		j.Disk.Remove(p.Sign)
	}
	return open
}

// withdraw takes back a seal that never came to its exchange.
func (j *Journal) withdraw(p *plan.Plan, open *OpenError) error {
	if err := j.Disk.Remove(j.txPath(p.ID)); err != nil {
		return open
	}
	if err := j.Disk.SyncDir(path.Join(Root, "tx")); err != nil {
		return open
	}
	j.drop(*p)
	return open.Err
}

// park renames sealed text to the first free .pending name.
func (j *Journal) park(s plan.Step) error {
	name, there, err := j.findSealed(s)
	if err != nil || !there || name != s.To {
		return err
	}
	stem := Pending(s.Path)
	for n := 1; ; n++ {
		to := stem
		if n > 1 {
			to = fmt.Sprintf("%s-%d", stem, n)
		}
		err := j.Disk.Move(s.To, to)
		if errors.Is(err, fs.ErrExist) {
			continue
		}
		if err != nil {
			return err
		}
		return j.Disk.SyncDir(path.Dir(s.Path))
	}
}

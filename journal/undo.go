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

// PlaceRemove is the place of an Edit that takes out a text which stands
// exactly once.
const PlaceRemove = "remove"

// PlaceRemoveBlock is the place of an Edit that takes out a block which was
// added at the end: one that stands between blank lines, in no code fence,
// exactly once.
const PlaceRemoveBlock = "remove-block"

// UndoError lists what stands in the way of taking a transaction back.
type UndoError struct {
	ID      string
	Reasons []string
}

func (e *UndoError) Error() string {
	return "cannot undo " + e.ID + ": " + strings.Join(e.Reasons, "; ")
}

// Mend is the hint that goes with the error.
func (e *UndoError) Mend() string {
	return "nothing was changed; mem diff " + e.ID + " shows what it did, mem trash list what was kept"
}

// Undo plans the taking back of a transaction: replaced content where the
// target still is what the transaction left, an added block where it stands
// exactly once, moved files where their old name is free. Anything else is an
// *UndoError, and nothing is planned.
func (j *Journal) Undo(p plan.Plan) (plan.Plan, error) {
	u := undo{j: j, p: p}
	for i := len(p.Steps) - 1; i >= 0; i-- {
		if err := u.step(i); err != nil {
			return plan.Plan{}, err
		}
	}
	if len(u.reasons) > 0 {
		return plan.Plan{}, &UndoError{p.ID, u.reasons}
	}
	return plan.Plan{Command: "undo", Steps: u.steps, Facts: plan.Facts{"undoes": p.ID}}, nil
}

type undo struct {
	j       *Journal
	p       plan.Plan
	steps   []plan.Step
	reasons []string
}

func (u *undo) no(format string, args ...any) error {
	u.reasons = append(u.reasons, fmt.Sprintf(format, args...))
	return nil
}

func (u *undo) step(i int) error {
	s := u.p.Steps[i]
	if s.Outcome == plan.Conflict {
		return nil // it changed nothing
	}
	switch s.Kind {
	case plan.Mkdir:
		return nil
	case plan.Move, plan.Trash:
		return u.moveBack(s)
	}
	cur, _, err := u.j.read(s.Path)
	if errors.Is(err, durable.ErrNotRegular) || errors.Is(err, durable.ErrTooLarge) {
		return u.no("%v", err)
	}
	if err != nil {
		return err
	}
	switch {
	case cur == nil:
		return u.no("%s is gone", s.Path)
	case s.Kind != plan.Append && plan.Hash(cur) != s.After.Hash:
		return u.no("%s has changed since (was %.12s, is %.12s)", s.Path, s.After.Hash, plan.Hash(cur))
	case s.Kind == plan.Append && (plan.Hash(cur) != s.After.Hash || s.Before.Exists()):
		return u.takeOut(s, cur)
	case !s.Before.Exists():
		u.steps = append(u.steps, plan.Step{Kind: plan.Trash, Path: s.Path, Before: plan.StateOf(cur)})
		return nil
	}
	old, err := u.j.Backup(u.p, i)
	if err != nil {
		return u.no("%s: its old content is no longer in the trash", s.Path)
	}
	u.steps = append(u.steps, plan.Step{Kind: plan.Replace, Path: s.Path, Before: plan.StateOf(cur), Content: old})
	return nil
}

// takeOut plans the removal of exactly what an append put in.
func (u *undo) takeOut(s plan.Step, cur []byte) error {
	if s.Place == placeAtEnd {
		text := s.Added
		if len(text) == 0 {
			text = s.Text
		}
		if _, err := TakeOutBlock(cur, text); err != nil {
			return u.no("%s: %v", s.Path, err)
		}
		u.steps = append(u.steps, plan.Step{Kind: plan.Edit, Path: s.Path, Before: plan.StateOf(cur), Place: PlaceRemoveBlock, Text: text})
		return nil
	}
	for _, text := range [][]byte{s.Added, s.Text} {
		if _, err := TakeOut(cur, text); err == nil {
			u.steps = append(u.steps, plan.Step{Kind: plan.Edit, Path: s.Path, Before: plan.StateOf(cur), Place: PlaceRemove, Text: text})
			return nil
		}
	}
	return u.no("%s: what was added stands there %d times", s.Path, len(whole(cur, s.Text)))
}

// TakeOut removes a text that stands in b exactly once, in lines of its own.
func TakeOut(b, text []byte) ([]byte, error) {
	at := whole(b, text)
	if len(at) != 1 {
		return nil, fmt.Errorf("the text to take out stands there %d times", len(at))
	}
	return slices.Concat(b[:at[0]], b[at[0]+len(text):]), nil
}

const bom = "\xef\xbb\xbf"

// placeAtEnd is the name of the place that blocks are added at (package entry).
const placeAtEnd = "end"

// TakeOutBlock removes a block, with the line ends that were put before it.
func TakeOutBlock(b, text []byte) ([]byte, error) {
	core := bytes.TrimLeft(text, "\r\n")
	before := text[:len(text)-len(core)]
	var at []int
	for _, i := range whole(b, core) {
		end := i + len(core)
		if endsBlank(b[:i]) && beginsBlank(b[end:]) && !fenced(b[:i]) {
			at = append(at, i)
		}
	}
	if len(core) == 0 || len(at) != 1 {
		return nil, fmt.Errorf("what was added stands there %d times as a block of its own", len(at))
	}
	start, end := at[0], at[0]+len(core)
	if end < len(b) && bytes.Count(before, []byte("\n")) > 1 {
		before = before[bytes.IndexByte(before, '\n')+1:] // text follows now: the line above keeps its end
	}
	if bytes.HasSuffix(b[:start], before) {
		start -= len(before)
	}
	return slices.Concat(b[:start], b[end:]), nil
}

// endsBlank reports whether a text ends with a blank line, or is empty.
func endsBlank(b []byte) bool {
	if len(b) == 0 || string(b) == bom {
		return true
	}
	if b[len(b)-1] != '\n' {
		return false
	}
	b = b[:len(b)-1]
	return len(bytes.TrimSpace(b[bytes.LastIndexByte(b, '\n')+1:])) == 0
}

// beginsBlank reports whether a text begins with a blank line, or is empty.
func beginsBlank(b []byte) bool {
	line, _, _ := bytes.Cut(b, []byte("\n"))
	return len(bytes.TrimSpace(line)) == 0
}

// fenced reports whether a place, by what stands before it, is inside a code
// fence.
func fenced(before []byte) bool {
	var fence []byte
	for l := range bytes.Lines(before) {
		t := bytes.TrimLeft(l, " ")
		n := 0
		for n < len(t) && (t[n] == '`' || t[n] == '~') && t[n] == t[0] {
			n++
		}
		switch {
		case n < 3 || len(l)-len(t) > 3 || t[0] == '`' && bytes.IndexByte(t[n:], '`') >= 0:
		case fence == nil:
			fence = t[:n]
		case t[0] == fence[0] && n >= len(fence) && len(bytes.TrimSpace(t[n:])) == 0:
			fence = nil
		}
	}
	return fence != nil
}

// whole finds where text stands in b, from the beginning of a line to the end
// of one.
func whole(b, text []byte) (at []int) {
	if len(text) == 0 {
		return nil
	}
	for from := 0; ; {
		i := bytes.Index(b[from:], text)
		if i < 0 {
			return at
		}
		i += from
		end := i + len(text)
		begins := i == 0 || b[i-1] == '\n' || string(b[:i]) == bom || endsLine(text)
		ends := end == len(b) || text[len(text)-1] == '\n' || b[end] == '\n' || b[end] == '\r'
		if begins && ends {
			at = append(at, i)
		}
		from = i + 1
	}
}

// endsLine reports whether a text begins with the end of the line before it,
// and then a blank line: it was added where that had none.
func endsLine(text []byte) bool {
	return bytes.HasPrefix(text, []byte("\n\n")) || bytes.HasPrefix(text, []byte("\r\n\r\n"))
}

func (u *undo) moveBack(s plan.Step) error {
	sealed := u.p.Steps[0].Kind == plan.Seal && u.p.Steps[0].To == s.Path
	if _, staged := StagedBy(path.Base(s.Path)); sealed || staged {
		return nil // the seal says it all; a stage that was not used is no memory
	}
	if there, err := durable.Exists(u.j.Disk, s.Path); err != nil {
		return err
	} else if there {
		return u.no("%s is there again", s.Path)
	}
	info, err := u.j.Disk.Lstat(s.To)
	if errors.Is(err, fs.ErrNotExist) || err == nil && !info.Mode.IsRegular() {
		return u.no("%s is no longer at %s", s.Path, s.To)
	}
	if err != nil {
		return err
	}
	now := plan.State{Hash: s.Before.Hash, Size: info.Size}
	if b, got, err := u.j.read(s.To); err == nil {
		now = plan.State{Hash: plan.Hash(b), Size: got.Size}
	} else if info.Size != s.Before.Size || !info.ModTime.UTC().Equal(s.Before.ModTime) { // what cannot be read can be moved
		return u.no("%s: %v", s.To, err)
	}
	if strings.HasPrefix(s.Path, Root+"/") && now.Hash != s.Before.Hash {
		return u.no("%s has changed since", s.To) // newer text is not for the trash, least of all under an older one's name
	}
	u.steps = append(u.steps, plan.Step{Kind: plan.Move, Path: s.To, To: s.Path, Before: now})
	return nil
}

// Backup reads what the i-th step of a finished transaction replaced, as it
// was then. A sealed buffer's content is that of the step that trashed it.
func (j *Journal) Backup(p plan.Plan, i int) ([]byte, error) {
	s := p.Steps[i]
	if s.Kind == plan.Seal {
		i = slices.IndexFunc(p.Steps, func(t plan.Step) bool { return t.Kind == plan.Trash && t.Path == s.To })
		if i < 0 {
			return nil, fmt.Errorf("%s was not sealed", s.Path)
		}
	}
	dir := plan.TrashDir(Root, p.At)
	entries, err := j.Disk.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		t, ok := plan.ParseTrash(path.Join(dir, e.Name()))
		if !ok || t.TxID != p.ID || t.N != i {
			continue
		}
		b, _, err := j.read(t.Path)
		if err != nil {
			return nil, err
		}
		// It may have grown since, and been named anew.
		if n := p.Steps[i].Before.Size; int64(len(b)) >= n && plan.Hash(b[:n]) == p.Steps[i].Before.Hash {
			return b[:n], nil
		}
	}
	return nil, fmt.Errorf("%s: not in the trash", s.Path)
}

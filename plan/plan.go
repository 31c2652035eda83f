// Package plan holds a set of changes to be made as one, as data, and the
// receipt it becomes.
//
// A feature reads the memory and returns a [Plan]; the journal carries it out
// or finishes it after a crash. Printing the plan is the dry run, and the
// finished plan, retired, is the receipt. Nothing in this package touches a
// file.
package plan

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"
)

// Format is the version of the plan and receipt encoding.
const Format = 1

// Kind says what a step does to its path.
type Kind string

// The kinds of steps.
const (
	// Create writes a file that must not exist yet.
	Create Kind = "create"
	// Replace exchanges a whole file; a changed target is a conflict.
	Replace Kind = "replace"
	// Append adds a block at a place; a changed target is planned again.
	Append Kind = "append"
	// Edit is a named change in place; a changed target is planned again.
	Edit Kind = "edit"
	// Move renames a file without overwriting anything.
	Move Kind = "move"
	// Trash moves a file to the trash under the name of its hash.
	Trash Kind = "trash"
	// Seal sets a working buffer aside and puts a fresh one in its place.
	Seal Kind = "seal"
	// Mkdir makes a directory.
	Mkdir Kind = "mkdir"
)

// Absent is the hash of a file that does not exist.
const Absent = "absent"

// Outcomes of a plan or a step.
const (
	Applied  = "applied"
	Conflict = "conflict"
)

// ID names one file object: its device and inode number.
type ID struct {
	Dev uint64 `json:"dev"`
	Ino uint64 `json:"ino"`
}

// State is what a file was when somebody looked at it.
type State struct {
	Hash    string    `json:"sha256"`         // lower-case hex, or Absent
	Size    int64     `json:"size"`           // bytes
	ModTime time.Time `json:"mtime,omitzero"` // as the file system had it
	File    ID        `json:"file,omitzero"`  // which object it was
}

// Exists reports whether there was a file.
func (s State) Exists() bool { return s.Hash != Absent && s.Hash != "" }

// Stage is a staged file: new content beside its target, not yet in place.
type Stage struct {
	Name string `json:"name"`
	File ID     `json:"file"`
}

// Step is one change to one path. Paths are relative to the workspace, with
// slashes.
type Step struct {
	Kind   Kind   `json:"kind"`
	Path   string `json:"path"`
	To     string `json:"to,omitempty"`     // Move, Trash: destination; Seal: where the sealed text waits
	Origin string `json:"origin,omitempty"` // Trash: the file whose content this is, where that is not Path
	Before State  `json:"before,omitzero"`
	After  State  `json:"after,omitzero"`

	Place string `json:"place,omitempty"` // Append, Edit: where, by name
	Text  Bytes  `json:"text,omitempty"`  // Append: the block; Edit: its argument
	Seed  Bytes  `json:"seed,omitempty"`  // Append, Edit: content to start from when the target is absent
	Stamp string `json:"stamp,omitempty"` // Append, Edit: time the place may need
	Tail  Bytes  `json:"tail,omitempty"`  // Edit: what a writer added to the target meanwhile
	Added Bytes  `json:"added,omitempty"` // Append: exactly the bytes that went in, separators included

	Stage   Stage  `json:"stage,omitzero"`
	Back    ID     `json:"back,omitzero"`    // written before a swap back: what came out of the exchange
	Keep    string `json:"keep,omitempty"`   // name of the backup where an exchange is impossible
	Backup  string `json:"backup,omitempty"` // where the old content is kept
	Done    bool   `json:"done,omitempty"`   // durable before this plan was written
	Outcome string `json:"outcome,omitempty"`
	Reason  string `json:"reason,omitempty"`

	// Content is the whole new file for Create, Replace, Seal; staged, never
	// stored in the plan.
	Content []byte `json:"-"`
}

// Plan is a set of changes to be made as one.
type Plan struct {
	Format  int       `json:"format"`
	ID      string    `json:"id"`
	Command string    `json:"command"`
	At      time.Time `json:"at"`
	Host    string    `json:"host,omitempty"`
	Phase   string    `json:"phase,omitempty"` // PhaseSeal: a continuation follows
	Sign    string    `json:"sign,omitempty"`  // visible sentinel that stands while the plan is open
	Steps   []Step    `json:"steps"`
	Facts   Facts     `json:"facts,omitempty"`
	Outcome string    `json:"outcome"`
	Notices []string  `json:"notices,omitempty"`
}

// Facts are the numbers and names a command reports about its run.
type Facts map[string]any

// PhaseSeal marks the first of a rotation's two plans.
const PhaseSeal = "seal"

// Empty reports whether the plan changes nothing.
func (p Plan) Empty() bool { return len(p.Steps) == 0 }

// Paths lists the workspace paths that a carried-out plan touched, without
// those under the engine's own directory.
func (p Plan) Paths() []string {
	seen := map[string]bool{}
	var out []string
	add := func(s string) {
		if s != "" && s != ".mem" && !strings.HasPrefix(s, ".mem/") && !seen[s] {
			seen[s] = true
			out = append(out, s)
		}
	}
	for _, s := range p.Steps {
		if s.Kind == Mkdir || s.Kind == Trash && s.Origin != "" {
			continue
		}
		add(s.Path)
		if s.Kind == Move || s.Outcome == Conflict {
			add(s.To)
		}
	}
	return out
}

// Hash returns the lower-case hex SHA-256 of b.
func Hash(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

// StateOf is the state of content that a feature has read. A nil slice means
// that the file was absent.
func StateOf(b []byte) State {
	if b == nil {
		return State{Hash: Absent}
	}
	return State{Hash: Hash(b), Size: int64(len(b))}
}

// stampForm is a UTC time in file names: it sorts, and has no character that a
// file system or a shell minds.
const stampForm = "20060102T150405.000000Z"

// Stamp is an instant as it stands in ids and file names.
func Stamp(t time.Time) string { return t.UTC().Format(stampForm) }

// NewID returns a transaction id: UTC time to the microsecond and the first
// twelve hex digits of a hash over what is planned and the given salt.
func NewID(p Plan, salt string) string {
	h := sha256.New()
	fmt.Fprintf(h, "%s\x00%s\x00%s\x00", p.Command, p.At.Format(time.RFC3339Nano), salt)
	for _, s := range p.Steps {
		fmt.Fprintf(h, "%s\x00%s\x00%s\x00%s\x00%s\x00", s.Kind, s.Path, s.To, s.Before.Hash, s.Place)
		h.Write(s.Text)
		h.Write(s.Content)
		h.Write([]byte{0})
	}
	return Stamp(p.At) + "-" + hex.EncodeToString(h.Sum(nil))[:12]
}

// IDTime is the time part of a transaction id.
func IDTime(id string) (time.Time, bool) {
	head, _, ok := strings.Cut(id, "-")
	if !ok {
		return time.Time{}, false
	}
	t, err := time.Parse(stampForm, head)
	return t, err == nil
}

// Trashed is a name in the trash: .mem/trash/YYYY/MM/HASH-TXID-N-SIZE.
type Trashed struct {
	Path string
	Hash string // of the content when it was put there
	TxID string
	N    int   // step number in that transaction
	Size int64 // bytes when it was put there
}

// TrashDir is the trash directory for a time, below the engine's directory.
func TrashDir(root string, at time.Time) string {
	return path.Join(root, "trash", at.UTC().Format("2006/01"))
}

// TrashName is the path in the trash for content of a given state.
func TrashName(root, txid string, at time.Time, n int, s State) string {
	return path.Join(TrashDir(root, at), fmt.Sprintf("%s-%s-%d-%d", s.Hash, txid, n, s.Size))
}

// TrashedBy tells which transaction put a path in the trash, or "".
func TrashedBy(name string) string {
	if !inTrash(name) {
		return ""
	}
	t, _ := ParseTrash(name)
	return t.TxID
}

// ParseTrash splits a path in the trash; ok is false for any other name.
func ParseTrash(name string) (t Trashed, ok bool) {
	t.Path = name
	parts := strings.Split(path.Base(name), "-")
	if len(parts) != 5 || len(parts[0]) != 64 {
		return t, false
	}
	t.Hash, t.TxID = parts[0], parts[1]+"-"+parts[2]
	var nerr, serr error
	t.N, nerr = strconv.Atoi(parts[3])
	t.Size, serr = strconv.ParseInt(parts[4], 10, 64)
	_, ok = IDTime(t.TxID)
	return t, ok && nerr == nil && serr == nil
}

// Bytes is text that is kept exactly. JSON carries it as a string where that
// loses nothing, and as {"base64": …} otherwise.
type Bytes []byte

// MarshalJSON implements json.Marshaler.
func (b Bytes) MarshalJSON() ([]byte, error) {
	if utf8.Valid(b) {
		return marshal(string(b))
	}
	return marshal(map[string][]byte{"base64": b})
}

// UnmarshalJSON implements json.Unmarshaler.
func (b *Bytes) UnmarshalJSON(data []byte) error {
	var s string
	if err := json.Unmarshal(data, &s); err == nil {
		*b = Bytes(s)
		return nil
	}
	var m map[string][]byte
	if err := json.Unmarshal(data, &m); err != nil {
		return err
	}
	*b = m["base64"]
	return nil
}

func marshal(v any) ([]byte, error) {
	var sb strings.Builder
	e := json.NewEncoder(&sb)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return nil, err
	}
	return []byte(strings.TrimSuffix(sb.String(), "\n")), nil
}

// Encode returns the plan as it is stored, one JSON object and a newline.
func (p Plan) Encode() ([]byte, error) {
	b, err := marshal(p)
	return append(b, '\n'), err
}

// Check refuses a plan that this build cannot have written: no steps, unknown
// kinds, hashes that are none, or paths that leave the workspace.
func (p Plan) Check() error {
	if _, ok := IDTime(p.ID); !ok || len(p.Steps) == 0 {
		return fmt.Errorf("plan %q has no id or no steps", p.ID)
	}
	for i, s := range p.Steps {
		switch s.Kind {
		case Create, Replace, Append, Edit, Move, Trash, Seal, Mkdir:
		default:
			return fmt.Errorf("step %d has the unknown kind %q", i, s.Kind)
		}
		for _, h := range []string{s.Before.Hash, s.After.Hash} {
			if h != "" && h != Absent && len(h) != sha256.Size*2 {
				return fmt.Errorf("step %d has the hash %q", i, h)
			}
		}
		if s.Stage.Name != "" && len(s.After.Hash) != sha256.Size*2 || s.Before.Size < 0 || s.After.Size < 0 {
			return fmt.Errorf("step %d has no proper after-state", i)
		}
		if err := s.checkPaths(p); err != nil {
			return fmt.Errorf("step %d: %w", i, err)
		}
	}
	if p.Sign != "" && p.Sign != p.Steps[0].Path+".lock" {
		return fmt.Errorf("the sign %q does not belong to it", p.Sign)
	}
	if p.Phase == PhaseSeal && p.Steps[0].Kind != Seal {
		return errors.New("it seals nothing")
	}
	return nil
}

// inLedger reports whether a path is that of a list which the engine keeps of
// what has happened, and appends to by plans.
func inLedger(name string) bool {
	return strings.HasPrefix(name, ".mem/ingest/ledger/") || strings.HasPrefix(name, ".mem/feedback/") || strings.HasPrefix(name, ".mem/session/")
}

// checkPaths: a plan can come with somebody's repository. It must stay off
// git's files, and off the engine's own but for the trash.
func (s Step) checkPaths(p Plan) error {
	for _, name := range []string{s.Path, s.To, s.Stage.Name, s.Origin} {
		if name == "" {
			continue
		}
		if !fs.ValidPath(name) || name == "." {
			return fmt.Errorf("no path in the workspace: %q", name)
		}
		for _, part := range strings.Split(name, "/") {
			if strings.EqualFold(part, ".git") {
				return fmt.Errorf("%q is git's", name)
			}
		}
	}
	if kept := s.Kind == Create && strings.HasPrefix(s.Path, ".mem/quarantine/") || (s.Kind == Append || s.Kind == Edit) && inLedger(s.Path); kept && !engines(s.To) && s.Origin == "" {
		if s.Stage.Name != "" && (path.Dir(s.Stage.Name) != path.Dir(s.Path) || !strings.HasPrefix(path.Base(s.Stage.Name), ".mem-"+p.ID+"-")) {
			return fmt.Errorf("%q is no stage of %q", s.Stage.Name, s.Path)
		}
		return nil
	}
	moves := s.Kind == Move || s.Kind == Trash
	temp := strings.HasPrefix(path.Base(s.Path), ".mem-") && (strings.HasPrefix(s.Path, ".mem/quarantine/") || inLedger(s.Path))
	mine := moves && (inTrash(s.Path) || temp || s.Kind == Trash && (strings.HasPrefix(s.Path, ".mem/quarantine/") || strings.HasPrefix(s.Path, ".mem/spool/")) || strings.HasPrefix(s.Path, ".mem/tx/") && strings.HasSuffix(s.Path, ".tmp"))
	switch {
	case s.Path == "":
		return errors.New("no path")
	case engines(s.Path) && !mine, engines(s.To) && !inTrash(s.To), s.Kind == Trash && !inTrash(s.To), s.Kind == Move && s.To == "", engines(s.Origin):
		return fmt.Errorf("%q to %q touches the engine's own files", s.Path, s.To)
	}
	sealed := s.Kind == Seal && s.Stage.Name == s.To
	if s.Stage.Name != "" && !sealed {
		if path.Dir(s.Stage.Name) != path.Dir(s.Path) || !strings.HasPrefix(path.Base(s.Stage.Name), ".mem-"+p.ID+"-") {
			return fmt.Errorf("%q is no stage of %q", s.Stage.Name, s.Path)
		}
	}
	if s.Kind == Seal && s.To != s.Path+".rotating" {
		return fmt.Errorf("%q is not where %q is sealed", s.To, s.Path)
	}
	return nil
}

func engines(name string) bool { return name == ".mem" || strings.HasPrefix(name, ".mem/") }

func inTrash(name string) bool { return strings.HasPrefix(name, ".mem/trash/") }

// Decode reads a stored plan. A format this build does not know is an error.
func Decode(b []byte) (Plan, error) {
	var p Plan
	if err := json.Unmarshal(b, &p); err != nil {
		return p, err
	}
	if p.Format != Format {
		return p, fmt.Errorf("plan format %d, this mem knows %d", p.Format, Format)
	}
	return p, nil
}

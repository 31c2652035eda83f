// Package inbox finds the folders that handoffs are left in, reads what is in
// them, and moves it on when it has been dealt with.
//
// [Find] finds inboxes, [Inbox.List] reads one, [Inbox.Archive] moves a handoff
// to processed/ or malformed/ beside it. What a handoff says is not looked at
// here.
package inbox

import (
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tieredmem/mem/durable"
)

// Folder is the name of an inbox, below a harness's hidden folder.
const Folder = "memory-handoffs"

// OptOut is the file that takes a directory, and all below it, out.
const OptOut = ".no-memory-handoffs"

// pruned are directories that are never searched.
var pruned = []string{"node_modules", "vendor", ".venv", ".git"}

// maxDirs bounds how many directories one search looks into.
const maxDirs = 200_000

// Root is a directory to search.
type Root struct {
	Dir     string // absolute
	Depth   int    // folders below it, the inbox among them
	Promote string
}

// Config says where inboxes are.
type Config struct {
	Workspace string   // absolute
	Declared  []string // absolute
	Roots     []Root
	// Tracked tells which names in a directory git tracks.
	Tracked func(dir string) (map[string]bool, error)
	// Open opens an inbox as a disk; nil: durable.Open.
	Open func(dir string) (durable.FS, error)
}

// Inbox is one folder for handoffs.
type Inbox struct {
	Path    string // absolute
	Promote string
	// Problem says why it is not read: missing, symlink, opted-out,
	// not-a-directory, foreign-owner, unreadable; "" where it is. Detail is for
	// people.
	Problem, Detail string
	Declared        bool

	disk    durable.FS
	tracked func(string) (map[string]bool, error)
	open    func(string) (durable.FS, error)
	dirty   []string // directories to be made durable
	settled bool     // what was moved before this run is durable

	processed map[string][]string // what is in processed/, by the hash in its name
}

// Find lists the inboxes, each once, sorted by path. Trouble is what could not
// be searched.
func Find(c Config) (boxes []Inbox, trouble []string) {
	f := finder{c: c, seen: map[string]bool{}}
	f.harnesses(c.Workspace, "all", 2, false)
	for _, dir := range c.Declared {
		f.add(Inbox{Path: dir, Promote: "all", Declared: true}, false)
	}
	// Where sources overlap the nearest root says what may be promoted, and of
	// two that say otherwise about the same root the narrower.
	roots := slices.Clone(c.Roots)
	for i := range roots {
		roots[i].Dir = filepath.Clean(roots[i].Dir)
		if real, err := filepath.EvalSymlinks(roots[i].Dir); err == nil {
			roots[i].Dir = real
		}
	}
	slices.SortStableFunc(roots, func(a, b Root) int {
		return cmp.Or(len(b.Dir)-len(a.Dir), narrow(a.Promote)-narrow(b.Promote))
	})
	for _, r := range roots {
		f.search(r)
	}
	slices.SortFunc(f.out, func(a, b Inbox) int { return strings.Compare(a.Path, b.Path) })
	return f.out, f.trouble
}

// narrow ranks how much may be promoted.
func narrow(promote string) int { return slices.Index([]string{"none", "cards", "all"}, promote) }

type finder struct {
	c       Config
	seen    map[string]bool
	out     []Inbox
	trouble []string
	dirs    int
}

func (f *finder) note(format string, args ...any) {
	f.trouble = append(f.trouble, fmt.Sprintf(format, args...))
}

func (f *finder) search(r Root) {
	info, err := os.Stat(r.Dir)
	if err != nil || !info.IsDir() {
		f.note("discover: %s cannot be searched", r.Dir)
		return
	}
	f.walk(r.Dir, r, 0, false)
}

// walk looks for inboxes below dir, which is so many folders below the root.
func (f *finder) walk(dir string, r Root, level int, out bool) {
	if f.dirs++; f.dirs > maxDirs {
		if f.dirs == maxDirs+1 {
			f.note("discover: %s: more than %d directories; the rest is not searched", r.Dir, maxDirs)
		}
		return
	}
	out = out || exists(filepath.Join(dir, OptOut))
	if level+2 <= r.Depth {
		f.harnesses(dir, r.Promote, r.Depth-level, out)
	}
	if level+3 > r.Depth {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.note("discover: %s: %v", dir, reason(err))
		return
	}
	for _, e := range entries {
		if e.IsDir() && !strings.HasPrefix(e.Name(), ".") && !slices.Contains(pruned, e.Name()) {
			f.walk(filepath.Join(dir, e.Name()), r, level+1, out)
		}
	}
}

// harnesses adds the inboxes of the hidden folders of one directory.
func (f *finder) harnesses(dir, promote string, depth int, out bool) {
	if depth < 2 {
		return
	}
	entries, err := os.ReadDir(dir)
	if err != nil {
		f.note("%s: %v", dir, reason(err))
		return
	}
	for _, e := range entries {
		if e.Type()&fs.ModeSymlink != 0 && strings.HasPrefix(e.Name(), ".") && exists(filepath.Join(dir, e.Name(), Folder)) {
			f.add(Inbox{Path: filepath.Join(dir, e.Name(), Folder), Promote: promote, Problem: "symlink", Detail: "the folder above the inbox is a symlink, and not entered"}, out)
			continue
		}
		if !e.IsDir() || !strings.HasPrefix(e.Name(), ".") || slices.Contains(pruned, e.Name()) || e.Name() == ".mem" {
			continue
		}
		harness := filepath.Join(dir, e.Name())
		full := filepath.Join(harness, Folder)
		if exists(full) {
			f.add(Inbox{Path: full, Promote: promote}, out || exists(filepath.Join(harness, OptOut)) || exists(filepath.Join(dir, OptOut)))
		}
	}
}

func exists(name string) bool {
	_, err := os.Lstat(name)
	return err == nil
}

func reason(err error) error {
	var p *fs.PathError
	if errors.As(err, &p) {
		return p.Err
	}
	return err
}

// add notes an inbox once, and looks whether it can be read.
func (f *finder) add(b Inbox, out bool) {
	key := b.Path
	link, lerr := os.Lstat(b.Path)
	if lerr == nil && link.Mode()&fs.ModeSymlink == 0 { // a symlink must not hide what it leads to
		if real, err := filepath.EvalSymlinks(b.Path); err == nil && b.Problem == "" {
			key = real
		}
	}
	if f.seen[key] {
		return
	}
	f.seen[key] = true
	b.tracked, b.open = f.c.Tracked, f.c.Open
	info, err := os.Lstat(b.Path)
	switch {
	case b.Problem != "":
	case errors.Is(err, fs.ErrNotExist):
		b.Problem, b.Detail = "missing", "the inbox is not there"
	case err != nil:
		b.Problem, b.Detail = "unreadable", reason(err).Error()
	case info.Mode()&fs.ModeSymlink != 0:
		b.Problem, b.Detail = "symlink", "the inbox is a symlink, and not entered"
	case !info.IsDir():
		b.Problem, b.Detail = "not-a-directory", "the inbox is no directory"
	case !ownedByUs(info):
		b.Problem, b.Detail = "foreign-owner", "the inbox belongs to another user"
	case out || exists(filepath.Join(b.Path, OptOut)):
		b.Problem, b.Detail = "opted-out", OptOut+" stands in it or above it"
	}
	f.out = append(f.out, b)
}

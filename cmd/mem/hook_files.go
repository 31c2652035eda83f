package main

import (
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"

	"github.com/aymanbagabas/go-udiff"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/hooks"
	"github.com/tieredmem/mem/tiers"
)

// edit is one file to be changed.
type edit struct {
	path       string
	before     []byte // nil: not there
	after      []byte // nil: to be removed
	ownsWholly bool   // ours: a directory made for it goes with it
}

// extractorEdit puts the extractor into the user's own configuration: there it
// counts without trust in the workspace's.
func (a *app) extractorEdit(command string) (edit, error) {
	argv, err := shellWords(command)
	if err != nil || len(argv) == 0 {
		return edit{}, &usageError{fmt.Sprintf("--extractor %q is no command", command), "for example --extractor 'claude -p --model haiku'"}
	}
	name, err := a.userConfigPath()
	if err != nil {
		return edit{}, err
	}
	e, err := a.readFile(filepath.Dir(name), name)
	if err != nil {
		return e, fmt.Errorf("%s: %w", name, err)
	}
	for i, w := range argv {
		argv[i] = strconv.Quote(w)
	}
	line := "extractor: [" + strings.Join(argv, ", ") + "]\n"
	rows := strings.SplitAfter(string(e.before), "\n")
	at := slices.IndexFunc(rows, func(l string) bool { return strings.HasPrefix(l, "extractor:") })
	switch {
	case at >= 0 && !strings.Contains(rows[at], "]"):
		return e, &hinted{fmt.Errorf("%s has an extractor over several lines", name), "put this there: " + strings.TrimSpace(line)}
	case at >= 0:
		rows[at] = line
	default:
		if n := len(e.before); n > 0 && e.before[n-1] != '\n' {
			rows = append(rows, "\n")
		}
		rows = append(rows, line)
	}
	e.after = []byte(strings.Join(rows, ""))
	if _, err := tiers.ParseConfig(name, e.after); err != nil {
		return e, err
	}
	return e, nil
}

// shellWords splits a command at blanks; quotes keep blanks together.
func shellWords(s string) ([]string, error) {
	var out []string
	var word strings.Builder
	quote, open := rune(0), false
	for _, r := range s {
		switch {
		case quote != 0:
			if r == quote {
				quote = 0
			} else {
				word.WriteRune(r)
			}
		case r == '\'' || r == '"':
			quote, open = r, true
		case r == ' ' || r == '\t':
			if open || word.Len() > 0 {
				out = append(out, word.String())
			}
			word.Reset()
			open = false
		default:
			word.WriteRune(r)
		}
	}
	if quote != 0 {
		return nil, errors.New("a quote is not closed")
	}
	if open || word.Len() > 0 {
		out = append(out, word.String())
	}
	return out, nil
}

// maxSettings bounds a host's file, in bytes.
const maxSettings = 8 << 20

// readFile reads a file that is to be changed. A symlink is not followed: its
// owner has put the text elsewhere, for others to change.
func (a *app) readFile(root, name string) (edit, error) {
	e := edit{path: name}
	for dir := filepath.Dir(name); len(dir) > len(root); dir = filepath.Dir(dir) {
		if err := plainDir(dir); err != nil {
			return e, err
		}
	}
	d, err := a.openDisk(filepath.Dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return e, nil
	}
	if err != nil {
		return e, err
	}
	defer d.Close()
	base := filepath.Base(name)
	info, err := d.Lstat(base)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e, nil
	case err != nil:
		return e, err
	case info.Mode&fs.ModeSymlink != 0:
		return e, errors.New("is a symlink")
	case !info.Mode.IsRegular():
		return e, errors.New("is no regular file")
	case info.Size > maxSettings:
		return e, fmt.Errorf("has %d bytes", info.Size)
	case info.Mode.Perm()&0o200 == 0:
		return e, errors.New("is read-only")
	}
	e.before, _, err = durable.ReadFile(d, base, maxSettings)
	return e, err
}

// plainDir refuses a directory on the way that is a symlink: what looks
// like a project's own would be somebody else's.
func plainDir(dir string) error {
	info, err := os.Lstat(dir)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err == nil && info.Mode()&fs.ModeSymlink != 0 {
		return fmt.Errorf("%s is a symlink", dir)
	}
	return err
}

// putFile writes a file whole or not at all, and makes the directories that it
// needs.
func (a *app) putFile(name string, text []byte) error {
	if err := a.makeDirs(filepath.Dir(name), 0o777); err != nil {
		return err
	}
	return a.writeWhole(name, text)
}

func (a *app) showEdit(e edit) {
	from, to := e.path, e.path
	if e.before == nil {
		from = "(absent)"
	}
	if e.after == nil {
		to = "(absent)"
	}
	for l := range strings.Lines(udiff.Unified(from, to, string(e.before), string(e.after))) {
		a.say("%s", strings.TrimRight(l, "\r\n"))
	}
}

// restore sets what a file is without us: what it was, if nobody has changed
// it since; otherwise what it is, without our part.
func (e *edit) restore(host hooks.Host, record health.HookInstall, untouched bool) error {
	base := filepath.Base(e.path)
	if untouched {
		if !record.Absent {
			e.after = append([]byte{}, record.Before...)
		}
		e.ownsWholly = record.Absent
		return nil
	}
	switch base {
	case "SKILL.md":
		e.ownsWholly = true
		e.after = e.before
		for _, ours := range append(slices.Collect(maps.Values(hooks.SessionSkills())), hooks.Skill()) {
			if string(e.before) == ours {
				e.after = nil
			}
		}
	case "HOOK.md", "handler.ts":
		// It names the program, which may have moved: ours if the rest is.
		e.ownsWholly = true
		if e.after = e.before; sameHandler(base, string(e.before)) {
			e.after = nil
		}
	case "CLAUDE.md", "AGENTS.md":
		e.after = []byte(hooks.RemoveRules(string(e.before)))
	default:
		var err error
		e.after, err = hooks.Remove(e.before, host)
		return err
	}
	return nil
}

func sameHandler(name, text string) bool {
	files, err := hooks.Files("", nil)
	if err != nil {
		return false
	}
	plain := func(s string) string {
		var out []string
		for l := range strings.Lines(s) {
			if !strings.HasPrefix(l, "const COMMAND") {
				out = append(out, l)
			}
		}
		return strings.Join(out, "")
	}
	return plain(text) == plain(files[name])
}

// put writes what the file is without us, or takes it away with the empty
// directories that it leaves below root.
func (e edit) put(a *app, root string) error {
	if e.after != nil {
		return a.putFile(e.path, e.after)
	}
	d, err := a.openDisk(filepath.Dir(e.path))
	if err != nil {
		return err
	}
	err = errors.Join(d.Remove(filepath.Base(e.path)), d.SyncDir("."), d.Close())
	for dir := filepath.Dir(e.path); err == nil && dir != root && strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
		up, oerr := a.openDisk(filepath.Dir(dir))
		if oerr != nil {
			break
		}
		rerr := up.Remove(filepath.Base(dir)) // only if it is empty
		up.Close()
		if rerr != nil {
			break
		}
	}
	return err
}

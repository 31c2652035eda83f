package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/aymanbagabas/go-udiff"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/hooks"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

type hookCmd struct {
	Install hookInstallCmd `cmd:"" help:"Put mem's hooks into an agent host's own settings."`
	Remove  hookRemoveCmd  `cmd:"" help:"Take exactly that out again."`
	Status  hookStatusCmd  `cmd:"" help:"Say where hooks are installed, and when they last ran."`
	Run     hookRunCmd     `cmd:"" help:"What the hosts run: reads their JSON on stdin."`
	Rules   hookRulesCmd   `cmd:"" help:"Print the standing instructions for CLAUDE.md or AGENTS.md."`
	Skill   hookSkillCmd   `cmd:"" help:"Print the skill that teaches an agent to use mem."`
}

func (*hookCmd) Help() string {
	return "Lets Claude Code, Codex and OpenClaw run mem by themselves: load and recover when a\nsession begins, keep the buffer before compaction, rotate when it ends.\n\n  mem hook install claude\n  mem hook install codex --user --with-rules\n  mem hook status\n  mem hook remove claude"
}

// hookTarget are the flags that say where hooks go.
type hookTarget struct {
	Host    string `arg:"" enum:"claude,codex,openclaw" help:"claude, codex or openclaw."`
	Project bool   `xor:"scope" help:"Into the settings of the workspace (the default)."`
	User    bool   `xor:"scope" help:"Into the user's own settings, for every project."`
}

// root is the directory that the host's files are below.
func (t hookTarget) root(a *app) (string, error) {
	if !t.User {
		return a.dir, nil
	}
	home := a.env.getenv("HOME")
	if home == "" {
		return "", &hinted{errors.New("the home directory is not known"), "set HOME, or leave --user out"}
	}
	return home, nil
}

type hookInstallCmd struct {
	hookTarget
	WithRules bool   `help:"Also write the standing instructions into CLAUDE.md or AGENTS.md as a marked block, and the skill."`
	Autoload  bool   `help:"In a workspace of the sessions layout too, bring the memory into each session."`
	Extractor string `placeholder:"COMMAND" help:"In the sessions layout: the command that chooses what an exchange brought, written to your own configuration. For example 'claude -p --model haiku'."`
}

func (*hookInstallCmd) Help() string {
	return "Adds mem's entries to the host's own settings file and disturbs nothing else there:\norder, unknown keys and white space stay. Installed twice is installed once. The text\nbefore is kept (mem trash), and the change is shown. With --workspace, the hooks use\nthat workspace wherever the agent works; without it, the one that the agent is in."
}

// edit is one file to be changed.
type edit struct {
	path       string
	before     []byte // nil: not there
	after      []byte // nil: to be removed
	ownsWholly bool   // ours: a directory made for it goes with it
}

func (c *hookInstallCmd) Run(a *app) error {
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	host, _ := hooks.Find(c.Host)
	root, err := c.root(a)
	if err != nil {
		return err
	}
	program, args, err := a.program()
	if err != nil {
		return err
	}
	edits, err := c.edits(a, host, root, program, args)
	if err != nil {
		return err
	}
	var changed []string
	for _, e := range edits {
		if e.before != nil && bytes.Equal(e.before, e.after) {
			continue
		}
		a.showEdit(e)
		changed = append(changed, e.path)
		if a.DryRun {
			continue
		}
		if e.before != nil {
			if err := ws.Keep("hook install", bytes.Clone(e.before)); err != nil {
				return err
			}
		}
		if err := putFile(e.path, e.after); err != nil {
			return err
		}
	}
	if !a.DryRun {
		if err := a.noteInstall(host, edits, root); err != nil {
			return err
		}
	}
	outcome := "installed"
	if len(changed) == 0 {
		outcome = "unchanged"
		a.say("installed already: nothing to change")
	}
	for _, line := range nextSteps(host, root, c.User) {
		a.say("%s", line)
	}
	a.object(map[string]any{"outcome": outcome, "host": c.Host, "paths": attentionList(changed), "next": attentionList(nextSteps(host, root, c.User))})
	return nil
}

// nextSteps are what only a person can do.
func nextSteps(host hooks.Host, root string, user bool) []string {
	switch host.Name {
	case "codex":
		return []string{"Codex asks once whether to trust these hooks: start codex in this project and answer /hooks"}
	case "openclaw":
		return []string{"OpenClaw leaves workspace hooks off until they are enabled: openclaw hooks enable mem, then restart the gateway"}
	}
	return []string{"it counts from the next session on; mem hook status says when it ran"}
}

// program is the program's path and the arguments that every hook has: as it
// was called, so that an upgrade in place changes nothing.
func (a *app) program() (string, []string, error) {
	name := a.env.program
	if !strings.ContainsRune(name, filepath.Separator) {
		found, err := exec.LookPath(name)
		if err != nil {
			return "", nil, err
		}
		name = found
	}
	name, err := filepath.Abs(name)
	if err != nil {
		return "", nil, err
	}
	if a.Workspace == "" {
		return name, nil, nil
	}
	return name, []string{"--workspace", a.dir}, nil
}

// edits are the changes that an installation makes.
func (c *hookInstallCmd) edits(a *app, host hooks.Host, root, program string, args []string) ([]edit, error) {
	var out []edit
	if host.Settings != "" {
		command := func(event string) string { return hooks.Command(program, args, event, host.Name, c.Autoload) }
		e, err := readFile(root, filepath.Join(root, filepath.FromSlash(host.Settings)))
		if err == nil {
			err = a.notOthers(e.before, host)
		}
		if err == nil {
			e.after, err = hooks.Add(e.before, host, command)
		}
		var other *conflicted
		if errors.As(err, &other) {
			return nil, err
		}
		if err != nil {
			return nil, &hinted{fmt.Errorf("%s: %w", e.path, err), "nothing was changed; put this in by hand:\n" + hooks.Snippet(host, command)}
		}
		out = append(out, e)
	} else {
		dir := filepath.Join(root, hooks.HookDir)
		if c.User {
			dir = filepath.Join(root, ".openclaw", hooks.HookDir)
		}
		files, err := hooks.Files(program, args)
		if err != nil {
			return nil, err
		}
		for _, name := range []string{"HOOK.md", "handler.ts"} {
			e, err := readFile(root, filepath.Join(dir, name))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.path, err)
			}
			e.after, e.ownsWholly = []byte(files[name]), true
			if e.before != nil && !bytes.Contains(e.before, []byte("mem hook install openclaw")) {
				return nil, &conflicted{hinted{fmt.Errorf("%s was not written by mem", e.path), "move it away, or keep it"}}
			}
			out = append(out, e)
		}
	}
	if a.ws.Rules.Name == "sessions" && host.Name == "claude" {
		for _, name := range slices.Sorted(maps.Keys(hooks.SessionSkills())) {
			e, err := readFile(root, filepath.Join(root, filepath.FromSlash(name)))
			if err != nil {
				return nil, fmt.Errorf("%s: %w", e.path, err)
			}
			if e.before != nil && !bytes.Contains(e.before, []byte("`mem session ")) {
				return nil, &conflicted{hinted{fmt.Errorf("%s was not written by mem", e.path), "move it away"}}
			}
			e.after, e.ownsWholly = []byte(hooks.SessionSkills()[name]), true
			out = append(out, e)
		}
	}
	if c.Extractor != "" {
		e, err := a.extractorEdit(c.Extractor)
		if err != nil {
			return nil, err
		}
		out = append(out, e)
	}
	if c.WithRules {
		more, err := c.rules(host, root)
		if err != nil {
			return nil, err
		}
		out = append(out, more...)
	}
	return out, nil
}

// notOthers makes sure that hooks which are there are not those of another
// workspace.
func (a *app) notOthers(text []byte, host hooks.Host) error {
	_, command, err := hooks.Installed(text, host)
	if err != nil || command == "" {
		return nil //nolint:nilerr // what is wrong with it is said where it is changed
	}
	if dir := hooks.WorkspaceOf(command); dir != "" && dir != a.dir {
		return &conflicted{hinted{fmt.Errorf("the hooks there are those of the workspace %s", dir), "mem --workspace " + dir + " hook remove " + host.Name + " takes them out"}}
	}
	return nil
}

func (c *hookInstallCmd) rules(host hooks.Host, root string) ([]edit, error) {
	name, skill := host.Rules, host.Skill
	if c.User {
		name = host.UserFile
		if host.Name == "openclaw" {
			skill = ".openclaw/" + skill
		}
	}
	e, err := readFile(root, filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.path, err)
	}
	e.after = []byte(hooks.AddRules(string(e.before)))
	s, err := readFile(root, filepath.Join(root, filepath.FromSlash(skill)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	if s.before != nil && !bytes.Contains(s.before, []byte("\nname: mem\n")) {
		return nil, &conflicted{hinted{fmt.Errorf("%s was not written by mem", s.path), "move it away, or leave --with-rules out"}}
	}
	s.after, s.ownsWholly = []byte(hooks.Skill()), true
	return []edit{e, s}, nil
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
	e, err := readFile(filepath.Dir(name), name)
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
func readFile(root, name string) (edit, error) {
	e := edit{path: name}
	for dir := filepath.Dir(name); len(dir) > len(root); dir = filepath.Dir(dir) {
		if err := plainDir(dir); err != nil {
			return e, err
		}
	}
	info, err := os.Lstat(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return e, nil
	case err != nil:
		return e, err
	case info.Mode()&fs.ModeSymlink != 0:
		return e, errors.New("is a symlink")
	case !info.Mode().IsRegular():
		return e, errors.New("is no regular file")
	case info.Size() > maxSettings:
		return e, fmt.Errorf("has %d bytes", info.Size())
	case info.Mode().Perm()&0o200 == 0:
		return e, errors.New("is read-only")
	}
	e.before, err = os.ReadFile(name)
	if err == nil && e.before == nil {
		e.before = []byte{}
	}
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
func putFile(name string, text []byte) error {
	top := filepath.Dir(name)
	for {
		if _, err := os.Lstat(top); err == nil {
			break
		}
		top = filepath.Dir(top)
	}
	d, err := durable.Open(top)
	if err != nil {
		return err
	}
	defer d.Close()
	rel, err := filepath.Rel(top, filepath.Dir(name))
	if err != nil {
		return err
	}
	if err := durable.MkdirAll(d, filepath.ToSlash(rel), 0o777); err != nil {
		return err
	}
	return writeWhole(name, text)
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

// noteInstall records what was put where, for remove and for the dead-man's
// watch.
func (a *app) noteInstall(host hooks.Host, edits []edit, root string) error {
	installs, err := health.ReadHookInstalls(a.ws.View())
	if err != nil {
		installs = map[string]health.HookInstall{} // damaged: written anew
	}
	for i, e := range edits {
		if filepath.Base(e.path) == "config.yaml" {
			continue // the user's own from now on
		}
		old, known := installs[e.path]
		if known && bytes.Equal(e.before, e.after) && old.After == plan.Hash(e.after) {
			continue // as it was left
		}
		n := health.HookInstall{Host: host.Name, Path: e.path, At: a.at, After: plan.Hash(e.after)}
		switch {
		case known && e.before != nil && old.After == plan.Hash(e.before):
			n.Known, n.Absent, n.Before, n.At = old.Known, old.Absent, old.Before, old.At // what was before the first time
		case e.before == nil:
			n.Known, n.Absent = true, true
		case !holdsOurs(e, host):
			n.Known, n.Before = true, e.before
		}
		if i == 0 {
			for _, h := range host.Hooks {
				n.Events = append(n.Events, h.Event)
			}
			if host.Settings == "" {
				n.Events = []string{hooks.SessionStart}
			}
		}
		installs[e.path] = n
	}
	return a.putInstalls(installs)
}

// holdsOurs reports whether a file had something of ours before.
func holdsOurs(e edit, host hooks.Host) bool {
	events, _, err := hooks.Installed(e.before, host)
	return err == nil && len(events) > 0 || hooks.RemoveRules(string(e.before)) != string(e.before) || e.ownsWholly
}

func (a *app) putInstalls(installs map[string]health.HookInstall) error {
	b, err := json.MarshalIndent(installs, "", " ")
	if err != nil {
		return err
	}
	return a.ws.Record("hook", strings.TrimPrefix(health.HookInstalls, ".mem/"), append(b, '\n'))
}

type hookRemoveCmd struct {
	hookTarget
}

func (*hookRemoveCmd) Help() string {
	return "Takes mem's entries out of the host's settings, and the standing instructions and the\nskill where they were written. Where nobody has changed a file since, it gets back\nbyte for byte what it was before."
}

func (c *hookRemoveCmd) Run(a *app) error {
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	host, _ := hooks.Find(c.Host)
	root, err := c.root(a)
	if err != nil {
		return err
	}
	installs, err := health.ReadHookInstalls(ws.View())
	if err != nil {
		installs = map[string]health.HookInstall{}
	}
	var removed, kept []string
	for _, name := range c.candidates(host, root) {
		e, err := readFile(root, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if e.before == nil {
			delete(installs, name)
			continue
		}
		if filepath.Base(name) == filepath.Base(host.Settings) {
			if err := a.notOthers(e.before, host); err != nil {
				return err
			}
		}
		if a.sharedRules(name, host, root, c.User) {
			continue
		}
		record, known := installs[name]
		if err := e.restore(host, record, known && record.Known && record.After == plan.Hash(e.before)); err != nil {
			return &hinted{fmt.Errorf("%s: %w", name, err), "take the lines with \"hook run\" out by hand"}
		}
		if e.after != nil && bytes.Equal(e.before, e.after) {
			if e.ownsWholly {
				kept = append(kept, name)
			} else if !a.DryRun {
				delete(installs, name) // nothing of ours is there any more
			}
			continue
		}
		a.showEdit(e)
		removed = append(removed, name)
		if a.DryRun {
			continue
		}
		if err := ws.Keep("hook remove", bytes.Clone(e.before)); err != nil {
			return err
		}
		if err := e.put(root); err != nil {
			return err
		}
		delete(installs, name)
	}
	if !a.DryRun {
		if err := a.putInstalls(installs); err != nil {
			return err
		}
	}
	for _, k := range kept {
		a.warn("%s was edited since it was written: it stays", k)
	}
	outcome := "removed"
	if len(removed) == 0 {
		outcome = "nothing"
		a.say("nothing of mem's is there")
	}
	a.object(map[string]any{"outcome": outcome, "host": c.Host, "paths": attentionList(removed), "kept": attentionList(kept)})
	return nil
}

// sharedRules reports whether a file of standing instructions is another
// installed host's, too.
func (a *app) sharedRules(name string, host hooks.Host, root string, user bool) bool {
	scope := "project"
	if user {
		scope = "user"
	}
	for _, n := range hooks.Names() {
		h, _ := hooks.Find(n)
		file := h.Rules
		if user {
			file = h.UserFile
		}
		if n != host.Name && filepath.Join(root, filepath.FromSlash(file)) == name && len(a.hookState(h, scope, nil).Installed) > 0 {
			return true
		}
	}
	return false
}

// candidates are the files that an installation may have written.
func (c *hookRemoveCmd) candidates(host hooks.Host, root string) []string {
	skill, rules, dir := host.Skill, host.Rules, hooks.HookDir
	if c.User {
		rules = host.UserFile
		if host.Name == "openclaw" {
			skill, dir = ".openclaw/"+skill, ".openclaw/"+dir
		}
	}
	names := append([]string{rules, skill}, slices.Sorted(maps.Keys(hooks.SessionSkills()))...)
	if host.Settings != "" {
		names = append(names, host.Settings)
	} else {
		names = append(names, dir+"/HOOK.md", dir+"/handler.ts")
	}
	var out []string
	for _, n := range names {
		out = append(out, filepath.Join(root, filepath.FromSlash(n)))
	}
	return out
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
func (e edit) put(root string) error {
	if e.after != nil {
		return putFile(e.path, e.after)
	}
	d, err := durable.Open(filepath.Dir(e.path))
	if err != nil {
		return err
	}
	err = errors.Join(d.Remove(filepath.Base(e.path)), d.SyncDir("."), d.Close())
	for dir := filepath.Dir(e.path); err == nil && dir != root && strings.HasPrefix(dir, root); dir = filepath.Dir(dir) {
		up, oerr := durable.Open(filepath.Dir(dir))
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

type hookRulesCmd struct{}

func (*hookRulesCmd) Run(a *app) error {
	a.raw(hooks.Rules())
	a.object(map[string]any{"outcome": "ok", "text": hooks.Rules()})
	return nil
}

type hookSkillCmd struct{}

func (*hookSkillCmd) Run(a *app) error {
	a.raw(hooks.Skill())
	a.object(map[string]any{"outcome": "ok", "text": hooks.Skill()})
	return nil
}

type hookStatusCmd struct{}

// hookView is one host in one scope.
type hookView struct {
	Host      string           `json:"host"`
	Scope     string           `json:"scope"`
	Path      string           `json:"path"`
	Installed []string         `json:"installed"` // events
	Command   string           `json:"command"`
	Trusted   string           `json:"trusted"` // yes, no, unknown, or "" where the host does not ask
	Problem   string           `json:"problem"`
	Runs      []health.HookRun `json:"runs"` // the last of each event
	Failures  int              `json:"failures"`
}

func (*hookStatusCmd) Run(a *app) error {
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	m := ws.View()
	failed, _ := health.ReadHookFailures(m)
	list := []hookView{}
	for _, name := range hooks.Names() {
		host, _ := hooks.Find(name)
		for _, scope := range []string{"project", "user"} {
			v := a.hookState(host, scope, failed)
			list = append(list, v)
			switch {
			case v.Problem != "":
				a.say("%-9s %-8s cannot be looked at: %s: %s", name, scope, v.Path, v.Problem)
				continue
			case len(v.Installed) == 0:
				a.say("%-9s %-8s not installed", name, scope)
				continue
			}
			a.say("%-9s %-8s installed in %s", name, scope, v.Path)
			if v.Trusted != "" {
				a.say("%-18s trusted by the host: %s", "", v.Trusted)
			}
			for _, e := range v.Installed {
				state := "never ran"
				for _, r := range v.Runs {
					if r.Event == e {
						state = fmt.Sprintf("ran %s (%d ms)", r.At.In(ws.Rules.Location).Format("2006-01-02 15:04"), r.Millis)
						if r.Error != "" {
							state += ", failed: " + oneLine(r.Error, maxShown)
						}
					}
				}
				a.say("%-18s %-13s %s", "", e, state)
			}
		}
	}
	for _, l := range health.FailuresTold(failed, ws.Rules.Location) {
		a.say("%s", l)
	}
	a.object(map[string]any{"outcome": "ok", "hosts": list, "failures": failed})
	return nil
}

func (a *app) hookState(host hooks.Host, scope string, failed []health.HookRun) hookView {
	v := hookView{Host: host.Name, Scope: scope, Installed: []string{}, Runs: []health.HookRun{}}
	root := a.dir
	if scope == "user" {
		root = a.env.getenv("HOME")
	}
	if host.Settings == "" {
		dir := hooks.HookDir
		if scope == "user" {
			dir = ".openclaw/" + dir
		}
		v.Path = filepath.Join(root, filepath.FromSlash(dir))
		if _, err := os.Stat(filepath.Join(v.Path, "handler.ts")); err == nil {
			v.Installed = hooks.Events
		}
	} else {
		v.Path = filepath.Join(root, filepath.FromSlash(host.Settings))
		text, err := os.ReadFile(v.Path)
		if err == nil {
			var found []string
			if found, v.Command, err = hooks.Installed(text, host); len(found) > 0 {
				v.Installed = found
			}
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) && !errors.Is(err, errNotDir) {
			v.Problem = reasonOf(err)
		}
	}
	if host.Name == "codex" && len(v.Installed) > 0 {
		v.Trusted = a.codexTrusts(v.Path)
	}
	for _, e := range v.Installed {
		if r, ok := health.ReadHookRun(a.ws.View(), host.Name, e); ok {
			v.Runs = append(v.Runs, r)
		}
	}
	for _, f := range failed {
		if f.Host == host.Name {
			v.Failures++
		}
	}
	return v
}

// codexTrusts looks whether Codex has kept a hash for hooks of that file. What
// the hash is of is Codex's own.
func (a *app) codexTrusts(path string) string {
	home := a.env.getenv("CODEX_HOME")
	if home == "" {
		home = filepath.Join(a.env.getenv("HOME"), ".codex")
	}
	text, err := os.ReadFile(filepath.Join(home, "config.toml"))
	if errors.Is(err, fs.ErrNotExist) {
		return "no"
	}
	if err != nil {
		return "unknown"
	}
	if strings.Contains(string(text), path+":") && strings.Contains(string(text), "trusted_hash") {
		return "yes"
	}
	return "no"
}

// told takes away the failures that somebody has been told of.
func (a *app) told(names []string) {
	for _, n := range names {
		if err := a.ws.Unstamp(strings.TrimPrefix(n, ".mem/")); err != nil {
			a.warn("%v", err)
		}
	}
}

// staleStamp is how old a sign of life is that no SessionEnd took away.
const staleStamp = 7 * 24 * time.Hour

// events reports whether a name is one of an event.
func knownEvent(name string) bool { return slices.Contains(hooks.Events, name) }

package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/hooks"
	"github.com/tieredmem/mem/plan"
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
			if !a.DryRun {
				if err := a.settleFile(e.path); err != nil {
					return err
				}
			}
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
		if err := a.putFile(e.path, e.after); err != nil {
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
		e, err := a.readFile(root, filepath.Join(root, filepath.FromSlash(host.Settings)))
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
			e, err := a.readFile(root, filepath.Join(dir, name))
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
			e, err := a.readFile(root, filepath.Join(root, filepath.FromSlash(name)))
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
		more, err := c.rules(a, host, root)
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

func (c *hookInstallCmd) rules(a *app, host hooks.Host, root string) ([]edit, error) {
	name, skill := host.Rules, host.Skill
	if c.User {
		name = host.UserFile
		if host.Name == "openclaw" {
			skill = ".openclaw/" + skill
		}
	}
	e, err := a.readFile(root, filepath.Join(root, filepath.FromSlash(name)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", e.path, err)
	}
	e.after = []byte(hooks.AddRules(string(e.before)))
	s, err := a.readFile(root, filepath.Join(root, filepath.FromSlash(skill)))
	if err != nil {
		return nil, fmt.Errorf("%s: %w", s.path, err)
	}
	if s.before != nil && !bytes.Contains(s.before, []byte("\nname: mem\n")) {
		return nil, &conflicted{hinted{fmt.Errorf("%s was not written by mem", s.path), "move it away, or leave --with-rules out"}}
	}
	s.after, s.ownsWholly = []byte(hooks.Skill()), true
	return []edit{e, s}, nil
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
		e, err := a.readFile(root, name)
		if err != nil {
			return fmt.Errorf("%s: %w", name, err)
		}
		if !a.DryRun {
			if err := a.settleFile(name); err != nil {
				return err
			}
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
		if err := e.put(a, root); err != nil {
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

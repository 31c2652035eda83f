package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"runtime"
	"runtime/debug"
	"slices"
	"strings"
	"text/tabwriter"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/feedback"
	"github.com/tieredmem/mem/hooks"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/vcs"
	"github.com/tieredmem/mem/workspace"
)

type initCmd struct {
	Dir        string `arg:"" optional:"" help:"The directory; without it, this one."`
	WriteRules bool   `help:"In the claude layout: write the routine into HEARTBEAT.md and the rules of writing into AGENTS.md, as marked blocks; otherwise they are printed."`
	Layout     string `enum:"auto,canonical,openclaw,sessions,claude" default:"auto" help:"auto (what the directory looks like, else canonical), canonical, openclaw, sessions, claude."`
}

func (*initCmd) Help() string {
	return "Makes a workspace that passes its own checks. In a directory that has memory\nalready it adds what is missing and never touches what is there.\n\n  mem init ~/memory\n  mem init --layout openclaw ~/.openclaw/workspace"
}

func (c *initCmd) Run(a *app) error {
	cwd, err := a.env.getwd()
	if err != nil {
		return err
	}
	dir := cwd
	if c.Dir != "" {
		if dir = c.Dir; !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
	} else if a.Workspace != "" {
		dir, _ = filepath.Abs(a.Workspace)
	}
	if !a.DryRun {
		if err := a.makeDirs(dir, 0o777); err != nil {
			return err
		}
	}
	if a.DryRun {
		if _, err := os.Stat(dir); errors.Is(err, fs.ErrNotExist) {
			return c.preview(a, dir)
		}
	}
	a.dir = dir
	ws, err := a.open(true)
	if err != nil {
		return err
	}
	if err := c.choose(a); err != nil {
		return err
	}
	made, kept := []string{}, []string{}
	p, err := a.update(func(m fs.FS) (p plan.Plan, err error) {
		p, made, kept, err = scaffold(m, ws.Rules, a)
		if err == nil && c.WriteRules && ws.Rules.Name == "claude" {
			err = blocks(m, &p)
		}
		return p, err
	})
	if err != nil {
		return err
	}
	fields := map[string]any{"outcome": "created", "made": made, "kept": kept}
	if c.WriteRules && ws.Rules.Name != "claude" {
		a.warn("--write-rules is for the claude layout; mem hook install --with-rules writes the others'")
	}
	if p.Empty() {
		fields["outcome"] = "nothing"
		a.done(p, fields, "%s is complete (layout %s)", dir, ws.Rules.Name)
		return nil
	}
	a.done(p, fields, "made a workspace in %s (layout %s): %d files and directories, %d kept as they were", dir, ws.Rules.Name, len(made), len(kept))
	if !a.DryRun {
		switch ws.Rules.Name {
		case "sessions":
			a.say("next: mem hook install claude, mem status")
		case "claude":
			a.say("next: mem feedback add --help, mem heartbeat, mem status")
		default:
			a.say("next: mem note \"what you are doing\", mem status")
		}
	}
	if ws.Rules.Name == "claude" && !c.WriteRules {
		a.say("")
		a.say("for HEARTBEAT.md (--write-rules writes both):")
		a.raw(feedback.Routine())
		a.say("")
		a.say("for AGENTS.md:")
		a.raw(feedback.Writing())
	}
	return nil
}

// blocks plans the texts of the claude layout as marked blocks.
func blocks(m fs.FS, p *plan.Plan) error {
	if p.Command == "" {
		p.Command = "init"
	}
	for _, b := range []struct{ file, name, body string }{{"HEARTBEAT.md", "heartbeat", feedback.Routine()}, {"AGENTS.md", "writing", feedback.Writing()}} {
		old, err := fs.ReadFile(m, b.file)
		if errors.Is(err, fs.ErrNotExist) {
			p.Steps = append(p.Steps, plan.Step{Kind: plan.Create, Path: b.file, Before: plan.StateOf(nil), Content: []byte(hooks.AddBlock("", b.name, b.body))})
			continue
		}
		if err != nil {
			return err
		}
		if next := hooks.AddBlock(string(old), b.name, b.body); next != string(old) {
			p.Steps = append(p.Steps, plan.Step{Kind: plan.Replace, Path: b.file, Before: plan.StateOf(append([]byte{}, old...)), Content: []byte(next)})
		}
	}
	return nil
}

// preview is the dry run where even the directory is to be made.
func (c *initCmd) preview(a *app, dir string) error {
	layout := c.Layout
	if layout == "auto" {
		layout = tiers.Layouts()[0]
	}
	conf, err := tiers.ParseConfig("--layout", []byte("layout: "+layout+"\n"))
	if err != nil {
		return err
	}
	if a.zone, err = a.systemZone(); err != nil {
		return err
	}
	nothing := os.DirFS(dir)
	rules, err := tiers.Load(tiers.Sources{Memory: nothing, Mem: &conf, Zone: a.zone})
	if err != nil {
		return err
	}
	if a.at, err = a.instant(rules.Location); err != nil {
		return err
	}
	p, made, kept, err := scaffold(nothing, rules, a)
	if err != nil {
		return err
	}
	a.dir = dir
	a.say("[dry-run] make %s", dir)
	a.done(p, map[string]any{"outcome": "created", "made": made, "kept": kept}, "made a workspace in %s (layout %s): %d files and directories", dir, layout, len(made))
	return nil
}

// choose settles the layout: the flag, or what load found there already.
func (c *initCmd) choose(a *app) error {
	if c.Layout == "auto" {
		return nil
	}
	if a.sources.Mem != nil {
		l, ok := a.sources.Mem.Get("layout")
		if ok && l != c.Layout && l != "auto" {
			return &hinted{fmt.Errorf("mem.yaml says layout: %s, not %s", l, c.Layout), "change mem.yaml, or leave --layout out"}
		}
		if l != c.Layout && a.ws.Rules.Name != c.Layout {
			return &hinted{errors.New("mem.yaml is there and names no layout; it is not changed"), "add the line layout: " + c.Layout + " to it, then run mem init again"}
		}
	}
	conf, err := tiers.ParseConfig("--layout", []byte("layout: "+c.Layout+"\n"))
	if err != nil {
		return err
	}
	sources := a.sources
	if sources.Mem != nil {
		conf.Values = append(conf.Values, sources.Mem.Values...)
	}
	sources.Mem = &conf
	rules, err := tiers.Load(sources)
	if err != nil {
		return err
	}
	a.ws.Rules, a.ws.Features = rules, features(rules, a.at)
	return nil
}

// scaffold plans what a workspace lacks.
func scaffold(m fs.FS, rules tiers.Rules, a *app) (p plan.Plan, made, kept []string, err error) {
	p.Command = "init"
	made, kept = []string{}, []string{}
	for _, d := range rules.Dirs {
		if _, err := fs.Stat(m, d); errors.Is(err, fs.ErrNotExist) {
			p.Steps = append(p.Steps, plan.Step{Kind: plan.Mkdir, Path: d})
			made = append(made, d+"/")
		} else if err != nil {
			return p, nil, nil, err
		}
	}
	files, err := rules.Scaffold(rules.Day(a.at))
	if err != nil {
		return p, nil, nil, err
	}
	files = append(files, tiers.ScaffoldFile{Path: tiers.ConfigFile, Text: rules.ConfigTemplate()})
	if rules.Buffer.File != "" {
		files = append(files, tiers.ScaffoldFile{Path: rules.Buffer.File, Text: string(entry.Fresh(a.at, entry.Buffer{}))})
	}
	for _, f := range files {
		there, err := twin(m, f.Path)
		if err != nil {
			return p, nil, nil, err
		}
		if there {
			kept = append(kept, f.Path)
			continue
		}
		p.Steps = append(p.Steps, plan.Step{Kind: plan.Create, Path: f.Path, Before: plan.StateOf(nil), Content: []byte(f.Text)})
		made = append(made, f.Path)
	}
	return p, made, kept, nil
}

// twin reports whether a file is there under this name in any case: beside
// memory.md a new MEMORY.md would win.
func twin(m fs.FS, name string) (bool, error) {
	entries, err := fs.ReadDir(m, path.Dir(name))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return slices.ContainsFunc(entries, func(e fs.DirEntry) bool { return strings.EqualFold(e.Name(), path.Base(name)) }), err
}

type configCmd struct{}

func (*configCmd) Help() string {
	return "Prints every effective setting and where it comes from: the layout, the user's\n$XDG_CONFIG_HOME/mem/config.yaml, or the workspace's mem.yaml, which wins.\n\n  layout: canonical\n  timezone: Europe/Berlin\n  limits: {hot_lines: 60, buffer_lines: 80}\n  ttl: {notes: 30d}"
}

func (*configCmd) Run(a *app) error {
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	settings := a.sources.Settings(ws.Rules)
	var sb strings.Builder
	w := tabwriter.NewWriter(&sb, 0, 0, 2, ' ', 0)
	list := []map[string]string{}
	for _, s := range settings {
		fmt.Fprintf(w, "%s\t%s\t%s\n", s.Key, safe(s.Value), safe(s.From))
		if s.Ignored != "" {
			fmt.Fprintf(w, "\t\t(%s)\n", safe(s.Ignored))
		}
		list = append(list, map[string]string{"key": s.Key, "value": s.Value, "from": s.From, "ignored": s.Ignored})
	}
	w.Flush()
	a.raw(sb.String())
	a.object(map[string]any{"outcome": "ok", "settings": list})
	return nil
}

type trustCmd struct {
	Revoke bool `help:"Take the trust back."`
}

func (*trustCmd) Help() string {
	return "A workspace may come from a stranger's repository. Keys of mem.yaml that run a\nprogram or reach outside it (extractor, handoffs.inboxes, handoffs.discover,\nprojects outside the root, git.commit) count only after this command, and only\nuntil mem.yaml changes. Read mem.yaml first."
}

func (c *trustCmd) Run(a *app) error {
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	name := filepath.Join(a.dir, tiers.ConfigFile)
	b, _, err := durable.ReadFile(ws.Disk, tiers.ConfigFile, 0)
	if errors.Is(err, fs.ErrNotExist) {
		return &hinted{errors.New("this workspace has no mem.yaml, so there is nothing to trust"), "mem config shows what is in force"}
	}
	if err != nil {
		return err
	}
	dir, file, err := a.trustFile()
	if err != nil {
		return err
	}
	outcome := "trusted"
	if c.Revoke {
		outcome = "revoked"
	}
	keys := []string{}
	if a.sources.Mem != nil {
		keys = append(keys, a.sources.Mem.Guarded()...)
	}
	if !a.DryRun {
		if err := a.storeTrust(dir, file, plan.Hash(b)+"  "+name+"\n", c.Revoke); err != nil {
			return err
		}
	}
	if c.Revoke {
		a.done(plan.Plan{}, map[string]any{"outcome": outcome, "keys": keys}, "%s is no longer trusted", name)
	} else {
		a.done(plan.Plan{}, map[string]any{"outcome": outcome, "keys": keys}, "trusted %s as it is now; keys that count because of it: %s", name, strings.Join(append(keys, "none")[:max(1, len(keys))], ", "))
	}
	return nil
}

// trustFile is where the trust in this workspace is kept, outside of it.
func (a *app) trustFile() (dir, file string, err error) {
	state := a.env.getenv("XDG_STATE_HOME")
	if state == "" {
		home := a.env.getenv("HOME")
		if home == "" {
			return "", "", &hinted{errors.New("neither XDG_STATE_HOME nor HOME is set"), "set one of them"}
		}
		state = filepath.Join(home, ".local", "state")
	}
	real, err := filepath.EvalSymlinks(a.dir)
	if err != nil {
		return "", "", err
	}
	return filepath.Join(state, "mem", "trust"), plan.Hash([]byte(real))[:32], nil
}

func (a *app) trusted(config []byte) (bool, error) {
	dir, file, err := a.trustFile()
	if err != nil {
		return false, nil //nolint:nilerr // nowhere to keep trust: nothing is trusted
	}
	b, err := os.ReadFile(filepath.Join(dir, file))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	hash, _, _ := strings.Cut(string(b), "  ")
	return hash == plan.Hash(config), err
}

func (a *app) storeTrust(dir, file, text string, revoke bool) error {
	if !a.DryRun {
		if err := a.makeDirs(dir, 0o777); err != nil {
			return err
		}
	}
	d, err := a.openDisk(dir)
	if err != nil {
		return err
	}
	defer d.Close()
	if revoke {
		if err := d.Remove(file); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
		return d.SyncDir(".")
	}
	return durable.Replace(d, file, file+".tmp", []byte(text), 0o600, "")
}

type versionCmd struct{}

func (*versionCmd) Run(a *app) error {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "dev" && info.Main.Version != "" && info.Main.Version != "(devel)" {
		v = info.Main.Version
	}
	if a.JSON {
		a.object(map[string]any{"outcome": "ok", "version": v, "go": runtime.Version(), "os": runtime.GOOS, "arch": runtime.GOARCH, "format": workspace.Format})
		return nil
	}
	fmt.Fprintf(a.env.stdout, "mem %s (%s %s/%s)\n", v, runtime.Version(), runtime.GOOS, runtime.GOARCH)
	return nil
}

// commitGit commits what a run touched, where that is configured.
func (a *app) commitGit(receipts ...plan.Plan) error {
	if !a.ws.Rules.GitCommit || a.DryRun {
		return nil
	}
	var paths, ids []string
	for _, p := range receipts {
		if p.ID == "" {
			continue
		}
		ids = append(ids, p.ID)
		for _, f := range p.Paths() {
			if !slices.Contains(paths, f) {
				paths = append(paths, f)
			}
		}
	}
	if len(paths) == 0 {
		return nil
	}
	message := fmt.Sprintf("mem %s\n\nReceipt: %s\n", a.command, strings.Join(ids, ", "))
	_, err := vcs.Commit(a.dir, paths, message)
	return err
}

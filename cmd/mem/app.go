package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path"
	"path/filepath"
	"strings"
	"time"

	"github.com/rs/zerolog"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/workspace"
)

// app is one run of the program.
type app struct {
	env environment
	globals
	commands []command
	command  string
	code     int

	recovered  []string // what an earlier crash had left, and was done about it
	at         time.Time
	zone       *time.Location
	dir        string // the workspace, absolute
	ws         *workspace.Workspace
	disk       disk // the workspace's own, under whatever ws works on
	writable   bool // ws may be written to
	overlaid   bool // ws keeps changes in memory: a dry run
	sources    tiers.Sources
	logger     *zerolog.Logger
	gitError   string
	failFields map[string]any // for the object of a failed run
}

func (a *app) log() *zerolog.Logger {
	if a.logger == nil {
		level, err := zerolog.ParseLevel(a.LogLevel)
		if err != nil {
			level = zerolog.WarnLevel
		}
		var l zerolog.Logger
		if a.env.stderrTTY {
			l = zerolog.New(zerolog.ConsoleWriter{Out: a.env.stderr, NoColor: a.env.getenv("NO_COLOR") != ""})
		} else {
			l = zerolog.New(a.env.stderr)
		}
		l = l.Level(level).With().Time("time", a.env.now).Logger()
		a.logger = &l
	}
	return a.logger
}

// systemZone is the process's time zone. A TZ that names none is an error,
// never a silent UTC.
func (a *app) systemZone() (*time.Location, error) {
	tz, set := a.env.getenv("TZ"), false
	if tz != "" {
		set = true
	}
	if !set {
		return time.Local, nil
	}
	name := strings.TrimPrefix(tz, ":")
	if strings.HasPrefix(name, "/") {
		b, err := os.ReadFile(name)
		if err == nil {
			var loc *time.Location
			if loc, err = time.LoadLocationFromTZData(name, b); err == nil {
				return loc, nil
			}
		}
		return nil, &hinted{fmt.Errorf("TZ=%s: %w", tz, err), "set TZ to a name such as Europe/Berlin, or timezone: in mem.yaml"}
	}
	loc, err := tiers.Zone(name)
	if err != nil {
		return nil, &hinted{fmt.Errorf("TZ=%s: %w", tz, err), "set TZ to a name such as Europe/Berlin, or timezone: in mem.yaml"}
	}
	return loc, nil
}

// find locates the workspace.
func (a *app) find() error {
	if a.dir != "" {
		return nil
	}
	cwd, err := a.env.getwd()
	if err != nil {
		return err
	}
	if a.Workspace != "" {
		dir := a.Workspace
		if !filepath.IsAbs(dir) {
			dir = filepath.Join(cwd, dir)
		}
		info, err := os.Stat(dir)
		if err == nil && !info.IsDir() {
			err = &fs.PathError{Op: "open", Path: dir, Err: errors.New("is not a directory")}
		}
		if err != nil {
			return &hinted{err, "mem init " + dir + " makes a workspace there"}
		}
		a.dir = dir
		return nil
	}
	dir, err := workspace.Find(cwd, a.env.getenv("HOME"))
	if err != nil {
		return err
	}
	a.dir = dir
	if dir != cwd && !a.Quiet {
		fmt.Fprintf(a.env.stderr, "mem: workspace %s\n", safe(dir))
	}
	return nil
}

// open opens the workspace: to read it, or, with write, to change it. In a dry
// run every change stays in memory, and no lock is taken.
func (a *app) open(write bool) (*workspace.Workspace, error) {
	if write && a.DryRun && a.ws != nil && !a.overlaid {
		a.ws = nil // opened to be read: a dry run works on an overlay
	}
	if a.ws != nil {
		if write && !a.DryRun && !a.writable { // opened to be read
			if a.sources.Mem == nil && hostStore(a.dir) {
				return nil, errHostStore
			}
			if err := workspace.MayWrite(a.dir, a.disk, a.ws.Rules); err != nil {
				return nil, err
			}
			a.writable = true
		}
		return a.ws, nil
	}
	if err := a.find(); err != nil {
		return nil, err
	}
	disk, err := a.openWorkspace(a.dir)
	if err != nil {
		return nil, err
	}
	rules, err := a.load(disk)
	if err != nil {
		return nil, err
	}
	if write && !a.DryRun {
		if a.sources.Mem == nil && hostStore(a.dir) {
			return nil, errHostStore
		}
		if err := workspace.MayWrite(a.dir, disk, rules); err != nil {
			return nil, err
		}
		a.writable = true
	}
	a.disk = disk
	var d durable.FS = disk
	if log := a.log(); log.GetLevel() <= zerolog.TraceLevel {
		d = durable.Watch(d, func(op durable.Op, done bool) error {
			if !done {
				log.Trace().Str("op", op.Kind).Str("path", op.Name).Str("to", op.To).Int("bytes", op.Size).Send()
			}
			return nil
		})
	}
	lock := a.lock(a.dir)
	if write && a.DryRun {
		d, lock = durable.Overlay(d, a.at), unlocked{}
		a.overlaid = true
	}
	host, _ := os.Hostname() // for the record only
	a.ws = &workspace.Workspace{
		Dir: a.dir, Rules: rules, Disk: d, Lock: lock, LockWait: a.LockWait, At: a.at, Host: host, Features: features(rules, a.at),
	}
	if _, err := a.ws.CheckFormat(); err != nil {
		return nil, err
	}
	return a.ws, nil
}

// disk is a directory, opened.
type disk interface {
	durable.FS
	Close() error
	// Network names the network file system that it is on, if it is.
	Network() string
}

// openDisk opens a directory, of the workspace or elsewhere. Whatever changes
// files goes by what it returns.
func (a *app) openDisk(dir string) (disk, error) {
	if a.env.open != nil {
		return a.env.open(dir)
	}
	d, err := durable.Open(dir)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// openWorkspace opens a directory that is, or will be, a workspace.
func (a *app) openWorkspace(dir string) (disk, error) {
	d, err := a.openDisk(dir)
	if err != nil {
		return nil, err
	}
	if err := workspace.Usable(dir, d); err != nil {
		d.Close()
		return nil, err
	}
	return d, nil
}

func (a *app) lock(dir string) workspace.Locker {
	if a.env.lock != nil {
		return a.env.lock(dir)
	}
	return workspace.FileLock(dir)
}

// openBox opens an inbox, as package inbox wants it.
func (a *app) openBox(dir string) (durable.FS, error) {
	d, err := a.openDisk(dir)
	if err != nil {
		return nil, err
	}
	return d, nil
}

// hostStore reports whether a directory is a host's own store of memory, such
// as Claude Code's: it can be looked at, and is not ours to write.
func hostStore(dir string) bool {
	parts := strings.Split(filepath.ToSlash(dir), "/")
	n := len(parts)
	return n > 4 && parts[n-1] == "memory" && parts[n-3] == "projects" && parts[n-4] == ".claude"
}

// errHostStore refuses to write to a host's own store.
var errHostStore = &hinted{errors.New("this is the host's own store of memory: mem only looks at it"), "mem health, mem search and mem load work; a mem.yaml there makes it a workspace of yours"}

// load reads the configuration and fixes the run's instant.
func (a *app) load(disk durable.FS) (tiers.Rules, error) {
	var err error
	if a.zone, err = a.systemZone(); err != nil {
		return tiers.Rules{}, err
	}
	a.sources = tiers.Sources{Memory: durable.View(disk, 0), Zone: a.zone}
	b, _, err := durable.ReadFile(disk, tiers.ConfigFile, 0)
	if err == nil {
		c, err := tiers.ParseConfig(tiers.ConfigFile, b)
		if err != nil {
			return tiers.Rules{}, err
		}
		a.sources.Mem = &c
		if len(c.Guarded()) > 0 {
			a.sources.Trusted, err = a.trusted(b)
			if err != nil {
				return tiers.Rules{}, err
			}
		}
	} else if !errors.Is(err, fs.ErrNotExist) {
		return tiers.Rules{}, err
	}
	if err := a.userConfig(); err != nil {
		return tiers.Rules{}, err
	}
	sources := a.sources
	if sources.Mem == nil && hostStore(a.dir) {
		c, err := tiers.ParseConfig("(a host's own store)", []byte("layout: claude\n"))
		if err != nil {
			return tiers.Rules{}, err
		}
		sources.Mem = &c
	}
	rules, err := tiers.Load(sources)
	if err != nil {
		return rules, err
	}
	a.at, err = a.instant(rules.Location)
	return rules, err
}

// userConfigPath is the user's own configuration file.
func (a *app) userConfigPath() (string, error) {
	dir := a.env.getenv("XDG_CONFIG_HOME")
	if dir == "" {
		home := a.env.getenv("HOME")
		if home == "" {
			return "", errors.New("neither XDG_CONFIG_HOME nor HOME is set")
		}
		dir = filepath.Join(home, ".config")
	}
	return filepath.Join(dir, "mem", "config.yaml"), nil
}

func (a *app) userConfig() error {
	name, err := a.userConfigPath()
	if err != nil {
		return nil //nolint:nilerr // there is none
	}
	b, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) || errors.Is(err, errNotDir) {
		return nil
	}
	if err != nil {
		return err
	}
	c, err := tiers.ParseConfig(name, b)
	a.sources.User = &c
	return err
}

// instant is the run's one instant.
func (a *app) instant(loc *time.Location) (time.Time, error) {
	if a.At == "" {
		return a.env.now.In(loc), nil
	}
	if t, err := time.Parse(time.RFC3339, a.At); err == nil && t.Year() > maxYear {
		return t, &usageError{fmt.Sprintf("--at %s is too far away", a.At), "a year up to 9998"}
	} else if err == nil {
		return t.In(loc), nil
	}
	// Not parsed in loc: some days have no local midnight.
	d, err := time.Parse(time.DateOnly, a.At)
	if err != nil {
		return d, &usageError{fmt.Sprintf("--at %q is neither an RFC 3339 time nor a date", a.At), "for example --at 2027-01-01 or --at 2027-01-01T09:00:00+01:00"}
	}
	noon := time.Date(d.Year(), d.Month(), d.Day(), 12, 0, 0, 0, loc)
	if noon.Format(time.DateOnly) != a.At {
		return d, &usageError{fmt.Sprintf("--at %s: that day does not exist in %s", a.At, loc), "name another day"}
	}
	return noon, nil
}

// maxYear is the last year whose days can be written in every time zone.
const maxYear = 9998

// update carries out what f plans, and what goes with it: a git commit where
// that is configured, and word of what a crash had left.
func (a *app) update(f func(m fs.FS) (plan.Plan, error)) (plan.Plan, error) {
	ws, err := a.open(true)
	if err != nil {
		return plan.Plan{}, err
	}
	a.warnUntrusted("git.commit")
	receipt, rec, err := ws.Update(a.command, f)
	a.recovered = rec.Actions
	for _, s := range rec.Actions {
		if a.DryRun {
			a.say("[dry-run] recovered: %s", s)
		} else {
			a.say("recovered: %s", s)
		}
	}
	var attention *workspace.AttentionError
	for _, x := range rec.Attention {
		if !errors.As(err, &attention) { // the error says it all
			a.warn("%s: %s", x.Path, x.Why)
		}
	}
	if err != nil {
		return receipt, err
	}
	for _, n := range receipt.Notices {
		a.warn("%s", n)
	}
	if err := a.commitGit(append(rec.Receipts, receipt)...); err != nil {
		a.notCommitted(err)
	}
	if receipt.Outcome == plan.Conflict {
		return receipt, a.conflict(receipt)
	}
	return receipt, nil
}

// notCommitted says that the work was done, but is not in git.
func (a *app) notCommitted(err error) {
	a.warn("done, but not committed to git: %v", err)
	fmt.Fprintln(a.env.stderr, "mem: hint: the memory is as it should be; mend git, then commit by hand")
	a.gitError, a.code = err.Error(), exitFailed
}

// conflict is the error for steps that met a changed target.
func (a *app) conflict(p plan.Plan) error {
	for _, s := range p.Steps {
		drafted := s.Kind == plan.Append && s.To != "" // saved over, and what was to be added is a draft
		if s.Outcome != plan.Conflict && !drafted {
			continue
		}
		if s.Kind == plan.Seal {
			return &hinted{fmt.Errorf("rotation of %s: %s", s.Path, s.Reason), "the text waits in " + fmt.Sprint(p.Facts["pending"]) + "; mend the cause, then run mem recover"}
		}
		found := ""
		if _, f, ok := strings.Cut(s.Reason, "found "); ok {
			found = f
		}
		return &conflictError{path: s.Path, expected: s.Before.Hash, found: found, draft: s.To, receipt: p.ID, dryRun: a.DryRun}
	}
	return nil
}

// warnUntrusted says that configured keys do not count.
func (a *app) warnUntrusted(keys ...string) {
	for _, k := range a.sources.Untrusted() {
		for _, want := range keys {
			if k == want {
				a.warn("mem.yaml: %s does not count in a workspace that is not trusted; mem trust, after reading mem.yaml", k)
			}
		}
	}
}

// inWorkspace turns a path that the user typed into one of the workspace's.
func (a *app) inWorkspace(name string) (string, error) {
	cwd, err := a.env.getwd()
	if err != nil {
		return "", err
	}
	root, err := filepath.EvalSymlinks(a.dir)
	if err != nil {
		return "", err
	}
	if cwd, err = filepath.EvalSymlinks(cwd); err != nil {
		return "", err
	}
	full := name
	if !filepath.IsAbs(full) {
		base := cwd
		if rel, err := filepath.Rel(root, cwd); err != nil || !filepath.IsLocal(rel) {
			base = root
		}
		full = filepath.Join(base, name)
	} else if strings.HasPrefix(full, a.dir+string(filepath.Separator)) {
		full = filepath.Join(root, strings.TrimPrefix(full, a.dir))
	}
	rel, err := filepath.Rel(root, full)
	if err != nil || !filepath.IsLocal(rel) || rel == "." {
		return "", &usageError{fmt.Sprintf("%s is not a file in the workspace %s", name, a.dir), "name a file below it"}
	}
	rel = path.Clean(filepath.ToSlash(rel))
	// Where it really lies: a symlink in the path must not lead to the engine.
	real, dir := "", filepath.Dir(full)
	for ; dir != root && len(dir) > len(root); dir = filepath.Dir(dir) {
		if r, err := filepath.EvalSymlinks(dir); err == nil {
			if real, err = filepath.Rel(root, r); err != nil {
				return "", err
			}
			break
		}
	}
	for _, p := range append(strings.Split(rel, "/"), strings.Split(filepath.ToSlash(real), "/")...) {
		if p == ".mem" || p == ".git" {
			return "", &usageError{name + " belongs to the engine or to git, not to the memory", "mem receipts and mem trash show what is in .mem"}
		}
	}
	return rel, nil
}

// unlocked is the lock of a dry run.
type unlocked struct{}

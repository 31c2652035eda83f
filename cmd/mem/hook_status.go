package main

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/hooks"
)

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

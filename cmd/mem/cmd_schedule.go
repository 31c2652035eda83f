package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/schedule"
)

type scheduleCmd struct {
	Install scheduleInstallCmd `cmd:"" help:"Make a job run by itself."`
	Status  scheduleStatusCmd  `cmd:"" help:"Say what is installed, when it runs next, how it went."`
	Remove  scheduleRemoveCmd  `cmd:"" help:"Take out what install put in."`
	Print   schedulePrintCmd   `cmd:"" help:"Print the units or the crontab line, and change nothing."`
}

func (*scheduleCmd) Help() string {
	return "Puts the weekly review (Mondays 9:00, made up for when the machine slept) and the\ntaking of handoffs (every 30 minutes) into the system's own scheduler: systemd user units, a launchd agent, or a crontab line.\n\n  mem schedule install\n  mem schedule status\n  mem schedule print --backend cron"
}

type scheduleFlags struct {
	Job     string `arg:"" optional:"" help:"review or ingest; without it, both."`
	Backend string `enum:",systemd,launchd,cron" default:"" placeholder:"NAME" help:"systemd, launchd or cron; without it, what this system has."`
}

type scheduleInstallCmd struct {
	scheduleFlags
	Adopt bool `help:"Replace units that were edited by hand."`
	Pin   bool `help:"Run only this very binary: after an upgrade the job fails until it is installed anew."`
}

type (
	scheduleStatusCmd struct{ scheduleFlags }
	scheduleRemoveCmd struct {
		scheduleFlags
		Adopt bool `help:"Remove units that were edited by hand, too."`
	}
	schedulePrintCmd struct {
		scheduleFlags
		Pin bool `help:"Run only this very binary."`
	}
)

// scheduled is what the subcommands share.
type scheduled struct {
	a       *app
	backend string
	jobs    []schedule.Job
	target  schedule.Target
	dir     string
}

func (f scheduleFlags) open(a *app, pin bool) (*scheduled, error) {
	if _, err := a.open(false); err != nil {
		return nil, err
	}
	s := &scheduled{a: a, backend: f.Backend, jobs: schedule.Jobs}
	if f.Job != "" {
		j, ok := schedule.Find(f.Job)
		if !ok {
			return nil, &usageError{fmt.Sprintf("no job %q", f.Job), "mem schedule print shows the jobs"}
		}
		s.jobs = []schedule.Job{j}
	}
	if s.backend == "" {
		s.backend = backendHere()
	}
	exe, err := executable()
	if err != nil {
		return nil, err
	}
	if strings.ContainsAny(exe+a.dir, "\n\r") {
		return nil, &usageError{"a path with a line end cannot be scheduled", "rename the directory"}
	}
	s.target = schedule.Target{Exe: exe, Workspace: a.dir}
	if pin {
		if s.target.SHA256, err = fileHash(exe); err != nil {
			return nil, err
		}
	}
	home := a.env.getenv("HOME")
	config := a.env.getenv("XDG_CONFIG_HOME")
	if config == "" && home != "" {
		config = filepath.Join(home, ".config")
	}
	if s.backend != schedule.Cron && config == "" {
		return nil, &hinted{errors.New("HOME is not set"), "the units belong to a user: run it as one"}
	}
	s.dir = schedule.Dir(s.backend, config, home)
	return s, nil
}

func backendHere() string {
	if runtime.GOOS == "darwin" {
		return schedule.Launchd
	}
	if _, err := os.Stat("/run/systemd/system"); err == nil {
		return schedule.Systemd
	}
	if _, err := exec.LookPath("systemctl"); err == nil {
		return schedule.Systemd
	}
	return schedule.Cron
}

// executable is this binary by the name that outlives an upgrade: the one on
// the PATH, where that is the same file.
func executable() (string, error) {
	exe, err := os.Executable()
	if err != nil {
		return "", err
	}
	if name, err := exec.LookPath("mem"); err == nil {
		if abs, err := filepath.Abs(name); err == nil && sameFile(abs, exe) {
			return abs, nil
		}
	}
	return exe, nil
}

func sameFile(a, b string) bool {
	x, err := os.Stat(a)
	if err != nil {
		return false
	}
	y, err := os.Stat(b)
	return err == nil && os.SameFile(x, y)
}

func fileHash(name string) (string, error) {
	f, err := os.Open(name)
	if err != nil {
		return "", err
	}
	defer f.Close()
	h := sha256.New()
	if _, err := io.Copy(h, f); err != nil {
		return "", err
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

// unitDisk opens the directory of the units, making it if that is wanted. It
// may lie behind symlinks: it is the user's own.
func (s *scheduled) unitDisk(create bool) (disk, error) {
	if create {
		if err := s.a.makeDirs(s.dir, 0o755); err != nil {
			return nil, err
		}
	}
	return s.a.openDisk(s.dir)
}

// unitState says what stands under a unit's name.
func unitState(d durable.FS, u schedule.Unit) (string, error) {
	b, _, err := durable.ReadFile(d, u.Name, 1<<20)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return "absent", nil
	case err != nil:
		return "", err
	case string(b) == u.Text:
		return "installed", nil
	case schedule.Made(string(b)):
		return "outdated", nil
	}
	return "edited", nil
}

func (c *scheduleInstallCmd) Run(a *app) error {
	s, err := c.open(a, c.Pin)
	if err != nil {
		return err
	}
	if s.backend == schedule.Cron {
		a.say("add this with crontab -e:")
		return s.print()
	}
	d, err := s.unitDisk(!a.DryRun)
	if a.DryRun && errors.Is(err, fs.ErrNotExist) {
		for _, j := range s.jobs {
			for _, u := range schedule.Units(s.backend, j, s.target) {
				a.say("[dry-run] write %s", filepath.Join(s.dir, u.Name))
			}
		}
		a.object(map[string]any{"outcome": "installed", "backend": s.backend, "units": s.names(), "enabled": false})
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	var units []schedule.Unit
	for _, j := range s.jobs {
		units = append(units, schedule.Units(s.backend, j, s.target)...)
	}
	for _, u := range units { // none is written where one must not be
		if state, err := unitState(d, u); err != nil || state == "edited" && !c.Adopt {
			return errors.Join(err, s.edited(u, "--adopt replaces it"))
		}
	}
	for _, u := range units {
		if err := s.put(d, u); err != nil {
			return err
		}
	}
	enabled := s.run(schedule.Enable)
	a.object(map[string]any{"outcome": "installed", "backend": s.backend, "units": s.names(), "enabled": enabled})
	return nil
}

func (s *scheduled) names() []string {
	out := []string{}
	for _, j := range s.jobs {
		for _, u := range schedule.Units(s.backend, j, s.target) {
			out = append(out, filepath.Join(s.dir, u.Name))
		}
	}
	return out
}

func (s *scheduled) edited(u schedule.Unit, hint string) error {
	return &conflicted{hinted{fmt.Errorf("%s was edited by hand; it is left as it is", filepath.Join(s.dir, u.Name)), hint}}
}

// put writes a unit: whole or not at all.
func (s *scheduled) put(d durable.FS, u schedule.Unit) error {
	a := s.a
	full := filepath.Join(s.dir, u.Name)
	state, err := unitState(d, u)
	if err != nil {
		return err
	}
	switch {
	case state == "installed":
		a.say("%s is as it should be", full)
		if a.DryRun {
			return nil
		}
		return settle(d, tempOf(u.Name))
	case a.DryRun:
		a.say("[dry-run] write %s", full)
		return nil
	}
	if err := durable.Replace(d, u.Name, tempOf(u.Name), []byte(u.Text), 0o644, ""); err != nil {
		return err
	}
	a.say("wrote %s", full)
	return nil
}

// managerTimeout is how long a scheduler may take to answer.
const managerTimeout = 10 * time.Second

// run gives the scheduler its commands, or, where none answers, prints them.
func (s *scheduled) run(which func(string, schedule.Job, schedule.Target, string) [][]string) bool {
	a := s.a
	if a.DryRun {
		return false
	}
	ok := managerAnswers(s.backend)
	if !ok {
		a.say("no %s answers here; where it runs:", s.backend)
	}
	for _, j := range s.jobs {
		for _, args := range which(s.backend, j, s.target, s.dir) {
			if !ok {
				a.say("  %s", strings.Join(args, " "))
				continue
			}
			ctx, cancel := context.WithTimeout(context.Background(), managerTimeout)
			out, err := exec.CommandContext(ctx, args[0], args[1:]...).CombinedOutput()
			cancel()
			if err != nil {
				a.warn("%s: %v: %s", strings.Join(args, " "), err, strings.TrimSpace(string(out)))
				a.code = exitFailed
				return false
			}
		}
	}
	if ok && s.backend == schedule.Systemd {
		a.say("to have it run while you are not logged in: loginctl enable-linger")
	}
	return ok
}

func managerAnswers(backend string) bool {
	name, args := "systemctl", []string{"--user", "show-environment"}
	if backend == schedule.Launchd {
		name, args = "launchctl", []string{"list"}
	}
	ctx, cancel := context.WithTimeout(context.Background(), managerTimeout)
	defer cancel()
	return exec.CommandContext(ctx, name, args...).Run() == nil
}

func (c *schedulePrintCmd) Run(a *app) error {
	s, err := c.open(a, c.Pin)
	if err != nil {
		return err
	}
	return s.print()
}

func (s *scheduled) print() error {
	type unit struct {
		Path string `json:"path"`
		Text string `json:"text"`
	}
	all := []unit{}
	for _, j := range s.jobs {
		for _, u := range schedule.Units(s.backend, j, s.target) {
			full := ""
			if u.Name != "" {
				full = filepath.Join(s.dir, u.Name)
				s.a.say("# %s", full)
			}
			for _, l := range strings.Split(strings.TrimSuffix(u.Text, "\n"), "\n") {
				s.a.say("%s", l)
			}
			all = append(all, unit{full, u.Text})
		}
	}
	s.a.object(map[string]any{"outcome": "ok", "backend": s.backend, "units": all})
	return nil
}

func (c *scheduleRemoveCmd) Run(a *app) error {
	s, err := c.open(a, false)
	if err != nil {
		return err
	}
	if s.backend == schedule.Cron {
		a.say("take the line that ends in %s out with crontab -e", schedule.Name(s.jobs[0], s.target))
		a.object(map[string]any{"outcome": "nothing", "backend": s.backend, "removed": []string{}})
		return nil
	}
	removed := []string{}
	d, err := s.unitDisk(false)
	if errors.Is(err, fs.ErrNotExist) {
		a.say("nothing is installed")
		a.object(map[string]any{"outcome": "nothing", "backend": s.backend, "removed": removed})
		return nil
	}
	if err != nil {
		return err
	}
	defer d.Close()
	var there []schedule.Unit
	for _, j := range s.jobs {
		for _, u := range schedule.Units(s.backend, j, s.target) {
			state, err := unitState(d, u)
			switch {
			case err != nil:
				return err
			case state == "edited" && !c.Adopt:
				return s.edited(u, "--adopt removes it")
			case state != "absent":
				there = append(there, u)
			}
		}
	}
	if len(there) > 0 {
		s.run(schedule.Disable)
	}
	for _, u := range there {
		full := filepath.Join(s.dir, u.Name)
		if a.DryRun {
			a.say("[dry-run] remove %s", full)
			continue
		}
		if err := d.Remove(u.Name); err != nil {
			return err
		}
		removed = append(removed, full)
		a.say("removed %s", full)
	}
	if !a.DryRun {
		var temps []string
		for _, j := range s.jobs {
			for _, u := range schedule.Units(s.backend, j, s.target) {
				temps = append(temps, tempOf(u.Name))
			}
		}
		if err := settle(d, temps...); err != nil {
			return err
		}
	}
	outcome := "removed"
	if len(there) == 0 {
		outcome = "nothing"
		a.say("nothing is installed")
	}
	a.object(map[string]any{"outcome": outcome, "backend": s.backend, "removed": removed})
	return nil
}

type jobView struct {
	Job     string `json:"job"`
	State   string `json:"state"` // installed, outdated, edited, absent, unknown (cron)
	Next    string `json:"next"`
	Last    string `json:"last"`
	Outcome string `json:"last_outcome"`
	Success string `json:"last_success"`
	Pinned  string `json:"pinned"` // "", ok, changed
}

func (c *scheduleStatusCmd) Run(a *app) error {
	s, err := c.open(a, false)
	if err != nil {
		return err
	}
	list := []jobView{}
	for _, j := range s.jobs {
		v, err := s.status(j)
		if err != nil {
			return err
		}
		list = append(list, v)
		a.say("%s (%s): %s", j.Name, s.backend, v.State)
		if v.Next != "" {
			a.say("  next run:     %s", v.Next)
		}
		if v.Last == "" {
			a.say("  last run:     never")
		} else {
			a.say("  last run:     %s, %s", v.Last, v.Outcome)
		}
		if v.Success != "" {
			a.say("  last success: %s", v.Success)
		}
		if v.Pinned == "changed" {
			a.warn("the binary is not the one that %s is pinned to: mem schedule install --pin", j.Name)
		}
	}
	a.object(map[string]any{"outcome": "ok", "backend": s.backend, "jobs": list})
	return nil
}

func (s *scheduled) status(j schedule.Job) (jobView, error) {
	v := jobView{Job: j.Name, State: "absent"}
	rec, err := health.ReadJob(s.a.ws.View(), ".mem/jobs/"+j.Name+".json")
	if err == nil && !rec.At.IsZero() {
		v.Last, v.Outcome = rec.At.In(s.a.ws.Rules.Location).Format(time.RFC3339), rec.Outcome
		if !rec.Success.IsZero() {
			v.Success = rec.Success.In(s.a.ws.Rules.Location).Format(time.RFC3339)
		}
	}
	if s.backend == schedule.Cron {
		v.State = "unknown"
		return v, nil
	}
	d, err := s.unitDisk(false)
	if errors.Is(err, fs.ErrNotExist) {
		return v, nil
	}
	if err != nil {
		return v, err
	}
	defer d.Close()
	for _, u := range schedule.Units(s.backend, j, s.target) {
		b, _, rerr := durable.ReadFile(d, u.Name, 1<<20)
		if rerr == nil && strings.Contains(string(b), "--check --status") {
			v.Pinned = "changed"
			if h, err := fileHash(s.target.Exe); err == nil && strings.Contains(string(b), h) {
				v.Pinned = "ok"
			}
		}
		state, err := unitState(d, u)
		if err != nil {
			return v, err
		}
		if state == "outdated" && v.Pinned == "ok" {
			state = "installed"
		}
		if v.State != "edited" && (v.State == "absent" || state == "edited" || state == "outdated") {
			v.State = state
		}
	}
	if s.backend == schedule.Systemd && v.State != "absent" && managerAnswers(s.backend) {
		out, err := exec.Command("systemctl", "--user", "show", "--property=NextElapseUSecRealtime", "--value", schedule.Name(j, s.target)+".timer").Output()
		if err == nil {
			v.Next = strings.TrimSpace(string(out))
		}
	}
	return v, nil
}

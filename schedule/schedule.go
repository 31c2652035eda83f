// Package schedule says how a job of mem is put into the system's own
// scheduler: systemd user units, a launchd agent, a crontab line.
//
// [Units] returns the files of one job for one backend, as text. Their first
// lines carry a hash of the rest, so that [Edited] tells whether a person has
// changed them. Nothing here writes or runs anything.
package schedule

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/xml"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
)

// Backends.
const (
	Systemd = "systemd"
	Launchd = "launchd"
	Cron    = "cron"
)

// Job is something that should run by itself.
type Job struct {
	Name     string
	About    string
	Args     []string // after mem --workspace DIR
	calendar string   // systemd
	interval string   // launchd, as XML
	cron     string
}

// Jobs are the jobs that can be scheduled.
var Jobs = []Job{
	{
		Name: "review", About: "weekly review of agent memory", Args: []string{"review"},
		calendar: "Mon *-*-* 09:00:00",
		interval: "<key>StartCalendarInterval</key>\n  <dict><key>Weekday</key><integer>1</integer><key>Hour</key><integer>9</integer><key>Minute</key><integer>0</integer></dict>",
		cron:     "0 9 * * 1",
	},
	{
		Name: "ingest", About: "taking handoffs into agent memory", Args: []string{"ingest"},
		calendar: "*:0/30",
		interval: "<key>StartInterval</key><integer>1800</integer>",
		cron:     "*/30 * * * *",
	},
}

// Find returns a job by its name.
func Find(name string) (Job, bool) {
	i := slices.IndexFunc(Jobs, func(j Job) bool { return j.Name == name })
	if i < 0 {
		return Job{}, false
	}
	return Jobs[i], true
}

// Target is what a job runs on.
type Target struct {
	Exe       string // absolute path of the binary
	Workspace string // absolute
	SHA256    string // of the binary: the job runs only while it has this hash; "" for any
}

// ID tells two workspaces apart, in the names of units.
func (t Target) ID() string {
	sum := sha256.Sum256([]byte(t.Workspace))
	return hex.EncodeToString(sum[:4])
}

// Unit is one file of a scheduler.
type Unit struct {
	Name string // base name; "" for a line that a person puts into a crontab
	Text string
}

// Name is a job's name on a target, as its units begin.
func Name(j Job, t Target) string { return "mem-" + j.Name + "-" + t.ID() }

// Units are the files of a job. Dirs says where they go.
func Units(backend string, j Job, t Target) []Unit {
	switch backend {
	case Systemd:
		return []Unit{{Name(j, t) + ".service", marked(service(j, t))}, {Name(j, t) + ".timer", marked(timer(j, t))}}
	case Launchd:
		return []Unit{{label(j, t) + ".plist", plist(j, t)}}
	}
	return []Unit{{"", line(j, t)}}
}

const searchPath = "/usr/local/bin:/usr/bin:/bin"

func path(t Target) string { return filepath.Dir(t.Exe) + ":" + searchPath }

func (j Job) command(t Target) []string {
	return append([]string{t.Exe, "--workspace", t.Workspace}, j.Args...)
}

// check is the shell command that fails unless the binary has its hash: the
// binary itself could not be trusted to look.
func check(t Target, tool string) string {
	return "echo " + shell(t.SHA256+"  "+t.Exe) + " | " + tool + " --check --status"
}

func service(j Job, t Target) string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "[Unit]\nDescription=mem: %s (%s)\n\n[Service]\nType=oneshot\n", j.About, percent(oneLine(t.Workspace)))
	fmt.Fprintf(&sb, "Environment=%s\n", strings.ReplaceAll(unitWord("PATH="+path(t)), "$$", "$"))
	if t.SHA256 != "" {
		fmt.Fprintf(&sb, "ExecStartPre=/bin/sh -c %s\n", unitWord(check(t, "sha256sum")))
	}
	words := j.command(t)
	for i, w := range words {
		words[i] = unitWord(w)
	}
	fmt.Fprintf(&sb, "ExecStart=%s\nNice=10\n", strings.Join(words, " "))
	return sb.String()
}

func timer(j Job, t Target) string {
	return fmt.Sprintf("[Unit]\nDescription=mem: %s (%s)\n\n[Timer]\nOnCalendar=%s\nPersistent=true\n\n[Install]\nWantedBy=timers.target\n", j.About, percent(oneLine(t.Workspace)), j.calendar)
}

func oneLine(s string) string { return strings.Map(func(r rune) rune { return max(r, ' ') }, s) }

func percent(s string) string { return strings.ReplaceAll(s, "%", "%%") }

// unitWord quotes a word for ExecStart and Environment (systemd.syntax(7),
// systemd.service(5)).
func unitWord(s string) string {
	s = percent(s)
	s = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "$", "$$", "\n", `\n`, "\t", `\t`).Replace(s)
	return `"` + s + `"`
}

func shell(s string) string { return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'" }

const plistHead = "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<!DOCTYPE plist PUBLIC \"-//Apple//DTD PLIST 1.0//EN\" \"http://www.apple.com/DTDs/PropertyList-1.0.dtd\">\n<!-- "

func label(j Job, t Target) string { return "io.github.tieredmem." + Name(j, t) }

func plist(j Job, t Target) string {
	words := j.command(t)
	if t.SHA256 != "" {
		for i, w := range words {
			words[i] = shell(w)
		}
		words = []string{"/bin/sh", "-c", check(t, "shasum -a 256") + " && exec " + strings.Join(words, " ")}
	}
	var sb strings.Builder
	fmt.Fprintf(&sb, "<plist version=\"1.0\">\n<dict>\n  <key>Label</key><string>%s</string>\n  <key>ProgramArguments</key>\n  <array>\n", escape(label(j, t)))
	for _, w := range words {
		fmt.Fprintf(&sb, "    <string>%s</string>\n", escape(w))
	}
	fmt.Fprintf(&sb, "  </array>\n  %s\n  <key>EnvironmentVariables</key>\n  <dict><key>PATH</key><string>%s</string></dict>\n</dict>\n</plist>\n", j.interval, escape(path(t)))
	body := sb.String()
	return plistHead + mark + hash(body) + " -->\n" + body
}

func escape(s string) string {
	var sb strings.Builder
	if err := xml.EscapeText(&sb, []byte(s)); err != nil {
		return ""
	}
	return sb.String()
}

// line is a crontab line. A percent sign ends the command there.
func line(j Job, t Target) string {
	words := j.command(t)
	for i, w := range words {
		words[i] = shell(w)
	}
	command := strings.Join(words, " ")
	if t.SHA256 != "" {
		command = check(t, "sha256sum") + " && " + command
	}
	return j.cron + " " + strings.ReplaceAll("PATH="+shell(path(t))+"; export PATH; "+command, "%", `\%`) + " # " + Name(j, t) + "\n"
}

// mark introduces the hash of what follows.
const mark = "made by mem schedule; sha256 of what follows: "

func marked(body string) string { return "# " + mark + hash(body) + "\n" + body }

func hash(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:])
}

// Made reports whether a unit's text is as Units made it, at whatever time;
// otherwise a person, or another program, wrote or changed it.
func Made(text string) bool {
	head, rest, ok := strings.Cut(text, mark)
	if !ok || len(rest) < 64 || head != "# " && head != plistHead {
		return false
	}
	_, body, ok := strings.Cut(rest, "\n")
	return ok && hash(body) == rest[:64]
}

// Dir is where a backend's units are: below the user's configuration, or home.
func Dir(backend, config, home string) string {
	if backend == Launchd {
		return filepath.Join(home, "Library", "LaunchAgents")
	}
	return filepath.Join(config, "systemd", "user")
}

// Enable are the commands that start a job's schedule, and Disable those that
// stop it: argument lists.
func Enable(backend string, j Job, t Target, dir string) [][]string {
	switch backend {
	case Systemd:
		return [][]string{{"systemctl", "--user", "daemon-reload"}, {"systemctl", "--user", "enable", "--now", Name(j, t) + ".timer"}}
	case Launchd:
		return [][]string{{"launchctl", "load", "-w", filepath.Join(dir, label(j, t)+".plist")}}
	}
	return nil
}

// Disable stops a job's schedule.
func Disable(backend string, j Job, t Target, dir string) [][]string {
	switch backend {
	case Systemd:
		return [][]string{{"systemctl", "--user", "disable", "--now", Name(j, t) + ".timer"}}
	case Launchd:
		return [][]string{{"launchctl", "unload", "-w", filepath.Join(dir, label(j, t)+".plist")}}
	}
	return nil
}

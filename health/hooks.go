package health

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"strings"
	"time"
)

// Where what is known of the hosts' hooks is kept.
const (
	HookDir      = ".mem/hooks"
	HookInstalls = HookDir + "/installed.json"
	HookFailures = HookDir + "/failed" // one file each, until it has been told
)

// HookFile is the record of the last run of a host's hook.
func HookFile(host, event string) string { return path.Join(HookDir, host+"-"+event+".json") }

// HookRun is one run of a hook.
type HookRun struct {
	Host    string    `json:"host"`
	Event   string    `json:"event"`
	At      time.Time `json:"at"`
	Session string    `json:"session"`         // a short hash of the host's id
	Error   string    `json:"error,omitempty"` // "" if all went well
	Millis  int64     `json:"ms"`
}

// HookInstall is where our hooks were put.
type HookInstall struct {
	Host   string    `json:"host"`
	Path   string    `json:"path"` // absolute
	At     time.Time `json:"at"`
	Events []string  `json:"events"`
	After  string    `json:"after"`            // hash of the file as it was left
	Known  bool      `json:"known"`            // what it was before is known
	Absent bool      `json:"absent,omitempty"` // it was not there
	Before []byte    `json:"before,omitempty"` // else its bytes
}

// ReadHookInstalls reads where hooks were put, by path.
func ReadHookInstalls(m fs.FS) (map[string]HookInstall, error) {
	out := map[string]HookInstall{}
	b, err := fs.ReadFile(m, HookInstalls)
	if errors.Is(err, fs.ErrNotExist) {
		return out, nil
	}
	if err != nil {
		return out, err
	}
	return out, json.Unmarshal(b, &out)
}

// ReadHookRun reads the last run of a host's hook; false if it never ran.
func ReadHookRun(m fs.FS, host, event string) (HookRun, bool) {
	var r HookRun
	b, err := fs.ReadFile(m, HookFile(host, event))
	return r, err == nil && json.Unmarshal(b, &r) == nil && !r.At.IsZero()
}

// ReadHookFailures lists the failures that nobody has been told of, oldest
// first, and the names of their files.
func ReadHookFailures(m fs.FS) (runs []HookRun, names []string) {
	entries, err := fs.ReadDir(m, HookFailures)
	if err != nil {
		return nil, nil
	}
	for _, e := range entries {
		if strings.HasSuffix(e.Name(), ".tmp") {
			continue
		}
		name := path.Join(HookFailures, e.Name())
		var r HookRun
		if b, err := fs.ReadFile(m, name); err == nil && json.Unmarshal(b, &r) == nil {
			runs, names = append(runs, r), append(names, name)
		}
	}
	return runs, names
}

// FailuresTold says failures in a line for each hook.
func FailuresTold(runs []HookRun, zone *time.Location) []string {
	type key struct{ host, event string }
	var order []key
	count, first, last := map[key]int{}, map[key]time.Time{}, map[key]string{}
	for _, r := range runs {
		k := key{r.Host, r.Event}
		if count[k]++; count[k] == 1 {
			order = append(order, k)
			first[k] = r.At
		}
		last[k] = r.Error
	}
	var out []string
	for _, k := range order {
		times := "once"
		if count[k] > 1 {
			times = fmt.Sprintf("%d times", count[k])
		}
		out = append(out, fmt.Sprintf("the %s hook of %s failed %s since %s, at last with: %.150s", k.event, k.host, times, first[k].In(zone).Format("2006-01-02 15:04"), last[k]))
	}
	return out
}

// How long a hook may be silent: after it was installed, and while others of
// its host run.
const (
	neverRan = 24 * time.Hour
	lagging  = 48 * time.Hour
)

// hooksOverdue: hooks that were installed run.
func (p *pass) hooksOverdue(all *found) {
	installs, err := ReadHookInstalls(p.m)
	if err != nil {
		p.note(all, Fail, "jobs.overdue", HookInstalls, 0, "mem hook status", "the record of installed hooks cannot be read: %v", reason(err))
		return
	}
	told := map[string]bool{}
	for _, i := range installs {
		var newest time.Time
		for _, e := range i.Events {
			if r, ok := ReadHookRun(p.m, i.Host, e); ok && r.At.After(newest) {
				newest = r.At
			}
		}
		if newest.IsZero() {
			if age := p.now.Sub(i.At); age > neverRan && !told[i.Host] {
				told[i.Host] = true
				p.note(all, Fail, "jobs.overdue", HookInstalls, 0, "mem hook status", "the hooks for %s were installed %s ago and have never run", i.Host, ago(age))
			}
			continue
		}
		for _, e := range i.Events {
			if e == "PreCompact" || told[i.Host+e] {
				continue // most sessions are never compacted
			}
			r, ok := ReadHookRun(p.m, i.Host, e)
			if ok && newest.Sub(r.At) <= lagging || !ok && newest.Sub(i.At) <= lagging {
				continue
			}
			told[i.Host+e] = true
			since := i.At
			if ok {
				since = r.At
			}
			p.note(all, Fail, "jobs.overdue", HookInstalls, 0, "mem hook status", "the %s hook of %s has not run since %s, though others of it have", e, i.Host, since.In(p.rules.Location).Format(time.DateOnly))
		}
	}
	runs, _ := ReadHookFailures(p.m)
	lines := FailuresTold(runs, p.rules.Location)
	slices.Sort(lines)
	for _, l := range lines {
		p.note(all, Fail, "jobs.overdue", HookFailures, 0, "mem hook status", "%s", l)
	}
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"
	"unicode/utf8"

	"github.com/tieredmem/mem/buffer"
	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/tiers"
)

type statusCmd struct{}

func (*statusCmd) Help() string {
	return "One screen: the layout and why it was taken, each tier against its limit, what is\nunfinished. It reads only, and takes no lock."
}

type tierStatus struct {
	Tier  string `json:"tier"`
	Path  string `json:"path"`
	Files int    `json:"files"`
	Size  int    `json:"size"`
	Limit int    `json:"limit"` // 0: none
	Unit  string `json:"unit"`
	Note  string `json:"note"`
}

func (*statusCmd) Run(a *app) error {
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	m, rules := ws.View(), ws.Rules
	hot, err := hotStatus(m, rules)
	if err != nil {
		return err
	}
	list := []tierStatus{hot}
	state, err := buffer.Inspect(m, rules)
	if err == nil {
		list = append(list, bufferStatus(state, rules, a))
	} else if !errors.Is(err, buffer.ErrNoBuffer) {
		list = append(list, tierStatus{Tier: "BUFFER", Path: rules.Buffer.File, Limit: rules.Limits.BufferLines, Unit: "lines", Note: err.Error()})
	}
	counts, err := countFiles(m, rules)
	if err != nil {
		return err
	}
	for _, t := range []tiers.Tier{tiers.WARM, tiers.COLD, tiers.SCRATCH} {
		if len(rules.Layout.Tiers[string(t)]) > 0 {
			list = append(list, tierStatus{Tier: string(t), Files: counts[t], Size: counts[t], Unit: "files"})
		}
	}
	unfinished, u, session, _, err := a.unfinished()
	if err != nil {
		return err
	}
	around, err := a.around()
	if err != nil {
		return err
	}
	ids, err := a.receiptIDs(1)
	if err != nil {
		return err
	}
	last := ""
	if len(ids) > 0 {
		if p, _, err := ws.Journal().Load(ids[0]); err == nil {
			last = fmt.Sprintf("%s (%s)", p.ID, p.Command)
		}
	}
	a.printStatus(list, unfinished, session, u.Running, last, around)
	outcome := "ok"
	if len(unfinished) > 0 && u.Running == "" {
		outcome = "unfinished"
	}
	a.object(map[string]any{
		"outcome": outcome, "why": rules.Why, "tiers": list, "unfinished": unfinished, "running": u.Running,
		"session": map[string]any{"active": session.Active, "reason": session.Reason}, "last_receipt": last,
		"jobs": around.Jobs, "waiting": around.Waiting, "not_loaded": around.NotLoaded, "hooks": around.Hooks,
		"durable": ws.Disk.Caps(".").SyncDir, "untrusted": attentionList(a.sources.Untrusted()),
	})
	return nil
}

func (a *app) printStatus(list []tierStatus, unfinished []string, session buffer.Session, running, last string, around around) {
	rules := a.ws.Rules
	a.say("%s", a.dir)
	a.say("layout %s (%s), %s", rules.Name, rules.Why, a.at.In(rules.Location).Format("2006-01-02 15:04 MST"))
	a.say("")
	for _, t := range list {
		line := fmt.Sprintf("%-8s", t.Tier)
		switch {
		case t.Limit > 0:
			line += fmt.Sprintf("%s %6d / %d %s", a.bar(t.Size, t.Limit), t.Size, t.Limit, t.Unit)
		default:
			line += fmt.Sprintf("%12s %6d %s", "", t.Size, t.Unit)
		}
		if t.Path != "" {
			line += "  " + safe(t.Path)
		}
		if t.Note != "" {
			line += "  (" + safe(t.Note) + ")"
		}
		a.raw(line + "\n") // made here; names of files are escaped
	}
	a.sayAround(around)
	a.say("")
	switch {
	case running != "":
		a.say("running: %s", running)
	case len(unfinished) == 0:
		a.say("nothing unfinished")
	default:
		for _, s := range unfinished {
			a.say("unfinished: %s", s)
		}
		a.say("  mem recover finishes it")
	}
	if session.Active {
		a.say("a session is active: %s", session.Reason)
	}
	if last != "" {
		a.say("last change: %s", last)
	}
	for _, k := range a.sources.Untrusted() {
		a.say("not trusted, so it does not count: %s in mem.yaml (mem trust)", k)
	}
	if !a.ws.Disk.Caps(".").SyncDir {
		a.say("this system cannot make directories durable: writes are atomic, not proof against a power cut")
	}
}

// barWidth is the width of a tier's bar, in characters.
const barWidth = 12

// bar shows a size against its limit; in colour on a terminal: green, yellow
// from four fifths on, red beyond the limit.
func (a *app) bar(n, limit int) string {
	full := min(barWidth, (n*barWidth+limit-1)/limit)
	s := strings.Repeat("#", full) + strings.Repeat(".", barWidth-full)
	if !a.env.stdoutTTY || a.env.getenv("NO_COLOR") != "" || a.env.getenv("TERM") == "dumb" {
		return s
	}
	colour := "32"
	switch {
	case n > limit:
		colour = "31"
	case n*5 >= limit*4:
		colour = "33"
	}
	return "\x1b[" + colour + "m" + strings.Repeat("█", full) + "\x1b[90m" + strings.Repeat("░", barWidth-full) + "\x1b[0m"
}

// hotStatus measures the always-loaded file in its layout's unit.
func hotStatus(m fs.FS, rules tiers.Rules) (tierStatus, error) {
	s := tierStatus{Tier: "HOT", Path: rules.Hot.File, Limit: rules.Hot.Max, Unit: rules.Hot.Unit, Files: 1}
	b, err := fs.ReadFile(m, rules.Hot.File)
	if errors.Is(err, fs.ErrNotExist) {
		s.Files, s.Note = 0, "missing: mem init"
		if there, err := twin(m, rules.Hot.File); err == nil && there {
			s.Note = "missing; a file of that name in another case is there: rename it"
		}
		return s, nil
	}
	if err != nil {
		s.Note = err.Error()
		return s, nil //nolint:nilerr // it is shown where the file is
	}
	switch rules.Hot.Unit {
	case "lines":
		s.Size = entry.CountLines(b)
	case "characters":
		s.Size = utf8.RuneCount(bytes.TrimPrefix(b, []byte("\xef\xbb\xbf")))
	default:
		s.Size = len(b)
	}
	if s.Size > s.Limit {
		s.Note = "over its limit"
	}
	return s, nil
}

func bufferStatus(s buffer.State, rules tiers.Rules, a *app) tierStatus {
	t := tierStatus{Tier: "BUFFER", Path: s.Path, Size: s.Buffer.Lines, Limit: rules.Limits.BufferLines, Unit: "lines", Files: 1}
	switch {
	case !s.Present:
		t.Files = 0
		if rules.Buffer.Required {
			t.Note = "missing: mem recover"
		} else {
			t.Note = "none"
		}
	case t.Size > t.Limit:
		t.Note = "over its limit: mem rotate"
	case s.Buffer.Empty():
		t.Note = "empty"
	case s.Buffer.Unfinished():
		if last, ok := s.Buffer.Active(rules.Location); ok && a.at.Sub(last) > rules.TTL.AbandonedBuffer {
			t.Note = "unfinished, last active " + last.In(rules.Location).Format("2006-01-02 15:04")
		}
	}
	return t
}

// maxStatusDepth bounds the walk of the memory directories.
const maxStatusDepth = 16

// countFiles counts the Markdown files of each tier, below the directories
// that the layout's patterns start with.
func countFiles(m fs.FS, rules tiers.Rules) (map[tiers.Tier]int, error) {
	counts := map[tiers.Tier]int{}
	var walk func(dir string, depth int) error
	walk = func(dir string, depth int) error {
		entries, err := fs.ReadDir(m, dir)
		if err != nil {
			return nil //nolint:nilerr // health names what cannot be read
		}
		for _, e := range entries {
			name := path.Join(dir, e.Name())
			if e.IsDir() {
				hidden := strings.HasPrefix(e.Name(), ".") && e.Name() != rules.Scratch.Dir
				if depth < maxStatusDepth && !hidden && (dir != "." || rules.Top(e.Name())) {
					if err := walk(name, depth+1); err != nil {
						return err
					}
				}
				continue
			}
			if e.Type().IsRegular() && strings.HasSuffix(name, ".md") {
				counts[rules.TierOf(name)]++
			}
		}
		return nil
	}
	return counts, walk(".", 0)
}

package main

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
	"github.com/tieredmem/mem/lessons"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/workspace"
)

// Here the whole program runs on a disk in memory, command line by command
// line: for scenarios, and for the state machine.

// machine is a real, empty directory in whose place a disk in memory is put:
// what is only looked at outside the memory (does the workspace exist?) is
// looked at there.
var machine = sync.OnceValue(func() string {
	dir, err := os.MkdirTemp("", "mem-machine-")
	if err == nil {
		err = errors.Join(os.MkdirAll(filepath.Join(dir, ".claude", "memory-handoffs"), 0o755), os.MkdirAll(filepath.Join(dir, "home", ".config", "systemd", "user"), 0o755))
	}
	if err == nil {
		dir, err = filepath.EvalSymlinks(dir)
	}
	if err != nil {
		panic(err)
	}
	cleanups = append(cleanups, func() { os.RemoveAll(dir) })
	return dir
})

// cleanups run when all tests have.
var cleanups []func()

// program is mem on a disk in memory.
type program struct {
	disk  durable.FS
	at    time.Time
	zone  string
	stdin string
}

type memoryDisk struct{ below }

func (memoryDisk) Close() error    { return nil }
func (memoryDisk) Network() string { return "" }

// Lstat says that everything is ours.
func (d memoryDisk) Lstat(name string) (durable.Info, error) {
	info, err := d.below.Lstat(name)
	info.UID = uint32(max(0, os.Geteuid()))
	return info, err
}

type exited struct {
	code        int
	out, errout string
}

// err is nil for a command that did its work.
func (e exited) err() error {
	if e.code == exitOK || e.code == exitFindings {
		return nil
	}
	return fmt.Errorf("exit code %d: %s%s", e.code, e.out, e.errout)
}

func (p program) run(args ...string) exited {
	var out, errout bytes.Buffer
	root := machine()
	env := map[string]string{"HOME": filepath.Join(root, "home"), "TZ": p.zone}
	code := run(environment{
		program: "mem", args: append([]string{"-w", root}, args...), stdin: strings.NewReader(p.stdin), stdout: &out, stderr: &errout,
		getenv: func(k string) string { return env[k] }, getwd: func() (string, error) { return root, nil }, now: p.at,
		open: func(dir string) (disk, error) {
			rel, err := filepath.Rel(root, dir)
			if err != nil || !filepath.IsLocal(rel) {
				return nil, &fs.PathError{Op: "open", Path: dir, Err: fs.ErrNotExist}
			}
			rel = filepath.ToSlash(rel)
			if _, err := os.Stat(dir); err == nil { // really there
				if err := durable.MkdirAll(p.disk, rel, 0o755); err != nil {
					return nil, err
				}
			}
			info, err := p.disk.Lstat(rel)
			if err != nil {
				return nil, err
			}
			if !info.Mode.IsDir() {
				return nil, &fs.PathError{Op: "open", Path: dir, Err: errors.New("not a directory")}
			}
			return memoryDisk{below{p.disk, rel}}, nil
		},
		lock: func(string) workspace.Locker { return noLock{} },
	})
	return exited{code, out.String(), errout.String()}
}

// memRun is a command line as a scenario's part.
func memRun(stdin string, args ...string) func(*workspace.Workspace) error {
	return func(w *workspace.Workspace) error {
		e := program{disk: w.Disk, at: w.At, zone: "UTC", stdin: stdin}.run(args...)
		if e.code == exitFindings && args[0] != "health" { // it has not done its work, and says so
			return errors.New(e.out + e.errout)
		}
		return e.err()
	}
}

// programs are the scenarios of command lines.
func programs() []scenario {
	yaml := "layout: canonical\ntimezone: UTC\n"
	claude := "layout: claude\ntimezone: UTC\n"
	facts := map[string]int{"FACT-ONE aaaaaaaa": 1, "FACT-TWO bbbbbbbb": 1}
	fill := func(more map[string]string) map[string]string {
		files := map[string]string{"mem.yaml": yaml, bufPath: fullBuf, notePath: oldNote}
		for k, v := range more {
			files[k] = v
		}
		return files
	}
	draftText := "<!-- mem:review reason=card-exists target=memory/cards/card-1.md sha256=0 at=x -->\n" + cardHandoff(1)
	draft := fill(map[string]string{
		"memory/cards/card-1.md": "another\n",
		"memory/handoff-inbox/20261130T090000.000000Z-0123456789ab-a.md": draftText,
	})
	const draftID = "0123456789ab"
	settings := "{\n  \"model\": \"x\"\n}\n"
	lines := func(n int) string {
		var sb strings.Builder
		for i := range n {
			fmt.Fprintf(&sb, "- BIG-%03d and so on, long enough to count\n", i)
		}
		return sb.String()
	}
	return []scenario{
		{name: "mem init", cmd: "init", files: map[string]string{"MEMORY.md": "# Mine\n#tags: memory\n"}, run: memRun("", "init", "--layout", "canonical"), mend: memRun("", "init", "--layout", "canonical"), want: want{keep: map[string]string{"MEMORY.md": "# Mine\n"}, made: map[string]int{"layout: canonical": 1}, buffer: true}},
		{name: "mem init, first use", cmd: "init", files: map[string]string{}, tweak: func(d *faultfs.Disk) { d.Forget(".mem") }, run: memRun("", "init"), mend: memRun("", "init"), want: want{made: map[string]int{"layout: canonical": 1}, buffer: true}},
		{name: "mem init --write-rules", cmd: "init", files: map[string]string{"mem.yaml": claude, "AGENTS.md": "# Mine\n\n- OLD-AGENT\n"}, run: memRun("", "init", "--write-rules"), mend: memRun("", "init", "--write-rules"), want: want{facts: map[string]int{"OLD-AGENT": 1}, made: map[string]int{"mem:heartbeat begin": 1, "mem:writing begin": 1}}},
		{name: "mem note", cmd: "note", files: fill(nil), run: memRun("", "note", "FACT-NEW cccccccc"), want: want{facts: facts, maybe: map[string]int{"FACT-NEW cccccccc": 1}, keep: map[string]string{notePath: oldNote}, buffer: true}},
		{name: "mem rotate", cmd: "rotate", files: fill(nil), run: memRun("", "rotate", "--force"), again: true, want: want{facts: facts, keep: map[string]string{notePath: oldNote}, buffer: true}},
		{name: "mem rotate --soft", cmd: "rotate", files: fill(map[string]string{bufPath: strings.NewReplacer("T08", "T01", "T09", "T02").Replace(fullBuf) + lines(90)}), run: memRun("", "rotate", "--soft"), again: true, want: want{facts: map[string]int{"FACT-ONE aaaaaaaa": 1, "BIG-029": 1}, keep: map[string]string{notePath: oldNote}, buffer: true}},
		{name: "mem close", cmd: "close", files: fill(nil), run: memRun("", "close", "--decisions", "CHOSE x"), again: true, want: want{facts: facts, maybe: map[string]int{"CHOSE x": 1}, keep: map[string]string{notePath: "# 2026-11-30\n\n- an earlier event\n"}, buffer: true}},
		{name: "mem write", cmd: "write", files: fill(map[string]string{"memory/semantic/x.md": "FACT-OLD dddddddd\n"}), run: memRun("FACT-NEW cccccccc\n", "write", "memory/semantic/x.md"), want: want{facts: facts, either: []string{"FACT-OLD dddddddd", "FACT-NEW cccccccc"}, buffer: true}},
		{name: "mem write, new directories", cmd: "write", files: fill(nil), run: memRun("FACT-NEW cccccccc\n", "write", "memory/semantic/of/x.md"), again: true, want: want{facts: facts, maybe: map[string]int{"FACT-NEW cccccccc": 1}, buffer: true}},
		{name: "mem recover", cmd: "recover", files: fill(map[string]string{bufPath: idle, bufPath + ".rotating": fullBuf}), run: memRun("", "recover"), again: true, want: want{facts: facts, keep: map[string]string{notePath: oldNote}, buffer: true}},
		{name: "mem undo", cmd: "undo", files: fill(nil), setup: memRun("", "note", "FACT-NEW cccccccc"), run: undoNewest, want: want{facts: facts, gone: []string{"FACT-NEW cccccccc"}, buffer: true}},
		{name: "mem trash restore", cmd: "trash", files: draft, setup: memRun("", "inbox", "reject", draftID), run: memRun("", "trash", "restore", hashOf(draftText)), want: want{facts: map[string]int{"another": 1}, maybe: map[string]int{"SOURCE-1": 1, "CARD-1 text": 1}, buffer: true}},
		{name: "mem trash prune", cmd: "trash", files: draft, setup: memRun("", "inbox", "reject", draftID), run: memRun("", "trash", "prune", "--older-than", "1d", "--at", "2027-01-01"), mend: memRun("", "trash", "prune", "--older-than", "1d", "--at", "2027-01-01"), want: want{facts: facts, trash: map[string]int{"CARD-1 text": 0}, buffer: true}},
		{name: "mem receipts prune", cmd: "receipts", files: fill(nil), setup: memRun("", "rotate", "--force"), run: memRun("", "receipts", "prune", "--older-than", "1d", "--at", "2027-01-01"), mend: memRun("", "receipts", "prune", "--older-than", "1d", "--at", "2027-01-01"), want: want{facts: facts, keep: map[string]string{notePath: oldNote}, buffer: true}},
		{name: "mem review", cmd: "review", files: fill(map[string]string{bufPath: idle, oldDay: "# 2026-01-05\n\n- FACT-OLD jjjjjjjj\n\nUpdated: 2026-01-05\nDecisions: none\nSignal: none\nOpen: none\n", errorsMD: someNotes}), setup: memRun("", "init"), run: memRun("", "review"), again: true, want: want{facts: map[string]int{"FACT-OLD jjjjjjjj": 1, "FACT-LESSON gggggggg": 1, "FACT-NEWER hhhhhhhh": 1}, maybe: map[string]int{"## Maintenance": 1}, keep: map[string]string{notePath: oldNote}, buffer: true}},
		{name: "mem archive", cmd: "archive", files: fill(map[string]string{bufPath: idle, oldDay: "# 2026-01-05\n\n- FACT-OLD jjjjjjjj\n"}), run: memRun("", "archive"), again: true, want: want{facts: map[string]int{"FACT-OLD jjjjjjjj": 1}, keep: map[string]string{notePath: oldNote}, buffer: true}},
		{name: "mem archive --legacy", cmd: "archive", files: fill(map[string]string{bufPath: idle, errorsMD: someNotes, ".learnings/OLD.md": "FACT-LEGACY mmmmmmmm\n"}), run: memRun("", "archive", "--legacy"), again: true, want: want{facts: map[string]int{"FACT-LESSON gggggggg": 1, "FACT-NEWER hhhhhhhh": 1, "FACT-LEGACY mmmmmmmm": 1}, keep: map[string]string{notePath: oldNote}, buffer: true}},
		{name: "mem learn", cmd: "learn", files: fill(map[string]string{errorsMD: someNotes}), run: memRun("", "learn", "error", "FACT-LEARNED iiiiiiii"), want: want{facts: map[string]int{"FACT-LESSON gggggggg": 1, "FACT-NEWER hhhhhhhh": 1}, maybe: map[string]int{"FACT-LEARNED iiiiiiii": 1}, buffer: true}},
		{name: "mem promote", cmd: "promote", files: fill(map[string]string{errorsMD: someNotes, "memory/procedural/lessons-learned.md": "# Lessons\n#tags: errors\nlast_verified: 2026-11-01\n\n- FACT-WARM kkkkkkkk\n"}), run: promoteNewest, want: want{facts: map[string]int{"FACT-LESSON gggggggg": 1, "FACT-WARM kkkkkkkk": 1}, maybe: map[string]int{"FACT-NEWER hhhhhhhh": 2, "#promoted:": 1}, buffer: true}},
		{name: "mem verify", cmd: "verify", files: fill(map[string]string{"memory/semantic/x.md": "# X\n#tags: errors\nlast_verified: 2026-11-01\n\n- FACT-WARM kkkkkkkk\n"}), run: memRun("", "verify", "memory/semantic/x.md"), again: true, want: want{facts: map[string]int{"FACT-WARM kkkkkkkk": 1}, maybe: map[string]int{"last_verified: 2026-11-30": 1}, buffer: true}},
		{name: "mem health --fix", cmd: "health", files: fill(map[string]string{notePath: oldNote + "\n- FACT-LATER llllllll\n"}), run: memRun("", "health", "--fix"), again: true, want: want{facts: map[string]int{"FACT-LATER llllllll": 1, "an earlier event": 1}, buffer: true}},
		{name: "mem ingest", cmd: "ingest", files: fill(map[string]string{boxDir + "/a.md": cardHandoff(1)}), run: memRun("", "ingest"), mend: memRun("", "ingest"), want: want{facts: map[string]int{"SOURCE-1": 1, "CARD-1": 2}, buffer: true}},
		{name: "mem ingest, no handoff", cmd: "ingest", files: fill(map[string]string{boxDir + "/README.md": "hello SOURCE-1\n"}), run: memRun("", "ingest"), mend: memRun("", "ingest"), want: want{facts: map[string]int{"SOURCE-1": 1}, buffer: true}},
		{name: "mem handoff new", cmd: "handoff", files: fill(map[string]string{boxDir + "/README.md": "x\n"}), run: memRun("### Begin\n\n- END-OF-IT\n", "handoff", "new", "--type", "workflow", "--title", "BEGIN-OF-IT", "--document", "TOOLS.md"), want: want{facts: facts, maybe: map[string]int{"BEGIN-OF-IT": 1, "- END-OF-IT": 1}, even: [][2]string{{"BEGIN-OF-IT", "- END-OF-IT"}}, buffer: true}},
		{name: "mem handoff prune", cmd: "handoff", files: fill(map[string]string{boxDir + "/processed/2026-01-01-a--0123456789ab.md": "SOURCE-1\n", boxDir + "/processed/2027-01-20-c--0123456789ad.md": "SOURCE-3\n"}), run: memRun("", "handoff", "prune", "--older-than", "30d", "--at", "2027-02-01"), mend: memRun("", "handoff", "prune", "--older-than", "30d", "--at", "2027-02-01"), want: want{facts: map[string]int{"SOURCE-3": 1}, buffer: true}},
		{name: "mem inbox accept", cmd: "inbox", files: draft, run: memRun("", "inbox", "accept", draftID), want: want{facts: map[string]int{"CARD-1 text": 1}, gone: []string{"another"}, buffer: true}},
		{name: "mem inbox reject", cmd: "inbox", files: draft, run: memRun("", "inbox", "reject", draftID), want: want{facts: map[string]int{"another": 1}, gone: []string{"CARD-1 text"}, buffer: true}},
		{name: "mem feedback add", cmd: "feedback", files: map[string]string{"mem.yaml": claude, "memory/feedback.md": "# Feedback\n\n### F001: OLD-RULE (2026-01-01)\n- **Why**: x\n"}, run: memRun("", "feedback", "add", "--correction", "RULE-1 to be kept", "--why", "because", "--how", "always"), want: want{facts: map[string]int{"OLD-RULE": 1}, maybe: map[string]int{"RULE-1": 1, "### F002": 1}}},
		{name: "mem heartbeat --apply", cmd: "heartbeat", files: map[string]string{"mem.yaml": claude, "MEMORY.md": "# Memory\n\n## user\n\n- WHO\n\n## reference\n\n### Big\n\n" + lines(260) + "\n### Small\n- STAYS\n"}, run: memRun("", "heartbeat", "--apply"), again: true, want: want{facts: map[string]int{"WHO": 1, "STAYS": 1, "BIG-000": 1, "BIG-259": 1}}},
		{name: "mem session promote", cmd: "session", files: map[string]string{"mem.yaml": "layout: sessions\ntimezone: UTC\n", "memory_sessions/long_memory.md": "# Long-term memory\n", "memory_sessions/logs/2026-01-02.md": "OLD-LOG\n", "memory_sessions/logs/2026-11-29.md": "## Decisions made\n- NEW-DECISION\n"}, run: memRun("", "session", "promote"), again: true, want: want{facts: map[string]int{"OLD-LOG": 1}}},
		{name: "mem hook install", cmd: "hook", files: fill(map[string]string{".claude/settings.json": settings, "CLAUDE.md": "# Mine\n\n- OLD-CLAUDE\n"}), run: memRun("", "hook", "install", "claude", "--with-rules"), mend: memRun("", "hook", "install", "claude", "--with-rules"), want: want{facts: map[string]int{"OLD-CLAUDE": 1, "\"model\": \"x\"": 1}, made: map[string]int{"hook run SessionEnd": 1}, even: [][2]string{{"SessionStart", "SessionEnd"}}, buffer: true}},
		{name: "mem hook remove", cmd: "hook", files: fill(map[string]string{".claude/settings.json": settings, "CLAUDE.md": "# Mine\n\n- OLD-CLAUDE\n"}), setup: memRun("", "hook", "install", "claude", "--with-rules"), run: memRun("", "hook", "remove", "claude"), mend: memRun("", "hook", "remove", "claude"), want: want{facts: map[string]int{"OLD-CLAUDE": 1, "\"model\": \"x\"": 1}, made: map[string]int{settings: 1, "hook run": 0}, buffer: true}},
		{name: "mem hook run", cmd: "hook", files: fill(nil), run: memRun(`{"session_id":"s","hook_event_name":"SessionEnd","reason":"exit"}`, "hook", "run", "SessionEnd", "--host", "claude"), want: want{facts: facts, keep: map[string]string{notePath: oldNote}, buffer: true}},
		{name: "mem schedule install", cmd: "schedule", files: fill(nil), run: memRun("", "schedule", "install", "review", "--backend", "systemd"), mend: memRun("", "schedule", "install", "review", "--backend", "systemd"), want: want{facts: facts, made: map[string]int{"[Timer]": 1, "[Service]": 1, "WantedBy=timers.target": 1}, buffer: true}},
		{name: "mem schedule remove", cmd: "schedule", files: fill(nil), setup: memRun("", "schedule", "install", "review", "--backend", "systemd"), run: memRun("", "schedule", "remove", "review", "--backend", "systemd"), mend: memRun("", "schedule", "remove", "review", "--backend", "systemd"), want: want{facts: facts, made: map[string]int{"[Timer]": 0, "[Service]": 0}, buffer: true}},
		{name: "mem trust", cmd: "trust", files: fill(nil), run: memRun("", "trust"), mend: memRun("", "trust"), want: want{facts: facts, buffer: true}},
	}
}

func hashOf(text string) string { return strings.TrimPrefix(plan.Hash([]byte(text)), "sha256:")[:20] }

// undoNewest takes the newest receipt back.
func undoNewest(w *workspace.Workspace) error {
	entries, err := fs.ReadDir(w.View(), ".mem/receipts/2026/11")
	if err != nil {
		return err
	}
	if len(entries) == 0 {
		return errors.New("nothing to undo")
	}
	return memRun("", "undo", strings.TrimSuffix(entries[len(entries)-1].Name(), ".json"))(w)
}

// promoteNewest promotes the newest lesson.
func promoteNewest(w *workspace.Workspace) error {
	all, err := lessons.Read(w.View(), w.Rules)
	if err != nil || len(all) == 0 {
		return errors.Join(err, errors.New("no lessons"))
	}
	return memRun("", "promote", all[len(all)-1].Key)(w)
}

// TestPrograms: every one of them does what it should when nothing goes wrong.
func TestPrograms(t *testing.T) {
	rules := testRules(t, "canonical")
	for _, s := range programs() {
		t.Run(s.name, func(t *testing.T) {
			c := s.on(t, rules, nil)
			d := c.Disk()
			before := d.Key()
			if err := c.Run(d); err != nil {
				t.Fatal(err)
			}
			if d.Key() == before {
				t.Error("it changed nothing")
			}
			for _, bad := range c.Check(d, true) {
				t.Error(bad)
			}
			if t.Failed() {
				for _, name := range d.Names() {
					text, _ := d.Text(name)
					t.Logf("%s: %q", name, text)
				}
			}
		})
	}
}

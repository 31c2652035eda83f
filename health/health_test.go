package health

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
)

var now = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

func testRules(t testing.TB, mem string) tiers.Rules {
	t.Helper()
	c, err := tiers.ParseConfig("mem.yaml", []byte(mem))
	if err != nil {
		t.Fatal(err)
	}
	r, err := tiers.Load(tiers.Sources{Memory: fstest.MapFS{}, Mem: &c, Zone: time.UTC})
	if err != nil {
		t.Fatal(err)
	}
	return r
}

const (
	goodBuffer = "# Working Buffer\ncreated: 2026-11-30T08:00:00Z\nlast_active: 2026-11-30T08:00:00+0800\n\n## Active Task:\n"
	goodNote   = "# 2026-11-29\n\n- something\n\nUpdated: 2026-11-29\nDecisions: none\nSignal: none\nOpen: none\n"
	goodWarm   = "# Projects\n#tags: audit, docker\nlast_verified: 2026-11-01\n\n- alpha\n"
	memoryMD   = "MEMORY.md"
	bufferMD   = "memory/working-buffer.md"
	projects   = "memory/semantic/projects.md"
	noteMD     = "memory/episodic/2026-11-29.md"
)

// healthy is a canonical workspace without a finding.
func healthy() fstest.MapFS {
	return fstest.MapFS{
		memoryMD: text("# Memory\n#tags: memory\n\n## Open Questions\n\n- one\n"), bufferMD: text(goodBuffer), projects: text(goodWarm), noteMD: text(goodNote),
		"memory/procedural/how.md": text("# How\n#tags: ssh\nlast_verified: 2026-11-01\n"), "memory/archive/.keep": text(""), ".learnings/ERRORS.md": text("# Errors\n\n- 2026-11-29: one lesson of some words\n"),
		ReviewJob: text(`{"at":"2026-11-30T09:00:00Z","outcome":"reviewed","success":"2026-11-30T09:00:00Z","week":"2026-W49"}`),
	}
}

func text(s string) *fstest.MapFile { return &fstest.MapFile{Data: []byte(s), Mode: 0o644} }

func id(seconds int) string {
	return plan.Stamp(now.Add(-time.Hour+time.Duration(seconds)*time.Second)) + "-0123456789ab"
}

// rotation is the receipt of a rotation of some text into a note.
func rotation(t *testing.T, note string, block []byte) *fstest.MapFile {
	t.Helper()
	p := plan.Plan{Format: plan.Format, ID: id(0), Command: "rotate", At: now.Add(-time.Hour), Outcome: plan.Applied, Steps: []plan.Step{
		{Kind: plan.Append, Path: note, Place: entry.AboveClosure, Text: block},
	}}
	b, err := json.Marshal(p)
	if err != nil {
		t.Fatal(err)
	}
	return text(string(b))
}

func block(buf string) []byte {
	return entry.Block([]byte(buf), plan.Hash([]byte(buf)), time.UTC, "\n")
}

// TestChecks: for every check a case that passes (the healthy workspace, which
// has no finding at all) and cases that do not.
func TestChecks(t *testing.T) {
	many := func(n int, line string) string { return strings.Repeat(line, n) }
	secret := "pass" + `word = "hV7kQ2mZpL0vRt"`
	rotated := block(goodBuffer + "- FACT\n")
	tests := []struct {
		name, mem string // mem.yaml, if not canonical
		change    func(fstest.MapFS)
		check     string
		severity  Severity
		path      string
		line      int
		says      string
	}{
		{"HOT missing", "", func(m fstest.MapFS) { delete(m, memoryMD) }, "hot.present", Fail, memoryMD, 0, "missing"},
		{"HOT a symlink", "", func(m fstest.MapFS) { m[memoryMD] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte("x")} }, "hot.present", Fail, memoryMD, 0, "not a regular file"},
		{"HOT twice", "", func(m fstest.MapFS) { m["memory.md"] = text("x\n") }, "hot.present", Warn, "memory.md", 0, "MEMORY.md"},
		{"HOT of 61 lines", "", func(m fstest.MapFS) { m[memoryMD] = text("# M\n#tags: memory\n## Big\n" + many(58, "- x\n")) }, "hot.budget", Fail, memoryMD, 61, `61 lines, the limit is 60; line 61 is the first beyond it; largest sections: "Big" 59`},
		{"HOT in characters", "layout: openclaw\nlimits: {hot_characters: 13000}\n", func(m fstest.MapFS) { m[memoryMD] = text(many(200, strings.Repeat("ä", 65)+"\n")) }, "hot.budget", Fail, memoryMD, 197, "13200 characters, the limit is 13000"},
		{"six open questions", "", func(m fstest.MapFS) {
			m[memoryMD] = text("# M\n#tags: memory\n### OPEN questions\n" + many(3, "- q\n  - sub\n") + many(3, "* r\n") + "## Other\n- no\n")
		}, "hot.open-questions", Fail, memoryMD, 12, "6 open questions"},
		{"a decision's link is broken", "", func(m fstest.MapFS) {
			m[memoryMD] = text("# M\n#tags: memory\n## Active Decisions\n- [x](memory/none.md)\n")
		}, "hot.decision-links", Fail, memoryMD, 4, "memory/none.md: there is no such file"},
		{"a decision's bare path is broken", "", func(m fstest.MapFS) {
			m[memoryMD] = text("# M\n#tags: memory\n## Active Decisions\n- see memory/semantic/none.md.\n")
		}, "hot.decision-links", Fail, memoryMD, 4, "no such file"},
		{"a decision's wiki link is broken", "", func(m fstest.MapFS) { m[memoryMD] = text("# M\n#tags: memory\n## Active Decisions\n- [[nowhere|x]]\n") }, "hot.decision-links", Fail, memoryMD, 4, "no memory file of that name"},
		{"a decision's anchor is broken", "", func(m fstest.MapFS) {
			m[memoryMD] = text("# M\n#tags: memory\n## Active Decisions\n- [x](memory/semantic/projects.md#none)\n")
		}, "hot.decision-links", Fail, memoryMD, 4, "no such heading"},
		{"no tags line", "", func(m fstest.MapFS) { m[projects] = text("# P\n\nlast_verified: 2026-11-01\n") }, "tags.line2", Fail, projects, 2, "not a #tags: line"},
		{"an empty tags line", "", func(m fstest.MapFS) { m[projects] = text("# P\n#tags: , |\nlast_verified: 2026-11-01\n") }, "tags.line2", Fail, projects, 2, "no tag"},
		{"an unknown tag", "", func(m fstest.MapFS) { m[projects] = text("# P\n#tags: Docker\nlast_verified: 2026-11-01\n") }, "tags.vocabulary", Fail, projects, 2, `"Docker" is not in the frozen vocabulary; nearest: docker`},
		{"odd tags", "", func(m fstest.MapFS) { m[projects] = text("# P\r\n#tags: it's -n\r\nlast_verified: 2026-11-01\r\n") }, "tags.vocabulary", Fail, projects, 2, `"it's"`},
		{"not verified", "", func(m fstest.MapFS) { m[projects] = text("# P\n#tags: audit\n") }, "warm.verified", Fail, projects, 1, "no last_verified"},
		{"verified 30 days ago", "", func(m fstest.MapFS) { m[projects] = text("# P\n#tags: audit\n> last_verified: 2026-10-31\n") }, "warm.verified", Fail, projects, 3, "30 days ago"},
		{"verified in the future", "", func(m fstest.MapFS) { m[projects] = text("# P\n#tags: audit\nlast_verified: 2099-01-01\n") }, "warm.verified", Fail, projects, 3, "in the future"},
		{"verified on no day", "", func(m fstest.MapFS) { m[projects] = text("# P\n#tags: audit\nlast_verified: 2026-02-30\n") }, "warm.verified", Fail, projects, 3, `"2026-02-30" is not a date`},
		{"verified at no time", "", func(m fstest.MapFS) { m[projects] = text("# P\n#tags: audit\nlast_verified: 2026-13-45T99:99:99Z\n") }, "warm.verified", Fail, projects, 3, "is not a date"},
		{"a relative link is broken", "", func(m fstest.MapFS) { m[projects] = text(goodWarm + "[x](../none.md \"t\")\n") }, "warm.links", Warn, projects, 6, "no such file"},
		{"a fact has two homes", "", func(m fstest.MapFS) {
			m[projects] = text(goodWarm + "- The server  runs on port eight\n")
			m["memory/semantic/z.md"] = text(goodWarm + "\n* the server runs on\n  PORT eight.\n")
		}, "warm.duplicates", Warn, "memory/semantic/z.md", 7, "also stands in memory/semantic/projects.md:6"},
		{"no buffer", "", func(m fstest.MapFS) { delete(m, bufferMD) }, "buffer.header", Fail, bufferMD, 0, "no working buffer"},
		{"the buffer's first line", "", func(m fstest.MapFS) { m[bufferMD] = text("# Buffer\ntext\n") }, "buffer.header", Fail, bufferMD, 1, "line 1"},
		{"the buffer's time without an offset", "", func(m fstest.MapFS) {
			m[bufferMD] = text("# Working Buffer\ncreated: 2026-11-30T08:00:00\nlast_active: 2026-11-30T08:00:00Z\n\n- x\n")
		}, "buffer.header", Fail, bufferMD, 2, "offset"},
		{"the buffer's line 4", "", func(m fstest.MapFS) {
			m[bufferMD] = text("# Working Buffer\ncreated: 2026-11-30T08:00:00Z\nlast_active: 2026-11-30T08:00:00Z\n- x\n")
		}, "buffer.header", Fail, bufferMD, 4, "not blank"},
		{"another layout's buffer", "layout: openclaw\n", func(m fstest.MapFS) { m[bufferMD] = text("text\n") }, "buffer.header", Warn, bufferMD, 1, "line 1"},
		{"81 lines without a newline", "", func(m fstest.MapFS) { m[bufferMD] = text(strings.TrimSuffix(goodBuffer+many(76, "- x\n"), "\n")) }, "buffer.size", Fail, bufferMD, 81, "81 lines, the limit is 80"},
		{"a rotation was interrupted", "", func(m fstest.MapFS) { m[bufferMD+".rotating"] = text("x") }, "buffer.interrupted", Fail, bufferMD + ".rotating", 0, "interrupted rotation"},
		{"a second .pending", "", func(m fstest.MapFS) { m[bufferMD+".pending-2"] = text("x") }, "buffer.interrupted", Fail, bufferMD + ".pending-2", 0, "interrupted rotation"},
		{"a stale sentinel", "", func(m fstest.MapFS) { m[bufferMD+".lock"] = text("") }, "buffer.interrupted", Fail, bufferMD + ".lock", 0, "stale"},
		{"an open transaction", "", func(m fstest.MapFS) { m[".mem/tx/"+id(0)+".json"] = text("{}") }, "buffer.interrupted", Fail, ".mem/tx/" + id(0) + ".json", 0, "not finished"},
		{"an abandoned buffer", "", func(m fstest.MapFS) { m[bufferMD] = text(goodBuffer + "- half done\n") }, "buffer.abandoned", Warn, bufferMD, 0, "last active"},
		{"rotated text is gone", "", func(m fstest.MapFS) { m[".mem/receipts/2026/11/"+id(0)+".json"] = rotation(t, noteMD, rotated) }, "buffer.orphans", Fail, noteMD, 0, "is gone"},
		{"rotated text was edited", "", func(m fstest.MapFS) {
			m[".mem/receipts/2026/11/"+id(0)+".json"] = rotation(t, noteMD, rotated)
			m[noteMD] = text("# 2026-11-29\n\n" + strings.Replace(string(rotated), "FACT", "FACTS", 1) + "\nUpdated: 2026-11-29\nDecisions: none\nSignal: none\nOpen: none\n")
		}, "buffer.orphans", Info, noteMD, 5, "edited since"},
		{"an active session", "", func(m fstest.MapFS) {
			m[bufferMD] = text(strings.ReplaceAll(goodBuffer, "T08:00:00+0800", "T11:30:00Z"))
		}, "session.active", Info, bufferMD, 0, "a session is active"},
		{"a note without a closure block", "", func(m fstest.MapFS) { m[noteMD] = text("# x\n- y\n") }, "cold.closure", Fail, noteMD, 2, "does not end with a closure block"},
		{"today's note without one", "", func(m fstest.MapFS) { m["memory/episodic/2026-11-30.md"] = text("# x\n") }, "cold.closure", Warn, "memory/episodic/2026-11-30.md", 1, "does not end"},
		{"an empty field", "", func(m fstest.MapFS) { m[noteMD] = text(strings.Replace(goodNote, "Signal: none", "Signal:", 1)) }, "cold.closure", Fail, noteMD, 7, "Signal is empty"},
		{"no date", "", func(m fstest.MapFS) {
			m[noteMD] = text(strings.Replace(goodNote, "Updated: 2026-11-29", "Updated: today", 1))
		}, "cold.closure", Fail, noteMD, 5, `"today" is not a date`},
		{"fields out of order", "", func(m fstest.MapFS) {
			m[noteMD] = text("# x\n\nUpdated: 2026-11-29\nSignal: none\nDecisions: none\nOpen: none\n")
		}, "cold.closure", Fail, noteMD, 6, "does not end with"},
		{"a displaced closure block", "", func(m fstest.MapFS) { m[noteMD] = text(goodNote + "\n- late\n") }, "cold.closure", Fail, noteMD, 5, "text stands after"},
		{"a note of 31 days", "", func(m fstest.MapFS) {
			m["memory/episodic/2026-10-30.md"] = text(strings.ReplaceAll(goodNote, "11-29", "10-30"))
		}, "cold.count", Warn, "memory/episodic/2026-10-30.md", 0, "1 of 2 daily notes are older than 30 days"},
		{"a note of 45 days", "", func(m fstest.MapFS) {
			m["memory/episodic/2026-10-16.md"] = text(strings.ReplaceAll(goodNote, "11-29", "10-16"))
		}, "cold.count", Fail, "memory/episodic/2026-10-16.md", 0, "45 days"},
		{"no daily note's name", "", func(m fstest.MapFS) { m["memory/episodic/2026-1-5.md"] = text("x\n") }, "cold.names", Warn, "memory/episodic/2026-1-5.md", 0, "not named by a day"},
		{"a note of tomorrow", "", func(m fstest.MapFS) { m["memory/episodic/2026-12-01.md"] = text(goodNote) }, "cold.names", Warn, "memory/episodic/2026-12-01.md", 0, "in the future"},
		{"a note of last year", "", func(m fstest.MapFS) {
			m["memory/episodic/2026-11-28.md"] = text(goodNote)
			m["memory/episodic/2025-11-30.md"] = text(goodNote)
		}, "cold.names", Warn, "memory/episodic/2025-11-30.md", 0, "is its year right?"},
		{"notes in two places", "", func(m fstest.MapFS) { m["memory/2026-11-28.md"] = text(goodNote) }, "cold.names", Warn, "memory", 0, "memory and in memory/episodic"},
		{"a vanished note", "", func(m fstest.MapFS) {
			m[NotesFile] = text(`{"at":"2026-11-23T09:00:00Z","notes":["memory/episodic/2026-11-20.md","` + noteMD + `"]}`)
		}, "cold.vanished", Fail, "memory/episodic/2026-11-20.md", 0, "is gone"},
		{"a credential", "", func(m fstest.MapFS) { m[projects] = text(goodWarm + secret + "\n") }, "cold.secrets", Fail, projects, 6, "assigned-secret"},
		{"a SCRATCH file of another name", "", func(m fstest.MapFS) { m[".learnings/other.md"] = text("x\n") }, "scratch.canonical", Warn, ".learnings/other.md", 0, "is not one of"},
		{"a SCRATCH file in lower case", "", func(m fstest.MapFS) { m[".learnings/learnings.md"] = text("x\n") }, "scratch.canonical", Warn, ".learnings/learnings.md", 0, "agents look for .learnings/LEARNINGS.md"},
		{"a lesson in two files", "", func(m fstest.MapFS) {
			m[".learnings/LEARNINGS.md"] = text("\n- 2026-11-01: One  lesson of some words.\n")
		}, "scratch.duplicates", Warn, ".learnings/LEARNINGS.md", 2, "also stands in .learnings/ERRORS.md:3"},
		{"damaged UTF-8", "", func(m fstest.MapFS) { m[projects] = text(goodWarm + "caf\xe9\n") }, "text.encoding", Warn, projects, 6, fmt.Sprintf("at byte %d", len(goodWarm)+3)},
		{"a NUL", "", func(m fstest.MapFS) { m[projects] = text(goodWarm + "a\x00b\n") }, "text.encoding", Warn, projects, 6, "NUL"},
		{"UTF-16", "", func(m fstest.MapFS) { m[projects] = text("\xff\xfe#\x00 \x00P\x00\n\x00") }, "text.encoding", Fail, projects, 0, "UTF-16"},
		{"a symlink", "", func(m fstest.MapFS) {
			m["memory/semantic/l.md"] = &fstest.MapFile{Mode: fs.ModeSymlink | 0o777, Data: []byte("x")}
		}, "fs.shape", Warn, "memory/semantic/l.md", 0, "symlink"},
		{"a FIFO", "", func(m fstest.MapFS) { m["memory/semantic/p.md"] = &fstest.MapFile{Mode: fs.ModeNamedPipe | 0o644} }, "fs.shape", Warn, "memory/semantic/p.md", 0, "no regular file"},
		{"case twins", "", func(m fstest.MapFS) {
			m["memory/semantic/Projects.md"] = text(strings.Replace(goodWarm, "alpha", "beta", 1))
		}, "fs.shape", Warn, "memory/semantic/Projects.md", 0, "differs only in case from memory/semantic/projects.md"},
		{"a missing directory", "", func(m fstest.MapFS) { delete(m, "memory/archive/.keep") }, "fs.shape", Warn, "memory/archive", 0, "missing"},
		{"an old draft", "", func(m fstest.MapFS) { m["memory/handoff-inbox/20261101T000000.000000Z-x.md"] = text("x") }, "inbox.waiting", Warn, "memory/handoff-inbox/20261101T000000.000000Z-x.md", 0, "1 of 1 review drafts wait"},
		{"no review for nine days", "", func(m fstest.MapFS) { m[ReviewJob] = text(`{"success":"2026-11-21T09:00:00Z"}`) }, "jobs.overdue", Warn, ReviewJob, 0, "9 days ago"},
		{"no review ever", "", func(m fstest.MapFS) {
			delete(m, ReviewJob)
			m["memory/episodic/2026-11-10.md"] = text(goodNote)
		}, "jobs.overdue", Warn, ReviewJob, 0, "never run"},
		{"two feedback entries of one number", "layout: claude\n", func(m fstest.MapFS) {
			m["memory/feedback.md"] = text("# Feedback\n\n<!-- ### F001: example -->\n### F001: a (2026-01-01)\n\n### F1: b (2026-01-02)\n")
		}, "feedback.ids", Warn, "memory/feedback.md", 6, "F001 stands there twice, first in line 4"},
		{"an exchange waits", "layout: sessions\n", func(m fstest.MapFS) { m[".mem/spool/a.json"] = text(`{"at":"2026-11-28T09:00:00Z"}`) }, "sessions.spool", Warn, ".mem/spool", 0, "1 exchange waits"},
		{"hooks that never ran", "", func(m fstest.MapFS) {
			m[HookInstalls] = text(`{"/x":{"host":"claude","path":"/x","at":"2026-11-20T09:00:00Z","events":["Stop"]}}`)
		}, "jobs.overdue", Warn, HookInstalls, 0, "have never run"},
		{"a hook that failed", "", func(m fstest.MapFS) {
			m[HookFailures+"/1.json"] = text(`{"host":"codex","event":"Stop","at":"2026-11-30T08:00:00Z","error":"no room"}`)
		}, "jobs.overdue", Warn, HookFailures, 0, "the Stop hook of codex failed once since 2026-11-30 08:00, at last with: no room"},
		{"what the host cuts", "layout: openclaw\nlimits: {hot_characters: 50000}\n", func(m fstest.MapFS) { m[memoryMD] = text(many(300, strings.Repeat("x", 99)+"\n")) }, "load.simulated", Warn, memoryMD, 201, "first 20000 of 30000 characters"},
		{"what the host skips", "layout: openclaw\n", func(m fstest.MapFS) { m["memory/2026-11-29.md"] = text(many(2000, "xxxxxxxxx\n")) }, "load.simulated", Warn, "memory/2026-11-29.md", 0, "skips notes over 16384"},
	}
	covered := map[string]bool{}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			mem := tt.mem
			if mem == "" {
				mem = "layout: canonical\n"
			}
			m := healthy()
			tt.change(m)
			r, err := Check(m, testRules(t, mem), now, Options{})
			if err != nil {
				t.Fatal(err)
			}
			i := slices.IndexFunc(r.Findings, func(f Finding) bool {
				return f.Check == tt.check && f.Path == tt.path && strings.Contains(f.Message, tt.says)
			})
			if i < 0 {
				t.Fatalf("no such finding among %+v", r.Findings)
			}
			f := r.Findings[i]
			if f.Severity != tt.severity || f.Line != tt.line {
				t.Errorf("severity %s line %d, want %s %d: %s", f.Severity, f.Line, tt.severity, tt.line, f.Message)
			}
			if f.Fix == "" {
				t.Error("no fix is named")
			}
			if only, err := Check(m, testRules(t, mem), now, Options{Only: []string{tt.check}}); err != nil || slices.ContainsFunc(only.Findings, func(f Finding) bool { return f.Check != tt.check }) || len(only.Findings) == 0 {
				t.Errorf("--only %s: %+v, %v", tt.check, only.Findings, err)
			}
			if skip, err := Check(m, testRules(t, mem), now, Options{Skip: []string{tt.check}}); err != nil || slices.ContainsFunc(skip.Findings, func(f Finding) bool { return f.Check == tt.check }) {
				t.Errorf("--skip %s: %+v, %v", tt.check, skip.Findings, err)
			}
		})
		covered[tt.check] = true
	}
	for _, c := range Checks {
		if !covered[c.ID] {
			t.Errorf("%s has no failing case", c.ID)
		}
		if c.Rule == "" || c.Source == "" || c.Mend == "" || c.Title == "" {
			t.Errorf("%s does not explain itself", c.ID)
		}
	}
}

func TestAHealthyMemoryHasNoFindings(t *testing.T) {
	m := healthy()
	m[memoryMD] = text("# M\n#tags: memory\n## Active Decisions\n- [a](memory/semantic/projects.md) [b](#active-decisions) [[projects]] memory/episodic/2026-01-05.md\n- `[x](none.md)` https://example.org/x.md\n")
	m["memory/archive/2026/01/2026-01-05.md"] = text("old\n")
	m["memory/episodic/README.md"], m["memory/semantic/TEMPLATE.md"] = text("x\n"), text("x\n")
	m["memory/semantic/front.md"] = text("# F\n#tags: #docker|ssh audit\nlast_verified: \"2026-11-02\"\n")
	m[noteMD] = text(goodNote + "\n\n")
	m[".mem/receipts/2026/11/"+id(0)+".json"] = rotation(t, "memory/episodic/2026-01-05.md", block(goodBuffer+"- FACT\n"))
	m["memory/archive/2026/01/2026-01-05-2.md"] = text("x\n" + string(block(goodBuffer+"- FACT\n")))
	m["memory/handoff-inbox/x.md"] = text("pass" + `word = "hV7kQ2mZpL0vRt"`) // not memory
	m["memory/.dreams/x.md"] = text("x")
	r, err := Check(m, testRules(t, "layout: canonical\n"), now, Options{})
	if err != nil || len(r.Findings) > 0 {
		t.Fatalf("%v: %+v", err, r.Findings)
	}
}

func TestWhileAnotherRuns(t *testing.T) {
	m := healthy()
	m[bufferMD+".rotating"] = text("x")
	r, err := Check(m, testRules(t, "layout: canonical\n"), now, Options{Running: "mem rotate, pid 1"})
	if err != nil || r.Count(Fail) != 0 || r.Count(Info) != 1 {
		t.Fatalf("%v: %+v", err, r.Findings)
	}
}

func TestSeverityFromMemYAML(t *testing.T) {
	m := healthy()
	m[noteMD] = text("# x\n")
	for mem, want := range map[string]Severity{"checks: {cold.closure: warn}": Warn, "checks: {cold.closure: fail}": Fail} {
		r, err := Check(m, testRules(t, "layout: canonical\n"+mem+"\n"), now, Options{})
		if err != nil || len(r.Findings) != 1 || r.Findings[0].Severity != want {
			t.Errorf("%s: %v %+v", mem, err, r.Findings)
		}
	}
	if r, err := Check(m, testRules(t, "layout: canonical\nchecks: {cold.closure: off}\n"), now, Options{}); err != nil || len(r.Findings) != 0 {
		t.Errorf("off: %v %+v", err, r.Findings)
	}
	var unknown *UnknownError
	if _, err := Check(m, testRules(t, "layout: canonical\nchecks: {cold.closures: off}\n"), now, Options{}); err == nil || !strings.Contains(err.Error(), "cold.closures") {
		t.Errorf("an unknown check: %v %v", err, unknown)
	}
}

package health

import (
	"slices"

	"github.com/tieredmem/mem/tiers"
)

// Invariant is one thing that must hold.
type Invariant struct {
	ID       string
	Tier     string
	Severity Severity
	Title    string // what is checked, in a few words
	Rule     string // what passes
	Source   string // where the rule comes from
	Mend     string // what to do when it does not hold
	Fixable  bool   // --fix can mend it

	needs func(tiers.Rules) bool // nil: every layout
	whole func(*pass, *found)    // looks at all files together, after the pass
}

func (c Invariant) applies(r tiers.Rules) bool { return c.needs == nil || c.needs(r) }

// Find returns a check by its id.
func Find(id string) (Invariant, bool) {
	i := slices.IndexFunc(Checks, func(c Invariant) bool { return c.ID == id })
	if i < 0 {
		return Invariant{}, false
	}
	return Checks[i], true
}

const (
	sourceTiered = "tiered memory"
	sourceField  = "workspaces in the field"
)

func hasBuffer(r tiers.Rules) bool  { return r.Buffer.File != "" }
func hasScratch(r tiers.Rules) bool { return r.Scratch.Dir != "" }
func hasLoad(r tiers.Rules) bool    { return r.Load.FileCharacters > 0 }

// Checks are all invariants, in the order in which they are listed.
var Checks []Invariant

func init() { // in a function, since the checks' functions use the list
	Checks = []Invariant{
		{
			ID: "hot.present", Tier: "HOT", Severity: Fail, Title: "the always-loaded file is there",
			Rule:   "The layout's HOT file is a regular file. A second one whose name differs in case is named; the layout's name wins.",
			Source: sourceTiered + ", 4 Primary Tiers", Mend: "mem init makes one; two files are merged by hand", whole: (*pass).hotPresent,
		},
		{
			ID: "hot.budget", Tier: "HOT", Severity: Fail, Title: "the always-loaded file is within its budget",
			Rule:   "At most so much, in the layout's unit (canonical: 60 lines). What is beyond may never be read.",
			Source: sourceTiered + ", Directory Structure", Mend: "move the largest section to a WARM file and leave a link",
		},
		{
			ID: "hot.open-questions", Tier: "HOT", Severity: Fail, Title: "few open questions",
			Rule:   "At most 5 list items of the first level under a heading \"Open Questions\".",
			Source: sourceTiered + ", 9. Health Check", Mend: "answer or drop some, or move them to a daily note",
		},
		{
			ID: "hot.decision-links", Tier: "HOT", Severity: Fail, Title: "links of active decisions lead somewhere",
			Rule:   "Every link under \"Active Decisions\" resolves: Markdown links, [[wiki links]], bare memory/….md paths, #anchors. Archived notes count where they moved to.",
			Source: sourceTiered + ", 9. Health Check", Mend: "correct the link, or remove the decision", whole: (*pass).decisionLinks,
		},
		{
			ID: "tags.line2", Tier: "WARM", Severity: Fail, Title: "tags on line 2",
			Rule:   "Line 2 is \"#tags:\" with at least one tag. Commas, bars and blanks separate; a # before each tag is allowed.",
			Source: sourceTiered + ", 10. Grep-Based Tag Discovery", Mend: "write a #tags: line as line 2, with tags of the vocabulary (mem tags)",
		},
		{
			ID: "tags.vocabulary", Tier: "WARM", Severity: Fail, Title: "tags of the frozen vocabulary",
			Rule:   "Each tag is in the vocabulary, exactly as spelled there.",
			Source: sourceTiered + ", Tag Vocabulary (Frozen)", Mend: "use a known tag, or set tags: in mem.yaml to your own vocabulary",
		},
		{
			ID: "warm.verified", Tier: "WARM", Severity: Fail, Title: "recently verified",
			Rule:   "The header's last_verified is a date, not in the future, and younger than 30 days (29 passes, 30 does not).",
			Source: sourceTiered + ", 9. Health Check", Mend: "make sure that the file still tells the truth, then run mem verify on it",
		},
		{
			ID: "warm.links", Tier: "WARM", Severity: Warn, Title: "relative links resolve",
			Rule:   "Every relative Markdown link leads to a file.",
			Source: sourceField, Mend: "correct the link", whole: (*pass).warmLinks,
		},
		{
			ID: "warm.duplicates", Tier: "WARM", Severity: Warn, Title: "each fact has one home",
			Rule:   "No list item or paragraph of six words or more stands in two HOT or WARM files. Case, white space and punctuation at the ends do not count.",
			Source: sourceTiered + ", 3. Canonical Owner Rule", Mend: "keep it in the file that owns such facts, and take it out of the other", whole: (*pass).duplicateFacts,
		},
		{
			ID: "buffer.header", Tier: "BUFFER", Severity: Fail, Title: "the buffer's header", Fixable: true, needs: hasBuffer,
			Rule:   "Line 1 \"# Working Buffer\", 2 created, 3 last_active (ISO 8601 with an offset or Z), 4 blank; and there is a buffer.",
			Source: sourceTiered + ", 1. Buffer-first writes", Mend: "mem rotate --force brings its text into today's note and makes a fresh buffer", whole: (*pass).bufferPresent,
		},
		{
			ID: "buffer.size", Tier: "BUFFER", Severity: Fail, Title: "the buffer is not oversized", needs: hasBuffer,
			Rule:   "At most 80 lines; a last one without a newline counts.",
			Source: sourceTiered + ", 7. Buffer Rotation", Mend: "mem rotate",
		},
		{
			ID: "buffer.interrupted", Tier: "BUFFER", Severity: Fail, Title: "nothing was interrupted", Fixable: true,
			Rule:   "No .rotating, no .pending, no stale .lock, no open transaction. While another mem runs, these are information.",
			Source: sourceTiered + ", 7. Buffer Rotation", Mend: "mem recover", whole: (*pass).interrupted,
		},
		{
			ID: "buffer.abandoned", Tier: "BUFFER", Severity: Warn, Title: "the buffer is not abandoned", needs: hasBuffer,
			Rule:   "Not: a line under Active Task, and last active more than 2 hours ago.",
			Source: sourceTiered + ", 1. Buffer-first writes", Mend: "take the task up again, or mem rotate --force",
		},
		{
			ID: "buffer.orphans", Tier: "BUFFER", Severity: Fail, Title: "what was rotated is in its note", needs: hasBuffer,
			Rule:   "The text of every rotation of the last 30 days stands in the note it went to, or in the archive. Edited text is information.",
			Source: sourceTiered + ", 9. Health Check (WAL integrity)", Mend: "mem trash restore brings the copy back; put it into the note", whole: (*pass).orphans,
		},
		{
			ID: "session.active", Tier: "", Severity: Info, Title: "whether a session is active", needs: hasBuffer,
			Rule:   "Says when a session is active: the weekly review would wait.",
			Source: sourceTiered + ", 8. Weekly Review", Mend: "nothing to do", whole: (*pass).sessionActive,
		},
		{
			ID: "cold.closure", Tier: "COLD", Severity: Fail, Title: "daily notes are closed", Fixable: true,
			Rule:   "Each active daily note ends with Updated (a date), Decisions, Signal, Open, in this order, none empty. Today's note: a warning.",
			Source: sourceTiered + ", 5. Closure Blocks", Mend: "mem close for today's note; add the four lines by hand to an older one",
		},
		{
			ID: "cold.count", Tier: "COLD", Severity: Fail, Title: "old notes are archived",
			Rule:   "No active note is older than its time to live; more than 14 days past it fails: nobody archives.",
			Source: sourceTiered + ", 6. Episodic TTL", Mend: "mem archive", whole: (*pass).noteCount,
		},
		{
			ID: "cold.names", Tier: "COLD", Severity: Warn, Title: "notes are named by their day",
			Rule:   "Files beside daily notes are daily notes: YYYY-MM-DD.md or with -suffix; no day in the future, none a year off from its neighbours.",
			Source: sourceTiered + ", Directory Structure", Mend: "rename the file to its day", whole: (*pass).noteNames,
		},
		{
			ID: "cold.vanished", Tier: "COLD", Severity: Fail, Title: "no note has gone in silence",
			Rule:   "Daily notes that the last review saw are in place, archived, or moved by a receipt.",
			Source: sourceTiered + ", Safety Rules", Mend: "look for it in git, backups and mem trash list; mem review starts a new list", whole: (*pass).vanished,
		},
		{
			ID: "cold.secrets", Tier: "COLD", Severity: Fail, Title: "no credentials in memory",
			Rule:   "Nothing in any tier looks like a key, token or password. Shown without its value.",
			Source: sourceTiered + ", Safety Rules", Mend: "take it out, and change the credential: it may have been read",
		},
		{
			ID: "scratch.canonical", Tier: "SCRATCH", Severity: Warn, Title: "only the canonical SCRATCH files", needs: hasScratch,
			Rule:   "ERRORS.md, LEARNINGS.md and FEATURE_REQUESTS.md, spelled so, and no others.",
			Source: sourceTiered + ", 6b. SCRATCH TTL", Mend: "mem archive lessons --legacy moves the others to the archive", whole: (*pass).spelling,
		},
		{
			ID: "scratch.duplicates", Tier: "SCRATCH", Severity: Warn, Title: "each lesson stands once", needs: hasScratch,
			Rule:   "No lesson stands in two SCRATCH files.",
			Source: sourceTiered + ", 11. Self-Improvement Loop", Mend: "keep it in the file of its kind", whole: (*pass).duplicateLessons,
		},
		{
			ID: "text.encoding", Tier: "", Severity: Fail, Title: "text is UTF-8",
			Rule:   "Valid UTF-8 without NUL; damaged bytes are a warning, UTF-16 fails.",
			Source: sourceField, Mend: "iconv to UTF-8; a damaged place shows its offset",
		},
		{
			ID: "fs.shape", Tier: "", Severity: Warn, Title: "memory files are plain files", Fixable: true,
			Rule:   "No symlinks, hard links, FIFOs, unreadable files, or names that differ only in case; the layout's directories are there.",
			Source: sourceField, Mend: "replace it with a plain file of its own", whole: (*pass).shapes,
		},
		{
			ID: "inbox.waiting", Tier: "", Severity: Warn, Title: "nothing waits for long",
			Rule:   "Review drafts are at most 14 days old, and nothing malformed waits in the workspace's own inboxes.",
			Source: sourceField, Mend: "mem inbox shows what waits; mem inbox accept or reject ends it", whole: (*pass).waiting,
		},
		{
			ID: "feedback.ids", Tier: "WARM", Severity: Warn, Title: "each feedback number names one entry",
			Rule:   "No two entries of memory/feedback.md have the same number.",
			Source: "four-type memory, Feedback Format", Mend: "give the younger one the next free number by hand", needs: hasFeedback, whole: (*pass).feedbackIDs,
		},
		{
			ID: "sessions.spool", Tier: "", Severity: Warn, Title: "exchanges come into their log",
			Rule:   "No exchange waits for its extractor longer than a day.",
			Source: "session memory, The hook flow", Mend: "mend the extractor (mem status says how it fails); the next exchange brings the others along", needs: hasSessions, whole: (*pass).spool,
		},
		{
			ID: "jobs.overdue", Tier: "", Severity: Warn, Title: "the jobs run",
			Rule:   "The last successful weekly review is at most 8 days ago, and the last ingest 90 minutes where it is scheduled. Hooks that were installed run, and none has failed since somebody was told.",
			Source: sourceTiered + ", 8. Weekly Review", Mend: "mem review; mem schedule install makes it run by itself", whole: (*pass).overdue,
		},
		{
			ID: "load.simulated", Tier: "HOT", Severity: Warn, Title: "what the host loads", needs: hasLoad,
			Rule:   "The host's own limits cut nothing: characters a file, characters in all, today's and yesterday's notes.",
			Source: "OpenClaw", Mend: "shorten the file, or move what is cut off to where it is searched", whole: (*pass).hostLoad,
		},
	}
}

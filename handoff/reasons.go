package handoff

import "slices"

// Verdicts, in order of precedence.
const (
	Skipped   = "skipped"
	Rejected  = "rejected"
	Malformed = "malformed"
	Duplicate = "duplicate"
	Review    = "review"
	Applied   = "applied"
)

// Reason is one reason code: which verdict it belongs to, what it means and
// what its writer should do.
type Reason struct {
	Code, Verdict, Means, Mend string
}

// Reasons are all reason codes.
var Reasons = []Reason{
	{"git-tracked", Skipped, "git tracks the file: it is repository content", "git rm --cached it, if it is a handoff"},
	{"template", Skipped, "a template", ""},
	{"dotfile", Skipped, "a hidden file", ""},
	{"opted-out", Skipped, "a .no-memory-handoffs file stands in the inbox or above it", "remove that file to take part"},
	{"git-unknown", Skipped, "git could not say what it tracks", "mend git there"},
	{"unreadable", Skipped, "it, or its target, could not be read", "mend what keeps it from being read"},
	{"symlink", Rejected, "a symlink", "write a regular file"},
	{"not-regular", Rejected, "not a regular file", "write a regular file"},
	{"hard-linked", Rejected, "more than one name leads to the file", "write a file of its own"},
	{"too-large", Rejected, "over 1 MiB", "split it"},
	{"empty", Malformed, "nothing in it", "write the sections of the format"},
	{"invalid-utf8", Malformed, "not valid UTF-8", "save it as UTF-8"},
	{"control-character", Malformed, "a control character other than tab and line end", "remove it"},
	{"tag-character", Malformed, "Unicode tag characters, which nobody sees", "remove them"},
	{"bidi-control", Malformed, "controls of the writing direction, which hide text", "remove them"},
	{"secret", Malformed, "something that looks like a credential", "take it out, and change the credential"},
	{"unclosed-fence", Malformed, "a code fence that never ends", "close it"},
	{"no-sections", Malformed, "none of the known sections", "write the sections of the format"},
	{"duplicate-section", Malformed, "a known section twice", "keep one; use ### inside content"},
	{"both-branches", Malformed, "fields of a card and of a document", "write two handoffs"},
	{"already-ingested", Duplicate, "this very file was ingested before", ""},
	{"same-card", Duplicate, "the card holds exactly this already", ""},
	{"same-block", Duplicate, "the document holds this block already", ""},
	{"archived-lesson", Duplicate, "the lesson was archived", ""},
	{"promote-none", Review, "this source is not promoted by itself", "mem inbox accept"},
	{"promote-cards", Review, "this source may only write cards", "mem inbox accept"},
	{"unknown-action", Review, "no known Recommended memory action", "create-card, update-card or no-card"},
	{"no-target", Review, "no target to write to", "name a Target card or a Target document"},
	{"unsafe-target", Review, "a target that handoffs may not write", "a plain card name, TOOLS.md, USER.md, rules/NAME.md, or a .learnings file"},
	{"target-unfit", Review, "the target is no regular UTF-8 file", "mend the target"},
	{"no-content", Review, "no content", "fill in the suggested content"},
	{"no-frontmatter", Review, "the card does not start with frontmatter", "start it with ---"},
	{"unclosed-frontmatter", Review, "the card's frontmatter is not closed", "close it with ---"},
	{"frontmatter-anchors", Review, "anchors, aliases, tags or merges in the frontmatter", "write it plainly"},
	{"bad-frontmatter", Review, "frontmatter that is not YAML, or too much of it", "write plain keys"},
	{"heading-in-document", Review, "a ## heading in document content", "use ### or deeper"},
	{"card-exists", Review, "create-card on a card that is there", "update-card with its hash"},
	{"card-missing", Review, "update-card on a card that is not there", "create-card"},
	{"missing-hash", Review, "update-card without Expected card SHA256", "sha256sum the card you have read"},
	{"bad-hash", Review, "Expected card SHA256 is not 64 hex digits", "sha256sum the card you have read"},
	{"hash-conflict", Review, "the card changed since its writer read it", "read it again and merge"},
	{"target-changed", Review, "the target changed while it was written", "read it again and merge"},
	{"over-budget", Review, "the document would grow over its budget", "shorten the document first"},
	{"near-duplicate", Review, "a card of the same topic says the same", "update that card"},
	{"injection", Review, "text that looks like orders to an agent", "say it plainly"},
	{"hidden-text", Review, "characters that nobody sees", "remove them"},
	{"created", Applied, "a new card", ""},
	{"updated", Applied, "a card replaced", ""},
	{"appended", Applied, "added to a document", ""},
}

// Find returns a reason by its code.
func Find(code string) (Reason, bool) {
	i := slices.IndexFunc(Reasons, func(r Reason) bool { return r.Code == code })
	if i < 0 {
		return Reason{}, false
	}
	return Reasons[i], true
}

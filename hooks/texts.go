package hooks

import (
	_ "embed"
	"encoding/json"
	"strings"
)

//go:embed texts/SKILL.md
var skill string

//go:embed texts/rules.md
var rules string

//go:embed texts/HOOK.md
var hookDoc string

//go:embed texts/handler.ts
var handler string

// Skill is the text that teaches an agent to use mem, in the open format.
func Skill() string { return skill }

//go:embed texts/memory_load.md
var memoryLoad string

//go:embed texts/memory_promotion.md
var memoryPromotion string

// SessionSkills are the skills of the sessions layout, by the path of each
// from a project's root or the home directory.
func SessionSkills() map[string]string {
	return map[string]string{
		".claude/skills/memory_load/SKILL.md":      memoryLoad,
		".claude/skills/memory_promotion/SKILL.md": memoryPromotion,
	}
}

// Rules are the standing instructions for CLAUDE.md or AGENTS.md.
func Rules() string { return rules }

// HookDir is where OpenClaw looks for hooks, from a workspace or from
// .openclaw in the home directory.
const HookDir = "hooks/mem"

// Files are what an OpenClaw hook consists of, by name.
func Files(program string, args []string) (map[string]string, error) {
	line, err := json.Marshal(append([]string{program}, args...))
	if err != nil {
		return nil, err
	}
	return map[string]string{"HOOK.md": hookDoc, "handler.ts": strings.Replace(handler, "@COMMAND@", string(line), 1)}, nil
}

// AddRules puts the standing instructions into a text as a marked block, or
// brings the block that is there up to date.
func AddRules(text string) string { return AddBlock(text, "rules", rules) }

// RemoveRules takes the block out, and the blank line before it.
func RemoveRules(text string) string { return RemoveBlock(text, "rules") }

// marks are the lines around a block of ours.
func marks(name string) (begin, end string) {
	return "<!-- mem:" + name + " begin -->\n", "<!-- mem:" + name + " end -->\n"
}

// AddBlock puts a block of ours into a text, or brings it up to date.
func AddBlock(text, name, body string) string {
	begin, end := marks(name)
	block := begin + body + end
	if from, to, ok := blockOf(text, name); ok {
		return text[:from] + block + text[to:]
	}
	switch {
	case text == "":
	case strings.HasSuffix(text, "\n\n"):
	case strings.HasSuffix(text, "\n"):
		text += "\n"
	default:
		text += "\n\n"
	}
	return text + block
}

// RemoveBlock takes a block of ours out, and the blank line before it.
func RemoveBlock(text, name string) string {
	from, to, ok := blockOf(text, name)
	if !ok {
		return text
	}
	before := text[:from]
	if strings.HasSuffix(before, "\n\n") {
		before = before[:len(before)-1]
	}
	return before + text[to:]
}

func blockOf(text, name string) (from, to int, ok bool) {
	begin, end := marks(name)
	from = strings.Index(text, begin)
	if from < 0 {
		return 0, 0, false
	}
	i := strings.Index(text[from:], end)
	if i < 0 {
		return 0, 0, false
	}
	return from, from + i + len(end), true
}

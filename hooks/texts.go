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

// The marks around our block in a file of standing instructions.
const (
	blockBegin = "<!-- mem:rules begin -->\n"
	blockEnd   = "<!-- mem:rules end -->\n"
)

// AddRules puts the standing instructions into a text as a marked block, or
// brings the block that is there up to date.
func AddRules(text string) string {
	block := blockBegin + rules + blockEnd
	if start, end, ok := blockOf(text); ok {
		return text[:start] + block + text[end:]
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

// RemoveRules takes the block out, and the blank line before it.
func RemoveRules(text string) string {
	start, end, ok := blockOf(text)
	if !ok {
		return text
	}
	before := text[:start]
	if strings.HasSuffix(before, "\n\n") {
		before = before[:len(before)-1]
	}
	return before + text[end:]
}

func blockOf(text string) (start, end int, ok bool) {
	start = strings.Index(text, blockBegin)
	if start < 0 {
		return 0, 0, false
	}
	i := strings.Index(text[start:], blockEnd)
	if i < 0 {
		return 0, 0, false
	}
	return start, start + i + len(blockEnd), true
}

// Package hooks speaks the hook protocols of the agents' hosts: what a host
// sends and expects, where its settings are, and how our entries go into them
// and out again.
//
// [Find] gives a host, [ReadInput] and [Host.Context] the protocol, [Add] and
// [Remove] change a settings text. Nothing here reads or writes a file.
package hooks

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"strings"
	"unicode/utf16"
)

// Events, by the names that Claude Code and Codex give them. OpenClaw's are
// brought to these by its handler.
const (
	SessionStart = "SessionStart"
	PreCompact   = "PreCompact"
	Stop         = "Stop"
	SessionEnd   = "SessionEnd"
)

// Events lists the events that a host may run us for.
var Events = []string{SessionStart, PreCompact, Stop, SessionEnd}

// Hook is one entry of a host's settings.
type Hook struct {
	Event   string
	Matcher string // "": none
	Timeout int    // seconds
}

// Host is one agent host.
type Host struct {
	Name     string
	Settings string // the settings file, from a project's root or the home directory; "": none
	Rules    string // the file with standing instructions, from a project's root
	UserFile string // the same, from the home directory
	Skill    string // where a skill's SKILL.md goes, from either
	Hooks    []Hook
	Limit    int // the most that SessionStart may bring into a session, by Size
	tokens   bool
}

// hosts are those that are known. SessionEnd: Claude Code gives 1.5 s for all
// hooks, Codex takes at most 3 s and 1 s where nothing is said.
var hosts = []Host{
	{
		Name: "claude", Settings: ".claude/settings.json", Rules: "CLAUDE.md", UserFile: ".claude/CLAUDE.md", Skill: ".claude/skills/mem/SKILL.md", Limit: 10_000,
		Hooks: []Hook{{SessionStart, "startup|resume|clear|compact", 10}, {PreCompact, "", 10}, {Stop, "", 90}, {SessionEnd, "", 3}},
	},
	{
		Name: "codex", Settings: ".codex/hooks.json", Rules: "AGENTS.md", UserFile: ".codex/AGENTS.md", Skill: ".agents/skills/mem/SKILL.md", Limit: 2_500, tokens: true,
		Hooks: []Hook{{SessionStart, "startup|resume|clear|compact", 10}, {PreCompact, "", 10}, {Stop, "", 90}, {SessionEnd, "", 3}},
	},
	{Name: "openclaw", Rules: "AGENTS.md", UserFile: ".openclaw/workspace/AGENTS.md", Skill: "skills/mem/SKILL.md", Limit: 10_000},
}

// Names lists the hosts.
func Names() []string {
	var out []string
	for _, h := range hosts {
		out = append(out, h.Name)
	}
	return out
}

// Find gives a host by its name.
func Find(name string) (Host, bool) {
	for _, h := range hosts {
		if h.Name == name {
			return h, true
		}
	}
	return Host{}, false
}

// Size measures a text as the host does: UTF-16 units, or about tokens.
func (h Host) Size(s string) int {
	if !h.tokens {
		return len(utf16.Encode([]rune(s)))
	}
	plain, other := 0, 0
	for _, r := range s {
		if r < 0x80 {
			plain++
		} else {
			other++
		}
	}
	return plain/4 + other + 1 // a token is about four characters of English, one of Chinese
}

// Context is what a hook prints for a text to come into the session; "" for no
// text: some hosts take anything on stdout for a message.
func (h Host) Context(event, text string) (string, error) {
	if text == "" {
		return "", nil
	}
	if h.Settings == "" {
		return text, nil // its handler takes the text as it is
	}
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	err := e.Encode(map[string]any{"hookSpecificOutput": map[string]any{"hookEventName": event, "additionalContext": text}})
	return b.String(), err
}

// Input is what a host says to a hook. Fields that are missing, or of another
// type, are empty.
type Input struct {
	Event, Session, Transcript, Dir string
	Source, Reason, Trigger         string // why the session begins, ends, is compacted
	LastMessage                     string // the agent's, where the host gives it
	StopHookActive                  bool
}

// MaxInput bounds what is read from a host, in bytes.
const MaxInput = 32 << 20

// ErrInput marks input that is not what a host sends.
var ErrInput = errors.New("not the input of a hook")

// ReadInput reads what a host sends on stdin.
func ReadInput(b []byte) (Input, error) {
	var in Input
	if len(bytes.TrimSpace(b)) == 0 {
		return in, fmt.Errorf("%w: empty", ErrInput)
	}
	var all map[string]json.RawMessage
	if err := json.Unmarshal(b, &all); err != nil {
		return in, fmt.Errorf("%w: %w", ErrInput, err)
	}
	for key, to := range map[string]*string{
		"hook_event_name": &in.Event, "session_id": &in.Session, "transcript_path": &in.Transcript, "cwd": &in.Dir,
		"source": &in.Source, "reason": &in.Reason, "trigger": &in.Trigger, "last_assistant_message": &in.LastMessage,
	} {
		_ = json.Unmarshal(all[key], to) // of another type: empty
	}
	_ = json.Unmarshal(all["stop_hook_active"], &in.StopHookActive)
	return in, nil
}

// Command is the line that a host runs for an event. It stays the same as long
// as the program is where it is: Codex asks again about a line that changed.
func Command(program string, args []string, event, host string, autoload bool) string {
	parts := []string{quote(program)}
	for _, a := range args {
		parts = append(parts, quote(a))
	}
	parts = append(parts, "hook", "run", event)
	if autoload && event == SessionStart {
		parts = append(parts, "--autoload")
	}
	return strings.Join(append(parts, "--host", host), " ")
}

// quote quotes a word for a POSIX shell where it must be.
func quote(s string) string {
	if s != "" && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789/._-+:=@") == "" {
		return s
	}
	return "'" + strings.ReplaceAll(s, "'", `'\''`) + "'"
}

// Ours reports whether a command line is one of ours and nothing else, and for
// which event.
func Ours(command, host string) (event string, ok bool) {
	for _, e := range Events {
		for _, flag := range []string{"", " --autoload"} {
			before, ok := strings.CutSuffix(command, " hook run "+e+flag+" --host "+host)
			if !ok {
				continue
			}
			words, plain := unquote(before)
			if !plain || len(words) != 1 && (len(words) != 3 || words[1] != "--workspace") {
				return "", false
			}
			base := words[0][strings.LastIndexAny(words[0], "/\\")+1:]
			return e, base == "mem" || base == "mem.exe"
		}
	}
	return "", false
}

// WorkspaceOf is the workspace that a command line of ours names, or "".
func WorkspaceOf(command string) string {
	before, _, _ := strings.Cut(command, " hook run ")
	if words, plain := unquote(before); plain && len(words) == 3 {
		return words[2]
	}
	return ""
}

// unquote splits what quote has joined; plain is false for a line that a shell
// would do more with.
func unquote(s string) (words []string, plain bool) {
	word, inside, open := "", false, false
	for i := 0; i < len(s); i++ {
		switch c := s[i]; {
		case inside && c == '\'':
			inside = false
		case inside:
			word += string(c)
		case c == '\'':
			inside, open = true, true
		case c == '\\' && i+1 < len(s) && s[i+1] == '\'':
			word += "'"
			i++
		case c == ' ':
			words = append(words, word)
			word, open = "", false
		case strings.IndexByte(";&|<>`$\n\"*?(){}[]#~", c) >= 0:
			return nil, false
		default:
			word += string(c)
		}
	}
	if word != "" || open {
		words = append(words, word)
	}
	return words, !inside
}

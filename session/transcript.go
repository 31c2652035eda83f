package session

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"strings"
)

// Exchange is what a person said last, and what the agent answered.
type Exchange struct {
	Human     string `json:"human"`
	Assistant string `json:"assistant"`
	ID        string `json:"id,omitempty"` // the host's name for the person's message
}

// Empty reports whether nobody said anything.
func (e Exchange) Empty() bool { return e.Human == "" && e.Assistant == "" }

// ErrNoExchange says that a transcript holds no text of a person.
var ErrNoExchange = errors.New("no exchange in the transcript")

// block is how much of a transcript is read at once, from its end.
const block = 1 << 20

// maxScan bounds how far back a transcript is searched, in bytes: the last
// exchange of a session with very large tool results.
const maxScan = 256 << 20

// Last finds the last exchange of a transcript: one JSON object a line. Only
// text counts, not tool calls, their results, or thinking. A line that is torn
// or of another kind is passed over. The transcript is read from its end.
func Last(r io.ReaderAt, size int64) (Exchange, error) {
	var answer []string // the agent's, the last first
	var tail []byte     // the rest of a line that begins in a block before
	step := int64(block)
	for end := size; end > 0; {
		start := max(end-step, 0)
		b := make([]byte, end-start, int(end-start)+len(tail))
		if _, err := r.ReadAt(b, start); err != nil && !errors.Is(err, io.EOF) {
			return Exchange{}, err
		}
		b = append(b, tail...)
		tail = nil
		for {
			i := bytes.LastIndexByte(bytes.TrimSuffix(b, []byte("\n")), '\n')
			if i < 0 && start > 0 {
				tail = b  // it begins further up
				step *= 2 // a long line is not copied again and again
				break
			}
			line := bytes.TrimSpace(b[i+1:])
			if m := parseLine(line); m.text != "" {
				if m.human {
					if m.id == "" { // by where it stands: transcripts only grow
						m.id = fmt.Sprintf("@%d", start+int64(i+1))
					}
					return Exchange{Human: m.text, Assistant: join(answer), ID: m.id}, nil
				}
				answer = append(answer, m.text)
			}
			if i < 0 {
				break
			}
			b = b[:i+1]
		}
		end = start
		if size-end > maxScan {
			break
		}
	}
	if len(answer) > 0 {
		return Exchange{Assistant: join(answer)}, nil
	}
	return Exchange{}, ErrNoExchange
}

// join puts texts that were found from the end into their order.
func join(backwards []string) string {
	var sb strings.Builder
	for i := len(backwards) - 1; i >= 0; i-- {
		if sb.Len() > 0 {
			sb.WriteString("\n\n")
		}
		sb.WriteString(backwards[i])
	}
	return sb.String()
}

// message is one line of a transcript, as far as it counts.
type message struct {
	human bool
	text  string
	id    string
}

// What a line holds that has the result of a tool, and what one that has text
// parts. Inside of a string the quotes would be escaped.
var (
	toolResult = []byte(`"type":"tool_result"`)
	textPart   = []byte(`"type":"text"`)
)

// parseLine reads a line of Claude Code's transcripts, or of Codex's.
func parseLine(line []byte) message {
	var l struct {
		Type      string          `json:"type"`
		UUID      string          `json:"uuid"`
		Meta      bool            `json:"isMeta"`
		Sidechain bool            `json:"isSidechain"`
		Summary   bool            `json:"isCompactSummary"`
		Message   json.RawMessage `json:"message"`
		Payload   json.RawMessage `json:"payload"`
	}
	if bytes.Contains(line, toolResult) && !bytes.Contains(line, textPart) {
		return message{} // large, and of no text: not worth to be read
	}
	if len(line) == 0 || line[0] != '{' || json.Unmarshal(line, &l) != nil || l.Meta || l.Sidechain || l.Summary {
		return message{}
	}
	body := l.Message
	if l.Type == "response_item" {
		body = l.Payload
	}
	var m struct {
		Role    string          `json:"role"`
		Content json.RawMessage `json:"content"`
	}
	if json.Unmarshal(body, &m) != nil || m.Role != "user" && m.Role != "assistant" {
		return message{}
	}
	text := contentText(m.Content)
	if m.Role == "user" && hostText(text) {
		return message{}
	}
	return message{m.Role == "user", text, l.UUID}
}

// contentText is the text of a message's content: a string, or its text parts.
func contentText(raw json.RawMessage) string {
	var s string
	if json.Unmarshal(raw, &s) == nil {
		return strings.TrimSpace(s)
	}
	var parts []struct {
		Type string `json:"type"`
		Text string `json:"text"`
	}
	if json.Unmarshal(raw, &parts) != nil {
		return ""
	}
	var out []string
	for _, p := range parts {
		if t := strings.TrimSpace(p.Text); t != "" && (p.Type == "text" || p.Type == "input_text" || p.Type == "output_text") {
			out = append(out, t)
		}
	}
	return strings.Join(out, "\n\n")
}

// hostText reports whether what stands as a person's message was put there by
// the host: the results of its own commands, and context that it adds.
func hostText(s string) bool {
	for _, mark := range []string{"<command-name>", "<command-message>", "<local-command-", "<environment_context>", "<user_instructions>", "<system-reminder>", "<task-notification>", "<bash-input>", "<bash-stdout>", "<bash-stderr>", "[Request interrupted by user", "Caveat: The messages below"} {
		if strings.HasPrefix(s, mark) {
			return true
		}
	}
	return false
}

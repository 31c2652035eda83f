package handoff

import (
	"errors"
	"fmt"
	"strings"

	"go.yaml.in/yaml/v3"
)

// maxFrontmatter is the most that a card's frontmatter may hold, in bytes.
const maxFrontmatter = 64 << 10

// maxNesting bounds open brackets in frontmatter: a parser's time grows with
// them.
const maxNesting = 32

// frontmatter is a card's head as far as it matters.
type frontmatter struct {
	topic string
	body  string // what stands below
}

// readFrontmatter splits a card. code is a reason code if it can't be taken.
func readFrontmatter(s string) (f frontmatter, code string, err error) {
	first, rest, _ := strings.Cut(s, "\n")
	if strings.TrimRight(first, " \t\r") != "---" {
		return f, "no-frontmatter", errors.New("the card does not start with YAML frontmatter (---)")
	}
	var head strings.Builder
	for {
		line, more, ok := strings.Cut(rest, "\n")
		if strings.TrimRight(line, " \t\r") == "---" {
			f.body = more
			break
		}
		if !ok {
			return f, "unclosed-frontmatter", errors.New("the card's frontmatter is not closed (---)")
		}
		head.WriteString(line)
		head.WriteByte('\n')
		rest = more
		if head.Len() > maxFrontmatter {
			return f, "bad-frontmatter", fmt.Errorf("the card's frontmatter has more than %d bytes", maxFrontmatter)
		}
	}
	if topic, ok := plainFrontmatter(head.String()); ok {
		f.topic = topic
		return f, "", nil
	}
	f.topic, code, err = yamlFrontmatter(head.String())
	return f, code, err
}

// plainFrontmatter reads what nearly all frontmatter is: keys with plain
// values, lists in one line or of items. Anything else is for the library.
func plainFrontmatter(s string) (topic string, ok bool) {
	seen := map[string]bool{}
	for line := range strings.Lines(s) {
		line = strings.TrimRight(line, " \t\r\n")
		if line == "" {
			continue
		}
		if item, ok := strings.CutPrefix(strings.TrimLeft(line, " "), "- "); ok && len(seen) > 0 {
			if !plainValue(item) {
				return "", false
			}
			continue
		}
		key, value, found := strings.Cut(line, ":")
		if !found || key == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "" || seen[key] || value != "" && value[0] != ' ' {
			return "", false
		}
		seen[key] = true
		value = strings.TrimSpace(value)
		if inner, list := strings.CutPrefix(value, "["); list {
			inner, closed := strings.CutSuffix(inner, "]")
			if !closed || strings.ContainsAny(inner, "[]") || !plainValue(inner) && inner != "" {
				return "", false
			}
		} else if value != "" && !plainValue(value) {
			return "", false
		}
		if key == "topic" {
			topic = value
		}
	}
	return topic, true
}

// plainValue reports whether a scalar means itself in YAML.
func plainValue(s string) bool {
	return s != "" && !strings.ContainsAny(s[:1], "&*!|>%@`\"'{[#?,-") && !strings.Contains(s, ": ") && !strings.Contains(s, " #") && !strings.ContainsAny(s, "{}&*") && !strings.HasSuffix(s, ":")
}

func yamlFrontmatter(s string) (topic, code string, err error) {
	depth := 0
	for _, c := range s {
		switch c {
		case '[', '{':
			if depth++; depth > maxNesting {
				return "", "bad-frontmatter", errors.New("the card's frontmatter nests too deep")
			}
		case ']', '}':
			depth--
		}
	}
	var doc yaml.Node
	if err := yaml.Unmarshal([]byte(s), &doc); err != nil {
		return "", "bad-frontmatter", fmt.Errorf("the card's frontmatter is not YAML: %w", err)
	}
	if len(doc.Content) == 0 {
		return "", "", nil
	}
	root := doc.Content[0]
	if root.Kind != yaml.MappingNode {
		return "", "bad-frontmatter", errors.New("the card's frontmatter is no list of keys")
	}
	if code, err := checkNode(root, 0); err != nil {
		return "", code, err
	}
	for i := 0; i+1 < len(root.Content); i += 2 {
		if root.Content[i].Value == "topic" {
			topic = root.Content[i+1].Value
		}
	}
	return topic, "", nil
}

// checkNode refuses what makes YAML mean more than it says.
func checkNode(n *yaml.Node, depth int) (string, error) {
	switch {
	case depth > maxNesting:
		return "bad-frontmatter", errors.New("the card's frontmatter nests too deep")
	case n.Anchor != "" || n.Kind == yaml.AliasNode:
		return "frontmatter-anchors", fmt.Errorf("the card's frontmatter has an anchor or alias (line %d)", n.Line)
	case n.Style&yaml.TaggedStyle != 0:
		return "frontmatter-anchors", fmt.Errorf("the card's frontmatter has a tag (line %d)", n.Line)
	}
	seen := map[string]bool{}
	for i, c := range n.Content {
		if n.Kind == yaml.MappingNode && i%2 == 0 {
			switch {
			case c.Value == "<<":
				return "frontmatter-anchors", fmt.Errorf("the card's frontmatter has a merge key (line %d)", c.Line)
			case seen[c.Value]:
				return "bad-frontmatter", fmt.Errorf("the card's frontmatter has the key %q twice", c.Value)
			}
			seen[c.Value] = true
		}
		if code, err := checkNode(c, depth+1); err != nil {
			return code, err
		}
	}
	return "", nil
}

package tiers

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"go.yaml.in/yaml/v3"
)

// node is a parsed YAML value, reduced to what configuration may hold.
type node struct {
	kind   nodeKind
	text   string
	items  []node
	fields []field
}

type nodeKind int

const (
	scalar nodeKind = iota
	sequence
	mapping
)

type field struct {
	key   string
	line  int
	value node
}

// maxNesting is far above what any key needs; 64 KiB of open brackets take the
// library seconds.
const maxNesting = 8

// parse reads a configuration file. Files of plain "key: value" lines, the
// usual case, do not need the YAML library, which costs more than the rest of
// a short command.
func parse(name string, b []byte) (node, error) {
	if n, ok, err := parsePlain(name, b); ok || err != nil {
		return n, err
	}
	if depth(b) > maxNesting {
		return node{}, &ConfigError{name, 0, "nested too deep", "write one key a line"}
	}
	var doc, second yaml.Node
	d := yaml.NewDecoder(bytes.NewReader(b))
	err := d.Decode(&doc)
	if err == nil && d.Decode(&second) != io.EOF { //nolint:errorlint // the library returns it bare
		return node{}, &ConfigError{name, second.Line, "holds more than one document", "one list of keys, without --- or ... lines"}
	}
	if err != nil && err != io.EOF { //nolint:errorlint // the library returns it bare
		line, msg := 0, strings.TrimPrefix(err.Error(), "yaml: ")
		if k, _ := fmt.Sscanf(msg, "line %d:", &line); k == 1 {
			_, msg, _ = strings.Cut(msg, ": ")
		}
		return node{}, &ConfigError{name, line, "not YAML: " + msg, "mem config --help shows an example"}
	}
	if len(doc.Content) == 0 {
		return node{kind: mapping}, nil
	}
	n, err := reduce(name, doc.Content[0], 0)
	if err == nil && n.kind != mapping {
		err = &ConfigError{name, doc.Content[0].Line, "is not a list of keys", "mem config --help shows an example"}
	}
	return n, err
}

// depth bounds how deep flow collections and indentation can nest.
func depth(b []byte) int {
	open, most, comment := 0, 0, false
	for _, c := range b {
		if comment = c == '#' || comment && c != '\n'; comment {
			continue
		}
		switch c {
		case '[', '{':
			open++
			most = max(most, open)
		case ']', '}':
			open = max(open-1, 0)
		}
	}
	return most
}

// parsePlain reads files that hold nothing but comments, blank lines and
// top-level "key: plain value" lines; ok is false for any other.
func parsePlain(name string, b []byte) (n node, ok bool, err error) {
	n.kind = mapping
	for i, c := range b { // what else breaks lines, or is refused, the library knows
		crlf := c == '\r' && i+1 < len(b) && b[i+1] == '\n'
		if (c < ' ' || c > '~') && c != '\n' && !crlf {
			return n, false, nil
		}
	}
	for i, l := range strings.Split(string(b), "\n") {
		l = strings.TrimSuffix(l, "\r")
		if strings.TrimSpace(l) == "" || strings.HasPrefix(l, "#") {
			continue
		}
		key, value, found := strings.Cut(l, ": ")
		value = strings.TrimSpace(value)
		if !found || key == "" || value == "" || strings.Trim(key, "abcdefghijklmnopqrstuvwxyz_") != "" ||
			strings.Trim(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_/+-") != "" || value == "null" || value[0] == '-' {
			return n, false, nil
		}
		for _, f := range n.fields {
			if f.key == key {
				return n, true, &ConfigError{name, i + 1, fmt.Sprintf("key %q is already set in line %d", key, f.line), "keep one of them"}
			}
		}
		n.fields = append(n.fields, field{key, i + 1, node{text: value}})
	}
	return n, true, nil
}

func reduce(name string, y *yaml.Node, level int) (node, error) {
	refuse := func(what string) (node, error) {
		return node{}, &ConfigError{name, y.Line, what + " are not used in this file", "write the value out"}
	}
	switch {
	case level > maxNesting:
		return node{}, &ConfigError{name, y.Line, "nested too deep", "see mem config --help"}
	case y.Kind == yaml.AliasNode || y.Anchor != "":
		return refuse("anchors and aliases")
	case y.Style&yaml.TaggedStyle != 0:
		return refuse("tags")
	}
	switch y.Kind {
	case yaml.ScalarNode:
		return node{text: y.Value}, nil
	case yaml.SequenceNode:
		n := node{kind: sequence}
		for _, c := range y.Content {
			i, err := reduce(name, c, level+1)
			if err != nil {
				return n, err
			}
			n.items = append(n.items, i)
		}
		return n, nil
	}
	n := node{kind: mapping}
	for i := 0; i+1 < len(y.Content); i += 2 {
		k := y.Content[i]
		if k.Kind != yaml.ScalarNode {
			return n, &ConfigError{name, k.Line, "a key is not a word", "see mem config --help"}
		}
		if k.Value == "<<" {
			return refuse("merges")
		}
		for _, f := range n.fields {
			if f.key == k.Value {
				return n, &ConfigError{name, k.Line, fmt.Sprintf("key %q is already set in line %d", k.Value, f.line), "keep one of them"}
			}
		}
		v, err := reduce(name, y.Content[i+1], level+1)
		if err != nil {
			return n, err
		}
		n.fields = append(n.fields, field{k.Value, k.Line, v})
	}
	return n, nil
}

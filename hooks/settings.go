package hooks

import (
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tailscale/hujson"
)

// ErrSettings marks a settings text that is not changed by a program.
var ErrSettings = errors.New("is not plain JSON")

// parse reads a settings text, whose bytes Pack gives back. Comments and
// trailing commas are refused: their host may read them, and no writer of ours
// should decide where they go.
func parse(text []byte) (hujson.Value, *hujson.Object, error) {
	if len(strings.TrimSpace(string(text))) == 0 {
		text = []byte("{}\n")
	}
	v, err := hujson.Parse(text)
	if err != nil {
		return v, nil, fmt.Errorf("%w: %w", ErrSettings, err)
	}
	if !v.IsStandard() {
		return v, nil, fmt.Errorf("%w: it has comments or trailing commas", ErrSettings)
	}
	root, ok := v.Value.(*hujson.Object)
	if !ok {
		return v, nil, fmt.Errorf("%w: it is no object", ErrSettings)
	}
	if err := unique(root); err != nil {
		return v, nil, err
	}
	if i := member(root, "hooks"); i >= 0 {
		if o, ok := root.Members[i].Value.Value.(*hujson.Object); ok {
			err = unique(o)
		}
	}
	return v, root, err
}

// unique refuses an object that names something twice: which one counts is for
// its reader to say.
func unique(o *hujson.Object) error {
	seen := map[string]bool{}
	for _, m := range o.Members {
		if l, ok := m.Name.Value.(hujson.Literal); ok {
			if seen[l.String()] {
				return fmt.Errorf("%w: %q stands there twice", ErrSettings, l.String())
			}
			seen[l.String()] = true
		}
	}
	return nil
}

func member(o *hujson.Object, name string) int {
	return slices.IndexFunc(o.Members, func(m hujson.ObjectMember) bool {
		l, ok := m.Name.Value.(hujson.Literal)
		return ok && l.Kind() == '"' && l.String() == name
	})
}

// Add puts a host's hooks into a settings text: whatever else is there stays
// as it is, byte for byte, and what is there already is not added again. An
// entry of ours whose line differs is brought up to date where it stands.
func Add(text []byte, host Host, command func(event string) string) ([]byte, error) {
	v, root, err := parse(text)
	if err != nil {
		return nil, err
	}
	unit := indentOf(text)
	events, err := child(root, "hooks", 1, unit, func() hujson.ValueTrimmed { return &hujson.Object{} })
	if err != nil {
		return nil, err
	}
	all, ok := events.(*hujson.Object)
	if !ok {
		return nil, fmt.Errorf("%w: its hooks are no object", ErrSettings)
	}
	for _, h := range host.Hooks {
		if i := member(all, h.Event); i >= 0 && replaced(&all.Members[i].Value, host.Name, command(h.Event)) {
			continue
		}
		list, err := child(all, h.Event, 2, unit, func() hujson.ValueTrimmed { return &hujson.Array{} })
		if err != nil {
			return nil, err
		}
		row, ok := list.(*hujson.Array)
		if !ok {
			return nil, fmt.Errorf("%w: its hooks for %s are no list", ErrSettings, h.Event)
		}
		entry, err := h.entry(command(h.Event), unit)
		if err != nil {
			return nil, err
		}
		if len(row.Elements) == 0 {
			row.AfterExtra = hujson.Extra("\n" + strings.Repeat(unit, 2))
		}
		entry.BeforeExtra = hujson.Extra("\n" + strings.Repeat(unit, 3))
		row.Elements = append(row.Elements, entry)
	}
	return whole(v)
}

// whole prints settings, and makes sure that they are JSON still.
func whole(v hujson.Value) ([]byte, error) {
	out := v.Pack()
	if !json.Valid(out) {
		return nil, fmt.Errorf("%w: it cannot be changed without damage", ErrSettings)
	}
	return out, nil
}

// child gives a member's value, which is made if it is not there.
func child(o *hujson.Object, name string, depth int, unit string, empty func() hujson.ValueTrimmed) (hujson.ValueTrimmed, error) {
	if i := member(o, name); i >= 0 {
		return o.Members[i].Value.Value, nil
	}
	m := hujson.ObjectMember{
		Name:  hujson.Value{BeforeExtra: hujson.Extra("\n" + strings.Repeat(unit, depth)), Value: hujson.String(name)},
		Value: hujson.Value{BeforeExtra: hujson.Extra(" "), Value: empty()},
	}
	if len(o.Members) == 0 {
		o.AfterExtra = hujson.Extra("\n" + strings.Repeat(unit, depth-1))
	}
	o.Members = append(o.Members, m)
	return m.Value.Value, nil
}

// indentOf is what one level is indented by.
func indentOf(text []byte) string {
	for line := range strings.Lines(string(text)) {
		t := strings.TrimLeft(line, " \t")
		if n := len(line) - len(t); n > 0 && strings.HasPrefix(t, `"`) {
			return line[:n]
		}
	}
	return "  "
}

// entry is one hook as it stands in a list of an event.
func (h Hook) entry(command, unit string) (hujson.Value, error) {
	type action struct {
		Type    string `json:"type"`
		Command string `json:"command"`
		Timeout int    `json:"timeout"`
	}
	b, err := jsonText(struct {
		Matcher string   `json:"matcher,omitempty"`
		Hooks   []action `json:"hooks"`
	}{h.Matcher, []action{{"command", command, h.Timeout}}}, strings.Repeat(unit, 3), unit)
	if err != nil {
		return hujson.Value{}, err
	}
	return hujson.Parse(b)
}

func jsonText(v any, prefix, unit string) ([]byte, error) {
	var sb strings.Builder
	e := json.NewEncoder(&sb)
	e.SetEscapeHTML(false)
	e.SetIndent(prefix, unit)
	err := e.Encode(v)
	return []byte(strings.TrimRight(sb.String(), "\n")), err
}

// replaced brings our entry in a list of an event up to date; false if there
// is none.
func replaced(list *hujson.Value, host, command string) bool {
	found := false
	each(list, func(_ *hujson.Array, _ int, action *hujson.Object) bool {
		i := member(action, "command")
		l, ok := action.Members[i].Value.Value.(hujson.Literal)
		if !ok || found {
			return false
		}
		if _, ours := Ours(l.String(), host); ours {
			found = true
			if l.String() != command {
				action.Members[i].Value.Value = hujson.String(command)
			}
		}
		return false
	})
	return found
}

// each calls f for each action with a command in a list of an event. Where f
// says so the action is taken out, and the entry with it if it was the last.
func each(list *hujson.Value, f func(row *hujson.Array, i int, action *hujson.Object) (remove bool)) {
	entries, ok := list.Value.(*hujson.Array)
	if !ok {
		return
	}
	for n := 0; n < len(entries.Elements); n++ {
		o, ok := entries.Elements[n].Value.(*hujson.Object)
		if !ok {
			continue
		}
		i := member(o, "hooks")
		if i < 0 {
			continue
		}
		row, ok := o.Members[i].Value.Value.(*hujson.Array)
		if !ok {
			continue
		}
		before := len(row.Elements)
		for k := 0; k < len(row.Elements); k++ {
			action, ok := row.Elements[k].Value.(*hujson.Object)
			if ok && member(action, "command") >= 0 && f(row, k, action) {
				row.Elements = slices.Delete(row.Elements, k, k+1)
				k--
			}
		}
		endArray(row)
		if before > 0 && len(row.Elements) == 0 {
			entries.Elements = slices.Delete(entries.Elements, n, n+1)
			n--
		}
	}
	endArray(entries)
}

// endArray leaves no comma behind the last element, and endObject none behind
// the last member: white space that stood before one belongs to the end now.
func endArray(a *hujson.Array) {
	if n := len(a.Elements); n == 0 {
		a.AfterExtra = nil
	} else if last := &a.Elements[n-1]; last.AfterExtra != nil {
		a.AfterExtra = append(last.AfterExtra, a.AfterExtra...)
		last.AfterExtra = nil
	}
}

func endObject(o *hujson.Object) {
	if n := len(o.Members); n == 0 {
		o.AfterExtra = nil
	} else if last := &o.Members[n-1].Value; last.AfterExtra != nil {
		o.AfterExtra = append(last.AfterExtra, o.AfterExtra...)
		last.AfterExtra = nil
	}
}

// Remove takes our hooks out of a settings text, and the lists and the object
// that are empty then. Everything else stays as it is.
func Remove(text []byte, host Host) ([]byte, error) {
	v, root, err := parse(text)
	if err != nil {
		return nil, err
	}
	i := member(root, "hooks")
	if i < 0 {
		return text, nil
	}
	all, ok := root.Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return text, nil
	}
	changed := false
	for n := 0; n < len(all.Members); n++ {
		list := &all.Members[n].Value
		removed := false
		each(list, func(_ *hujson.Array, _ int, action *hujson.Object) bool {
			l, ok := action.Members[member(action, "command")].Value.Value.(hujson.Literal)
			if !ok {
				return false
			}
			_, ours := Ours(l.String(), host.Name)
			removed = removed || ours
			return ours
		})
		changed = changed || removed
		if row, ok := list.Value.(*hujson.Array); ok && removed && len(row.Elements) == 0 {
			all.Members = slices.Delete(all.Members, n, n+1)
			n--
		}
	}
	if !changed {
		return text, nil
	}
	endObject(all)
	if len(all.Members) == 0 {
		root.Members = slices.Delete(root.Members, i, i+1)
		endObject(root)
	}
	return whole(v)
}

// Installed lists the events that a settings text has our hooks for.
func Installed(text []byte, host Host) (events []string, command string, err error) {
	_, root, err := parse(text)
	if err != nil {
		return nil, "", err
	}
	i := member(root, "hooks")
	if i < 0 {
		return nil, "", nil
	}
	all, ok := root.Members[i].Value.Value.(*hujson.Object)
	if !ok {
		return nil, "", nil
	}
	for n := range all.Members {
		each(&all.Members[n].Value, func(_ *hujson.Array, _ int, action *hujson.Object) bool {
			if l, ok := action.Members[member(action, "command")].Value.Value.(hujson.Literal); ok {
				if event, ours := Ours(l.String(), host.Name); ours {
					events, command = append(events, event), l.String()
				}
			}
			return false
		})
	}
	return events, command, nil
}

// Snippet is what a person would paste where no program may write.
func Snippet(host Host, command func(event string) string) string {
	b, err := Add(nil, host, command)
	if err != nil {
		return ""
	}
	return string(b)
}

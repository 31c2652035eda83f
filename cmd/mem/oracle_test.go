package main

import (
	"fmt"
	"path"
	"strings"

	"github.com/tieredmem/mem/durable/faultfs"
	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/journal"
	"github.com/tieredmem/mem/plan"
)

// want is what the oracle of a scenario expects.
type want struct {
	facts  map[string]int // text → how often it must stand outside .mem
	made   map[string]int // likewise, of text that the command itself brings, once it has run to its end
	maybe  map[string]int // likewise, once the command was acknowledged; before that at most so often
	gone   []string       // stands at most once, and not any more once the command was acknowledged
	either []string       // exactly one of these stands, exactly once
	keep   map[string]string
	trash  map[string]int // text → in how many files of the trash it must be
	even   [][2]string    // each of the two stands as often as the other: a text's beginning and its end
	buffer bool
}

func (w want) check(d *faultfs.Disk, acked bool) (bad []string) {
	var visible, trash strings.Builder
	for _, name := range d.Names() {
		text, _ := d.Text(name)
		if strings.HasPrefix(name, boxDir+"/.") {
			continue // not a handoff yet
		}
		if !strings.HasPrefix(name, ".mem/") {
			visible.WriteString(text)
		} else if strings.HasPrefix(name, ".mem/trash/") {
			trash.WriteString(text)
		}
		bad = append(bad, checkName(name, text)...)
	}
	all := visible.String()
	for f, n := range w.facts {
		if got := strings.Count(all, f); got != n {
			bad = append(bad, fmt.Sprintf("1 %q stands %d times, want %d", f, got, n))
		}
	}
	for f, n := range w.made {
		if got := strings.Count(all, f); got != n {
			bad = append(bad, fmt.Sprintf("1 %q stands %d times, want %d", f, got, n))
		}
	}
	for f, n := range w.trash {
		if got := strings.Count(trash.String(), f); got != n {
			bad = append(bad, fmt.Sprintf("1 %q is in the trash %d times, want %d", f, got, n))
		}
	}
	for f, n := range w.maybe {
		if got := strings.Count(all, f); got > n || acked && got != n {
			bad = append(bad, fmt.Sprintf("1 %q stands %d times, want %d (acked %v)", f, got, n, acked))
		}
	}
	for _, pair := range w.even {
		if strings.Count(all, pair[0]) != strings.Count(all, pair[1]) {
			bad = append(bad, fmt.Sprintf("1 %q does not stand as often as %q", pair[0], pair[1]))
		}
	}
	for _, f := range w.gone {
		if got := strings.Count(all, f); got > 1 || acked && got != 0 {
			bad = append(bad, fmt.Sprintf("1 %q stands %d times, want none (acked %v)", f, got, acked))
		}
	}
	if len(w.either) > 0 {
		n := 0
		for _, e := range w.either {
			n += strings.Count(all, e)
		}
		if n != 1 {
			bad = append(bad, fmt.Sprintf("1 one of %q stands %d times", w.either, n))
		}
	}
	if strings.ContainsRune(all, 0) {
		bad = append(bad, "2 zero bytes in visible text")
	}
	for name, part := range w.keep {
		if text, _ := d.Text(name); !containsLines(text, part) {
			bad = append(bad, "2 older text of "+name+" is not as it was")
		}
	}
	if w.buffer {
		text, ok := d.Text(bufPath)
		if b := entry.ParseBuffer([]byte(text)); !ok || b.Dialect != entry.Canonical {
			bad = append(bad, "3 no buffer with a valid header")
		}
	}
	return append(bad, checkReceipts(d)...)
}

// containsLines reports whether old's lines stand in text in their order.
func containsLines(text, old string) bool {
	rest := text
	for _, l := range strings.SplitAfter(old, "\n") {
		i := strings.Index(rest, l)
		if i < 0 {
			return false
		}
		rest = rest[i+len(l):]
	}
	return true
}

func checkName(name, text string) (bad []string) {
	base := path.Base(name)
	_, staged := journal.StagedBy(base)
	if staged || strings.HasPrefix(name, ".mem/tx/") || strings.HasSuffix(base, ".lock") && name != ".mem/lock" ||
		strings.HasSuffix(base, ".rotating") || strings.Contains(base, ".pending") {
		bad = append(bad, "4 left over: "+path.Dir(name)+"/"+kindOf(base))
	}
	if strings.HasPrefix(name, ".mem/trash/") {
		t, ok := plan.ParseTrash(name)
		if !ok || int64(len(text)) < t.Size || plan.Hash([]byte(text)[:t.Size]) != t.Hash {
			bad = append(bad, "5 a trash name that is not its content's hash")
		}
	}
	return bad
}

func kindOf(base string) string {
	if _, staged := journal.StagedBy(base); staged {
		return "staged"
	}
	if i := strings.LastIndex(base, "."); i >= 0 {
		return base[i:]
	}
	return base
}

func checkReceipts(d *faultfs.Disk) (bad []string) {
	undone := map[string]bool{}
	var receipts []plan.Plan
	for _, name := range d.Names() {
		if !strings.HasPrefix(name, ".mem/receipts/") {
			continue
		}
		text, _ := d.Text(name)
		p, err := plan.Decode([]byte(text))
		if err != nil {
			bad = append(bad, "6 a receipt that does not parse")
			continue
		}
		if u, ok := p.Facts["undoes"].(string); ok {
			undone[u] = true
		}
		receipts = append(receipts, p)
	}
	for _, p := range receipts {
		if undone[p.ID] {
			continue
		}
		for _, s := range p.Steps {
			text, there := d.Text(s.Path)
			switch {
			case s.Reason == "stage-removed": // there is nothing to keep
			case s.Outcome == plan.Conflict && s.Kind != plan.Seal && s.Kind != plan.Move:
				if _, ok := d.Text(s.To); !ok && s.Stage.Name != "" {
					bad = append(bad, "6 a conflict without its draft")
				}
			case s.Kind == plan.Append && !strings.Contains(text, strings.TrimSpace(string(s.Text))):
				if s.Place != entry.ActiveTask { // a note may have been rotated since
					bad = append(bad, "6 a receipt tells of text that is not there")
				}
			case s.Kind == plan.Create && !there:
				bad = append(bad, "6 a receipt tells of a file that is not there")
			}
		}
	}
	return bad
}

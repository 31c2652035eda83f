// Package arrows holds the direction of imports: features decide, durable
// acts, and they meet in plan (docs/design/architecture.md).
package arrows

import (
	"encoding/json"
	"errors"
	"io"
	"os/exec"
	"slices"
	"strings"
	"testing"
)

const module = "github.com/tieredmem/mem/"

// may says which packages of ours each package may import.
var may = map[string][]string{
	"tiers":           {},
	"plan":            {},
	"durable":         {},
	"guard":           {},
	"vcs":             {},
	"entry":           {"tiers"},
	"durable/faultfs": {"durable"},
	"crash":           {"durable", "durable/faultfs"},
	"journal":         {"plan", "durable"},
	"workspace":       {"tiers", "plan", "durable", "journal"},
	"buffer":          {"tiers", "entry", "plan"},
	"walk":            {},
	"health":          {"tiers", "entry", "plan", "guard", "walk"},
	"lessons":         {"tiers", "entry", "plan"},
	"archive":         {"tiers", "entry", "plan"},
	"review":          {"tiers", "entry", "plan", "health", "archive", "lessons", "buffer"},
	"schedule":        {},
	"handoff":         {"tiers", "entry", "plan", "guard"},
	"inbox":           {"durable"},
	"search":          {"tiers", "entry", "walk"},
	"load":            {"tiers", "entry"},
	"hooks":           {},
	"session":         {"tiers", "entry", "plan"},
	"feedback":        {"tiers", "entry", "plan"},
	"heartbeat":       {"tiers", "entry", "plan", "feedback"},
	"mcp":             {},
}

// features never reach these, not even through others.
var (
	features = []string{"tiers", "plan", "entry", "guard", "buffer", "walk", "health", "lessons", "archive", "review", "schedule", "handoff", "search", "load", "hooks", "mcp", "session", "feedback", "heartbeat"}
	never    = []string{
		module + "durable", module + "journal", module + "workspace",
		"github.com/alecthomas/kong", "github.com/gofrs/flock", "github.com/rs/zerolog",
	}
)

// onlyStandard are packages that import nothing but the standard library and
// what stands beside their name.
var onlyStandard = map[string][]string{
	"plan":    {},
	"durable": {"golang.org/x/sys"},
	"tiers":   {"github.com/bmatcuk/doublestar", "go.yaml.in/yaml"},
}

type pkg struct {
	ImportPath string
	Imports    []string
	Deps       []string
	Standard   bool
}

func list(t *testing.T) map[string]pkg {
	t.Helper()
	cmd := exec.Command("go", "list", "-deps", "-json=ImportPath,Imports,Deps,Standard", module+"...")
	cmd.Dir = "../.."
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	all := map[string]pkg{}
	for d := json.NewDecoder(out); ; {
		var p pkg
		if err := d.Decode(&p); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		all[p.ImportPath] = p
	}
	if err := cmd.Wait(); err != nil {
		t.Fatal(err)
	}
	return all
}

func TestArrows(t *testing.T) {
	all := list(t)
	for name, allowed := range may {
		p, ok := all[module+name]
		if !ok {
			t.Errorf("package %s is in the table and not in the code", name)
			continue
		}
		for _, i := range p.Imports {
			if ours, ok := strings.CutPrefix(i, module); ok && !slices.Contains(allowed, ours) {
				t.Errorf("%s imports %s; the table allows %v", name, ours, allowed)
			}
		}
	}
	for path := range all {
		name, ours := strings.CutPrefix(path, module)
		if _, known := may[name]; ours && !known && !strings.HasPrefix(name, "cmd/") && !strings.HasPrefix(name, "internal/") && name != "bench" && !strings.HasPrefix(name, "bench/") {
			t.Errorf("package %s is in the code and not in the table", name)
		}
	}
	for _, f := range features {
		for _, n := range never {
			if slices.Contains(all[module+f].Deps, n) {
				t.Errorf("%s reaches %s", f, n)
			}
		}
	}
	for name, extra := range onlyStandard {
		for _, d := range all[module+name].Deps {
			if strings.HasPrefix(d, module) || all[d].Standard || slices.ContainsFunc(extra, func(e string) bool { return strings.HasPrefix(d, e) }) {
				continue
			}
			t.Errorf("%s reaches %s", name, d)
		}
	}
}

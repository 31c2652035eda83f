//go:build unix

package main

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/rogpeppe/go-internal/testscript"

	"github.com/tieredmem/mem/handoff"
)

// handoffCmd0: handoff FILE KIND TARGET GO-QUOTED [HASH] writes a handoff. KIND is create,
// update or document.
func handoffCmd0(ts *testscript.TestScript, neg bool, args []string) {
	if neg || len(args) < 4 {
		ts.Fatalf("usage: handoff FILE create|update|document TARGET TEXT [HASH]")
	}
	content, err := strconv.Unquote(`"` + args[3] + `"`)
	ts.Check(err)
	n := handoff.New{Type: "setup", Title: "From " + filepath.Base(args[0]), Summary: "It happened.", Evidence: "- seen", Content: content, Action: "no-card"}
	switch args[1] {
	case "create":
		n.Action, n.Card = "create-card", args[2]
	case "update":
		n.Action, n.Card = "update-card", args[2]
		if len(args) > 4 {
			n.Expected = args[4]
		}
	case "document":
		n.Document = args[2]
	default:
		ts.Fatalf("kind %q", args[1])
	}
	name := ts.MkAbs(args[0])
	ts.Check(os.MkdirAll(filepath.Dir(name), 0o755))
	ts.Check(os.WriteFile(name, n.Text(), 0o644))
}

// verdictCmd: verdict NAME VERDICT CODE wants that in .mem/ingest/latest.json.
func verdictCmd(ts *testscript.TestScript, neg bool, args []string) {
	b, err := os.ReadFile(ts.MkAbs(".mem/ingest/latest.json"))
	ts.Check(err)
	text := string(b)
	i := strings.Index(text, "/"+args[0]+`",`)
	if i < 0 {
		ts.Fatalf("%s is not in latest.json", args[0])
	}
	one, _, _ := strings.Cut(text[i:], "}")
	want := fmt.Sprintf("\"verdict\": %q,\n   \"reason_code\": %q", args[1], args[2])
	if !strings.Contains(one, want) {
		ts.Fatalf("%s: want %s %s:\n%s", args[0], args[1], args[2], one)
	}
}

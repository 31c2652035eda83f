package main

import (
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/alecthomas/kong"
)

// readers are the commands that write nothing, with arguments that make them do
// their work.
var readers = map[string][]string{
	"status": nil, "health": nil, "load": nil, "search": {"FACT"}, "receipts list": nil, "trash list": nil, "tags": nil, "lessons": nil, "config": nil, "version": nil,
	"completion": {"bash"}, "handoff list": nil, "handoff doctor": nil, "inbox list": nil, "inbox show": {"0123456789ab"}, "feedback list": nil, "session load": nil, "heartbeat": nil,
	"hook status": nil, "hook rules": nil, "hook skill": nil, "schedule print": {"--backend", "systemd"}, "schedule status": {"--backend", "systemd"}, "diff": {"RECEIPT"},
}

// elsewhere are those that other tests look after.
var elsewhere = map[string]string{
	"handoff lint":   "reads a file by its path, writes none: testdata/script/ingest.txt",
	"handoff show":   "likewise",
	"session record": "runs an extractor: scenario record has what it writes, testdata/script/session.txt the rest",
	"mcp":            "its tools are these commands, run in its process: TestMCP",
}

// TestEveryCommand: each command that writes is crashed by a scenario of whole
// command lines, each that reads leaves the disk as it was, and none is
// forgotten.
func TestEveryCommand(t *testing.T) {
	k, err := parser(&cli{}, commands(), environment{stdout: io.Discard, stderr: io.Discard}, func(int) {})
	if err != nil {
		t.Fatal(err)
	}
	rules := testRules(t, "canonical")
	var leaves []string
	var walk func(n *kong.Node, name string)
	walk = func(n *kong.Node, name string) {
		var below []*kong.Node
		for _, c := range n.Children {
			if c.Type == kong.CommandNode {
				below = append(below, c)
			}
		}
		if len(below) == 0 {
			leaves = append(leaves, name)
		}
		for _, c := range below {
			walk(c, strings.TrimSpace(name+" "+c.Name))
		}
	}
	walk(k.Model.Node, "")
	all := programs()
	draft := find(t, "mem inbox reject").files
	for _, leaf := range leaves {
		t.Run(leaf, func(t *testing.T) {
			crashed := slices.ContainsFunc(all, func(s scenario) bool {
				return s.name == "mem "+leaf || strings.HasPrefix(s.name, "mem "+leaf+" -") || strings.HasPrefix(s.name, "mem "+leaf+",")
			})
			args, reads := readers[leaf]
			if why := elsewhere[leaf]; why != "" {
				return
			}
			if !crashed && !reads {
				t.Fatal("no scenario crashes it, and it is not known to only read")
			}
			if !reads {
				return
			}
			files, setup := draft, memRun("", "rotate", "--force")
			switch {
			case strings.HasPrefix(leaf, "session"):
				files, setup = find(t, "mem session promote").files, nil
			case strings.HasPrefix(leaf, "feedback"), leaf == "heartbeat":
				files, setup = find(t, "mem feedback add").files, nil
			}
			d := scenario{name: leaf, files: files, setup: setup}.on(t, rules, nil).Disk()
			d.Mkdirs(boxDir, "home/.config/systemd/user") // which really are there
			for i, a := range args {
				if a == "RECEIPT" {
					args[i] = newestReceipt(d.Names())
				}
			}
			before := d.Key()
			e := program{disk: d, at: at0, zone: "UTC"}.run(append(strings.Fields(leaf), args...)...)
			if err := e.err(); err != nil {
				t.Fatal(err)
			}
			if e.out == "" {
				t.Error("it said nothing")
			}
			if d.Key() != before {
				t.Error("it changed the disk")
			}
		})
	}
	for name := range readers {
		if !slices.Contains(leaves, name) {
			t.Errorf("there is no command %q", name)
		}
	}
}

func newestReceipt(names []string) string {
	id := ""
	for _, n := range names {
		if r, ok := strings.CutPrefix(n, ".mem/receipts/2026/11/"); ok {
			id = strings.TrimSuffix(r, ".json")
		}
	}
	return id
}

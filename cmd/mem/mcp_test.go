//go:build unix

package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// connect starts mem mcp as a process and connects the SDK's client to it.
func connect(t *testing.T, dir string, flags ...string) *sdk.ClientSession {
	t.Helper()
	name, err := exec.LookPath("mem")
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(name, append([]string{"--workspace", dir, "mcp"}, flags...)...)
	cmd.Env = append(os.Environ(), "TZ=UTC", "HOME="+t.TempDir(), "MEM_AT=2026-11-30T09:30:00Z")
	cmd.Stderr = os.Stderr
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	t.Cleanup(cancel)
	s, err := sdk.NewClient(&sdk.Implementation{Name: "test", Version: "1"}, nil).Connect(ctx, &sdk.CommandTransport{Command: cmd}, nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := s.Close(); err != nil {
			t.Errorf("close: %v", err)
		}
	})
	return s
}

func call(t *testing.T, s *sdk.ClientSession, tool string, args map[string]any) (text string, object map[string]any, failed bool) {
	t.Helper()
	r, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: tool, Arguments: args})
	if err != nil {
		t.Fatalf("%s: %v", tool, err)
	}
	if r.StructuredContent != nil {
		b, err := json.Marshal(r.StructuredContent)
		if err != nil || json.Unmarshal(b, &object) != nil {
			t.Fatal(err)
		}
	}
	for _, c := range r.Content {
		if x, ok := c.(*sdk.TextContent); ok {
			text += x.Text
		}
	}
	return text, object, r.IsError
}

// TestMCP: a client of the SDK lists and calls every tool of a real process;
// what cannot be done is a result.
func TestMCP(t *testing.T) {
	b := newBox(t)
	s := connect(t, b.dir)
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	var names, writing []string
	for _, x := range list.Tools {
		names = append(names, x.Name)
		if !x.Annotations.ReadOnlyHint {
			writing = append(writing, x.Name)
			if x.Annotations.DestructiveHint == nil || *x.Annotations.DestructiveHint {
				t.Errorf("%s is said to destroy", x.Name)
			}
		}
		if x.Annotations.OpenWorldHint == nil || *x.Annotations.OpenWorldHint || x.Description == "" {
			t.Errorf("%s: hints %+v", x.Name, x.Annotations)
		}
	}
	slices.Sort(names)
	slices.Sort(writing)
	if want := []string{"memory_handoff", "memory_health", "memory_inbox_list", "memory_learn", "memory_load", "memory_note", "memory_search", "memory_status"}; !slices.Equal(names, want) {
		t.Errorf("tools %v", names)
	}
	if want := []string{"memory_handoff", "memory_learn", "memory_note"}; !slices.Equal(writing, want) {
		t.Errorf("writing tools %v", writing)
	}

	good := []struct {
		tool string
		args map[string]any
		want string // in the text
	}{
		{"memory_note", map[string]any{"text": "--the gateway moved\nto port 9090"}, "noted"},
		{"memory_learn", map[string]any{"kind": "error", "text": "port 80 needs root"}, "LEARNINGS.md|ERRORS.md"},
		{"memory_search", map[string]any{"query": "gateways"}, "working-buffer.md"},
		{"memory_search", map[string]any{"query": "--all", "all": true, "tier": []string{"HOT", "warm"}, "limit": 3}, `"hits":[`},
		{"memory_search", map[string]any{"query": "?!"}, `"hits":[]`},
		{"memory_load", nil, "the gateway moved"},
		{"memory_load", map[string]any{"budget": 400, "since": "2026-11-01", "match": "root"}, "## From"},
		{"memory_health", nil, `"findings"`},
		{"memory_health", map[string]any{"only": []string{"hot"}, "skip": []string{"hot.budget"}}, `"findings"`},
		{"memory_status", nil, `"tiers"`},
		{"memory_inbox_list", nil, `"drafts":[]`},
		{"memory_handoff", map[string]any{"type": "bugfix", "title": "Port taken", "document": "rules/ports.md", "content": "Port 80 needs root.", "facts": "- it does", "evidence": "- bind: permission denied"}, "applied"},
	}
	for _, c := range good {
		text, object, failed := call(t, s, c.tool, c.args)
		if failed || object == nil || !slices.ContainsFunc(strings.Split(c.want, "|"), func(w string) bool { return strings.Contains(text, w) }) {
			t.Errorf("%s %v: failed %v, object %v, text %s", c.tool, c.args, failed, object != nil, text)
		}
	}
	text, err := os.ReadFile(filepath.Join(b.dir, "memory/working-buffer.md"))
	if err != nil || strings.Count(string(text), "--the gateway moved\n  to port 9090") != 1 {
		t.Errorf("%v %s", err, text)
	}
	if left, _ := filepath.Glob(filepath.Join(b.dir, boxDir, "2026-11-30-*-port-taken.md")); len(left) != 1 {
		t.Errorf("handoffs: %v", left)
	}
	if _, err := os.Lstat(filepath.Join(b.dir, "rules/ports.md")); err == nil {
		t.Error("the handoff was written to its target")
	}

	bad := []struct {
		tool string
		args map[string]any
		want string
	}{
		{"memory_load", map[string]any{"budget": -1}, "nothing could be printed"},
		{"memory_load", map[string]any{"since": "yesterday"}, "is no day"},
		{"memory_search", map[string]any{"query": "x", "tier": []string{"lukewarm"}}, "--tier"},
		{"memory_search", map[string]any{"query": "x", "limit": -1}, "count hits"},
		{"memory_learn", map[string]any{"kind": "joke", "text": "x"}, "kind"},
		{"memory_learn", map[string]any{"kind": "error", "text": "port 80 needs root"}, "stands"},
		{"memory_note", map[string]any{"text": ""}, ""},
		{"memory_note", map[string]any{"text": strings.Repeat("x", 130_000)}, ""},
		{"memory_handoff", map[string]any{"type": "bugfix", "title": "t", "card": "a", "document": "b", "content": "c"}, "exclude each other"},
		{"memory_health", map[string]any{"only": []string{"nonsense"}}, "nonsense"},
		{"memory_search", map[string]any{}, "query"},
		{"memory_search", map[string]any{"query": 7}, "query"},
	}
	for _, c := range bad {
		text, _, failed := call(t, s, c.tool, c.args)
		if !failed || !strings.Contains(text, c.want) {
			t.Errorf("%s: failed %v, text %.300s", c.tool, failed, text)
		}
	}
	if _, err := s.CallTool(t.Context(), &sdk.CallToolParams{Name: "memory_erase"}); err == nil {
		t.Error("a tool that is not there was called")
	}

	resources(t, s, b)
}

func resources(t *testing.T, s *sdk.ClientSession, b *box) {
	t.Helper()
	list, err := s.ListResources(t.Context(), nil)
	if err != nil || len(list.Resources) != 1 || list.Resources[0].URI != "memory:///hot" {
		t.Fatalf("%v %+v", err, list)
	}
	templates, err := s.ListResourceTemplates(t.Context(), nil)
	if err != nil || len(templates.ResourceTemplates) != 1 {
		t.Fatalf("%v %+v", err, templates)
	}
	if err := os.WriteFile(filepath.Join(b.dir, "memory/episodic/2026-11-29.md"), []byte("# 2026-11-29\n\n- yesterday\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	for uri, want := range map[string]string{"memory:///hot": "# Memory", "memory:///note/2026-11-29": "- yesterday"} {
		r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri})
		if err != nil || len(r.Contents) != 1 || !strings.Contains(r.Contents[0].Text, want) {
			t.Errorf("%s: %v %+v", uri, err, r)
		}
	}
	for _, uri := range []string{"memory:///note/2026-01-01", "memory:///note/..", "memory:///note/2026-11-29%2f..%2fx", "memory:///note/../../etc/passwd"} {
		if r, err := s.ReadResource(t.Context(), &sdk.ReadResourceParams{URI: uri}); err == nil {
			t.Errorf("%s: %+v", uri, r.Contents[0])
		}
	}
}

// TestMCPReadOnly: without the tools that write.
func TestMCPReadOnly(t *testing.T) {
	b := newBox(t)
	s := connect(t, b.dir, "--read-only")
	list, err := s.ListTools(t.Context(), nil)
	if err != nil {
		t.Fatal(err)
	}
	for _, x := range list.Tools {
		if !x.Annotations.ReadOnlyHint {
			t.Errorf("%s is served", x.Name)
		}
	}
	if len(list.Tools) != 5 {
		t.Errorf("%d tools", len(list.Tools))
	}
}

// TestMCPFrames: a line that is no message has its answer, and the session
// goes on.
func TestMCPFrames(t *testing.T) {
	b := newBox(t)
	cmd := b.cmd(nil, "mcp")
	hello := `{"jsonrpc":"2.0","id":1,"method":"initialize","params":{"protocolVersion":"2025-06-18","capabilities":{},"clientInfo":{"name":"t","version":"1"}}}`
	in, err := cmd.StdinPipe()
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	stdout, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	if _, err := io.WriteString(in, "garbage\n[]\n{\"jsonrpc\":\"2.0\"}\n\n"+hello+"\n"+`{"jsonrpc":"2.0","method":"notifications/initialized"}`+"\n{\"x\":\""+strings.Repeat("x", 9<<20)+"\"}\n"+
		`{"jsonrpc":"2.0","id":2,"method":"tools/call","params":{"name":"memory_load","arguments":{"budget":0}}}`+"\n"); err != nil {
		t.Fatal(err)
	}
	for sc := bufio.NewScanner(stdout); sc.Scan(); {
		out.WriteString(sc.Text() + "\n")
		if strings.Contains(sc.Text(), `"id":2`) {
			break
		}
	}
	if err := errors.Join(in.Close(), cmd.Wait()); err != nil {
		t.Fatalf("%v %s", err, out.String())
	}
	for _, want := range []string{`"code":-32700`, `"code":-32600`, "more than", `"protocolVersion"`, `"id":2`, "nothing could be printed"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("%s is not in\n%.2000s", want, out.String())
		}
	}
	if n := strings.Count(out.String(), `"error":{"code"`); n != 4 {
		t.Errorf("%d errors\n%.2000s", n, out.String())
	}
}

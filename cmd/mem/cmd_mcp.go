package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"os/signal"
	"runtime/debug"
	"strings"
	"sync"
	"syscall"
	"time"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"

	"github.com/tieredmem/mem/mcp"
	"github.com/tieredmem/mem/tiers"
)

type mcpCmd struct {
	ReadOnly bool `help:"Without the tools that write."`
}

func (*mcpCmd) Help() string {
	return "Serves this workspace's memory over the Model Context Protocol on stdin and stdout.\nThe tools are the commands: memory_load, memory_search, memory_health, memory_note,\nmemory_learn, memory_handoff, memory_inbox_list, memory_status.\n\n  claude mcp add mem -- mem --workspace ~/memory mcp\n  codex mcp add mem -- mem --workspace ~/memory mcp"
}

func (c *mcpCmd) Run(a *app) error {
	if _, err := a.open(false); err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	out := &oneWriter{w: a.env.stdout}
	in := mcp.Frames(a.env.stdin, func(b []byte) { out.Write(b) }) //nolint:errcheck // the client has gone then
	err := a.mcpServer(c.ReadOnly).Run(ctx, &sdk.IOTransport{Reader: io.NopCloser(in), Writer: out})
	if errors.Is(err, context.Canceled) || errors.Is(err, io.EOF) || err != nil && strings.Contains(err.Error(), "EOF") {
		return nil // the client has gone
	}
	return err
}

// oneWriter lets one message out after the other.
type oneWriter struct {
	mu sync.Mutex
	w  io.Writer
}

func (o *oneWriter) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.w.Write(b)
}

func (o *oneWriter) Close() error { return nil }

// mcpServer serves this workspace: each call is a run of a command, at its own
// instant.
func (a *app) mcpServer(readOnly bool) *sdk.Server {
	v := version
	if info, ok := debug.ReadBuildInfo(); ok && v == "dev" && info.Main.Version != "" {
		v = info.Main.Version
	}
	var one sync.Mutex // calls of one client come one after the other, as commands would
	return mcp.New(mcp.Options{
		Version: v, ReadOnly: readOnly,
		Call: func(_ context.Context, args []string, stdin string) (string, string, int) {
			one.Lock()
			defer one.Unlock()
			var out, errs bytes.Buffer
			env := a.env
			env.args = append([]string{"--workspace=" + a.dir, "--json"}, args...)
			if a.At != "" {
				env.args = append([]string{"--at=" + a.At}, env.args...)
			}
			env.stdin, env.stdout, env.stderr = strings.NewReader(stdin), &out, &errs
			env.stdoutTTY, env.stderrTTY = false, false
			env.getwd = func() (string, error) { return a.dir, nil }
			env.now = time.Now() // each call is a run of its own
			code := run(env)
			return out.String(), errs.String(), code
		},
		Read: a.resource,
	})
}

// maxResource bounds a resource, in bytes.
const maxResource = 4 << 20

// resource reads the always-loaded file or a day's note.
func (a *app) resource(what string) (string, error) {
	rules := a.ws.Rules
	name := rules.Hot.File
	if what != "hot" {
		if !tiers.ValidDay(what) {
			return "", fmt.Errorf("%q is no day", what)
		}
		name = strings.ReplaceAll(rules.Note, "{date}", what)
	}
	info, err := fs.Stat(a.ws.View(), name)
	if err != nil {
		return "", err
	}
	if info.Size() > maxResource {
		return "", fmt.Errorf("%s has %d bytes", name, info.Size())
	}
	b, err := fs.ReadFile(a.ws.View(), name)
	return strings.ToValidUTF8(string(b), "\ufffd"), err
}

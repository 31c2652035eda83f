// Command mem maintains the Markdown memory of AI agents: it rotates the
// working buffer, recovers what a crash left, archives by age, checks the
// invariants and lands handoffs. The Markdown stays the only truth.
package main

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zone data is built in (spec: durability, rule 8)
	"unicode/utf8"

	"github.com/alecthomas/kong"
	"golang.org/x/term"

	"github.com/tieredmem/mem/workspace"
)

// version is set by the linker for releases.
var version = "dev"

// Exit codes, one list (spec: overview).
const (
	exitOK       = 0
	exitFindings = 1
	exitFailed   = 2
	exitLocked   = 3
	exitConflict = 4
	exitUsage    = 80
)

// environment is everything that a run takes from outside; it is read once.
type environment struct {
	program        string // as it was called
	args           []string
	stdin          io.Reader
	stdout, stderr io.Writer
	getenv         func(string) string
	getwd          func() (string, error)
	now            time.Time
	stdoutTTY      bool
	stderrTTY      bool
	// Tests put disks of their own under the program; nil: the real ones.
	open func(dir string) (disk, error)
	lock func(dir string) workspace.Locker
}

// openDisk is set by the tests' TestMain only.
var openDisk func(dir string) (disk, error)

func main() {
	os.Exit(run(environment{
		program: os.Args[0], args: os.Args[1:], stdin: os.Stdin, stdout: os.Stdout, stderr: os.Stderr,
		getenv: os.Getenv, getwd: os.Getwd, now: time.Now(),
		stdoutTTY: term.IsTerminal(int(os.Stdout.Fd())), stderrTTY: term.IsTerminal(int(os.Stderr.Fd())),
		open: openDisk,
	}))
}

// globals are the flags that every command has.
type globals struct {
	Workspace string        `short:"w" placeholder:"DIR" env:"MEM_WORKSPACE" help:"The workspace; without it, the first one from here upwards."`
	At        string        `placeholder:"TIME" env:"MEM_AT" help:"Run as if it were TIME (RFC 3339, or a date for its noon): to see what would happen then."`
	JSON      bool          `name:"json" help:"Print one JSON object (docs/json.md)."`
	DryRun    bool          `short:"n" help:"Print what would be done and change nothing."`
	Quiet     bool          `short:"q" help:"Print only errors."`
	Verbose   bool          `short:"v" help:"Print more."`
	LockWait  time.Duration `default:"10s" help:"How long to wait for another mem (0: not at all)."`
	LogLevel  string        `enum:"trace,debug,info,warn,error" default:"warn" help:"What to log to stderr: trace (every file operation), debug, info, warn, error."`
}

// cli is the grammar's root; the commands are added from the list.
type cli struct {
	globals
}

// command is one entry of the command list.
type command struct {
	name, help, group string
	node              any
}

func commands() []command {
	return []command{
		{"init", "Make a workspace, or fill in what one lacks.", "daily", &initCmd{}},
		{"status", "Show the workspace on one screen.", "daily", &statusCmd{}},
		{"health", "Check what must hold before an agent relies on memory.", "daily", &healthCmd{}},
		{"load", "Print what a session should begin with.", "daily", &loadCmd{}},
		{"search", "Find entries by their words.", "daily", &searchCmd{}},
		{"note", "Add a line to the working buffer.", "daily", &noteCmd{}},
		{"rotate", "Move the working buffer into today's note.", "daily", &rotateCmd{}},
		{"close", "Set the closure block of today's note.", "daily", &closeCmd{}},
		{"write", "Write stdin to a file, crash-safe.", "daily", &writeCmd{}},
		{"recover", "Finish or roll back whatever a crash left.", "safety", &recoverCmd{}},
		{"receipts", "Show what mem did.", "safety", &receiptsCmd{}},
		{"diff", "Show what a transaction changed.", "safety", &diffCmd{}},
		{"undo", "Take a transaction back.", "safety", &undoCmd{}},
		{"trash", "List, restore or prune what was removed or replaced.", "safety", &trashCmd{}},
		{"review", "Run the weekly job: health, archive, candidates, maintenance note.", "daily", &reviewCmd{}},
		{"archive", "Move what is past its time to the archive.", "daily", &archiveCmd{}},
		{"ingest", "Take the handoffs that agents left.", "handoffs", &ingestCmd{}},
		{"handoff", "Write, check and look after handoffs.", "handoffs", &handoffCmd{}},
		{"inbox", "Decide about what waits for a person.", "handoffs", &inboxCmd{}},
		{"learn", "Log what failed, what is better, what is missing.", "daily", &learnCmd{}},
		{"lessons", "Show what recurs in .learnings.", "daily", &lessonsCmd{}},
		{"promote", "Bring a lesson to its durable home.", "daily", &promoteCmd{}},
		{"verify", "Stamp today as last_verified, after a real check.", "daily", &verifyCmd{}},
		{"tags", "Show which files carry which tags.", "daily", &tagsCmd{}},
		{"session", "The sessions layout: record, load, promote.", "layouts", &sessionCmd{}},
		{"feedback", "The claude layout: what a person corrected and confirmed.", "layouts", &feedbackCmd{}},
		{"heartbeat", "The claude layout: four lists for the care of memory.", "layouts", &heartbeatCmd{}},
		{"hook", "Let agent hosts run mem by themselves.", "setup", &hookCmd{}},
		{"mcp", "Serve the memory over the Model Context Protocol.", "setup", &mcpCmd{}},
		{"config", "Show every setting and where it comes from.", "setup", &configCmd{}},
		{"schedule", "Let the weekly review run by itself.", "setup", &scheduleCmd{}},
		{"trust", "Let this workspace's mem.yaml run programs and reach outside.", "setup", &trustCmd{}},
		{"completion", "Print a shell's completion script.", "setup", &completionCmd{}},
		{"version", "Print the version.", "setup", &versionCmd{}},
	}
}

const description = "Keeps the Markdown memory of AI agents alive and honest: nothing an agent wrote is lost or doubled, whatever crashes, and nothing fails in silence."

// parser builds the grammar of the given commands. Building that of all of
// them takes longer than most commands run.
func parser(c *cli, cmds []command, env environment, exit func(int)) (*kong.Kong, error) {
	options := []kong.Option{
		kong.Name("mem"), kong.Description(description), kong.UsageOnError(), kong.Exit(exit),
		kong.Writers(env.stdout, env.stderr), kong.ShortUsageOnError(),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true, NoExpandSubcommands: true}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "daily", Title: "Every day:"}, {Key: "handoffs", Title: "Handoffs:"}, {Key: "safety", Title: "After a crash, and to look back:"}, {Key: "layouts", Title: "Other memory systems:"}, {Key: "setup", Title: "Setting up:"},
		}),
	}
	for _, x := range cmds {
		options = append(options, kong.DynamicCommand(x.name, x.help, x.group, x.node))
	}
	return kong.New(c, options...)
}

// checkedWriter remembers that something could not be written.
type checkedWriter struct {
	w   io.Writer
	err error
}

func (c *checkedWriter) Write(b []byte) (int, error) {
	n, err := c.w.Write(b)
	if err != nil {
		c.err = err
	}
	return n, err
}

// errExit carries kong's own exits (after --help) out of the parser.
type errExit int

func run(env environment) (code int) {
	defer func() {
		if r := recover(); r != nil {
			e, ok := r.(errExit)
			if !ok {
				panic(r)
			}
			code = int(e)
		}
	}()
	if isHookRun(env.args) {
		defer func() { code = exitOK }() // hosts take some codes for an order to stop
	}
	out := &checkedWriter{w: env.stdout}
	env.stdout = out
	defer func() {
		if out.err != nil && code == exitOK {
			fmt.Fprintf(env.stderr, "mem: error: the result could not be printed: %v\n", out.err)
			code = exitFailed
		}
	}()
	for _, s := range append([]string{env.getenv("MEM_WORKSPACE"), env.getenv("MEM_AT")}, env.args...) {
		if !utf8.ValidString(s) { // the parser would change it in silence
			a := &app{env: env, globals: globals{JSON: slices.Contains(env.args, "--json")}}
			return a.fail(&usageError{fmt.Sprintf("argument %q is not UTF-8", s), "give text and file names in UTF-8"})
		}
	}
	all := commands()
	c := &cli{}
	ctx, err := parse(c, one(all, env.args), env)
	if err != nil { // again with every command, for the right message
		c, all = &cli{}, commands()
		ctx, err = parse(c, all, env)
	}
	a := &app{env: env, globals: c.globals, commands: all}
	if err != nil {
		a.JSON = slices.Contains(env.args, "--json")
		var perr *kong.ParseError
		if errors.As(err, &perr) {
			return a.fail(&usageError{msg: perr.Error(), hint: usageHint(perr)})
		}
		return a.fail(err)
	}
	a.command = strings.Fields(ctx.Command())[0]
	if err := ctx.Run(a); err != nil {
		return a.fail(err)
	}
	return a.code
}

// isHookRun reports whether a host has called, rightly or not.
func isHookRun(args []string) bool {
	i := slices.Index(args, "hook")
	return i >= 0 && i+1 < len(args) && args[i+1] == "run"
}

func parse(c *cli, cmds []command, env environment) (*kong.Context, error) {
	k, err := parser(c, cmds, env, func(n int) { panic(errExit(n)) })
	if err != nil {
		return nil, err
	}
	args := env.args
	if len(args) == 0 {
		args = []string{"--help"}
	}
	return k.Parse(args)
}

// one picks the command that the arguments name, or all of them where none is
// named or help on the whole is asked for.
func one(all []command, args []string) []command {
	for k, a := range args {
		if k > 0 && slices.Contains([]string{"-w", "--workspace", "--at", "--lock-wait", "--log-level"}, args[k-1]) {
			continue // a flag's value
		}
		if i := slices.IndexFunc(all, func(c command) bool { return c.name == a }); i >= 0 {
			return all[i : i+1]
		}
	}
	return all
}

func usageHint(err *kong.ParseError) string {
	if err.Context != nil && err.Context.Selected() != nil {
		return fmt.Sprintf("mem %s --help", err.Context.Selected().FullPath()[4:])
	}
	return "mem --help lists the commands"
}

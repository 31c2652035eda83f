//go:build unix

// Command bench times mem as whole processes, beside its floors and peers, and
// prints a table of ratios: absolute times do not travel, ratios do.
//
//	go run ./bench -mem ./mem
package main

import (
	"flag"
	"fmt"
	"io"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/durable"
)

const hello = "package main\n\nimport \"os\"\n\nfunc main() { os.Stdout.WriteString(\"hello\\n\") }\n"

type side struct {
	name    string
	prepare func() // before each run, not timed
	run     func() *exec.Cmd
	times   []time.Duration
}

func (s *side) median() time.Duration { return s.times[len(s.times)/2] }

func main() {
	mem := flag.String("mem", "./mem", "the binary to time")
	runs := flag.Int("n", 200, "runs of each command")
	only := flag.String("only", "", "one of commands, health, archive, ingest, search, hooks; empty: all")
	large := flag.Bool("large", false, "also trees of 100,000 files")
	flag.Parse()
	log.SetFlags(0)
	dir, err := os.MkdirTemp(".", "bench-tmp-")
	check(err)
	defer os.RemoveAll(dir)
	dir, err = filepath.Abs(dir)
	check(err)
	bin, err := filepath.Abs(*mem)
	check(err)
	if *only == "" || *only == "commands" {
		benchCommands(dir, bin, *runs)
	}
	if *only == "" || *only == "health" {
		sizes := []int{100, 1000, 10_000}
		if *large {
			sizes = append(sizes, 100_000)
		}
		benchHealth(dir, bin, sizes)
	}
	if *only == "" || *only == "archive" {
		benchArchive(dir, bin, 10_000, 3)
	}
	if *only == "" || *only == "search" {
		benchSearch(dir, bin, 10_000)
	}
	if *only == "" || *only == "hooks" {
		benchHooks(dir, bin)
	}
	if *only == "" || *only == "ingest" {
		benchIngest(dir, bin, 10_000)
	}
}

// benchCommands times short commands beside an empty program and the source's
// own shell steps.
func benchCommands(dir, bin string, n int) {
	runs := &n
	floor := filepath.Join(dir, "hello")
	check(os.WriteFile(floor+".go", []byte(hello), 0o644))
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", floor, floor+".go")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	build.Stderr = os.Stderr
	check(build.Run())

	ws := filepath.Join(dir, "ws")
	quiet(exec.Command(bin, "init", ws))
	buffer := filepath.Join(ws, "memory", "working-buffer.md")
	fresh, err := os.ReadFile(buffer)
	check(err)
	fill := func(lines int) func() {
		return func() {
			check(os.WriteFile(buffer, append(slices.Clone(fresh), strings.Repeat("- a line of work, as long as they are\n", lines)...), 0o644))
		}
	}
	in := func(args ...string) func() *exec.Cmd {
		return func() *exec.Cmd { return exec.Command(bin, append([]string{"-w", ws}, args...)...) }
	}
	sides := []*side{
		{name: "an empty Go program", run: func() *exec.Cmd { return exec.Command(floor) }},
		{name: "mem version", run: in("version")},
		{name: "mem rotate, 34 lines (nothing to do)", prepare: fill(29), run: in("rotate")},
		{name: "mem rotate, 90 lines", prepare: fill(85), run: in("rotate")},
		{name: "mem note", prepare: fill(20), run: in("note", "a line")},
		{name: "mem status", prepare: fill(20), run: in("status")},
		{name: "the source's shell steps, 90 lines, with sync", prepare: fill(85), run: func() *exec.Cmd { return exec.Command("sh", "-c", shellRotation, "sh", ws) }},
	}
	trace := readTrace()
	disk, err := durable.Open(ws)
	check(err)
	defer disk.Close()
	var syncs, ops []time.Duration
	for i := range *runs + 5 {
		for _, s := range sides {
			if s.prepare != nil {
				s.prepare()
			}
			// What came before is not this run's to write back.
			check(disk.SyncAll())
			d := timed(s.run())
			if i >= 5 { // the first ones warm up
				s.times = append(s.times, d)
			}
		}
		// In the same breath, so that a disk that grows slower does so for both.
		sync, all := replay(filepath.Join(dir, "bare"), trace)
		syncs, ops = append(syncs, sync), append(ops, all)
		// A note and a history that do not grow: each run does the same work.
		check(os.RemoveAll(filepath.Join(ws, ".mem")))
		note, err := filepath.Glob(filepath.Join(ws, "memory", "episodic", "*.md"))
		check(err)
		for _, n := range note {
			check(os.WriteFile(n, []byte("# a day\n"), 0o644))
		}
		quiet(in("note", "-q", "x")())
	}
	for _, s := range sides {
		slices.Sort(s.times)
	}
	slices.Sort(syncs)
	slices.Sort(ops)
	sync := syncs[len(syncs)/2]
	base := sides[0].median()
	fmt.Printf("%-48s %10s %10s %8s\n", fmt.Sprintf("whole process, %d runs of each in turn", *runs), "median", "minimum", "ratio")
	for _, s := range sides {
		fmt.Printf("%-48s %10s %10s %7.2fx\n", s.name, round(s.median()), round(s.times[0]), float64(s.median())/float64(base))
	}
	fmt.Printf("%-48s %10s\n", "the fsyncs of its trace by themselves", round(sync))
	fmt.Printf("%-48s %10s\n\n", "all file changes of its trace by themselves", round(ops[len(ops)/2]))
	verdict("mem version at most 2.2x an empty program", sides[1].median(), base*22/10)
	verdict("mem rotate on 34 lines at most 2.2x", sides[2].median(), base*22/10)
	verdict("mem rotate on 90 lines at most 2.2x + 0.8 ms + its fsyncs", sides[3].median(), base*22/10+800*time.Microsecond+sync)
}

// shellRotation is the rotation as the source describes it, made durable by
// sync.
const shellRotation = `cd "$1/memory" && : >working-buffer.md.lock && mv working-buffer.md working-buffer.md.rotating &&
cat working-buffer.md.rotating >>"episodic/$(date +%Y-%m-%d).md" && sync "episodic/$(date +%Y-%m-%d).md" episodic && rm -f working-buffer.md.rotating &&
printf '# Working Buffer\ncreated: %s\nlast_active: %s\n\n## Active Task:\n' "$(date -Is)" "$(date -Is)" >working-buffer.md && sync working-buffer.md . && rm -f working-buffer.md.lock`

func verdict(what string, got, limit time.Duration) {
	word := "met"
	if got > limit {
		word = "NOT MET"
	}
	fmt.Printf("%-58s %10s, limit %10s: %s\n", what, round(got), round(limit), word)
}

// replay does the operations of one rotation, from its trace golden, on the
// bare disk and returns the time that the fsyncs among them took, and all.
func replay(dir string, trace []string) (sync, all time.Duration) {
	check(os.RemoveAll(dir))
	for _, sub := range []string{"memory/episodic", ".mem/tx", ".mem/trash/2026/11", ".mem/receipts/2026/11"} {
		check(os.MkdirAll(filepath.Join(dir, sub), 0o755))
	}
	d, err := durable.Open(dir)
	check(err)
	defer d.Close()
	for _, name := range []string{"memory/working-buffer.md", "memory/episodic/2026-11-30.md"} {
		_, err := durable.WriteNew(d, name, make([]byte, 3000), 0o644, "")
		check(err)
	}
	check(d.SyncAll())
	files := map[string]durable.File{}
	for _, line := range trace {
		op, rest, _ := strings.Cut(line, " ")
		name, to, _ := strings.Cut(rest, " ")
		start := time.Now()
		switch op {
		case "create":
			files[name], err = d.Create(name, 0o644)
		case "clone":
		case "write":
			_, err = files[name].Write(make([]byte, 3000))
		case "fsync":
			err = files[name].Sync()
		case "syncdir":
			err = d.SyncDir(name)
		case "move":
			err = d.Move(name, to)
		case "rename":
			err = d.Rename(name, to)
		case "exchange":
			err = d.Exchange(name, to)
		case "remove":
			err = d.Remove(name)
		default:
			log.Fatalf("the trace holds %q", line)
		}
		check(err)
		took := time.Since(start)
		all += took
		if strings.Contains(op, "sync") {
			sync += took
		}
	}
	for _, f := range files {
		f.Close()
	}
	return sync, all
}

// readTrace reads the operations of a rotation into an existing note.
func readTrace() []string {
	b, err := os.ReadFile(filepath.Join("cmd", "mem", "testdata", "traces", "rotate.txt"))
	check(err)
	var out []string
	for l := range strings.Lines(string(b)) {
		if l = strings.TrimSpace(l); !strings.HasPrefix(l, "#") {
			out = append(out, l)
		}
	}
	return out
}

func timed(c *exec.Cmd) time.Duration {
	c.Stdout, c.Stderr = io.Discard, io.Discard
	start := time.Now()
	err := c.Run()
	d := time.Since(start)
	if err != nil {
		log.Fatalf("%v: %v", c.Args, err)
	}
	return d
}

func quiet(c *exec.Cmd) {
	if out, err := c.CombinedOutput(); err != nil {
		log.Fatalf("%v: %v\n%s", c.Args, err, out)
	}
}

func round(d time.Duration) string { return d.Round(10 * time.Microsecond).String() }

func check(err error) {
	if err != nil {
		log.Fatal(err)
	}
}

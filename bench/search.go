//go:build unix

package main

import (
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"

	"github.com/tieredmem/mem/internal/tree"
)

// benchSearch times mem search beside ripgrep and grep on the same tree, and
// beside walking and reading the same files.
func benchSearch(dir, bin string, size int) {
	floor := filepath.Join(dir, "floor")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", floor, "./bench/floor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	quiet(build)
	ws := filepath.Join(dir, fmt.Sprint("search-", size))
	n, err := tree.Make(ws, tree.Options{Files: size, Today: benchDay, Flat: true, Seed: 1})
	check(err)
	sides := []*side{
		{name: "walk and read the same files, nothing else", run: func() *exec.Cmd { return exec.Command(floor, ws) }},
		{name: "mem search, no hit", run: func() *exec.Cmd { return exec.Command(bin, "-w", ws, "search", "--all", "xylophone") }},
		{name: "mem search, two words, with hits", run: func() *exec.Cmd { return exec.Command(bin, "-w", ws, "search", "--all", "docker restart") }},
	}
	if rg, err := exec.LookPath("rg"); err == nil {
		sides = append(sides, &side{name: "ripgrep -i, no hit", run: func() *exec.Cmd {
			return exec.Command("sh", "-c", rg+` -i --no-ignore -g '*.md' xylophone "$1" || true`, "sh", ws)
		}})
	} else {
		fmt.Println("ripgrep is not there: skipped")
	}
	sides = append(sides, &side{name: "grep -ri, no hit", run: func() *exec.Cmd {
		return exec.Command("sh", "-c", `grep -ri --include='*.md' xylophone "$1" || true`, "sh", ws)
	}})
	for i := range 21 {
		for _, s := range sides {
			if d := timed(s.run()); i > 0 {
				s.times = append(s.times, d)
			}
		}
	}
	table(fmt.Sprintf("search in %d files, 20 runs in turn", n), sides)
	cmd := sides[2].run()
	check(cmd.Run())
	fmt.Printf("%-48s %7d KB\n", "most memory of mem search", cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss)
	if len(sides) > 4 {
		fmt.Printf("%-48s %7.2fx\n", "faster than ripgrep", float64(sides[3].median())/float64(sides[1].median()))
	}
	fmt.Println()
}

// benchHooks times the hooks as whole processes: what a host waits for.
func benchHooks(dir, bin string) {
	ws := filepath.Join(dir, "hooks")
	n, err := tree.Make(ws, tree.Options{Files: 500, Today: benchDay, Flat: true, Seed: 1})
	check(err)
	at := "--at=" + benchDay.Format("2006-01-02T15:04:05Z")
	input, err := json.Marshal(map[string]any{"session_id": "bench", "cwd": ws, "source": "startup"})
	check(err)
	hook := func(event string) func() *exec.Cmd {
		return func() *exec.Cmd {
			c := exec.Command(bin, at, "hook", "run", event, "--host", "claude")
			c.Stdin = strings.NewReader(string(input))
			return c
		}
	}
	fill := func() {
		f, err := os.OpenFile(filepath.Join(ws, "memory/working-buffer.md"), os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o644)
		check(err)
		fmt.Fprint(f, "# Working Buffer\ncreated: 2026-11-30T08:00:00Z\nlast_active: 2026-11-30T09:00:00Z\n\n## Active Task:\n")
		for i := range 90 {
			fmt.Fprintf(f, "- step %d\n", i)
		}
		check(f.Close())
	}
	sides := []*side{
		{name: "SessionStart", run: hook("SessionStart")},
		{name: "Stop", run: hook("Stop")},
		{name: "PreCompact", run: hook("PreCompact")},
		{name: "SessionEnd with a rotation of 95 lines", run: hook("SessionEnd")},
	}
	for i := range 21 {
		for _, s := range sides {
			fill()
			if d := timed(s.run()); i > 0 {
				s.times = append(s.times, d)
			}
		}
	}
	table(fmt.Sprintf("hooks on %d files, 20 runs in turn", n), sides)
	fmt.Println()
}

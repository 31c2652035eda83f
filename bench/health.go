//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tieredmem/mem/internal/tree"
)

var benchDay = time.Date(2026, 11, 30, 12, 0, 0, 0, time.UTC)

// benchHealth times mem health beside its floor and its peers, on trees of
// several sizes.
func benchHealth(dir, bin string, sizes []int) {
	floor := filepath.Join(dir, "floor")
	build := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", floor, "./bench/floor")
	build.Env = append(os.Environ(), "CGO_ENABLED=0")
	quiet(build)
	vocab := filepath.Join(dir, "tags")
	check(os.WriteFile(vocab, []byte(strings.Join(strings.Fields("memory docker ssh networking workflow audit backup errors"), "\n")+"\n"), 0o644))
	for _, size := range sizes {
		ws := filepath.Join(dir, fmt.Sprint("tree-", size))
		n, err := tree.Make(ws, tree.Options{Files: size, Today: benchDay, Flat: true, Seed: 1})
		check(err)
		at := benchDay.Format(time.RFC3339)
		sides := []*side{
			{name: "walk and read the same files, nothing else", run: func() *exec.Cmd { return exec.Command(floor, ws) }},
			{name: "mem health", run: func() *exec.Cmd { return exec.Command(bin, "-w", ws, "--at", at, "health") }},
			{name: "a tuned awk script (fewer checks)", run: func() *exec.Cmd {
				return exec.Command("sh", "-c", `cd "$1" && find . -name '*.md' -print0 | xargs -0 awk -v today=2026-11-30 -v vocab="$2" -f "$3"`, "sh", ws, vocab, abs("bench/health.awk"))
			}},
		}
		if size <= 1000 {
			sides = append(sides, &side{name: "a script of grep, sed and find (fewer checks)", run: func() *exec.Cmd {
				return exec.Command("sh", abs("bench/health.sh"), ws, "2026-11-30", vocab)
			}})
		}
		runs := max(3, min(30, 100_000/size))
		for i := range runs + 1 {
			for _, s := range sides {
				if s.times != nil && strings.Contains(s.name, "grep") && i > 3 {
					continue // half a second each
				}
				d := timed(s.run())
				if i > 0 {
					s.times = append(s.times, d)
				}
			}
		}
		table(fmt.Sprintf("%d files, %d runs in turn", n, runs), sides)
		cmd := sides[1].run()
		check(cmd.Run())
		rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
		fmt.Printf("%-48s %7d KB\n", "most memory of mem health", rss)
		fmt.Printf("%-48s %7.2fx\n\n", "mem health, against the floor", float64(sides[1].median())/float64(sides[0].median()))
	}
}

func table(title string, sides []*side) {
	for _, s := range sides {
		slices.Sort(s.times)
	}
	base := sides[0].median()
	fmt.Printf("%-48s %10s %10s %8s\n", title, "median", "minimum", "ratio")
	for _, s := range sides {
		fmt.Printf("%-48s %10s %10s %7.2fx\n", s.name, round(s.median()), round(s.times[0]), float64(s.median())/float64(base))
	}
}

func abs(name string) string {
	a, err := filepath.Abs(name)
	check(err)
	return a
}

// benchArchive times the archival of many notes beside bare renames of the same
// files into the same directories. Each run has a fresh tree.
func benchArchive(dir, bin string, notes, runs int) {
	make := func(i int, kind string) string {
		ws := filepath.Join(dir, fmt.Sprintf("archive-%s-%d", kind, i))
		check(os.MkdirAll(filepath.Join(ws, "memory/episodic"), 0o755))
		check(os.WriteFile(filepath.Join(ws, "mem.yaml"), []byte("layout: canonical\ntimezone: UTC\n"), 0o644))
		for k := range notes {
			day := benchDay.AddDate(0, 0, -40-k%365).Format(time.DateOnly)
			name := fmt.Sprintf("%s-note-%d.md", day, k)
			check(os.WriteFile(filepath.Join(ws, "memory/episodic", name), fmt.Appendf(nil, "# %s\n\n- note %d\n", day, k), 0o644))
		}
		return ws
	}
	bare := &side{name: "bare renames, one sync"}
	ours := &side{name: "mem archive"}
	for i := range runs {
		ws := make(i, "bare")
		syscall.Sync()
		start := time.Now()
		renameAll(ws)
		bare.times = append(bare.times, time.Since(start))
		ws = make(i, "mem")
		syscall.Sync()
		ours.times = append(ours.times, timed(exec.Command(bin, "-w", ws, "--at", benchDay.Format(time.RFC3339), "-q", "archive", "episodic")))
	}
	table(fmt.Sprintf("archive of %d notes, %d runs", notes, runs), []*side{bare, ours})
	fmt.Println()
}

func renameAll(ws string) {
	from := filepath.Join(ws, "memory/episodic")
	entries, err := os.ReadDir(from)
	check(err)
	dirs := map[string]bool{}
	for _, e := range entries {
		to := filepath.Join(ws, "memory/archive", e.Name()[:4], e.Name()[5:7])
		if !dirs[to] {
			check(os.MkdirAll(to, 0o755))
			dirs[to] = true
		}
		check(os.Rename(filepath.Join(from, e.Name()), filepath.Join(to, e.Name())))
	}
	syscall.Sync()
}

// Command mutants puts every mutant of a list (gremlins' JSON) before the tests
// that reach it, from the quickest, until one notices. All of them are built
// into the test binaries at once, from an overlay, and turned on one at a time:
// building each by itself takes longer than its tests, and hides what tests that
// start processes reach. It prints what lives, and the efficacy. What is argued
// away in argued.txt is not run, but with -argued.
//
//	go run ./bench/mutants [-file REGEXP] [-results FILE] [-longest 10s] mutants.json
//
// With -results, each outcome is appended to FILE, and a mutant that FILE calls
// noticed is not run again.
package main

import (
	"bufio"
	"bytes"
	"context"
	_ "embed"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
)

// unit is a test that is run by itself; Reach is what it reaches, by name.
type unit struct {
	Pkg, Name string // the name as -run takes it, without ^ and $
	Took      time.Duration
	Reach     map[string]bool
}

// Tests that are no use here: they build programs of their own, or need much.
const skip = `^Test(Soak|EveryFsyncIsNeeded|FailingSystemCalls|PowerCuts|OtherFileSystems|FullExt4|FullDisk|PlantedBugsAreCaught|MachineHasTeeth)$`

//go:embed argued.txt
var argued string

// arguments returns the names in argued.txt: lines that are not indented, each
// list of them followed by an indented reason.
func arguments() map[string]bool {
	names := map[string]bool{}
	for line := range strings.SplitSeq(argued, "\n") {
		if line != "" && line[0] != '\t' && line[0] != '#' {
			names[line] = true
		}
	}
	return names
}

// runner runs units of test binaries built with every mutant.
type runner struct{ dir string }

func (r runner) binary(pkg string) string {
	return filepath.Join(r.dir, strings.ReplaceAll(pkg, "/", "_")+".test")
}

// run runs tests with a mutant on, and returns whether they pass, and what they
// print.
func (r runner) run(ctx context.Context, worker, mutant, pkg, expr string, limit time.Duration, more ...string) (bool, []byte) {
	work := filepath.Join(r.dir, worker)
	on := filepath.Join(work, "mutant-"+mutant)
	tmp := filepath.Join(work, "tmp")
	check(os.MkdirAll(on, 0o755))
	check(os.MkdirAll(tmp, 0o755))
	defer os.RemoveAll(work)
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	if help, _ := exec.CommandContext(ctx, r.binary(pkg), "-h").CombinedOutput(); bytes.Contains(help, []byte("rapid.nofailfile")) {
		more = append(more, "-rapid.nofailfile") // no file about what a mutant did
	}
	c := exec.CommandContext(limited, r.binary(pkg), append([]string{"-test.short", "-test.failfast", "-test.run", expr, "-test.skip", skip}, more...)...)
	c.Dir, c.WaitDelay = filepath.FromSlash(pkg), time.Second
	c.Env = append(os.Environ(), "TMPDIR="+tmp, "PATH="+on+string(os.PathListSeparator)+os.Getenv("PATH"))
	out, err := c.CombinedOutput()
	if mutant == "reach" {
		out, _ = os.ReadFile(filepath.Join(on, "log"))
	}
	return err == nil, out
}

// names lists the units of a package: its tests, but of some tests of cmd/mem
// their parts.
func (r runner) names(ctx context.Context, pkg string) []string {
	list := func(args ...string) string {
		c := exec.CommandContext(ctx, r.binary(pkg), args...)
		c.Dir = filepath.FromSlash(pkg)
		out, err := c.Output()
		check(err)
		return string(out)
	}
	skipped := regexp.MustCompile(skip)
	var names []string
	for name := range strings.FieldsSeq(list("-test.list", "^Test|^Fuzz")) {
		switch {
		case skipped.MatchString(name):
		case name == "TestScripts":
			scripts, err := filepath.Glob(filepath.Join("cmd", "mem", "testdata", "script", "*.txt"))
			check(err)
			for _, s := range scripts {
				names = append(names, name+"/"+strings.TrimSuffix(filepath.Base(s), ".txt"))
			}
		case slices.Contains([]string{"TestCrashesEverywhere", "TestErrorsAtEveryCall", "TestHandsBetweenCrashAndRecovery", "TestMovesByLinkAndUnlink"}, name): // every scenario, of which TestTraces has each
			for _, m := range regexp.MustCompile(`(?m)^ +--- PASS: TestTraces/(\S+)`).FindAllStringSubmatch(list("-test.v", "-test.run", "^TestTraces$"), -1) {
				if name != "TestCrashesEverywhere" {
					names = append(names, name+"/"+m[1])
					continue
				}
				for _, disk := range []string{"exchange", "renames_by_halves", "no_exchange", "no_exchange,_no_links"} {
					names = append(names, name+"/"+disk+"/"+m[1])
				}
			}
		default:
			names = append(names, name)
		}
	}
	return names
}

// units runs every unit by itself with no mutant on, to learn what it reaches.
// What the file knows of another run is taken from there.
func (r runner) units(ctx context.Context, pkgs []string, mutants []mutant, file string) []*unit {
	var all []*unit
	if b, err := os.ReadFile(file); err == nil {
		check(json.Unmarshal(b, &all))
	}
	for _, pkg := range pkgs {
		for _, name := range r.names(ctx, pkg) {
			u := &unit{Pkg: pkg, Name: name, Reach: map[string]bool{}}
			if slices.ContainsFunc(all, func(o *unit) bool { return o.Pkg == pkg && o.Name == name }) {
				continue
			}
			start := time.Now()
			ok, out := r.run(ctx, "w", "reach", pkg, expression(u), 10*time.Minute)
			if !ok {
				fmt.Fprintf(os.Stderr, "%s of %s fails without a mutant\n", name, pkg)
				os.Exit(1)
			}
			u.Took = time.Since(start)
			for line := range bytes.Lines(out) {
				id, _ := strconv.Atoi(strings.TrimSpace(string(line)))
				u.Reach[mutants[id-1].name()] = true
			}
			all = append(all, u)
		}
	}
	if file != "" {
		b, err := json.Marshal(all)
		check(err)
		check(os.WriteFile(file, b, 0o644))
	}
	slices.SortFunc(all, func(a, b *unit) int { return int(a.Took - b.Took) })
	return all
}

// expression is what -run takes for units of one package.
func expression(units ...*unit) string {
	var parts []string
	for _, u := range units {
		var levels []string
		for l := range strings.SplitSeq(u.Name, "/") {
			levels = append(levels, "^"+regexp.QuoteMeta(l)+"$")
		}
		parts = append(parts, strings.Join(levels, "/"))
	}
	return strings.Join(parts, "|")
}

// batches are units to run in one process: the first few by themselves, then
// more and more, as long as they are short.
func batches(units []*unit) [][]*unit {
	var all [][]*unit
	for n := 2; len(units) > 0; n = min(3*n, 1000) {
		var b []*unit
		var sum time.Duration
		for len(units) > 0 && len(b) < n {
			if len(b) > 0 && (units[0].Pkg != b[0].Pkg || sum+units[0].Took > 5*time.Second) {
				break
			}
			b = append(b, units[0])
			sum += units[0].Took
			units = units[1:]
		}
		all = append(all, b)
	}
	return all
}

// try returns which units noticed the mutant.
func (r runner) try(ctx context.Context, worker string, m mutant, units []*unit, longest time.Duration) string {
	var reach []*unit
	for _, u := range units {
		if u.Reach[m.name()] && u.Took <= longest {
			reach = append(reach, u)
		}
	}
	if len(reach) == 0 {
		return unreached
	}
	for _, b := range batches(reach) {
		limit := 20 * time.Second
		for _, u := range b {
			limit += 5 * u.Took
		}
		if ok, _ := r.run(ctx, worker, strconv.Itoa(m.ID), b[0].Pkg, expression(b...), limit); !ok {
			return b[0].Name + strings.Repeat(" and others", min(1, len(b)-1))
		}
	}
	return lives
}

func main() {
	file := flag.String("file", "", "only files that match this regular expression")
	workers := flag.Int("workers", 2, "mutants at a time")
	results := flag.String("results", "", "append outcomes to this file, and skip what it has as noticed")
	reached := flag.String("units", "", "keep what tests reach in this file, and take it from there")
	again := flag.Bool("argued", false, "run what is argued away too")
	longest := flag.Duration("longest", time.Hour, "no tests that take longer")
	flag.Parse()
	only, err := regexp.Compile(*file)
	check(err)
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()

	dir, err := os.MkdirTemp("", "mutants")
	check(err)
	defer os.RemoveAll(dir)
	r := runner{dir}
	all := list(flag.Arg(0))
	overlay := schemata(dir, all)
	var pkgs []string
	for _, pkg := range []string{"durable", "journal", "buffer", "handoff", "archive", "cmd/mem"} {
		if tests, _ := filepath.Glob(filepath.Join(filepath.FromSlash(pkg), "*_test.go")); len(tests) == 0 {
			continue
		}
		pkgs = append(pkgs, pkg)
		if out, err := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-ldflags=-s -w", "-overlay", overlay, "-o", r.binary(pkg), "./"+pkg).CombinedOutput(); err != nil {
			fmt.Fprintf(os.Stderr, "%s%v\n", out, err)
			os.Exit(1)
		}
	}
	start := time.Now()
	units := r.units(ctx, pkgs, all, *reached)
	fmt.Fprintf(os.Stderr, "%d mutants, %d units of tests, looked at in %s\n", len(all), len(units), time.Since(start).Round(time.Second))

	known := map[string]string{}
	var save *os.File
	if *results != "" {
		if f, err := os.Open(*results); err == nil {
			for s := bufio.NewScanner(f); s.Scan(); {
				var m mutant
				check(json.Unmarshal(s.Bytes(), &m))
				known[m.name()] = m.State
			}
			f.Close()
		}
		save, err = os.OpenFile(*results, os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o644)
		check(err)
		defer save.Close()
	}
	var mu sync.Mutex
	t := tally{excused: arguments(), packages: map[string]map[string]int{}}
	queue := make(chan mutant)
	var group sync.WaitGroup
	for i := range *workers {
		group.Go(func() {
			for m := range queue {
				m.State = r.try(ctx, strconv.Itoa(i), m, units, *longest)
				if ctx.Err() != nil {
					return
				}
				mu.Lock()
				t.tell(m)
				if save != nil {
					check(json.NewEncoder(save).Encode(m))
				}
				mu.Unlock()
			}
		})
	}
	cost := map[int]time.Duration{}
	for _, m := range all {
		for _, u := range units {
			if u.Reach[m.name()] {
				cost[m.ID] += u.Took
			}
		}
	}
	slices.SortStableFunc(all, func(a, b mutant) int { return int(cost[a.ID] - cost[b.ID]) })
	for _, m := range all {
		if !only.MatchString(m.File) {
			continue
		}
		if m.State == "" && t.excused[m.name()] && !*again {
			m.State = lives
		}
		if was := known[m.name()]; m.State == "" && was != "" && was != lives && was != unreached {
			m.State = was
		}
		if m.State != "" {
			mu.Lock()
			t.tell(m)
			mu.Unlock()
			continue
		}
		select {
		case queue <- m:
		case <-ctx.Done():
		}
	}
	close(queue)
	group.Wait()
	t.print()
}

// tally counts the states of mutants, by package.
type tally struct {
	excused  map[string]bool
	packages map[string]map[string]int
}

func (t tally) tell(m mutant) {
	pkg := filepath.ToSlash(filepath.Dir(m.File))
	if t.packages[pkg] == nil {
		t.packages[pkg] = map[string]int{}
	}
	state := m.State
	switch {
	case state == impossible:
	case state != lives && state != unreached:
		state = "noticed"
	case t.excused[m.name()]:
		state = "argued"
	default:
		fmt.Printf("%d:%d %s: %s\n", m.Line, m.Column, state, m.name())
	}
	t.packages[pkg][state]++
}

// print prints a row per package. The efficacy is the part of the mutants that
// tests noticed.
func (t tally) print() {
	total := map[string]int{}
	row := func(name string, n map[string]int) {
		all := n["noticed"] + n[lives] + n[unreached] + n["argued"]
		fmt.Printf("%-8s %5d mutants: %4d noticed, %3d argued away, %3d live, %3d not reached; efficacy %.1f%%\n",
			name, all, n["noticed"], n["argued"], n[lives], n[unreached], 100*float64(n["noticed"])/float64(max(all, 1)))
	}
	for _, pkg := range []string{"durable", "journal", "buffer", "handoff", "archive"} {
		if n := t.packages[pkg]; n != nil {
			row(pkg, n)
			for k, v := range n {
				total[k] += v
			}
		}
	}
	row("all", total)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

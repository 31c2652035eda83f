// Package crash enumerates crashes: for tests only.
//
// [Explore] runs a command on a disk in memory and stops it before each of its
// operations in turn, lets each of them fail, or fail although it was done,
// fills the disk, and cuts the power with everything the disk model allows: at
// once, and after a second run that built on what a killed one had left. On
// every state that is left it runs the recovery, crashes that in the same
// ways, to a given depth, and asks an oracle about the result.
// [Interleave] runs the command beside a writer that ignores every lock.
package crash

import (
	"container/heap"
	"errors"
	"fmt"
	"runtime"
	"sort"
	"strings"
	"sync"
	"syscall"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
)

// Scenario is a command on a disk.
type Scenario struct {
	Name  string
	Disk  func() *faultfs.Disk
	Run   func(durable.FS) error // the command
	Mend  func(durable.FS) error // what is run after a crash
	Check Oracle
	// Edit, if set, is what a person does to the files between the crash and
	// the recovery; every state is judged without it and with it.
	Edit func(*faultfs.Disk)
	// Again is the command once more, where that does no more than once: run
	// whole after a kill, and then the power is cut.
	Again func(durable.FS) error
	// KillsOnly leaves out failing operations: only kills and power cuts.
	KillsOnly bool
	// Sabotage, if set, puts a planted bug between the code and the disk.
	Sabotage func(*faultfs.Disk, durable.FS) durable.FS
}

// Oracle names what is wrong with a disk. acked: the command had reported
// success, so its effect must be there.
type Oracle func(d *faultfs.Disk, acked bool) []string

// Result counts what was seen.
type Result struct {
	Ops        int // operations of the undisturbed command that change the disk
	States     int // disk states that were seen
	Unique     int // of them different ones, each recovered and judged
	Ended      int // of them those whose recovery was not crashed, for Options.Width
	Violations map[string]int
	First      map[string]string // how to get there, per violation
}

// Total is the number of violations.
func (r *Result) Total() int {
	n := 0
	for _, v := range r.Violations {
		n += v
	}
	return n
}

func (r *Result) String() string {
	var sb strings.Builder
	fmt.Fprintf(&sb, "%d operations, %d states (%d different), %d violations", r.Ops, r.States, r.Unique, r.Total())
	if r.Ended > 0 {
		fmt.Fprintf(&sb, "; the recovery of %d was not crashed again (width)", r.Ended)
	}
	keys := make([]string, 0, len(r.Violations))
	for k := range r.Violations {
		keys = append(keys, k)
	}
	sort.Strings(keys)
	for _, k := range keys {
		fmt.Fprintf(&sb, "\n  %d× %s\n     first: %s", r.Violations[k], k, r.First[k])
	}
	return sb.String()
}

// stop is what a killed command panics with.
type stop struct{}

// fault is how one operation is disturbed.
type fault int

const (
	kill   fault = iota // the process ends before the operation
	fail                // the operation fails and did not happen
	failed              // the operation fails although it happened
	short               // half of a write happens, then it fails
	full                // from here on the disk has no space
)

var faults = []fault{fail, failed, short, full}

// nested are the faults inside a recovery, beside kills and power cuts.
var nested = []fault{failed}

func (f fault) String() string {
	return [...]string{"kill before", "error at", "error after", "short write at", "disk full from"}[f]
}

// disturb runs f on the disk with one fault at the n-th changing operation.
func disturb(d *faultfs.Disk, s Scenario, f func(durable.FS) error, n int, how fault) error {
	ops := 0
	return f(s.fs(d, func(op durable.Op, done bool) error {
		if !op.Changes() {
			return nil
		}
		if !done {
			ops++
		}
		switch {
		case ops == n && (how == fail && !done || how == failed && done):
			return syscall.EIO
		case ops == n && how == short && !done && op.Kind == "write":
			return fmt.Errorf("%w: %w", durable.ErrShort, syscall.ENOSPC)
		case ops >= n && how == full && !done && (op.Kind == "create" || op.Kind == "write" || op.Kind == "mkdir"):
			return syscall.ENOSPC
		}
		return nil
	}))
}

// count runs f undisturbed and counts the operations that change the disk.
func count(d *faultfs.Disk, s Scenario, f func(durable.FS) error) (n int, err error) {
	err = f(s.fs(d, func(op durable.Op, done bool) error {
		if op.Changes() && !done {
			n++
		}
		return nil
	}))
	return n, err
}

func (s Scenario) fs(d *faultfs.Disk, w durable.Watcher) durable.FS {
	fsys := durable.Watch(d, w)
	if s.Sabotage != nil {
		return s.Sabotage(d, fsys)
	}
	return fsys
}

var errKilled = errors.New("killed")

func quiet(durable.Op, bool) error { return nil }

type item struct {
	disk   *faultfs.Disk
	acked  bool
	edited bool
	depth  int
	path   string
	key    uint64
}

type key struct {
	disk   uint64
	acked  bool
	edited bool
}

// Options bound an exploration.
type Options struct {
	Depth int // how deep crashes nest in recovery
	// Width, if not 0, bounds the states of one level whose recovery is crashed
	// again: so many, taken at random, anew in each process. The others are
	// recovered and judged all the same. Without it, a level is kept whole.
	Width int
}

// Explore enumerates crashes of the command and, o.Depth levels deep, of the
// recovery.
func Explore(s Scenario, o Options) *Result {
	r := &Result{Violations: map[string]int{}, First: map[string]string{}}
	base := s.Disk()
	n, err := count(base, s, s.Run)
	r.Ops = n
	if err != nil {
		r.note("undisturbed run fails: "+err.Error(), "-")
		return r
	}
	for _, v := range s.Check(base, true) {
		r.note(v, "undisturbed")
	}
	x := &explorer{s: s, o: o, r: r, seen: map[key]bool{}}
	x.level(func(emit func(item)) {
		crashes(s, s.Disk, s.Run, item{depth: o.Depth + 1}, true, faults, "run", emit)
	})
	for len(x.kept) > 0 {
		work := x.kept
		x.kept = nil
		x.level(func(emit func(item)) {
			parallel(work, func(it item) {
				how := nested
				if it.depth == 1 {
					how = nil
				}
				crashes(s, it.disk.Clone, s.Mend, it, false, how, it.path+"; recovery", emit)
			})
		})
	}
	return r
}

type explorer struct {
	s    Scenario
	o    Options
	mu   sync.Mutex // for what follows
	r    *Result
	seen map[key]bool
	kept []item // of this level: whose recovery is to be crashed again; with a width, a heap
}

// level judges, each once, the states that produce emits.
func (x *explorer) level(produce func(emit func(item))) {
	queue := make(chan item, 256)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for it := range queue {
				x.judge(it)
			}
		})
	}
	produce(func(it item) {
		it.key = it.disk.Key()
		k := key{it.key, it.acked, it.edited}
		x.mu.Lock()
		x.r.States++
		fresh := !x.seen[k]
		if fresh {
			x.seen[k] = true
			x.r.Unique++
		}
		x.mu.Unlock()
		if !fresh {
			return
		}
		queue <- it
		if x.s.Edit != nil && !it.edited {
			it.disk, it.edited = it.disk.Clone(), true
			it.path += ", then edited"
			x.s.Edit(it.disk)
			it.key = it.disk.Key()
			x.mu.Lock()
			x.r.States, x.r.Unique = x.r.States+1, x.r.Unique+1
			x.mu.Unlock()
			queue <- it
		}
	})
	close(queue)
	wg.Wait()
}

func parallel(work []item, f func(item)) {
	next := make(chan item)
	var wg sync.WaitGroup
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for it := range next {
				f(it)
			}
		})
	}
	for _, it := range work {
		next <- it
	}
	close(next)
	wg.Wait()
}

// keep takes an item to be crashed again, if there is room. Keys are random:
// the least of them are an even choice.
func (x *explorer) keep(it item) {
	switch {
	case x.o.Width == 0:
		x.kept = append(x.kept, it)
	case len(x.kept) < x.o.Width:
		heap.Push((*least)(&x.kept), it)
	default:
		x.r.Ended++
		if it.key < x.kept[0].key {
			x.kept[0] = it
			heap.Fix((*least)(&x.kept), 0)
		}
	}
}

// least is a heap with the greatest key at its root.
type least []item

func (l least) Len() int           { return len(l) }
func (l least) Less(i, k int) bool { return l[i].key > l[k].key }
func (l least) Swap(i, k int)      { l[i], l[k] = l[k], l[i] }
func (l *least) Push(x any)        { *l = append(*l, x.(item)) }
func (l *least) Pop() any {
	n := len(*l) - 1
	x := (*l)[n]
	*l = (*l)[:n]
	return x
}

func (r *Result) note(v, path string) {
	r.Violations[v]++
	if r.First[v] == "" {
		r.First[v] = path
	}
}

// crashes disturbs f at every operation in every way and emits the states
// that may be left. ack: success of f acknowledges the command.
//
// A process that ends, killed or not, leaves the disk as it sees it, much of
// it not durable; the power may be cut then, or only after another run has
// built on that.
func crashes(s Scenario, start func() *faultfs.Disk, f func(durable.FS) error, from item, ack bool, how []fault, name string, emit func(item)) {
	add := func(d *faultfs.Disk, acked bool, path string) {
		left := item{acked: acked || from.acked, edited: from.edited, depth: from.depth - 1}
		put := func(d *faultfs.Disk, acked bool, path string) {
			it := left
			it.disk, it.acked, it.path = d, acked, path
			emit(it)
		}
		for k, p := range d.Power() {
			put(p, left.acked, fmt.Sprintf("%s, power cut %d", path, k))
		}
		if d.Settled() {
			return
		}
		left.depth = max(0, left.depth-1) // what is durable is one of the states above, and goes as deep as they do
		put(d.Clone(), left.acked, path)
		if s.Again == nil || !ack {
			return
		}
		d = d.Clone()
		if err := s.Again(s.fs(d, quiet)); err != nil {
			return // what was left is in its way: recovery comes first
		}
		for k, p := range d.Power() {
			put(p, true, fmt.Sprintf("%s; again, power cut %d", path, k))
		}
	}
	d := start()
	var ops []durable.Op
	err := f(s.fs(d, func(op durable.Op, done bool) error {
		if op.Changes() && !done {
			ops = append(ops, op)
			add(d, false, fmt.Sprintf("%s: %s op %d %s", name, kill, len(ops), op))
		}
		return nil
	}))
	add(d, ack && err == nil, name+": at its end")
	if s.KillsOnly {
		return
	}
	for i, op := range ops {
		for _, how := range how {
			if how == short && op.Kind != "write" || how == full && op.Kind != "write" && op.Kind != "create" && op.Kind != "mkdir" {
				continue
			}
			d := start()
			err := disturb(d, s, f, i+1, how)
			add(d, ack && err == nil, fmt.Sprintf("%s: %s op %d %s", name, how, i+1, op))
		}
	}
}

// judge mends one state, asks the oracle, and keeps the state if its recovery
// is to be crashed.
func (x *explorer) judge(it item) {
	s := x.s
	var bad []string
	states := 0
	defer func() {
		x.mu.Lock()
		defer x.mu.Unlock()
		x.r.States += states
		for _, v := range bad {
			x.r.note(v, it.path)
		}
		if it.depth > 0 {
			x.keep(it)
		}
	}()
	d := it.disk.Clone()
	if err := s.Mend(s.fs(d, quiet)); err != nil {
		bad = append(bad, "recovery fails: "+err.Error())
		it.depth = 0
		return
	}
	bad = append(bad, s.Check(d, it.acked)...)
	before := d.Key()
	if err := s.Mend(s.fs(d, quiet)); err != nil {
		bad = append(bad, "second recovery fails: "+err.Error())
	} else if d.Key() != before {
		bad = append(bad, "8 a second recovery changes something")
	}
	for _, p := range d.Power() {
		states++
		for _, v := range s.Check(p, it.acked) {
			bad = append(bad, "9 power cut after recovery: "+v)
		}
	}
}

// Writer is somebody who writes to the memory and ignores every lock.
type Writer struct {
	Name string
	// Arm is called at the operation at which the writer opens or reads; the
	// function it returns is called when it writes and reports whether it did.
	Arm func(d *faultfs.Disk) func() bool
}

// Interleave runs the command beside each writer, opening and writing at every
// pair of operations, then the recovery: without a kill, and with one at every
// operation (kills 1), at a share of them (kills n: one in n), or never (0).
func Interleave(s Scenario, w Writer, kills int) *Result {
	r := &Result{Violations: map[string]int{}, First: map[string]string{}}
	base := s.Disk()
	n, err := count(base, s, s.Run)
	r.Ops = n
	if err != nil {
		r.note("undisturbed run fails: "+err.Error(), "-")
		return r
	}
	type job struct{ open, write, kill int }
	var jobs []job
	for open := 0; open <= n; open++ {
		for write := open; write <= n+1; write++ {
			jobs = append(jobs, job{open, write, 0})
			for k := 1; k <= n; k++ {
				if kills > 0 && (open*31+write*17+k*7)%kills == 0 {
					jobs = append(jobs, job{open, write, k})
				}
			}
		}
	}
	outs := make([][]string, len(jobs))
	var wg sync.WaitGroup
	next := make(chan int)
	for range runtime.GOMAXPROCS(0) {
		wg.Go(func() {
			for i := range next {
				outs[i] = beside(s, w, jobs[i].open, jobs[i].write, jobs[i].kill)
			}
		})
	}
	for i := range jobs {
		next <- i
	}
	close(next)
	wg.Wait()
	for i, bad := range outs {
		r.States++
		for _, v := range bad {
			r.note(v, fmt.Sprintf("%s opens at %d, writes at %d, killed at %d", w.Name, jobs[i].open, jobs[i].write, jobs[i].kill))
		}
	}
	return r
}

func beside(s Scenario, w Writer, open, write, killAt int) []string {
	d := s.Disk()
	ops := 0
	var act func() bool
	wrote := false
	step := func() {
		if act == nil && ops >= open {
			act = w.Arm(d)
		}
		if act != nil && !wrote && ops >= write {
			wrote = act()
		}
	}
	hook := func(op durable.Op, done bool) error {
		if done || !op.Changes() {
			return nil
		}
		step()
		ops++
		if ops == killAt {
			panic(stop{})
		}
		return nil
	}
	run := func(f func(durable.FS) error) (err error) {
		defer func() {
			if r := recover(); r != nil {
				if _, ours := r.(stop); !ours {
					panic(r)
				}
				err = errKilled
			}
		}()
		return f(s.fs(d, hook))
	}
	err := run(s.Run)
	ops += 1 << 20 // it may have ended before the kill; recovery is not killed here
	for range 3 {
		step()
		if err := run(s.Mend); err != nil {
			return []string{"recovery fails: " + err.Error()}
		}
		ops += 1 << 20
	}
	if !wrote {
		return nil // its file was gone for good: the writer knows
	}
	return s.Check(d, err == nil)
}

//go:build unix

package main

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/tieredmem/mem/handoff"
)

const boxDir = ".claude/memory-handoffs"

// makeHandoffs writes n handoffs: cards and additions to one document in turn.
func makeHandoffs(ws string, n int) {
	check(os.MkdirAll(filepath.Join(ws, boxDir), 0o755))
	check(os.WriteFile(filepath.Join(ws, "mem.yaml"), []byte("layout: canonical\ntimezone: UTC\n"), 0o644))
	check(os.MkdirAll(filepath.Join(ws, "memory"), 0o755))
	check(os.WriteFile(filepath.Join(ws, "MEMORY.md"), []byte("# Memory\n"), 0o644))
	for i := range n {
		h := handoff.New{
			Type: "setup", Title: fmt.Sprintf("Case %d", i), Summary: fmt.Sprintf("What happened in case %d, and why it matters to the next one.", i),
			Facts: fmt.Sprintf("- fact %d", i), Evidence: "- seen", Action: "create-card", Card: fmt.Sprintf("card-%05d.md", i),
			Content: fmt.Sprintf("---\ntopic: topic %d\ncategory: setup\ntags: [docker, ssh]\n---\n\nThe service %d listens on port %d, since the other one was taken.", i, i, i),
		}
		if i%2 == 1 {
			h.Action, h.Card, h.Document, h.Content = "no-card", "", "rules/collected.md", fmt.Sprintf("### Case %d\n\n- when case %d comes up, look at the log of unit %d first", i, i, i)
		}
		check(os.WriteFile(filepath.Join(ws, boxDir, fmt.Sprintf("2026-11-30-%05d.md", i)), h.Text(), 0o644))
	}
}

// benchIngest times the landing of many handoffs beside bare file operations
// with one sync at the end, and beside one fsync per file, as careful scripts
// do. Each has a fresh directory: ext4 is slow to create where much was deleted.
func benchIngest(dir, bin string, n int) {
	bare := &side{name: "bare reads, writes and renames, one sync"}
	ours := &side{name: "mem ingest"}
	each := &side{name: "one fsync per file and directory (first 1,000)"}
	ws := filepath.Join(dir, "ingest-bare")
	makeHandoffs(ws, n)
	syscall.Sync()
	start := time.Now()
	land(ws, n, false)
	syscall.Sync()
	bare.times = append(bare.times, time.Since(start))
	ws = filepath.Join(dir, "ingest-mem")
	makeHandoffs(ws, n)
	syscall.Sync()
	cmd := exec.Command(bin, "-w", ws, "-q", "ingest")
	ours.times = append(ours.times, timed(cmd))
	rss := cmd.ProcessState.SysUsage().(*syscall.Rusage).Maxrss
	ws = filepath.Join(dir, "ingest-each")
	makeHandoffs(ws, min(n, 1000))
	syscall.Sync()
	start = time.Now()
	land(ws, min(n, 1000), true)
	each.times = append(each.times, time.Since(start)*time.Duration(n)/time.Duration(min(n, 1000)))
	table(fmt.Sprintf("%d handoffs, fresh directories", n), []*side{bare, ours, each})
	fmt.Printf("%-48s %10s\n", "mem ingest, each handoff", (ours.median() / time.Duration(n)).Round(time.Microsecond))
	fmt.Printf("%-48s %7d KB\n", "most memory", rss)
	fmt.Printf("%-48s %7.1fx\n", "faster than one fsync per file", float64(each.median())/float64(ours.median()))
	// The same number again, onto the cards that are there now.
	ws = filepath.Join(dir, "ingest-mem")
	for i := range n {
		name := filepath.Join(ws, boxDir, fmt.Sprintf("2026-11-30-%05d.md", i))
		h := handoff.New{Type: "setup", Title: fmt.Sprintf("More %d", i), Action: "create-card", Card: fmt.Sprintf("more-%05d.md", i), Content: fmt.Sprintf("---\ntopic: more %d\n---\n\nAnother text %d.", i, i)}
		check(os.WriteFile(name, h.Text(), 0o644))
	}
	syscall.Sync()
	d := timed(exec.Command(bin, "-w", ws, "-q", "ingest"))
	fmt.Printf("%-48s %10s\n\n", fmt.Sprintf("%d cards onto %d cards, each", n, n/2), (d / time.Duration(n)).Round(time.Microsecond))
}

// land does by bare file operations what an ingest does.
func land(ws string, n int, sync bool) {
	box := filepath.Join(ws, boxDir)
	for _, d := range []string{filepath.Join(ws, "memory/cards"), filepath.Join(ws, "rules"), filepath.Join(box, "processed")} {
		check(os.MkdirAll(d, 0o755))
	}
	var doc strings.Builder
	for i := range n {
		name := fmt.Sprintf("2026-11-30-%05d.md", i)
		b, err := os.ReadFile(filepath.Join(box, name))
		check(err)
		target := filepath.Join(ws, "memory/cards", fmt.Sprintf("card-%05d.md", i))
		if i%2 == 1 {
			doc.WriteString(handoff.Parse(b).Get(handoff.Block) + "\n\n")
			target, b = filepath.Join(ws, "rules/collected.md"), []byte(doc.String())
			if !sync && i < n-2 {
				check(os.Rename(filepath.Join(box, name), filepath.Join(box, "processed", name)))
				continue
			}
		}
		check(os.WriteFile(target+".tmp", b, 0o644))
		if sync {
			syncPath(target + ".tmp")
		}
		check(os.Rename(target+".tmp", target))
		check(os.Rename(filepath.Join(box, name), filepath.Join(box, "processed", name)))
		if sync {
			syncPath(filepath.Dir(target))
			syncPath(filepath.Join(box, "processed"))
		}
	}
}

func syncPath(name string) {
	f, err := os.Open(name)
	check(err)
	check(f.Sync())
	check(f.Close())
}

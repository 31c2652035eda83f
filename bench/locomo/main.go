// Command locomo measures how well mem search finds what questions ask for, on
// the LoCoMo conversations as daily notes. The data is not part of this
// repository: without it there is nothing to measure, and that is said.
//
//	python3 DATA/make_workspaces.py OUT
//	go run ./bench/locomo -mem ./mem OUT
//
// OUT/queries.jsonl has one question a line, with the lines that hold its
// answer. Recall@k is the share of these among the first k hits.
package main

import (
	"bufio"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

type query struct {
	WS       string   `json:"ws"`
	Q        string   `json:"q"`
	Evidence [][2]any `json:"evidence"`
}

type hit struct {
	Path string `json:"path"`
	Line int    `json:"line"`
}

func main() {
	log.SetFlags(0)
	mem := flag.String("mem", "./mem", "the binary to measure")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: locomo [-mem BINARY] OUT")
	}
	dir := flag.Arg(0)
	f, err := os.Open(filepath.Join(dir, "queries.jsonl"))
	if err != nil {
		fmt.Println("skipped: the data is not there:", err)
		return
	}
	defer f.Close()
	bin, err := filepath.Abs(*mem)
	if err != nil {
		log.Fatal(err)
	}
	scores := map[string]*score{}
	var names []string
	start := time.Now()
	for sc := bufio.NewScanner(f); sc.Scan(); {
		var q query
		if err := json.Unmarshal(sc.Bytes(), &q); err != nil {
			log.Fatal(err)
		}
		if scores[q.WS] == nil {
			scores[q.WS] = &score{}
			names = append(names, q.WS)
		}
		scores[q.WS].add(q, ask(bin, filepath.Join(dir, q.WS), q.Q))
	}
	took := time.Since(start)
	slices.Sort(names)
	half := len(names) / 2
	for _, g := range []struct {
		name string
		ws   []string
	}{{"the first half, on which it was tuned", names[:half]}, {"the other half", names[half:]}, {"all", names}} {
		var sum score
		for _, n := range g.ws {
			sum.merge(*scores[n])
		}
		fmt.Printf("%-40s %s\n", g.name, sum)
	}
	fmt.Printf("%s in all, one process a question\n", took.Round(time.Millisecond))
}

func ask(bin, ws, q string) []hit {
	out, err := exec.Command(bin, "-w", ws, "search", "--all", "--json", "--", q).Output()
	if err != nil {
		log.Fatalf("%s: %q: %v", ws, q, err)
	}
	var r struct {
		Hits []hit `json:"hits"`
	}
	if err := json.Unmarshal(out, &r); err != nil {
		log.Fatal(err)
	}
	return r.Hits
}

// score adds up questions.
type score struct {
	n, r5, r10, h5, mrr float64
}

func (s *score) add(q query, hits []hit) {
	evidence := map[string]bool{}
	for _, e := range q.Evidence {
		evidence[fmt.Sprintf("%v:%v", e[0], e[1])] = true
	}
	in := func(k int) float64 {
		n := 0.0
		for _, h := range hits[:min(k, len(hits))] {
			if evidence[fmt.Sprintf("%s:%d", h.Path, h.Line)] {
				n++
			}
		}
		return n
	}
	s.n++
	s.r5 += in(5) / float64(len(evidence))
	s.r10 += in(10) / float64(len(evidence))
	if in(5) > 0 {
		s.h5++
	}
	for i, h := range hits[:min(50, len(hits))] {
		if evidence[fmt.Sprintf("%s:%d", h.Path, h.Line)] {
			s.mrr += 1 / float64(i+1)
			break
		}
	}
}

func (s *score) merge(o score) {
	s.n, s.r5, s.r10, s.h5, s.mrr = s.n+o.n, s.r5+o.r5, s.r10+o.r10, s.h5+o.h5, s.mrr+o.mrr
}

func (s score) String() string {
	if s.n == 0 {
		return "no question"
	}
	row := []string{fmt.Sprintf("questions %.0f", s.n)}
	for _, x := range []struct {
		name string
		v    float64
	}{{"recall@5", s.r5}, {"recall@10", s.r10}, {"hit@5", s.h5}, {"MRR", s.mrr}} {
		row = append(row, fmt.Sprintf("%s %.3f", x.name, x.v/s.n))
	}
	return strings.Join(row, "  ")
}

// Command survivors takes what lived of a run of gremlins (its JSON output) and
// runs more tests on each: those given as a -run expression, of cmd/mem. It
// prints what lives still.
//
//	go run ./bench/survivors [-run EXPR] [-timeout 5m] mutants.json ...
//
// Files are changed in place, one at a time, and put back.
package main

import (
	"bytes"
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"strings"
	"time"
)

type report struct {
	Files []struct {
		Name      string `json:"file_name"`
		Mutations []struct {
			Type   string `json:"type"`
			Status string `json:"status"`
			Line   int    `json:"line"`
			Column int    `json:"column"`
		} `json:"mutations"`
	} `json:"files"`
}

// changed is what gremlins makes of a token, by the kind of mutant.
var changed = map[string]map[string]string{
	"CONDITIONALS_NEGATION": {"==": "!=", "!=": "==", "<=": ">", ">=": "<", "<": ">=", ">": "<="},
	"CONDITIONALS_BOUNDARY": {"<=": "<", ">=": ">", "<": "<=", ">": ">="},
	"INCREMENT_DECREMENT":   {"++": "--", "--": "++"},
	"INVERT_NEGATIVES":      {"-": "+"},
	"ARITHMETIC_BASE":       {"+": "-", "-": "+", "*": "/", "/": "*", "%": "*"},
}

// mutate changes the token at a line and a column, both from 1.
func mutate(text []byte, kind string, line, column int) ([]byte, string, bool) {
	lines := bytes.SplitAfter(text, []byte("\n"))
	if line > len(lines) || column > len(lines[line-1]) {
		return nil, "", false
	}
	at := column - 1
	for _, l := range lines[:line-1] {
		at += len(l)
	}
	for _, n := range []int{2, 1} {
		if at+n > len(text) {
			continue
		}
		if to, ok := changed[kind][string(text[at:at+n])]; ok {
			return append(append(append([]byte{}, text[:at]...), to...), text[at+n:]...), strings.TrimSpace(string(lines[line-1])), true
		}
	}
	return nil, "", false
}

func main() {
	run := flag.String("run", "^Test(Scripts|Killed|Moves|Hands|Writers|Machine$)", "tests of cmd/mem")
	limit := flag.Duration("timeout", 5*time.Minute, "what takes longer counts as noticed")
	flag.Parse()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	lived, killed := 0, 0
	for _, name := range flag.Args() {
		b, err := os.ReadFile(name)
		check(err)
		var r report
		check(json.Unmarshal(b, &r))
		for _, f := range r.Files {
			file := filepath.FromSlash(f.Name)
			text, err := os.ReadFile(file)
			check(err)
			for _, m := range f.Mutations {
				if m.Status != "LIVED" || ctx.Err() != nil {
					continue
				}
				to, line, ok := mutate(text, m.Type, m.Line, m.Column)
				if !ok {
					fmt.Printf("%s:%d:%d: %s: not found\n", f.Name, m.Line, m.Column, m.Type)
					continue
				}
				check(os.WriteFile(file, to, 0o644))
				c, cancel := context.WithTimeout(ctx, *limit)
				noticed := exec.CommandContext(c, "go", "test", "-vet=off", "-failfast", "-short", "-run", *run, "./cmd/mem").Run() != nil
				cancel()
				check(os.WriteFile(file, text, 0o644))
				if ctx.Err() != nil { // interrupted: nothing is known of this one
					continue
				}
				if noticed {
					killed++
					continue
				}
				lived++
				fmt.Printf("%s:%d:%d: %s lives: %s\n", f.Name, m.Line, m.Column, m.Type, line)
			}
		}
	}
	fmt.Printf("%d more noticed, %d live\n", killed, lived)
}

func check(err error) {
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

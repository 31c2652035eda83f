// Command maketree writes a workspace that looks like a real one.
//
//	go run ./bench/maketree -files 10000 DIR
package main

import (
	"flag"
	"fmt"
	"log"
	"time"

	"github.com/tieredmem/mem/internal/tree"
)

func main() {
	log.SetFlags(0)
	files := flag.Int("files", 1000, "about how many Markdown files")
	odd := flag.Bool("odd", false, "with the odd shapes of the field")
	flat := flag.Bool("flat", false, "all notes in one directory, none to be archived")
	today := flag.String("today", "2026-11-30", "the day that notes go back from")
	flag.Parse()
	if flag.NArg() != 1 {
		log.Fatal("usage: maketree [-files N] [-odd] DIR")
	}
	day, err := time.Parse(time.DateOnly, *today)
	if err != nil {
		log.Fatal(err)
	}
	n, err := tree.Make(flag.Arg(0), tree.Options{Files: *files, Today: day.Add(12 * time.Hour), Odd: *odd, Flat: *flat, Seed: 1})
	if err != nil {
		log.Fatal(err)
	}
	fmt.Println(n, "files")
}

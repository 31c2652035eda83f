// Command floor walks a workspace and reads every Markdown file in it, in
// parallel, and does nothing else: the least that any check of all files can
// take.
package main

import (
	"fmt"
	"io/fs"
	"log"
	"os"
	"runtime"
	"strings"

	"github.com/tieredmem/mem/walk"
)

func main() {
	workers := min(4, runtime.GOMAXPROCS(0))
	files := make([]int, workers)
	bytes := make([]int, workers)
	err := walk.Dir(os.Args[1], walk.Options{
		Enter:   func(dir string) bool { return dir != ".mem" && dir != ".git" },
		Want:    func(string) func(string, fs.FileMode) (bool, bool) { return markdown },
		Visit:   func(w int, f *walk.File) { files[w]++; bytes[w] += len(f.Body) },
		Workers: workers,
	})
	if err != nil {
		log.Fatal(err)
	}
	n, b := 0, 0
	for i := range files {
		n, b = n+files[i], b+bytes[i]
	}
	fmt.Println(n, "files,", b, "bytes")
}

func markdown(base string, typ fs.FileMode) (visit, body bool) {
	ok := typ.IsRegular() && strings.HasSuffix(base, ".md")
	return ok, ok
}

//go:build !unix

// Command bench needs a Unix system.
package main

import "log"

func main() { log.Fatal("the benchmarks need a Unix system") }

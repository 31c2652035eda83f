package main

import (
	"flag"
	"io/fs"
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/tieredmem/mem/durable"
)

var machineBug = flag.String("machine.bug", "", "a bug to plant between TestMachine's program and its disk")

// machineBugs are what TestMachine is to notice.
var machineBugs = map[string]func(durable.FS) durable.FS{
	"no fsync of directories":          func(f durable.FS) durable.FS { return noDirs{f} },
	"no fsync of files":                func(f durable.FS) durable.FS { return noFiles{f} },
	"after-hash as the mark of commit": func(f durable.FS) durable.FS { return byHash{f} },
	"plan retired before its backups":  func(f durable.FS) durable.FS { return hasty{f, &[][2]string{}} },
}

type noDirs struct{ durable.FS }

func (noDirs) SyncDir(string) error { return nil }

type noFiles struct{ durable.FS }

func (n noFiles) Create(name string, perm fs.FileMode) (durable.File, error) {
	f, err := n.FS.Create(name, perm)
	return noFile{f}, err
}

type noFile struct{ durable.File }

func (noFile) Sync() error { return nil }

// TestMachineHasTeeth: each of these is noticed, in a process of its own.
func TestMachineHasTeeth(t *testing.T) {
	if raceEnabled || testing.Short() {
		t.Skip("TestMachine itself is what is looked at, ten times slower under the race detector")
	}
	exe, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	for bug := range machineBugs {
		t.Run(bug, func(t *testing.T) {
			out, err := exec.Command(exe, "-test.run", "^TestMachine$", "-rapid.nofailfile", "-rapid.shrinktime", "0s", "-rapid.seed", "4", "-machine.bug", bug).CombinedOutput()
			_, said, _ := strings.Cut(string(out), "[rapid] failed ")
			said, _, _ = strings.Cut(said, "\n")
			if err == nil || said == "" {
				t.Fatalf("nobody noticed: %v", err)
			}
			t.Log(said)
		})
	}
}

package durable_test

import (
	"errors"
	"fmt"
	"io/fs"
	"testing"
	"time"

	"pgregory.net/rapid"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
)

// The three disks agree: the operating system's, the one in memory that the
// crash tests run on, and the overlay of a dry run, which leaves its base as
// it was. Whatever is done to them, each operation succeeds or fails alike, and
// the same files stand there in the end.
func TestDisksAgree(t *testing.T) {
	rapid.Check(t, func(rt *rapid.T) {
		dir := t.TempDir()
		real, err := durable.Open(dir)
		if err != nil {
			t.Fatal(err)
		}
		defer real.Close()
		if !real.Caps(".").Exchange {
			t.Skip("this file system has no exchange to compare")
		}
		memory, base := faultfs.New(), faultfs.New()
		over := durable.Overlay(base, time.Unix(0, 0))
		disks := []durable.FS{real, memory, over}
		names := rapid.SampledFrom([]string{"a", "b", "d/a", "d/b", "e/a"})
		for range rapid.IntRange(1, 25).Draw(rt, "operations") {
			op := rapid.SampledFrom([]string{"create", "mkdir", "rename", "move", "exchange", "link", "remove", "sync"}).Draw(rt, "op")
			x, y := names.Draw(rt, "x"), names.Draw(rt, "y")
			if op == "mkdir" {
				x = rapid.SampledFrom([]string{"d", "e"}).Draw(rt, "dir")
			}
			var results []string
			for _, d := range disks {
				results = append(results, word(apply(d, op, x, y)))
			}
			if results[0] != results[1] || results[0] != results[2] {
				rt.Fatalf("%s %s %s: %v", op, x, y, results)
			}
		}
		want := tree(real)
		for i, d := range disks[1:] {
			if got := tree(d); got != want {
				rt.Fatalf("disk %d: %s, want %s", i+1, got, want)
			}
		}
		if got := tree(base); got != "" {
			rt.Fatalf("the overlay wrote to its base: %s", got)
		}
	})
}

// TestRenameOfTwoNamesOfOneFile: rename(2) leaves both (found by TestDisksAgree).
func TestRenameOfTwoNamesOfOneFile(t *testing.T) {
	real, err := durable.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	for _, d := range []durable.FS{real, faultfs.New(), durable.Overlay(faultfs.New(), time.Unix(0, 0))} {
		for _, op := range [][3]string{{"create", "a", ""}, {"link", "a", "b"}, {"rename", "a", "b"}} {
			if err := apply(d, op[0], op[1], op[2]); err != nil {
				t.Fatal(err)
			}
		}
		if got := tree(d); got != "a=a b=a " {
			t.Errorf("%T: %s", d, got)
		}
	}
}

func apply(d durable.FS, op, x, y string) error {
	switch op {
	case "create":
		_, err := durable.WriteNew(d, x, []byte(x), 0o644, "")
		return err
	case "mkdir":
		return d.Mkdir(x, 0o755)
	case "rename":
		if x == y {
			return nil
		}
		return d.Rename(x, y)
	case "move":
		return d.Move(x, y)
	case "exchange":
		return d.Exchange(x, y)
	case "link":
		return d.Link(x, y)
	case "remove":
		return d.Remove(x)
	}
	return d.SyncDir(".")
}

func word(err error) string {
	switch {
	case err == nil:
		return "ok"
	case errors.Is(err, fs.ErrExist):
		return "exists"
	case errors.Is(err, fs.ErrNotExist):
		return "absent"
	}
	return "error"
}

func tree(d durable.FS) string {
	out := ""
	err := fs.WalkDir(durable.View(d, 0), ".", func(p string, e fs.DirEntry, err error) error {
		if err != nil || p == "." {
			return err
		}
		text := "/"
		if !e.IsDir() {
			b, _, err := durable.ReadFile(d, p, 0)
			if err != nil {
				return err
			}
			text = string(b)
		}
		out += fmt.Sprintf("%s=%s ", p, text)
		return nil
	})
	if err != nil {
		return err.Error()
	}
	return out
}

package durable_test

import (
	"bytes"
	"errors"
	"io"
	"io/fs"
	"testing"
	"testing/fstest"
	"time"

	"github.com/tieredmem/mem/durable"
	"github.com/tieredmem/mem/durable/faultfs"
)

// The view of every disk is a file system as package io/fs wants one.
func TestViewIsAFileSystem(t *testing.T) {
	real, err := durable.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer real.Close()
	base := faultfs.New()
	for _, op := range [][2]string{{"mkdir", "d"}, {"create", "d/a"}, {"create", "old"}} {
		if err := apply(base, op[0], op[1], ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, d := range []durable.FS{real, faultfs.New(), durable.Overlay(base, time.Unix(0, 0))} {
		for _, op := range [][2]string{{"mkdir", "d"}, {"mkdir", "d/e"}, {"create", "d/a"}, {"create", "d/b"}, {"create", "d/e/c"}, {"create", "f"}} {
			if err := apply(d, op[0], op[1], ""); err != nil && !errors.Is(err, fs.ErrExist) {
				t.Fatal(err)
			}
		}
		if err := fstest.TestFS(durable.View(d, 0), "d/a", "d/b", "d/e/c", "f"); err != nil {
			t.Errorf("%T: %v", d, err)
		}
		dir, err := durable.View(d, 0).Open("d")
		if err != nil {
			t.Fatal(err)
		}
		if e, err := dir.(fs.ReadDirFile).ReadDir(0); err != nil || len(e) != 3 {
			t.Errorf("%T: a directory whole: %v, %v", d, e, err)
		}
		if _, err := dir.(fs.ReadDirFile).ReadDir(1); err != io.EOF {
			t.Errorf("%T: after its end: %v", d, err)
		}
		for _, name := range []string{"../x", "/f", "d/", ""} {
			if _, err := durable.View(d, 0).Open(name); !errors.Is(err, fs.ErrInvalid) {
				t.Errorf("%T: open %q: %v", d, name, err)
			}
		}
	}
}

// growing is a disk whose files are longer when they are read than they were
// when they were looked at.
type growing struct {
	durable.FS
	said int64
	text []byte
	err  error // at the end, instead of io.EOF
}

func (g growing) Open(string) (durable.Reader, error) {
	return &grown{bytes.NewReader(g.text), g}, nil
}

type grown struct {
	r *bytes.Reader
	g growing
}

func (g *grown) Read(b []byte) (int, error) {
	if len(b) == 0 {
		return 0, nil
	}
	n, err := g.r.Read(b)
	if err == io.EOF && g.g.err != nil {
		err = g.g.err
	}
	return n, err
}
func (g *grown) Info() (durable.Info, error) { return durable.Info{Size: g.g.said}, nil }
func (g *grown) Close() error                { return nil }

func TestReadFileLimits(t *testing.T) {
	broken := errors.New("input/output error")
	text := []byte("0123456789")
	for what, c := range map[string]struct {
		g     growing
		limit int64
		want  error
	}{
		"as long as it said":                  {growing{said: 10, text: text}, 0, nil},
		"at the limit":                        {growing{said: 10, text: text}, 10, nil},
		"a byte over":                         {growing{said: 10, text: text}, 9, durable.ErrTooLarge},
		"grown, no limit":                     {growing{said: 3, text: text}, 0, nil},
		"grown to the limit":                  {growing{said: 3, text: text}, 10, nil},
		"grown a byte over":                   {growing{said: 3, text: text}, 9, durable.ErrTooLarge},
		"said to be over, however little now": {growing{said: 11, text: text}, 10, durable.ErrTooLarge},
		"broken":                              {growing{said: 10, text: text, err: broken}, 0, broken},
	} {
		b, _, err := durable.ReadFile(c.g, "a", c.limit)
		if !errors.Is(err, c.want) || (err == nil && !bytes.Equal(b, text)) || (err != nil && b != nil) {
			t.Errorf("%s: %q, %v", what, b, err)
		}
	}
}

// A failing operation has the error of its kind: what failed to sync may never
// be tried again, and whoever sees the error must know.
func TestWatchedErrors(t *testing.T) {
	planted := errors.New("planted")
	base := faultfs.New()
	for _, op := range [][2]string{{"create", "a"}, {"create", "b"}, {"mkdir", "d"}} {
		if err := apply(base, op[0], op[1], ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, after := range []bool{false, true} {
		for kind, do := range map[string]func(durable.FS) error{
			"fsync": func(d durable.FS) error {
				f, err := d.Create("c", 0o600)
				if err != nil {
					return err
				}
				defer d.Remove("c")
				defer f.Close()
				return f.Sync()
			},
			"syncdir": func(d durable.FS) error { return d.SyncDir("d") },
			"syncall": func(d durable.FS) error { return d.SyncAll() },
			"write": func(d durable.FS) error {
				f, err := d.Create("c", 0o600)
				if err != nil {
					return err
				}
				defer d.Remove("c")
				defer f.Close()
				_, err = f.Write([]byte("x"))
				return err
			},
			"lstat":    func(d durable.FS) error { _, err := d.Lstat("a"); return err },
			"exchange": func(d durable.FS) error { return d.Exchange("a", "b") },
		} {
			d := durable.Watch(base, func(op durable.Op, done bool) error {
				if op.Kind == kind && done == after {
					return planted
				}
				return nil
			})
			err := do(d)
			var s *durable.SyncError
			var p *fs.PathError
			synced := errors.As(err, &s)
			if !errors.Is(err, planted) || synced != (kind[:3] == "syn" || kind == "fsync") || (synced && s.Dir != (kind != "fsync")) || (!synced && !errors.As(err, &p)) {
				t.Errorf("%s, after it %v: %T %v", kind, after, err, err)
			}
		}
	}
	// what the disk says itself is passed on as it is
	d := durable.Watch(base, func(durable.Op, bool) error { return nil })
	if err := d.Move("a", "b"); !errors.Is(err, fs.ErrExist) {
		t.Error(err)
	}
}

// Files of a dry run are told apart: each has its identity, and below a file
// there is nothing.
func TestOverlayMakesNewFiles(t *testing.T) {
	base := faultfs.New()
	if err := apply(base, "create", "old", ""); err != nil {
		t.Fatal(err)
	}
	d := durable.Overlay(base, time.Unix(0, 0))
	seen := map[durable.ID]string{}
	for _, n := range []string{"a", "b", "c"} {
		if err := apply(d, "create", n, ""); err != nil {
			t.Fatal(err)
		}
	}
	for _, n := range []string{"a", "b", "c", "old"} {
		i, err := d.Lstat(n)
		if err != nil || seen[i.ID] != "" {
			t.Errorf("%s is %s: %v", n, seen[i.ID], err)
		}
		seen[i.ID] = n
	}
	for _, name := range []string{"a/x", "old/x"} {
		for op, err := range map[string]error{"create": apply(d, "create", name, ""), "rename": d.Rename("b", name), "link": d.Link("b", name), "mkdir": d.Mkdir(name, 0o755)} {
			if err == nil {
				t.Errorf("%s %s, below a file", op, name)
			}
		}
	}
	f, err := d.Create("like", 0o600)
	if err != nil {
		t.Fatal(err)
	}
	if err := f.Clone("none"); !errors.Is(err, fs.ErrNotExist) {
		t.Error(err)
	}
	if err := f.Clone("a"); err != nil {
		t.Error(err)
	}
	if i, _ := d.Lstat("like"); i.Mode.Perm() != 0o644 {
		t.Errorf("the mode is %v", i.Mode)
	}
	if err := d.Mkdir("new", 0o755); err != nil {
		t.Fatal(err)
	}
	if err := apply(base, "mkdir", "disk", ""); err != nil {
		t.Fatal(err)
	}
	mounted := durable.Overlay(mount{base, "disk"}, time.Unix(0, 0))
	for dir, want := range map[string]bool{"disk": true, "disk/new/deeper": true, ".": false, "new": false, "new/deeper": false} {
		if got := mounted.Caps(dir).Exchange; got != want {
			t.Errorf("%s can exchange: %v", dir, got)
		}
	}
	for op, err := range map[string]error{
		"exchange from": d.Exchange("none", "a"), "exchange to": d.Exchange("a", "none"), "link": d.Link("none", "x"), "rename": d.Rename("none", "x"), "move": d.Move("none", "x"), "remove": d.Remove("none"),
	} {
		if !errors.Is(err, fs.ErrNotExist) {
			t.Errorf("%s: %v", op, err)
		}
	}
}

// mount is a disk of which one directory is another file system.
type mount struct {
	durable.FS
	dir string
}

func (m mount) Caps(dir string) durable.Caps { return durable.Caps{Exchange: dir == m.dir} }

//go:build linux || darwin

package walk

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path"
	"sync"
	"sync/atomic"

	"golang.org/x/sys/unix"
)

// batchSize is how many names a worker takes at once: enough that handing them
// over costs nothing, few enough that one flat directory keeps all workers busy.
const batchSize = 128

// directory is an open directory that batches share.
type directory struct {
	fd   int
	name string
	refs atomic.Int32
}

func (d *directory) release() {
	if d.refs.Add(-1) == 0 {
		unix.Close(d.fd)
	}
}

type batch struct {
	dir   *directory
	names []string
	types []fs.FileMode
	bare  []bool // visit without content
}

// Dir walks a directory of the operating system.
func Dir(root string, o Options) error {
	fd, err := open(unix.AT_FDCWD, root, unix.O_DIRECTORY)
	if err != nil {
		return &fs.PathError{Op: "open", Path: root, Err: err}
	}
	w := &walker{o: o, free: make(chan *batch, 64)}
	top := &directory{fd: fd, name: "."}
	top.refs.Store(1)
	w.list(top, 0)
	if w.cur != nil {
		w.reader(0).run(w.cur)
		w.cur.dir.release()
	}
	if w.work != nil {
		close(w.work)
		w.wait.Wait()
	}
	return nil
}

type walker struct {
	o       Options
	cur     *batch
	work    chan *batch
	free    chan *batch
	wait    sync.WaitGroup
	readers []*reader
}

// list reads a directory, hands out its files and then goes into the
// directories below it. Few files are read here; with more, workers start.
func (w *walker) list(d *directory, depth int) {
	defer d.release()
	if !w.o.Enter(d.name) {
		return
	}
	if depth > MaxDepth {
		w.fail(d.name, ErrDepth)
		return
	}
	want := w.o.Want(d.name)
	var subs []string
	dup, err := unix.Openat(d.fd, ".", unix.O_RDONLY|unix.O_DIRECTORY|unix.O_CLOEXEC, 0)
	if err != nil {
		w.fail(d.name, err)
		return
	}
	f := os.NewFile(uintptr(dup), d.name)
	defer f.Close()
	for {
		entries, err := f.ReadDir(batchSize)
		for _, e := range entries {
			base, typ := e.Name(), e.Type()
			if typ.IsDir() {
				subs = append(subs, base)
			} else if visit, body := want(base, typ); visit {
				w.add(d, base, typ, !body || !typ.IsRegular())
			}
		}
		if err != nil {
			if !errors.Is(err, io.EOF) {
				w.fail(d.name, err)
			}
			break
		}
	}
	for _, base := range subs {
		name := path.Join(d.name, base)
		if !w.o.Enter(name) {
			continue
		}
		fd, err := open(d.fd, base, unix.O_DIRECTORY)
		if err != nil {
			w.fail(name, err)
			continue
		}
		sub := &directory{fd: fd, name: name}
		sub.refs.Store(1)
		w.list(sub, depth+1)
	}
}

func (w *walker) fail(dir string, err error) {
	w.reader(0).visit(File{Dir: path.Dir(dir), Base: path.Base(dir), Mode: fs.ModeDir, Err: err})
}

func (w *walker) add(d *directory, base string, typ fs.FileMode, bare bool) {
	if w.cur != nil && (w.cur.dir != d || len(w.cur.names) == batchSize) {
		w.flush()
	}
	if w.cur == nil {
		d.refs.Add(1)
		select {
		case w.cur = <-w.free:
			w.cur.dir, w.cur.names, w.cur.types, w.cur.bare = d, w.cur.names[:0], w.cur.types[:0], w.cur.bare[:0]
		default:
			w.cur = &batch{dir: d, names: make([]string, 0, batchSize), types: make([]fs.FileMode, 0, batchSize), bare: make([]bool, 0, batchSize)}
		}
	}
	w.cur.names = append(w.cur.names, base)
	w.cur.types = append(w.cur.types, typ)
	w.cur.bare = append(w.cur.bare, bare)
}

func (w *walker) flush() {
	b := w.cur
	w.cur = nil
	if w.work == nil && len(b.names) < batchSize {
		w.reader(0).run(b)
		b.dir.release()
		return
	}
	if w.work == nil && w.o.Workers > 1 {
		w.work = make(chan *batch, 4*w.o.Workers)
		for i := 1; i < w.o.Workers; i++ {
			r := w.reader(i)
			w.wait.Go(func() {
				for b := range w.work {
					r.run(b)
					b.dir.release()
					select {
					case w.free <- b:
					default:
					}
				}
			})
		}
	}
	select {
	case w.work <- b: // a nil channel is never ready
	default: // they have enough: this one is the lister's own
		w.reader(0).run(b)
		b.dir.release()
	}
}

func (w *walker) reader(i int) *reader {
	for len(w.readers) <= i {
		w.readers = append(w.readers, &reader{o: &w.o, worker: len(w.readers), buf: make([]byte, 64<<10)})
	}
	return w.readers[i]
}

// reader reads files into one buffer.
type reader struct {
	o      *Options
	worker int
	buf    []byte
	f      File
}

func (r *reader) visit(f File) {
	r.f = f
	r.o.Visit(r.worker, &r.f)
}

func (r *reader) run(b *batch) {
	for i, base := range b.names {
		f := File{Dir: b.dir.name, Base: base, Mode: b.types[i]}
		if !b.bare[i] {
			f.Err = r.read(b.dir.fd, base, &f)
		}
		r.visit(f)
	}
}

func (r *reader) read(dir int, base string, f *File) error {
	fd, err := open(dir, base, 0)
	if err != nil {
		return &fs.PathError{Op: "open", Path: f.Path(), Err: err}
	}
	defer unix.Close(fd)
	if r.o.Light {
		return r.light(fd, f)
	}
	var st unix.Stat_t
	if err := unix.Fstat(fd, &st); err != nil {
		return &fs.PathError{Op: "stat", Path: f.Path(), Err: err}
	}
	if st.Mode&unix.S_IFMT != unix.S_IFREG {
		f.Mode = fs.ModeIrregular
		return nil
	}
	f.Size, f.Links, f.Mode = st.Size, uint64(st.Nlink), fs.FileMode(st.Mode&0o777) //nolint:unconvert // its type differs by system
	if r.o.Limit > 0 && st.Size > r.o.Limit {
		return &fs.PathError{Op: "read", Path: f.Path(), Err: ErrTooLarge}
	}
	n := 0
	for {
		if n == len(r.buf) {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		k, err := unix.Read(fd, r.buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "read", Path: f.Path(), Err: err}
		}
		n += k
		if k == 0 || int64(n) == st.Size {
			f.Body = r.buf[:n:n]
			return nil
		}
	}
}

// light reads what the directory said is a regular file. One that something
// else has taken the place of is opened without waiting, and read as empty.
func (r *reader) light(fd int, f *File) error {
	n := 0
	for {
		if n == len(r.buf) {
			r.buf = append(r.buf, make([]byte, len(r.buf))...)
		}
		k, err := unix.Read(fd, r.buf[n:])
		if err == unix.EINTR {
			continue
		}
		if err != nil {
			return &fs.PathError{Op: "read", Path: f.Path(), Err: err}
		}
		short := n+k < len(r.buf) // of a regular file: its end
		n += k
		if r.o.Limit > 0 && int64(n) > r.o.Limit {
			return &fs.PathError{Op: "read", Path: f.Path(), Err: ErrTooLarge}
		}
		if short {
			f.Body = r.buf[:n:n]
			return nil
		}
	}
}

// open opens for reading without following a symlink or waiting for a FIFO.
func open(dir int, name string, flags int) (int, error) {
	if dir != unix.AT_FDCWD {
		flags |= unix.O_NOFOLLOW
	}
	for {
		fd, err := unix.Openat(dir, name, unix.O_RDONLY|unix.O_NONBLOCK|unix.O_CLOEXEC|flags, 0)
		if err != unix.EINTR {
			return fd, err
		}
	}
}

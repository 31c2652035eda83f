// Package walk reads the files of a tree in one pass.
//
// [Dir] walks a directory of the operating system, in parallel; [FS] does the
// same on any fs.FS, one file after the other. Both follow no symlink and open
// nothing but regular files. Neither writes.
package walk

import (
	"errors"
	"io/fs"
	"path"
)

// MaxDepth is how deep directories are followed.
const MaxDepth = 32

// ErrDepth marks a directory below MaxDepth.
var ErrDepth = errors.New("nested too deep")

// ErrTooLarge marks a file over the limit, which is not read.
var ErrTooLarge = errors.New("too large to be read")

// File is one entry that was found. It is reused: keep nothing of Body.
type File struct {
	Dir, Base string
	Mode      fs.FileMode // type bits, and permissions where it was opened
	Size      int64       // bytes; of files that were opened
	Links     uint64      // names that lead to it; 0 where unknown
	Body      []byte      // nil unless asked for
	Err       error       // it, or the directory of that name, could not be read
}

// Path is the file's path from the root, with slashes.
func (f *File) Path() string { return path.Join(f.Dir, f.Base) }

// Options say what to look at.
type Options struct {
	// Enter says whether a directory is walked.
	Enter func(dir string) bool
	// Want gives, for a directory, a function that says of each name in it
	// whether it is visited, and whether with its content.
	Want func(dir string) func(base string, typ fs.FileMode) (visit, body bool)
	// Visit is called for each file, by up to Workers goroutines at once, each
	// with its own number, counted from 0.
	Visit   func(worker int, f *File)
	Workers int
	// Light leaves Size, Links and the permissions of Mode out, which saves a
	// system call a file.
	Light bool
	Limit int64 // bytes: larger files come with ErrTooLarge and no body
}

// FS walks any file system.
func FS(m fs.FS, o Options) error {
	f := &File{}
	var walk func(dir string, depth int)
	walk = func(dir string, depth int) {
		entries, err := fs.ReadDir(m, dir)
		if err == nil && depth > MaxDepth {
			err = ErrDepth
		}
		if err != nil {
			*f = File{Dir: path.Dir(dir), Base: path.Base(dir), Mode: fs.ModeDir, Err: err}
			o.Visit(0, f)
			return
		}
		want := o.Want(dir)
		for _, e := range entries {
			if e.IsDir() {
				if sub := path.Join(dir, e.Name()); o.Enter(sub) {
					walk(sub, depth+1)
				}
				continue
			}
			visit, body := want(e.Name(), e.Type())
			if !visit {
				continue
			}
			*f = File{Dir: dir, Base: e.Name(), Mode: e.Type()}
			if body && e.Type().IsRegular() {
				f.read(m, o.Limit)
			}
			o.Visit(0, f)
		}
	}
	if !o.Enter(".") {
		return nil
	}
	if _, err := fs.Stat(m, "."); err != nil {
		return err
	}
	walk(".", 0)
	return nil
}

func (f *File) read(m fs.FS, limit int64) {
	name := f.Path()
	info, err := fs.Stat(m, name)
	if err == nil {
		f.Size, f.Mode = info.Size(), info.Mode()
		if l, ok := info.(interface{ Links() uint64 }); ok {
			f.Links = l.Links()
		}
		if limit > 0 && f.Size > limit {
			err = ErrTooLarge
		} else {
			f.Body, err = fs.ReadFile(m, name)
		}
	}
	if f.Body == nil && err == nil {
		f.Body = []byte{}
	}
	f.Err = err
}

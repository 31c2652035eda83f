// Package faultfs is a disk in memory that loses power: tests only.
//
// [Disk] implements durable.FS and keeps, beside what a program sees, what
// would be there after a power cut: file content as of the last fsync,
// directory entries as of the last fsync of their directory. [Disk.Power]
// lists every state such a cut may leave. The model is deliberately weaker
// than ext4 or XFS: entries that were not synced may survive in any
// combination, and unsynced data may be lost, kept, torn or zero-filled.
package faultfs

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"
	"strings"
	"syscall"
	"time"

	"github.com/tieredmem/mem/durable"
)

type node struct {
	id       uint64
	mode     fs.FileMode
	cur, dur []byte // dur: content as of the last fsync
	dirty    bool
	mtime    time.Time
}

// entry is one change to the name space that no fsync covers yet.
type entry struct {
	op     string // set, drop, swap, move
	a, b   string
	an, bn *node
	dirs   [2]string
	half   uint64 // the two halves of a split rename share it
}

// Disk is a disk in memory. Create it with New.
type Disk struct {
	Now time.Time // modification time of what is written
	// Split lets a rename between directories survive by halves: the new name
	// may be there while the old one still is. Not the other way round, unless
	// the old name's directory is synced first.
	Split bool
	// NoExchange and NoLinks take those operations away.
	NoExchange, NoLinks bool
	// Far, if set, is a directory on another file system: nothing is renamed or
	// linked into it or out of it.
	Far string
	// Ignore, if set, makes matching fsyncs do nothing: to show which of them
	// the promise needs.
	Ignore func(kind, name string) bool

	cur, dur map[string]*node
	pend     []entry
	next     uint64
}

// New returns an empty disk.
func New() *Disk {
	root := &node{id: 1, mode: fs.ModeDir | 0o755}
	return &Disk{
		Now: time.Date(2026, 11, 30, 9, 0, 0, 0, time.UTC),
		cur: map[string]*node{".": root}, dur: map[string]*node{".": root}, next: 1,
	}
}

// Put writes a file, durable at once, with its directories: a test's set-up,
// before anything ran on the disk.
func (d *Disk) Put(name, text string) {
	d.putDirs(path.Dir(name))
	n := d.node(0o644)
	n.cur, n.dur = []byte(text), []byte(text)
	d.cur[name], d.dur[name] = n, n
}

func (d *Disk) putDirs(dir string) {
	if dir == "." || d.cur[dir] != nil {
		return
	}
	d.putDirs(path.Dir(dir))
	n := d.node(fs.ModeDir | 0o755)
	d.cur[dir], d.dur[dir] = n, n
}

// Mkdirs makes directories, durable at once.
func (d *Disk) Mkdirs(names ...string) {
	for _, n := range names {
		d.putDirs(n)
	}
}

// Text returns a file's content and whether it is there.
func (d *Disk) Text(name string) (string, bool) {
	n, ok := d.cur[name]
	if !ok || n.mode.IsDir() {
		return "", false
	}
	return string(n.cur), true
}

// Names lists every file, sorted; directories are left out.
func (d *Disk) Names() []string {
	var out []string
	for p, n := range d.cur {
		if !n.mode.IsDir() {
			out = append(out, p)
		}
	}
	slices.Sort(out)
	return out
}

// Handle is a foreign writer's open descriptor, which ignores every lock.
type Handle struct{ id uint64 }

// Hold opens a file as a foreign writer would; ok is false if it is absent.
func (d *Disk) Hold(name string) (Handle, bool) {
	n, ok := d.cur[name]
	if !ok {
		return Handle{}, false
	}
	return Handle{n.id}, true
}

// Write appends through the descriptor, durable at once. It reports false if
// no name leads to the file any more.
func (d *Disk) Write(h Handle, text string) bool {
	n := d.byID(h.id)
	if n == nil {
		return false
	}
	n.cur = append(bytes.Clone(n.cur), text...)
	n.dur, n.dirty, n.mtime = n.cur, false, d.Now
	return true
}

// Rewrite replaces the content in place, through the descriptor.
func (d *Disk) Rewrite(h Handle, f func(string) string) bool {
	n := d.byID(h.id)
	if n == nil {
		return false
	}
	n.cur = []byte(f(string(n.cur)))
	n.dur, n.dirty, n.mtime = n.cur, false, d.Now
	return true
}

func (d *Disk) byID(id uint64) *node {
	for _, n := range d.cur {
		if n.id == id {
			return n
		}
	}
	return nil
}

// Save replaces a file by rename, as many editors do, and syncs.
func (d *Disk) Save(name, text string) {
	n := d.node(0o644)
	n.cur, n.dur = []byte(text), []byte(text)
	d.cur[name] = n
	d.pend = append(d.pend, entry{op: "set", a: name, an: n, dirs: [2]string{path.Dir(name), path.Dir(name)}})
	d.syncDir(path.Dir(name))
}

func (d *Disk) node(mode fs.FileMode) *node {
	d.next++
	return &node{id: d.next, mode: mode, mtime: d.Now}
}

// Clone copies the disk with everything that is not durable yet.
func (d *Disk) Clone() *Disk {
	c := *d
	seen := map[*node]*node{}
	cp := func(n *node) *node {
		if n == nil {
			return nil
		}
		m, ok := seen[n]
		if !ok {
			v := *n
			m = &v
			seen[n] = m
		}
		return m
	}
	c.cur = make(map[string]*node, len(d.cur))
	for p, n := range d.cur {
		c.cur[p] = cp(n)
	}
	c.dur = make(map[string]*node, len(d.dur))
	for p, n := range d.dur {
		c.dur[p] = cp(n)
	}
	c.pend = slices.Clone(d.pend)
	for i := range c.pend {
		c.pend[i].an, c.pend[i].bn = cp(c.pend[i].an), cp(c.pend[i].bn)
	}
	return &c
}

var seed = maphash.MakeSeed()

// Settled reports whether everything on the disk is durable.
func (d *Disk) Settled() bool {
	if len(d.pend) > 0 {
		return false
	}
	for _, n := range d.cur {
		if n.dirty {
			return false
		}
	}
	return true
}

// Key identifies the state, durable and not. Files are told apart by their
// names and content, not by their numbers: where a text names a number
// ("ino":N, as plans do) what counts is which file has it now.
func (d *Disk) Key() uint64 {
	var h maphash.Hash
	h.SetSeed(seed)
	names := d.write(&h, d.cur)
	h.WriteByte(3)
	if len(d.pend) > 0 {
		d.write(&h, d.dur)
		for _, e := range d.pend {
			h.WriteString(e.op + "\x00" + e.a + "\x00" + e.b + "\x00")
		}
	} else if len(d.dur) != len(names) {
		d.write(&h, d.dur)
	}
	return h.Sum64()
}

func (d *Disk) write(h *maphash.Hash, m map[string]*node) []string {
	names := make([]string, 0, len(m))
	for p := range m {
		names = append(names, p)
	}
	slices.Sort(names)
	for _, p := range names {
		n := m[p]
		h.WriteString(p)
		h.WriteByte(0)
		maphash.WriteComparable(h, n.mode)
		if strings.HasPrefix(p, ".mem/tx/") || strings.HasPrefix(p, ".mem/receipts/") {
			d.writeNumbered(h, n.cur, names, m)
		} else {
			h.Write(n.cur)
		}
		if n.dirty {
			h.WriteByte(1)
			h.Write(n.dur)
		}
		h.WriteByte(0)
	}
	return names
}

// writeNumbered writes text with every "ino":N replaced by the first name that
// file N has.
func (d *Disk) writeNumbered(h *maphash.Hash, text []byte, names []string, m map[string]*node) {
	mark := []byte(`"ino":`)
	for {
		i := bytes.Index(text, mark)
		if i < 0 {
			h.Write(text)
			return
		}
		i += len(mark)
		h.Write(text[:i])
		text = text[i:]
		var id uint64
		k := 0
		for k < len(text) && text[k] >= '0' && text[k] <= '9' {
			id = id*10 + uint64(text[k]-'0')
			k++
		}
		text = text[k:]
		if k := slices.IndexFunc(names, func(p string) bool { return m[p].id == id }); k >= 0 {
			h.WriteString(names[k])
		}
	}
}

func fail(op, name string, err error) error { return &fs.PathError{Op: op, Path: name, Err: err} }

func (d *Disk) parent(op, name string) error {
	if !fs.ValidPath(name) {
		return fail(op, name, fs.ErrInvalid)
	}
	up, ok := d.cur[path.Dir(name)]
	if !ok || !up.mode.IsDir() {
		return fail(op, name, fs.ErrNotExist)
	}
	return nil
}

func (d *Disk) get(op, name string) (*node, error) {
	n, ok := d.cur[name]
	if !ok {
		return nil, fail(op, name, fs.ErrNotExist)
	}
	return n, nil
}

// Open implements durable.FS.
func (d *Disk) Open(name string) (durable.Reader, error) {
	n, err := d.get("open", name)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsRegular() {
		return nil, fail("open", name, durable.ErrNotRegular)
	}
	return &reader{bytes.NewReader(n.cur), n.info()}, nil
}

type reader struct {
	io.Reader
	info durable.Info
}

func (r *reader) Info() (durable.Info, error) { return r.info, nil }
func (r *reader) Close() error                { return nil }

func (n *node) info() durable.Info {
	return durable.Info{Mode: n.mode, Size: int64(len(n.cur)), ModTime: n.mtime, ID: durable.ID{Dev: 1, Ino: n.id}, Links: 1}
}

// ReadDir implements durable.FS.
func (d *Disk) ReadDir(name string) ([]fs.DirEntry, error) {
	n, err := d.get("readdir", name)
	if err != nil {
		return nil, err
	}
	if !n.mode.IsDir() {
		return nil, fail("readdir", name, errors.New("not a directory"))
	}
	var out []fs.DirEntry
	for p, n := range d.cur {
		if p != "." && path.Dir(p) == name {
			out = append(out, fs.FileInfoToDirEntry(durable.FileInfo{Base: path.Base(p), I: n.info()}))
		}
	}
	slices.SortFunc(out, func(a, b fs.DirEntry) int { return strings.Compare(a.Name(), b.Name()) })
	return out, nil
}

// Lstat implements durable.FS.
func (d *Disk) Lstat(name string) (durable.Info, error) {
	n, err := d.get("lstat", name)
	if err != nil {
		return durable.Info{}, err
	}
	return n.info(), nil
}

// Create implements durable.FS.
func (d *Disk) Create(name string, perm fs.FileMode) (durable.File, error) {
	if err := d.parent("create", name); err != nil {
		return nil, err
	}
	if _, ok := d.cur[name]; ok {
		return nil, fail("create", name, fs.ErrExist)
	}
	n := d.node(perm.Perm() &^ 0o022)
	d.set(name, n)
	return &file{d, n, name}, nil
}

func (d *Disk) set(name string, n *node) {
	d.cur[name] = n
	d.pend = append(d.pend, entry{op: "set", a: name, an: n, dirs: [2]string{path.Dir(name), path.Dir(name)}})
}

type file struct {
	d    *Disk
	n    *node
	name string
}

func (f *file) Write(b []byte) (int, error) {
	f.n.cur = append(bytes.Clone(f.n.cur), b...)
	f.n.dirty, f.n.mtime = true, f.d.Now
	return len(b), nil
}

func (f *file) Clone(like string) error {
	n, err := f.d.get("clone", like)
	if err == nil {
		f.n.mode = n.mode
	}
	return err
}

func (f *file) Sync() error {
	if f.d.Ignore != nil && f.d.Ignore("fsync", f.name) {
		return nil
	}
	f.n.dur, f.n.dirty = f.n.cur, false
	return nil
}

func (f *file) Info() (durable.Info, error) { return f.n.info(), nil }
func (f *file) Close() error                { return nil }

// Mkdir implements durable.FS.
func (d *Disk) Mkdir(name string, perm fs.FileMode) error {
	if err := d.parent("mkdir", name); err != nil {
		return err
	}
	if _, ok := d.cur[name]; ok {
		return fail("mkdir", name, fs.ErrExist)
	}
	d.set(name, d.node(fs.ModeDir|perm.Perm()&^0o022))
	return nil
}

// Rename implements durable.FS.
func (d *Disk) Rename(from, to string) error { return d.rename("rename", from, to) }

// Move implements durable.FS.
func (d *Disk) Move(from, to string) error {
	if d.far(from) != d.far(to) { // told before it is looked whether either is there
		if err := d.parent("move", to); err != nil {
			return err
		}
		return fail("move", to, syscall.EXDEV)
	}
	if _, ok := d.cur[to]; ok {
		if _, err := d.get("move", from); err != nil {
			return err
		}
		return fail("move", to, fs.ErrExist)
	}
	return d.rename("move", from, to)
}

func (d *Disk) far(name string) bool {
	return d.Far != "" && (name == d.Far || strings.HasPrefix(name, d.Far+"/"))
}

func (d *Disk) rename(op, from, to string) error {
	n, err := d.get(op, from)
	if err != nil {
		return err
	}
	if d.far(from) != d.far(to) {
		return fail(op, to, syscall.EXDEV)
	}
	if err := d.parent(op, to); err != nil {
		return err
	}
	if d.cur[to] == n {
		return nil // two names of one file: rename(2) leaves both
	}
	delete(d.cur, from)
	d.cur[to] = n
	fd, td := path.Dir(from), path.Dir(to)
	if d.Split && fd != td {
		d.pend = append(d.pend,
			entry{op: "set", a: to, an: n, dirs: [2]string{td, td}, half: d.next + 1},
			entry{op: "drop", a: from, dirs: [2]string{fd, fd}, half: d.next + 1})
		d.next++
		return nil
	}
	d.pend = append(d.pend, entry{op: "move", a: from, b: to, an: n, dirs: [2]string{fd, td}})
	return nil
}

// Exchange implements durable.FS.
func (d *Disk) Exchange(a, b string) error {
	if d.NoExchange {
		return fail("exchange", a, errors.ErrUnsupported)
	}
	an, err := d.get("exchange", a)
	if err != nil {
		return err
	}
	bn, err := d.get("exchange", b)
	if err != nil {
		return err
	}
	d.cur[a], d.cur[b] = bn, an
	d.pend = append(d.pend, entry{op: "swap", a: a, b: b, an: an, bn: bn, dirs: [2]string{path.Dir(a), path.Dir(b)}})
	return nil
}

// Link implements durable.FS.
func (d *Disk) Link(from, to string) error {
	if d.NoLinks {
		return fail("link", from, errors.ErrUnsupported)
	}
	n, err := d.get("link", from)
	if err != nil {
		return err
	}
	if _, ok := d.cur[to]; ok {
		return fail("link", to, fs.ErrExist)
	}
	if err := d.parent("link", to); err != nil {
		return err
	}
	d.set(to, n)
	return nil
}

// Remove implements durable.FS.
func (d *Disk) Remove(name string) error {
	if _, err := d.get("remove", name); err != nil {
		return err
	}
	for p := range d.cur {
		if p != "." && path.Dir(p) == name {
			return fail("remove", name, errors.New("directory not empty"))
		}
	}
	delete(d.cur, name)
	d.pend = append(d.pend, entry{op: "drop", a: name, dirs: [2]string{path.Dir(name), path.Dir(name)}})
	return nil
}

// SyncDir implements durable.FS.
func (d *Disk) SyncDir(name string) error {
	if _, err := d.get("syncdir", name); err != nil {
		return &durable.SyncError{Name: name, Dir: true, Err: err}
	}
	if d.Ignore == nil || !d.Ignore("syncdir", name) {
		d.syncDir(name)
	}
	return nil
}

// SyncAll implements durable.FS.
func (d *Disk) SyncAll() error {
	if d.Ignore == nil || !d.Ignore("syncall", "") {
		d.Settle()
	}
	return nil
}

// Caps implements durable.FS.
func (d *Disk) Caps(string) durable.Caps {
	return durable.Caps{Exchange: !d.NoExchange, Links: !d.NoLinks, SyncDir: true}
}

// Settle makes everything durable, as after a quiet minute.
func (d *Disk) Settle() {
	d.pend = nil
	d.dur = map[string]*node{}
	for p, n := range d.cur {
		n.dur, n.dirty = n.cur, false
		d.dur[p] = n
	}
}

// Forget removes a directory and all below it, durably.
func (d *Disk) Forget(dir string) {
	for p := range d.cur {
		if p == dir || strings.HasPrefix(p, dir+"/") {
			delete(d.cur, p)
		}
	}
	d.Settle()
}

// Renumber gives every file another inode number, as a copy of the tree or a
// disk mounted anew has. What was not durable becomes so.
func (d *Disk) Renumber() {
	d.Settle()
	names := slices.Sorted(maps.Keys(d.cur))
	fresh := map[*node]*node{}
	for _, name := range names {
		n := d.cur[name]
		if fresh[n] == nil {
			c := *n
			d.next++
			c.id = d.next
			fresh[n] = &c
		}
		d.cur[name] = fresh[n]
	}
	d.dur = maps.Clone(d.cur)
}

package inbox

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/durable"
)

// Item is one thing in an inbox.
type Item struct {
	Name string
	Text []byte // after Load
	Code string // why it is not read: a reason code of package handoff; "" where it was
	Why  string
	Err  error // it could not be read; it stays, and is told
	// Withheld says that the name itself must not be repeated.
	Withheld bool

	info durable.Info
}

// On is an inbox on a disk that is open already.
func On(path, promote string, disk durable.FS) Inbox {
	return Inbox{Path: path, Promote: promote, disk: disk}
}

// At is the inbox in a directory; open opens it (nil: durable.Open).
func At(path, promote string, open func(string) (durable.FS, error)) Inbox {
	return Inbox{Path: path, Promote: promote, open: open}
}

// List names what is in an inbox, in the order of their names: files that
// could be handoffs, and what stands where one could. Nothing is read yet.
func (b *Inbox) List() ([]Item, error) {
	disk, err := b.Disk()
	if err != nil {
		return nil, err
	}
	entries, err := disk.ReadDir(".")
	if err != nil {
		return nil, err
	}
	entries = slices.DeleteFunc(entries, func(e fs.DirEntry) bool {
		folder := slices.Contains(folders, e.Name())
		return folder || !isMarkdown(e.Name()) && (e.IsDir() || e.Type().IsRegular())
	})
	if len(entries) == 0 {
		return nil, nil
	}
	var tracked map[string]bool
	var terr error
	if b.tracked != nil {
		tracked, terr = b.tracked(b.Path)
	}
	var out []Item
	for _, e := range entries {
		it := Item{Name: e.Name()}
		switch {
		case strings.HasPrefix(it.Name, "."):
			it.Code = "dotfile"
		case strings.EqualFold(it.Name, "TEMPLATE.md") || strings.EqualFold(it.Name, "README.md"):
			it.Code = "template"
		case terr != nil:
			it.Code, it.Why = "git-unknown", terr.Error()
		case tracked[it.Name]:
			it.Code = "git-tracked"
		}
		out = append(out, it)
	}
	return out, nil
}

// isMarkdown reports whether a name is one of a handoff.
func isMarkdown(name string) bool { return strings.EqualFold(filepath.Ext(name), ".md") }

// Load reads an item that List named, of at most limit bytes. there is false
// if another run has taken it since.
func (b *Inbox) Load(it *Item, limit int64) (there bool) {
	if it.Code != "" {
		return true
	}
	disk, err := b.Disk()
	if err != nil {
		it.Err = err
		return true
	}
	b.read(disk, it, limit)
	return !errors.Is(it.Err, fs.ErrNotExist)
}

// Read reads one entry, whatever git says of it.
func (b *Inbox) Read(name string, limit int64) (Item, error) {
	disk, err := b.Disk()
	if err != nil {
		return Item{}, err
	}
	if _, err := disk.Lstat(name); err != nil {
		return Item{}, err
	}
	it := Item{Name: name}
	b.read(disk, &it, limit)
	return it, nil
}

// Written is when the item was last written; zero if that is not known.
func (it Item) Written() time.Time { return it.info.ModTime }

// Disk opens the inbox.
func (b *Inbox) Disk() (durable.FS, error) {
	if b.disk != nil {
		return b.disk, nil
	}
	open := b.open
	if open == nil {
		open = func(dir string) (durable.FS, error) { return durable.Open(dir) }
	}
	d, err := open(b.Path)
	if err != nil {
		return nil, err
	}
	b.disk = d
	return d, nil
}

// Close lets the inbox go.
func (b *Inbox) Close() {
	if c, ok := b.disk.(interface{ Close() error }); ok {
		c.Close()
	}
	b.disk = nil
}

func (b *Inbox) read(disk durable.FS, it *Item, limit int64) {
	text, info, err := durable.ReadFile(disk, it.Name, limit)
	if err != nil {
		linfo, lerr := disk.Lstat(it.Name)
		switch {
		case lerr == nil && linfo.Mode&fs.ModeSymlink != 0:
			it.Code = "symlink"
		case lerr == nil && !linfo.Mode.IsRegular():
			it.Code, it.Why = "not-regular", "no regular file"
		case errors.Is(err, durable.ErrTooLarge):
			it.Code, it.Why = "too-large", fmt.Sprintf("%d bytes, at most %d", linfo.Size, limit)
		default:
			it.Err = err
		}
		it.info = linfo
		return
	}
	it.info = info
	if info.Links > 1 {
		it.Code, it.Why = "hard-linked", fmt.Sprintf("%d names lead to it", info.Links)
		return
	}
	it.Text = text
}

// Still reports whether the item stands in its inbox as it was read.
func (b *Inbox) Still(it Item) bool {
	disk, err := b.Disk()
	if err != nil {
		return false
	}
	now, err := disk.Lstat(it.Name)
	return err == nil && now.ID == it.info.ID && now.Size == it.info.Size && now.ModTime.Equal(it.info.ModTime)
}

// ErrChanged says that a handoff was written to after it had been read. It
// stays, and is a new one for the next run.
var ErrChanged = errors.New("changed since it was read")

// Archive moves an item to a folder beside it, under its name and, where it
// was read, the beginning of its hash; without writing over anything. private
// keeps its text from other users. It is durable after Sync.
func (b *Inbox) Archive(it Item, folder, id string, private bool) (string, error) {
	disk, err := b.Disk()
	if err != nil {
		return "", err
	}
	if !b.Still(it) {
		if there, err := durable.Exists(disk, it.Name); err == nil && !there {
			return "", nil // another run has moved it
		}
		return "", ErrChanged
	}
	if !b.settled {
		// The folder may have been made, and filled, by a run that was killed.
		b.touched(".")
		if err := b.Sync(); err != nil {
			return "", err
		}
		b.settled = true
	}
	if there, err := plainFolder(disk, folder); err != nil {
		return "", err
	} else if !there {
		// Making it syncs the inbox: what was moved out of it goes first.
		b.touched(".")
		if err := b.Sync(); err != nil {
			return "", err
		}
		if err := durable.MkdirAll(disk, folder, 0o755); err != nil {
			return "", err
		}
	}
	stem := archived(it.Name, id)
	if it.Withheld {
		stem = archived("withheld", id)
	}
	for n := 1; ; n++ {
		to := folder + "/" + stem + ".md"
		if n > 1 {
			to = fmt.Sprintf("%s/%s-%d.md", folder, stem, n)
		}
		move := disk.Move
		if private {
			move = func(from, to string) error { return b.movePrivately(disk, it, to) }
		}
		switch err := move(it.Name, to); {
		case err == nil:
			b.touched(".", folder)
			return filepath.Join(b.Path, filepath.FromSlash(to)), nil
		case errors.Is(err, fs.ErrNotExist):
			if there, lerr := durable.Exists(disk, it.Name); lerr == nil && !there {
				return "", nil // another run has moved it
			}
			return "", err
		case !errors.Is(err, fs.ErrExist) || n > 1000:
			return "", err
		}
		// The same text is there already, from a delivery before or from a move
		// that a power cut left by halves: one of it is enough.
		old, _, err := durable.ReadFile(disk, to, 0)
		if err == nil && it.Text != nil && bytes.Equal(old, it.Text) {
			if err := disk.SyncDir(folder); err != nil {
				return "", err
			}
			b.touched(".")
			return filepath.Join(b.Path, filepath.FromSlash(to)), b.takeAway(disk, it)
		}
	}
}

// plainFolder reports whether a folder beside the inbox is there. A symlink is
// not followed: it may lead anywhere in the inbox, into the inbox itself too.
func plainFolder(disk durable.FS, folder string) (bool, error) {
	info, err := disk.Lstat(folder)
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	if err == nil && !info.Mode.IsDir() {
		err = &fs.PathError{Op: "move to", Path: folder, Err: durable.ErrInTheWay}
	}
	return err == nil, err
}

// archived is an item's name without ".md" in a folder beside the inbox.
func archived(name, id string) string {
	stem := name
	if isMarkdown(name) {
		stem = name[:len(name)-len(".md")]
	}
	if id == "" || strings.HasSuffix(stem, "--"+id) {
		return stem
	}
	if len(stem) > 200 {
		stem = strings.ToValidUTF8(stem[:200], "")
	}
	return stem + "--" + id
}

// Processed reports whether a text was moved to processed/ before, by the hash
// in the names there. It is what is left to go by where the ledger is lost.
func (b *Inbox) Processed(id string, text []byte) bool {
	disk, err := b.Disk()
	if err != nil {
		return false
	}
	if b.processed == nil {
		b.processed = map[string][]string{}
		if plain, err := plainFolder(disk, "processed"); err != nil || !plain {
			return false
		}
		entries, err := disk.ReadDir("processed")
		if err != nil {
			return false
		}
		for _, e := range entries {
			if _, tail, ok := cutLast(strings.TrimSuffix(e.Name(), ".md"), "--"); ok && len(tail) >= 12 && e.Type().IsRegular() {
				b.processed[tail[:12]] = append(b.processed[tail[:12]], "processed/"+e.Name())
			}
		}
	}
	for _, name := range b.processed[id] {
		if old, _, err := durable.ReadFile(disk, name, int64(len(text))); err == nil && bytes.Equal(old, text) {
			return true
		}
	}
	return false
}

func cutLast(s, sep string) (before, after string, found bool) {
	if i := strings.LastIndex(s, sep); i >= 0 {
		return s[:i], s[i+len(sep):], true
	}
	return s, "", false
}

// movePrivately moves a text into a file that only its owner can read. A crash
// may leave both: the next run finds the copy and takes the original away.
func (b *Inbox) movePrivately(disk durable.FS, it Item, to string) error {
	old, _, err := durable.ReadFile(disk, to, 0)
	switch {
	case err == nil && bytes.Equal(old, it.Text):
		return b.takeAway(disk, it)
	case err == nil || !errors.Is(err, fs.ErrNotExist):
		return fs.ErrExist
	}
	tmp := to + ".tmp"
	if err := disk.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	if _, err := durable.WriteNew(disk, tmp, it.Text, 0o600, ""); err != nil {
		return err
	}
	if err := disk.Move(tmp, to); err != nil {
		return err
	}
	if err := disk.SyncDir(filepath.ToSlash(filepath.Dir(to))); err != nil {
		return err
	}
	return b.takeAway(disk, it)
}

// takeAway removes an item whose text stands elsewhere, unless somebody has
// written to it, or saved over it, since it was read.
func (b *Inbox) takeAway(disk durable.FS, it Item) error {
	if !b.Still(it) {
		return ErrChanged
	}
	return disk.Remove(it.Name)
}

// Folder lists what was moved to a folder beside the inbox: names and texts by
// way of read, which is called for each.
func (b *Inbox) Folder(folder string, read func(name string, written time.Time, open func() ([]byte, error)) error) error {
	disk, err := b.Disk()
	if err != nil {
		return err
	}
	if plain, err := plainFolder(disk, folder); err != nil || !plain {
		return err
	}
	entries, err := disk.ReadDir(folder)
	if err != nil {
		return err
	}
	for _, e := range entries {
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".md") {
			continue
		}
		open := func() ([]byte, error) {
			text, _, err := durable.ReadFile(disk, folder+"/"+e.Name(), 16<<20)
			return text, err
		}
		info, err := disk.Lstat(folder + "/" + e.Name())
		if errors.Is(err, fs.ErrNotExist) {
			continue // taken away since
		}
		if err != nil {
			return err
		}
		if err := read(e.Name(), info.ModTime, open); err != nil {
			return err
		}
	}
	return nil
}

// Count counts what is in a folder beside the inbox, whatever it is.
func (b *Inbox) Count(folder string) (int, error) {
	disk, err := b.Disk()
	if err != nil {
		return 0, err
	}
	if plain, err := plainFolder(disk, folder); err != nil || !plain {
		return 0, err
	}
	entries, err := disk.ReadDir(folder)
	return len(entries), err
}

// Remove takes a file out of a folder beside the inbox. The caller has kept it.
func (b *Inbox) Remove(folder, name string) error {
	if err := b.disk.Remove(folder + "/" + name); err != nil {
		return err
	}
	b.touched(folder)
	return nil
}

// Put writes a new handoff, under the first free name, whole or not at all.
func (b *Inbox) Put(base string, text []byte) (string, error) {
	disk, err := b.Disk()
	if err != nil {
		return "", err
	}
	stem := strings.TrimSuffix(base, ".md")
	tmp := "." + stem + ".tmp"
	if err := disk.Remove(tmp); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	if _, err := durable.WriteNew(disk, tmp, text, 0o644, ""); err != nil {
		return "", err
	}
	if err := b.settle(); err != nil {
		disk.Remove(tmp)
		return "", err
	}
	for n := 1; ; n++ {
		name := stem + ".md"
		if n > 1 {
			name = fmt.Sprintf("%s-%d.md", stem, n)
		}
		err := disk.Move(tmp, name)
		if err == nil {
			return filepath.Join(b.Path, name), disk.SyncDir(".")
		}
		if !errors.Is(err, fs.ErrExist) || n > 1000 {
			disk.Remove(tmp)
			return "", err
		}
	}
}

func (b *Inbox) touched(dirs ...string) {
	for _, d := range dirs {
		if !slices.Contains(b.dirty, d) {
			b.dirty = append(b.dirty, d)
		}
	}
}

// folders are where what was taken out of an inbox goes.
var folders = []string{"processed", "malformed"}

// Sync makes what was moved durable, where it went first: never a removal
// without the addition. That holds for what a killed run has moved, too.
func (b *Inbox) Sync() error {
	if slices.Contains(b.dirty, ".") {
		if err := b.settle(); err != nil {
			return err
		}
	}
	slices.SortFunc(b.dirty, func(x, y string) int { return strings.Compare(y, x) }) // the inbox itself last
	for _, d := range b.dirty {
		if err := b.disk.SyncDir(d); err != nil {
			return err
		}
	}
	b.dirty = nil
	return nil
}

// settle makes durable what earlier runs have moved out of the inbox, before
// that itself becomes so. A folder that is closed to us is somebody else's.
func (b *Inbox) settle() error {
	for _, f := range folders {
		there, err := plainFolder(b.disk, f)
		if there && !slices.Contains(b.dirty, f) {
			err = b.disk.SyncDir(f)
		}
		if err != nil && !errors.Is(err, durable.ErrInTheWay) && !errors.Is(err, fs.ErrPermission) && !errors.Is(err, fs.ErrNotExist) {
			return err
		}
	}
	return nil
}

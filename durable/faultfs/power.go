package faultfs

import (
	"bytes"
	"path"
	"slices"
)

// maxSubsets bounds how many unsynced entries are taken in every combination;
// above it: prefixes, and all but one.
const maxSubsets = 9

// Power lists the states a power cut may leave, each durable as it stands.
func (d *Disk) Power() []*Disk {
	var out []*Disk
	seen := map[uint64]bool{}
	for _, keep := range d.choices() {
		if !d.possible(keep) {
			continue
		}
		m := make(map[string]*node, len(d.dur))
		for p, n := range d.dur {
			m[p] = n
		}
		for i, e := range d.pend {
			if keep[i] {
				e.apply(m)
			}
		}
		dropOrphans(m)
		var dirty []*node
		for _, n := range m {
			if n.dirty && !slices.Contains(dirty, n) {
				dirty = append(dirty, n)
			}
		}
		slices.SortFunc(dirty, func(a, b *node) int { return int(a.id) - int(b.id) })
		all := fates(len(dirty))
		if len(dirty) > maxFates && slices.Contains(keep, false) {
			all = all[:zeroed+1] // many names and many files: vary one of the two
		}
		for _, f := range all {
			c := d.after(m, dirty, f)
			if k := c.Key(); !seen[k] {
				seen[k] = true
				out = append(out, c)
			}
		}
	}
	return out
}

// maxFates bounds how many dirty files' data is taken in every combination;
// above it: all alike, and one unlike the others.
const maxFates = 4

// The fates of a dirty file's data, as survived takes them.
const (
	lost = iota
	kept
	torn
	zeroed
)

func fates(n int) (out [][]int) {
	if n <= maxFates {
		total := 1
		for range n {
			total *= 4
		}
		for v := range total {
			f := make([]int, n)
			for i := range f {
				f[i] = v >> (2 * i) & 3
			}
			out = append(out, f)
		}
		return out
	}
	all := func(how int) []int {
		f := make([]int, n)
		for i := range f {
			f[i] = how
		}
		return f
	}
	for how := lost; how <= zeroed; how++ {
		out = append(out, all(how))
	}
	for i := range n {
		for _, how := range []int{lost, torn, zeroed} {
			f := all(kept)
			f[i] = how
			out = append(out, f)
		}
		f := all(lost)
		f[i] = kept
		out = append(out, f)
	}
	return out
}

// possible excludes a split rename of which only the removal survived.
func (d *Disk) possible(keep []bool) bool {
	for i, e := range d.pend {
		if e.half == 0 || e.op != "drop" || !keep[i] {
			continue
		}
		for k, o := range d.pend {
			if o.half == e.half && o.op == "set" && !keep[k] {
				return false
			}
		}
	}
	return true
}

func (d *Disk) choices() [][]bool {
	k := len(d.pend)
	var out [][]bool
	dirty := map[*node]bool{}
	for _, n := range d.cur {
		if n.dirty {
			dirty[n] = true
		}
	}
	if k <= maxSubsets && len(dirty) <= maxFates {
		for mask := range 1 << k {
			c := make([]bool, k)
			for i := range c {
				c[i] = mask>>i&1 == 1
			}
			out = append(out, c)
		}
		return out
	}
	for n := range k + 1 {
		c := make([]bool, k)
		for i := range n {
			c[i] = true
		}
		out = append(out, c)
		if n < k {
			c = make([]bool, k)
			for i := range c {
				c[i] = i != n
			}
			out = append(out, c)
		}
	}
	return out
}

// after builds one state: names as in m, and what became of each dirty file's
// data.
func (d *Disk) after(m map[string]*node, dirty []*node, fate []int) *Disk {
	c := *d
	c.pend = nil
	c.cur, c.dur = map[string]*node{}, map[string]*node{}
	seen := map[*node]*node{}
	for p, n := range m {
		x, ok := seen[n]
		if !ok {
			y := *n
			x = &y
			if i := slices.Index(dirty, n); i >= 0 {
				x.cur = survived(n, fate[i])
			}
			x.dur, x.dirty = x.cur, false
			seen[n] = x
		}
		c.cur[p], c.dur[p] = x, x
	}
	return &c
}

func survived(n *node, how int) []byte {
	switch how {
	case lost:
		return n.dur
	case kept:
		return n.cur
	case torn: //: half of what is new
		if len(n.cur) < len(n.dur) {
			return n.cur
		}
		return n.cur[:len(n.dur)+(len(n.cur)-len(n.dur))/2]
	}
	z := bytes.Clone(n.dur) // the length was written, the data was not
	for len(z) < len(n.cur) {
		z = append(z, 0)
	}
	return z
}

func dropOrphans(m map[string]*node) {
	for again := true; again; {
		again = false
		for p := range m {
			if p == "." {
				continue
			}
			if up, ok := m[path.Dir(p)]; !ok || !up.mode.IsDir() {
				delete(m, p)
				again = true
			}
		}
	}
}

func (e entry) apply(m map[string]*node) {
	switch e.op {
	case "set":
		m[e.a] = e.an
	case "drop":
		delete(m, e.a)
	case "swap":
		m[e.a], m[e.b] = e.bn, e.an
	case "move":
		if m[e.a] == e.an {
			delete(m, e.a)
		}
		m[e.b] = e.an
	}
}

// syncDir makes a directory's entries durable, and with them the earlier
// changes to the same names, in whatever directory: a rename that is durable
// does not leave its source's creation to come true later.
func (d *Disk) syncDir(name string) {
	flush := make([]bool, len(d.pend))
	names := map[string]bool{}
	for i := len(d.pend) - 1; i >= 0; i-- {
		e := d.pend[i]
		if e.dirs[0] == name || e.dirs[1] == name || names[e.a] || e.b != "" && names[e.b] {
			flush[i] = true
			names[e.a] = true
			if e.b != "" {
				names[e.b] = true
			}
		}
	}
	var keep []entry
	for i, e := range d.pend {
		if flush[i] {
			e.apply(d.dur)
		} else {
			keep = append(keep, e)
		}
	}
	d.pend = keep
}

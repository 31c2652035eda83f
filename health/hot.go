package health

import (
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io/fs"
	"net/url"
	"path"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/tiers"
)

// section is a part of a file under one heading.
type section struct {
	title      string
	level      int
	line       int // of the heading
	start, end int // its bytes, the heading included
}

// sections splits a file at its headings, code fences aside. What stands
// before the first heading is in none.
func sections(b []byte) []section {
	var out []section
	fence := false
	for n, at := 1, 0; at < len(b); n++ {
		end := len(b)
		if i := bytes.IndexByte(b[at:], '\n'); i >= 0 {
			end = at + i + 1
		}
		t := bytes.TrimRight(b[at:end], "\r\n")
		if lineKind(bytes.TrimLeft(t, " ")) == fenceLine {
			fence = !fence
		} else if level, title := headingOf(t); level > 0 && !fence {
			if len(out) > 0 {
				out[len(out)-1].end = at
			}
			out = append(out, section{title, level, n, at, len(b)})
		}
		at = end
	}
	return out
}

func headingOf(t []byte) (int, string) {
	n := 0
	for n < len(t) && t[n] == '#' {
		n++
	}
	if n == 0 || n > 6 || n < len(t) && t[n] != ' ' && t[n] != '\t' {
		return 0, ""
	}
	return n, strings.TrimSpace(strings.TrimRight(string(t[n:]), "# \t"))
}

// underEnd is where the text below a heading ends, with the deeper headings
// below that.
func underEnd(b []byte, all []section, i int) int {
	for _, s := range all[i+1:] {
		if s.level <= all[i].level {
			return s.start
		}
	}
	return len(b)
}

// hot checks the always-loaded file.
func (f *file) hot() {
	all := sections(f.body)
	f.budget(all)
	for i, s := range all {
		switch strings.ToLower(s.title) {
		case "open questions":
			f.questions(all, i)
		case "active decisions":
			if f.p.on["hot.decision-links"] {
				end := underEnd(f.body, all, i)
				f.links("hot.decision-links", s.start, end)
				f.barePaths("hot.decision-links", s.start, end)
			}
		}
	}
}

func (f *file) budget(all []section) {
	h := f.p.rules.Hot
	size, past := measure(f.body, h.Unit, h.Max)
	if size <= h.Max {
		return
	}
	slices.SortStableFunc(all, func(a, b section) int { return cmp.Compare(b.end-b.start, a.end-a.start) })
	var big []string
	for _, s := range all[:min(3, len(all))] {
		n, _ := measure(f.body[s.start:s.end], h.Unit, h.Max)
		big = append(big, fmt.Sprintf("%q %d", s.title, n))
	}
	message := fmt.Sprintf("%d %s, the limit is %d; line %d is the first beyond it", size, h.Unit, h.Max, past)
	if len(big) > 0 {
		message += "; largest sections: " + strings.Join(big, ", ")
	}
	f.add("hot.budget", past, "%s", message)
	slices.SortStableFunc(all, func(a, b section) int { return cmp.Compare(a.start, b.start) })
}

// measure counts a text in lines, characters or bytes, and tells the first
// line that is beyond limit.
func measure(b []byte, unit string, limit int) (size, past int) {
	switch unit {
	case "lines":
		return entry.CountLines(b), limit + 1
	case "characters":
		b = bytes.TrimPrefix(b, []byte("\xef\xbb\xbf"))
		size = utf8.RuneCount(b)
		if size > limit {
			at := 0
			for range limit {
				_, n := utf8.DecodeRune(b[at:])
				at += n
			}
			past = lineAt(b, at)
		}
		return size, past
	}
	if len(b) > limit {
		past = lineAt(b, limit)
	}
	return len(b), past
}

func (f *file) questions(all []section, i int) {
	limit := f.p.rules.Limits.OpenQuestions
	n, past, line := 0, 0, all[i].line
	for l := range bytes.Lines(f.body[all[i].start:all[i].end]) {
		if t := bytes.TrimLeft(l, " "); lineKind(t) == itemLine && len(l)-len(t) < 2 {
			if n++; n == limit+1 {
				past = line
			}
		}
		line++
	}
	if n > limit {
		f.add("hot.open-questions", past, "%d open questions, the limit is %d", n, limit)
	}
}

// link is a reference to be resolved when all files have been seen.
type link struct {
	check, path string
	tier        tiers.Tier
	line        int
	target      string
	wiki        bool
}

// links collects the Markdown and wiki links of a part of a file. What stands
// in code, in comments or indented as code is text.
func (f *file) links(check string, start, end int) {
	part := f.body[start:end]
	if !bytes.Contains(part, []byte("](")) && !bytes.Contains(part, []byte("[[")) {
		return
	}
	fence, comment := false, false
	line := lineAt(f.body, start)
	for l := range bytes.Lines(part) {
		t := bytes.TrimLeft(l, " ")
		switch {
		case comment:
			comment = !bytes.Contains(l, []byte("-->"))
		case lineKind(t) == fenceLine:
			fence = !fence
		case fence, len(l)-len(t) >= 4 && lineKind(t) != itemLine, l[0] == '\t':
		case bytes.HasPrefix(t, []byte("<!--")) && !bytes.Contains(l, []byte("-->")):
			comment = true
		default:
			f.linksOf(check, line, l)
		}
		line++
	}
}

// maxLinks bounds how many links of one file are followed.
const maxLinks = 2000

func (f *file) linksOf(check string, line int, l []byte) {
	code := false
	for i := 0; i+1 < len(l) && f.nlinks < maxLinks; i++ {
		switch {
		case l[i] == '`':
			code = !code
		case code:
		case l[i] == ']' && l[i+1] == '(':
			if target, n := destination(l[i+2:]); n > 0 {
				f.link(check, line, target, false)
				i += n
			}
		case l[i] == '[' && l[i+1] == '[' && check == "hot.decision-links":
			j := bytes.Index(l[i+2:], []byte("]]"))
			if j < 0 {
				break
			}
			target, _, _ := strings.Cut(string(l[i+2:i+2+j]), "|")
			f.link(check, line, target, true)
			i += j
		}
	}
}

// destination reads a link's target up to its closing bracket; brackets inside
// it are in pairs.
func destination(l []byte) (string, int) {
	depth := 0
	for i, c := range l {
		switch c {
		case '(':
			depth++
		case ')':
			if depth--; depth < 0 {
				target, _, _ := strings.Cut(strings.Trim(strings.TrimSpace(string(l[:i])), "<>"), " ")
				return target, i + 1
			}
		case '\n', '`':
			return "", 0
		}
	}
	return "", 0
}

// link notes one link, if it is one into the memory.
func (f *file) link(check string, line int, target string, wiki bool) {
	target = strings.TrimSpace(target)
	if !wiki {
		head, _, ok := strings.Cut(target, ":")
		scheme := ok && head != "" && strings.Trim(strings.ToLower(head), "abcdefghijklmnopqrstuvwxyz0123456789+.-") == ""
		root := strings.HasPrefix(target, "/") && !strings.HasPrefix(target, "/memory/")
		if target == "" || scheme || root {
			return
		}
		target, _, _ = strings.Cut(target, "?")
	}
	f.nlinks++
	f.w.links = append(f.w.links, link{check, f.path, f.tier, line, target, wiki})
}

// barePaths collects paths such as memory/semantic/x.md that stand in the text
// without being links.
func (f *file) barePaths(check string, start, end int) {
	part := f.body[start:end]
	for at := 0; ; {
		i := bytes.Index(part[at:], []byte("memory/"))
		if i < 0 {
			return
		}
		at += i
		j := at
		for j < len(part) && !strings.ContainsRune(" \t\r\n()[]<>`'\",;|*", rune(part[j])) {
			j++
		}
		word := strings.TrimRight(string(part[at:j]), ".:")
		before := byte(' ')
		if at > 0 {
			before = part[at-1]
		}
		file, _, _ := strings.Cut(word, "#")
		if strings.HasSuffix(file, ".md") && before != '/' && before != '(' && before != '[' {
			f.w.links = append(f.w.links, link{check, f.path, f.tier, lineAt(f.body, start+at), "/" + word, false})
		}
		at = j
	}
}

func (p *pass) decisionLinks(all *found) { p.resolveLinks(all, "hot.decision-links") }
func (p *pass) warmLinks(all *found)     { p.resolveLinks(all, "warm.links") }

// resolveLinks looks where the links that a check collected lead.
func (p *pass) resolveLinks(all *found, check string) {
	r := resolver{p: p, known: map[string]bool{}, anchors: map[string][]string{}}
	for _, l := range all.links {
		if l.check != check {
			continue
		}
		why := r.broken(l)
		if why == "" {
			continue
		}
		c, _ := Find(l.check)
		p.add(all, Fail, Finding{Check: l.check, Tier: string(l.tier), Path: l.path, Line: l.line, Message: fmt.Sprintf("link to %s: %s", l.target, why), Fix: c.Mend})
	}
}

type resolver struct {
	p       *pass
	known   map[string]bool
	anchors map[string][]string
	names   map[string][]string // base name without .md → paths, for wiki links
}

func (r *resolver) exists(name string) bool {
	if ok, seen := r.known[name]; seen {
		return ok
	}
	ok := false
	if fs.ValidPath(name) {
		_, err := fs.Stat(r.p.m, name)
		ok = err == nil || !errors.Is(err, fs.ErrNotExist)
	}
	r.known[name] = ok
	return ok
}

// broken says why a link leads nowhere, or "".
func (r *resolver) broken(l link) string {
	target, anchor, hasAnchor := strings.Cut(l.target, "#")
	if !l.wiki {
		if t, err := url.PathUnescape(target); err == nil {
			target = t
		}
	}
	name := l.path
	switch {
	case target == "":
	case l.wiki:
		if name = r.wiki(target); name == "" {
			return "no memory file of that name"
		}
	case strings.HasPrefix(target, "/"): // a bare path: from the workspace
		name = path.Clean(target[1:])
	default:
		name = path.Join(path.Dir(l.path), target)
	}
	if strings.HasPrefix(name, "../") {
		return "" // outside the workspace: not ours to say
	}
	if !r.exists(name) {
		moved := ""
		if day, ok := r.p.rules.NoteDay(name); ok {
			moved = path.Join(r.p.rules.ArchiveDir(day), path.Base(name))
		}
		if moved == "" || !r.exists(moved) {
			return "there is no such file"
		}
		name = moved
	}
	if hasAnchor && anchor != "" && strings.HasSuffix(name, ".md") && !slices.Contains(r.anchorsOf(name), strings.ToLower(anchor)) {
		return "there is no such heading"
	}
	return ""
}

func (r *resolver) anchorsOf(name string) []string {
	if a, ok := r.anchors[name]; ok {
		return a
	}
	var out []string
	if b, err := fs.ReadFile(r.p.m, name); err == nil {
		seen := map[string]int{}
		for _, s := range sections(b) {
			a := slug(s.title)
			if n := seen[a]; n > 0 { // GitHub numbers equal ones
				out = append(out, fmt.Sprintf("%s-%d", a, n))
			} else {
				out = append(out, a)
			}
			seen[a]++
		}
	}
	r.anchors[name] = out
	return out
}

// slug is a heading's anchor, as GitHub makes it.
func slug(title string) string {
	return strings.Map(func(c rune) rune {
		switch {
		case unicode.IsLetter(c) || unicode.IsDigit(c) || c == '-' || c == '_':
			return unicode.ToLower(c)
		case c == ' ':
			return '-'
		}
		return -1
	}, title)
}

// wiki finds the memory file that a wiki link means: by path, or by name.
func (r *resolver) wiki(target string) string {
	for _, name := range []string{target, target + ".md", "memory/" + target, "memory/" + target + ".md"} {
		if name = path.Clean(name); r.exists(name) {
			return name
		}
	}
	if r.names == nil {
		r.names = map[string][]string{}
		r.list(".", 0)
	}
	if found := r.names[strings.ToLower(path.Base(strings.TrimSuffix(target, ".md")))]; len(found) > 0 {
		return found[0]
	}
	return ""
}

func (r *resolver) list(dir string, depth int) {
	entries, err := fs.ReadDir(r.p.m, dir)
	if err != nil || depth > 16 {
		return
	}
	for _, e := range entries {
		name := path.Join(dir, e.Name())
		if e.IsDir() {
			if r.p.rules.Enter(name) {
				r.list(name, depth+1)
			}
		} else if base, ok := strings.CutSuffix(e.Name(), ".md"); ok {
			r.names[strings.ToLower(base)] = append(r.names[strings.ToLower(base)], name)
		}
	}
}

package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"go/ast"
	"go/importer"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

type mutant struct {
	ID           int
	File, Kind   string
	Line, Column int
	Text         string // of the line
	Nth          int    // of this kind on lines of this text, from 1
	State        string // the unit that noticed, or one of the states below
	offset       int
}

const (
	lives      = "lives"
	unreached  = "not reached"
	impossible = "does not build"
)

// name stays the same when lines are added above.
func (m mutant) name() string {
	return fmt.Sprintf("%s %s %d: %s", m.File, m.Kind, m.Nth, m.Text)
}

// list reads gremlins' JSON: the mutants of files that are built here.
func list(name string) []mutant {
	var r struct {
		Files []struct {
			Name      string `json:"file_name"`
			Mutations []struct {
				Type   string `json:"type"`
				Line   int    `json:"line"`
				Column int    `json:"column"`
			} `json:"mutations"`
		} `json:"files"`
	}
	b, err := os.ReadFile(name)
	check(err)
	check(json.Unmarshal(b, &r))
	var all []mutant
	for _, f := range r.Files {
		if !built()[f.Name] {
			continue
		}
		text, err := os.ReadFile(filepath.FromSlash(f.Name))
		check(err)
		lines := bytes.SplitAfter(text, []byte("\n"))
		for _, m := range f.Mutations {
			at := m.Column - 1
			for _, l := range lines[:m.Line-1] {
				at += len(l)
			}
			all = append(all, mutant{File: f.Name, Kind: m.Type, Line: m.Line, Column: m.Column, Text: strings.TrimSpace(string(lines[m.Line-1])), offset: at})
		}
	}
	slices.SortFunc(all, func(a, b mutant) int {
		if c := strings.Compare(a.File, b.File); c != 0 {
			return c
		}
		if a.offset != b.offset {
			return a.offset - b.offset
		}
		return strings.Compare(a.Kind, b.Kind)
	})
	// Of a minus sign gremlins makes two mutants, which are one and the same.
	all = slices.DeleteFunc(all, func(m mutant) bool {
		return m.Kind == "INVERT_NEGATIVES" && slices.ContainsFunc(all, func(o mutant) bool {
			return o.File == m.File && o.offset == m.offset && o.Kind == "ARITHMETIC_BASE"
		})
	})
	seen := map[string]int{}
	for i := range all {
		m := &all[i]
		key := m.File + m.Kind + m.Text
		seen[key]++
		m.Nth, m.ID = seen[key], i+1
	}
	return all
}

// built returns the files that are built on this system, slash-separated.
func built() map[string]bool {
	files := map[string]bool{}
	out, err := exec.Command("go", "list", "-f", `{{$d := .ImportPath}}{{range .GoFiles}}{{$d}}/{{.}}{{"\n"}}{{end}}`, "./...").Output()
	check(err)
	module, err := exec.Command("go", "list", "-m").Output()
	check(err)
	for f := range strings.FieldsSeq(string(out)) {
		files[strings.TrimPrefix(f, strings.TrimSpace(string(module))+"/")] = true
	}
	return files
}

// helpers go into each package. Which mutant is on is told by a directory in
// PATH, which scripts hand on to the processes they start: mutant-ID, or
// mutant-reach, where every one that is reached leaves its number in a file.
const helpers = `package %s

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
)

var (
	mutantNow, mutantLog = mutantInit()
	mutantSeen           sync.Map
)

func mutantInit() (int, *os.File) {
	for _, dir := range filepath.SplitList(os.Getenv("PATH")) {
		id, ok := strings.CutPrefix(filepath.Base(dir), "mutant-")
		if !ok {
			continue
		}
		if id == "reach" {
			f, _ := os.OpenFile(filepath.Join(dir, "log"), os.O_CREATE|os.O_APPEND|os.O_WRONLY, 0o666)
			return 0, f
		}
		n, _ := strconv.Atoi(id)
		return n, nil
	}
	return 0, nil
}

func mutantOn(id int) bool {
	if mutantLog != nil {
		if _, was := mutantSeen.LoadOrStore(id, true); !was {
			fmt.Fprintln(mutantLog, id)
		}
	}
	return mutantNow == id
}

type mutantNumber interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64 | ~float64
}

type mutantInt interface {
	~int | ~int8 | ~int16 | ~int32 | ~int64 | ~uint | ~uint8 | ~uint16 | ~uint32 | ~uint64
}

func mutantAdd[T mutantNumber](id int, x, y T) T {
	if mutantOn(id) {
		return x - y
	}
	return x + y
}

func mutantSub[T mutantNumber](id int, x, y T) T {
	if mutantOn(id) {
		return x + y
	}
	return x - y
}

func mutantMul[T mutantNumber](id int, x, y T) T {
	if mutantOn(id) {
		return x / y
	}
	return x * y
}

func mutantDiv[T mutantNumber](id int, x, y T) T {
	if mutantOn(id) {
		return x * y
	}
	return x / y
}

func mutantRem[T mutantInt](id int, x, y T) T {
	if mutantOn(id) {
		return x * y
	}
	return x %% y
}

func mutantNeg[T mutantNumber](id int, x T) T {
	if mutantOn(id) {
		return x
	}
	return -x
}

// what is added by ++ or --, which the mutant exchanges
func mutantOne[T mutantNumber](id int, _ T) T {
	if mutantOn(id) {
		var zero T
		return zero - 1
	}
	return 1
}
`

var arithmetic = map[token.Token]string{token.ADD: "mutantAdd", token.SUB: "mutantSub", token.MUL: "mutantMul", token.QUO: "mutantDiv", token.REM: "mutantRem"}

// edit is text put at an offset, instead of the length there. At one offset,
// what closes comes before what opens; the inner first of the former, the outer
// first of the latter: by the width of what it belongs to.
type edit struct {
	at, length int
	text       string
	opens      bool
	width      int
}

// schemata writes every file with all of its mutants in it, off, and returns
// the overlay for the build. What cannot be built so is marked in all.
func schemata(dir string, all []mutant) string {
	root, err := os.Getwd()
	check(err)
	replace := map[string]string{}
	byDir := map[string][]*mutant{}
	for i := range all {
		d := filepath.Dir(filepath.FromSlash(all[i].File))
		byDir[d] = append(byDir[d], &all[i])
	}
	fset := token.NewFileSet()
	source := importer.ForCompiler(fset, "source", nil)
	ours := built()
	for d, mutants := range byDir {
		var files []*ast.File
		names, err := filepath.Glob(filepath.Join(d, "*.go"))
		check(err)
		for _, n := range names {
			if !ours[filepath.ToSlash(n)] {
				continue
			}
			f, err := parser.ParseFile(fset, n, nil, 0)
			check(err)
			files = append(files, f)
		}
		info := &types.Info{Types: map[ast.Expr]types.TypeAndValue{}}
		c := types.Config{Importer: source}
		_, err = c.Check(files[0].Name.Name, fset, files, info)
		check(err)
		for _, f := range files {
			name := fset.File(f.Pos()).Name()
			text, err := os.ReadFile(name)
			check(err)
			at := map[int][]*mutant{}
			for _, m := range mutants {
				if filepath.FromSlash(m.File) == name {
					at[m.offset] = append(at[m.offset], m)
				}
			}
			if len(at) == 0 {
				continue
			}
			out := filepath.Join(dir, strings.ReplaceAll(name, string(filepath.Separator), "_"))
			check(os.WriteFile(out, planted(fset, f, info, text, at), 0o644))
			replace[filepath.Join(root, name)] = out
		}
		out := filepath.Join(dir, d+"_helpers.go")
		check(os.WriteFile(out, fmt.Appendf(nil, helpers, files[0].Name.Name), 0o644))
		replace[filepath.Join(root, d, "mutants_on.go")] = out
	}
	overlay := filepath.Join(dir, "overlay.json")
	b, err := json.Marshal(map[string]any{"Replace": replace})
	check(err)
	check(os.WriteFile(overlay, b, 0o644))
	return overlay
}

// planted returns the file with the mutants in it.
func planted(fset *token.FileSet, f *ast.File, info *types.Info, text []byte, at map[int][]*mutant) []byte {
	var edits []edit
	pos := func(p token.Pos) int { return fset.Position(p).Offset }
	around := func(n ast.Node, before, after string) {
		width := pos(n.End()) - pos(n.Pos())
		edits = append(edits, edit{pos(n.Pos()), 0, before, true, width}, edit{pos(n.End()), 0, after, false, width})
	}
	done := map[*mutant]bool{}
	ast.Inspect(f, func(n ast.Node) bool {
		switch n := n.(type) {
		case *ast.GenDecl:
			return n.Tok != token.CONST
		case *ast.BinaryExpr:
			if info.Types[n].Value != nil {
				return true
			}
			source := func(e ast.Expr) string { return "(" + string(text[pos(e.Pos()):pos(e.End())]) + ")" }
			before, after := "", ""
			for _, m := range at[pos(n.OpPos)] {
				switch m.Kind {
				case "CONDITIONALS_BOUNDARY":
					equal := fmt.Sprintf("mutantOn(%d) && %s == %s", m.ID, source(n.X), source(n.Y))
					if n.Op == token.LSS || n.Op == token.GTR {
						after += " || " + equal
					} else {
						after += " && !(" + equal + ")"
					}
				case "CONDITIONALS_NEGATION":
					continue // below: outside
				case "ARITHMETIC_BASE":
					if b, ok := info.Types[n].Type.Underlying().(*types.Basic); !ok || b.Info()&types.IsNumeric == 0 {
						return true
					}
					before, after = fmt.Sprintf("%s(%d, ", arithmetic[n.Op], m.ID), ")"
					edits = append(edits, edit{pos(n.OpPos), len(n.Op.String()), ",", true, 0})
				default:
					continue
				}
				done[m] = true
			}
			for _, m := range at[pos(n.OpPos)] {
				if m.Kind == "CONDITIONALS_NEGATION" {
					before, after = "(("+before, after+fmt.Sprintf(") != mutantOn(%d))", m.ID)
					done[m] = true
				}
			}
			if before+after != "" {
				if !strings.HasPrefix(before, "m") {
					before, after = "("+before, after+")"
				}
				around(n, before, after)
			}
		case *ast.IncDecStmt:
			for _, m := range at[pos(n.TokPos)] {
				op := "+="
				if n.Tok == token.DEC {
					op = "-="
				}
				x := string(text[pos(n.X.Pos()):pos(n.X.End())])
				edits = append(edits, edit{pos(n.TokPos), 2, fmt.Sprintf("%s mutantOne(%d, %s)", op, m.ID, x), true, 0})
				done[m] = true
			}
		case *ast.UnaryExpr:
			if n.Op != token.SUB {
				return true
			}
			for _, m := range at[pos(n.OpPos)] {
				t := types.TypeString(info.Types[n].Type, (*types.Package).Name) // of a constant too: what it becomes
				edits = append(edits, edit{pos(n.OpPos), 1, fmt.Sprintf("mutantNeg[%s](%d, ", t, m.ID), true, 0}, edit{pos(n.End()), 0, ")", false, 0})
				done[m] = true
			}
		}
		return true
	})
	for _, ms := range at {
		for _, m := range ms {
			if !done[m] {
				m.State = impossible
			}
		}
	}
	slices.SortStableFunc(edits, func(a, b edit) int {
		switch {
		case a.at != b.at:
			return a.at - b.at
		case a.opens != b.opens:
			if b.opens {
				return -1
			}
			return 1
		case a.opens:
			return b.width - a.width
		}
		return a.width - b.width
	})
	var out bytes.Buffer
	last := 0
	for _, e := range edits {
		out.Write(text[last:e.at])
		out.WriteString(e.text)
		last = e.at + e.length
	}
	out.Write(text[last:])
	return out.Bytes()
}

package main

import (
	"errors"
	"fmt"
	"io/fs"
	"path"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/health"
	"github.com/tieredmem/mem/plan"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/walk"
)

type healthCmd struct {
	Only        []string `placeholder:"CHECK" help:"Run only these checks, or groups such as tags or buffer."`
	Skip        []string `placeholder:"CHECK" help:"Leave these checks out."`
	MinSeverity string   `enum:"fail,warn,info" default:"fail" help:"Exit 1 on findings of this severity too: fail, warn, info."`
	Explain     string   `placeholder:"CHECK" help:"Print a check's rule, its source and its mend."`
	List        bool     `help:"List all checks."`
	Fix         bool     `help:"First mend what needs no judgement: a missing buffer or directory, a displaced closure block, leftovers of a crash."`
}

func (*healthCmd) Help() string {
	return "Checks the invariants of the whole memory, in one pass, without a lock and without\nchanging anything. Exit 0: an agent can rely on it. Exit 1: it should not, until the\nfindings marked ✗ are mended. Warnings (!) do not fail.\n\n  mem health\n  mem health --only tags --json\n  mem health --explain warm.verified\n  mem health --fix"
}

func (c *healthCmd) Run(a *app) error {
	switch {
	case c.Explain != "":
		return c.explain(a)
	case c.List:
		return c.list(a)
	}
	if c.Fix {
		if err := c.fix(a); err != nil {
			return err
		}
	}
	start := time.Now() // how long it takes, not what time it is
	r, err := a.checkHealth(health.Options{Only: c.Only, Skip: c.Skip})
	var unknown *health.UnknownError
	if errors.As(err, &unknown) && slices.Contains(slices.Concat(c.Only, c.Skip), unknown.Name) {
		return &usageError{unknown.Error(), unknown.Mend()}
	}
	if err != nil {
		return err
	}
	took := time.Since(start)
	floor := health.Severity(c.MinSeverity)
	healthy := true
	for _, f := range r.Findings {
		healthy = healthy && !f.Severity.AtLeast(floor)
	}
	a.printHealth(r, c.Only, c.Skip)
	fails, warns := r.Count(health.Fail), r.Count(health.Warn)
	switch {
	case healthy && warns > 0:
		a.say("memory healthy: %s, %s, %s, %s", plural(r.Checks, "check"), plural(r.Files, "file"), plural(warns, "warning"), millis(took))
	case healthy:
		a.say("memory healthy: %s, %s, %s", plural(r.Checks, "check"), plural(r.Files, "file"), millis(took))
	default:
		a.say("Memory integrity check failed: %s, %s. Run mem health --verbose.", plural(fails, "failure"), plural(warns, "warning"))
		a.code = exitFindings
	}
	findings := r.Findings
	if findings == nil {
		findings = []health.Finding{}
	}
	outcome := "healthy"
	if !healthy {
		outcome = "unhealthy"
	}
	a.object(map[string]any{"outcome": outcome, "healthy": healthy, "checks": r.Checks, "files": r.Files, "duration_ms": float64(took.Microseconds()) / 1000, "findings": findings})
	return nil
}

func millis(d time.Duration) string {
	if d < 10*time.Millisecond {
		return fmt.Sprintf("%.1f ms", float64(d.Microseconds())/1000)
	}
	return fmt.Sprintf("%d ms", d.Milliseconds())
}

// checkHealth looks at the workspace; as fast as the disk gives it where the
// disk is the real one.
func (a *app) checkHealth(o health.Options) (health.Report, error) {
	ws, err := a.open(false)
	if err != nil {
		return health.Report{}, err
	}
	u, err := ws.Unfinished()
	if err != nil {
		return health.Report{}, err
	}
	o.Running = u.Running
	if a.env.open == nil && !a.DryRun {
		o.Walk = func(w walk.Options) error { return walk.Dir(a.dir, w) }
	}
	return health.Check(ws.View(), ws.Rules, a.at, o)
}

var marks = map[health.Severity]string{health.Fail: "✗", health.Warn: "!", health.Info: "·"}

func (a *app) printHealth(r health.Report, only, skip []string) {
	tier := "-"
	for _, f := range r.Findings {
		if f.Severity == health.Info && !a.Verbose && f.Check != "session.active" && f.Check != "inbox.waiting" {
			continue
		}
		if f.Tier != tier {
			tier = f.Tier
			title := tier
			if title == "" {
				title = "workspace"
			}
			a.say("%s", title)
		}
		where := f.Path
		if f.Line > 0 {
			where = fmt.Sprintf("%s:%d", f.Path, f.Line)
		}
		a.say("%s %s %s  %s", marks[f.Severity], where, f.Check, f.Message)
		switch {
		case f.Severity == health.Info:
		case f.Command != "":
			a.say("    %s", f.Command)
			if a.Verbose {
				a.say("    %s", f.Fix)
			}
		default:
			a.say("    %s", f.Fix)
		}
	}
	if !a.Verbose {
		return
	}
	bad := map[string]bool{}
	for _, f := range r.Findings {
		bad[f.Check] = true
	}
	for _, c := range health.Applying(a.ws.Rules, health.Options{Only: only, Skip: skip}) {
		if !bad[c.ID] {
			a.say("✓ %s  %s", c.ID, c.Title)
		}
	}
}

func (c *healthCmd) explain(a *app) error {
	all := []map[string]any{}
	for _, x := range health.Checks {
		if group, _, _ := strings.Cut(x.ID, "."); x.ID != c.Explain && group != c.Explain {
			continue
		}
		a.say("%s: %s (%s)", x.ID, x.Title, x.Severity)
		a.say("rule:   %s", x.Rule)
		a.say("source: %s", x.Source)
		a.say("mend:   %s", x.Mend)
		if x.Fixable {
			a.say("        mem health --fix mends what of it needs no judgement")
		}
		all = append(all, checkFields(x))
	}
	if len(all) == 0 {
		err := &health.UnknownError{Name: c.Explain}
		return &usageError{err.Error(), err.Mend()}
	}
	a.object(map[string]any{"outcome": "ok", "checks": all})
	return nil
}

func checkFields(x health.Invariant) map[string]any {
	return map[string]any{"check": x.ID, "tier": x.Tier, "severity": x.Severity, "title": x.Title, "rule": x.Rule, "source": x.Source, "mend": x.Mend, "fixable": x.Fixable}
}

func (c *healthCmd) list(a *app) error {
	all := []map[string]any{}
	for _, x := range health.Checks {
		a.say("%-20s %-8s %-5s %s", x.ID, x.Tier, x.Severity, x.Title)
		all = append(all, checkFields(x))
	}
	a.object(map[string]any{"outcome": "ok", "checks": all})
	return nil
}

// fix mends what needs no judgement, in one transaction.
func (c *healthCmd) fix(a *app) error {
	p, err := a.update(func(m fs.FS) (plan.Plan, error) { return health.Fix(m, a.ws.Rules, a.at) })
	if err != nil {
		return err
	}
	prefix := ""
	if a.DryRun {
		prefix = "[dry-run] "
	}
	for _, s := range p.Steps {
		a.say("%sfixed: %s", prefix, describe(s))
	}
	return nil
}

type verifyCmd struct {
	Files []string `arg:"" name:"file" help:"Files whose content you have just made sure of."`
}

func (*verifyCmd) Help() string {
	return "Writes today's date as last_verified into the headers of the named files. Only after\na real check: the date says that somebody made sure that the file tells the truth.\n\n  mem verify memory/semantic/infrastructure.md"
}

func (c *verifyCmd) Run(a *app) error {
	if _, err := a.open(true); err != nil {
		return err
	}
	var files []string
	for _, f := range c.Files {
		name, err := a.inWorkspace(f)
		if err != nil {
			return err
		}
		if slices.Contains(files, name) {
			continue
		}
		if t, _ := a.ws.Rules.In(path.Dir(name))(path.Base(name)); t != tiers.WARM && t != tiers.HOT {
			return &usageError{name + " is no HOT or WARM file", "only those carry last_verified"}
		}
		files = append(files, name)
	}
	p, err := a.update(func(m fs.FS) (plan.Plan, error) { return health.Verify(m, a.ws.Rules, a.at, files) })
	if err != nil {
		return err
	}
	day := a.ws.Rules.Day(a.at)
	fields := map[string]any{"outcome": "verified", "day": day, "files": files}
	if p.Empty() {
		fields["outcome"] = "unchanged"
		a.done(p, fields, "verified %s already", day)
		return nil
	}
	a.done(p, fields, "verified %s: %s", day, strings.Join(p.Paths(), ", "))
	return nil
}

type tagsCmd struct {
	Tag string `arg:"" optional:"" help:"Only this tag's files."`
}

func (*tagsCmd) Help() string {
	return "Lists the tags on line 2 of HOT and WARM files, the files that carry them, and what of\nthe frozen vocabulary is unused or unknown."
}

func (c *tagsCmd) Run(a *app) error {
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	files := map[string][]string{}
	m := ws.View()
	err = walk.FS(m, walk.Options{
		Enter: ws.Rules.Enter, Limit: health.MaxFile,
		Want: func(dir string) func(string, fs.FileMode) (bool, bool) {
			in := ws.Rules.In(dir)
			return func(base string, typ fs.FileMode) (bool, bool) {
				t, _ := in(base)
				return (t == tiers.HOT || t == tiers.WARM) && typ.IsRegular(), true
			}
		},
		Visit: func(_ int, f *walk.File) {
			for _, t := range entry.ParseHeader(f.Body).Tags {
				files[t] = append(files[t], path.Join(f.Dir, f.Base))
			}
		},
	})
	if err != nil {
		return err
	}
	known := map[string]string{}
	for group, list := range ws.Rules.Tags {
		for _, t := range list {
			known[t] = group
		}
	}
	a.printTags(c.Tag, files, known)
	return nil
}

type tagView struct {
	Tag   string   `json:"tag"`
	Group string   `json:"group"` // of the vocabulary; "" for an unknown tag
	Files []string `json:"files"`
}

func (a *app) printTags(only string, files map[string][]string, known map[string]string) {
	used, unused, unknown := []tagView{}, []string{}, []string{}
	for t, list := range files {
		if only == "" || t == only {
			sort.Strings(list)
			used = append(used, tagView{t, known[t], list})
		}
		if known[t] == "" {
			unknown = append(unknown, t)
		}
	}
	for t := range known {
		if len(files[t]) == 0 {
			unused = append(unused, t)
		}
	}
	sort.Slice(used, func(i, j int) bool { return used[i].Tag < used[j].Tag })
	sort.Strings(unused)
	sort.Strings(unknown)
	for _, u := range used {
		note := ""
		if u.Group == "" {
			note = "  (not in the vocabulary)"
		}
		a.say("%s%s", u.Tag, note)
		for _, f := range u.Files {
			a.say("  %s", f)
		}
	}
	if only == "" {
		a.say("unused: %s", strings.Join(unused, ", "))
	} else if len(used) == 0 {
		a.say("no file carries %s", only)
	}
	a.object(map[string]any{"outcome": "ok", "tags": used, "unused": unused, "unknown": unknown})
}

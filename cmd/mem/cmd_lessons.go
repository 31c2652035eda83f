package main

import (
	"errors"
	"fmt"
	"io/fs"
	"strings"

	"github.com/tieredmem/mem/guard"
	"github.com/tieredmem/mem/lessons"
	"github.com/tieredmem/mem/plan"
)

type learnCmd struct {
	Kind        string   `arg:"" enum:"error,lesson,feature" help:"error (what failed), lesson (the better way), feature (what is missing)."`
	Text        []string `arg:"" help:"One or two short sentences."`
	Long        bool     `help:"Take more than two sentences."`
	AllowSecret bool     `help:"Take text that looks like a credential."`
}

func (*learnCmd) Help() string {
	return "Adds one dated line to .learnings: what failed, what is better, what is missing. A\nlesson that stands there already is refused, and so is one that says nothing.\n\n  mem learn error 'go test -race needs cgo: set CGO_ENABLED=1'"
}

func (c *learnCmd) Run(a *app) error {
	if _, err := a.open(true); err != nil {
		return err
	}
	text, err := oneText(strings.Join(c.Text, " "))
	if err != nil {
		return err
	}
	if hits := guard.Secrets([]byte(text)); len(hits) > 0 && !c.AllowSecret {
		return &hinted{fmt.Errorf("the text looks like a credential (%s)", hits[0].Rule), "leave the secret out; --allow-secret takes it all the same"}
	}
	p, err := a.update(func(m fs.FS) (plan.Plan, error) {
		return lessons.Learn(m, a.ws.Rules, a.at, c.Kind, text, c.Long)
	})
	if err != nil {
		return refused(err)
	}
	file, _ := p.Facts["file"].(string)
	a.done(p, map[string]any{"outcome": "learned", "file": file, "kind": c.Kind}, "learned, in %s", file)
	return nil
}

// refused gives an error of package lessons its exit code: the text, not the
// disk, was at fault.
func refused(err error) error {
	var r *lessons.RefusedError
	if errors.As(err, &r) {
		return &conflicted{hinted{r, r.Hint}}
	}
	if errors.Is(err, lessons.ErrNoScratch) {
		return &hinted{err, "the canonical and openclaw layouts have one"}
	}
	return err
}

type lessonsCmd struct {
	All bool `help:"Every lesson, also those that stand once."`
}

func (*lessonsCmd) Help() string {
	return "Lists lessons that recur, by their text or their pattern key; copies of one day count\nonce. Written on 3 days of the last 7: a candidate for promotion, for a person to\ndecide (mem promote). Nothing is promoted by itself."
}

type groupView struct {
	Lesson    string       `json:"lesson"`
	Pattern   string       `json:"pattern"`
	Count     int          `json:"count"`
	Days      int          `json:"days"`
	Recent    int          `json:"recent_days"`
	Candidate bool         `json:"candidate"`
	Where     []lessonView `json:"where"`
}

type lessonView struct {
	Key      string `json:"key"`
	ID       string `json:"id"`
	Path     string `json:"path"`
	Line     int    `json:"line"`
	Day      string `json:"day"`
	Status   string `json:"status"`
	Pinned   bool   `json:"pinned"`
	Promoted bool   `json:"promoted"`
}

func groupViews(groups []lessons.Group) []groupView {
	out := []groupView{}
	for _, g := range groups {
		v := groupView{g.Lesson, g.Pattern, len(g.Entries), g.Days, g.Recent, g.Candidate(), []lessonView{}}
		for _, l := range g.Entries {
			v.Where = append(v.Where, lessonView{l.Key, l.ID, l.File, l.Line, l.Day, l.Status, l.Pinned, l.Promoted})
		}
		out = append(out, v)
	}
	return out
}

func (c *lessonsCmd) Run(a *app) error {
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	all, err := lessons.Read(ws.View(), ws.Rules)
	if errors.Is(err, lessons.ErrNoScratch) {
		return refused(err)
	}
	if err != nil {
		a.warn("%v", err)
		a.code = exitFailed
	}
	groups := lessons.Groups(all, ws.Rules, a.at)
	if !c.All {
		var recur []lessons.Group
		for _, g := range groups {
			if g.Days > 1 || len(g.Entries) > 1 {
				recur = append(recur, g)
			}
		}
		groups = recur
	}
	for _, v := range groupViews(groups) {
		mark := " "
		if v.Candidate {
			mark = "*"
		}
		a.say("%s %s", mark, v.Lesson)
		for _, l := range v.Where {
			day := l.Day
			if day == "" {
				day = "no date   "
			}
			note := ""
			if l.Promoted {
				note = "  promoted"
			} else if l.Pinned {
				note = "  pinned"
			}
			a.say("    %s  %s  %s:%d%s", l.Key, day, l.Path, l.Line, note)
		}
	}
	switch {
	case len(all) == 0:
		a.say("no lessons yet")
	case len(groups) == 0:
		a.say("%s, none twice", plural(len(all), "lesson"))
	default:
		a.say("%s; * written on 3 of the last 7 days: mem promote KEY", plural(len(all), "lesson"))
	}
	a.object(map[string]any{"outcome": "ok", "count": len(all), "lessons": groupViews(groups)})
	return nil
}

type promoteCmd struct {
	ID    string `arg:"" help:"A lesson's key or typed id, as mem lessons shows them."`
	To    string `placeholder:"FILE" help:"The durable file, whatever its kind says."`
	As    string `placeholder:"KIND" help:"What kind of fact it is: infrastructure, preference, project, decision, post-mortem, how-to."`
	Topic string `help:"Topic of a how-to: its file is memory/procedural/TOPIC.md, from its third promotion on."`
	Text  string `help:"How the fact is put; without it, as the lesson says it."`
}

func (*promoteCmd) Help() string {
	return "Brings a lesson to its durable home, when a person has decided that: the fact is\nwritten there once, and the entry says where it went; one transaction. Without --to,\n--as or --topic a lesson is a post-mortem and goes to memory/procedural/lessons-learned.md.\n\n  mem promote LRN-20260401-001\n  mem promote 3f2a91c0 --as decision"
}

func (c *promoteCmd) Run(a *app) error {
	if _, err := a.open(true); err != nil {
		return err
	}
	arg := lessons.Promotion{ID: c.ID, As: c.As, Topic: c.Topic, Text: c.Text}
	if c.To != "" {
		name, err := a.inWorkspace(c.To)
		if err != nil {
			return err
		}
		arg.To = name
	}
	var d lessons.Promoted
	p, err := a.update(func(m fs.FS) (p plan.Plan, err error) {
		p, d, err = lessons.Promote(m, a.ws.Rules, a.at, arg)
		return p, err
	})
	if err != nil {
		return refused(err)
	}
	if d.Warning != "" {
		a.warn("%s", d.Warning)
	}
	if hits := guard.Secrets([]byte(d.Lesson.Summary)); len(hits) > 0 {
		a.warn("the fact in %s looks like a credential (%s)", d.To, hits[0].Rule)
	}
	a.done(p, map[string]any{"outcome": "promoted", "lesson": d.Lesson.Key, "from": d.Lesson.File, "to": d.To, "warning": d.Warning}, "promoted to %s", d.To)
	return nil
}

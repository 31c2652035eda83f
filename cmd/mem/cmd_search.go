package main

import (
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/tieredmem/mem/search"
	"github.com/tieredmem/mem/tiers"
	"github.com/tieredmem/mem/walk"
)

type searchCmd struct {
	Query []string `arg:"" help:"Words, \"a phrase\", begin*, #tag, path:PART, after:DAY, before:DAY."`
	Tier  []string `placeholder:"TIER" enum:"HOT,WARM,COLD,BUFFER,SCRATCH,hot,warm,cold,buffer,scratch" help:"Only these tiers."`
	All   bool     `help:"Daily notes and the archive too, however much the rest holds."`
	Min   int      `default:"5" help:"Daily notes and the archive too if the rest holds fewer hits."`
	Limit int      `default:"50" help:"The most hits to show; 0: all."`
}

func (*searchCmd) Help() string {
	return "Finds entries by their words: list items, paragraphs, headings. HOT first, then WARM,\nthen COLD; within a tier the best first. Endings, case and accents do not count.\n\n  mem search port conflict\n  mem search '\"port 8080\" after:2026-11-01' --all\n  mem search '#docker path:procedural restart'\n\nThere is no index: what is found is on disk now. No hit is no error."
}

// maxQuery bounds a query, in bytes.
const maxQuery = 64 << 10

func (c *searchCmd) Run(a *app) error {
	if c.Limit < 0 || c.Min < 0 {
		return &usageError{"--limit and --min count hits", "0 or more"}
	}
	ws, err := a.open(false)
	if err != nil {
		return err
	}
	text := strings.Join(c.Query, " ")
	if len(text) > maxQuery {
		return &usageError{fmt.Sprintf("the query has more than %d bytes", maxQuery), "ask for fewer words"}
	}
	o := search.Options{All: c.All, Min: c.Min, Limit: c.Limit}
	for _, t := range c.Tier {
		o.Tiers = append(o.Tiers, tiers.Tier(strings.ToUpper(t)))
	}
	if a.env.open == nil {
		o.Walk = func(w walk.Options) error { return walk.Dir(a.dir, w) }
	}
	start := time.Now() // how long it takes, not what time it is
	r, err := search.Search(ws.View(), ws.Rules, search.Parse(text), o)
	if err != nil {
		return err
	}
	took := time.Since(start)
	for _, t := range r.Trouble {
		a.warn("not searched: %s", t)
	}
	for _, h := range r.Hits {
		a.say("%s:%d  %s", h.Path, h.Line, oneLine(h.Match, maxShown))
	}
	if len(r.Hits) < r.Total {
		a.say("%d more: --limit 0 shows all", r.Total-len(r.Hits))
	}
	if a.Verbose {
		a.say("%s in %s, %s", plural(r.Total, "hit"), plural(r.Files, "file"), millis(took))
	}
	hits := r.Hits
	if hits == nil {
		hits = []search.Hit{}
	}
	outcome := "ok"
	if len(r.Trouble) > 0 {
		outcome = "partial"
	}
	a.object(map[string]any{"outcome": outcome, "query": text, "hits": hits, "total": r.Total, "cold": r.Cold, "files": r.Files, "trouble": attentionList(r.Trouble)})
	return nil
}

// maxShown bounds what a line of results shows of an entry, in characters.
const maxShown = 200

// oneLine is a text as one line of at most so many characters.
func oneLine(s string, limit int) string {
	s = strings.Join(strings.Fields(s), " ")
	if utf8.RuneCountInString(s) <= limit {
		return s
	}
	return string([]rune(s)[:limit-1]) + "…"
}

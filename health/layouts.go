package health

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"path"
	"regexp"
	"sync"
	"time"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/tiers"
)

// feedbackFile is where the claude layout keeps corrections and confirmations.
const feedbackFile = "memory/feedback.md"

func hasFeedback(r tiers.Rules) bool { return r.TierOf(feedbackFile) == tiers.WARM && !hasScratch(r) }
func hasSessions(r tiers.Rules) bool {
	return r.TierOf(r.Hot.File) == tiers.HOT && path.Dir(r.Hot.File) != "."
}

var feedbackID = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(`^#{2,4}\s+F0*(\d{1,6}):`) })

// feedbackIDs: each number names one entry.
func (p *pass) feedbackIDs(all *found) {
	b, err := fs.ReadFile(p.m, feedbackFile)
	if err != nil {
		return // that it can't be read is another check's
	}
	first := map[string]int{}
	entry.VisibleLines(b, func(n int, line string) {
		m := feedbackID().FindStringSubmatch(line)
		switch {
		case m == nil:
		case first[m[1]] > 0:
			p.note(all, Fail, "feedback.ids", feedbackFile, n, "", "the number F%03s stands there twice, first in line %d", m[1], first[m[1]])
		default:
			first[m[1]] = n
		}
	})
}

// spoolFor is how long an exchange may wait to be put into a log.
const spoolFor = 24 * time.Hour

// spool: exchanges come into their log.
func (p *pass) spool(all *found) {
	const dir = ".mem/spool"
	n, oldest := 0, time.Duration(0)
	for _, e := range p.entries(dir) {
		var x struct {
			At time.Time `json:"at"`
		}
		b, err := fs.ReadFile(p.m, path.Join(dir, e.Name()))
		if err != nil || json.Unmarshal(b, &x) != nil {
			continue // mem status names it
		}
		n++
		oldest = max(oldest, p.now.Sub(x.At))
	}
	if n > 0 && oldest > spoolFor {
		p.note(all, Fail, "sessions.spool", dir, 0, "mem session record", "%s, the oldest for %s", plural(n, "exchange waits to be put into a log", "exchanges wait to be put into a log"), ago(oldest))
	}
}

func plural(n int, one, many string) string {
	if n == 1 {
		return "1 " + one
	}
	return fmt.Sprintf("%d %s", n, many)
}

// Package guard looks for what has no place in memory: credentials, hidden
// text, and text that wants to give an agent orders.
//
// [Secrets], [Hidden] and [Injection] return the findings in a text, each with
// its rule and place; a credential itself never. The rules are few and narrow:
// a finding stops a note or sends a handoff to a person, so identifiers, hashes
// and documented example keys must pass. They are tripwires: what keeps memory
// safe is that little is taken over unread, with its origin, and can be undone.
package guard

import (
	"bytes"
	"math"
	"regexp"
	"slices"
	"strings"
	"sync"
)

// Finding is a place in a text that looks like a credential.
type Finding struct {
	Rule       string
	Line       int // from 1
	Start, End int // byte offsets
}

// rule is a shape of credential. Sources: the issuers' own documentation of
// their token formats.
type rule struct {
	name    string
	near    []string // one of these must stand in the text: a cheap look first
	pattern string
	entropy float64 // least bits a character of group 1, or of the match; 0: any
}

var rules = []rule{
	{"private-key", []string{"PRIVATE KEY"}, `-----BEGIN (?:[A-Z0-9]+ )*PRIVATE KEY(?: BLOCK)?-----`, 0},
	{"aws-access-key", []string{"AKIA", "ASIA"}, `\b(?:AKIA|ASIA)[A-Z2-7]{16}\b`, 3},
	{"github-token", []string{"ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"}, `\b(?:gh[pousr]_[A-Za-z0-9]{36,}|github_pat_[A-Za-z0-9_]{50,})\b`, 3},
	{"gitlab-token", []string{"glpat-"}, `\bglpat-[A-Za-z0-9_-]{20,}`, 3},
	{"slack-token", []string{"xox"}, `\bxox[abeoprs]-[A-Za-z0-9-]{20,}`, 2.5},
	{"slack-webhook", []string{"hooks.slack.com"}, `hooks\.slack\.com/services/T[A-Z0-9]{6,}/B[A-Z0-9]{6,}/[A-Za-z0-9]{20,}`, 0},
	{"anthropic-key", []string{"sk-ant-"}, `(?:^|[^A-Za-z0-9_-])(sk-ant-[A-Za-z0-9_-]{20,})`, 3},
	{"openai-key", []string{"sk-"}, `(?:^|[^A-Za-z0-9_-])(sk-(?:proj-|svcacct-)?[A-Za-z0-9_-]{32,})`, 3.5},
	{"google-key", []string{"AIza"}, `\bAIza[A-Za-z0-9_-]{35}\b`, 3},
	{"stripe-key", []string{"k_live_"}, `\b[rs]k_live_[A-Za-z0-9]{20,}`, 3},
	{"npm-token", []string{"npm_"}, `\bnpm_[A-Za-z0-9]{36}\b`, 3},
	{"jwt", []string{"eyJ"}, `\beyJ[A-Za-z0-9_-]{10,}\.eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{20,}`, 3},
	{"url-password", []string{"://"}, `\b[a-z][a-z0-9+.-]*://[^\s/:@]{1,100}:([^\s/@]{6,200})@`, 2.5},
	{"bearer-token", []string{"earer "}, `\b[Bb]earer\s{1,20}([A-Za-z0-9._~+/-]{24,}=*)`, 3.5},
	{"assigned-secret", []string{"pass", "secret", "token", "api_key", "apikey", "api-key"}, `(?i)\b[a-z0-9_.-]*(?:password|passwd|secret|token|api[_-]?key)["'*\x60]*\s*[:=|]\s*["'*\x60]*([A-Za-z0-9+/_.~!@#$%^&-]{8,})`, 3},
}

// compiled holds the patterns that were needed; most runs need none.
var compiled = func() []func() *regexp.Regexp {
	out := make([]func() *regexp.Regexp, len(rules))
	for i, r := range rules {
		out[i] = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(r.pattern) })
	}
	return out
}()

// examples are words that mark a value as no real one.
var examples = []string{"example", "xxxx", "your", "changeme", "placeholder", "redacted", "dummy", "<", "…", "...", "****", "${", "{{"}

// Secrets returns what in the text looks like a credential.
func Secrets(text []byte) []Finding {
	if !suspicious(text) {
		return nil
	}
	var out []Finding
	lower := bytes.ToLower(text)
	for i, r := range rules {
		if !near(text, lower, r) {
			continue
		}
		for _, m := range compiled[i]().FindAllSubmatchIndex(text, -1) {
			start, end := m[0], m[1]
			value := string(text[start:end])
			if len(m) > 2 && m[2] >= 0 {
				value = string(text[m[2]:m[3]])
			}
			if harmless(value) || r.entropy > 0 && entropy(value) < r.entropy || covered(out, start, end) {
				continue
			}
			if (r.name == "assigned-secret" || r.name == "openai-key") && (!mixed(value) || wordy(value)) {
				continue
			}
			if text[start] == '\n' {
				start++ // what stands before a key is not part of it
			}
			if out = append(out, Finding{r.name, 0, start, end}); len(out) == maxFindings {
				break
			}
		}
	}
	slices.SortFunc(out, func(a, b Finding) int { return a.Start - b.Start })
	line, at := 1, 0
	for i := range out {
		line += bytes.Count(text[at:out[i].Start], []byte("\n"))
		at, out[i].Line = out[i].Start, line
	}
	return out
}

// maxFindings bounds how many places of one text are named.
const maxFindings = 100

// wordy reports whether a value is made of words, such as a path or a branch's
// name: no random string has only words and numbers between its separators.
func wordy(v string) bool {
	parts := strings.FieldsFunc(v, func(r rune) bool { return r == '/' || r == '.' || r == '_' || r == '-' })
	for _, p := range parts {
		if len(p) <= 4 {
			continue
		}
		letters := strings.Trim(p, "0123456789")
		digits := len(p) - len(letters)
		plain := strings.Trim(strings.ToLower(letters), "abcdefghijklmnopqrstuvwxyz") == ""
		if !plain || len(letters) > 0 && digits > 4 || shape(letters) > 2 {
			return false
		}
	}
	return len(parts) > 1
}

// shape counts changes from lower to upper case inside a word: at most two in
// a name that people write.
func shape(s string) int {
	n := 0
	for i := 1; i < len(s); i++ {
		if s[i] >= 'A' && s[i] <= 'Z' && s[i-1] >= 'a' && s[i-1] <= 'z' {
			n++
		}
	}
	return n
}

func near(text, lower []byte, r rule) bool {
	for _, n := range r.near {
		if bytes.Contains(text, []byte(n)) || bytes.Contains(lower, []byte(n)) {
			return true
		}
	}
	return false
}

func covered(found []Finding, start, end int) bool {
	for _, f := range found {
		if start < f.End && f.Start < end {
			return true
		}
	}
	return false
}

func harmless(v string) bool {
	v = strings.ToLower(v)
	for _, e := range examples {
		if strings.Contains(v, e) {
			return true
		}
	}
	return false
}

// mixed reports whether a value has letters and digits: words have no digits,
// numbers no letters.
func mixed(v string) bool {
	return strings.ContainsAny(v, "0123456789") && strings.ContainsAny(strings.ToLower(v), "abcdefghijklmnopqrstuvwxyz")
}

// entropy is Shannon's, in bits a character.
func entropy(s string) float64 {
	var n [256]float64
	for i := range len(s) {
		n[s[i]]++
	}
	e := 0.0
	for _, c := range n {
		if c > 0 {
			p := c / float64(len(s))
			e -= p * math.Log2(p)
		}
	}
	return e
}

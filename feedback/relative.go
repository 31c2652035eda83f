package feedback

import (
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
	"time"
	"unicode"
	"unicode/utf8"
)

// relatives are words that mean another day tomorrow, and how many days from
// today they are; unclear: that is not for us to say.
var relatives = map[string]int{
	// English
	"today": 0, "tonight": 0, "this morning": 0, "this afternoon": 0, "this evening": 0, "yesterday": -1, "last night": -1, "tomorrow": 1,
	"last week": -7, "next week": 7, "this week": unclear, "last month": unclear, "next month": unclear, "last year": unclear, "next year": unclear, "just now": 0, "the other day": unclear,
	// German
	"heute": 0, "gestern": -1, "vorgestern": -2, "morgen": 1, "übermorgen": 2, "letzte woche": -7, "vorige woche": -7, "nächste woche": 7, "letzten monat": unclear, "nächsten monat": unclear, "letztes jahr": unclear, "neulich": unclear, "kürzlich": unclear, "vor einem tag": -1, "vor einer woche": -7, "vor zwei tagen": -2, "vor zwei wochen": -14,
	// French
	"aujourd'hui": 0, "aujourd’hui": 0, "hier": -1, "avant-hier": -2, "demain": 1, "après-demain": 2, "la semaine dernière": -7, "la semaine prochaine": 7, "le mois dernier": unclear, "le mois prochain": unclear, "récemment": unclear,
	// Spanish
	"hoy": 0, "ayer": -1, "anteayer": -2, "mañana": 1, "pasado mañana": 2, "la semana pasada": -7, "la próxima semana": 7, "la semana que viene": 7, "el mes pasado": unclear, "el próximo mes": unclear, "recientemente": unclear,
	// Chinese
	"今天": 0, "昨天": -1, "前天": -2, "明天": 1, "后天": 2, "後天": 2, "上周": -7, "上週": -7, "下周": 7, "下週": 7, "上个月": unclear, "上個月": unclear, "下个月": unclear, "下個月": unclear, "去年": unclear, "刚才": 0, "上星期": -7, "下星期": 7,
	// Japanese
	"今日": 0, "昨日": -1, "一昨日": -2, "おととい": -2, "きのう": -1, "きょう": 0, "明日": 1, "あした": 1, "明後日": 2, "先週": -7, "来週": 7, "先月": unclear, "来月": unclear, "昨年": unclear, "先日": unclear,
}

const unclear = 1 << 30

// counted are phrases with a number of days in them.
var counted = sync.OnceValue(func() []struct {
	re   *regexp.Regexp
	sign int
} {
	ago := `(?i)(?:(\d{1,3}|two|three|four|five|six) days? ago|vor (\d{1,3}) tagen?|il y a (\d{1,3}) jours?|hace (\d{1,3}) días?|(\d{1,3})\s*天前|(\d{1,3})\s*日前)`
	ahead := `(?i)(?:in (\d{1,3}) days?\b|in (\d{1,3}) tagen?|dans (\d{1,3}) jours?|dentro de (\d{1,3}) días?|en (\d{1,3}) días?|(\d{1,3})\s*天后|(\d{1,3})\s*日後)`
	weeks := `(?i)(?:(\d{1,2}|two|three|four) weeks? ago|vor (\d{1,2}) wochen|il y a (\d{1,2}) semaines?|hace (\d{1,2}) semanas?|(\d{1,2})\s*周前|(\d{1,2})\s*週間前)`
	return []struct {
		re   *regexp.Regexp
		sign int
	}{{regexp.MustCompile(ago), -1}, {regexp.MustCompile(ahead), 1}, {regexp.MustCompile(weeks), -7}}
})

// number reads a small number, in digits or in English.
func number(s string) (int, bool) {
	if i := slices.Index([]string{"two", "three", "four", "five", "six"}, strings.ToLower(s)); i >= 0 {
		return i + 2, true
	}
	n, err := strconv.Atoi(s)
	return n, err == nil
}

// weekday finds a day of last or next week by its name.
var weekday = sync.OnceValue(func() *regexp.Regexp {
	return regexp.MustCompile(`(?i)(?:^|[^\pL])((last|next|letzten|letztem|vorigen|nächsten|kommenden) (monday|tuesday|wednesday|thursday|friday|saturday|sunday|montag|dienstag|mittwoch|donnerstag|freitag|samstag|sonntag))(?:$|[^\pL])`)
})

// dayOf is the day that a weekday of last or next week is, from today.
func dayOf(today time.Time, which, name string) int {
	names := []string{"sunday", "monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sonntag", "montag", "dienstag", "mittwoch", "donnerstag", "freitag", "samstag"}
	want := slices.Index(names, strings.ToLower(name)) % 7
	ahead := (want - int(today.Weekday()) + 7) % 7
	switch strings.ToLower(which) {
	case "next", "nächsten", "kommenden":
		if ahead == 0 {
			ahead = 7
		}
		return ahead
	}
	return ahead - 7
}

// unquoted blanks out what a text quotes: words that are spoken of.
func unquoted(s string) string {
	for _, q := range [][2]string{{"`", "`"}, {`"`, `"`}, {"“", "”"}, {"„", "“"}, {"«", "»"}, {"「", "」"}} {
		for {
			i := strings.Index(s, q[0])
			if i < 0 {
				break
			}
			n := strings.Index(s[i+len(q[0]):], q[1])
			if n < 0 {
				break
			}
			end := i + len(q[0]) + n + len(q[1])
			s = s[:i] + strings.Repeat(" ", end-i) + s[end:]
		}
	}
	return s
}

// Relative finds the first words of a text that name a day by its distance
// from today, and that day; "" where it is not clear which one is meant.
func Relative(text, today string) (word, day string, found bool) {
	t, err := time.Parse(time.DateOnly, today)
	if err != nil {
		return "", "", false
	}
	text = unquoted(text)
	best := len(text) + 1
	note := func(at int, w string, days int) {
		if at > best || at == best && len(w) <= len(word) {
			return
		}
		best, word, found = at, w, true
		day = ""
		if days != unclear {
			day = t.AddDate(0, 0, days).Format(time.DateOnly)
		}
	}
	lower := strings.Map(unicode.ToLower, text)
	for w, days := range relatives {
		for from := 0; ; {
			i := strings.Index(lower[from:], w)
			if i < 0 {
				break
			}
			i += from
			from = i + len(w)
			if alone(lower, i, i+len(w)) {
				note(i, w, days)
				break
			}
		}
	}
	if m := weekday().FindStringSubmatchIndex(text); m != nil {
		note(m[2], text[m[2]:m[3]], dayOf(t, text[m[4]:m[5]], text[m[6]:m[7]]))
	}
	for _, c := range counted() {
		m := c.re.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		for k := 2; k < len(m); k += 2 {
			if m[k] < 0 {
				continue
			}
			if n, ok := number(text[m[k]:m[k+1]]); ok {
				note(m[0], text[m[0]:m[1]], c.sign*n)
			}
		}
	}
	return word, day, found
}

// alone reports whether a word of an alphabet stands by itself; words of
// scripts without spaces always do.
func alone(s string, start, end int) bool {
	first, _ := utf8.DecodeRuneInString(s[start:])
	if unicode.In(first, unicode.Han, unicode.Hiragana) {
		return true
	}
	before, _ := utf8.DecodeLastRuneInString(s[:start])
	after, _ := utf8.DecodeRuneInString(s[end:])
	part := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) || r == '_' }
	return !part(before) && !part(after)
}

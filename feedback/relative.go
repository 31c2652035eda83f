package feedback

import (
	"regexp"
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
	"last week": -7, "next week": 7, "this week": unclear, "last month": unclear, "next month": unclear, "last year": unclear, "next year": unclear, "recently": unclear, "just now": 0, "the other day": unclear,
	// German
	"heute": 0, "gestern": -1, "vorgestern": -2, "morgen": 1, "übermorgen": 2, "letzte woche": -7, "vorige woche": -7, "nächste woche": 7, "letzten monat": unclear, "nächsten monat": unclear, "letztes jahr": unclear, "neulich": unclear, "kürzlich": unclear,
	// French
	"aujourd'hui": 0, "aujourd’hui": 0, "hier": -1, "avant-hier": -2, "demain": 1, "après-demain": 2, "la semaine dernière": -7, "la semaine prochaine": 7, "le mois dernier": unclear, "le mois prochain": unclear, "récemment": unclear,
	// Spanish
	"hoy": 0, "ayer": -1, "anteayer": -2, "mañana": 1, "pasado mañana": 2, "la semana pasada": -7, "la próxima semana": 7, "la semana que viene": 7, "el mes pasado": unclear, "el próximo mes": unclear, "recientemente": unclear,
	// Chinese
	"今天": 0, "昨天": -1, "前天": -2, "明天": 1, "后天": 2, "後天": 2, "上周": -7, "上週": -7, "下周": 7, "下週": 7, "上个月": unclear, "上個月": unclear, "下个月": unclear, "下個月": unclear, "去年": unclear, "刚才": 0, "最近": unclear,
	// Japanese
	"今日": 0, "昨日": -1, "一昨日": -2, "おととい": -2, "きのう": -1, "きょう": 0, "明日": 1, "あした": 1, "明後日": 2, "先週": -7, "来週": 7, "先月": unclear, "来月": unclear, "昨年": unclear,
}

const unclear = 1 << 30

// counted are phrases with a number of days in them.
var counted = sync.OnceValue(func() []struct {
	re   *regexp.Regexp
	sign int
} {
	ago := `(?i)(?:(\d{1,3}) days? ago|vor (\d{1,3}) tagen?|il y a (\d{1,3}) jours?|hace (\d{1,3}) días?|(\d{1,3})\s*天前|(\d{1,3})\s*日前)`
	ahead := `(?i)(?:in (\d{1,3}) days?\b|in (\d{1,3}) tagen?|dans (\d{1,3}) jours?|dentro de (\d{1,3}) días?|en (\d{1,3}) días?|(\d{1,3})\s*天后|(\d{1,3})\s*日後)`
	return []struct {
		re   *regexp.Regexp
		sign int
	}{{regexp.MustCompile(ago), -1}, {regexp.MustCompile(ahead), 1}}
})

// Relative finds the first words of a text that name a day by its distance
// from today, and that day; "" where it is not clear which one is meant.
func Relative(text, today string) (word, day string, found bool) {
	t, err := time.Parse(time.DateOnly, today)
	if err != nil {
		return "", "", false
	}
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
	for _, c := range counted() {
		m := c.re.FindStringSubmatchIndex(text)
		if m == nil {
			continue
		}
		for k := 2; k < len(m); k += 2 {
			if m[k] < 0 {
				continue
			}
			if n, err := strconv.Atoi(text[m[k]:m[k+1]]); err == nil {
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

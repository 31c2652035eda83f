package handoff

import (
	"io/fs"
	"strings"
	"unicode"

	"github.com/tieredmem/mem/plan"
)

// Continue takes over what a batch before has read of the cards.
func (b *Batch) Continue(before *Batch) { b.cards = before.cards }

// index remembers a card by its topic and folded text.
func (b *Batch) index(name string, text []byte) {
	if b.cards == nil {
		return // nobody has asked yet; it will be read with the others
	}
	if key := cardKey(string(text)); key != "" {
		b.cards[key] = name
	}
}

// forget takes out what a card said before it was updated.
func (b *Batch) forget(name string, text []byte) {
	if key := cardKey(string(text)); b.cards[key] == name {
		delete(b.cards, key)
	}
}

// twin finds a card of the same topic that says the same.
func (b *Batch) twin(front frontmatter) string {
	if b.cards == nil {
		b.readCards()
	}
	if key := foldKey(front); key != "" {
		return b.cards[key]
	}
	return ""
}

// readCards indexes every card once; a run costs as much as there are cards
// and handoffs, not their product.
func (b *Batch) readCards() {
	b.cards = map[string]string{}
	entries, err := fs.ReadDir(b.m, "memory/cards")
	if err != nil {
		return
	}
	for _, e := range entries {
		name := "memory/cards/" + e.Name()
		if !e.Type().IsRegular() || !strings.HasSuffix(e.Name(), ".md") {
			continue
		}
		f, changed := b.files[name]
		if changed && f.updated {
			continue
		}
		if text, err := fs.ReadFile(b.m, name); err == nil && len(text) <= MaxSize {
			if key := cardKey(string(text)); key != "" {
				b.cards[key] = name
			}
		}
	}
	for name, f := range b.files {
		if f.updated {
			b.index(name, f.now)
		}
	}
}

func cardKey(text string) string {
	front, _, err := readFrontmatter(text)
	if err != nil {
		return ""
	}
	return foldKey(front)
}

// foldKey is a card's topic and text, folded: case, white space and
// punctuation do not count; digits and operators do. Cards without topic or
// text are like no other.
func foldKey(f frontmatter) string {
	body := foldText(f.body)
	topic := foldText(f.topic)
	if body == "" || topic == "" {
		return ""
	}
	return plan.Hash([]byte(topic + "\x00" + body))
}

func foldText(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case strings.ContainsRune("+-*/=<>%&|^~!", r):
			return r
		case unicode.IsSpace(r), unicode.IsPunct(r), r == '`':
			return -1
		}
		return unicode.ToLower(r)
	}, s)
}

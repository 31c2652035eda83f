package handoff

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"path"
	"strings"

	"github.com/tieredmem/mem/entry"
	"github.com/tieredmem/mem/plan"
)

// LedgerDir is where the hashes of ingested handoffs are kept: they are
// appended by the same transaction that lands what the handoffs say.
const LedgerDir = ".mem/ingest/ledger"

// maxLedger is how large one of its files grows, in bytes.
const maxLedger = 3 << 20

// Ledger reads the hashes of all handoffs that were ingested.
func Ledger(m fs.FS) (map[string]bool, error) {
	known := map[string]bool{}
	entries, err := fs.ReadDir(m, LedgerDir)
	if errors.Is(err, fs.ErrNotExist) {
		return known, nil
	}
	if err != nil {
		return nil, err
	}
	for _, e := range entries {
		if strings.HasPrefix(e.Name(), ".") || !strings.HasSuffix(e.Name(), ".txt") {
			continue // what a killed run had staged counts for nothing
		}
		b, err := fs.ReadFile(m, path.Join(LedgerDir, e.Name()))
		if err != nil {
			return nil, err
		}
		for line := range bytes.Lines(b) {
			if h, ok := bytes.CutPrefix(bytes.TrimSpace(line), []byte("- ")); ok && len(h) == 64 {
				known[string(h)] = true
			}
		}
	}
	return known, nil
}

// ledgerStep appends this run's hashes.
func (b *Batch) ledgerStep() (plan.Step, error) {
	var sb strings.Builder
	for _, h := range append(b.Lost, b.landed...) {
		sb.WriteString("- " + h + "\n")
	}
	for n := 1; ; n++ {
		name := path.Join(LedgerDir, b.day[:7]+".txt")
		if n > 1 {
			name = path.Join(LedgerDir, fmt.Sprintf("%s-%d.txt", b.day[:7], n))
		}
		old, err := fs.ReadFile(b.m, name)
		if errors.Is(err, fs.ErrNotExist) {
			old = nil
		} else if err != nil {
			return plan.Step{}, err
		}
		if len(old) < maxLedger {
			return plan.Step{Kind: plan.Append, Path: name, Before: plan.StateOf(old), Place: entry.AtLine, Text: []byte(sb.String())}, nil
		}
	}
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"maps"
	"os"
	"os/exec"
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tieredmem/mem/session"
)

// extractTimeout is how long an extractor may take. Only TestMain changes it.
var extractTimeout = 60 * time.Second

// failedOnce notes in the spool that an attempt failed.
func (a *app) failedOnce(s session.Spooled, cause error) error {
	s.Attempts++
	s.Error = oneLine(safe(cause.Error()), 300)
	b, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		return err
	}
	return a.ws.Swap("session record", strings.TrimPrefix(s.Name, ".mem/"), s.Raw, append(b, '\n'))
}

// extract asks the extractor what is worth keeping of an exchange.
func (a *app) extract(s session.Spooled, project string, dirs map[string]string, limit time.Duration) ([]byte, session.Answer, error) {
	log, err := fs.ReadFile(a.ws.View(), path.Join(dirs[project], "logs", a.ws.Rules.Day(s.At)+".md"))
	if err != nil && !errors.Is(err, fs.ErrNotExist) && !outside(dirs[project]) {
		return nil, nil, err
	}
	if len(log) > maxLog {
		log = log[len(log)-maxLog:]
	}
	out, err := a.runExtractor(session.Prompt(s.Exchange, project, slices.Sorted(maps.Keys(dirs)), strings.ToValidUTF8(string(log), "\ufffd")), limit)
	if err != nil {
		return nil, nil, err
	}
	answer, err := session.ParseAnswer(out, project)
	return out, answer, err
}

// spoolWaiting says what waits to be put into a log, once an attempt failed.
func (a *app) spoolWaiting() []string {
	list, trouble, err := session.Spool(a.ws.View())
	if err != nil {
		return []string{err.Error()}
	}
	n, last := 0, ""
	for _, s := range list {
		if s.Error != "" {
			last = s.Error
		}
		if a.at.Sub(s.At) > 5*time.Minute { // those of now may be at work
			n++
		}
	}
	if last != "" {
		n = len(list)
	}
	if n > 0 {
		line := plural(n, "exchange") + " not yet in a log"
		if last != "" {
			line += ", the extractor failed: " + last
		}
		trouble = append(trouble, line+" (mem session record brings them in with the next)")
	}
	return trouble
}

// maxLog bounds how much of a log an extractor sees, in bytes.
const maxLog = 64 << 10

// runExtractor runs the configured command, in an empty directory, so that no
// project's instructions reach it, with MEM_HOOK set, so that its own hooks do
// nothing.
func (a *app) runExtractor(prompt string, limit time.Duration) ([]byte, error) {
	dir, err := os.MkdirTemp("", "mem-extract-")
	if err != nil {
		return nil, err
	}
	defer os.RemoveAll(dir)
	ctx, cancel := context.WithTimeout(context.Background(), limit)
	defer cancel()
	argv := a.ws.Rules.Extractor
	cmd := exec.CommandContext(ctx, argv[0], argv[1:]...) //nolint:gosec // the user's own configuration, or trusted
	cmd.Dir = dir
	cmd.Env = append(os.Environ(), inHook+"=1")
	cmd.Stdin = strings.NewReader(prompt)
	cmd.WaitDelay = time.Second // what it started may hold its output open
	out := &limitedBuffer{limit: session.MaxAnswer}
	errs := &limitedBuffer{limit: 4 << 10, quiet: true}
	cmd.Stdout, cmd.Stderr = out, errs
	cmd.Cancel = func() error { return killGroup(cmd) }
	ownGroup(cmd)
	err = cmd.Run()
	switch {
	case ctx.Err() != nil:
		return nil, fmt.Errorf("%s took longer than %s", argv[0], limit.Round(time.Second))
	case out.over:
		return nil, fmt.Errorf("%w: more than %d bytes", session.ErrAnswer, session.MaxAnswer)
	case errors.Is(err, exec.ErrWaitDelay) && out.b.Len() > 0: // what it has left running holds its output open
	case err != nil:
		return nil, fmt.Errorf("%s: %w: %s", argv[0], err, oneLine(errs.b.String(), 200))
	}
	return out.b.Bytes(), nil
}

// limitedBuffer keeps the beginning of what is written to it. Beyond its limit
// a writer is told to stop, unless quiet.
type limitedBuffer struct {
	b     bytes.Buffer
	limit int
	over  bool
	quiet bool
}

var errOver = errors.New("too much output")

func (l *limitedBuffer) Write(p []byte) (int, error) {
	room := l.limit - l.b.Len()
	if len(p) > room {
		l.over = true
		l.b.Write(p[:max(room, 0)])
		if !l.quiet {
			return 0, errOver
		}
		return len(p), nil
	}
	return l.b.Write(p)
}

// Package vcs commits exactly the paths a run touched to git.
//
// [Commit] calls the git of the system, with hooks and file-system monitors
// disabled: a repository's configuration must not run programs here.
package vcs

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// timeout bounds one git call.
const timeout = 30 * time.Second

// ErrNoRepository says that the directory is in no git repository.
var ErrNoRepository = errors.New("not in a git repository")

// Commit commits the given paths, relative to dir, and nothing else that is
// staged. Paths that git ignores, and paths that are gone and were never
// tracked, are left out. It reports whether there was something to commit.
func Commit(dir string, paths []string, message string) (bool, error) {
	if _, err := git(dir, nil, "rev-parse", "--is-inside-work-tree"); err != nil {
		if errors.Is(err, exec.ErrNotFound) {
			return false, err
		}
		return false, fmt.Errorf("%w: %s", ErrNoRepository, dir)
	}
	ignored, err := ignoredBy(dir, paths)
	if err != nil {
		return false, err
	}
	var add, all []string
	for _, p := range paths {
		if ignored[p] {
			continue
		}
		tracked, err := git(dir, nil, "ls-files", "--", literal(p))
		if err != nil {
			return false, err
		}
		exists, err := git(dir, nil, "ls-files", "--others", "--exclude-standard", "--", literal(p))
		if err != nil {
			return false, err
		}
		if len(exists) > 0 {
			add = append(add, literal(p))
		}
		if len(tracked) > 0 || len(exists) > 0 {
			all = append(all, literal(p))
		}
	}
	if len(all) == 0 {
		return false, nil
	}
	if len(add) > 0 {
		if _, err := git(dir, nil, append([]string{"add", "--intent-to-add", "--"}, add...)...); err != nil {
			return false, err
		}
	}
	changed, err := git(dir, nil, append([]string{"status", "--porcelain", "--"}, all...)...)
	if err != nil || len(changed) == 0 {
		return false, err
	}
	_, err = git(dir, []byte(message), append([]string{"commit", "--quiet", "--no-verify", "--only", "--file=-", "--"}, all...)...)
	return err == nil, err
}

// literal keeps git from reading a path as a pattern.
func literal(p string) string { return ":(literal)" + p }

func ignoredBy(dir string, paths []string) (map[string]bool, error) {
	out, err := git(dir, []byte(strings.Join(paths, "\x00")), "check-ignore", "--stdin", "-z")
	var exit *exec.ExitError
	if errors.As(err, &exit) && exit.ExitCode() == 1 {
		return nil, nil // none
	}
	ignored := map[string]bool{}
	for _, p := range strings.Split(string(out), "\x00") {
		ignored[p] = true
	}
	return ignored, err
}

// environment is the process's, without what points git to another repository:
// git sets such variables for everything that a hook starts.
func environment() []string {
	return slices.DeleteFunc(os.Environ(), func(v string) bool { //nolint:forbidigo // handed on, not read
		name, _, _ := strings.Cut(v, "=")
		switch name {
		case "GIT_DIR", "GIT_WORK_TREE", "GIT_INDEX_FILE", "GIT_OBJECT_DIRECTORY", "GIT_ALTERNATE_OBJECT_DIRECTORIES", "GIT_COMMON_DIR", "GIT_NAMESPACE", "GIT_PREFIX":
			return true
		}
		return false
	})
}

func git(dir string, stdin []byte, args ...string) ([]byte, error) {
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	base := []string{"-c", "core.fsmonitor=false", "-c", "core.hooksPath=" + nowhere, "-c", "core.quotePath=false"}
	cmd := exec.CommandContext(ctx, "git", append(base, args...)...)
	cmd.Dir = filepath.Clean(dir)
	cmd.Env = environment()
	cmd.Stdin = bytes.NewReader(stdin)
	var stdout, stderr bytes.Buffer
	cmd.Stdout, cmd.Stderr = &stdout, &stderr
	if err := cmd.Run(); err != nil {
		if msg := strings.TrimSpace(stderr.String()); msg != "" {
			return stdout.Bytes(), fmt.Errorf("git %s: %w: %s", args[0], err, msg)
		}
		return stdout.Bytes(), fmt.Errorf("git %s: %w", args[0], err)
	}
	return stdout.Bytes(), nil
}

// Exclude makes git ignore a pattern in the repository that dir is in, through
// its own info/exclude, which is nobody else's. Outside any repository it does
// nothing. It returns the file that it changed, "" for none.
func Exclude(dir, pattern string, write func(file string, text []byte) error) (string, error) {
	if !inRepository(dir) {
		return "", nil
	}
	out, err := git(dir, nil, "rev-parse", "--path-format=absolute", "--git-path", "info/exclude")
	if err != nil {
		return "", err
	}
	file := strings.TrimRight(string(out), "\r\n")
	old, err := os.ReadFile(file)
	if err != nil && !errors.Is(err, os.ErrNotExist) {
		return "", err
	}
	for l := range strings.Lines(string(old)) {
		if strings.TrimSpace(l) == pattern {
			return "", nil
		}
	}
	if len(old) > 0 && old[len(old)-1] != '\n' {
		old = append(old, '\n')
	}
	return file, write(file, append(old, pattern+"\n"...))
}

// Tracked lists the names in one directory that git tracks, not those below.
// Outside any repository nothing is.
func Tracked(dir string) (map[string]bool, error) {
	if !inRepository(dir) {
		return nil, nil
	}
	out, err := git(dir, nil, "ls-files", "-z", "--", ".")
	if err != nil {
		return nil, err
	}
	names := map[string]bool{}
	for n := range strings.SplitSeq(string(out), "\x00") {
		if n != "" && !strings.Contains(n, "/") {
			names[n] = true
		}
	}
	return names, nil
}

// inRepository looks for .git upwards, which costs less than asking git.
func inRepository(dir string) bool {
	for {
		if _, err := os.Lstat(filepath.Join(dir, ".git")); err == nil {
			return true
		}
		up := filepath.Dir(dir)
		if up == dir {
			return false
		}
		dir = up
	}
}

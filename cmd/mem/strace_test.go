//go:build linux

package main

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestFailingSystemCalls: a sample of what TestErrorsAtEveryCall does by the
// seam, on the real program: strace lets its N-th call of a kind fail.
func TestFailingSystemCalls(t *testing.T) {
	if _, err := exec.LookPath("strace"); err != nil {
		t.Skip("strace is not installed")
	}
	if out, err := exec.Command("strace", "-o", "/dev/null", "-e", "inject=fsync:error=EIO", "true").CombinedOutput(); err != nil {
		t.Skipf("strace may not trace here: %v %s", err, out)
	}
	most, errnos := 1, []string{"EIO", "EINTR"}
	if *faultsAll {
		most, errnos = 12, []string{"EIO", "ENOSPC", "EINTR", "EACCES", "EMFILE"}
	}
	runs, failed := 0, 0
	for _, args := range [][]string{{"rotate", "--force"}, {"note", "FACT-NEW"}, {"ingest"}, {"close", "--signal", "x"}, {"learn", "error", "FACT-NEW"}, {"archive"}} {
		for _, call := range []string{"write", "fsync", "openat", "renameat2", "mkdirat", "linkat", "unlinkat", "getdents64", "newfstatat", "fstat", "flock", "syncfs", "read", "fchmod"} {
			for _, errno := range errnos {
				for when := 1; when <= most; when++ {
					b := newBox(t)
					fact := fmt.Sprintf("FACT-%d.", runs)
					b.append("memory/working-buffer.md", "- "+fact+"\n")
					b.handoff("handed over")
					trace := filepath.Join(t.TempDir(), "trace")
					c := b.cmd(nil, args...)
					c = exec.Command("strace", append([]string{"-f", "-o", trace, "-e", "trace=" + call, "-e", fmt.Sprintf("inject=%s:error=%s:when=%d", call, errno, when), c.Path}, args...)...)
					c.Env, c.Dir = b.cmd(nil).Env, b.dir
					out, err := c.CombinedOutput()
					runs++
					where := fmt.Sprintf("mem %s, %s at call %d of %s", strings.Join(args, " "), errno, when, call)
					var exit *exec.ExitError
					switch {
					case err == nil:
					case !errors.As(err, &exit):
						t.Fatal(err)
					case bytes.Contains(out, []byte("mem: error:")) || bytes.Contains(out, []byte("mem: warning:")):
						failed++
					case bytes.Contains(out, []byte("runtime")) || bytes.Contains(out, []byte("fatal")) || bytes.Contains(out, []byte("shared libraries")) || exit.ExitCode() < 0:
						failed++ // the runtime itself was hit, before or outside mem
					case exec.Command("grep", "-q", "write(2, .*INJECTED", trace).Run() == nil:
						failed++ // calls are counted by thread: the word itself was hit, too
					default:
						t.Errorf("%s: %v without a word: %q", where, err, out)
					}
					if all, _ := b.texts(); !strings.Contains(all, fact) {
						t.Errorf("%s: right after: %s is lost: %s", where, fact, out)
					}
					b.must("recover")
					b.must("ingest")
					b.check(where, []string{"- " + fact})
					if done, err := exec.Command("grep", "-c", "INJECTED", trace).Output(); err != nil || strings.TrimSpace(string(done)) == "0" {
						break // there are no more of these calls
					}
					if t.Failed() {
						return
					}
				}
			}
		}
	}
	fmt.Printf("strace: %d runs, %d ended with an error, nothing lost\n", runs, failed)
}

// handoff leaves one in the workspace's inbox, as a careful agent does.
func (b *box) handoff(text string) {
	b.t.Helper()
	dir := filepath.Join(b.dir, boxDir)
	err := os.MkdirAll(dir, 0o755)
	if err == nil {
		tmp := filepath.Join(dir, ".one.md")
		err = os.WriteFile(tmp, []byte("## Title\nx\n\n## Recommended memory action\nno-card\n\n## Target document\nrules/soak.md\n\n## Suggested document content\n### At one\n\n- "+text+"\n"), 0o644)
		if err == nil {
			err = os.Rename(tmp, filepath.Join(dir, "one.md"))
		}
	}
	if err != nil {
		b.t.Fatal(err)
	}
}

package schedule

import (
	"encoding/xml"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

var odd = Target{Exe: "/opt/my tools/mem", Workspace: "/home/u/a \"b\" 50% $HOME/ws's"}

func TestUnitsTellWhoMadeThem(t *testing.T) {
	j, _ := Find("review")
	for _, b := range []string{Systemd, Launchd} {
		for _, u := range Units(b, j, odd) {
			if !Made(u.Text) {
				t.Errorf("%s: not recognised:\n%s", u.Name, u.Text)
			}
			if Made("# above\n" + u.Text) {
				t.Errorf("%s: a line above is taken for ours", u.Name)
			}
			if Made(u.Text+"# mine\n") || Made(strings.Replace(u.Text, "mem", "men", 1)) {
				t.Errorf("%s: a changed unit is taken for ours", u.Name)
			}
		}
	}
}

// TestSystemdAccepts hands the units to systemd's own checker.
func TestSystemdAccepts(t *testing.T) {
	if _, err := exec.LookPath("systemd-analyze"); err != nil {
		t.Skip("systemd-analyze is not installed")
	}
	j, _ := Find("review")
	dir := t.TempDir()
	exe := filepath.Join(dir, "my mem")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, target := range []Target{{Exe: exe, Workspace: dir}, {Exe: exe, Workspace: odd.Workspace, SHA256: strings.Repeat("a", 64)}} {
		var files []string
		for _, u := range Units(Systemd, j, target) {
			name := filepath.Join(dir, u.Name)
			if err := os.WriteFile(name, []byte(u.Text), 0o644); err != nil {
				t.Fatal(err)
			}
			files = append(files, name)
		}
		cmd := exec.Command("systemd-analyze", append([]string{"verify", "--user"}, files...)...)
		cmd.Env = append(os.Environ(), "XDG_RUNTIME_DIR="+dir, "HOME="+dir)
		out, err := cmd.CombinedOutput()
		if strings.Contains(string(out), "Failed to connect") || strings.Contains(string(out), "initialize manager") {
			t.Skipf("systemd-analyze cannot work here: %s", out)
		}
		for _, line := range strings.Split(string(out), "\n") {
			if strings.Contains(line, "mem-review") {
				t.Errorf("%s", line)
			}
		}
		if err != nil && strings.Contains(string(out), "mem-review") {
			t.Errorf("%v\n%s", err, out)
		}
	}
}

func TestPlistIsXML(t *testing.T) {
	j, _ := Find("review")
	pinned := odd
	pinned.SHA256 = strings.Repeat("a", 64)
	for _, target := range []Target{odd, pinned} {
		d := xml.NewDecoder(strings.NewReader(Units(Launchd, j, target)[0].Text))
		for {
			if _, err := d.Token(); err != nil {
				if err.Error() != "EOF" {
					t.Fatal(err)
				}
				break
			}
		}
	}
}

// TestCronLineRuns: the shell that cron starts sees the words as they are.
func TestCronLineRuns(t *testing.T) {
	j, _ := Find("review")
	dir := t.TempDir()
	exe := filepath.Join(dir, "my mem")
	if err := os.WriteFile(exe, []byte("#!/bin/sh\nfor a; do printf '%s\\n' \"$a\"; done\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	text := Units(Cron, j, Target{Exe: exe, Workspace: odd.Workspace})[0].Text
	command := strings.ReplaceAll(strings.TrimPrefix(strings.TrimSpace(text), j.cron+" "), `\%`, "%")
	out, err := exec.Command("/bin/sh", "-c", command).CombinedOutput()
	if want := "--workspace\n" + odd.Workspace + "\nreview\n"; err != nil || string(out) != want {
		t.Errorf("%v: %q, want %q", err, out, want)
	}
}

func TestTwoWorkspacesCoexist(t *testing.T) {
	j, _ := Find("review")
	if Name(j, Target{Workspace: "/a"}) == Name(j, Target{Workspace: "/b"}) {
		t.Error("one name for two workspaces")
	}
}

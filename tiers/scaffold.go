package tiers

import (
	"embed"
	"io/fs"
	"path"
	"strings"
)

//go:embed all:scaffold
var scaffold embed.FS

// ScaffoldFile is one file of a new workspace.
type ScaffoldFile struct {
	Path string
	Text string
}

// Scaffold lists the files a new workspace of the layout starts with, dated
// day. The working buffer is not among them.
func (r Rules) Scaffold(day string) ([]ScaffoldFile, error) {
	root := path.Join("scaffold", r.Name)
	var out []ScaffoldFile
	err := fs.WalkDir(scaffold, root, func(p string, e fs.DirEntry, err error) error {
		if err != nil || e.IsDir() {
			return err
		}
		b, err := scaffold.ReadFile(p)
		if err != nil {
			return err
		}
		out = append(out, ScaffoldFile{strings.TrimPrefix(p, root+"/"), strings.ReplaceAll(string(b), "{date}", day)})
		return nil
	})
	return out, err
}

// ConfigTemplate is a new workspace's mem.yaml: every key but layout commented
// out, with the layout's own value.
func (r Rules) ConfigTemplate() string {
	v := r.values()
	var sb strings.Builder
	sb.WriteString("# mem's configuration. Every key is optional; what is commented out shows\n# the value in force. mem config lists them with where each came from.\nlayout: " + r.Name + "\n\n")
	sb.WriteString("# timezone: Europe/Berlin   # default: the system's\n")
	sb.WriteString("# note: \"" + r.Note + "\"\n")
	sb.WriteString("# single_host: false   # true: a network file system that only this host writes to\n")
	sb.WriteString("# limits: {hot_" + r.Hot.Unit + ": " + v["limits.hot_"+r.Hot.Unit] + ", buffer_lines: " + v["limits.buffer_lines"] + ", open_questions: " + v["limits.open_questions"] + "}\n")
	ttl := "# ttl: {"
	if r.TTL.Notes > 0 {
		ttl += "notes: " + v["ttl.notes"] + ", "
	}
	sb.WriteString(ttl + "lessons: " + v["ttl.lessons"] + ", verified: " + v["ttl.verified"] + ", abandoned_buffer: " + v["ttl.abandoned_buffer"] + ", processed: " + v["ttl.processed"] + "}\n")
	sb.WriteString("# tags: {infrastructure: [docker, ssh], projects: [audit]}   # replaces the vocabulary as a whole\n")
	sb.WriteString("\n# These run a program or reach outside the workspace; they count only after\n# mem trust, or in $XDG_CONFIG_HOME/mem/config.yaml.\n")
	sb.WriteString("# handoffs: {host: this-host, inboxes: [~/src/site/.claude/memory-handoffs], discover: [{root: ~/src, depth: 4, promote: all}]}\n")
	sb.WriteString("# projects: {root: memory_sessions}\n# extractor: [claude, -p, --model, haiku]\n# git: {commit: false}\n")
	return sb.String()
}

package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/alecthomas/kong"
)

type completionCmd struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`
}

func (*completionCmd) Help() string {
	return "  bash: source <(mem completion bash)\n  zsh:  mem completion zsh > \"${fpath[1]}/_mem\"\n  fish: mem completion fish > ~/.config/fish/completions/mem.fish"
}

func (c *completionCmd) Run(a *app) error {
	k, err := parser(&cli{}, commands(), a.env, func(int) {})
	if err != nil {
		return err
	}
	words := map[string][]word{}
	collect(k.Model.Node, "", words)
	switch c.Shell {
	case "fish":
		fmt.Fprint(a.env.stdout, fish(words))
	case "zsh":
		fmt.Fprint(a.env.stdout, "#compdef mem\n", zshHead, bash(words), "compdef _mem mem\n")
	default:
		fmt.Fprint(a.env.stdout, bash(words), "complete -F _mem mem\n")
	}
	return nil
}

// word is something that can be typed after a command path.
type word struct {
	text, help string
	file       bool   // a path is expected instead
	values     string // a flag's values
}

func collect(n *kong.Node, at string, words map[string][]word) {
	var list []word
	for _, ch := range n.Children {
		if ch.Hidden {
			continue
		}
		list = append(list, word{text: ch.Name, help: ch.Help})
		collect(ch, strings.TrimSpace(at+" "+ch.Name), words)
	}
	for _, flags := range n.AllFlags(true) {
		for _, f := range flags {
			list = append(list, word{text: "--" + f.Name, help: f.Help, values: strings.Join(f.EnumSlice(), " ")})
		}
	}
	for _, p := range n.Positional {
		if p.Enum != "" {
			for _, e := range p.EnumSlice() {
				list = append(list, word{text: e})
			}
		} else if p.Name == "file" || p.Name == "dir" {
			list = append(list, word{file: true})
		}
	}
	words[at] = list
}

func paths(words map[string][]word) []string {
	var out []string
	for p := range words {
		out = append(out, p)
	}
	slices.Sort(out)
	return out
}

const zshHead = "autoload -U bashcompinit && bashcompinit\n"

func bash(words map[string][]word) string {
	var sb strings.Builder
	sb.WriteString("_mem() {\n  local cur=\"${COMP_WORDS[COMP_CWORD]}\" prev=\"${COMP_WORDS[COMP_CWORD-1]}\" at=\"\" w i next\n" +
		"  _mem_words() { COMPREPLY=(); while IFS= read -r w; do COMPREPLY+=(\"$w\"); done < <(compgen \"$@\" -- \"$cur\"); }\n" +
		"  case \"$prev\" in\n    -w|--workspace) compopt -o filenames 2>/dev/null; _mem_words -d; return ;;\n    --at|--lock-wait|--limit|--older-than|--expect) COMPREPLY=(); return ;;\n")
	values := map[string]string{}
	for _, list := range words {
		for _, w := range list {
			if w.values != "" {
				values[w.text] = w.values
			}
		}
	}
	for _, f := range slices.Sorted(maps.Keys(values)) {
		fmt.Fprintf(&sb, "    %s) _mem_words -W \"%s\"; return ;;\n", f, values[f])
	}
	sb.WriteString("  esac\n  for ((i = 1; i < COMP_CWORD; i++)); do\n    case \"${COMP_WORDS[i-1]}\" in -w|--workspace|--at|--lock-wait|--log-level) continue ;; esac\n" +
		"    w=\"${COMP_WORDS[i]}\"\n    next=\"${at:+$at }$w\"\n    case \"$next\" in\n")
	var known []string
	for _, p := range paths(words) {
		if p != "" {
			known = append(known, "\""+p+"\"")
		}
	}
	sb.WriteString("      " + strings.Join(known, "|") + ") at=\"$next\" ;;\n    esac\n  done\n  case \"$at\" in\n")
	for _, p := range paths(words) {
		var list []string
		file := ""
		for _, w := range words[p] {
			if w.file {
				file = "if [[ $cur != -* ]]; then compopt -o filenames 2>/dev/null; _mem_words -f; return; fi; "
			} else {
				list = append(list, w.text)
			}
		}
		fmt.Fprintf(&sb, "    \"%s\") %s_mem_words -W \"%s\" ;;\n", p, file, strings.Join(list, " "))
	}
	sb.WriteString("  esac\n}\n")
	return sb.String()
}

func fish(words map[string][]word) string {
	var sb strings.Builder
	sb.WriteString("complete -c mem -f\n")
	for _, p := range paths(words) {
		cond := "__fish_use_subcommand"
		if p != "" {
			var parts []string
			for _, s := range strings.Fields(p) {
				parts = append(parts, "__fish_seen_subcommand_from "+s)
			}
			cond = strings.Join(parts, "; and ")
		}
		for _, w := range words[p] {
			help := strings.ReplaceAll(w.help, "'", "\\'")
			switch {
			case w.file:
				fmt.Fprintf(&sb, "complete -c mem -n '%s' -F\n", cond)
			case strings.HasPrefix(w.text, "--"):
				fmt.Fprintf(&sb, "complete -c mem -n '%s' -l %s -d '%s'\n", cond, w.text[2:], help)
			default:
				fmt.Fprintf(&sb, "complete -c mem -n '%s' -a %s -d '%s'\n", cond, w.text, help)
			}
		}
	}
	return sb.String()
}

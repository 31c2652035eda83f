package feedback

import _ "embed"

//go:embed texts/routine.md
var routine string

//go:embed texts/writing.md
var writing string

// Routine is the care of the memory for HEARTBEAT.md, which is loaded with
// heartbeats only.
func Routine() string { return routine }

// Writing are the rules of writing for AGENTS.md.
func Writing() string { return writing }

package tiers

import (
	"bytes"
	_ "embed"
	"flag"
	"fmt"
	"go/format"
	"os"
	"regexp"
	"testing"

	"go.yaml.in/yaml/v3"
)

//go:embed rules.yaml
var rulesYAML []byte

var update = flag.Bool("update", false, "write rules_gen.go anew from rules.yaml")

// TestRulesAreGenerated: rules.yaml is the one place for rules; rules_gen.go
// is it, as Go, because decoding YAML would double the start of every command.
func TestRulesAreGenerated(t *testing.T) {
	var f File
	d := yaml.NewDecoder(bytes.NewReader(rulesYAML))
	d.KnownFields(true)
	if err := d.Decode(&f); err != nil {
		t.Fatal(err)
	}
	lit := regexp.MustCompile(`\btiers\.`).ReplaceAllString(fmt.Sprintf("%#v", f), "")
	src := "// Code generated from rules.yaml by go test ./tiers -update; DO NOT EDIT.\n\npackage tiers\n\nvar rules = " + lit + "\n"
	want, err := format.Source([]byte(src))
	if err != nil {
		t.Fatal(err)
	}
	if *update {
		if err := os.WriteFile("rules_gen.go", want, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile("rules_gen.go")
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(got, want) {
		t.Error("rules_gen.go is not what rules.yaml says; run: go test ./tiers -update")
	}
}

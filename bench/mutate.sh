#!/bin/sh
# Mutation testing of durable, journal, buffer, handoff and archive. mutate.sh
# [FILE]: only files that match (a regular expression). gremlins finds the
# mutants; bench/mutants puts each before the tests that reach it (gremlins' own
# way of running them would build and run everything for each). MUTATE_RESULTS=FILE
# keeps the outcomes, for a second run on what lived.
set -eu
version=v0.6.0
here=$(cd "$(dirname "$0")/.." && pwd)
bin=$(go env GOPATH)/bin/gremlins-$version
tmp=$(mktemp -d)
trap 'rm -rf "$tmp"' EXIT
if [ ! -x "$bin" ]; then
	GOBIN=$tmp CGO_ENABLED=0 GOFLAGS= go install "github.com/go-gremlins/gremlins/cmd/gremlins@$version"
	mkdir -p "$(dirname "$bin")"
	mv "$tmp/gremlins" "$bin"
fi
case ${MUTATE_RESULTS:=} in /* | '') ;; *) MUTATE_RESULTS=$PWD/$MUTATE_RESULTS ;; esac
cd "$here"
skip=$(go list -f '{{.Dir}}' ./... | sed "s|^$here/*||" | grep -vxE '(durable|journal|buffer|handoff|archive)?' | paste -sd '|' -)
GOFLAGS="-run=^\$" "$bin" unleash . -i --dry-run --output "$tmp/mutants.json" -E "^($skip)/" > "$tmp/log" 2>&1 || {
	cat "$tmp/log" >&2
	exit 1
}
go run ./bench/mutants -file "${1:-}" -workers "${MUTATE_WORKERS:-2}" ${MUTATE_RESULTS:+-results "$MUTATE_RESULTS"} "$tmp/mutants.json"

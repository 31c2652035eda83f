#!/bin/sh
# gofmt, golangci-lint and the modules' state. golangci-lint is built from the
# module proxy at a fixed version, so that every machine has the same one.
set -eu
version=v2.15.0
unformatted=$(gofmt -l $(git ls-files '*.go'))
if [ -n "$unformatted" ]; then
	echo "gofmt would change: $unformatted" >&2
	exit 1
fi
bin=$(go env GOPATH)/bin/golangci-lint-$version
if [ ! -x "$bin" ]; then
	GOBIN=$(mktemp -d)
	export GOBIN
	CGO_ENABLED=0 GOFLAGS= go install github.com/golangci/golangci-lint/v2/cmd/golangci-lint@$version
	mkdir -p "$(dirname "$bin")"
	mv "$GOBIN/golangci-lint" "$bin"
fi
"$bin" run ./...
go mod verify >/dev/null
go mod tidy -diff

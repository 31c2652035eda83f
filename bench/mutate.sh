#!/bin/sh
# Mutation testing of durable, journal, buffer, handoff and archive, with
# gremlins. mutate.sh [FILE]: only files that match (a regular expression).
# Prints what lived, and the efficacy. The tests are those that are quick and
# look at these packages: golden traces, whole command lines, the state
# machine, crashes of ten scenarios, and the packages' own. What lived is then
# put before the scripts and more (go run ./bench/survivors).
set -eu
version=v0.6.0
out=${MUTATE_OUT:-mutants.json}
here=$(cd "$(dirname "$0")/.." && pwd)
bin=$(go env GOPATH)/bin/gremlins-$version
if [ ! -x "$bin" ]; then
	GOBIN=$(mktemp -d)
	export GOBIN
	CGO_ENABLED=0 GOFLAGS= go install "github.com/go-gremlins/gremlins/cmd/gremlins@$version"
	mkdir -p "$(dirname "$bin")"
	mv "$GOBIN/gremlins" "$bin"
	unset GOBIN
fi
# gremlins runs the tests of every package; these are the ones that look.
shim=$(mktemp -d)
trap 'rm -rf "$shim"' EXIT
cat > "$shim/go" <<SHIM
#!/bin/sh
for a do
	shift
	case \$a in ./...) set -- "\$@" ./durable ./buffer ./handoff ./entry ./cmd/mem ;; *) set -- "\$@" "\$a" ;; esac
done
exec "$(command -v go)" "\$@"
SHIM
chmod +x "$shim/go"
cd "$here"
skip=$(go list -f '{{.Dir}}' ./... | sed "s|^$here/*||" | grep -vxE '(durable|journal|buffer|handoff|archive)?' | paste -sd '|' -)
only=
if [ $# -gt 0 ]; then
	only=$(git ls-files '*.go' | grep -vE "$1" | sed 's/\./\\./g' | paste -sd '|' -)
fi
crashes='TestCrashesEverywhere/^exchange$/^(rotate|note|write_over_a_file|archive|take_one|accept|undo_a_rotation|undo_a_write|promote|recover_two_pending)$'
run="^Test[^C]|^TestClosed|$crashes"
skip_tests='^Test(Writers|Hands|Moves|Errors|Failing|Killed|Rotation|Soak|Ingests|Planted|EveryFsync|Scripts|MCP|Discovers|Adopt|FullDisk$)'
PATH="$shim:$PATH" GOFLAGS="-short -failfast -vet=off -trimpath -run=$run -skip=$skip_tests" \
	"$bin" unleash . -i --workers "${MUTATE_WORKERS:-2}" --timeout-coefficient 3 --output "$out" \
	--coverpkg "$(go list ./durable ./journal ./buffer ./handoff ./archive | paste -sd, -)" \
	-E "^($skip)/" ${only:+-E "^($only)\$"} -S l
go run ./bench/survivors "$out"

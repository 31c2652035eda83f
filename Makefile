# The two commands of the README are `make demo` and `make test`.
GO ?= go
export CGO_ENABLED ?= 0
DEMO ?= demo
PLATFORMS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: build demo test race crash power soak fulldisk fuzz bench lint vet cross clean

build:
	$(GO) build -trimpath -ldflags "-s -w" -o mem ./cmd/mem

# Builds mem, makes a workspace in ./demo, fills its working buffer with 90
# lines and rotates it. Ends with what happened.
demo: build
	./bench/demo.sh ./mem $(DEMO)

test:
	$(GO) test ./...

race:
	CGO_ENABLED=1 $(GO) test -race ./...

# Every scenario on every disk, with crashes nested CRASH_DEPTH deep in
# recovery, and kills at every operation beside every writer.
CRASH_DEPTH ?= 2
crash:
	$(GO) test ./cmd/mem -run 'TestCrashes|TestWriters|TestEvery|TestPlanted' -count=1 -timeout 8h -v -args -crash.depth $(CRASH_DEPTH)

# Needs root, loop devices, mkfs.ext4 and mkfs.xfs: real file systems, shut down
# before every operation of rotate, ingest, archive, review and record.
power:
	$(GO) test ./cmd/mem -tags power -run TestPowerCuts -count=1 -timeout 2h -v

# Eight writers for SOAK, half of mem's runs killed; every line accounted for.
SOAK ?= 5m
soak:
	$(GO) test ./cmd/mem -run TestSoak -count=1 -timeout 10h -v -args -soak $(SOAK)

# Needs root: a real full disk.
fulldisk:
	$(GO) test ./cmd/mem -run TestFullDisk -count=1 -v

FUZZTIME ?= 30s
fuzz:
	$(GO) test ./entry -run '^$$' -fuzz FuzzBuffer -fuzztime $(FUZZTIME)
	$(GO) test ./entry -run '^$$' -fuzz FuzzPlace -fuzztime $(FUZZTIME)
	$(GO) test ./entry -run '^$$' -fuzz FuzzRest -fuzztime $(FUZZTIME)
	$(GO) test ./entry -run '^$$' -fuzz FuzzParseLessons -fuzztime $(FUZZTIME)
	$(GO) test ./handoff -run '^$$' -fuzz FuzzParse -fuzztime $(FUZZTIME)
	$(GO) test ./handoff -run '^$$' -fuzz FuzzJudge -fuzztime $(FUZZTIME)
	$(GO) test ./session -run '^$$' -fuzz FuzzLast -fuzztime $(FUZZTIME)
	$(GO) test ./session -run '^$$' -fuzz FuzzAnswer -fuzztime $(FUZZTIME)
	$(GO) test ./entry -run '^$$' -fuzz FuzzSessionLog -fuzztime $(FUZZTIME)
	$(GO) test ./search -run '^$$' -fuzz FuzzSearch -fuzztime $(FUZZTIME)
	$(GO) test ./hooks -run '^$$' -fuzz FuzzSettings -fuzztime $(FUZZTIME)
	$(GO) test ./guard -run '^$$' -fuzz FuzzQuickLook -fuzztime $(FUZZTIME)
	$(GO) test ./tiers -run '^$$' -fuzz FuzzConfig -fuzztime $(FUZZTIME)
	$(GO) test ./plan -run '^$$' -fuzz FuzzDecode -fuzztime $(FUZZTIME)

bench: build
	$(GO) run ./bench -mem ./mem

vet:
	$(GO) vet ./...

lint:
	./bench/lint.sh

cross:
	@set -e; for p in $(PLATFORMS); do echo "build $$p"; GOOS=$${p%/*} GOARCH=$${p#*/} $(GO) build -trimpath -o /dev/null ./cmd/mem; done

clean:
	rm -rf mem $(DEMO)

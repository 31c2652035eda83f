# The two commands of the README are `make demo` and `make test`.
GO ?= go
export CGO_ENABLED ?= 0
DEMO ?= demo
PLATFORMS = linux/amd64 linux/arm64 darwin/amd64 darwin/arm64 windows/amd64 windows/arm64

.PHONY: build demo test race crash power soak faults machine fulldisk fuzz mutate bench lint vet cross clean

build:
	$(GO) build -trimpath -ldflags "-s -w" -o mem ./cmd/mem

# Builds mem, makes a workspace in ./demo, fills its working buffer with 90
# lines and rotates it. Ends with what happened.
demo: build
	./bench/demo.sh ./mem $(DEMO)

test:
	$(GO) test -timeout 20m ./...

race:
	CGO_ENABLED=1 $(GO) test -race -timeout 20m ./...

# The targets below prove, and take minutes; each has a small part in the tests.

# Every writing command on every kind of disk, crashed in every way, with the
# recovery crashed CRASH_DEPTH deep; of each level CRASH_WIDTH states (0: all of
# them, which takes hours and gigabytes); and kills at every operation beside
# every writer that ignores the lock. Ends with the counts.
CRASH_DEPTH ?= 3
CRASH_WIDTH ?= 10
crash:
	@$(GO) test ./cmd/mem -run 'TestCrashes|TestWriters|TestPlanted|TestEveryFsync' -count=1 -timeout 8h -v -args \
		-crash.depth $(CRASH_DEPTH) -crash.width $(CRASH_WIDTH) -crash.report "$(CURDIR)/crash-report.txt"; \
	code=$$?; cat crash-report.txt; rm -f crash-report.txt; exit $$code

# Needs root, and for each file system its tools: real ones (ext4, XFS), shut
# down before every operation of rotate, ingest, archive, review, record and
# more; ones without exchange or links (bindfs, exFAT); a full ext4, as another
# user. What is missing is skipped, and said.
power:
	$(GO) test ./cmd/mem -tags power -run 'TestPowerCuts|TestOtherFileSystems|TestFullExt4' -count=1 -timeout 2h -v

# Eight writers for SOAK, half of mem's runs killed; every line accounted for.
SOAK ?= 5m
soak:
	$(GO) test ./cmd/mem -run TestSoak -count=1 -timeout 10h -v -args -soak $(SOAK)

# Every file call failing in every way, through the seam; and a sample of system
# calls on the real program, through strace.
faults:
	$(GO) test ./cmd/mem -run 'TestErrorsAtEveryCall|TestFailingSystemCalls' -count=1 -timeout 4h -v -args -faults.all

# CHECKS runs of fifty steps of the state machine, and the bugs planted for it.
CHECKS ?= 10000
machine:
	$(GO) test ./cmd/mem -run 'TestMachine' -count=1 -timeout 8h -v -args -rapid.checks=$(CHECKS) -rapid.seed=0

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

# Mutation testing of durable, journal, buffer, handoff and archive: what lived,
# and the efficacy. FILE=... takes only files that match.
FILE ?=
mutate:
	./bench/mutate.sh '$(FILE)'

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

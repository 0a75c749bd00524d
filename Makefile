# The commands of the project. `make` lists them. They need Go and make; race
# needs a C compiler as well. Nothing is installed: tools are built from
# internal/dev/tools into bin/tools.

GO       ?= go
FUZZTIME ?= 5s
FUZZMODE ?= guided
BENCH    ?= .
COUNT    ?= 5
BENCHTIME ?= 0.5s
ROUNDS   ?= 60
PEERS    ?=
TIMEOUT  ?= 20m
# Tests of one package more than there are processors: many wait for processes.
JOBS     ?= $(shell expr `getconf _NPROCESSORS_ONLN` + 1)
TARGETS  ?= linux/amd64 linux/arm64 darwin/amd64 darwin/arm64
PREFIX   ?= /usr/local
OUT      ?= bin/rlp
DIST     ?= dist
HOST      = $(shell $(GO) env GOHOSTOS)/$(shell $(GO) env GOHOSTARCH)

# Go needs somewhere to keep what it downloads and builds.
ifeq ($(strip $(HOME)),)
export HOME := $(CURDIR)/.work/home
endif

# Where git cannot say what is checked out (none yet, another owner, no git),
# a build carries no revision instead of failing.
ifneq ($(shell git log -1 --format=ok 2>/dev/null),ok)
export GOFLAGS := $(strip $(shell $(GO) env GOFLAGS) -buildvcs=false)
endif

AGENTS := $(filter-out agents/sdk,$(patsubst %/,%,$(wildcard agents/*/)))
TOOLS  := bin/tools
# Go files that are part of the project, for the formatter.
GOFILES = $(shell find . -name '*.go' -not -path './.*' -not -path './bin/*' -not -path '*/testdata/*')
# Every check but those that ask for a form of comment which docs do not need.
STATICCHECK := $(TOOLS)/staticcheck -checks all,-ST1000,-ST1020,-ST1021,-ST1022

.PHONY: help
help: ## list the commands
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

# bin/rlp is what `go build ./cmd/rlp` makes. On Linux bin/rlp-confine beside it
# confines what agents start: it comes before each program, and starts in a tenth
# of the time. Without it rlp does that itself.
BUILD := CGO_ENABLED=0 $(GO) build -trimpath -ldflags='-s -w'
.PHONY: build
build: program ## bin/rlp, and what confines programs beside it

# program builds OUT for GOOS and GOARCH. What was written in pieces of 2 MiB lies
# in large pages, and starts with a quarter of the page faults less than what the
# linker wrote page by page.
.PHONY: program
program:
	@mkdir -p $(dir $(OUT))
	$(BUILD) -o $(OUT) ./cmd/rlp
	@dd if=$(OUT) of=$(OUT).whole bs=2097152 2>/dev/null && chmod 755 $(OUT).whole && mv $(OUT).whole $(OUT)
ifeq ($(or $(GOOS),$(shell $(GO) env GOOS)),linux)
	$(BUILD) -o $(dir $(OUT))rlp-confine ./internal/effect/lane/confined
endif

# What is released is the same bytes wherever it is built: nothing of the
# builder's settings, of git or of the clock is in it.
REPRODUCIBLE := GOFLAGS=-buildvcs=false GOAMD64=v1 GOARM64=v8.0 GOEXPERIMENT= GO111MODULE= GOWORK=off
.PHONY: dist
dist: ## dist/: an archive and an SBOM for each of TARGETS, and SHA256SUMS
	@rm -rf $(DIST) .work/dist && mkdir -p $(DIST)
	@set -e; for t in $(TARGETS); do \
		$(MAKE) --no-print-directory program $(REPRODUCIBLE) GOOS=$${t%/*} GOARCH=$${t#*/} OUT=.work/dist/$$t/rlp; \
	done
	GOOS= GOARCH= $(GO) run ./internal/dev/dist archives .work/dist $(DIST)

.PHONY: dist-twice
dist-twice: ## build what is released for this system in two folders, and compare (ALONE=1: with a build cache of its own)
	@rm -rf .work/twice && mkdir -p .work/twice/one .work/twice/a/longer/name
	@set -e; for d in one a/longer/name; do \
		git ls-files -z | xargs -0 tar -cf - | tar -xf - -C .work/twice/$$d; \
		$(if $(ALONE),export GOCACHE=$(CURDIR)/.work/twice/cache;) \
		$(MAKE) --no-print-directory -C .work/twice/$$d dist TARGETS=$(HOST); rm -rf .work/twice/cache; \
	done
	cmp .work/twice/one/dist/SHA256SUMS .work/twice/a/longer/name/dist/SHA256SUMS
	cat .work/twice/one/dist/SHA256SUMS

.PHONY: install
install: ## the program, manual, completions and units beneath DESTDIR/PREFIX (PREFIX=/usr/local)
	$(MAKE) --no-print-directory program $(REPRODUCIBLE) OUT=.work/dist/$(HOST)/rlp
	GOOS= GOARCH= $(GO) run ./internal/dev/dist install .work/dist '$(or $(DESTDIR),/)' '$(PREFIX)'

.PHONY: agents
agents: build ## the sample agents, each into its agent.bundle
	@set -e; for a in $(AGENTS); do echo "bin/rlp agent build $$a"; bin/rlp agent build $$a; done

.PHONY: notes
notes: export RUNLOOP_HOME := $(CURDIR)/.work/notes-home
notes: build ## launch an agent on testdata/notes, see what it wrote and what was recorded, and verify that
	bin/rlp agent build agents/notes_digest
	@rm -rf .work/notes-home .work/out && mkdir -p .work/out
	bin/rlp launch agents/notes_digest --param notes=testdata/notes --param out=.work/out
	cat .work/out/digest.md
	bin/rlp audit list
	bin/rlp audit verify

.PHONY: demo
demo: agents ## run every agent with a mail server and a model server on loopback, and show what was allowed and denied
	@mkdir -p .work
	$(GO) run ./internal/dev/demo bin/rlp .work/demo

.PHONY: setup
setup: ## install what tests use beside Go and make (as root; otherwise it says what is missing)
	.ci/setup

# Test programs are linked without what a debugger reads: there are eighty.
.PHONY: test
test: setup ## vet and every test
	$(GO) vet ./...
	$(GO) test -vet=off -ldflags=-w -p $(JOBS) -timeout $(TIMEOUT) ./...

.PHONY: check
check: fmt-check vet lint dead laws ## format, vet, linters, dead code, the laws of the architecture

.PHONY: fmt
fmt: $(TOOLS)/.built ## rewrite every file as the formatter wants it
	$(TOOLS)/gofumpt -w $(GOFILES)

.PHONY: fmt-check
fmt-check: $(TOOLS)/.built
	@out=$$($(TOOLS)/gofumpt -l $(GOFILES)); if [ -n "$$out" ]; then echo "make fmt would change:"; echo "$$out"; exit 1; fi

.PHONY: vet
vet:
	$(GO) vet ./...
	GOOS=wasip1 GOARCH=wasm $(GO) build ./agents/...
	cd internal/dev/tools && $(GO) vet ./...

.PHONY: lint
lint: $(TOOLS)/.built
	$(STATICCHECK) ./...
	GOOS=wasip1 GOARCH=wasm $(STATICCHECK) -tests=false ./agents/...

# Code that neither the program nor a test reaches, on the host or in a guest.
.PHONY: dead
dead: $(TOOLS)/.built
	@out=$$($(TOOLS)/deadcode -test ./...); if [ -n "$$out" ]; then echo "nothing reaches:"; echo "$$out"; exit 1; fi

.PHONY: laws
laws:
	$(GO) test -count=1 ./internal/dev/archtest ./internal/dev/conformance
	cd internal/dev/tools && $(GO) test ./...

.PHONY: conformance
conformance: ## write docs/conformance.md from what the tests say they hold
	$(GO) run ./internal/dev/conformance

.PHONY: sizes
sizes: ## write how large each package is into ARCHITECTURE.md
	$(GO) run ./internal/dev/archtest/sizes -w

.PHONY: screenshots
screenshots: ## take the pictures of docs/console.md again (needs chromium)
	mkdir -p docs/console
	RLP_SCREENSHOTS=$(CURDIR)/docs/console $(GO) test -count=1 -run '^TestScreenshots$$' ./internal/serve/console

# The engine's compiler is one goroutine's work and twenty times slower under the
# detector: it is left out. What calls a guest and what a guest calls is not, nor
# wazevoapi: generic code of sync that is compiled there serves the whole program.
RACE := GORACE=atexit_sleep_ms=0 CGO_ENABLED=1 $(GO) test -race -ldflags=-w \
	-gcflags=github.com/tetratelabs/wazero/internal/engine/wazevo/ssa=-race=false \
	-gcflags=github.com/tetratelabs/wazero/internal/engine/wazevo/frontend=-race=false \
	-gcflags=github.com/tetratelabs/wazero/internal/engine/wazevo/backend/...=-race=false

.PHONY: race
race: ## the tests of what is concurrent under the race detector, of scripts those with something to race (needs a C compiler; all of them: make soak)
	$(RACE) -short -p $(JOBS) -timeout $(TIMEOUT) $$(.ci/concurrent)

.PHONY: fuzz
fuzz: ## every fuzz target for FUZZTIME=5s (FUZZMODE=blind: without compiling all for coverage)
	.ci/fuzz $(FUZZTIME) $(FUZZMODE)

# A guard's test is worth what it notices: 90 % of all small changes in what
# decides, 80 % in what enforces. What no test can notice is explained.
DECIDES  := ./caps ./caps/policy ./hostcalls/gate
ENFORCES := ./hostcalls ./internal/effect/jail ./internal/effect/wasi ./internal/effect/egress ./secrets ./internal/serve/access ./launcher/run
MUTANTS   = cd internal/dev/tools && $(GO) build -o ../../../.work/mutants ./mutants && cd ../../.. && .work/mutants -explained internal/dev/tools/mutants/explained.tsv
.PHONY: mutants
mutants: ## change the source of the guards in thousands of small ways, one at a time, and name what no test notices (an hour)
	@mkdir -p .work
	$(MUTANTS) -target 90 -also ./launcher/run $(DECIDES)
	$(MUTANTS) -target 80 -also ./hostcalls/gate $(ENFORCES)

.PHONY: soak
soak: ## the long forms: a million requests, a thousand kills, ten thousand launches (RLP_SOAK=1), every test under the race detector
	RLP_SOAK=1 $(GO) test -count=1 -timeout 3h ./...
	$(RACE) -count=1 -timeout 3h ./...
	.ci/newcomer || [ "$$(id -u)" -ne 0 ]

.PHONY: newcomer
newcomer: ## README.md and docs/start.md as a user pastes them in an empty Debian (as root; a part of soak)
	.ci/newcomer

# Peers are compared with where they are installed; PEERS=1 (or PEERS=deno,node)
# fetches those that come from the npm registry.
.PHONY: bench
bench: build ## one table: rlp, the engine alone, and what else is there (ROUNDS=60, PEERS=1, JSON=1)
	@mkdir -p .work
	cd internal/dev/tools && $(GO) build -o ../../../.work/bench-table ./bench
	@.work/bench-table -rounds $(ROUNDS) -peers '$(PEERS)' $(if $(JSON),-json)

.PHONY: bench-serve
bench-serve: build ## rlp serve under load: against a launch in process, 1,000 requests at once, 50 followers, beside runs that end badly (ROUNDS=60, JSON=1)
	@mkdir -p .work
	cd internal/dev/tools && $(GO) build -o ../../../.work/bench-table ./bench
	@.work/bench-table -serve -rounds $(ROUNDS) $(if $(JSON),-json)

# Go makes every binary first and then runs one at a time. With TESTS they are there,
# and nothing is judged but that each benchmark works.
BENCHMARKS = $(if $(TESTS),.ci/benchmarks $(TESTS),$(GO) test -vet=off -ldflags=-w -run '^$$' -bench '$(value BENCH)' -benchmem \
	-benchtime $(BENCHTIME) -count $(COUNT) -timeout 3h $$(.ci/having Benchmark | cut -d' ' -f1 | sort -u))
.PHONY: bench-go
bench-go: $(TOOLS)/.built ## every benchmark, summed up, and the ratios that are promised (BENCH=, COUNT=, BENCHTIME=)
	@mkdir -p .work
	$(BENCHMARKS) >.work/bench.txt || { cat .work/bench.txt; exit 1; }
	$(TOOLS)/benchstat .work/bench.txt
	$(TOOLS)/ratio <.work/bench.txt

.PHONY: cross
cross: ## compile for every system of TARGETS but this one
	@set -e; for t in $(filter-out $(HOST),$(TARGETS)); do \
		echo "$$t"; GOOS=$${t%/*} GOARCH=$${t#*/} $(BUILD) -o /dev/null ./cmd/rlp; \
	done

.PHONY: clean
clean: ## remove what make builds
	@if [ -d .work ]; then chmod -R u+w .work; fi # a module cache is read-only
	rm -rf bin dist .work agents/*/agent.bundle

# The tools are built again when their versions change.
$(TOOLS)/.built: internal/dev/tools/go.mod internal/dev/tools/go.sum $(wildcard internal/dev/tools/*/*)
	@mkdir -p $(TOOLS)
	cd internal/dev/tools && $(GO) build -o ../../../$(TOOLS)/ tool
	@touch $@

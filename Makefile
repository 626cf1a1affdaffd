# A target with a `##` comment is public and shown by `make help`. Nothing here needs preparation: tools are Go modules of
# their own under hack/tools, and the go command builds them when they are first needed.

SHELL := bash
.SHELLFLAGS := -euo pipefail -c
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

GO ?= go
ifeq ($(shell command -v $(GO)),)
$(error $(GO) is not on PATH; install Go 1.26 or later)
endif

# VERSION is what `manager --version` says.
VERSION ?= $(shell git describe --tags --always --dirty 2>/dev/null || echo dev)

# ALLOWED_CONTEXTS are the kubeconfig contexts that `make run` may touch, separated by spaces. A local cluster's is "local".
ALLOWED_CONTEXTS ?= local

# Flags of go test. Packages that need a control plane are those under test and controllers; each of them starts one, hence
# one at a time.
UNIT_FLAGS ?= -race
SUITE_FLAGS ?= -race -count=1 -p=1 -timeout=45m
SUITES := /(controllers|test)(/|$$)

# FUZZ_TIME is how long `make fuzz` tries each test.
FUZZ_TIME ?= 1m

# OLDEST_KUBERNETES is the oldest minor version that the operator supports.
OLDEST_KUBERNETES := 1.34

TOOL := $(GO) tool -modfile=hack/tools/go.mod
LINTER := $(GO) tool -modfile=hack/tools/lint/go.mod golangci-lint-kube-api-linter

.PHONY: help
help: ## Show the targets.
	@awk -F ':.*## ' '/^##@/ {printf "\n%s\n", substr($$0, 5)} /^[a-z][a-z-]*:.*## / {printf "  %-12s %s\n", $$1, $$2}' Makefile

##@ Develop

.PHONY: generate
generate: ## Write everything that is made from the Go types and markers.
	@$(TOOL) controller-gen object crd applyconfiguration paths=./api/v1alpha1 output:crd:dir=config/crd/bases
	@$(TOOL) controller-gen rbac:roleName=gpupool-manager paths=./controllers output:rbac:dir=config/rbac
	@$(TOOL) crd-ref-docs --source-path=api/v1alpha1 --config=hack/docs/config.yaml --templates-dir=hack/docs/templates \
		--renderer=markdown --output-path=api/v1alpha1/REFERENCE.md --log-level=ERROR

.PHONY: goldens
goldens: ## Write the golden files of the tests anew; read the diff.
	@packages=$$(grep -rl --include='*_test.go' 'Bool("update"' internal | xargs -n 1 dirname | sort -u | sed 's,^,./,'); \
	$(GO) test $$packages -update

.PHONY: fmt
fmt: bin/.linter ## Format the Go code.
	@$(LINTER) fmt

.PHONY: tidy
tidy: ## Tidy the go.mod of every module.
	@hack/modules.sh go mod tidy

.PHONY: build
build: ## Build bin/manager.
	@$(GO) build -trimpath -ldflags '-X main.version=$(VERSION)' -o bin/manager ./cmd/manager

.PHONY: clean
clean: ## Remove what was built here; caches stay.
	@rm -rf bin dist

##@ Run

.PHONY: cluster
cluster: ## Run a local Kubernetes with simulated nodes until Ctrl-C.
	@$(GO) run ./test/cluster/localkube

.PHONY: demo
demo: ## Show the operator at work on a local cluster.
	@$(GO) run ./test/demo

.PHONY: run
run: ## Run the manager here, against the cluster of KUBECONFIG; its context must be in ALLOWED_CONTEXTS.
	@hack/check-context.sh $(ALLOWED_CONTEXTS)
	@$(GO) run -ldflags '-X main.version=$(VERSION)' ./cmd/manager --leader-elect=false

##@ Check

.PHONY: lint
lint: bin/.linter ## Find mistakes in the code and in the API types.
	@failed=0; \
	$(LINTER) run || failed=1; \
	$(LINTER) run --config .golangci-kal.yml ./api/v1alpha1 || failed=1; \
	exit $$failed

.PHONY: lint-fix
lint-fix: bin/.linter ## Mend what the linter can mend by itself.
	@$(LINTER) run --fix

.PHONY: test-unit
test-unit: ## Run the tests that need no cluster.
	@packages=$$($(GO) list ./... | grep -Ev '$(SUITES)'); \
	$(GO) test $(UNIT_FLAGS) $$packages

.PHONY: test-suites
test-suites: ## Run the tests that need a cluster; the first run builds its programs, for about 15 minutes.
	@[ -n "$${TEST_KUBECONFIG:-}" ] || $(GO) run ./test/cluster/localkube --build-only
	@packages=$$($(GO) list ./... | grep -E '$(SUITES)'); \
	$(GO) test $(SUITE_FLAGS) $$packages

.PHONY: test
test: test-unit test-suites ## Run all tests.

.PHONY: fuzz
fuzz: ## Fuzz the making of selectors, FUZZ_TIME (1m) for each test.
	@$(GO) test ./internal/selector -run '^$$' -fuzz '^FuzzStringMatches$$' -fuzztime $(FUZZ_TIME)
	@$(GO) test ./internal/plan -run '^$$' -fuzz '^FuzzSelection$$' -fuzztime $(FUZZ_TIME)

.PHONY: matrix-api
matrix-api: ## Prove that the oldest supported API server accepts all that we send, and write docs/matrix-api.md.
	@$(GO) run ./test/cluster/localkube --build-only --kubernetes $(OLDEST_KUBERNETES)
	@MATRIX_KUBERNETES=$(OLDEST_KUBERNETES) MATRIX_REPORT=$(CURDIR)/docs/matrix-api.md $(GO) test $(SUITE_FLAGS) ./test/matrix

.PHONY: verify
verify: ## Check that everything generated is up to date and committed or staged, and that all linters pass.
	@hack/verify.sh

# The go command keeps the linter in its build cache. This file only remembers that it is there.
bin/.linter: hack/tools/lint/go.mod
	@echo 'Building the linter (about 4 minutes, unless it is in the build cache)'
	@$(LINTER) version
	@mkdir -p bin && touch $@

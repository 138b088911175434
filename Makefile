# Foldline. Everything is a target here, and CI calls nothing else.
#
#   make run       start the whole line on ./data with the sample flights; Ctrl-C stops it
#   make test      all Go tests with the race detector; without it, heads at depth 997 are as cheap as at 7
#   make lint      formatting, vet and the linters of .golangci.yml
#   make interop   LanceDB (Node) and pylance (Python) read and write the tables that we write
#   make s3        the store and the line on versitygw, an S3 server as a process of its own, which is killed too
#   make generate  Go code from the .proto files (needs protoc)
#   make disk      the log on a small tmpfs that fills up (needs root or user namespaces)
#   make fuzz      every fuzz target for FUZZTIME (default 20s, or a count such as 2000x) each; FUZZSEED=n repeats a run
#   make bench     acks, pipeline, publish, S3 and reopen beside their peers, into bench/results/summary.jsonl
#   make bench-space disk use of the log after releases of 10 GB, into the same file
#   make bench-heads heads at depths of up to 99,991 publishes, counted and timed, into the same file and bench/results/heads.md
#   make bench-files data files beside pylance (needs Python 3 with venv), into the same file
#   make bench-tables merges into a table beside pylance, and what a commit and an open ask of a store (needs the same, and Linux)
#   make microbench the benchmarks beside the code
#   make fmt       gofmt
#   make clean     remove ./build and ./data
#
# A machine with Go alone can `make run` and `make test`; the modules are fetched by the go command.

GO       ?= go
FUZZTIME ?= 20s
FUZZSEED ?=
TOOL     := $(GO) tool -modfile=tools/go.mod
BIN      := $(CURDIR)/build/bin

.DEFAULT_GOAL := help
.PHONY: help run test lint interop s3 generate disk fuzz bench bench-heads bench-files bench-tables bench-space microbench fmt clean

help:
	@sed -n '2,/^$$/s/^# \{0,1\}//p' Makefile

# Built and started, not `go run`: that one turns a clean end by Ctrl-C into a failure.
run:
	@mkdir -p $(BIN)
	$(GO) build -o $(BIN)/foldline ./cmd/foldline
	@exec $(BIN)/foldline dev --data data --sample

test:
	$(GO) test -race -timeout 20m ./...
	$(GO) test -run 'Flat' ./bench

lint:
	@unformatted=$$(gofmt -l $$(git ls-files '*.go')); \
		[ -z "$$unformatted" ] || { echo "run make fmt:"; echo "$$unformatted"; exit 1; }
	$(GO) vet ./...
	$(TOOL) golangci-lint run --allow-parallel-runners ./...

interop:
	./interop/run.sh

# The server is built from its own module, so that what it needs is not in ours. Its first build takes a minute.
s3:
	mkdir -p $(BIN)
	$(GO) build -C tools/versitygw -o $(BIN)/versitygw github.com/versity/versitygw/cmd/versitygw
	VERSITYGW=$(BIN)/versitygw $(GO) test -count=1 -tags interop -timeout 10m ./objstore/s3store
	VERSITYGW=$(BIN)/versitygw $(GO) test -count=1 -tags interop -timeout 10m -run OnS3 ./cmd/internal/e2e

generate:
	@command -v protoc >/dev/null || { echo "install protoc (Debian: protobuf-compiler)"; exit 1; }
	mkdir -p $(BIN)
	$(GO) build -modfile=tools/go.mod -o $(BIN)/ google.golang.org/protobuf/cmd/protoc-gen-go
	PATH=$(BIN):$$PATH $(GO) generate ./...

disk:
	$(GO) test -count=1 -tags tmpfs -run DiskFills -v ./wal

# With a seed: one worker and no inputs of earlier runs, so that a seed and a count give the same inputs again.
fuzz:
	@set -e; [ -z "$(FUZZSEED)" ] || { export GODEBUG=fuzzseed=$(FUZZSEED); $(GO) clean -fuzzcache; }; \
	files=$$(git grep -l '^func Fuzz' -- '*_test.go'); for file in $$files; do \
		for target in $$(sed -n 's/^func \(Fuzz[A-Za-z0-9_]*\)(.*/\1/p' "$$file"); do \
			echo "== $$target in ./$$(dirname "$$file")"; \
			$(GO) test -run '^$$' -fuzz "^$$target\$$" -fuzztime $(FUZZTIME) $(if $(FUZZSEED),-parallel 1) "./$$(dirname "$$file")"; \
		done; \
	done

bench:
	$(GO) run ./bench/cmd/bench

bench-space:
	$(GO) run ./bench/cmd/bench --space

# Depth is built in memory, if there is a file system for it; every window is measured on disk.
bench-heads:
	build=$$(mktemp -d -p "$$([ -d /dev/shm ] && echo /dev/shm || echo /tmp)" foldline-heads.XXXXXX) && trap 'rm -rf "$$build"' EXIT && \
		$(GO) run ./bench/cmd/heads --build "$$build"

bench-files:
	./interop/install.sh python
	mkdir -p $(BIN)
	$(GO) build -o $(BIN)/ ./lance/internal/cmd/filepeer
	. ./interop/versions.env; $(GO) run ./bench/cmd/files --python "build/interop/pylance-$$PYLANCE_NEWEST/bin/python"

bench-tables:
	./interop/install.sh python
	mkdir -p $(BIN)
	$(GO) build -o $(BIN)/ ./bench/cmd/tablepeer
	. ./interop/versions.env; dir=$$(mktemp -d /dev/shm/foldline-bench.XXXXXX) && trap 'rm -rf "$$dir"' EXIT; \
		$(GO) run ./bench/cmd/tables --dir "$$dir/tables" --python "build/interop/pylance-$$PYLANCE_NEWEST/bin/python"

microbench:
	$(GO) test -run '^$$' -bench . -benchmem ./...

fmt:
	gofmt -w $$(git ls-files '*.go')

clean:
	rm -rf build data

# The two commands: `make run` and `make test`. Both set up whatever they need, on a machine with Python only.
# Everything they install stays in .venv/ and .setup/.
.DELETE_ON_ERROR:
.PHONY: all run test test-root test-deep check format bench clean help

# Some machines forbid bytecode; each of the hundreds of processes that the tests start would compile everything anew.
unexport PYTHONDONTWRITEBYTECODE

BIN := .venv/bin
RUN_READY := .venv/.ready-run
DEV_READY := .venv/.ready-dev
NODE_READY := .setup/.ready-node
CHARTS_READY := .setup/charts/.ready
SRC := src tests build_support $(wildcard bench examples)

help:           ## what there is
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## */\t/' | expand -t 12

all: check test     ## everything that needs no root

run: $(RUN_READY)   ## the example: a refund tool on SQLite, beside a payment provider; Ctrl-C stops both
	@exec $(BIN)/python build_support/run_example.py

test: $(DEV_READY) $(NODE_READY) $(CHARTS_READY)    ## all tests but those that need root
	@sh build_support/tests.sh

test-root: $(DEV_READY)     ## the tests that need root: a full disk, a power cut
	$(BIN)/python -m pytest -q -m needs_root tests

test-deep: $(DEV_READY)     ## a crash or a fault at every place, not at a sample of them: half an hour
	ONEFOLD_DEEP=1 $(BIN)/python -m pytest -q -m "not needs_root" --timeout=1800 tests/store tests/guarantees

check: $(DEV_READY)     ## format, lint, types, floors, house rules
	$(BIN)/ruff format --check --quiet $(SRC) || { echo "Not formatted; run: make format"; exit 1; }
	$(BIN)/ruff check --quiet $(SRC)
	$(BIN)/mypy src tests build_support $(wildcard examples)
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q -m "not needs_root and not needs_node" tests/house

format: $(DEV_READY)    ## mend what the formatter and the linter can
	$(BIN)/ruff format --quiet $(SRC)
	$(BIN)/ruff check --fix --quiet $(SRC)

bench: $(DEV_READY) $(NODE_READY)   ## Onefold beside its peers; writes bench/RESULTS.md
	$(BIN)/python -m bench

clean:          ## take away all that make set up
	rm -rf .venv .setup .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache

# One at a time: both write .venv.
$(RUN_READY): pyproject.toml constraints.txt build_support/venv.sh
	@sh build_support/venv.sh run
	@touch $@

$(DEV_READY): $(RUN_READY)
	@sh build_support/venv.sh dev
	@touch $@

# The public suites of state charts, fetched as packages.
$(CHARTS_READY): $(NODE_READY) tests/machine/fetch.sh
	@sh tests/machine/fetch.sh
	@touch $@

$(NODE_READY): $(RUN_READY) build_support/node.sh build_support/node/package.json
	@sh build_support/node.sh
	@touch $@

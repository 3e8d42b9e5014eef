# The whole developer manual. `make demo` and `make test` set up all they need, from nothing but Python 3.11 or newer.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
PYTEST := $(BIN)/python -m pytest

# Real data for benchmarks and a few tests: a folder the user names, or the one beside this project if it is there.
ifeq ($(SIMTREE_DATA),)
ifneq ($(wildcard ../shared/data),)
export SIMTREE_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: help demo test check format lint types unit kernels oldest bench bench-quick bench-tree clean

help:             ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/demo.stamp    ## learn a similarity on digits, compare it with LightGBM, draw two pictures into demo/
	$(BIN)/python examples/demo.py --out demo

test: $(VENV)/test.stamp lint types unit kernels    ## everything that is checked before a change lands

check: format test    ## what a contributor runs: format, lint, types, tests

format: $(VENV)/test.stamp    ## rewrite the sources in the common format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

lint: $(VENV)/test.stamp    ## format and style, without changing anything
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

types: $(VENV)/test.stamp    ## static types of the package
	$(BIN)/mypy

unit: $(VENV)/test.stamp    ## all tests and examples of the docs, on two processes
	$(PYTEST) -n 2

kernels: $(VENV)/test.stamp    ## the kernel tests twice more: interpreted, and with array bounds checked, as are forged model files
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m kernel tests/kernels
	NUMBA_BOUNDSCHECK=1 $(PYTEST) -m kernel tests/kernels
	NUMBA_BOUNDSCHECK=1 $(BIN)/python tests/fuzz_model_files.py --n 10000 --seed 1

# The oldest versions that pyproject.toml allows. Their scikit-learn hands pytest a generator, which pytest now warns of.
OLDEST := numpy==2.0.* scipy==1.13.* scikit-learn==1.6.* numba==0.61.* joblib==1.3.*

oldest: ## the tests with the oldest versions that are allowed, in an environment of their own
	test -x $(VENV)-oldest/bin/python || $(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test]" $(OLDEST)
	$(VENV)-oldest/bin/python -m pytest -n 2 tests -W "ignore::pytest.PytestRemovedIn10Warning"

bench: $(VENV)/bench.stamp    ## all benchmarks beside peers, about forty minutes (needs SIMTREE_DATA)
	$(BIN)/python benchmarks/run.py --out results

bench-quick: $(VENV)/bench.stamp    ## the same on small parts of the data, about five minutes
	$(BIN)/python benchmarks/run.py --quick --out results/quick

bench-tree: $(VENV)/test.stamp    ## one tree beside scikit-learn's (needs SIMTREE_DATA)
	$(BIN)/python benchmarks/bench_tree.py --out results

clean:            ## remove what these commands made
	rm -rf $(VENV) $(VENV)-oldest demo results .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/%.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	touch $@

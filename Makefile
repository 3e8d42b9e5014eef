# The whole developer manual. `make demo` and `make test` set up all they need, from nothing but Python 3.11 or newer.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
# Tests run on two processes: threads of BLAS and OpenMP beside them would only wait for each other. Where a test asks for threads of a
# peer such as LightGBM nevertheless, they wait without keeping a core busy.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 OMP_WAIT_POLICY=passive $(BIN)/python -m pytest
# Each process gets a half of the tests in their order, and takes more from the other when it is done: so the fixtures of most
# modules are made once, not once per process.
ON_TWO := -n 2 --dist worksteal
SPHINX := $(BIN)/python -m sphinx --builder html --fail-on-warning --keep-going --quiet --jobs 2

# Without bytecode, each of the many processes would compile the package, and each run of the tests would rewrite all of them.
unexport PYTHONDONTWRITEBYTECODE

# Real data for benchmarks and a few tests: a folder the user names, or the one beside this project if it is there.
ifeq ($(SIMTREE_DATA),)
ifneq ($(wildcard ../shared/data),)
export SIMTREE_DATA := $(abspath ../shared/data)
endif
endif

.PHONY: help demo docs docs-check test test-fast test-slow system-deps coverage check format lint types unit oldest bench bench-quick bench-tree clean
.PHONY: kernels kernels-compiled kernels-interpreted kernels-checked model-files

help:             ## this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "%-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/demo.stamp    ## learn a similarity on digits, compare it with LightGBM; two pictures and a report in demo/
	$(BIN)/python examples/demo.py --out demo

docs: $(VENV)/docs.stamp    ## build the documentation site into docs/_build/html, with executed examples (about two minutes)
	$(SPHINX) docs docs/_build/html
	$(BIN)/python docs/check_site.py docs/_build/html

docs-check: $(VENV)/docs.stamp    ## build the site without executing its examples; warnings and broken links are errors
	$(SPHINX) -D plot_gallery=0 docs docs/_build/check
	$(BIN)/python docs/check_site.py docs/_build/check

# What needs one core each runs two at a time, the longest first; then the tests, which use both.
test: $(VENV)/test.stamp $(VENV)/docs.stamp    ## everything that is checked before a change lands
	$(MAKE) --jobs 2 --output-sync=target kernels-checked kernels-compiled docs-check guarantees-quick kernels-interpreted types \
		lint model-files
	$(MAKE) unit

check: format test    ## what a contributor runs: format, lint, types, tests

format: $(VENV)/test.stamp    ## rewrite the sources in the common format
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix-only --quiet .

lint: $(VENV)/test.stamp    ## format and style, without changing anything
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/repo-review --show err .
	$(BIN)/python docs/check_docstrings.py

types: $(VENV)/test.stamp    ## static types of the package
	$(BIN)/mypy

unit: $(VENV)/test.stamp    ## all tests and examples of the docs, on two processes
	$(PYTEST) $(ON_TWO)

test-fast: $(VENV)/test.stamp    ## the tests that are not marked slow, in under 90 seconds on two cores
	$(PYTEST) $(ON_TWO) -m "not slow and not long" tests

test-slow: $(VENV)/test.stamp    ## the long runs, which take minutes each and are no part of `make test`
	$(PYTEST) -m long tests

system-deps:      ## install the Debian packages that some tests need: PostgreSQL, strace and Chromium (needs root or sudo)
	.ci/system-deps

coverage: $(VENV)/test.stamp    ## branch coverage of the Python outside the kernels, which has a floor
	$(PYTEST) $(ON_TWO) --cov --cov-report=term:skip-covered tests

# Each mode has its own cache of compiled kernels, so only the first run compiles.
# The same files each time, so that what is not about reading files takes fewer: each kind of change, some ten times per model.
MODEL_FILES := 4000
kernels: MODEL_FILES := 10000
kernels: kernels-checked kernels-interpreted model-files    ## the kernel tests twice more: interpreted, and with array bounds checked

# The tests run on two processes, each of which would compile the kernels if there were no cache of them.
kernels-compiled: $(VENV)/test.stamp
	$(PYTEST) tests/contracts/test_golden.py tests/models/test_search.py

kernels-interpreted: $(VENV)/test.stamp
	NUMBA_DISABLE_JIT=1 $(PYTEST) -m kernel tests/kernels tests/contracts

kernels-checked: $(VENV)/test.stamp
	NUMBA_BOUNDSCHECK=1 $(PYTEST) -m kernel tests/kernels tests/contracts

model-files: $(VENV)/test.stamp    ## forged model files by the thousand, with array bounds checked
	NUMBA_BOUNDSCHECK=1 $(BIN)/python tests/fuzz_model_files.py --n $(MODEL_FILES) --seed 1

.PHONY: guarantees guarantees-quick
guarantees: $(VENV)/test.stamp    ## simulate thresholds and intervals for unequal people, into docs/guarantees.md and intervals.md; hours
	$(BIN)/python benchmarks/bench_guarantees.py
	$(BIN)/python benchmarks/bench_coverage.py

guarantees-quick: $(VENV)/test.stamp    ## a part of it, in a minute; fails if a promise is broken beyond chance
	$(BIN)/python benchmarks/bench_guarantees.py --quick --jobs 1

# The oldest versions that pyproject.toml allows. Their scikit-learn hands pytest a generator, which pytest now warns of.
OLDEST := numpy==2.0.* scipy==1.13.* scikit-learn==1.6.* numba==0.61.* joblib==1.3.*

oldest: ## the tests with the oldest versions that are allowed, in an environment of their own
	test -x $(VENV)-oldest/bin/python || $(PYTHON) -m venv $(VENV)-oldest
	$(VENV)-oldest/bin/python -m pip install --quiet --disable-pip-version-check -e ".[test]" $(OLDEST)
	$(VENV)-oldest/bin/python -m pytest -n 2 -m "not long" tests -W "ignore::pytest.PytestRemovedIn10Warning"

.PHONY: hooks wheel
hooks: $(VENV)/dev.stamp    ## the hooks of .pre-commit-config.yaml on all files
	$(BIN)/pre-commit run --all-files

wheel: $(VENV)/dev.stamp    ## build sdist and wheel, check them, run the demo from the wheel in a fresh environment
	.ci/wheel $(BIN)/python

bench: $(VENV)/bench.stamp    ## all benchmarks beside peers, about forty minutes (needs SIMTREE_DATA)
	$(BIN)/python benchmarks/run.py --out results

bench-quick: $(VENV)/bench.stamp    ## the same on small parts of the data, about five minutes
	$(BIN)/python benchmarks/run.py --quick --out results/quick

bench-tree: $(VENV)/test.stamp    ## one tree beside scikit-learn's (needs SIMTREE_DATA)
	$(BIN)/python benchmarks/bench_tree.py --out results

clean:            ## remove what these commands made
	rm -rf $(VENV) $(VENV)-oldest demo dist results docs/_build docs/auto_examples docs/api/generated .coverage
	rm -rf .pytest_cache .mypy_cache .ruff_cache .hypothesis
	find src tests -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/%.stamp: pyproject.toml
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ".[$*]"
	touch $@

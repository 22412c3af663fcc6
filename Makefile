# make install   .venv with all that the tests need
# make demo      rank the votes that ship with the package; needs nothing but Python >= 3.11, pip and make
# make test      the whole test suite
# make fuzz      hostile files, commands and calls, drawn for MINUTES (5) from SEED (the time); see CONTRIBUTING.md
# make check     format, lint, types, architecture
# make bench     side by side with peers (CASES="1 2" picks some); makes .venv-bench and .venv-arena
# make docs      the documentation site, in docs/_build/html
# make dist      wheel and source distribution in dist/
# make test-connect  the tests of Spark against a local server of Spark Connect
# make test-lowest  the suite with the lowest versions of the dependencies (constraints-lowest.txt), in .venv-lowest
# make test-newest  the suite with the newest version of everything, in .venv-newest

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
CASES ?= all
JOBS ?= 2
# libraries whose threads spin while they wait for each other make a busy machine many times as slow
ONE_THREAD := OPENBLAS_NUM_THREADS=1 MKL_NUM_THREADS=1 OMP_NUM_THREADS=1
PYTHON ?=
MINUTES ?= 5
SEED ?=

.PHONY: install demo test fuzz test-connect test-lowest test-newest check format bench docs dist clean

install: $(VENV)/.test-stamp

demo: $(VENV)/.base-stamp
	$(BIN)/concordant demo --output demo-output
	@echo "The rankings lie in $(CURDIR)/demo-output; open $(CURDIR)/demo-output/report.html in a browser"

test: $(VENV)/.test-stamp
	@sh tools/chromium.sh
	$(ONE_THREAD) $(BIN)/python -m pytest -n $(JOBS)

fuzz: $(VENV)/.test-stamp
	$(BIN)/python tests/fuzz.py --minutes $(MINUTES) $(if $(SEED),--seed $(SEED))

test-connect: $(VENV)/.test-stamp
	CONCORDANT_SPARK=connect $(ONE_THREAD) $(BIN)/python -m pytest -n 0 tests/apps/test_spark_*.py

# without TRL, which wants a later Arrow; its tests skip
test-lowest: .venv-lowest/.stamp
	@sh tools/chromium.sh
	$(ONE_THREAD) .venv-lowest/bin/python -m pytest -n $(JOBS)

test-newest: .venv-newest/.stamp
	@sh tools/chromium.sh
	$(ONE_THREAD) .venv-newest/bin/python -m pytest -n $(JOBS)

check: $(VENV)/.test-stamp
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest tests/test_architecture.py

format: $(VENV)/.test-stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv-bench/.stamp .venv-arena/.stamp
	.venv-bench/bin/python -m benchmarks $(CASES)

docs: $(VENV)/.docs-stamp
	$(BIN)/python -m sphinx -W --keep-going -q -b html docs docs/_build/html
	@echo "The site lies in $(CURDIR)/docs/_build/html/index.html"

dist: $(VENV)/.made
	$(BIN)/python -m pip install -q -c constraints.txt build
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) .venv-bench .venv-arena .venv-lowest .venv-newest build docs/_build dist demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis

# -- environments: a stamp file says that one is complete -----------------------------------------------------------
$(VENV)/.made:
	PYTHON="$(PYTHON)" sh tools/make-venv.sh $(VENV)
	touch $@

$(VENV)/.base-stamp: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.test-stamp: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[test,trl,mlflow]"
	touch $@ $(VENV)/.base-stamp $(VENV)/.docs-stamp

$(VENV)/.docs-stamp: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[docs,sklearn]"
	touch $@ $(VENV)/.base-stamp

.venv-lowest/.stamp: pyproject.toml constraints-lowest.txt
	PYTHON="$(PYTHON)" sh tools/make-venv.sh .venv-lowest
	.venv-lowest/bin/python -m pip install -q -c constraints-lowest.txt -e ".[test,mlflow]"
	touch $@

# torch as it is pinned: later ones come with CUDA from most indices
.venv-newest/.stamp: pyproject.toml
	PYTHON="$(PYTHON)" sh tools/make-venv.sh .venv-newest
	.venv-newest/bin/python -m pip install -q $$(grep '^torch==' constraints.txt) -e ".[test,trl,mlflow]"
	touch $@

.venv-bench/.stamp: pyproject.toml constraints.txt
	PYTHON="$(PYTHON)" sh tools/make-venv.sh .venv-bench
	.venv-bench/bin/python -m pip install -q -c constraints.txt -e ".[bench]"
	touch $@

.venv-arena/.stamp: benchmarks/arena-requirements.txt
	PYTHON="$(PYTHON)" sh tools/make-venv.sh .venv-arena
	.venv-arena/bin/python -m pip install -q -r benchmarks/arena-requirements.txt
	touch $@

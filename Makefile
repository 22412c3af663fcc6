# make install   .venv with all that the tests need
# make demo      rank the votes that ship with the package; needs nothing but Python >= 3.11, pip and make
# make test      the whole test suite
# make check     format, lint, types, architecture
# make bench     side by side with peers (CASES="1 2" picks some); makes .venv-bench and .venv-arena
# make dist      wheel and source distribution in dist/

SHELL := /bin/sh
VENV := .venv
BIN := $(VENV)/bin
CASES ?= all
JOBS ?= 2
PYTHON ?=

.PHONY: install demo test check format bench dist clean

install: $(VENV)/.test-stamp

demo: $(VENV)/.base-stamp
	$(BIN)/concordant demo --output demo-output
	@echo "The rankings lie in $(CURDIR)/demo-output"

test: $(VENV)/.test-stamp
	$(BIN)/python -m pytest -n $(JOBS) --dist loadgroup

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

dist: $(VENV)/.test-stamp
	$(BIN)/python -m pip install -q -c constraints.txt build
	$(BIN)/python -m build

clean:
	rm -rf $(VENV) .venv-bench .venv-arena build dist demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis

# -- environments: a stamp file says that one is complete -----------------------------------------------------------
$(VENV)/.made:
	PYTHON="$(PYTHON)" sh tools/make-venv.sh $(VENV)
	touch $@

$(VENV)/.base-stamp: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt -e .
	touch $@

$(VENV)/.test-stamp: $(VENV)/.made pyproject.toml constraints.txt
	$(BIN)/python -m pip install -q -c constraints.txt -e ".[test]"
	touch $@ $(VENV)/.base-stamp

.venv-bench/.stamp: pyproject.toml constraints.txt
	PYTHON="$(PYTHON)" sh tools/make-venv.sh .venv-bench
	.venv-bench/bin/python -m pip install -q -c constraints.txt -e ".[bench]"
	touch $@

.venv-arena/.stamp: benchmarks/arena-requirements.txt
	PYTHON="$(PYTHON)" sh tools/make-venv.sh .venv-arena
	.venv-arena/bin/python -m pip install -q -r benchmarks/arena-requirements.txt
	touch $@

# Every target works alone on a fresh clone: it makes the virtual environment it needs first.
# Benchmarks and tests find the real datasets here, where they are at hand.
ifneq ($(wildcard ../shared/data/.),)
export GRAPHKEEL_DATA ?= $(abspath ../shared/data)
endif

PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
LIGHT  := $(VENV)/.library
STAMP  := $(VENV)/.installed

.PHONY: setup demo test test-slow lint format docs compatibility bench bench-verify bench-certify bench-scale tables clean

setup: $(STAMP)

# The library alone, which is all that the demo needs. The constraint file keeps pip on torch's CPU
# build; a plain install would pull several GB of CUDA packages. Python compiles what it imports, which
# is less than all that pip would compile.
$(LIGHT): pyproject.toml constraints/cpu.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile -c constraints/cpu.txt torch -e .
	touch $@

# What development, tests and documentation need beside it.
$(STAMP): $(LIGHT)
	$(BIN)/pip install --quiet -c constraints/cpu.txt -e '.[dev]'
	$(BIN)/python -c 'from graphkeel.verify.branch import warm_up; warm_up()'  # compile the engine once
	touch $@

demo: $(LIGHT)
	$(BIN)/keel demo

test: setup
	$(BIN)/python -m pytest

# Guided fuzzing and the Ray cluster are tested where their packages install; the tests say so where they do not.
test-slow: setup
	-$(BIN)/pip install --quiet -c constraints/cpu.txt -e '.[fuzz]'
	-$(BIN)/pip install --quiet -c constraints/cpu.txt -e '.[ray]'
	$(BIN)/python -m pytest -m slow

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Warnings are errors, names without a target are warnings, and nothing is fetched: build/docs/html/index.html.
docs: setup
	$(BIN)/python -m sphinx -q -W --keep-going -n -d build/docs/doctrees docs build/docs/html

# docs/compatibility.md, made from what happens to every model in tests/compatibility/people.py.
compatibility: setup
	$(BIN)/python tests/compatibility/page.py

bench: setup
	$(BIN)/python benchmarks/bench_reconstruct.py
	$(BIN)/python benchmarks/bench_data.py

bench-verify: setup
	$(BIN)/python benchmarks/bench_verify.py

bench-certify: setup
	$(BIN)/python benchmarks/bench_certify.py

bench-scale: setup
	$(BIN)/python benchmarks/bench_scale.py

tables: setup
	$(BIN)/keel table 1 --out runs/tables
	$(BIN)/keel table 3 --out runs/tables

clean:
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache

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

.PHONY: setup demo test test-slow coverage lint format docs compatibility wheels bench-verify bench-certify bench-size tables tables-gcn tables-citations tables-plan clean

setup: $(STAMP)

# The library alone, which is all that the demo needs. The constraint file keeps pip on torch's CPU
# build; a plain install would pull several GB of CUDA packages. Python compiles what it imports, which
# is less than all that pip would compile.
$(LIGHT): pyproject.toml constraints/cpu.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --no-compile -c constraints/cpu.txt torch -e .
	touch $@

# What development, tests and documentation need beside it, the paper's distribution among them.
$(STAMP): $(LIGHT) paper/pyproject.toml
	$(BIN)/pip install --quiet -c constraints/cpu.txt -e '.[dev]' -e ./paper
	$(BIN)/python -c 'from graphkeel.verify.warm import load_kernels; load_kernels()'  # compiled once
# Once for all processes that the tests start: where writing bytecode is forbidden, each would compile
# all that it imports. A file that does not compile is nobody's loss.
	-$(BIN)/python -m compileall -qq -j 2 $(VENV)/lib src paper/src
	touch $@

demo: $(LIGHT)
	$(BIN)/keel demo

# The library's suite and the paper's, on two processes, whole files each, in their order; TESTS narrows it, and
# `python -m pytest tests` runs the library's alone in one process.
TESTS  :=
PYTEST  = $(BIN)/python -m pytest -n 2 --dist loadfile --no-loadscope-reorder
# One thread a worker: more would only wait for each other.
test: export OMP_NUM_THREADS = 1
test: setup
	$(PYTEST) $(TESTS)

# Lines of both packages that the default tests run, by file where some are missing. Compiled kernels
# and processes that tests start are not seen.
coverage: setup
	$(PYTEST) --cov=graphkeel --cov=graphkeel_paper --cov-report=term-missing:skip-covered $(TESTS)

# Guided fuzzing is tested where its package installs; the tests say so where it does not.
test-slow: setup
	-$(BIN)/pip install --quiet -c constraints/cpu.txt -e '.[fuzz]'
	$(BIN)/python -m pytest -m slow $(TESTS)

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

# Both distributions as a release builds them, looked into (.github/workflows/release.yml tests them installed).
wheels: setup
	rm -rf dist
	$(BIN)/pip install --quiet build
	$(BIN)/python -m build --outdir dist .
	$(BIN)/python -m build --outdir dist paper
	$(BIN)/python .ci/check_distributions.py dist

bench-verify: setup
	$(BIN)/python benchmarks/bench_verify.py

bench-certify: setup
	$(BIN)/python benchmarks/bench_certify.py

bench-size: setup
	$(BIN)/python benchmarks/bench_size.py

# Every table and figure of the docs, from one store: what is finished there is not computed again. The
# frozen GCN's table, which takes an hour on two cores by itself, is `make tables-gcn`.
# `make tables-plan` says what is missing and how many hours it will take, by the stored runs;
# `make tables-plan STORE=empty` says it of all. `make tables FLAGS=--any-code` also takes what earlier
# code has computed. paper/docs/reproducing.md says what was shortened.
STORE    := runs/tables
FLAGS    :=
TABLE     = $(BIN)/keel-paper table --row-budget 120 --out $(STORE) $(FLAGS)
# What of `auto` does not need the trained model; rows of the label budgets, and of the nodes and
# graphs that no choice was made on.
CONTROLS := no-model,random-weights,posterior-alone
RIVALS   := t3a,cs,smooth,lame,lp,rivals+avg,retrain,t3a+self,cs+self,smooth+self,lp+self,retrain+self
BUDGETS  := auto,auto-tuned,$(CONTROLS),$(RIVALS),gcn-words,appnp-words
COMPUTED  =
PLANNED   = --plan --from benchmarks/results/$(1).json
define TABLE_COMMANDS
	$(TABLE) 1 $(call $(1),table-1)
	$(TABLE) 3 $(call $(1),table-3)
	$(TABLE) reach $(call $(1),table-reach)
	$(TABLE) 1 --labels train+half-val --only $(BUDGETS) $(call $(1),table-1-half-val)
	$(TABLE) 1 --labels train+val --only $(BUDGETS) $(call $(1),table-1-val)
	$(TABLE) examination --only sgc-tuned,$(BUDGETS) $(call $(1),table-examination)
	$(TABLE) ingraph --model sgc --only auto,$(CONTROLS),retrain $(call $(1),table-ingraph-sgc)
	$(TABLE) adapt --pairs citations --seed 2 $(call $(1),table-adapt-citations)
	$(TABLE) adapt --pairs twitch --seed 17 $(call $(1),table-adapt-twitch)
endef

tables: setup
	$(call TABLE_COMMANDS,COMPUTED)
	$(foreach number,3 4 5,$(BIN)/keel-paper figure $(number) --dataset cora --out $(STORE) &&) true
	cp $(STORE)/table-*.txt $(STORE)/table-*.json $(STORE)/figure-*.json benchmarks/results/
	$(BIN)/python benchmarks/figures_in_docs.py --write

tables-gcn: setup
	$(TABLE) ingraph --model gcn --only auto,$(CONTROLS),gcn-words --seeds 5 --row-budget 600
	cp $(STORE)/table-ingraph-gcn.txt $(STORE)/table-ingraph-gcn.json benchmarks/results/
	$(BIN)/python benchmarks/figures_in_docs.py --write

# The field's own benchmark, on all words.
tables-citations: setup
	$(TABLE) citations --row-budget 3600
	cp $(STORE)/table-citations.txt $(STORE)/table-citations.json benchmarks/results/
	$(BIN)/python benchmarks/figures_in_docs.py --write

tables-plan: setup
	$(call TABLE_COMMANDS,PLANNED)

clean:
	rm -rf $(VENV) build dist .coverage .pytest_cache .mypy_cache .ruff_cache

# make demo · make ask Q="…" · make test · make test-fast · make check · make bench · make package · make clean
# Needs Python 3.11 or newer and make; everything else goes into .venv.
SHELL := /bin/bash
.DEFAULT_GOAL := help
NEW_ENOUGH := import sys; sys.exit(sys.version_info < (3, 11))
ifndef PYTHON
PYTHON := $(shell for p in python3.13 python3.12 python3.11 python3 python; do \
  if "$$p" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then echo "$$p"; break; fi; done)
endif
BIN := .venv/bin
# A question is taken letter by letter: neither make nor the shell expands a dollar in it.
export LOCALAGENT_QUESTION := $(value Q)
MODEL_SET := $(if $(MODEL_BASE_URL),,model)
TESTS ?= tests
# Tests that need no LangBot run in as many processes as there are cores, at most four; each file in one of them. By
# their names, not by the number of tests: a file of few long tests would begin last and be waited for.
SIDE_BY_SIDE := -n auto --maxprocesses 4 --dist loadfile --no-loadscope-reorder

.PHONY: help python demo ask test test-fast check bench package clean dev-venv

help:
	@echo 'make demo             LangBot with this agent and a model, in the browser (Ctrl-C ends it)'
	@echo 'make ask Q="…"        one question through a real LangBot; the answer goes to stdout'
	@echo 'make test             everything CI runs: check, then all tests'
	@echo 'make test-fast        the tests that need no LangBot'
	@echo 'make check            ruff, mypy, import-linter'
	@echo 'make bench            measurements'
	@echo 'make package          dist/*.lbpkg'
	@echo 'make clean            remove .venv, caches, dist and .demo'

python:
	@if [ -z "$(PYTHON)" ]; then echo 'localagent: Python 3.11 or newer is needed and none was found; install it, or name it: make PYTHON=/path/to/python3' >&2; exit 1; fi
	@$(PYTHON) -c '$(NEW_ENOUGH)' >/dev/null 2>&1 || { echo 'localagent: PYTHON=$(PYTHON) does not run or is older than Python 3.11; name another: make PYTHON=/path/to/python3' >&2; exit 1; }

dev-venv: python
	@$(PYTHON) -m demo.bootstrap dev

# What is wanted is looked at before anything is installed.
demo: python
	@$(PYTHON) -m demo.wanted up
	@$(PYTHON) -m demo.bootstrap demo $(MODEL_SET)
	@exec $(BIN)/python -m demo up

ask: python
	@$(PYTHON) -m demo.wanted ask
	@$(PYTHON) -m demo.bootstrap demo $(MODEL_SET)
	@exec $(BIN)/python -m demo ask

check: dev-venv
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@PYTHONPATH=. $(BIN)/lint-imports

# Status 5: none of the tests named is of this kind.
test: check
	@$(BIN)/python -m pytest $(TESTS) -m 'not e2e' $(SIDE_BY_SIDE) $(PYTEST_ARGS) || [ $$? -eq 5 ]
	@$(BIN)/python -m pytest $(TESTS) -m e2e $(PYTEST_ARGS) || [ $$? -eq 5 ]

test-fast: dev-venv
	@$(BIN)/python -m pytest $(TESTS) -m 'not e2e' $(SIDE_BY_SIDE) $(PYTEST_ARGS)

bench: dev-venv
	@$(BIN)/python -m bench $(BENCH_ARGS)

package: python
	@$(PYTHON) -m demo.bootstrap package
	@$(BIN)/python -m demo.package

clean:
	@rm -rf .venv .demo dist build .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
	@find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +

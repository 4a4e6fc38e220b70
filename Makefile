# Two commands do everything on a machine with Python 3.11+ and make:
#   make demo    make test
# Each creates .venv and installs what it needs first.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
READY  := $(VENV)/.ready
SPARK  := $(VENV)/.spark
BROWSER := $(VENV)/.browser

.DEFAULT_GOAL := help
.PHONY: help demo test test-full test-spark test-browser lint format bench figures clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

$(READY): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "sottovoce needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (once)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev]'
	@touch $(READY)

demo: $(READY) ## prior, comparison and picture on generated data
	$(BIN)/sottovoce demo

test: $(READY) ## the whole test suite at its everyday size
	$(BIN)/python -m pytest -n 2 -m "not full and not spark and not browser"

test-full: $(READY) ## the same with every promise at its stated size
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -n 2 -m "not spark and not browser"

$(SPARK): $(READY)
	@java -version >/dev/null 2>&1 || { echo "Spark needs Java 17: install a Java runtime first"; exit 1; }
	@echo "installing pyspark into $(VENV) (once, 440 MB)"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,spark]'
	@touch $(SPARK)

$(BROWSER): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,browser]'
	@touch $(BROWSER)

test-browser: $(BROWSER) ## the explorer in a real browser (Debian's chromium)
	$(BIN)/python -m pytest tests/test_explore.py tests/test_explore_attacks.py -rs

test-spark: $(SPARK) ## the same results on a real Spark with two workers
	$(BIN)/python -m pytest tests/test_spark.py

lint: $(READY) ## ruff and mypy
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy

format: $(READY) ## let ruff rewrite the files
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

bench: $(READY) ## measure ratios and write docs/benchmarks.md
	$(BIN)/python -m benchmarks

figures: $(READY) ## pictures and tables of the documents
	$(BIN)/python -m experiments

clean: ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

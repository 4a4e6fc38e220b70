# Two commands do everything on a machine with Python 3.11+ and make:
#   make demo    make test
# Each creates .venv and installs what it needs first.

PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
SMALL  := $(VENV)/.small
READY  := $(VENV)/.ready
SPARK  := $(VENV)/.spark
BROWSER := $(VENV)/.browser
DOCS   := $(VENV)/.docs
FUZZ   := $(VENV)/.fuzz
# What is installed is pinned with hashes in locks/: wheels only, because a source archive runs code when it is installed.
PIP    := $(BIN)/python -m pip install --quiet --disable-pip-version-check
LOCKED := --require-hashes --only-binary :all:
# The tools that write locks/ and validate packages live apart from the rest. UPGRADE=--upgrade moves every version, UPGRADE='-P numpy' one.
LOCKER := build/locker
UPGRADE ?=
COMPILE = $(LOCKER)/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header --no-annotate

.DEFAULT_GOAL := help
.PHONY: page help demo demo-web demo-places test test-full test-spark test-browser test-js test-matrix coverage proofs proofs-full checker fuzz lint hooks format bench figures docs packages lock clean

help: ## show this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*## /\t/' | expand -t 12

# What the command line needs, which is all that the demo needs.
$(SMALL): pyproject.toml locks/cli.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "sottovoce needs Python 3.11 or newer; run make PYTHON=/path/to/python3.11"; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV) (once)"
	@$(PIP) $(LOCKED) -r locks/cli.txt
	@$(PIP) --no-index --no-deps --no-build-isolation -e .
	@touch $(SMALL)

$(READY): $(SMALL) locks/collect.txt locks/dev.txt
	@echo "installing the tools of a developer into $(VENV) (once)"
	@$(PIP) $(LOCKED) -r locks/collect.txt
	@$(PIP) $(LOCKED) -r locks/dev.txt
	@touch $(READY)

demo: $(SMALL) ## prior, comparison and picture on generated data
	$(BIN)/sottovoce demo

demo-web: $(READY) ## a film club in the browser: twenty visits for one epsilon, a survey, a live page
	$(BIN)/python examples/web/club.py

demo-places: $(READY) ## about where I live: sixty nights on a map, four ways to publish them, replayed attacks
	$(BIN)/python examples/places/town.py

test: $(READY) ## the whole test suite at its everyday size
	$(BIN)/python -m pytest -n 2 -m "not full and not spark and not browser and not proofs"

test-full: $(READY) ## the same with every promise at its stated size
	HYPOTHESIS_PROFILE=full $(BIN)/python -m pytest -n 2 -m "not spark and not browser and not proofs"

coverage: $(READY) ## branch coverage of src, the command line included
	@rm -rf build/coverage && mkdir -p build/coverage
	COVERAGE_FILE=$(CURDIR)/build/coverage/data \
	  $(BIN)/python -m coverage run -m pytest -n 2 -m "not full and not spark and not browser and not proofs"
	@COVERAGE_FILE=build/coverage/data $(BIN)/python -m coverage combine --quiet build/coverage
	COVERAGE_FILE=build/coverage/data $(BIN)/python -m coverage report --ignore-errors  # files that tests made

# pyspark is the one package without a wheel: the pinned setuptools of locks/dev.txt builds it.
$(SPARK): $(READY) locks/spark.txt
	@java -version >/dev/null 2>&1 || { echo "Spark needs Java 17: install a Java runtime first"; exit 1; }
	@echo "installing pyspark into $(VENV) (once, 440 MB)"
	@$(PIP) $(LOCKED) --no-binary pyspark --use-pep517 --no-build-isolation -r locks/spark.txt
	@touch $(SPARK)

$(BROWSER): $(READY) locks/browser.txt
	@$(PIP) $(LOCKED) -r locks/browser.txt
	@touch $(BROWSER)

# axe-core asks whether everybody can use the page; it lives in build/, and without npm its test skips visibly.
AXE := build/axe/node_modules/axe-core/axe.min.js
$(AXE): tests/browser/package-lock.json
	@mkdir -p build/axe && cp tests/browser/package.json tests/browser/package-lock.json build/axe
	@npm ci --silent --ignore-scripts --prefix build/axe || echo "axe-core is not installed: its test SKIPS"

test-browser: $(BROWSER) $(AXE) ## the pages and the JavaScript client in a real browser (Debian's chromium)
	$(BIN)/python -m pytest tests/serving tests/browser -m browser -rs

# What the page is bundled with; without npm the committed page is not compared with its sources, and that test skips.
page/node_modules: page/package-lock.json
	@npm ci --silent --ignore-scripts --prefix page && touch $@ || echo "npm could not install: the page is not built"

page: page/node_modules ## build the explorer and the collector's page again from page/ (Node 20 or newer)
	node page/build.js

test-js: page/node_modules ## the JavaScript client and the page: vectors, planted faults, budget, types, bundle (Node 20 or newer)
	@if node -e 'process.exit(parseInt(process.versions.node) < 20 ? 1 : 0)' 2>/dev/null; \
	  then node --test $(wildcard clients/js/test/*.test.js page/test/*.test.js); \
	  else echo "Node 20 or newer is not on this machine: the JavaScript client and the page are SKIPPED"; fi

# Everything is compiled in build/proofs: the proofs, what they assume, and the checker that is extracted from them.
# Whoever runs this expects the proofs: a test that finds nothing compiled fails then, and is not skipped.
proofs: $(READY) ## compile the proofs (apt install coq), build the checker, hold Python against it
	@sh proofs/build.sh build/proofs
	@sort -u build/proofs/assumptions.txt | grep -oE '^[A-Z][A-Za-z_]+\.[a-z_]+' | sed 's/^/assumed: /'
	PROOFS_EXPECTED=1 $(BIN)/python -m pytest tests/proofs -m "proofs and not full" -rs
	@sed -n '/^## Which Python it covers/,/^## What is linked/p' proofs/README.md | sed '1d;$$d'

proofs-full: proofs ## the same, and break each definition and each hypothesis: its theorem must fail
	PROOFS_EXPECTED=1 $(BIN)/python -m pytest -n 2 tests/proofs -m "proofs and full" -rs

checker: ## build the proved checker from its committed source (an OCaml compiler alone, no Coq)
	@sh proofs/checker/build.sh build/proofs

test-spark: $(SPARK) ## the same results on a real Spark with two workers
	$(BIN)/python -m pytest tests/spark

# The oldest and the newest Python found, and the oldest with the lowest numpy, scipy and duckdb; each has its own place.
# MATRIX_TESTS=tests/release runs a part. The lowest versions are not those of locks/dev.txt, which test_supply asks for.
MATRIX := build/matrix
PYTHONS := 3.11 3.12 3.13 3.14
FOUND = $(strip $(foreach version,$(PYTHONS),$(shell python$(version) -c '' 2>/dev/null && echo $(version))))
MATRIX_TESTS ?=

$(MATRIX)/lowest/.ready: pyproject.toml locks/lowest.txt
	@python$(firstword $(FOUND)) -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(LOCKED) -r locks/lowest.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation -e .
	@touch $@

$(MATRIX)/%/.ready: pyproject.toml locks/cli.txt locks/collect.txt locks/dev.txt
	@python$* -m venv $(@D)
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check $(LOCKED) -r locks/cli.txt -r locks/collect.txt -r locks/dev.txt
	@$(@D)/bin/python -m pip install --quiet --disable-pip-version-check --no-index --no-deps --no-build-isolation -e .
	@touch $@

.PRECIOUS: $(MATRIX)/%/.ready
matrix-%: $(MATRIX)/%/.ready
	$(MATRIX)/$*/bin/python -m pytest -n 2 -m "not full and not spark and not browser and not proofs" \
	  $(if $(filter lowest,$*),--ignore tests/test_supply.py) $(MATRIX_TESTS)

test-matrix: ## the tests on the oldest and newest Python here, and with the lowest numpy, scipy, duckdb
	@for version in $(filter-out $(FOUND),$(PYTHONS)); do echo "Python $$version is not on this machine: SKIPPED"; done
	@test -n "$(FOUND)" || { echo "none of Python $(PYTHONS) is on this machine"; exit 1; }
	$(MAKE) $(addprefix matrix-,$(sort $(firstword $(FOUND)) $(lastword $(FOUND))) lowest)

# Atheris has wheels for Linux on x86-64 alone: elsewhere nothing is installed, and the targets run without a guide.
$(FUZZ): $(READY) locks/fuzz.txt
	@$(PIP) $(LOCKED) -r locks/fuzz.txt
	@touch $(FUZZ)

SECONDS ?= 600
FUZZED = PYTHONPATH=$(CURDIR)/tests/support $(BIN)/python -m fuzzing
fuzz: $(FUZZ) ## fuzz everything that reads from outside, for SECONDS=600 (TARGET=ledger for one)
	$(FUZZED) --seconds $(SECONDS) $(if $(TARGET),--target $(TARGET))

# pyright is what editors show; it lives in build/, and without npm it skips visibly.
PYRIGHT := build/pyright/node_modules/pyright/index.js
$(PYRIGHT): tests/types/package-lock.json
	@mkdir -p build/pyright && cp tests/types/package.json tests/types/package-lock.json build/pyright
	@npm ci --silent --ignore-scripts --prefix build/pyright && touch $@ || rm -rf build/pyright

lint: $(READY) $(PYRIGHT) ## ruff, mypy, pyright, spelling and the order of the rooms
	$(BIN)/ruff check . && $(BIN)/ruff format --check . && $(BIN)/mypy && $(BIN)/lint-imports
	$(BIN)/codespell
	@if test -e $(PYRIGHT); then node $(PYRIGHT) -p tests/types --pythonpath $(BIN)/python; \
	  else echo "pyright could not be installed (it needs npm): it is SKIPPED"; fi

hooks: $(READY) ## run the checks of make lint before each commit
	$(BIN)/pre-commit install

format: $(READY) ## let ruff rewrite the files
	$(BIN)/ruff check --fix . && $(BIN)/ruff format .

bench: $(READY) ## measure ratios and write the table of docs/evidence.md
	$(BIN)/python -m benchmarks

figures: $(READY) ## pictures and tables of the documents
	$(BIN)/python -m experiments

$(DOCS): $(READY) locks/docs.txt
	@$(PIP) $(LOCKED) -r locks/docs.txt
	@touch $(DOCS)

docs: $(DOCS) ## the documentation site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo "open build/site/index.html"

packages: $(READY) $(LOCKER)/.ready ## the wheel, the source archive and the npm package, in dist/
	@rm -rf dist && mkdir dist
	@$(BIN)/python -m hatchling build -d dist
	@$(LOCKER)/bin/twine check --strict dist/*
	@cd clients/js && npm pack --silent --pack-destination ../../dist

$(LOCKER)/.ready: locks/lock.txt
	@$(PYTHON) -m venv $(LOCKER)
	@$(LOCKER)/bin/python -m pip install --quiet --disable-pip-version-check $(LOCKED) -r locks/lock.txt
	@touch $@

# One resolution of everything (all.txt, seeded with today's pins) decides the versions; each lock is its share of it.
# docs also holds what dev needs on some systems only (colorama): the site needs it on all. dev also holds what collect needs on some Pythons only.
lock: $(LOCKER)/.ready ## write locks/ again from pyproject.toml (UPGRADE=--upgrade for newer versions)
	@cat locks/cli.txt locks/collect.txt locks/dev.txt locks/spark.txt locks/browser.txt locks/docs.txt locks/fuzz.txt > $(LOCKER)/all.txt
	@$(PYTHON) -c 'import tomllib; print(*tomllib.load(open("pyproject.toml", "rb"))["build-system"]["requires"], sep="\n")' \
	  > $(LOCKER)/build.in
	@echo editables >> $(LOCKER)/build.in
	@$(COMPILE) $(UPGRADE) pyproject.toml $(LOCKER)/build.in --extra dev --extra spark --extra browser --extra docs --extra fuzz \
	  -o $(LOCKER)/all.txt
	@$(COMPILE) pyproject.toml $(LOCKER)/build.in --extra cli -c $(LOCKER)/all.txt > $(LOCKER)/cli.txt
	@$(COMPILE) pyproject.toml --extra collect -c $(LOCKER)/all.txt \
	  $$(sed -nE 's/^([a-z0-9.-]+)==.*/--no-emit-package \1/p' $(LOCKER)/cli.txt) > $(LOCKER)/collect.txt
	@cat $(LOCKER)/cli.txt $(LOCKER)/collect.txt > $(LOCKER)/served.txt
	@$(COMPILE) pyproject.toml $(LOCKER)/build.in --extra dev -c $(LOCKER)/all.txt \
	  $$(sed -nE 's/^([a-z0-9.-]+)==[^;]*$$/--no-emit-package \1/p' $(LOCKER)/served.txt) > $(LOCKER)/dev.txt
	@cat $(LOCKER)/served.txt $(LOCKER)/dev.txt > $(LOCKER)/both.txt
	@for need in spark browser fuzz; do \
	  $(COMPILE) pyproject.toml --extra dev --extra $$need -c $(LOCKER)/all.txt \
	    $$(sed -nE 's/^([a-z0-9.-]+)==.*/--no-emit-package \1/p' $(LOCKER)/both.txt) > $(LOCKER)/$$need.txt || exit 1; \
	done
	@$(COMPILE) pyproject.toml --extra docs -c $(LOCKER)/all.txt \
	  $$(sed -nE 's/^([a-z0-9.-]+)==[^;]*$$/--no-emit-package \1/p' $(LOCKER)/both.txt) > $(LOCKER)/docs.txt
	@$(PYTHON) -c 'import re, tomllib; told = tomllib.load(open("pyproject.toml", "rb"))["project"]; \
	  named = told["dependencies"] + told["optional-dependencies"]["tables"]; \
	  print(*(line.split(",")[0].replace(">=", "==") for line in named if re.match("numpy|scipy|duckdb", line)), sep="\n")' > $(LOCKER)/lowest.in
	@cp $(LOCKER)/both.txt $(LOCKER)/lowest.txt
	@$(COMPILE) pyproject.toml $(LOCKER)/build.in $(LOCKER)/lowest.in --extra dev -o $(LOCKER)/lowest.txt >/dev/null
	@printf 'uv\ntwine\n' | $(COMPILE) $(UPGRADE) - -o locks/lock.txt >/dev/null
	@for need in cli collect dev spark browser docs fuzz lowest; do \
	  sed -i.full '/^#/d' $(LOCKER)/$$need.txt && cmp -s $(LOCKER)/$$need.txt locks/$$need.txt || cp $(LOCKER)/$$need.txt locks/; \
	done

clean: ## remove the environment and caches
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .hypothesis build dist

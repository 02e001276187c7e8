# `make` lists the targets. Every one of them may be the first command on a fresh clone.
PYTHON ?= python3
BIN := .venv/bin
INSTALLED := .venv/.installed
PYTEST := $(BIN)/pytest
TWO_PROCESSES := -n 2
BENCHES := $(patsubst benchmarks/%.py,bench-%,$(filter-out benchmarks/_%,$(wildcard benchmarks/*.py)))

.DEFAULT_GOAL := help
.PHONY: help install demo compiled archive test test-long faults test-cluster test-connect test-editor check format docs docs-site pictures bench bench-long mutants lock audit sbom clean distclean $(BENCHES)

help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-16s %s\n", $$1, $$2 }' Makefile
	@for name in $(BENCHES); do \
		printf '  %-16s %s\n' "$$name" "$$(sed -n '1s/"""//gp' "benchmarks/$${name#bench-}.py")"; \
	done
	@echo; echo '  PYTHON=python3.12 picks the Python of a new .venv; ARGS="-k name" goes to pytest and the benchmarks.'

install: $(INSTALLED) ## Create .venv with the locked versions and the package itself

$(INSTALLED): pyproject.toml requirements.lock
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || { \
		echo 'Tallybook needs Python 3.11 or newer. Name one: make install PYTHON=python3.12' >&2; exit 1; }
	@test -x $(BIN)/python || $(PYTHON) -m venv .venv
	@echo 'Installing into .venv; the first time Spark is fetched, which takes a few minutes.' >&2
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --require-hashes -r requirements.lock
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

demo: $(INSTALLED) ## Check and run the example workspace examples/orders, and show the rows it wrote
	$(BIN)/tallybook validate --workspace examples/orders
	$(BIN)/tallybook run order-close --period 2026-01 --show 20 --workspace examples/orders

test: $(INSTALLED) archive ## Run the tests that take seconds each
	$(PYTEST) $(TWO_PROCESSES) $(ARGS)

# Commands that tests and benchmarks start load bytecode, as after an installation; PYTHONDONTWRITEBYTECODE would forbid to write it.
compiled: $(INSTALLED)
	@$(BIN)/python -m compileall -q src

# Tests that start Spark use the archive of its classes, but make none: that would take time from other tests.
archive: compiled
	@$(BIN)/python -m tallybook.engine.archive_maker < /dev/null || echo 'no archive: Spark will start slowly' >&2

test-long: $(INSTALLED) archive ## Run the tests that take minutes
	$(PYTEST) $(TWO_PROCESSES) -m long $(ARGS)

faults: $(INSTALLED) archive ## Run all tests that cause faults and print the fault table of docs/reliability.md
	$(BIN)/python -m pytest $(TWO_PROCESSES) -p tests.faults.table -m fault $(ARGS)

test-cluster: $(INSTALLED) ## Run the tests on a local cluster of worker processes
	TALLYBOOK_TEST_MASTER='local-cluster[2,1,1024]' $(PYTEST) -m 'not long and not connect and not editor' $(ARGS)

test-connect: $(INSTALLED) ## Run the tests through Spark Connect
	TALLYBOOK_TEST_REMOTE='local[2]' $(PYTEST) -m 'not long and not cluster and not editor' $(ARGS)

build/editor/node_modules: tests/editor/package.json
	@mkdir -p build/editor && cp $< build/editor/ && npm install --silent --no-package-lock --prefix build/editor
	@touch $@

test-editor: $(INSTALLED) build/editor/node_modules ## Try the JSON Schema with a YAML language server; needs Node and npm
	$(PYTEST) -m editor tests/editor $(ARGS)

check: $(INSTALLED) ## Lint, check format, types and the direction of imports
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(PYTEST) tests/test_architecture.py

format: $(INSTALLED) ## Fix what lint and format can fix
	$(BIN)/ruff check --fix-only
	$(BIN)/ruff format

docs: $(INSTALLED) ## Rewrite the generated reference pages and the JSON Schema
	$(PYTEST) --update-golden -k 'reference or schema'

pictures: $(INSTALLED) ## Draw the pictures of docs/pictures again, from real commands; ARGS="run plan" draws these two
	$(BIN)/python docs/pictures.py $(ARGS)

# A copy of the pages at the same places, so that their links hold in the site as well.
docs-site: $(INSTALLED) ## Build the documents as a site with search, in build/site
	@rm -rf build/pages build/site && mkdir -p build/pages
	@git ls-files -z -- '*.md' 'docs/*' 'schema/*' ':!:tests' ':!:benchmarks' ':!:*.py' | \
		tar --create --null --files-from - | tar --extract --directory build/pages
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build > build/site.log 2>&1 || { grep -v '^INFO' build/site.log >&2; exit 1; }
	@echo 'built: build/site; to read it: $(BIN)/python -m http.server --directory build/site --bind 127.0.0.1'

bench: compiled ## Run all benchmarks beside their rivals; meant for an idle machine
	$(BIN)/python benchmarks/_all.py $(ARGS)

bench-long: compiled ## The same, and 10 and 50 million rows
	$(BIN)/python benchmarks/_all.py --long $(ARGS)

$(BENCHES): bench-%: benchmarks/%.py compiled
	$(BIN)/python $< $(ARGS)

mutants: $(INSTALLED) ## Break the code in small ways and see whether a test notices
	$(BIN)/python tests/mutants.py $(ARGS)

# Resolved for all supported versions of Python and all systems at once, with the hashes of every file of each version.
lock: $(INSTALLED) ## Resolve all versions anew into requirements.lock
	@$(BIN)/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-annotate --no-header \
		--extra dev --output-file .venv/requirements.lock pyproject.toml
	@{ echo '# Written by `make lock`, read by `make install`.'; cat .venv/requirements.lock; } > requirements.lock

audit: $(INSTALLED) ## Look for known vulnerabilities in the locked versions, where their database can be reached
	@BIN=$(BIN) .ci/audit

sbom: $(INSTALLED) ## Write what is installed, with versions and licences, to build/sbom.cdx.json (CycloneDX)
	@mkdir -p build
	@$(BIN)/cyclonedx-py environment --pyproject pyproject.toml --mc-type application --output-reproducible \
		--output-format JSON --output-file build/sbom.cdx.json $(BIN)/python
	@echo 'written: build/sbom.cdx.json'

clean: ## Remove caches and what runs of the examples wrote
	rm -rf .mypy_cache .ruff_cache .pytest_cache .hypothesis build dist src/*.egg-info spark-warehouse
	rm -rf examples/*/.tallybook examples/*/warehouse examples/*/reports examples/*/dev examples/*/prod examples/month_close/data/journal*
	find src tests benchmarks examples -name __pycache__ -type d -prune -exec rm -rf {} +

distclean: clean ## Remove .venv as well
	rm -rf .venv

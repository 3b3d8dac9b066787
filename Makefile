# Each target sets up what it needs in .venv; `make` alone explains them.
PYTHON ?= python3
VENV := .venv
BIN := $(CURDIR)/$(VENV)/bin
READY := $(VENV)/.ready
GOLDEN := ../shared/golden
ADAPTER := tests.conformance.adapter
INTEROP_PYTHON := $(CURDIR)/.interop/venv/bin/python
DOCS := .venv-docs
DOCS_BIN := $(CURDIR)/$(DOCS)/bin
# strict: a broken link, or a public name without a docstring, is an error
MKDOCS := NO_MKDOCS_2_WARNING=1 $(DOCS_BIN)/mkdocs
MKDOCS_FILE := delta_pyds/docs/mkdocs.yml
SAIL_PYTHON := $(CURDIR)/.sail/bin/python
NATIVE_ADAPTER := tests.conformance.native_adapter
SAIL_ADAPTER := tests.conformance.sail_adapter
ARGS ?=
# make conformance SAMPLE=4: Spark reads one table in four, and each feature at least once; the core reads them all
SAMPLE ?=

# Spark's workers must be this environment's Python, and its sockets this machine's alone.
export PYSPARK_PYTHON := $(BIN)/python
export PYSPARK_DRIVER_PYTHON := $(BIN)/python
export SPARK_LOCAL_IP := 127.0.0.1

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help demo demo-streaming demo-upsert demo-concurrent demo-install demo-sql demo-change-feed demo-maintenance demo-catalog demo-catalog-of-yours test test-exhaustive test-histories test-browser test-postgresql test-stores test-cluster test-sail test-comet test-versions test-tools dist test-crashes fuzz check conformance interop parity refusals bench bench-peers format bench-report bench-tasks docs docs-serve setup clean python java chromium

help: ## Show this list
	@echo "delta_pyds: Delta Lake for PySpark in pure Python. Targets:"
	@awk -F':.*## ' '/^[a-z-]+:.*## / {printf "  make %-17s %s\n", $$1, $$2}' $(MAKEFILE_LIST)
	@echo "Options: PYTHON=python3.12 (which Python makes $(VENV)), ARGS='...' (passed to pytest or to the benchmarks)."

demo: java setup ## Set everything up and read a Delta table with Spark (examples/quickstart.py)
	@$(BIN)/python examples/quickstart.py $(ARGS)

demo-streaming: java setup ## Stream a Delta table with Spark, exactly once, and its changes (examples/streaming.py)
	@$(BIN)/python examples/streaming.py $(ARGS)

demo-upsert: java setup ## Merge into a Delta table, update and delete its rows (examples/upsert.py)
	@$(BIN)/python examples/upsert.py $(ARGS)

demo-concurrent: java setup ## Merge by four processes into one table while it is optimized (examples/concurrent_writers.py)
	@$(BIN)/python examples/concurrent_writers.py $(ARGS)

demo-install: java setup ## Run a program for delta-spark without its JAR (examples/delta_program.py)
	@$(BIN)/python examples/delta_program.py $(ARGS)

demo-sql: java setup ## Run SQL on Delta tables: create, merge, query, keep in order (examples/sql.py)
	@$(BIN)/python examples/sql.py $(ARGS)

demo-change-feed: java setup ## Read what a merge changed, row by row, and apply it elsewhere (examples/change_feed.py)
	@$(BIN)/python examples/change_feed.py $(ARGS)

demo-maintenance: java setup ## Create a table, alter it, optimize, vacuum, restore and clone it (examples/maintenance.py)
	@$(BIN)/python examples/maintenance.py $(ARGS)

demo-catalog: java setup ## Create, change and read a table that a catalog in SQLite manages (examples/catalog.py)
	@$(BIN)/python examples/catalog.py $(ARGS)

demo-catalog-of-yours: java setup ## Check a catalog of your own, and write a table through it (examples/catalog_of_yours.py)
	@$(BIN)/python examples/catalog_of_yours.py $(ARGS)

test: java setup ## Run the tests (ARGS='tests/unit -k name' selects); what is exhaustive is sampled by the commit
	@$(BIN)/python -m pytest -n 2 --dist worksteal --durations=15 $(ARGS)

test-exhaustive: java setup ## Take all of what `make test` samples: properties, tests with Spark, predicates, expressions, kills
	@EXHAUSTIVE=1 $(BIN)/python -m pytest -n 2 --dist worksteal --durations=15 tests/unit tests/property tests/spark tests/concurrency $(ARGS)

test-browser: chromium setup docs ## Show reports and the site in a real Chromium, light and dark, wide and narrow
	@$(BIN)/python -m pytest tests/browser $(ARGS)

# Where no server can be had, postgresql_server.py says so and ends with status 69 (`make` shows it as Error 69).
test-postgresql: setup ## Run the contract of catalogs, races and faults with a real PostgreSQL server (a package brings it)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 -e '.[dev,test-postgresql]'
	@$(BIN)/python -m tests.support.postgresql_server $(BIN)/python -m pytest tests/postgresql $(addprefix tests/unit/catalog/,\
	  test_contract.py test_committer.py test_publishing.py) \
	  tests/concurrency/test_catalog_writers.py $(ARGS)

# One again: make test-histories HISTORIES=1 DELTA_PYDS_FIRST_HISTORY=17. Without a server: status 69, as above.
# OF=feeds compares computed changes with the record of a twin instead, beside the reference: see interop.
test-histories: setup $(if $(filter feeds,$(OF)),java) ## Run 1,000 drawn histories: racing writers, killed, on disk, in a failing store, SQLite, PostgreSQL (an hour; OF=feeds: computed changes)
	@if [ "$(OF)" = feeds ]; then $(PYTHON) tests/interop/setup_env.py; \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 -e '.[dev,test-postgresql]'; fi
	@DELTA_PYDS_HISTORIES=$(or $(HISTORIES),1000) $(if $(DELTA_PYDS_FIRST_HISTORY),DELTA_PYDS_FIRST_HISTORY=$(DELTA_PYDS_FIRST_HISTORY)) \
	  $(if $(filter feeds,$(OF)),\
	    PYSPARK_PYTHON="$(INTEROP_PYTHON)" PYSPARK_DRIVER_PYTHON="$(INTEROP_PYTHON)" \
	      $(INTEROP_PYTHON) -m pytest -p tests.interop.matrix tests/interop/test_drawn_feeds.py,\
	    $(BIN)/python -m tests.support.postgresql_server \
	      $(BIN)/python -m pytest tests/concurrency/test_changing_writers.py) -n 2 --dist worksteal $(ARGS)

# Where a server cannot be had, store_processes.py says so, tests the others and ends with status 69.
test-stores: java setup ## Run contract, races, kills, faults and Spark on servers of S3, Azure, Google (needs mvn, npm, Go)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 -e '.[dev,azure,gcs]'
	@$(BIN)/python -m tests.support.store_processes $(BIN)/python -m pytest -n 2 --dist worksteal $(if $(findstring tests/,$(ARGS)),,tests/stores) $(ARGS)

# At most 4 GB of memory, in one process after the other.
test-cluster: java setup ## Run Spark on clusters of this machine: two executors, killed, doubted, without the package (20 minutes)
	@$(BIN)/python -m pytest tests/cluster $(ARGS)

# An environment of its own: its server runs an older PySpark than the rest of the tests.
test-sail: python ## Run Spark Connect with another engine, Sail: right rows, or a refusal (SAMPLE=1: all golden tables)
	@test -x $(SAIL_PYTHON) || $(PYTHON) -m venv .sail
	@$(SAIL_PYTHON) -m pip install --quiet --disable-pip-version-check --use-pep517 -r tests/sail/requirements.txt -e .
	@PYSPARK_PYTHON="$(SAIL_PYTHON)" PYSPARK_DRIVER_PYTHON="$(SAIL_PYTHON)" $(SAIL_PYTHON) -m pytest tests/sail $(ARGS)
	@test ! -f $(GOLDEN)/run_conformance.py || { \
	  sample=$$($(SAIL_PYTHON) -m tests.conformance.sample $(GOLDEN) $(or $(SAMPLE),8)) || exit 1; status=0; \
	  for hook in read read_format; do PYTHONPATH="$(CURDIR)" $(SAIL_PYTHON) $(GOLDEN)/run_conformance.py \
	    --set $(GOLDEN) --python-read $(SAIL_ADAPTER):$$hook --quiet $$sample || status=1; done; exit $$status; }

# Its JAR, of 99 MB, comes through Maven. Status 69 says that it cannot be had.
test-comet: java python ## Run native reads with Comet, an accelerator, on Spark 4.1: the same rows (ARGS='--sample 4': fewer golden tables)
	@PYTHONPATH="$(CURDIR)" $(PYTHON) -m tests.comet $(ARGS)

# One environment for each Spark, below .sparks.
test-versions: java python ## Run a core of tests on Spark 4.0, 4.1 and 4.2, and write README's table (ARGS="--drawn", "--spark 4.1", "--whole", "--conformance", "--dependencies oldest")
	@PYTHONPATH="$(CURDIR)" $(PYTHON) -m tests.versions $(ARGS)

# One environment for each tool, below .tools, with the wheel.
test-tools: java python ## Run programs of dbt and other tools, each in its own environment (ARGS='--tool dbt')
	@PYTHONPATH="$(CURDIR)" $(PYTHON) -m tests.tools $(ARGS)

dist: java python ## Build sdist and wheel into dist, check them, and run a quarter of the unit tests of the sdist alone (EXHAUSTIVE=1: all; ARGS="--no-tests")
	@PYTHONPATH="$(CURDIR)" $(PYTHON) -m tests.release $(ARGS)

test-crashes: java setup ## Kill Spark 20 times under streams of rows, and as often of changes, about 30 minutes (ARGS='-k each_row' or '-k each_change')
	@DELTA_PYDS_CRASHES=20 $(BIN)/python -m pytest -s tests/concurrency/test_crashes.py $(ARGS)

fuzz: java setup ## Damage 10,000 tables and read them, about 10 minutes (ARGS='--part footers|expressions', '--seed 2 --count 500', '--only 17')
	@$(BIN)/python -m tests.fuzz $(ARGS)

check: setup ## Style, types, the rules of the architecture, unused definitions: ruff, mypy, import-linter, vulture
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports --no-cache
	@$(BIN)/vulture
	@$(BIN)/vulture delta_pyds tests examples

format: setup ## Rewrite the code in the project's style
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

ifneq ($(wildcard $(GOLDEN)/run_conformance.py),)
conformance: java setup ## Compare with the reference's tables, through the core, Spark, its own reader, Connect and a catalog
	@status=0; sample=""; \
	if [ -n "$(SAMPLE)" ]; then sample=$$($(BIN)/python -m tests.conformance.sample $(GOLDEN) $(SAMPLE)) || exit 1; fi; \
	PYTHONPATH="$(CURDIR)" $(BIN)/python $(GOLDEN)/run_conformance.py --set $(GOLDEN) \
	  --python-read $(ADAPTER):read --python-files $(ADAPTER):files --python-version-at $(ADAPTER):version_at \
	  --python-txn $(ADAPTER):txn --python-row-ids $(ADAPTER):row_ids --python-detail $(ADAPTER):detail \
	  --python-history $(ADAPTER):history --python-cdf $(ADAPTER):cdf --quiet $(ARGS) || status=1; \
	PYTHONPATH="$(CURDIR)" $(BIN)/python $(GOLDEN)/run_conformance.py --set $(GOLDEN) \
	  --spark-format deltapy_recorded --spark-setup tests.conformance.recorded_feed:register --spark-cdf \
	  --quiet $$sample $(ARGS) || status=1; \
	for read in read read_on_connect; do \
	  PYTHONPATH="$(CURDIR)" $(BIN)/python $(GOLDEN)/run_conformance.py --set $(GOLDEN) \
	    --python-read $(NATIVE_ADAPTER):$$read --quiet $$sample $(ARGS) || status=1; \
	done; \
	PYTHONPATH="$(CURDIR)" $(BIN)/python -m tests.conformance.managed $(GOLDEN) || status=1; \
	exit $$status
else
conformance:
	@echo "Conformance was not run: this checkout has no $(GOLDEN)/run_conformance.py beside it."
endif

# The newest Spark that the reference supports lives in .interop. Where its JARs cannot be had, setup_env.py says so and
# ends with status 69 (`make` shows it as Error 69, and itself ends with 2).
interop: java python ## Exchange tables with the reference and deltalake: tests/interop/MATRIX.md (ARGS='-k name' selects)
	@$(PYTHON) tests/interop/setup_env.py
	@PYSPARK_PYTHON="$(INTEROP_PYTHON)" PYSPARK_DRIVER_PYTHON="$(INTEROP_PYTHON)" \
	  $(INTEROP_PYTHON) -m pytest -p tests.interop.matrix -n 2 --dist worksteal tests/interop $(ARGS)

parity: setup ## Write the page of what the reference has, item by item: tests/parity/PARITY.md
	@PYTHONPATH="$(CURDIR)" $(BIN)/python -m tests.parity.page

refusals: setup ## Print every refusal of the package with its code and place (ARGS='insert' selects; * has no code of the reference)
	@PYTHONPATH="$(CURDIR)" $(BIN)/python -m tests.parity.refusals $(ARGS)

bench: java setup ## Print ratios against deltalake, Spark's Parquet reader and a minimal source (ARGS='--quick')
	@$(BIN)/python -m tests.bench $(ARGS)

bench-peers: java python ## Time this project beside the reference and deltalake: tests/bench/RESULTS.md (ARGS='--quick')
	@$(PYTHON) tests/interop/setup_env.py
	@$(INTEROP_PYTHON) -m pip install --quiet --disable-pip-version-check -r tests/bench/peers/requirements.txt
	@PYSPARK_PYTHON="$(INTEROP_PYTHON)" PYSPARK_DRIVER_PYTHON="$(INTEROP_PYTHON)" \
	  $(INTEROP_PYTHON) -m tests.bench.peers $(ARGS)

bench-report: setup ## Make the report of a table of a million files: seconds, memory, length of the page (ARGS='1000')
	@$(BIN)/python -m tests.bench.report $(ARGS)

bench-tasks: java setup ## Hand a million files out to 1,000 tasks: seconds, bytes and memory on the driver (ARGS='--quick')
	@$(BIN)/python -m tests.bench.handed_out $(ARGS)

docs: python $(DOCS)/.ready ## Build the site of the documentation: .site/index.html (needs neither Java nor Spark)
	@$(MKDOCS) build -f $(MKDOCS_FILE) $(ARGS)
	@echo "The site is built: .site/index.html"

docs-serve: python $(DOCS)/.ready ## Show the site on 127.0.0.1:8000, and build it again when a page changes
	@$(MKDOCS) serve -a 127.0.0.1:8000 -f $(MKDOCS_FILE) -w delta_pyds $(ARGS)

$(DOCS)/.ready: pyproject.toml
	@echo "Setting up $(DOCS) (once) ..."
	@test -x $(DOCS_BIN)/python || $(PYTHON) -m venv $(DOCS)
	@$(DOCS_BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 -e '.[docs]'
	@touch $@

setup: python $(READY)

# A stamp: installing again only when what is to be installed has changed.
$(READY): pyproject.toml
	@echo "Setting up $(VENV) (once; this downloads PySpark) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --use-pep517 -e '.[dev]'
	@touch $@

clean: ## Remove the environment and what the tools left
	rm -rf $(VENV) $(DOCS) .site .venv-thin .interop .sail .sparks .tools .stores .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache build dist spark-warehouse

python:
	@command -v $(PYTHON) >/dev/null 2>&1 || { \
	  echo "No $(PYTHON) found. Install Python 3.10 or newer, or name one: make PYTHON=/path/to/python3 ..." >&2; exit 1; }
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10))' || { \
	  echo "$$($(PYTHON) --version) is too old. Install Python 3.10 or newer, or name one: make PYTHON=python3.12 ..." >&2; \
	  exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || { \
	  echo "$(PYTHON) cannot make virtual environments. Install its venv module (Debian, Ubuntu: apt install python3-venv)." >&2; \
	  exit 1; }

# Spark asks JAVA_HOME first, then PATH.
java:
	@java="$${JAVA_HOME:+$$JAVA_HOME/bin/}java"; \
	version=$$("$$java" -version 2>&1 | sed -n 's/.* version "\([0-9]*\).*/\1/p' | head -n 1); \
	if [ "$${version:-0}" -lt 17 ]; then \
	  if [ -n "$$version" ]; then found="$$java is version $$version."; \
	  elif [ -n "$$JAVA_HOME" ]; then found="JAVA_HOME is $$JAVA_HOME, where there is no working bin/java."; \
	  else found="No java was found on PATH, and JAVA_HOME is not set."; fi; \
	  echo "Spark needs Java 17 or newer. $$found" >&2; \
	  echo "Install one (Debian, Ubuntu: apt install openjdk-17-jre-headless; macOS: brew install openjdk@17; or adoptium.net), then run make again." >&2; \
	  exit 1; \
	fi

# A real browser shows the pages of reports in the tests. Where this may be done, it is installed from the system's packages.
chromium:
	@for name in chromium chromium-browser google-chrome; do command -v $$name >/dev/null 2>&1 && exit 0; done; \
	if [ "$$(id -u)" -eq 0 ]; then as_root=""; else as_root="sudo -n"; fi; \
	if command -v apt-get >/dev/null 2>&1 && $$as_root true 2>/dev/null; then \
	  echo "Installing Chromium, which tests show pages with (once) ..."; \
	  install="$$as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq -o DPkg::Lock::Timeout=300"; \
	  $$install install -y --no-install-recommends chromium >/dev/null 2>&1 \
	    || { $$install update >/dev/null && $$install install -y --no-install-recommends chromium >/dev/null; } \
	    || { echo "Chromium could not be installed: see the messages of apt-get above." >&2; exit 1; }; \
	else \
	  echo "Tests show pages in a real browser, and no chromium, chromium-browser or google-chrome was found on PATH." >&2; \
	  echo "Install one (Debian: apt install chromium), then run make again." >&2; \
	  exit 1; \
	fi

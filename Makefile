# Everything a clone needs. `make` alone lists the targets.
PYTHON ?= python3
VENV   ?= .venv
BIN    := $(VENV)/bin
STAMP  := $(VENV)/.installed
SIZES  ?= 1k,10k,100k
SEEDS  ?= 0:500
LEVEL  ?= log
MUTANT ?=
HISTORIES ?= 20000
TABLES ?= 1000
CORRUPTIONS ?= 10000
KILLS  ?= 1000
MUTANTS ?= 200
LISTS  ?= 100
TURNS  ?= 100
INGESTIONS ?= 100
STREAMS ?= 30
JOBS   ?= 2
DOORS  ?= 0:1000
KEEP   ?=
SPARK  ?= 4.3
# JOBS processes share the files, the longest first; a Spark session belongs to its process.
SHARDS := -n $(JOBS) --dist loadfile --no-loadscope-reorder

.DEFAULT_GOAL := help
.PHONY: help install java browser demo test test-fast test-sample test-long wheel test-wheel test-spark test-spark-core check bench simulate harness doors golden docs clean

help: ## list the targets
	@grep -hE '^[a-z-]+:.*## ' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  %-11s %s\n", $$1, $$2}'

install: $(STAMP) ## create the virtual environment and install everything into it

$(STAMP): pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or later is needed; this is " + sys.version.split()[0] if sys.version_info < (3, 11) else 0)'
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade "pip>=25.1"
	$(BIN)/python -m pip install --quiet --editable ".[connect,serve]" --group dev
	@touch $@

java: ## check for Java 17 or later, which Spark needs
	@sh scripts/check-java.sh

browser: ## look for Chromium, in which the page is tested
	@sh scripts/check-browser.sh

demo: $(STAMP) java ## build a table of log events and show what it can do
	$(BIN)/indextables demo

test: $(STAMP) java browser ## run every kind of test; KEEP=--keep-durations writes tests/durations.json
	$(BIN)/python -m pytest -m "not spark and not long" $(SHARDS) $(KEEP)
	$(BIN)/python -m pytest -m "spark and not long" $(SHARDS) $(KEEP)

test-fast: $(STAMP) ## run the tests that need neither Spark nor patience
	$(BIN)/python -m pytest -m "not slow and not spark and not long" $(SHARDS)

test-sample: $(STAMP) ## run a sample of the long tests: processes on S3, killed writers, a faulty network
	$(BIN)/python -m pytest -m sample $(KEEP)

test-long: $(STAMP) java harness doors golden ## run what takes hours: long tests, simulated histories, kills, every door
	$(BIN)/python -m pytest -m long --keep-durations

wheel: $(STAMP) ## build what a release publishes into dist/: the wheel has Java classes for every Spark, so it needs a JDK
	@sh scripts/check-java.sh javac
	$(BIN)/python scripts/make_wheel.py

test-wheel: wheel ## install the wheel into empty environments, and use it there
	$(BIN)/python scripts/test_wheel.py

test-spark: wheel ## run the whole Spark suite from the wheel on SPARK=3.5, 4.0, 4.1, 4.2 or 4.3
	$(BIN)/python scripts/test_spark.py $(SPARK) whole --keep $(SHARDS)

test-spark-core: wheel ## run its core, every verb and door once, on Spark 3.5 and 4.0
	$(BIN)/python scripts/test_spark.py 3.5 core
	$(BIN)/python scripts/test_spark.py 4.0 core

check: $(STAMP) ## lint, check the format and the types, Python's and Java's
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python scripts/lint_java.py

bench: $(STAMP) java ## measure against named rivals; SIZES=1k,10k,100k,1M for the full run
	$(BIN)/python -m benchmarks.run all --sizes $(SIZES)

simulate: $(STAMP) ## run simulated histories; SEEDS=first:end or one seed, LEVEL=log|table|lists, MUTANT=a planted bug
	cd tests && $(abspath $(BIN))/python -m simulation.run --seeds $(SEEDS) --level $(LEVEL) --jobs $(JOBS) --mutant "$(MUTANT)"

harness: $(STAMP) ## run HISTORIES, TABLES, CORRUPTIONS, KILLS, power cuts and MUTANTS, going on where the last run ended
	cd tests && $(abspath $(BIN))/python -m simulation.run --seeds 0:$(HISTORIES) --level log --jobs $(JOBS) --resume simulation
	cd tests && $(abspath $(BIN))/python -m simulation.run --seeds 0:$(TABLES) --level table --jobs $(JOBS) --resume simulation
	cd tests && $(abspath $(BIN))/python -m simulation.run --seeds 0:$(TABLES) --level lists --jobs $(JOBS) --resume simulation
	cd tests && $(abspath $(BIN))/python -m simulation.planted
	cd tests && $(abspath $(BIN))/python -m simulation.branches
	cd tests && $(abspath $(BIN))/python -m simulation.page
	cd tests && $(abspath $(BIN))/python -m corruption.run --seeds 0:$(CORRUPTIONS) --resume
	cd tests && $(abspath $(BIN))/python -m corruption.page
	cd tests && $(abspath $(BIN))/python -m harness.kills --until $(KILLS)
	cd tests && $(abspath $(BIN))/python -m lists.processes --until $(LISTS)
	cd tests && $(abspath $(BIN))/python -m ingestion.run --until $(INGESTIONS)
	cd tests && $(abspath $(BIN))/python -m streams.kills --until $(STREAMS)
	cd tests && $(abspath $(BIN))/python -m versions.two_versions --until $(TURNS)
	cd tests && $(abspath $(BIN))/python -m harness.stories --keep
	cd tests && $(abspath $(BIN))/python -m harness.power --replays 1080 --keep
	cd tests && $(abspath $(BIN))/python -m harness.mutants --seed 11 --count $(MUTANTS) --jobs $(JOBS) --resume
	cd tests && $(abspath $(BIN))/python -m harness.page

doors: $(STAMP) java ## ask every door drawn questions about DOORS=first:end tables, and Spark about fifty
	cd tests && $(abspath $(BIN))/python -m doors.run --tables $(DOORS) --questions 20 --jobs $(JOBS)
	cd tests && $(abspath $(BIN))/python -m doors.run --spark classic --tables 0:50 --questions 20
	cd tests && $(abspath $(BIN))/python -m doors.run --spark connect --tables 0:5 --questions 20

golden: $(STAMP) java ## read every version of the golden Delta tables, with Spark in three time zones
	$(BIN)/python -m pytest tests/golden
	INDEXTABLES_GOLDEN=all $(BIN)/python -m pytest -s tests/spark/test_golden_versions.py

docs: $(STAMP) ## write the generated pages, build the site into build/site, run the examples
	$(BIN)/python scripts/write_pages.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict
	$(BIN)/python -m pytest tests/docs

clean: ## remove the virtual environment and what was generated
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis

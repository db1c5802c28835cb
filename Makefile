# Everything starts here: `make demo` to see it run, `make test` before a change is sent.
# Needs Python 3.11 or newer and make; the rest is installed into .venv.
# pip leaves an editable install uncompiled: under PYTHONDONTWRITEBYTECODE every start would compile it anew. The kernels
# are compiled here too, so that the first query with state does not wait for them.

PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
DEMO_DATA := build/demo-data
SOURCES := flowsql grammar planner runtime connectors
# Processes of the test run: for two cores one more, as tests wait for terminals, servers and other processes a third of the time.
WORKERS ?= 3
# Processes of the differential fuzzer, which waits for nothing.
FUZZERS ?= 2
# Minutes and first seed of the differential fuzzer.
MINUTES ?= 10
SEED ?= 1

.PHONY: help demo test test-servers check docs bench fuzz chaos parity clean

help:
	@echo "make demo   one SQL script over 336,776 real flights"
	@echo "make test   the whole test suite"
	@echo "make test-servers  what talks to real servers (Kafka, PostgreSQL, ...), which the tests start; installs what is missing of them"
	@echo "make check  formatting, lint, types, layers, tests"
	@echo "make docs   the documents as a site: build/site/index.html"
	@echo "make bench  cold start, waiting times at the prompt, micro benchmarks, Python functions, streams, Nexmark"
	@echo "make fuzz   10,000 mutated statements and formatted scripts, 10,000 random expressions, property tests with many more examples,"
	@echo "            random queries run in many ways, in batch mode, and asked of DuckDB (MINUTES=10 SEED=1)"
	@echo "make chaos  end running jobs at random points, look at what is left; the long tests"
	@echo "make parity bounded scripts through FlowSQL's runtime, Spark and DuckDB, tables compared"
	@echo "make clean  remove what make made"

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.exit(0 if sys.version_info >= (3, 11) else "FlowSQL needs Python 3.11 or newer (PYTHON=python3.12 make ...)")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/demo.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo]'
	$(BIN)/python -m compileall -q $(SOURCES)
	$(BIN)/python -m flowsql_compute.compiler.prepare
	@touch $@

$(VENV)/test.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[demo,test]'
	$(BIN)/python -m compileall -q $(SOURCES)
	$(BIN)/python -m flowsql_compute.compiler.prepare
	@touch $@

$(VENV)/docs.installed: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[docs]'
	@touch $@

$(DEMO_DATA)/flights.csv: examples/prepare_flights.py $(VENV)/demo.installed
	$(BIN)/python examples/prepare_flights.py $(DEMO_DATA)

demo: $(VENV)/demo.installed $(DEMO_DATA)/flights.csv
	$(BIN)/flowsql -f examples/quickstart.sql

test: $(VENV)/test.installed $(DEMO_DATA)/flights.csv
	$(BIN)/python -m pytest -q -n $(WORKERS)

test-servers: $(VENV)/test.installed
	$(BIN)/python -m pytest -q -n 0 -m servers

check: $(VENV)/test.installed $(DEMO_DATA)/flights.csv
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	PYTHONPATH=.:grammar:planner:runtime:connectors $(BIN)/lint-imports
	$(BIN)/python -m pytest -q -n $(WORKERS)

docs: $(VENV)/docs.installed
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs build --strict --quiet
	@echo build/site/index.html

bench: $(VENV)/test.installed
	$(BIN)/python benchmarks/cold_start.py
	$(BIN)/python benchmarks/interactive.py
	for script in benchmarks/micro/*.py; do $(BIN)/python $$script || exit 1; done
	$(BIN)/python benchmarks/checkpoints.py
	$(BIN)/python benchmarks/python_udf.py
	$(BIN)/python benchmarks/datastream.py
	$(BIN)/python benchmarks/nexmark.py

fuzz: $(VENV)/test.installed
	$(BIN)/python tests/grammar/fuzz.py 10000
	FLOWSQL_FUZZ=10000 $(BIN)/python -m pytest -q tests/grammar/formatting/test_random_comments.py
	$(BIN)/python tests/planner/fuzz_plan.py 10000
	$(BIN)/python tests/compute/random_expressions.py 10000
	$(BIN)/python -m pytest -q -n $(WORKERS) --hypothesis-profile=fuzz -m hypothesis
	PYTHONPATH=.:grammar:planner:runtime:connectors $(BIN)/python -m tests.fuzz.run --minutes $(MINUTES) --seed $(SEED) --processes $(FUZZERS)

chaos: $(VENV)/test.installed
	$(BIN)/python -m pytest -q -n $(WORKERS) -m nightly
	$(BIN)/python tests/chaos/chaos.py 40
	$(BIN)/python tests/chaos/recovery/harness.py 400
	$(BIN)/python tests/chaos/resuming/harness.py 100
	$(BIN)/python tests/chaos/recovery/faults.py
	PYTHONPATH=.:grammar:planner:runtime:connectors $(BIN)/python -m tests.chaos.kafka.harness 100 10 || test $$? -eq 3

parity: $(VENV)/test.installed
	PYTHONPATH=.:grammar:planner:runtime:connectors $(BIN)/python tests/spark/parity.py all

clean:
	rm -rf $(VENV) build dist

# cronring: every command that a contributor or CI needs. `make help` lists them.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
ARGS ?=
WORKERS ?= 3
PYTHONS ?= $(or $(wildcard $(HOME)/.pyenv/versions/3.1[23].*/bin/python),python3.12 python3.13)

# Some containers forbid it, and each of hundreds of processes would compile all that it imports.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help

$(VENV)/.demo: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing cronring into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./sdk -e '.[embedded]'
	@touch $@

$(VENV)/.test: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing cronring and its test tools into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./sdk -e '.[test]'
	@touch $@ $(VENV)/.demo

$(VENV)/.bench: pyproject.toml
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing cronring and what it is measured against into $(VENV) …"
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./sdk -e '.[bench]'
	@touch $@ $(VENV)/.test $(VENV)/.demo

.PHONY: help demo test test-long test-again test-pythons test-python lint audit protos schema parameters bench bench-history bench-limits bench-schedules bench-rivals soak chaos chaos-real fault fuzz picture pictures clean

help:  ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "make %-15s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

demo: $(VENV)/.demo  ## three controllers, one runner and an example module on an embedded PostgreSQL (ARGS="--for 30s")
	@$(BIN)/cronring dev examples/demo.py $(ARGS)

test: lint  ## before each commit: lint, types, import contracts, all tests but the long ones
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'not soak and not long' $(ARGS)

test-long: $(VENV)/.test  ## the long tests: faults and chaos in real processes, storms, many seeds
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'long and not soak' $(ARGS)

test-again: $(VENV)/.test  ## what failed in the last run, one after the other
	$(BIN)/python -m pytest --last-failed --last-failed-no-failures none -m 'not soak' $(ARGS)

# The whole suite runs on one Python; what another one may change is in these folders.
test-pythons:  ## unit, conformance and acceptance tests on the other Pythons of this machine (PYTHONS="python3.12")
	@for each in $(PYTHONS); do \
	  if name=$$($$each -c 'import sys; print("python%d.%d" % sys.version_info[:2])' 2>/dev/null); then \
	    $(MAKE) --no-print-directory VENV=$(VENV)/$$name PYTHON=$$each test-python || exit 1; \
	  else echo "skipped: $$each can't be run on this machine"; fi; \
	done

test-python: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile --no-loadscope-reorder -m 'not soak and not long' \
	  tests/unit tests/conformance tests/acceptance $(ARGS)

lint: $(VENV)/.test  ## ruff, mypy --strict, import contracts
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

audit: $(VENV)/.test  ## bandit over the code; pip-audit over what is installed, by the package registry's advisories of today
	$(BIN)/bandit --quiet --configfile pyproject.toml --recursive controller cronring schema protos sql sdk
	$(BIN)/python -m tests.support.dependencies

protos: $(VENV)/.test  ## regenerate protos/**/*_pb2* and openapi.json (committed; tests prove them fresh)
	$(BIN)/python protos/generate.py
	$(BIN)/python -m cronring.controller.api.rest.openapi
	$(BIN)/python -m cronring.client.generate
	$(BIN)/python clients/typescript/generate.py

schema: $(VENV)/.test  ## rewrite sql/schema.sql after a new migration (committed; a test proves it fresh)
	$(BIN)/python -m tests.migration.dump

parameters: $(VENV)/.test  ## regenerate sql/parameters.py, the records of all statements (committed; a test proves them fresh)
	$(BIN)/python -m cronring.sql.generate

bench: $(VENV)/.test  ## every figure that README quotes, in one run (ARGS="--only burst")
	$(BIN)/python -m bench $(ARGS)

bench-history: $(VENV)/.test  ## an hour at 500 executions a second, with retention at work
	$(BIN)/python -m bench.history $(ARGS)

bench-limits: $(VENV)/.test  ## the floor: bare row changes through asyncpg, and grpc.aio, with no scheduler at all
	$(BIN)/python -m bench.limits $(ARGS)

bench-schedules: $(VENV)/.bench  ## patterns and ticks beside croniter and cronsim
	$(BIN)/python -m bench.schedules

bench-rivals: $(VENV)/.test  ## bursts and queues beside other schedulers, the long form, half an hour (ARGS="--jobs 500 --only pgqueuer")
	$(BIN)/python -m bench.rivals $(ARGS)

soak: $(VENV)/.test  ## the long runs: ten thousand worlds, every fault for as long as its figures, fuzzing (hours)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./sdk -e '.[fuzz]'
	DRAWN=1 $(BIN)/python -m pytest tests/simulation tests/unit/schema tests/fuzz
	DRAWN=1 $(BIN)/python -m pytest -m soak --timeout=7200 $(ARGS)

chaos: $(VENV)/.test  ## two virtual hours of faults and operators in one world, audited (ARGS="--seed 7")
	$(BIN)/python -m tests.simulation.run --hours 2 --quiet $(ARGS)

chaos-real: $(VENV)/.test  ## ten minutes of faults and operators in real processes, audited (ARGS="--minutes 3 --seed 7")
	$(BIN)/python -m tests.support.chaos_run $(ARGS)

fault: $(VENV)/.test  ## a fault in real processes, judged: docs/reliability.md (ROW=kill-controller ARGS="--long")
	@$(BIN)/python -m tests.faults $(or $(ROW),--list) $(ARGS)

fuzz: $(VENV)/.test  ## every parser and handler with coverage to guide it, a minute each (ARGS="-k pattern")
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e ./sdk -e '.[fuzz]'
	$(BIN)/python -m pytest -m soak --timeout=900 tests/fuzz/test_soak.py $(ARGS)

picture: $(VENV)/.demo  ## draw docs/demo.svg: the demo, with a controller killed in the middle
	@$(BIN)/python docs/make_picture.py

pictures: $(VENV)/.test  ## take docs/pictures anew, in a real browser (Debian: apt-get install chromium-headless-shell)
	CRONRING_KEEP_PICTURES=1 $(BIN)/python -m pytest -q tests/console/test_pictures.py tests/console/test_states.py

clean:  ## forget the virtual environment
	rm -rf $(VENV)

# `make chat` and `make test` need Python 3.11 or newer with venv and pip, and nothing else.
# Both set up .venv here; later runs only when pyproject.toml changed or the folder moved.

PY := .venv/bin/python
PIP := $(PY) -m pip install -qq --disable-pip-version-check
# Tests wait for what they started: two cores serve three workers.
WORKERS := -q -n 3 --dist worksteal
PYTHONS := python3 python3.14 python3.13 python3.12 python3.11 python

# What runs under `make chat` may call make itself: it must not inherit this one's flags.
unexport MAKEFLAGS MFLAGS MAKE_TERMOUT MAKE_TERMERR

.PHONY: help chat test test-slow test-all coverage fuzz check rows docs picture bench FORCE

help:
	@echo 'make chat    talk to gong'
	@echo 'make test    run the tests, but for those marked slow'
	@echo 'make test-slow  run those: kills, damage, floods, long searches; CI does'
	@echo 'make test-all  run both, with every case of the large tables; for a night'
	@echo 'make coverage  run the tests, and say which share of the code they run'
	@echo 'make fuzz    search the properties elsewhere each time; SECONDS=300 for longer'
	@echo 'make check   lint, format, types, layers, start-up'
	@echo 'make rows    requirements that are open, and why'
	@echo 'make docs    docs/reference*.md and lists of agents, from the code'
	@echo 'make picture  docs/terminal.svg and docs/serve.png, from runs in a terminal and Chromium'
	@echo 'make bench   measure the store: ratios to bare writes, decoding, hashing'

chat: .venv/chat.ready
	@unset MAKELEVEL; exec .venv/bin/gong chat

ifdef COVERAGE
test: coverage
else
test: .venv/test.ready
	@$(PY) -m pytest $(WORKERS) -m 'not slow'
endif

test-slow: .venv/test.ready
	@$(PY) -m pytest $(WORKERS) -m slow

# Tests are compiled once, not by each worker of each run.
test test-slow coverage: export PYTHONDONTWRITEBYTECODE :=

test-all: export TEST_BUDGET := 2
test-all: test test-slow

coverage: .venv/test.ready
	@rm -rf .coverage
	@$(PY) -m coverage run -m pytest $(WORKERS)
	@$(PY) -m coverage combine --quiet
	@$(PY) -m tests.measured

SECONDS := 120

fuzz: .venv/test.ready
	@$(PY) -m tests.fuzz $(SECONDS)

check: .venv/test.ready
	@$(PY) -m ruff check --quiet .
	@$(PY) -m ruff format --quiet --check .
	@$(PY) -m mypy
	@$(PY) -m pytest -q tests/test_layers.py tests/test_startup.py

rows: .venv/chat.ready
	@$(PY) -m tests.rows

docs: .venv/chat.ready
	@$(PY) -m tests.docs.reference

picture: .venv/test.ready
	@$(PY) -m tests.docs.terminal_picture
	@$(PY) -m tests.docs.serve_picture

bench: .venv/chat.ready
	@$(PY) bench/run.py

NEW_ENOUGH := import ensurepip, sys, venv; sys.exit(sys.version_info < (3, 11))

# Make .venv unless a usable one stands there. `make PYTHON=/path/to/python3 …` names the Python.
define VENV
@if ! { $(PY) -c '$(NEW_ENOUGH)' && $(PY) -m pip --version; } >/dev/null 2>&1; then \
	for python in $${PYTHON:+"$$PYTHON"} $(PYTHONS) ''; do \
		if "$$python" -c '$(NEW_ENOUGH)' >/dev/null 2>&1; then break; fi; \
	done; \
	if [ -z "$$python" ]; then \
		echo 'gong needs Python 3.11 or newer with venv and pip; found none among:' \
			"$${PYTHON:+$$PYTHON }$(PYTHONS)." >&2; \
		echo 'Install one (Debian, Ubuntu: python3 and python3-venv), or name it:' \
			'make PYTHON=/path/to/python3 …' >&2; \
		exit 1; \
	fi; \
	echo "Making .venv with $$("$$python" --version)"; \
	"$$python" -m venv --clear .venv || exit 1; \
fi; \
echo 'Installing into .venv, once'
endef

.venv/chat.ready: pyproject.toml
	$(VENV)
	@$(PIP) -e '.[all]'
	@pwd -P >.venv/place
	@touch $@

.venv/test.ready: pyproject.toml
	$(VENV)
	@$(PIP) -e '.[all,dev]'
	@pwd -P >.venv/place
	@touch .venv/chat.ready $@

# An environment names its folder in every script: after a move it is installed anew.
ifneq ($(shell [ "$$(cat .venv/place 2>/dev/null)" = "$$(pwd -P)" ] && echo here),here)
.venv/chat.ready .venv/test.ready: FORCE
endif

# Two commands for everyone: `make demo` and `make test`. Each does all its set-up.
PYTHON ?= python3
BIN := .venv/bin
DEMO := pile

.PHONY: setup demo test test-slow test-everywhere wheel lint format bench viewer docs claims clean

setup: .venv/.ready

.venv/.ready: pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
	  { echo "contactdynamics needs Python 3.11 or newer; say which one: make PYTHON=python3.12 setup" >&2; exit 2; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@

demo: setup
	$(BIN)/cdyn run $(DEMO) --quick --force --out results/demo
	@echo "The picture is results/demo/figure.png"

test: setup
	$(BIN)/python -m pytest

test-slow: setup
	$(BIN)/python -m pytest -m slow

# The suite on other processors and with the oldest and newest versions allowed, as far as this machine can imitate them.
test-everywhere: setup
	$(BIN)/python tools/everywhere.py

# Without build/, so that no module of an older build is packed.
wheel: setup
	rm -rf build dist
	$(BIN)/python -m pip wheel --quiet --disable-pip-version-check --no-deps --wheel-dir dist .
	@ls dist/*.whl

lint: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

format: setup
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# The program of the page, from viewer/: needs Node and npm. The result is in the repository.
viewer:
	cd viewer && npm ci --no-fund --no-audit && npm run build

# Every experiment is run in its quick form, for the gallery: some minutes; warnings of Sphinx are errors.
docs: setup
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[docs]'
	$(BIN)/python tools/make_site.py
	@echo "The site is build/site/index.html"

# The numbers of README and docs with their commands; those that can be run in minutes are, and one that fails fails this.
claims: setup
	$(BIN)/python tools/claims.py

bench: setup
	$(BIN)/cdyn bench system
	$(BIN)/cdyn bench sweep
	$(BIN)/cdyn bench step

clean:
	rm -rf .venv .cache build dist results src/*.egg-info

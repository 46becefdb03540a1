# make up     install what is needed into .venv, start the registry
# make test   everything that must hold before a change lands
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

.PHONY: up test bench lock wheel clean

up: $(VENV)/.runtime
	@$(BIN)/ctxr up

test: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest -n auto

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

wheel: $(VENV)/.dev
	$(PIP) wheel --no-deps --no-build-isolation --wheel-dir dist .

# Everything is resolved once, for the tests; what the product runs on is a part of that.
LOCK := pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock" pyproject.toml --extra postgres
lock: $(BIN)/python
	$(PIP) install uv
	$(BIN)/uv $(LOCK) --group dev --upgrade --output-file requirements-dev.lock
	$(BIN)/uv $(LOCK) --constraints requirements-dev.lock --output-file requirements.lock

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@PYTHON="$(PYTHON)" ./.ci/make-venv $(VENV)

$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing into $(VENV) ..."
	@$(PIP) install --require-hashes --requirement requirements.lock
	@$(PIP) install --no-deps --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@echo "Installing the test tools into $(VENV) ..."
	@$(PIP) install --require-hashes --requirement requirements-dev.lock
	@touch $@

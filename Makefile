# make try     answer a question from this machine's histories; stores nothing unless you agree
# make up      install into .venv and start the registry; EXTRAS=embed,zst also installs these extras
# make quick   the fast tests: without PostgreSQL, browser, node and child processes
# make test    all checks and tests that a change must pass
# make editor  build, test and package the extension for VS Code and Cursor; needs node 20 or newer
PYTHON ?= python3
EXTRAS ?=
VENV := .venv
BIN := $(VENV)/bin
# One worker more than cores, because tests wait for processes, browsers and databases a fifth of their time.
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
INSTALL := @./.ci/install $(VENV)
# With this variable pytest cannot cache its rewritten plugin modules, and rewrites them at each start.
unexport PYTHONDONTWRITEBYTECODE

# Scripts of a virtual environment contain its path: delete .venv if the clone was moved.
$(shell [ ! -e $(BIN)/pip ] || grep -qF '$(CURDIR)/$(BIN)/' $(BIN)/pip || rm -rf $(VENV))

.PHONY: try up quick test checks tests bench faults ha editor docs lock dist clean

try: $(VENV)/.runtime
	@$(BIN)/ctxr try

up: $(VENV)/.runtime
	$(if $(EXTRAS),$(INSTALL) --editable '.[$(EXTRAS)]')
	@./.ci/link-program $(CURDIR)/$(BIN)/ctxr
	@$(BIN)/python -m compileall -q registry sources orchestrator mcp_server backoffice cli
	@$(BIN)/ctxr up

quick: $(VENV)/.dev
	$(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal -m "not slow"

test: $(VENV)/.dev
	@$(MAKE) --no-print-directory --jobs 2 checks tests

checks:
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports
	$(BIN)/mypy

tests:
	$(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal

bench: $(VENV)/.dev
	$(BIN)/python -m benchmarks

# Not part of `make test`, because it needs node.
editor:
	cd editor && npm install --no-package-lock --silent && npm run --silent check && npm test --silent && npm run --silent build && npm run --silent package

# Build the documentation site in dist/docs.
docs: $(VENV)/.dev
	$(BIN)/uv tool run zensical==0.0.73 build --config-file mkdocs.yml

# Build what is published: the source distribution, its wheel, and the bundle for Claude Desktop.
dist: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m hatchling build
	cd integrations/claude-desktop && $(CURDIR)/$(BIN)/python -m zipfile -c $(CURDIR)/dist/context-registry.mcpb manifest.json pyproject.toml main.py

# Inject faults into a server under load: an hour.
faults: $(VENV)/.dev
	$(BIN)/python -m benchmarks.faults

# requirements-dev.lock is resolved first; the other lock files use its versions.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock"
lock: $(VENV)/.dev
	$(LOCK) pyproject.toml --extra postgres --group dev --upgrade --output-file requirements-dev.lock
	$(LOCK) pyproject.toml --extra postgres --constraints requirements-dev.lock --output-file requirements.lock
	echo cyclonedx-bom | $(LOCK) - --constraints requirements-dev.lock --output-file requirements-sbom.lock
	echo uv | $(LOCK) - --constraints requirements-dev.lock --output-file requirements-uv.lock

# Kill the leader of a local PostgreSQL cluster ten times under load, then rehearse a restore: a quarter of an hour.
ha: $(VENV)/.dev
	$(BIN)/python -m benchmarks.failover
	$(BIN)/python -m benchmarks.failover --restore

clean:
	rm -rf $(VENV) dist .mypy_cache .pytest_cache .ruff_cache .import_linter_cache .hypothesis

$(BIN)/python:
	@PYTHON="$(PYTHON)" ./.ci/make-venv $(VENV)

$(VENV)/.runtime: requirements.lock pyproject.toml | $(BIN)/python
	@echo "Installing into $(VENV) ..."
	$(INSTALL) --require-hashes --requirement requirements.lock
	$(INSTALL) --no-deps --editable .
	@touch $@

$(VENV)/.dev: requirements-dev.lock $(VENV)/.runtime
	@echo "Installing the test tools into $(VENV) ..."
	$(INSTALL) --require-hashes --requirement requirements-dev.lock
	@touch $@

# make try     see one question answered from this machine's histories; nothing is kept unless you want it
# make up      install what is needed into .venv, start the registry; EXTRAS=embed,zst installs these extras too
# make quick   what fails in seconds: no PostgreSQL, no browser, no node, no process of its own
# make test    everything that must hold before a change lands
# make editor  the extension for VS Code and Cursor, built, tested and packaged; needs node 20 or newer
PYTHON ?= python3
EXTRAS ?=
VENV := .venv
BIN := $(VENV)/bin
# One worker more than there are cores: tests wait for processes, browsers and databases for a fifth of their time.
WORKERS := $(shell echo $$(($$(getconf _NPROCESSORS_ONLN) + 1)))
INSTALL := @./.ci/install $(VENV)
# pytest rewrites the modules of its plugins at each start where nothing may be written beside them.
unexport PYTHONDONTWRITEBYTECODE

# The programs of an environment name its folder: a clone that was moved gets a new one.
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

# The checks wait for nothing that the tests need, so both run at once.
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

# Not a part of `make test`, which needs no node.
editor:
	cd editor && npm install --no-package-lock --silent && npm run --silent check && npm test --silent && npm run --silent build && npm run --silent package

# The documentation as a site, in dist/docs.
docs: $(VENV)/.dev
	$(BIN)/uv tool run zensical==0.0.73 build --config-file mkdocs.yml

# What is published: the source distribution, the wheel that is built from it, and the bundle for Claude Desktop.
dist: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m hatchling build
	cd integrations/claude-desktop && $(CURDIR)/$(BIN)/python -m zipfile -c $(CURDIR)/dist/context-registry.mcpb manifest.json pyproject.toml main.py

# A real server that is killed, runs out of disk and time, and is crowded, under load: an hour.
faults: $(VENV)/.dev
	$(BIN)/python -m benchmarks.faults

# Everything is resolved once, for the tests; what the product runs on is a part of that.
LOCK := $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--custom-compile-command "make lock"
lock: $(VENV)/.dev
	$(LOCK) pyproject.toml --extra postgres --group dev --upgrade --output-file requirements-dev.lock
	$(LOCK) pyproject.toml --extra postgres --constraints requirements-dev.lock --output-file requirements.lock
	echo cyclonedx-bom | $(LOCK) - --constraints requirements-dev.lock --output-file requirements-sbom.lock
	echo uv | $(LOCK) - --constraints requirements-dev.lock --output-file requirements-uv.lock

# Three PostgreSQL nodes on loopback whose leader is killed ten times under load, then a restore: a quarter of an hour.
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

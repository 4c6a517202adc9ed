# Everything is installed into .venv and tests/npm; nothing outside this directory is changed, but in CI (see PROGRAMS).
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
# What some tests drive, and are skipped without: in CI they are installed, elsewhere that is your decision.
PROGRAMS := chromium elpa-eglot emacs-nox fish neovim pypy3 vim zsh
GREMLINS := github.com/go-gremlins/gremlins/cmd/gremlins@v0.6.0
CARGO_MUTANTS := cargo-mutants@27.1.0
CARGO_PROFILE := CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0
TOOLS := $(addprefix $(VENV)/.,cargo-mutants gremlins npm pit)  # the slowest first
LOCKS := core8 core9 core10 yarn pnpm jsonrpc vscode  # in tests/npm: StrykerJS, what it runs with, and clients
NPM_LOCKS := $(wildcard tests/npm/*/package-lock.json tests/npm/pnp/yarn.lock tests/npm/*/pnpm-lock.yaml)
NPM_CI := npm ci --ignore-scripts --no-audit --no-fund --loglevel error
VSIX := build/msp-bridge.vsix
PYTHON_ADAPTERS := tests/adapters/test_conformance.py tests/adapters/test_cosmic_ray_safety.py -k "mutmut or cr_ or generic"
BY_FILE := --dist loadfile --no-loadscope-reorder  # tests of one file share what is expensive
# setuptools warns of each editable installation that maps a package; that is not for somebody who runs `make demo`.
INSTALL := PYTHONWARNINGS=ignore $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt

.PHONY: help demo demo-cluster check steady mutants test test-all test-versions corpus vscode docker-test pictures docs release lint bench fuzz soak lock clean

help:
	@echo "make demo   install, then run mutation testing through the bridge on examples/shop"
	@echo "make demo-cluster  the same on a Dask cluster of two workers on this machine"
	@echo "make check  lint, types, and the tests that need no tool (two minutes on two cores)"
	@echo "make steady  the core ten times, in random order and under load"
	@echo "make test   install everything that the tests need, then run each promise to users (five to nine minutes on two cores)"
	@echo "make test-all  the same with every combination, as CI does (20 to 35 minutes)"
	@echo "make test-versions  the core and Python's adapters with each Python from 3.11 on that is on PATH, and with the lowest versions"
	@echo "make mutants  run the bridge on ten of its own modules; fails below 85 % (SINCE=main: on what has changed since; fails for each survivor)"
	@echo "make corpus  test the corpus in fresh processes, and keep their verdicts for make test"
	@echo "make vscode  build the extension for VS Code, $(VSIX)"
	@echo "make docker-test  build the image and try it in containers (Docker, or podman and buildah)"
	@echo "make pictures  take the pictures in docs/images anew (needs chromium)"
	@echo "make docs   build the site of the documents, site/index.html"
	@echo "make release  everything of a release but the upload, into dist/"
	@echo "make lint   ruff, mypy, and the links of the documents"
	@echo "make bench  measure the bridge against the tools it drives (long; see benchmarks/README.md)"
	@echo "make fuzz   throw bytes at the server for ten minutes (SECONDS=600)"
	@echo "make soak   send the server more than an hour's worth of requests (REQUESTS=4000)"
	@echo "make lock   take the newest versions of everything into constraints.txt"
	@echo "make clean  remove what the above have installed"

demo: $(VENV)/.demo
	$(BIN)/msp-bridge run --root examples/shop

demo-cluster: $(VENV)/.demo
	$(INSTALL) --editable '.[cluster]'
	$(BIN)/python examples/cluster/demo.py

check: $(VENV)/.core
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/python -m pytest --core --timeout 120 --numprocesses 3 --quiet  # some only wait: three for two cores

test: $(VENV)/.test $(VSIX)
	$(BIN)/python -m pytest --main --numprocesses 4 $(BY_FILE)  # some only wait: four for two cores

test-all: $(VENV)/.test $(VSIX)
	$(BIN)/python -m pytest --numprocesses 4 $(BY_FILE) $(ARGUMENTS)

steady: $(VENV)/.core
	for seed in 1 2 3 4 5 6 7 8 9 10; do \
		$(BIN)/python -m pytest --core --shuffle $$seed --numprocesses 12 --quiet --timeout 300 || exit 1; \
	done

mutants: $(VENV)/.core
	mkdir -p build
	$(BIN)/msp-bridge run --jobs 4 --html build/mutants.html $(if $(SINCE),--since $(SINCE) --no-new-survivors --budget 5m,--incremental --threshold 85)

test-versions: $(VENV)/.core
	for version in 3.11 3.12 3.13 3.14 lowest; do \
		python=python$${version#lowest}; home=$(VENV)/versions/$$version; resolution=lowest-direct; \
		if [ $$version = lowest ]; then python=$(BIN)/python; else resolution=highest; fi; \
		$$python --version > /dev/null 2>&1 || { echo "no $$python here"; continue; }; \
		echo "$$version: $$($$python --version)"; \
		$(BIN)/uv venv --quiet --clear --python $$python $$home || exit 1; \
		$(BIN)/uv pip install --quiet --resolution $$resolution --python $$home --editable . --group test || exit 1; \
		PATH="$(CURDIR)/$$home/bin:$$PATH"; \
		$$home/bin/python -m pytest --core --timeout 300 --numprocesses 3 --quiet || exit 1; \
		$$home/bin/python -m pytest --quiet $(PYTHON_ADAPTERS) || exit 1; \
	done

corpus: $(VENV)/.test
	MSP_BRIDGE_CORPUS_WRITE=1 $(BIN)/python -m pytest tests/python_engine/test_corpus.py

vscode: $(VSIX)

docker-test: $(VENV)/.test
	$(BIN)/python -m pytest docker

pictures: $(VENV)/.test $(VSIX)
	PYTHONPATH=tests $(BIN)/python -m support.pictures
	PYTHONPATH=tests $(BIN)/python -m support.tutorials

docs: $(VENV)/.lint
	PYTHONPATH=tests $(BIN)/python -m support.site

release: $(VENV)/.lint $(VSIX) docs
	PYTHONPATH=tests $(BIN)/python -m support.release
	rm -rf dist
	$(BIN)/uv build --quiet --out-dir dist
	cp $(VSIX) dist
	tar --create --gzip --file dist/site.tar.gz site
	$(PYTHON) -m venv --clear build/release
	build/release/bin/python -m pip install --quiet --disable-pip-version-check dist/*.whl
	build/release/bin/msp-bridge --version
	build/release/bin/msp-bridge discover --help > /dev/null
	ls -l dist

lint: $(VENV)/.lint docs
	$(BIN)/hadolint Dockerfile
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.demo
	$(INSTALL) --group bench
	$(BIN)/python -m benchmarks

fuzz: $(VENV)/.test
	$(INSTALL) --group fuzz
	mkdir -p build/fuzz
	PYTHONPATH=tests $(BIN)/python tests/support/bytes_to_answers.py -max_total_time=$(or $(SECONDS),600) -max_len=2000 build/fuzz tests/fuzz/seeds

soak: $(VENV)/.test
	MSP_BRIDGE_SOAK=$(or $(REQUESTS),4000) $(BIN)/python -m pytest tests/soak -s

lock:
	rm -rf $(VENV)
	: > constraints.txt
	$(MAKE) $(VENV)/.lint
	$(INSTALL) --group bench --group fuzz
	echo '# The versions that our own CI uses: `make lock` writes this file. What users get is in pyproject.toml.' > constraints.txt
	$(BIN)/python -m pip freeze --exclude-editable >> constraints.txt

clean:
	rm -rf $(VENV) build dist site *.egg-info tests/npm/*/node_modules tests/npm/*/packages/*/node_modules tests/npm/*/.yarn tests/npm/*/.pnp.* \
		editors/vscode/node_modules editors/vscode/dist

$(BIN)/python:
	@$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("msp-bridge needs Python 3.11 or newer: make PYTHON=python3.12 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1'

$(VENV)/.demo: $(BIN)/python pyproject.toml constraints.txt
	$(INSTALL) --editable . mutmut pytest
	@touch $@

$(VENV)/.core: $(VENV)/.demo
	$(INSTALL) --group test --group lint
	@touch $@

$(VENV)/.test: $(VENV)/.demo $(VENV)/.programs $(NPM_LOCKS)
	$(INSTALL) --group test
	@$(MAKE) --no-print-directory --jobs 4 $(TOOLS)
	@touch $@

$(VENV)/.npm: $(NPM_LOCKS)
	@command -v npm > /dev/null || { echo "the tests drive real tools: install Node.js 20 or newer, with npm" >&2; exit 1; }
	for lock in $(LOCKS); do \
		$(NPM_CI) --prefix tests/npm/$$lock || exit 1; \
	done
	YARN_NPM_REGISTRY_SERVER=$$(npm config get registry | sed 's,/$$,,') \
		node tests/npm/yarn/node_modules/@yarnpkg/cli-dist/bin/yarn.js --cwd tests/npm/pnp install --immutable > /dev/null
	node tests/npm/pnpm/node_modules/pnpm/bin/pnpm.cjs --dir tests/npm/pnpm-workspace install --frozen-lockfile \
		--ignore-scripts --config.confirm-modules-purge=false --store-dir $(CURDIR)/tests/npm/pnpm/node_modules/.store --loglevel error
	@touch $@

$(VENV)/.gremlins: $(BIN)/python
	if command -v go > /dev/null; then GOBIN=$(abspath $(BIN)) GOFLAGS=-buildvcs=false go install $(GREMLINS) || \
		echo "gremlins can't be installed: its tests are skipped" >&2; fi
	@touch $@

$(VENV)/.pit: $(BIN)/python
	if command -v mvn > /dev/null && command -v javac > /dev/null; then rm -rf build/java_shop && mkdir -p build && \
		cp -R examples/shop-java build/java_shop && mvn --batch-mode --quiet --file build/java_shop test-compile \
		dependency:build-classpath help:effective-pom org.pitest:pitest-maven:mutationCoverage > /dev/null || \
		echo "PIT can't be installed: its tests are skipped" >&2; fi
	@touch $@

# Unoptimized it is built in half the CPU time, and tests as fast: cargo and rustc do the work.
$(VENV)/.cargo-mutants: $(BIN)/python constraints.txt
	if command -v cargo > /dev/null; then \
		$(INSTALL) --group rust || echo "cargo-nextest can't be installed: its test is skipped" >&2; \
		$(CARGO_PROFILE) cargo install --quiet --locked --debug --root $(VENV) $(CARGO_MUTANTS) || \
		echo "cargo-mutants can't be installed: its tests are skipped" >&2; fi
	@touch $@

$(VENV)/.programs: $(BIN)/python
	@if [ "$$CI" = true ] && [ "$$(id -u)" = 0 ] && command -v apt-get > /dev/null; then \
		apt-get update --quiet=2 && apt-get install --quiet=2 --yes --no-install-recommends $(PROGRAMS) > /dev/null; \
	fi
	@touch $@

$(VSIX): LICENSE forge_links.py pyproject.toml $(addprefix editors/vscode/,README.md icon.png package.json package-lock.json tsconfig.json) \
		$(wildcard editors/vscode/src/*.ts)
	$(NPM_CI) --prefix editors/vscode
	npm run --silent --prefix editors/vscode check
	npm run --silent --prefix editors/vscode bundle
	rm -rf build/vscode
	$(PYTHON) forge_links.py build/vscode
	cp -r editors/vscode/dist build/vscode
	cd build/vscode && ../../editors/vscode/node_modules/.bin/vsce package --no-dependencies --allow-missing-repository --out $(CURDIR)/$@

$(VENV)/.lint: $(VENV)/.test
	$(INSTALL) --group lint --editable '.[docs]'
	@touch $@

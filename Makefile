# Two targets are enough to begin with: `make run` and `make check`. `make` lists them all.
# ARGS is passed on: make run ARGS='--log.level debug', make test ARGS='-k limits -x'.

PYTHON ?= python3
PIP = .venv/bin/python -m pip --disable-pip-version-check --no-input --quiet
AUDIT = 2.10.1
export PYTHON
export PATH := $(CURDIR)/.cache/tools/usr/bin:$(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run check lint type layers test cover fmt docs mixin golden lab bench soak fleet \
	demo fuzz audit fresh service wheel deb rpm lock drill clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-7s %s\n", $$1, $$2}' Makefile

run: .venv/run.stamp ## watch the disks of this machine and serve what is seen
	@exec .venv/bin/disksla serve $(ARGS)

check: lint type layers test cover ## everything that must hold before a change is made

lint: .venv/check.stamp ## style and likely mistakes
	.venv/bin/ruff check
	.venv/bin/ruff format --check

type: .venv/check.stamp ## types, strictly
	.venv/bin/mypy

layers: .venv/check.stamp ## imports: layers, and pure modules
	.venv/bin/lint-imports --no-logo

test: .venv/check.stamp ## all tests, measuring what they reach
	@.ci/need check
	@.venv/bin/coverage erase
	.venv/bin/coverage run -m pytest $(ARGS)
	@.venv/bin/coverage combine --quiet

cover: .venv/check.stamp ## what the last test run reached, against the floors
	.venv/bin/coverage report --skip-covered --show-missing --fail-under=95
	.venv/bin/coverage report --skip-covered --show-missing --fail-under=100 \
		--include="$$(.venv/bin/python tests/pure_files.py)"

fmt: .venv/check.stamp ## put the style right
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

docs: .venv/run.stamp ## write docs/metrics.md anew from the table of metrics
	.venv/bin/python -m disksla.metrics.reference > docs/metrics.md

mixin: .venv/check.stamp ## render grafana/out anew from the jsonnet beside it
	.venv/bin/python grafana/render.py

golden: .venv/check.stamp ## write the expected output of tests anew; review the difference
	.venv/bin/python -m pytest --golden $(ARGS)

lab: .venv/check.stamp ## what is said of really throttled disks, beside what is true
	@.ci/need lab
	PYTHONPATH=tests .venv/bin/python -m lab $(ARGS)

bench: .venv/check.stamp ## what watching costs, beside node_exporter
	@.ci/need bench
	PYTHONPATH=tests .venv/bin/python -m bench $(ARGS)

soak: .venv/check.stamp ## a day of ticks in minutes, and whether memory stays flat
	PYTHONPATH=tests .venv/bin/python -W error -m faults $(ARGS)

fleet: .venv/check.stamp ## what a thousand simulated hosts cost a Prometheus
	@.ci/need fleet
	PYTHONPATH=tests .venv/bin/python -m fleet measure $(ARGS)

demo: .venv/check.stamp ## Prometheus and what else there is, over a made-up day of 200 disks
	@.ci/need fleet
	@exec env PYTHONPATH=tests .venv/bin/python -m fleet demo $(ARGS)

fuzz: .venv/fuzz.stamp ## look for input that breaks a law, guided by coverage (5 minutes)
	PYTHONPATH=tests .venv/bin/python -m fuzz $(ARGS)

audit: .cache/audit-$(AUDIT)/bin/pip-audit ## what is known against the versions that are pinned (asks PyPI)
	.cache/audit-$(AUDIT)/bin/pip-audit --strict --disable-pip --no-deps --progress-spinner off \
		--requirement requirements.txt --requirement requirements-dev.txt $(ARGS)

fresh: ## both commands on a new Debian 12 (root, debootstrap, a few minutes)
	tests/debian/fresh

service: ## the unit on a booted Debian 12 in a container (root, debootstrap, a few minutes)
	tests/debian/service

wheel: .venv/run.stamp ## the wheel, into dist/
	packaging/wheel dist

deb: .venv/check.stamp ## the Debian package and its bill of materials, into dist/
	@.ci/need deb
	packaging/deb dist

rpm: .venv/check.stamp ## the RPM and its bill of materials, into dist/
	@.ci/need rpm
	packaging/rpm dist

lock: .venv/run.stamp ## pin anew, by hash, what travels inside the packages
	packaging/lock

drill: .venv/check.stamp ## the packages on a new Debian 12 with systemd (root, a few minutes)
	@.ci/need drill
	packaging/drill

clean: ## remove all that make has made
	rm -rf .venv .cache .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache \
		.ruff_cache build dist exporter/*.egg-info
	find exporter packaging tests -name __pycache__ -prune -exec rm -rf {} +

# Each environment has a stamp, and is made anew when what it is made of has changed.
.venv/run.stamp: setup.cfg requirements.txt
	@.ci/need run
	@echo 'disksla: making .venv with what the daemon needs' >&2
	@"$(PYTHON)" -m venv --clear .venv
	@$(PIP) install --requirement requirements.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/check.stamp: .venv/run.stamp requirements-dev.txt
	@echo 'disksla: adding to .venv what the checks need' >&2
	@$(PIP) install --requirement requirements-dev.txt
	@touch $@

.venv/fuzz.stamp: .venv/check.stamp tests/fuzz/requirements.txt
	@echo 'disksla: adding to .venv what fuzzing needs' >&2
	@$(PIP) install --requirement tests/fuzz/requirements.txt
	@touch $@

# Of its own, for it brings thirty packages that nothing else needs.
.cache/audit-$(AUDIT)/bin/pip-audit:
	@"$(PYTHON)" -m venv --clear .cache/audit-$(AUDIT)
	@.cache/audit-$(AUDIT)/bin/pip --disable-pip-version-check --quiet install pip-audit==$(AUDIT)

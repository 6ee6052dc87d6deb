# Start with `make run` and `make test`. `make` lists all targets.
# ARGS is appended to the command: make run ARGS='--log.level debug', make test ARGS='-k limits -x'.

PYTHON ?= python3
PYTEST = .venv/bin/python -m pytest -q -n auto --maxprocesses 8 --dist worksteal
PIP = .venv/bin/python -m pip --disable-pip-version-check --no-input --quiet
AUDIT = 2.10.1
CLOUDS = moto openstack kubernetes
export PYTHON
# Byte code is kept, whatever the environment says: tests start hundreds of processes.
export PYTHONDONTWRITEBYTECODE =
export PATH := $(CURDIR)/.cache/tools/usr/bin:$(PATH):/usr/sbin:/sbin

.DEFAULT_GOAL := help
.NOTPARALLEL:
.PHONY: help run test check lint type layers cover system nightly night fmt docs mixin manifests golden lab population advice vm \
	boot ebs consumers nfs alert pictures bench clouds engines soak demo fuzz audit fresh service wheel deb rpm lock drill release clean

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z]+:.*## / {printf "make %-10s %s\n", $$1, $$2}' Makefile

run: .venv/run.stamp ## sample the disks of this machine and serve metrics
	@exec .venv/bin/disksla serve $(ARGS)

test: .venv/check.stamp ## run the fast tests: no root, no disks, about 2 minutes
	$(PYTEST) --lane=fast -m 'not nightly' $(ARGS)

check: lint type layers test system ## run everything that must pass before a change is merged
	@$(MAKE) --no-print-directory fuzz ARGS='--minutes 1'

lint: .venv/check.stamp ## check style, likely mistakes and complexity with ruff
	.venv/bin/ruff check
	.venv/bin/ruff format --check

type: .venv/check.stamp ## check types with mypy, strictly
	.venv/bin/mypy

layers: .venv/check.stamp ## check imports: rooms, and what detect and ebs-statistics must not load
	.venv/bin/lint-imports --no-logo

cover: .venv/check.stamp ## run the fast tests with more examples, and check coverage
	@.venv/bin/coverage erase
	@$(PYTEST) --lane=fast --hypothesis-profile=ci --timeout=300 --cov --cov-report= \
		-m 'not nightly'
	.venv/bin/coverage report --skip-covered --show-missing --fail-under=100 \
		--include="$$(.venv/bin/python tests/pure_files.py)"

system: .venv/check.stamp .cache/dashboard/page/page.js ## run a few tests with real disks, and those with fio, Prometheus, browsers
	@.ci/need check
	$(PYTEST) -n 4 --lane=system -m 'not alone and not nightly' $(ARGS)
	$(PYTEST) -n 2 --dist loadgroup --lane=system -m 'alone and not nightly' $(ARGS)

nightly: cover .cache/dashboard/page/page.js ## run all tests, with 1,000 random examples for each property
	@.ci/need check
	$(PYTEST) --hypothesis-profile=nightly --timeout=1800 -m 'not alone' $(ARGS)
	$(PYTEST) -n 0 --hypothesis-profile=nightly --timeout=1800 -m alone $(ARGS)
	$(MAKE) night

night: .venv/check.stamp ## leave a daemon for hours under PostgreSQL, on a disk whose limit changes (root)
	@.ci/need lab
	PYTHONPATH=tests:benches .venv/bin/python -m lab.night $(ARGS)

fmt: .venv/check.stamp ## format the code and fix what ruff can fix
	.venv/bin/ruff check --fix
	.venv/bin/ruff format

docs: .venv/run.stamp ## regenerate docs/metrics.md, docs/catalog and the runbook of the daemon
	.venv/bin/python packaging/metrics_page.py
	.venv/bin/python packaging/catalog_page.py
	.venv/bin/python packaging/runbook.py > exporter/disksla/serve/pages/runbook.html

mixin: .venv/check.stamp ## render grafana/out from the jsonnet beside it
	.venv/bin/python grafana/render.py

manifests: ## render packaging/kubernetes from the chart in packaging/helm (needs helm)
	packaging/manifests packaging/kubernetes

golden: .venv/check.stamp ## rewrite the expected output of tests; review the difference
	.venv/bin/python -m pytest --golden $(ARGS)

lab: .venv/check.stamp ## compare verdicts on throttled disks with the limiter's log
	@.ci/need lab
	PYTHONPATH=tests:benches .venv/bin/python -m lab $(ARGS)

population: .venv/check.stamp ## judge hundreds of simulated disks, and say what each sign gives
	PYTHONPATH=tests:benches .venv/bin/python -m population $(ARGS)

advice: .venv/check.stamp ## compare what `disksla advise` predicts with what limiters do
	@.ci/need lab
	PYTHONPATH=tests:benches .venv/bin/python -m lab.advise $(ARGS)

vm: .venv/check.stamp ## compare verdicts with QEMU's own limiter, in a virtual machine
	@.ci/need vm
	PYTHONPATH=tests:benches .venv/bin/python -m vm $(ARGS)

boot: .venv/check.stamp ## boot machines of providers, without configuration, to the right limits
	@.ci/need vm
	PYTHONPATH=tests:benches .venv/bin/python -m vm.boot $(ARGS)

ebs: .venv/check.stamp ## from a throttled volume that looks like EBS to the metrics, in a virtual machine
	@.ci/need vm
	PYTHONPATH=tests:benches .venv/bin/python -m vm.ebs $(ARGS)

consumers: .venv/check.stamp ## who uses a disk, on kernels of Debian, beside the kernel's own counts
	@.ci/need vm
	PYTHONPATH=tests:benches .venv/bin/python -m vm.consumers $(ARGS)

nfs: .venv/check.stamp ## NFS mounts of the kernel, beside what throttles them, and servers that do not answer
	@.ci/need vm
	PYTHONPATH=tests:benches .venv/bin/python -m vm.nfs $(ARGS)

alert: .venv/check.stamp ## from a new Debian to the first alert, on a disk that QEMU throttles
	@.ci/need vm
	@.ci/need lab
	PYTHONPATH=tests:benches:grafana .venv/bin/python -m vm.alert $(ARGS)

pictures: .venv/check.stamp .cache/dashboard/page/page.js ## take the pictures of docs/pictures: real disks, five minutes (root)
	@.ci/need lab
	PYTHONPATH=tests:benches .venv/bin/python -m pictures $(ARGS)

bench: .venv/check.stamp ## measure CPU and memory, beside node_exporter
	@.ci/need bench
	PYTHONPATH=tests:benches .venv/bin/python -m bench $(ARGS)

clouds: .venv/check.stamp $(CLOUDS:%=.cache/clouds/%/stamp) ## test disksla detect against moto, Keystone, Cinder and kube-apiserver
	$(PYTEST) -n 2 --dist loadfile benches/clouds $(ARGS)

engines: .venv/check.stamp ## test rules and dashboards on VictoriaMetrics
	@.ci/need engines
	.venv/bin/python -m pytest -q benches/engines $(ARGS)

soak: .venv/check.stamp ## run a day of ticks in minutes and check that memory stays flat
	PYTHONPATH=tests:benches .venv/bin/python -W error -m faults $(ARGS)

demo: .venv/check.stamp ## show rules, alerts and dashboards over a simulated day of 200 disks
	@.ci/need fleet
	@exec env PYTHONPATH=tests:benches:grafana .venv/bin/python -m fleet $(ARGS)

fuzz: .venv/fuzz.stamp ## search for input that breaks a property, for 5 minutes
	PYTHONPATH=tests:benches .venv/bin/python -m fuzz $(ARGS)

audit: .cache/audit-$(AUDIT)/bin/pip-audit ## check pinned versions for known vulnerabilities (needs PyPI)
	.cache/audit-$(AUDIT)/bin/pip-audit --strict --disable-pip --no-deps --progress-spinner off \
		--requirement requirements.txt --requirement requirements-dev.txt $(ARGS)

fresh: ## run the commands of the README on a new Debian 12 (root)
	benches/debian/fresh

service: ## test the systemd unit on a booted Debian 12 in a container (root)
	benches/debian/service

wheel: .venv/check.stamp ## build the wheel in dist/
	packaging/wheel dist

deb: .venv/check.stamp ## build the Debian package and its bill of materials in dist/
	@.ci/need deb
	packaging/deb dist

rpm: .venv/check.stamp ## build the RPM and its bill of materials in dist/
	@.ci/need rpm
	packaging/rpm dist

lock: .venv/run.stamp ## pin the wheels inside the packages, by hash
	packaging/lock

drill: .venv/check.stamp .cache/ansible/stamp ## test the packages, pipx and the Ansible role on new systems (root)
	@.ci/need drill
	packaging/drill/all $(ARGS)

release: .venv/check.stamp ## commit, tag and build a release: make release VERSION=0.2.0
	packaging/release $(VERSION)
	$(MAKE) wheel deb rpm

clean: ## remove everything that make has created
	rm -rf .venv .cache .coverage* .hypothesis .import_linter_cache .mypy_cache .pytest_cache \
		.ruff_cache build dist exporter/*.egg-info
	find exporter packaging tests benches -name __pycache__ -prune -exec rm -rf {} +

# Each environment has a stamp. It is created again when the files that define it change.
.venv/run.stamp: setup.cfg requirements.txt
	@.ci/need run
	@echo 'disksla: creating .venv with the dependencies of the daemon' >&2
	@"$(PYTHON)" -m venv --clear .venv
	@$(PIP) install --requirement requirements.txt
	@$(PIP) install --no-deps --no-build-isolation --editable .
	@touch $@

.venv/check.stamp: .venv/run.stamp requirements-dev.txt
	@echo 'disksla: installing the tools of the checks into .venv' >&2
	@$(PIP) install --requirement requirements-dev.txt
	@touch $@

.venv/fuzz.stamp: .venv/check.stamp benches/fuzz/requirements.txt
	@echo 'disksla: installing the tools of fuzzing into .venv' >&2
	@$(PIP) install --requirement benches/fuzz/requirements.txt
	@touch $@

# Environments of their own: each has a hundred packages that nothing else needs.
.cache/clouds/%/stamp: benches/clouds/%.txt
	@echo 'disksla: installing $* into .cache/clouds' >&2
	@mkdir -p .cache/clouds
	@"$(PYTHON)" -m venv --clear .cache/clouds/$*
	@.cache/clouds/$*/bin/pip --disable-pip-version-check --quiet install --requirement $<
	@touch $@

.cache/ansible/stamp: packaging/ansible/requirements.txt
	@echo 'disksla: installing Ansible into .cache/ansible' >&2
	@mkdir -p .cache
	@"$(PYTHON)" -m venv --clear .cache/ansible
	@.cache/ansible/bin/pip --disable-pip-version-check --quiet install --requirement $<
	@touch $@

# A few minutes. Without Go, what needs these programs is not tested.
.cache/clouds/kubernetes/stamp: export CGO_ENABLED = 0
.cache/clouds/kubernetes/stamp: benches/clouds/kubernetes/go.mod benches/clouds/kubernetes/go.sum
	@echo 'disksla: building kube-apiserver and etcd into .cache/clouds' >&2
	@rm -rf $(@D)
	@cd $(<D) && go build -trimpath -ldflags='-s -w' -o $(abspath $(@D))/bin/ tool \
		&& touch $(abspath $@) \
		|| echo 'disksla: kube-apiserver is missing: it needs Go 1.26 or newer' >&2

# Half a minute, and 470 MB for as long. Without npm, no dashboard is drawn.
.cache/dashboard/page/page.js: $(wildcard benches/pictures/dashboard/*)
	@echo "disksla: building the page with Grafana's components into .cache/dashboard" >&2
	@benches/pictures/dashboard/build .cache/dashboard \
		|| echo 'disksla: no dashboard is drawn: it needs npm' >&2

# A separate environment: pip-audit needs thirty packages that nothing else needs.
.cache/audit-$(AUDIT)/bin/pip-audit:
	@"$(PYTHON)" -m venv --clear .cache/audit-$(AUDIT)
	@.cache/audit-$(AUDIT)/bin/pip --disable-pip-version-check --quiet install pip-audit==$(AUDIT)

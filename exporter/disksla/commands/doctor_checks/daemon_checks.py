"""Checks of the daemon, by what it answers: is it ready, is all of it working, is it scraped."""

import re
from collections.abc import Iterator

from disksla import DEFAULT_PORT
from disksla.base.units import format_duration
from disksla.commands.doctor_checks.check_result import Check, CheckResult
from disksla.commands.doctor_checks.facts import DaemonFacts, MachineFacts
from disksla.tell.api import (
    BAD_REQUEST,
    NOT_FOUND,
    OK,
    REFUSALS,
    TOO_MANY,
    UNAUTHORIZED,
    UNAVAILABLE,
)

METRICS = (
    "disksla_build_info",
    "disksla_collector_success",
    "disksla_config_last_reload_successful",
    "disksla_config_last_reload_success_timestamp_seconds",
    "disksla_data_writes_total",
    "disksla_disk_info",
    "disksla_errors_total",
    "disksla_probe_failures_total",
    "disksla_probe_success",
    "disksla_sampler_missed_ticks_total",
    "disksla_sampler_ticks_total",
)
"""What is asked of the daemon. A page with selected metrics does not count as a scrape."""

_LOG = "journalctl --unit disksla-exporter"
_MOST_MISSED = 0.01
_LONGEST_SCRAPE_S = 300.0
"""Rules and alerts need samples in windows of 5 minutes."""
_SCRAPED = re.compile(r"^last scrape (\d+(?:\.\d+)?) s ago$", re.MULTILINE)


def check_daemon(machine: MachineFacts) -> Iterator[CheckResult]:
    """Yield the results of all checks of the daemon."""
    daemon = machine.daemon
    if daemon.problem is not None:
        yield Check("daemon.running").wrong(
            f"no answer of {daemon.url}: {daemon.problem}",
            expected="a running daemon, or its address by --url",
            fix=f"systemctl start disksla-exporter; {_LOG}"
            if machine.unit is not None
            else "disksla serve   # or install the package (docs/install.md)",
        )
        return
    if daemon.unseen is not None or daemon.metrics_status != OK:
        yield _not_seen(daemon, is_root=machine.is_root)
        return
    build = daemon.values("disksla_build_info")
    if not build:
        yield Check("daemon.running").wrong(
            f"{daemon.url} answers, but it is not disksla",
            expected="a page with disksla_build_info",
            fix="set --url to the address and the path of the metrics",
        )
        return
    yield _ready(daemon)
    yield _version(machine, build[0].labels.get("version", ""))
    yield from _configuration(machine)
    yield from _parts(daemon)
    yield from _ticks(daemon)
    yield from _scraped(daemon)


def _not_seen(daemon: DaemonFacts, *, is_root: bool) -> CheckResult:
    unknown = f"it answers with status {daemon.metrics_status}"
    reason = daemon.unseen or REFUSALS.get(daemon.metrics_status, unknown)
    as_root = "disksla doctor, as root: the Unix socket of the daemon needs no password"
    fixes = {
        BAD_REQUEST: "set --url to https://...",
        UNAUTHORIZED: "promtool, or curl with the password" if is_root else as_root,
        NOT_FOUND: "set --url to the address and the path of the metrics",
        TOO_MANY: "disksla doctor, later",
        UNAVAILABLE: "disksla doctor, later",
    }
    fix = fixes.get(daemon.metrics_status, _LOG)
    return Check("daemon.running").note(
        f"the metrics at {daemon.url} were not checked: {reason}",
        expected="a page of metrics",
        fix=fix,
    )


def _ready(daemon: DaemonFacts) -> CheckResult:
    if daemon.ready_status == OK:
        return Check("daemon.running").ok(f"{daemon.url} answers, and the disks are sampled")
    return Check("daemon.running").wrong(
        f"it answers, but {daemon.ready_text or 'it is not ready'}",
        expected="a daemon that samples the disks",
        fix=_LOG,
    )


def _version(machine: MachineFacts, version: str) -> CheckResult:
    if version == machine.version:
        return Check("daemon.version").ok(f"{version}, like this command")
    return Check("daemon.version").wrong(
        f"the daemon is version {version}; this command is {machine.version}",
        expected="the same version",
        fix="systemctl restart disksla-exporter",
    )


def _configuration(machine: MachineFacts) -> Iterator[CheckResult]:
    check, daemon = Check("daemon.configuration"), machine.daemon
    reloaded = daemon.values("disksla_config_last_reload_successful")
    if reloaded and not reloaded[0].value:
        path = machine.configuration.path or "FILE"
        yield check.wrong(
            "the last reload failed; the previous configuration stays in force",
            expected="a successful reload",
            fix=f"disksla check-config --config.file {path} && systemctl reload disksla-exporter",
        )
        return
    at = daemon.values("disksla_config_last_reload_success_timestamp_seconds")
    modified_s = machine.configuration.modified_timestamp_s
    if at and modified_s is not None and modified_s > at[0].value:
        age = format_duration(max(0.0, machine.now_s - modified_s))
        yield check.note(
            f"{machine.configuration.path} was changed {age} ago, after the daemon had read it",
            expected="the present file in force",
            fix="systemctl reload disksla-exporter",
        )
    elif at:
        yield check.ok("the configuration is loaded")


def _parts(daemon: DaemonFacts) -> Iterator[CheckResult]:
    """Yield the parts of the daemon that do not work, and those that had errors."""
    failing = set()
    parts = daemon.values("disksla_collector_success")
    for sample in parts:
        part = sample.labels.get("collector", "")
        if not sample.value:
            failing.add(part)
            yield Check("daemon.parts", part).wrong(
                "this part of the daemon does not work",
                expected=f'disksla_collector_success{{collector="{part}"}} of 1',
                fix=f"{_LOG} (the status page has the reason, too)",
            )
    for sample in daemon.values("disksla_errors_total"):
        source = sample.labels.get("source", "")
        if sample.value and source not in failing:
            errors = f"{sample.value:.0f} error{'' if sample.value == 1 else 's'}"
            is_bug = source == "sampler"
            because = "; ticks failed by a bug of disksla, please report it" if is_bug else ""
            check = Check("daemon.errors", source)
            yield (check.wrong if is_bug else check.note)(
                f"{errors} since the start of the daemon{because}", expected="no errors", fix=_LOG
            )
    if parts and not failing:
        yield Check("daemon.parts").ok(f"{len(parts)} parts of the daemon work")


def _ticks(daemon: DaemonFacts) -> Iterator[CheckResult]:
    done = daemon.values("disksla_sampler_ticks_total")
    missed = daemon.values("disksla_sampler_missed_ticks_total")
    if not done or not missed:
        return
    share = missed[0].value / max(1.0, done[0].value + missed[0].value)
    if share > _MOST_MISSED:
        yield Check("daemon.ticks").note(
            f"{share:.1%} of its ticks were missed",
            expected=f"at most {_MOST_MISSED:.0%}",
            fix="give the daemon more CPU (CPUQuota= of its unit, the limit of its container)",
        )
    else:
        yield Check("daemon.ticks").ok(f"{share:.1%} of its ticks were missed")


def _scraped(daemon: DaemonFacts) -> Iterator[CheckResult]:
    if daemon.ready_status != OK:
        return
    found = _SCRAPED.search(daemon.ready_text)
    target = f"{{targets: ['HOST:{_port(daemon.url)}']}}"
    fix = f"scrape_configs: [{{job_name: disksla, static_configs: [{target}]}}]"
    expected = f"a scrape within {format_duration(_LONGEST_SCRAPE_S)}"
    if found is None:
        yield Check("daemon.scraped").note("it was never scraped", expected=expected, fix=fix)
    elif float(found[1]) > _LONGEST_SCRAPE_S:
        age = format_duration(float(found[1]))
        yield Check("daemon.scraped").note(f"last scraped {age} ago", expected=expected, fix=fix)
    else:
        yield Check("daemon.scraped").ok(f"last scraped {format_duration(float(found[1]))} ago")


def _port(url: str) -> str:
    """Return the port of the daemon; that of the default if it was asked on its Unix socket."""
    if url.startswith("unix:"):
        return str(DEFAULT_PORT)
    found = re.search(r":(\d+)(?:/|$)", url)
    return "80" if found is None else found[1]

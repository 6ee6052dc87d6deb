"""Checks of the daemon, and of the clock."""

import math

import msgspec
import pytest
from prometheus_client.core import Sample

from disksla.commands.doctor_checks import CheckResult
from disksla.commands.doctor_checks.daemon_checks import METRICS
from disksla.commands.doctor_checks.facts import ClockFacts, ConfigurationFacts, MachineFacts
from metrics_page import OF_DISKS, OF_THE_DAEMON
from support.machine_facts import DAEMON, HEALTHY, NOW_S, SAMPLES, machine, result, results, sample


def daemon(*changed: Sample, **facts: object) -> MachineFacts:
    """Return the healthy machine with other answers; samples of the same metric are replaced."""
    names = {each.name for each in changed}
    samples = tuple(each for each in SAMPLES if each.name not in names) + changed
    answers = msgspec.structs.replace(DAEMON, **{"samples": samples, **facts})
    return machine(daemon=answers)


def only(facts: MachineFacts) -> CheckResult:
    """Return the only result of the group."""
    return result(facts, "daemon.")


def test_metrics_that_are_asked_for_exist() -> None:
    assert set(METRICS) <= {metric.name for metric in (*OF_DISKS, *OF_THE_DAEMON)}


def test_daemon_that_does_not_run() -> None:
    found = only(daemon(problem="Connection refused"))
    assert found.status == "wrong"
    assert (found.fix or "").startswith("systemctl start disksla-exporter")
    without = msgspec.structs.replace(daemon(problem="Connection refused"), unit=None)
    assert (only(without).fix or "").startswith("disksla serve")


@pytest.mark.parametrize(
    ("answers", "status", "words"),
    [
        ({"metrics_status": 400}, "note", "HTTPS"),
        ({"metrics_status": 401}, "note", "password"),
        ({"metrics_status": 404}, "note", "no such page"),
        ({"metrics_status": 429}, "note", "rate limit"),
        ({"metrics_status": 503}, "note", "scrapes"),
        ({"metrics_status": 500}, "note", "500"),
        ({"unseen": "it requires a certificate"}, "note", "it requires a certificate"),
        ({}, "wrong", "it is not disksla"),
    ],
)
def test_metrics_that_are_not_shown(answers: dict[str, object], status: str, words: str) -> None:
    found = only(daemon(samples=(), **answers))
    assert found.status == status
    assert words in found.found


@pytest.mark.parametrize("text", ["not ready: the disks have not been sampled yet", ""])
def test_daemon_that_is_not_ready(text: str) -> None:
    facts = daemon(ready_status=503, ready_text=text)
    found = result(facts, "daemon.running")
    assert found.status == "wrong"
    assert (text or "it is not ready") in found.found
    assert results(facts, "daemon.scraped") == []


def test_version() -> None:
    found = result(daemon(sample("build_info", version="0.9")), "daemon.version")
    assert (found.status, found.fix) == ("wrong", "systemctl restart disksla-exporter")


def test_reload() -> None:
    found = result(daemon(sample("config_last_reload_successful", 0.0)), "daemon.configuration")
    assert found.status == "wrong"
    assert (
        found.fix
        == "disksla check-config --config.file disksla.yml && systemctl reload disksla-exporter"
    )
    changed = msgspec.structs.replace(HEALTHY.configuration, modified_timestamp_s=NOW_S + 60)
    found = result(machine(configuration=changed, now_s=NOW_S + 120), "daemon.configuration")
    assert found.status == "note"
    assert "60 s ago" in found.found
    before = msgspec.structs.replace(HEALTHY.configuration, modified_timestamp_s=NOW_S - 60)
    assert result(machine(configuration=before), "daemon.configuration").status == "ok"
    without = ConfigurationFacts(None, HEALTHY.configuration.configuration)
    failed = daemon(sample("config_last_reload_successful", 0.0))
    facts = msgspec.structs.replace(failed, configuration=without)
    assert "check-config --config.file FILE" in (result(facts, "daemon.configuration").fix or "")
    assert results(daemon(samples=(sample("build_info", version="1.0"),)), "daemon.conf") == []


def test_parts_that_do_not_work() -> None:
    facts = daemon(
        sample("collector_success", 0.0, collector="state"),
        sample("collector_success", 1.0, collector="disks"),
        sample("errors_total", 3.0, source="state"),
        sample("errors_total", 1.0, source="systemd"),
        sample("errors_total", 2.0, source="terms"),
    )
    part = result(facts, "daemon.parts")
    assert (part.status, part.subject) == ("wrong", "state")
    errors = results(facts, "daemon.errors")
    assert [(each.status, each.subject, each.found) for each in errors] == [
        ("note", "systemd", "1 error since the start of the daemon"),
        ("note", "terms", "2 errors since the start of the daemon"),
    ]


def test_failed_ticks_are_wrong_also_after_they_ended() -> None:
    errors = sample("errors_total", 2.0, source="sampler")
    found = result(daemon(errors), "daemon.errors")
    assert (found.status, found.subject) == ("wrong", "sampler")
    assert found.found.startswith("2 errors since the start of the daemon; ticks failed by a bug")
    failing = daemon(errors, sample("collector_success", 0.0, collector="sampler"))
    part = result(failing, "daemon.parts")
    assert (part.status, part.subject) == ("wrong", "sampler")
    good = daemon(sample("errors_total", 0.0, source="sampler"))
    assert results(good, "daemon.errors") == []


@pytest.mark.parametrize(("missed", "status"), [(0.0, "ok"), (1.0, "ok"), (2.0, "note")])
def test_ticks(missed: float, status: str) -> None:
    facts = daemon(
        sample("sampler_ticks_total", 99.0), sample("sampler_missed_ticks_total", missed)
    )
    assert result(facts, "daemon.ticks").status == status


def test_ticks_that_are_not_known() -> None:
    facts = daemon(samples=(sample("build_info", version="1.0"), sample("sampler_ticks_total")))
    assert results(facts, "daemon.ticks") == []


@pytest.mark.parametrize(
    ("text", "status", "words"),
    [
        ("ready\nlast scrape 0 s ago", "ok", "last scraped"),
        ("ready\nlast scrape 300 s ago", "ok", "5 min"),
        ("ready\nlast scrape 301 s ago", "note", "last scraped 5.02 min ago"),
        ("ready\nnever scraped", "note", "never"),
    ],
)
def test_scrapes(text: str, status: str, words: str) -> None:
    found = result(daemon(ready_text=text), "daemon.scraped")
    assert found.status == status
    assert words in found.found


@pytest.mark.parametrize(
    ("url", "port"),
    [
        ("http://[::1]:99/metrics", "99"),
        ("http://localhost/metrics", "80"),
        ("unix:///run/disksla/disksla.sock", "10056"),
    ],
)
def test_port_of_the_scrape(url: str, port: str) -> None:
    found = result(daemon(url=url, ready_text="ready\nnever scraped"), "daemon.scraped")
    assert f"'HOST:{port}'" in (found.fix or "")


@pytest.mark.parametrize(
    ("clock", "status"),
    [
        (ClockFacts(is_synchronised=True), "ok"),
        (ClockFacts(is_synchronised=True, error_s=math.pi), "ok"),
        (ClockFacts(is_synchronised=False, error_s=16.0), "note"),
        (ClockFacts(is_synchronised=None, problem="adjtimex failed"), "note"),
    ],
)
def test_clock(clock: ClockFacts, status: str) -> None:
    assert result(machine(clock=clock), "clock.synchronised").status == status

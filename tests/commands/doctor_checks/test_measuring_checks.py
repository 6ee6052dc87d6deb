"""Checks of exact counts, fio and probes."""

import msgspec
import pytest
from prometheus_client.core import Sample

from disksla.commands.doctor_checks.facts import FioFacts, MachineFacts, UnitFacts
from support.machine_facts import (
    DAEMON,
    SAMPLES,
    SETTINGS,
    configured,
    machine,
    result,
    results,
    sample,
    with_disk,
)

PROBES = SETTINGS + "probes: [{kind: read-latency}, {kind: write-latency, disks: [nvme1n1]}]\n"


def cached(why_not: str | None, *samples: Sample) -> MachineFacts:
    daemon = msgspec.structs.replace(DAEMON, samples=(*SAMPLES, *samples))
    return msgspec.structs.replace(
        with_disk(write_back=True), why_not_exact=why_not, daemon=daemon
    )


OPENED = sample("collector_success", collector="events")
NO_HELPER = "no helper listens on /run/x, and this process may not: denied"


@pytest.mark.parametrize(
    ("facts", "status", "words"),
    [
        (machine(), "ok", "no monitored disk has a volatile write cache"),
        (cached("no", sample("data_writes_total", device="nvme1n1")), "ok", "by the daemon"),
        (cached("no", OPENED), "ok", "once they are written to"),
        (cached(None), "ok", "by this user"),
        (cached(NO_HELPER), "note", "systemctl enable --now disksla-events.socket"),
        (cached(NO_HELPER), "note", "between two bounds only: no helper listens on /run/x"),
        (cached("kernel.perf_event_paranoid is 3"), "note", "only: kernel.perf_event_paranoid is"),
        (cached("denied"), "note", "journalctl --unit 'disksla-events@*'"),
        (
            msgspec.structs.replace(cached(NO_HELPER), unit=None),
            "note",
            "disksla open-events --listen /run/disksla-events/events.sock",
        ),
        (cached("no", sample("data_writes_total", device="vdx")), "note", "two bounds"),
    ],
)
def test_exact_counts(facts: MachineFacts, status: str, words: str) -> None:
    found = result(facts, "measuring.exact_counts")
    assert found.status == status
    assert words in f"{found.found} {found.fix}"


@pytest.mark.parametrize(
    ("text", "fio", "status"),
    [
        (SETTINGS, FioFacts("/usr/bin/fio", (3, 33)), "ok"),
        (SETTINGS, FioFacts(problem="fio is not installed; expected fio 3.1"), "note"),
        (PROBES, FioFacts(problem="fio is not installed; expected fio 3.1"), "wrong"),
        (PROBES, FioFacts(), "wrong"),
    ],
)
def test_fio(text: str, fio: FioFacts, status: str) -> None:
    found = result(machine(configuration=configured(text), fio=fio), "measuring.fio")
    assert found.status == status
    assert "expected" not in found.found


@pytest.mark.parametrize(
    ("values", "mount_points", "statuses"),
    [
        ({"PrivateDevices": ("yes",)}, ("/data",), ["wrong", "wrong"]),
        ({"PrivateDevices": ("yes", "no")}, ("/var/lib",), ["ok", "ok"]),
        ({}, ("/",), ["ok", "ok"]),
        ({"ReadWritePaths": ("-/data /x",)}, ("/data",), ["ok", "ok"]),
        ({"ReadWritePaths": ("/srv",)}, ("/srv/data",), ["ok", "ok"]),
        ({"ReadWritePaths": ("/srv/data",)}, ("/srv/data2",), ["ok", "wrong"]),
        ({}, (), ["ok", "note"]),
    ],
)
def test_what_the_unit_permits(
    values: dict[str, tuple[str, ...]], mount_points: tuple[str, ...], statuses: list[str]
) -> None:
    facts = msgspec.structs.replace(
        with_disk(mount_points=mount_points),
        configuration=configured(PROBES),
        unit=UnitFacts("unit", values),
    )
    found = results(facts, "measuring.probes")
    assert [each.status for each in found] == statuses


def test_line_of_the_drop_in() -> None:
    facts = msgspec.structs.replace(
        with_disk(mount_points=("/data",)), configuration=configured(PROBES)
    )
    device, file = results(facts, "measuring.probes")
    assert "10-probe-devices.conf" in (device.fix or "")
    assert file.expected == "ReadWritePaths=-/data in the drop-in 20-probe-files.conf"
    assert (file.fix or "").startswith("install -d -o disksla -g disksla -m 0700 /data/.disksla,")


def test_without_a_unit_nothing_is_said_of_permissions() -> None:
    facts = machine(configuration=configured(PROBES), unit=None)
    assert results(facts, "measuring.probes") == []


def test_last_probe() -> None:
    last = {"device": "nvme1n1", "kind": "read-latency"}
    failed = (
        sample("probe_success", 0.0, **last),
        sample("probe_failures_total", 2.0, **last, reason="unplugged"),
    )
    facts = machine(
        configuration=configured(PROBES), daemon=msgspec.structs.replace(DAEMON, samples=failed)
    )
    found = result(facts, "measuring.probe_success")
    assert found.found == "read-latency: the last probe failed (unplugged)"
    good = msgspec.structs.replace(DAEMON, samples=(sample("probe_success", 1.0, **last),))
    facts = machine(configuration=configured(PROBES), daemon=good)
    assert results(facts, "measuring.probe_success") == []

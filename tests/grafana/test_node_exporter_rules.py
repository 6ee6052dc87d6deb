"""The rules for hosts without a daemon: which disks ran at their limit, and which are not accused.

The limits are what `disksla limits --textfile` writes of a host with all disks of the cases; the
counters are those of node_exporter.
"""

from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

import pytest
from prometheus_client.parser import text_string_to_metric_families

from disksla.base.units import GIB, KIB, MIB
from disksla.commands.cli import main
from grafana.alert_series import EVAL_AT, Counter, Gauge, NewCounter, Values, series
from grafana.metric_names import NODE_EXPORTER_RULES, node_exporter_rules
from grafana.promtool import (
    Expected,
    RuleTest,
    check_rules,
    expect_alerts,
    expect_samples,
    needs_promtool,
    run_rule_tests,
)
from render import OUT
from support.sysfs_tree import add_device

RULES = OUT / NODE_EXPORTER_RULES
HOST = {"job": "node", "instance": "db1:9100"}
COUNTERS = {
    "reads": "reads_completed",
    "writes": "writes_completed",
    "flushes": "flush_requests",
    "read_bytes": "read_bytes",
    "written_bytes": "written_bytes",
    "inflight": "io_time_weighted_seconds",
}
EVEN = "{budget: sum, iops: 300, bandwidth: 60MiB}"


class Case(NamedTuple):
    """The terms of a disk, its rates per second with what is in flight, and the alerts on it."""

    terms: str
    rates: Mapping[str, float]
    alerts: set[str]
    minutes: int | None = None
    """For how long until the evaluation; None: always."""


def at(alerts: set[str], terms: str = EVEN, minutes: int | None = None, **rates: float) -> Case:
    return Case(terms, {"inflight": 8, **rates}, alerts, minutes)


LIMIT, HIGH, NONE = {"DiskAtLimit"}, {"DiskLoadHigh"}, set[str]()
SEPARATE = "{budget: separate, read_iops: 500, write_iops: 300}"
SHARED = "{budget: time_shared, read_iops: 1000, write_iops: 500}"
CREDITS = "{budget: sum, iops: 300, burst: {iops: 3000, iops_credits: 5400000}}"
CASES: Mapping[str, Case] = {
    "separate-reads": at(LIMIT, SEPARATE, reads=498, writes=10),
    "separate-both": at(HIGH, SEPARATE, reads=300, writes=250),
    "separate-sum": at(NONE, SEPARATE, reads=300, writes=200),
    "sum": at(LIMIT, reads=150, writes=149),
    "bytes": at(LIMIT, reads=60, read_bytes=60 * MIB),
    "shared-time": at(LIMIT, SHARED, reads=500, writes=250),
    "shared-time-half": at(NONE, SHARED, reads=250, writes=125),
    "additive": at(LIMIT, "yandex.network-ssd", reads=4000, read_bytes=4000 * 4 * KIB),
    "additive-large": at(LIMIT, "yandex.network-ssd", reads=15, read_bytes=15 * 4 * MIB),
    "additive-sum": at(HIGH, "yandex.network-ssd", reads=2000, read_bytes=30 * MIB),
    "flushes": at(LIMIT, writes=600, flushes=300, written_bytes=300 * 8 * KIB),
    "flushes-merged": at(LIMIT, writes=600, flushes=150, written_bytes=300 * 4 * KIB),
    "flushes-low": at(NONE, writes=340, flushes=85, written_bytes=170 * 4 * KIB),
    "flushes-of-journals": at(NONE, writes=150, flushes=300, written_bytes=150 * 64 * KIB),
    "small-writes": at(LIMIT, writes=300, written_bytes=300 * 512),
    "no-flushes": at(LIMIT, writes=300, written_bytes=300 * 512),
    "load-1.1": at(HIGH, reads=272.7),
    "load-1.3": at(NONE, reads=230.8),
    "load-3": at(NONE, reads=100),
    "not-waiting": at(HIGH, reads=300, inflight=0.4),
    "above": at(HIGH, reads=309),
    "excess": at(LIMIT, "azure.premium-ssd", reads=521),
    "baseline": at(LIMIT, CREDITS, reads=300),
    "below-baseline": at(NONE, CREDITS, reads=280),
    "burst": at(NONE, CREDITS, reads=2000),
    "six-minutes": at(NONE, minutes=6, reads=300),
    "fourteen-minutes": at(LIMIT, minutes=14, reads=300),
    "of-machine-1": at(NONE, "{budget: sum, iops: 5000}", reads=400),
    "of-machine-2": at(NONE, "{budget: sum, iops: 5000}", reads=600),
}
NO_ALERTS = expect_samples("ALERTS", EVAL_AT, {})
OF_MACHINE = ("of-machine-1", "of-machine-2")


def textfile(directory: Path) -> str:
    """Return what the command writes of a host with the disks of all cases."""
    sysfs, procfs = directory / "sys", directory / "proc"
    (procfs / "1").mkdir(parents=True)
    (procfs / "1" / "mountinfo").write_text("")
    entries = []
    for number, (name, case) in enumerate(CASES.items()):
        add_device(sysfs, f"block/{name}", f"254:{number}", 100 * GIB, serial=f"of-{name}")
        entries.append(f"  - {{match: {{device: {name}}}, terms: {case.terms}}}\n")
    others = "|".join(CASES.keys() - set(OF_MACHINE))
    machine = f"machine: {{limits: {{budget: sum, iops: 1000}}, exclude: ['^({others})$']}}\n"
    config, file = directory / "disksla.yml", directory / "disksla.prom"
    config.write_text(f"disks:\n{''.join(entries)}{machine}")
    options = (f"--path.sysfs={sysfs}", f"--path.procfs={procfs}", f"--config.file={config}")
    assert main(["limits", f"--textfile={file}", *options]) == 0
    return file.read_text()


def published(page: str) -> Iterator[tuple[str, str]]:
    """Yield the series of node_exporter in promtool's notation."""
    for family in text_string_to_metric_families(page):
        for sample in family.samples:
            yield series(sample.name, {**HOST, **sample.labels}), Gauge(sample.value).steady()
    for device, case in CASES.items():
        for name, counter in COUNTERS.items():
            if name != "flushes" or device != "no-flushes":
                rate = 60 * case.rates.get(name, 0)
                values: Values = Counter(rate)
                if case.minutes is not None:
                    values = NewCounter(case.minutes, rate)
                named = series(f"node_disk_{counter}_total", {**HOST, "device": device})
                yield named, values.steady()


AT_LIMIT_TEXT = (
    "Disk separate-reads on db1:9100 ran at its limit (iops) for 100% of the last 15m, with"
    " requests in flight. Bought: 500 reads/s. Bought: 300 writes/s. Reads now: 498/s. Writes now:"
    " 10/s. Read now: 0B/s. Written now: 0B/s. Serial of-separate-reads, terms written out."
)
HIGH_TEXT = (
    "Disk load-1.1 on db1:9100 had a load above 80 % of its limit (iops) for 100% of the last 30m."
    " Bought: 300 IOPS. Bought: 60MiB/s. Serial of-load-1.1, terms written out."
)
MACHINE_TEXT = (
    "On db1:9100, all disks of the machine together ran at the limit of the machine (iops) for"
    " 100% of the last 15m, with requests in flight. Disks: of-machine-1, of-machine-2."
    " Limit: 1k IOPS. A larger disk does not help."
)


def of_disk(device: str, budget: str) -> dict[str, str]:
    return {"device": device, "serial": f"of-{device}", "terms": "custom", "budget": budget}


def with_text() -> Iterator[Expected]:
    """Yield each alert once, with all labels and annotations."""
    group = {"group": "custom", "title": "all disks of the machine together", "budget": "sum"}
    found = {each["alert"]: each for each in node_exporter_rules() if "alert" in each}
    for name, of, text in (
        ("DiskAtLimit", of_disk("separate-reads", "separate"), AT_LIMIT_TEXT),
        ("DiskLoadHigh", of_disk("load-1.1", "sum"), HIGH_TEXT),
        ("MachineAtLimit", group, MACHINE_TEXT),
    ):
        labels = {**HOST, **found[name]["labels"], **of, "limit": "iops"}
        annotations = {"summary": found[name]["annotations"]["summary"], "description": text}
        yield expect_alerts(name, EVAL_AT, [(labels, annotations)])


@pytest.fixture(scope="module")
def failures(tmp_path_factory: pytest.TempPathFactory) -> dict[str, str]:
    directory = tmp_path_factory.mktemp("node_exporter")
    scraped = dict(published(textfile(directory)))
    fired = [
        expect_samples(
            f'count by (alertname) (ALERTS{{alertstate="firing", device="{device}"}})',
            EVAL_AT,
            {series("", {"alertname": name}): 1.0 for name in case.alerts},
        )
        for device, case in CASES.items()
    ]
    some = ("separate-reads", "load-1.1", *OF_MACHINE)
    of_some = {
        name: values
        for name, values in scraped.items()
        if "device=" not in name or any(f'device="{device}"' in name for device in some)
    }
    tests = {
        "alerts": [RuleTest(scraped, fired)],
        "texts": [RuleTest(of_some, [*with_text()])],
        "no limits": [
            RuleTest({n: v for n, v in scraped.items() if n.startswith("node_")}, [NO_ALERTS])
        ],
    }
    return run_rule_tests(tests, directory, [RULES])


@needs_promtool
@pytest.mark.parametrize("name", ["alerts", "texts", "no limits"])
def test_disks_at_their_limit_and_no_others(name: str, failures: dict[str, str]) -> None:
    assert failures.get(name, "") == ""


@needs_promtool
def test_promtool_accepts_rules() -> None:
    check_rules(RULES)

"""Cost of a fleet for Prometheus: a measurement on a real server, printed as in docs/fleet.md."""

import gzip
import math
import os
import time
import urllib.request
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any, NamedTuple

import yaml
from prometheus_client.parser import text_string_to_metric_families

from disksla.base.units import MIB
from fleet.page import page_at
from fleet.server import GZIP_LEVEL, serve_fleet
from fleet.stack import ScrapeConfig, prometheus, write_configuration
from support.monitoring_stack import Prometheus

SEED = 1
_POLL_S = 1.0
_PATIENCE_POLLS = 300
_HOSTS_PER_SECOND = 100
_SPARE_MINUTES = 60


class Figure(NamedTuple):
    """A row of the report."""

    what: str
    value: float
    unit: str

    def __str__(self) -> str:
        """Return the row in Markdown."""
        return f"| {self.what} | {_rounded(self.value)} {self.unit}".rstrip() + " |"


def _rounded(value: float) -> str:
    return f"{value:,.0f}" if value >= 100 else f"{value:.3g}"


class Measurement(NamedTuple):
    """Settings of a measurement."""

    hosts: int = 1000
    """Number of hosts, with ten disks each."""
    interval_s: float = 60.0
    """Scrape interval."""
    rounds: int = 16
    rules_interval_s: float | None = None
    block_minutes: int | None = None
    rounds_without_rules: int = 3
    """Scrapes after the others, without rules: what their CPU time lacks is that of the rules."""
    history_s: float = 0.0
    """Length of the history that is scraped first, faster than it was."""

    @property
    def fast_interval_s(self) -> float:
        """Scrape interval of the history: a hundred hosts a second keep half of a core busy."""
        return max(1.0, self.hosts / _HOSTS_PER_SECOND)

    @property
    def speed(self) -> float:
        """How much faster than it was the history is scraped."""
        return self.interval_s / self.fast_interval_s


class CatchingUp:
    """A clock that begins in the past, runs faster until it has caught up, and goes on."""

    def __init__(self, history_s: float, speed: float, real_s: Callable[[], float]) -> None:
        self._real_s = real_s
        self._speed = speed
        self._started_s = real_s()
        self.begun_s = self._started_s - history_s

    def __call__(self) -> float:
        """Return the Unix time."""
        now_s = self._real_s()
        return min(now_s, self.begun_s + self._speed * (now_s - self._started_s))

    @property
    def is_late(self) -> bool:
        """Whether it has not caught up."""
        now_s = self._real_s()
        return self.begun_s + self._speed * (now_s - self._started_s) < now_s


def measure(measurement: Measurement, home: Path, wait: Callable[[float], None]) -> list[Figure]:
    """Scrape the fleet and evaluate the mixin with Prometheus, and return its cost."""
    hosts, interval_s, rounds, rules_interval_s, block_minutes, *_ = measurement
    clock = CatchingUp(measurement.history_s, measurement.speed, time.time)
    fleet_start_s = clock.begun_s
    with_history = bool(measurement.history_s)
    if with_history:  # the head takes no samples that are older than half of a block
        block_minutes = math.ceil(measurement.history_s / 60) * 2 + _SPARE_MINUTES
    with ExitStack() as stack:
        fleet = stack.enter_context(
            serve_fleet(SEED, fleet_start_s, clock, with_times=with_history)
        )
        scrape = ScrapeConfig(str(fleet), hosts, interval_s, rules_interval_s, block_minutes)
        fast = scrape._replace(interval_s=measurement.fast_interval_s, rules=())
        server = stack.enter_context(prometheus(fast if with_history else scrape, home))
        await_hosts(server, hosts, wait)
        while clock.is_late:
            wait(_POLL_S)
        if with_history:
            write_configuration(scrape, home)
            server.post("/-/reload", None)
        started_s, first = time.monotonic(), OwnMetrics(server)
        simulator_s = time.process_time()
        rule_s, resident_bytes = [], []
        for _ in range(rounds):
            wait(interval_s)
            now = OwnMetrics(server)
            rule_s.append(now.by_label(_RULE_SECONDS, "rule_group"))
            resident_bytes.append(now.total(_RESIDENT))
        elapsed_s = time.monotonic() - started_s
        own = OwnMetrics(server)
        cpu_s = own.total(_CPU) - first.total(_CPU)
        samples = own.total(_APPENDED) - first.total(_APPENDED)
        simulator_s = time.process_time() - simulator_s
        of_prometheus = list(_of_prometheus(server))
        failures = list(_of_failures(server))
        scraping = _cpu_without_rules(server, scrape, home, measurement, wait)
        return [
            Figure("duration of the measurement", elapsed_s / 60, "min"),
            Figure("load average of the machine", os.getloadavg()[0], ""),
            *_of_pages(hosts, fleet_start_s),
            *of_prometheus,
            Figure("highest resident memory", max(resident_bytes) / MIB, "MiB"),
            Figure("blocks cut", own.total(_COMPACTIONS), ""),
            Figure("history in the head", _head_s(own) / 3600, "h"),
            Figure("samples per series in the head", own.total(_APPENDED) / own.total(_HEAD), ""),
            Figure("samples ingested per second", samples / elapsed_s, ""),
            *_of_rules(rule_s),
            _fewest_evaluations(first, own),
            Figure("CPU of Prometheus", cpu_s / elapsed_s * 100, "%"),
            Figure("CPU of scraping a round", scraping * interval_s, "s"),
            Figure(
                "CPU of all rules in a round", (cpu_s / elapsed_s - scraping) * interval_s, "s"
            ),
            Figure("CPU of the simulator", simulator_s / elapsed_s * 100, "%"),
            *failures,
        ]


def _cpu_without_rules(
    server: Prometheus,
    scrape: ScrapeConfig,
    home: Path,
    measurement: Measurement,
    wait: Callable[[float], None],
) -> float:
    """Reload the configuration without rules, and return the CPU that scraping takes."""
    write_configuration(scrape._replace(rules=()), home)
    server.post("/-/reload", None)
    wait(measurement.interval_s)
    started_s, first_s = time.monotonic(), OwnMetrics(server).total(_CPU)
    wait(measurement.interval_s * measurement.rounds_without_rules)
    return (OwnMetrics(server).total(_CPU) - first_s) / (time.monotonic() - started_s)


def await_hosts(server: Prometheus, hosts: int, wait: Callable[[float], None]) -> None:
    """Wait until all hosts were scraped once; the first scrape of a series costs more."""
    scraped: list[dict[str, Any]] = []
    for _ in range(_PATIENCE_POLLS):
        scraped = server.query("count(up == 1)")
        if scraped and float(scraped[0]["value"][1]) == hosts:
            return
        wait(_POLL_S)
    raise TimeoutError(f"timeout: scraped {scraped}; expected {hosts} hosts")


class OwnMetrics:
    """Metrics of the Prometheus server itself at one moment."""

    def __init__(self, server: Prometheus) -> None:
        with urllib.request.urlopen(f"http://{server.address}/metrics") as response:
            page = response.read().decode()
        self._samples = [
            sample for family in text_string_to_metric_families(page) for sample in family.samples
        ]

    def total(self, name: str) -> float:
        """Return the sum of all samples of a metric; fail if there are none."""
        values = [sample.value for sample in self._samples if sample.name == name]
        assert values, name
        return sum(values)

    def by_label(self, name: str, label: str) -> dict[str, float]:
        """Return the samples of a metric by a label."""
        return {s.labels[label]: s.value for s in self._samples if s.name == name}


_RULE_SECONDS = "prometheus_rule_group_last_duration_seconds"
_CPU = "process_cpu_seconds_total"
_EVALUATIONS = "prometheus_rule_group_iterations_total"
_HEAD = "prometheus_tsdb_head_series"
_HEAD_FIRST = "prometheus_tsdb_head_min_time_seconds"
_HEAD_LAST = "prometheus_tsdb_head_max_time_seconds"
_APPENDED = "prometheus_tsdb_head_samples_appended_total"
_RESIDENT = "process_resident_memory_bytes"
_HOURLY = ";disksla.sla.hours"
_COMPACTIONS = "prometheus_tsdb_compactions_total"


def _of_pages(hosts: int, fleet_start_s: float) -> Iterator[Figure]:
    """Yield the size of pages, from up to 50 of them."""
    pages = [page_at(SEED, host, fleet_start_s, fleet_start_s) for host in range(min(hosts, 50))]
    lines = sum(not line.startswith("#") for page in pages for line in page.splitlines())
    plain = sum(map(len, pages))
    compressed = sum(len(gzip.compress(page.encode(), GZIP_LEVEL)) for page in pages)
    yield Figure("page of a host", plain / len(pages) / 1024, "KiB")
    yield Figure("page of a host, compressed", compressed / len(pages) / 1024, "KiB")
    yield Figure("compressed size of a sample", compressed / lines, "bytes")


_OF_DISKS = '{device!="",job="disksla",__name__!~".*:.*|ALERTS.*"}'
_QUERIES: tuple[tuple[str, str, str], ...] = (
    ("hosts scraped", "sum(up)", ""),
    ("disks", "count(disksla_disk_info)", ""),
    ("series per disk, mean", f"count({_OF_DISKS}) / count(disksla_disk_info)", ""),
    ("series per disk, most", f"max(count by (instance, device) ({_OF_DISKS}))", ""),
    ("recorded series", 'count({__name__=~".*:.*"}) or vector(0)', ""),
    ("alerts, pending and firing", "count(ALERTS) or vector(0)", ""),
    ("scrape, mean", "avg(scrape_duration_seconds) * 1000", "ms"),
    ("scrape, slowest", "max(scrape_duration_seconds) * 1000", "ms"),
)


def _of_prometheus(server: Prometheus) -> Iterator[Figure]:
    for what, promql, unit in _QUERIES:
        [sample] = server.query(promql)
        yield Figure(what, float(sample["value"][1]), unit)
    own = OwnMetrics(server)
    head, resident = own.total(_HEAD), own.total(_RESIDENT)
    yield Figure("head series", head, "")
    yield Figure("resident memory of Prometheus", resident / MIB, "MiB")
    yield Figure("resident memory per head series", resident / head, "bytes")


def _of_rules(rule_s: list[dict[str, float]]) -> Iterator[Figure]:
    """Yield the mean duration of each rule group, and the longest of all groups together."""
    for group in sorted(rule_s[-1]):
        mean_s = sum(each.get(group, 0.0) for each in rule_s) / len(rule_s)
        yield Figure(f"rule group `{group.rpartition(';')[2]}`, mean", mean_s * 1000, "ms")
    slowest_s = max(sum(each.values()) for each in rule_s)
    yield Figure("all rule groups, slowest evaluation", slowest_s * 1000, "ms")


def _fewest_evaluations(first: OwnMetrics, last: OwnMetrics) -> Figure:
    """Return how often the slowest group was evaluated, but for those of an hour."""
    before, after = (each.by_label(_EVALUATIONS, "rule_group") for each in (first, last))
    fewest = min(
        count - before.get(group, 0.0)
        for group, count in after.items()
        if not group.endswith(_HOURLY)
    )
    return Figure("fewest evaluations of a rule group", fewest, "")


def _head_s(own: OwnMetrics) -> float:
    """Return the time from the first sample in the head to the last one."""
    return own.total(_HEAD_LAST) - own.total(_HEAD_FIRST)


def _of_failures(server: Prometheus) -> Iterator[Figure]:
    own = OwnMetrics(server)
    for what, name in (
        ("failed rule evaluations", "prometheus_rule_evaluation_failures_total"),
        ("missed rule group evaluations", "prometheus_rule_group_iterations_missed_total"),
        ("samples out of order", "prometheus_target_scrapes_sample_out_of_order_total"),
    ):
        yield Figure(what, own.total(name), "")


def time_rules(server: Prometheus, rules: Sequence[Path]) -> dict[str, float]:
    """Query the expression of each rule once; return the seconds by group."""
    seconds: dict[str, float] = {}
    for file in rules:
        for group in yaml.safe_load(file.read_text(encoding="utf-8"))["groups"]:
            started_s = time.monotonic()
            for rule in group["rules"]:
                server.query(rule["expr"])
            seconds[group["name"]] = time.monotonic() - started_s
    return seconds


def report(figures: list[Figure]) -> str:
    """Return the table of docs/fleet.md."""
    return "\n".join(["| figure | value |", "|:--|--:|", *map(str, figures)]) + "\n"

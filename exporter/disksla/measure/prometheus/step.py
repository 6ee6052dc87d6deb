"""Steps: what the counters of a disk increased by between two scrapes.

A counter that is less than before was reset, which all counters of a disk are together, when its
daemon starts; then each increased by its value. Increases are differences of samples, never
extrapolated, so they add up: those of a month are the sum of those of its days.
"""

from collections.abc import Iterable, Mapping, Sequence
from enum import StrEnum
from typing import NamedTuple

import msgspec

from disksla.clouds.http_client import Exchanges
from disksla.measure.prometheus.query import CHUNK_S, Series, Server, read_samples, selector
from disksla.promise.catalogue import Rates

Key = tuple[str, str]
"""Name of a counter, and the value of the label that divides it or ''."""


class CounterName(StrEnum):
    """The counters of a disk that reports are made from."""

    VERDICT_SECONDS = "disksla_verdict_seconds_total"
    THROTTLED_SECONDS = "disksla_throttled_seconds_total"
    SLOW_SECONDS = "disksla_slow_seconds_total"
    IOWAIT_SECONDS = "disksla_throttled_iowait_seconds_total"
    WAIT_SECONDS = "disksla_throttle_wait_seconds_total"
    READS = "disksla_reads_completed_total"
    WRITES = "disksla_writes_completed_total"
    READ_BYTES = "disksla_read_bytes_total"
    WRITTEN_BYTES = "disksla_written_bytes_total"
    READ_SECONDS = "disksla_read_time_seconds_total"
    WRITE_SECONDS = "disksla_write_time_seconds_total"
    LOAD_SUM = "disksla_window_load_ratio_sum"
    LOAD_COUNT = "disksla_window_load_ratio_count"


FLUSHES = "disksla_flushes_completed_total"
DATA_WRITES = "disksla_data_writes_total"
_COUNTER_ENDS = ("_total", "_sum", "_count")
_DIVIDED_BY: Mapping[str, str] = {
    CounterName.VERDICT_SECONDS: "verdict",
    CounterName.THROTTLED_SECONDS: "limit",
    CounterName.SLOW_SECONDS: "than",
}
_MAY_BE_ABSENT = {
    CounterName.IOWAIT_SECONDS,
    CounterName.WAIT_SECONDS,
    CounterName.READS,
    DATA_WRITES,
}
"""Not every host has the others; a daemon that has just started has no reads."""
INFO = "disksla_disk_info"
MOUNT_INFO = "disksla_mount_info"
_RATES = {
    "disksla_limit_read_iops": "read_iops",
    "disksla_limit_write_iops": "write_iops",
    "disksla_limit_read_bytes_per_second": "read_bytes_per_second",
    "disksla_limit_written_bytes_per_second": "write_bytes_per_second",
}
_LATENCY = "disksla_limit_latency_seconds"
_SIZE = "disksla_disk_size_bytes"
FACTS = (INFO, _SIZE, _LATENCY, *_RATES)
_ROUNDING = 1e-6
"""A counter may be less by this share of it: servers differ in how many digits they store, and
VictoriaMetrics stores more of them in one block than in another."""
_LATE_S = 2.5
"""A verdict is decided up to two seconds late, so a step may have that much more time."""


class Facts(msgspec.Struct, frozen=True):
    """What was known of a disk at a scrape."""

    serial: str = ""
    model: str = ""
    wwn: str = ""
    provider: str = ""
    terms: str = ""
    terms_source: str = ""
    machine_type: str = ""
    latency_kind: str = ""
    size_bytes: int | None = None
    promised: Rates = Rates()
    promised_latency_s: float | None = None


class Step(NamedTuple):
    """The time between two scrapes of a disk, and the increases of its counters."""

    start_s: float
    end_s: float
    increases: Mapping[Key, float]
    """Those above zero; of counters that may be absent, those of zero too."""
    facts: Facts
    """At the end."""
    gauges: Mapping[str, float]
    """At the end."""
    is_reset: bool = False
    """The counters started again in between."""

    @property
    def seconds(self) -> float:
        """Time between the scrapes."""
        return self.end_s - self.start_s

    def of(self, name: str, label: str = "") -> float:
        """Return the increase of a counter."""
        return self.increases.get((name, label), 0.0)

    @property
    def assessed_s(self) -> float:
        """Time that has a verdict."""
        return sum(
            increase
            for (name, _), increase in self.increases.items()
            if name == CounterName.VERDICT_SECONDS
        )

    @property
    def noncompliant_s(self) -> float:
        """Time below the promise, or stalled."""
        return self.of(CounterName.VERDICT_SECONDS, "below") + self.of(
            CounterName.VERDICT_SECONDS, "stalled"
        )

    @property
    def is_throttled(self) -> bool:
        """Whether it has throttled time."""
        return any(name == CounterName.THROTTLED_SECONDS for name, _ in self.increases)


class Scrape(msgspec.Struct):
    """The samples of a disk at one time."""

    timestamp_s: float
    counters: dict[Key, float]
    gauges: dict[str, float]
    info: dict[str, str]


def scrapes_of(
    series: Iterable[Series], needed: str = CounterName.VERDICT_SECONDS
) -> list[Scrape]:
    """Return the scrapes of one disk in order of time, by the samples of its series.

    A scrape without the needed counter is left out. Samples may be there twice.
    """
    scrapes: dict[float, Scrape] = {}
    for each in series:
        name = each.name
        key = name, each.metric.get(_DIVIDED_BY.get(name, ""), "")
        for timestamp_s, value in each.samples():
            scrape = scrapes.get(timestamp_s)
            if scrape is None:
                scrape = scrapes[timestamp_s] = Scrape(timestamp_s, {}, {}, {})
            if name.endswith(_COUNTER_ENDS):
                scrape.counters[key] = value
            elif name == INFO:
                scrape.info = each.metric
            else:
                scrape.gauges[name] = value
    return [
        scrapes[timestamp_s]
        for timestamp_s in sorted(scrapes)
        if any(name == needed for name, _ in scrapes[timestamp_s].counters)
    ]


def steps_between(scrapes: Iterable[Scrape]) -> list[Step]:
    """Return the steps between scrapes in order of time; one that is there twice counts once."""
    steps: list[Step] = []
    before: Scrape | None = None
    known = Facts()
    for scrape in scrapes:
        if before is None or scrape.timestamp_s > before.timestamp_s:
            if before is not None:
                facts = facts_of(scrape.info, scrape.gauges)
                known = known if facts == known else facts
                steps.append(_step(before, scrape, known))
            before = scrape
    return steps


def facts_of(info: Mapping[str, str], gauges: Mapping[str, float]) -> Facts:
    """Return what the labels of an info and the values of gauges say of a disk."""
    numbers = {
        "size_bytes": int(gauges[_SIZE]) if _SIZE in gauges else None,
        "promised": {field: gauges.get(name) for name, field in _RATES.items()},
        "promised_latency_s": gauges.get(_LATENCY),
    }
    return msgspec.convert({**info, **numbers}, Facts)


def _step(before: Scrape, after: Scrape, facts: Facts) -> Step:
    known, elapsed_s = before.counters, after.timestamp_s - before.timestamp_s
    is_reset = any(
        value < (1 - _ROUNDING) * known.get(key, 0.0) for key, value in after.counters.items()
    )
    increases: dict[Key, float] = {}
    for key, value in after.counters.items():
        if is_reset:
            increase = value
        elif key in known:
            increase = value - known[key]
        elif key[1] and value <= elapsed_s + _LATE_S:
            # Started at 0 in between, as the seconds of a limit that throttles for the first time.
            increase = value
        else:
            continue
        if increase > 0 or key[0] in _MAY_BE_ABSENT:
            increases[key] = max(0.0, increase)
    return Step(
        start_s=before.timestamp_s,
        end_s=after.timestamp_s,
        increases=increases,
        facts=facts,
        gauges=after.gauges,
        is_reset=is_reset,
    )


def read_increases(
    server: Server,
    names: Iterable[str],
    labels: Mapping[str, str],
    start_s: int,
    end_s: int,
    needed: str = CounterName.VERDICT_SECONDS,
) -> Exchanges[list[Step]]:
    """Return the steps of a disk in a time, of these metrics. Raise ExchangeError."""
    matching = selector(names, labels)
    steps: list[Step] = []
    last: list[Scrape] = []
    for chunk_s in range(start_s, end_s, CHUNK_S):
        chunk_end_s = min(chunk_s + CHUNK_S, end_s)
        samples = yield from read_samples(server, matching, chunk_s, chunk_end_s)
        scrapes = [*last, *scrapes_of(samples, needed)]
        steps += steps_between(scrapes)
        last = scrapes[-1:]
    return steps


def within(steps: Sequence[Step], start_s: float, end_s: float) -> list[Step]:
    """Return the steps that end after a time, up to another one: an increase counts at its end."""
    return [step for step in steps if start_s < step.end_s <= end_s]

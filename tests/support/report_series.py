"""Series of a disk as a server returns them, and a server that has them."""

import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any
from urllib.parse import parse_qs, urlsplit

import msgspec

from disksla.clouds.http_client import Request, Response
from disksla.measure.prometheus.query import Series
from disksla.measure.prometheus.step import CounterName
from disksla.verdict.throttling import VERDICTS
from metrics_page import METRICS, OF_DISKS, OF_THE_MACHINE
from support.exchanges import reply

TARGET = {"job": "disksla", "instance": "db-1:10056", "device": "vdb"}
ROWS = {metric.name: metric for metric in METRICS}
INFO = TARGET | dict.fromkeys(ROWS["disksla_disk_info"].labels, "")
INFO |= {
    "serial": "vol-1",
    "provider": "vk",
    "terms": "vk.ceph-ssd",
    "budget": "separate",
    "latency_kind": "indicative",
    "rotational": "false",
    "terms_source": "api",
    "kind": "disk",
}
LIMITS = {
    "disksla_disk_size_bytes": 30 * 2**30,
    "disksla_limit_read_iops": 1000.0,
    "disksla_limit_write_iops": 500.0,
}
START_S = 1_790_812_800
"""2026-10-01 in UTC."""


def metric_of(name: str, labels: Mapping[str, str]) -> dict[str, str]:
    """Return the labels of a series; fail unless they are those of the table of metrics."""
    row = ROWS.get(name) or ROWS[re.sub(r"_(sum|count)$", "", name)]
    of_group = {"group"} if row in OF_THE_MACHINE else set()
    assert labels.keys() - TARGET.keys() == {*row.labels, *of_group}, name
    has_device = row in OF_DISKS
    kept = {label: value for label, value in labels.items() if label != "device" or has_device}
    return {"__name__": name, **kept}


class DiskSeries:
    """The series of one disk, which grow by what it does between scrapes."""

    def __init__(self, info: Mapping[str, str] = INFO, every_s: float = 60.0) -> None:
        self.info = dict(info)
        self.now_s = float(START_S)
        self.every_s = every_s
        self.gauges: dict[str, float] = dict(LIMITS)
        self.counters: dict[tuple[str, str], float] = {}
        self.restart()
        self._series: dict[tuple[tuple[str, str], ...], list[tuple[float, str]]] = {}

    def restart(self) -> None:
        """Start all counters at 0."""
        self.counters = {(CounterName.VERDICT_SECONDS, verdict): 0.0 for verdict in VERDICTS}

    def scrape(self) -> None:
        """Add a sample to each series."""
        target = {name: self.info[name] for name in TARGET}
        self._add("disksla_disk_info", self.info, 1.0)
        for name, value in self.gauges.items():
            self._add(name, target, value)
        for (name, label), value in self.counters.items():
            by = ROWS[name].labels if name in ROWS else ()
            self._add(name, target | dict.fromkeys(by, label), value)

    def _add(self, name: str, labels: Mapping[str, str], value: float) -> None:
        key = tuple(sorted(metric_of(name, labels).items()))
        self._series.setdefault(key, []).append((self.now_s, repr(value)))

    def does(self, count: int = 1, /, **seconds: float) -> None:
        """Do the same in so many intervals: seconds by verdict; the rest is idle, unless given."""
        seconds.setdefault("idle", self.every_s - sum(seconds.values()))
        for _ in range(count):
            self.now_s += self.every_s
            for verdict, each_s in seconds.items():
                self.counters[CounterName.VERDICT_SECONDS, verdict] += each_s
            self.scrape()

    def counts(self, name: str, increase: float, label: str = "") -> None:
        """Increase another counter before the next scrape."""
        self.counters[name, label] = self.counters.get((name, label), 0.0) + increase

    @property
    def series(self) -> list[Series]:
        """All series."""
        return [Series(dict(key), samples) for key, samples in self._series.items()]


class Server:
    """Answers questions of the API about series, by name and labels only."""

    def __init__(self, series: Sequence[Series], most_samples: int = 10**9) -> None:
        self.series = series
        self.most_samples = most_samples
        self.requests: list[Request] = []

    def __call__(self, request: Request) -> Response:
        self.requests.append(request)
        url = urlsplit(request.url)
        asked = {name: values[0] for name, values in parse_qs(url.query).items()}
        name = url.path.rpartition("/")[2]
        return {"series": self._labels, "query": self._query, "query_range": self._steps}[name](
            asked
        )

    def _labels(self, asked: Mapping[str, str]) -> Response:
        found = self._matching(asked["match[]"])
        return _success([each.metric for each in found if _inside(each, asked)])

    def _query(self, asked: Mapping[str, str]) -> Response:
        matching, _, window = asked["query"].rpartition("[")
        end_s = float(asked["time"])
        start_s = end_s - float(window.removesuffix("s]"))
        found = []
        for each in self._matching(matching):
            values = [value for value in each.values if start_s <= value[0] <= end_s]
            if values:
                found.append({"metric": each.metric, "values": values})
        if sum(len(each["values"]) for each in found) > self.most_samples:
            return reply({"status": "error", "error": "too many samples"}, 422)
        return _success({"resultType": "matrix", "result": found})

    def _steps(self, asked: Mapping[str, str]) -> Response:
        start_s, end_s, step_s = (float(asked[name]) for name in ("start", "end", "step"))
        found = []
        for each in self._matching(asked["query"]):
            values = []
            at_s = start_s
            while at_s <= end_s:
                recent = [value for value in each.values if at_s - 300 < value[0] <= at_s]
                values += [(at_s, recent[-1][1])] if recent else []
                at_s += step_s
            if values:
                found.append({"metric": each.metric, "values": values})
        return _success({"resultType": "matrix", "result": found})

    def _matching(self, matching: str) -> list[Series]:
        pairs = re.findall(r'(\w+)(=~?)"((?:[^"\\]|\\.)*)"', matching)
        return [
            each for each in self.series if all(_is_equal(each.metric, *pair) for pair in pairs)
        ]


def _is_equal(metric: Mapping[str, str], label: str, operator: str, value: str) -> bool:
    found = metric.get(label, "")
    return bool(re.fullmatch(value, found)) if operator == "=~" else found == value


def _inside(series: Series, asked: Mapping[str, str]) -> bool:
    start_s, end_s = float(asked["start"]), float(asked["end"])
    return any(start_s <= timestamp_s <= end_s for timestamp_s, _ in series.values)


def _success(data: Any) -> Response:
    return reply(msgspec.json.encode({"status": "success", "data": data}))


def gauge(name: str, values: Iterable[tuple[float, float]], **labels: str) -> Series:
    """Return a series of the disk."""
    metric = metric_of(name, TARGET | labels)
    return Series(metric, [(timestamp_s, repr(value)) for timestamp_s, value in values])

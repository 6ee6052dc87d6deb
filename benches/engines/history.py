"""A day of the fleet of `make demo`, as requests of remote write.

The hosts are scraped at different seconds of a minute, so that no sample is at the boundary of the
range of a query. One host is restarted: its counters begin at 0 again. Another one is down for a
quarter of an hour. In the last hour, there are the disks of tests/grafana/sample_history.py too.
"""

import re
from collections.abc import Iterator
from functools import cache
from typing import NamedTuple

from engines.remote_write import STALE, Sample, Series
from fleet.page import samples_at
from fleet.schedule import host_name
from grafana.sample_history import HOUR_S, openmetrics

SEED = 1
HOSTS = 4
"""With these, all days of benches/fleet/schedule.py occur, four recordings of the lab, machine
limits and credits."""
STEP_S = 60
REQUEST_S = 3600
"""Length of the part of the history that is in one request."""
RESTARTED_HOST = 2
RESTARTED_AFTER_S = 9 * 3600
DOWN_HOST = 3
DOWN_AFTER_S = range(15 * 3600, 15 * 3600 + 900)
_LAST_SECOND = -12
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_CUMULATIVE = re.compile(r"_(?:total|bucket|count|sum)$")


def history(start_s: int, end_s: int) -> Iterator[list[Series]]:
    """Yield the series of each hour of each host between two Unix times."""
    last: dict[int, set[str]] = {host: set() for host in range(HOSTS)}
    for from_s in range(start_s, end_s, REQUEST_S):
        minutes = range(from_s, min(from_s + REQUEST_S, end_s), STEP_S)
        for host in range(HOSTS):
            found: dict[str, list[Sample]] = {}
            for minute_s in minutes:
                now_s = minute_s + second_of(host)
                page = dict(_page(host, start_s, now_s))
                ended = dict.fromkeys(last[host] - set(page), STALE)
                last[host] = set(page)
                for text, value in (page | ended).items():
                    found.setdefault(text, []).append(Sample(now_s * 1000, value))
            yield [Series(labels_of(text), samples) for text, samples in found.items()]


def _page(host: int, start_s: int, now_s: int) -> Iterator[tuple[str, float]]:
    """Yield the scraped series with their values."""
    after_s = now_s - start_s
    is_restarted = host == RESTARTED_HOST and after_s >= RESTARTED_AFTER_S
    is_down = host == DOWN_HOST and after_s in DOWN_AFTER_S
    zero = _at_restart(host, start_s) if is_restarted else {}
    for text, value in _values(host, start_s, now_s).items():
        name = text.partition("{")[0]
        if is_down:
            if name == "up":
                yield text, 0.0
        else:
            yield text, value - zero.get(text, 0.0) if _CUMULATIVE.search(name) else value


@cache
def _at_restart(host: int, start_s: int) -> dict[str, float]:
    return _values(host, start_s, start_s + RESTARTED_AFTER_S)


def _values(host: int, start_s: int, now_s: int) -> dict[str, float]:
    lines = (line.rsplit(" ", 2) for line in samples_at(SEED, host, start_s, now_s))
    return {text: float(value) for text, value, _ in lines}


def last_hour(end_s: int) -> list[Series]:
    """Return the series of the disks of which each is in another state, scraped every 15 s.

    Their histograms have the buckets of those of the fleet: the bounds of all daemons of a fleet
    must be the same, or no sum of their buckets is a histogram.
    """
    found: dict[str, list[Sample]] = {}
    for line in openmetrics(end_s + _LAST_SECOND).splitlines()[:-1]:
        text, value, time_s = line.rsplit(" ", 2)
        found.setdefault(text, []).append(Sample(int(time_s) * 1000, float(value)))
    bounds = _bounds(end_s)
    return [
        Series(labels, sorted(samples))
        for text, samples in found.items()
        for labels in [labels_of(text)]
        if labels.get("le") in bounds.get(labels["__name__"], {labels.get("le")})
    ]


def _bounds(now_s: int) -> dict[str, set[str | None]]:
    """Return the bounds of the buckets of each histogram of the fleet."""
    found: dict[str, set[str | None]] = {}
    for host in range(HOSTS):
        for labels in map(labels_of, _values(host, now_s, now_s)):
            if "le" in labels:
                found.setdefault(labels["__name__"], set()).add(labels["le"])
    return found


class Event(NamedTuple):
    """Where series of a host begin, or continue after a gap."""

    instance: str
    time_s: int


@cache
def events(start_s: int, end_s: int) -> list[Event]:
    """Return when hosts went down, came back or were added."""
    added = {labels["instance"] for labels, _ in last_hour(end_s)}
    down = f"{host_name(DOWN_HOST)}:10056"
    return [
        *(Event(instance, end_s + _LAST_SECOND - HOUR_S) for instance in sorted(added)),
        *(Event(down, start_s + after_s) for after_s in (DOWN_AFTER_S.start, DOWN_AFTER_S.stop)),
    ]


def second_of(host: int) -> int:
    """Return at which second of a minute a host is scraped."""
    return 7 + 13 * host


@cache
def labels_of(text: str) -> dict[str, str]:
    """Return the labels of a series of a page, without empty ones, which a scrape drops."""
    name, _, rest = text.partition("{")
    return {"__name__": name} | {label: value for label, value in _LABEL.findall(rest) if value}

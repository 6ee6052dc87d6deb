"""What the real pipeline says of a draw, with and without terms, beside the truth."""

import statistics
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import pairwise

import msgspec

from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.configuration.configuration import Configuration
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.state import State, to_look_at
from disksla.state.pipeline.tick import Tick
from disksla.state.pipeline.window_records import WindowRecord, window_records
from disksla.verdict.throttling import SIGNS, Sign
from population.draws import Classes, Draw
from population.limiter import Limit
from population.loads import KIB
from population.simulation import DEVICE

Signs = frozenset[Sign]
CATALOG = load_catalog()
PROMISES = (1.1, 1.3, 3.0)
"""Terms of disks without a limiter, as multiples of what they served on average."""
_LARGE_BYTES = 64 * KIB
"""Mean size of requests from which on terms promise bandwidth instead of IOPS."""


@dataclass(frozen=True)
class Judged:
    """A draw under one configuration."""

    number: int
    classes: Classes
    terms: str
    """Name of the configuration."""
    seconds: float
    """Of the simulation."""
    truth_s: float
    found_s: dict[str, float]
    """Throttled seconds by the limit that was named."""
    limit: Limit | None
    window_s: float | None
    """Median of the limiter's windows that were reported."""
    rate: float | None
    """Last rate at which it was seen throttled, in the unit of its limit."""
    credit_samples: int
    wrong_credits: int
    """Samples at which the bounds of credits exclude the truth."""

    @property
    def total_s(self) -> float:
        """Return the throttled seconds that were found."""
        return sum(self.found_s.values())


def judged(
    ticks: Iterable[Tick],
    settings: Settings,
    signs: Signs = SIGNS,
    *,
    always_looked_at: bool = False,
) -> list[WindowRecord]:
    """Return the records of all windows of the ticks, as `disksla replay --json` prints them.

    The detector gets all close samples, or those that a daemon in its state takes.
    """
    states = judged_states(ticks, settings, signs, always_looked_at=always_looked_at)
    return [row for before, after in pairwise(states) for row in window_records(before, after)]


def judged_states(
    ticks: Iterable[Tick],
    settings: Settings,
    signs: Signs = SIGNS,
    *,
    always_looked_at: bool = False,
) -> Iterator[State]:
    """Yield the state before the first tick, and after each."""
    state = State(Configuration(settings, CATALOG))
    yield state
    for tick in ticks:
        looked = tick
        due_s = tick.clocks.monotonic_s - tick.lateness_s
        if not always_looked_at and DEVICE not in to_look_at(state, due_s):
            looked = msgspec.structs.replace(tick, close={})
        state = advance(state, looked, signs)
        yield state


def judge(draw: Draw, signs: Signs = SIGNS) -> list[Judged]:
    """Judge a draw under each of its configurations."""
    return [
        summarize(draw, name, judged(draw.ticks, settings_of(terms), signs))
        for name, terms in terms_of(draw).items()
    ]


def settings_of(terms: SumTerms | None) -> Settings:
    """Return the configuration with these terms of the disk."""
    if terms is None:
        return Settings()
    return Settings(disks=(DiskEntry(match=DiskMatch(device=DEVICE), terms=terms),))


def terms_of(draw: Draw) -> dict[str, SumTerms | None]:
    """Return the terms to judge a draw with, by name."""
    limit = draw.spec.limit
    if limit is not None:
        return {"none": None, "right": _right_terms(limit)}
    samples, seconds = draw.samples, draw.spec.seconds
    if samples.data_bytes > _LARGE_BYTES * samples.data_requests:
        mean = samples.data_bytes / seconds
        promised = [SumTerms(bytes_per_second=round(mean * promise)) for promise in PROMISES]
    else:
        mean = samples.data_requests / seconds
        promised = [SumTerms(iops=max(1.0, mean * promise)) for promise in PROMISES]
    names = [f"x{promise:g}" for promise in PROMISES]
    return {"none": None, **dict(zip(names, promised, strict=True))}


def _right_terms(limit: Limit) -> SumTerms:
    burst, of_iops, of_bytes = limit.burst, None, None
    if limit.name == "iops":
        if burst is not None:
            of_iops = SumBurst(iops=burst.per_second, iops_credits=burst.credits)
        return SumTerms(iops=limit.per_second, burst=of_iops)
    if burst is not None:
        of_bytes = SumBurst(
            bytes_per_second=round(burst.per_second), credit_bytes=round(burst.credits)
        )
    return SumTerms(bytes_per_second=round(limit.per_second), burst=of_bytes)


def summarize(draw: Draw, terms: str, rows: list[WindowRecord]) -> Judged:
    """Return what the records of a draw say."""
    limit = draw.spec.limit
    found_s: dict[str, float] = {}
    for row in rows:
        if row.throttled_s:
            limit_name = row.limit or "unknown"
            found_s[limit_name] = found_s.get(limit_name, 0.0) + row.throttled_s
    is_bandwidth = limit is not None and limit.name == "bandwidth"
    rates = [row.ceiling_bytes_per_second if is_bandwidth else row.ceiling_iops for row in rows]
    windows_s = [row.limiter_window_s for row in rows if row.limiter_window_s is not None]
    levels = dict(
        zip((t.clocks.monotonic_s for t in draw.ticks), draw.samples.credits, strict=True)
    )
    of_window = limit.per_second * (limit.window_s or 0.0) + 1 if limit is not None else 0.0
    is_within = [
        level.lower_credits - of_window <= true[1] and true[0] <= level.upper_credits + of_window
        for row in rows
        if (true := levels.get(row.decided_s or 0.0)) is not None
        for level in row.credits
    ]
    return Judged(
        draw.number,
        draw.classes,
        terms,
        draw.spec.seconds,
        sum(draw.truth),
        found_s,
        limit,
        statistics.median(windows_s) if windows_s else None,
        next((rate for rate in reversed(rates) if rate is not None), None),
        len(is_within),
        is_within.count(False),
    )

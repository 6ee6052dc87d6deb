"""Close samples of real disks with the limiter's log: tests/verdict/throttling/close/README.md."""

import gzip
import json
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec

from disksla.kernel.procfs import SECTOR_BYTES, CloseSample
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.state.pipeline.tick import Tick
from disksla.state.pipeline.window_records import WindowRecord
from disksla.verdict.interval import Clocks, Interval, interval_of
from disksla.verdict.throttling import SIGNS, Sign
from population.judging import judged as judged_ticks
from population.judging import settings_of
from population.simulation import DISK as SIMULATED

DIRECTORY = Path(__file__).parents[1] / "verdict" / "throttling" / "close"
NAMES = sorted(path.name.removesuffix(".json.gz") for path in DIRECTORY.glob("*.json.gz"))
DISK = msgspec.structs.replace(SIMULATED, serial="recorded", write_back=True)
ORIGIN_S = 1000.0
"""Monotonic time of the first sample."""
_REALTIME_S = 1.7e9
_STEPS = 10
"""Close samples of a tick."""
_LIMIT_BYTES = {"windows_100_ms_40_mb_s_256k": 40e6}
"""Limits of bytes per second. All others are of requests."""


@dataclass(frozen=True)
class CloseRecording:
    """The samples of a disk, and the truth."""

    name: str
    terms: SumTerms | None
    """Those that are the limit; None if there is none."""
    samples: tuple[tuple[float, ...], ...]
    truth: tuple[tuple[float, float], ...]
    """Seconds from the first sample, and those since the row before in which requests waited."""

    def throttled_s(self, from_s: float, to_s: float) -> float:
        """Return the seconds between two times in which requests waited, in truth."""
        return sum(waited_s for at_s, waited_s in self.truth if from_s < at_s <= to_s)

    @property
    def rates(self) -> tuple[float, float]:
        """Return the requests and the bytes per second that completed."""
        first, last = self.samples[0], self.samples[-1]
        seconds = last[0] - first[0]
        requests = last[1] + last[5] - first[1] - first[5]
        sectors = last[3] + last[7] - first[3] - first[7]
        return requests / seconds, sectors * SECTOR_BYTES / seconds

    def ticks(self, origin_s: float = ORIGIN_S) -> list[Tick]:
        """Return ticks of 100 ms that have all close samples."""
        ticks: list[Tick] = []
        close: list[CloseSample] = []
        for number, sample in enumerate(self.samples):
            at_s = round(origin_s + sample[0], 5)
            counters = [int(each) for each in sample[1:18]]
            reads, read_sectors, writes, written_sectors = counters[0:7:2]
            inflight, (flushes, flush_ms) = counters[8], counters[15:17]
            close.append(
                CloseSample(
                    *(at_s, reads, writes, read_sectors, written_sectors),
                    *(inflight, flushes, flush_ms),
                )
            )
            if number % _STEPS:
                continue
            text = f"{DISK.major} {DISK.minor} {DISK.name} {' '.join(map(str, counters))}\n"
            clocks = Clocks(at_s, at_s, _REALTIME_S + at_s)
            disks = None if ticks else (DISK,)
            ticks.append(Tick(clocks, text, disks=disks, close={DISK.name: tuple(close)}))
            close = []
        return ticks

    def windows(self) -> list[tuple[Interval, tuple[CloseSample, ...]]]:
        """Return the windows between the ticks, each with its close samples."""
        rows = self.samples[::_STEPS]
        close = [tick.close[DISK.name] for tick in self.ticks()][1:]
        found = []
        for (before, after), samples in zip(pairwise(rows), close, strict=True):
            seconds, end_s, inflight = after[0] - before[0], samples[-1].at_s, samples[-1].inflight
            counters = _reading(before), _reading(after)
            window = interval_of(end_s, seconds, *counters, inflight, int(before[9]))
            found.append((window, samples))
        return found


def _reading(sample: tuple[float, ...]) -> tuple[int, ...]:
    """Return the counters without the requests in flight."""
    counters = [int(each) for each in sample[1:18]]
    return (*counters[:8], *counters[9:])


@cache
def close_recording(name: str) -> CloseRecording:
    """Return a recording by its name."""
    stored = json.loads(gzip.decompress((DIRECTORY / f"{name}.json.gz").read_bytes()))
    terms = None
    if stored["limit_iops"]:
        terms = SumTerms(iops=float(stored["limit_iops"]))
    elif name in _LIMIT_BYTES:
        terms = SumTerms(bytes_per_second=_LIMIT_BYTES[name])
    return CloseRecording(
        name,
        terms,
        tuple(tuple(sample) for sample in stored["samples"]),
        tuple((at_s, waited_s) for at_s, waited_s, *_ in stored["truth"]),
    )


@dataclass(frozen=True)
class Judged:
    """What the pipeline says of a recording."""

    rows: list[WindowRecord]

    def between(self, from_s: float, to_s: float) -> list[WindowRecord]:
        """Return the windows that end between two times of the recording."""
        return [row for row in self.rows if from_s < row.monotonic_s - ORIGIN_S <= to_s]

    def throttled_share(self, from_s: float, to_s: float) -> float:
        """Return the share of a time in which requests waited."""
        rows = self.between(from_s, to_s)
        whole_s = sum(row.window_s or 0.0 for row in rows)
        return sum(row.throttled_s or 0.0 for row in rows) / whole_s

    @property
    def limits(self) -> dict[str, float]:
        """Return throttled seconds by the limit that is named."""
        by_limit: dict[str, float] = {}
        for row in self.rows:
            if row.limit is not None:
                by_limit[row.limit] = by_limit.get(row.limit, 0.0) + (row.throttled_s or 0.0)
        return by_limit


def judged(
    recording: CloseRecording,
    terms: SumTerms | None,
    *,
    always_looked_at: bool,
    signs: frozenset[Sign] = SIGNS,
) -> Judged:
    """Judge a recording by the pipeline, with all close samples or those that a daemon takes."""
    rows = judged_ticks(
        recording.ticks(), settings_of(terms), signs, always_looked_at=always_looked_at
    )
    return Judged([row for row in rows if row.verdict is not None])

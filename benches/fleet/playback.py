"""Playback: the metrics page of a recorded disk, repeated endlessly.

In each round, counters grow by their increase in the recording; gauges have their value at that
moment of the recording. Only values, device and serial number of the page are replaced, so a page
is cheap: the pipeline could not compute ten thousand disks in real time on two cores.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import msgspec
from prometheus_client import ProcessCollector

from disksla.kernel.disks.disk import disk_key
from disksla.measure.verification.report import VerificationReport
from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.serve.metrics.self_metrics import BuildInfo
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
ABOUT = BuildInfo("0.1.0", "unknown", "3.11.2", "6.1.0-26-amd64", True, 0.0)
UNITS = 10**9
"""Integers stand for counters as this many parts of one."""
_US = 10**6
_CUMULATIVE = re.compile(r"_(total|bucket|count|sum)$")
_FRACTIONAL = re.compile(r"_(seconds_total|sum)$")
_OF_DISK = re.compile(r'[{,](device|group)="')
_SERIAL = re.compile(r'serial="[^"]*"')


class Sample(NamedTuple):
    """A sample line of a page."""

    family: str
    text: str
    """Name and labels; the placeholders are DEVICE and SERIAL."""
    value: float

    @property
    def name(self) -> str:
        """Name without labels."""
        return self.text.partition("{")[0]

    @property
    def is_cumulative(self) -> bool:
        """Whether it never decreases."""
        return bool(_CUMULATIVE.search(self.name))

    @property
    def is_whole(self) -> bool:
        """Whether its values are integers."""
        return self.is_cumulative and not _FRACTIONAL.search(self.name)


class Page(NamedTuple):
    """A parsed page in OpenMetrics format."""

    heads: dict[str, str]
    """HELP and TYPE lines by family, in the order of the page."""
    host: tuple[Sample, ...]
    disk: tuple[Sample, ...]
    """Samples of the only disk, and of the group that it is in."""


def page_of(snapshot: Snapshot, report: VerificationReport | None = None) -> str:
    """Return the page as the daemon renders it; a report is that of the first disk."""
    reports = {} if report is None else {disk_key(snapshot.disks[0].disk) or "": report}
    registry = make_registry(SnapshotCollector(lambda: snapshot, lambda: ABOUT, lambda: reports))
    ProcessCollector(registry=registry)
    return render_metrics(registry, OPENMETRICS).body.decode()


def parse_page(text: str) -> Page:
    """Parse the page of one disk."""
    heads: dict[str, str] = {}
    samples: list[Sample] = []
    family = ""
    for line in text.splitlines():
        if line == "# EOF":
            break
        if line.startswith("# "):
            family = line.split(" ", 3)[2]
            heads[family] = heads.get(family, "") + line + "\n"
        else:
            series, value = line.rsplit(" ", 1)
            samples.append(Sample(family, series, float(value)))
    disk = tuple(_anonymous(each) for each in samples if _OF_DISK.search(each.text))
    host = tuple(each for each in samples if not _OF_DISK.search(each.text))
    return Page(heads, host, disk)


def _anonymous(sample: Sample) -> Sample:
    text = re.sub(r'device="[^"]*"', 'device="DEVICE"', sample.text)
    return sample._replace(text=_SERIAL.sub('serial="SERIAL"', text))


@dataclass(frozen=True)
class Playback:
    """A recording of one disk with the values of its page over time."""

    seconds: float
    heads: dict[str, str]
    samples: tuple[Sample, ...]
    """Samples at the end."""
    host: tuple[Sample, ...]
    frames: tuple[tuple[int, ...], ...]
    """Values of counters at equal intervals, from the start to the end, times UNITS."""
    gauges: tuple[dict[str, float], ...]
    """Values of gauges by text, at the end of each interval between two frames; where a gauge is
    absent, its last value."""

    @property
    def counters(self) -> tuple[Sample, ...]:
        """Samples whose values are in `frames`."""
        return tuple(sample for sample in self.samples if sample.is_cumulative)

    def increases(self, played_s: float) -> list[int]:
        """Return the increases of counters after `played_s`, times UNITS.

        They are integers, because rounding of fractions lets a counter fall by its last digit,
        which Prometheus takes for a reset.
        """
        round_us = round(self.seconds * _US)
        rounds, rest_us = divmod(round(played_s * _US), round_us)
        frame, part_us = divmod(rest_us * (len(self.frames) - 1), round_us)
        before, after = self.frames[frame], self.frames[frame + 1]
        return [
            rounds * whole + low + (high - low) * part_us // round_us
            for whole, low, high in zip(self.frames[-1], before, after, strict=True)
        ]

    def gauge_values(self, played_s: float) -> dict[str, float]:
        """Return the values of gauges after `played_s`."""
        position = played_s % self.seconds / self.seconds * len(self.gauges)
        return self.gauges[int(position)]


def make_playback(
    states: Iterable[State],
    ticks: int,
    frames: int = 1,
    skip: int = 0,
    report: VerificationReport | None = None,
) -> Playback:
    """Return the playback of a recording of one disk, from the states after each tick.

    One frame is enough for a constant load. The first `skip` ticks are not part of the playback,
    and windows whose verdict is not decided at an end of it belong to what follows.
    """
    kept = _kept(states, ticks, frames, skip)
    snapshots = [Snapshot(state) for state in kept]
    return playback_of_snapshots(
        snapshots, _decided_to_s(kept[-1]) - _decided_to_s(kept[0]), report
    )


def make_playbacks(
    states: Iterable[State], ticks: int, devices: list[str], frames: int
) -> dict[str, Playback]:
    """Return the playbacks of disks that share limits of their machine.

    The series of the machine are in that of the first disk.
    """
    kept = _kept(states, ticks, frames, 0)
    seconds = _decided_to_s(kept[-1]) - _decided_to_s(kept[0])
    return {
        device: playback_of_snapshots(
            [_alone(state, device) for state in kept], seconds, has_group=device == devices[0]
        )
        for device in devices
    }


def _alone(state: State, device: str) -> Snapshot:
    """Return the snapshot of one disk, and of its groups without other disks."""
    groups = {
        name: msgspec.structs.replace(group, devices=(device,))
        for name, group in state.groups.items()
        if device in group.devices
    }
    monitored = {device: state.monitored[device]}
    return Snapshot(msgspec.structs.replace(state, monitored=monitored, groups=groups))


def _kept(states: Iterable[State], ticks: int, frames: int, skip: int) -> list[State]:
    """Return the states at equal intervals, each the last one at which a second was decided."""
    selected = {skip + frame * (ticks - 1 - skip) // frames for frame in range(frames + 1)}
    kept: list[State] = []
    decided, undecided_s = None, 0.0
    for number, state in enumerate(states):
        if decided is None or _undecided_s(state) <= undecided_s:
            decided = state
        undecided_s = _undecided_s(state)
        if number in selected:
            kept.append(decided)
    return kept


def playback_of_snapshots(
    snapshots: list[Snapshot],
    seconds: float,
    report: VerificationReport | None = None,
    *,
    has_group: bool = True,
) -> Playback:
    """Return the playback of snapshots of one disk, taken at equal intervals."""
    pages = [parse_page(page_of(snapshot, report)) for snapshot in snapshots]
    last = pages[-1]
    samples = tuple(each for each in last.disk if has_group or "device=" in each.text)
    names = [sample.text for sample in samples if sample.is_cumulative]
    gauges = [sample.text for sample in samples if not sample.is_cumulative]
    values = [{sample.text: sample.value for sample in page.disk} for page in pages]
    start = tuple(values[0].get(name, 0.0) for name in names)
    return Playback(
        seconds,
        last.heads,
        samples,
        last.host,
        tuple(
            tuple(
                round((each.get(name, 0.0) - first) * UNITS)
                for name, first in zip(names, start, strict=True)
            )
            for each in values
        ),
        tuple({name: each.get(name, values[-1][name]) for name in gauges} for each in values[1:]),
    )


def _undecided_s(state: State) -> float:
    """Return the seconds until the last sample that have no verdict yet."""
    return max(
        sum(window.seconds for window in disk.totals.undecided.windows)
        for disk in state.monitored.values()
    )


def _decided_to_s(state: State) -> float:
    assert state.clocks is not None
    return state.clocks.monotonic_s - _undecided_s(state)

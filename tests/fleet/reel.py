"""A reel: what the real pipeline and the real page say of a recording, to be played on and on.

Counters rise by what they rose in the recording, each time it is played; gauges are what they
were at that moment of it. Only numbers, device and serial are put in anew, so a page costs
little: ten thousand disks are more than any pipeline on two cores could reckon with live.
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

from disksla.disks.disk import disk_key
from disksla.metrics.collector import make_registry
from disksla.metrics.render import render_metrics
from disksla.metrics.self_metrics import BuildInfo
from disksla.pipeline.snapshot import Snapshot, take_snapshot
from disksla.pipeline.state import State
from disksla.verification.report import VerificationReport

OPENMETRICS = "application/openmetrics-text;version=1.0.0"
ABOUT = BuildInfo("0.1.0", "3.11.2", "6.1.0-26-amd64", True, 0.0)
_CUMULATIVE = re.compile(r"_(total|bucket|count|sum)$")
_FRACTIONAL = re.compile(r"_(seconds_total|sum)$")
_SERIAL = re.compile(r'serial="[^"]*"')


class Sample(NamedTuple):
    """A line of a page."""

    family: str
    text: str
    """Name and labels; the device's name is DEVICE, and SERIAL where its serial goes."""
    value: float

    @property
    def name(self) -> str:
        """The name alone."""
        return self.text.partition("{")[0]

    @property
    def is_cumulative(self) -> bool:
        """Whether it only ever rises."""
        return bool(_CUMULATIVE.search(self.name))

    @property
    def is_whole(self) -> bool:
        """Whether it counts things."""
        return self.is_cumulative and not _FRACTIONAL.search(self.name)


class Page(NamedTuple):
    """A page of OpenMetrics, taken apart."""

    heads: dict[str, str]
    """The lines before the samples of a family, in the order of families."""
    host: tuple[Sample, ...]
    disk: tuple[Sample, ...]
    """Of the only disk."""


def page_of(snapshot: Snapshot, report: VerificationReport | None = None) -> str:
    """Return the page of a snapshot of one disk, and of its report, as the daemon renders it."""
    [disk] = snapshot.disks
    reports = {} if report is None else {disk_key(disk.disk) or "": report}
    registry = make_registry(lambda: snapshot, lambda: ABOUT, lambda: reports)
    return render_metrics(registry, OPENMETRICS).body.decode()


def taken_apart(text: str) -> Page:
    """Take the page of one disk apart."""
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
            named, value = line.rsplit(" ", 1)
            samples.append(Sample(family, named, float(value)))
    disk = tuple(_anonymous(each) for each in samples if 'device="' in each.text)
    host = tuple(each for each in samples if 'device="' not in each.text)
    return Page(heads, host, disk)


def _anonymous(sample: Sample) -> Sample:
    text = re.sub(r'device="[^"]*"', 'device="DEVICE"', sample.text)
    return sample._replace(text=_SERIAL.sub('serial="SERIAL"', text))


@dataclass(frozen=True)
class Reel:
    """A recording of one disk, ready to be played."""

    seconds: float
    heads: dict[str, str]
    samples: tuple[Sample, ...]
    """As they were in the end."""
    host: tuple[Sample, ...]
    frames: tuple[tuple[float, ...], ...]
    """Values of counters at equal distances of time, from the start to the end."""
    gauges: tuple[dict[str, float], ...]
    """And of gauges, by their text, at the end of each stretch between two frames; what was not
    known yet in the first round stands from the round before."""

    @property
    def counters(self) -> tuple[Sample, ...]:
        """What has a place in `frames`."""
        return tuple(sample for sample in self.samples if sample.is_cumulative)

    def risen(self, played_s: float) -> list[float]:
        """Give how far counters have risen after so much playing."""
        rounds, rest_s = divmod(played_s, self.seconds)
        place = rest_s / self.seconds * (len(self.frames) - 1)
        before, after = self.frames[int(place)], self.frames[int(place) + 1]
        share = place - int(place)
        return [
            rounds * whole + low + (high - low) * share
            for whole, low, high in zip(self.frames[-1], before, after, strict=True)
        ]

    def standing(self, played_s: float) -> dict[str, float]:
        """Give the gauges after so much playing."""
        place = played_s % self.seconds / self.seconds * len(self.gauges)
        return self.gauges[int(place)]


def reel_of(
    states: Iterable[State],
    ticks: int,
    frames: int = 1,
    skip: int = 0,
    report: VerificationReport | None = None,
) -> Reel:
    """Give the reel of a recording of one disk, from the states after each of its ticks.

    One frame is enough for a load that does not change. The first `skip` ticks are not played.
    """
    wanted = {skip + frame * (ticks - 1 - skip) // frames for frame in range(frames + 1)}
    seen = [state for number, state in enumerate(states) if number in wanted]
    snapshots = [take_snapshot(state) for state in seen]
    return reel_of_snapshots(snapshots, _now_s(seen[-1]) - _now_s(seen[0]), report)


def reel_of_snapshots(
    snapshots: list[Snapshot], seconds: float, report: VerificationReport | None = None
) -> Reel:
    """Return the reel of snapshots taken at equal distances of time."""
    pages = [taken_apart(page_of(snapshot, report)) for snapshot in snapshots]
    last = pages[-1]
    names = [sample.text for sample in last.disk if sample.is_cumulative]
    present = [sample.text for sample in last.disk if not sample.is_cumulative]
    values = [{sample.text: sample.value for sample in page.disk} for page in pages]
    start = tuple(values[0].get(name, 0.0) for name in names)
    return Reel(
        seconds,
        last.heads,
        last.disk,
        last.host,
        tuple(
            tuple(each.get(name, 0.0) - first for name, first in zip(names, start, strict=True))
            for each in values
        ),
        tuple({name: each.get(name, values[-1][name]) for name in present} for each in values[1:]),
    )


def _now_s(state: State) -> float:
    assert state.clocks is not None
    return state.clocks.monotonic_s

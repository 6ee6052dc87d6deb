"""`make advice`: record a load under one limit, predict for others, and run it under those.

A file in `advice/` has a scenario (`scenario.py`) in which LIMIT stands for the limit of the disk,
or of the machine over its disks, and a list of limits. The load is recorded under the first. The
share of time that `disksla advise` predicts for the others is compared with the log of the
limiter, while the same load runs under them.
"""

import argparse
import tempfile
from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import yaml

from disksla.base.units import format_percent
from disksla.commands.replay import replay
from disksla.measure.advice import demand_of, served_of, total_served
from disksla.measure.advice.demand import Demand
from disksla.measure.advice.simulation import ShareRange, throttled_share
from disksla.promise.catalogue import Limits
from disksla.promise.configuration.settings import AssessmentSettings
from disksla.state.pipeline import window_records
from lab.__main__ import missing, missing_for
from lab.experiment import CONFIG, TICKS, machine_truth_file, read_truth, run, truth_file
from lab.options import start, write
from lab.scenario import SEED, read_scenario
from lab.template import filled
from lab.truth import Window

HERE = Path(__file__).parent / "advice"
SLACK = 0.02
"""Share of the time by which two runs of the same load differ."""
TOLERANCE = AssessmentSettings().tolerance_ratio
HEADINGS = ("load", "seed", "recorded", "throttled", "limit", "predicted", "measured", "")


class Loads(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A load, and the limits under which it runs."""

    caption: str
    limits: tuple[int, ...]
    """It is recorded under the first."""
    scenario: dict[str, Any]
    random: dict[str, Any] = {}

    def text(self, limit: int) -> str:
        """Return the scenario under one limit."""
        text = yaml.safe_dump({"caption": self.caption, **self.scenario}, sort_keys=False)
        return text.replace("LIMIT", str(limit))


class Comparison(NamedTuple):
    """What was predicted for one limit, and what the limiter did."""

    name: str
    seed: int
    recorded: int
    """Limit of the recording, in IOPS or MB/s."""
    recorded_share: float
    """Share of the time in which it throttled the recorded load."""
    limit: int
    predicted: ShareRange
    measured_share: float

    @property
    def is_within(self) -> bool:
        """Whether the measured share is in the predicted range."""
        least, most = self.predicted
        return least - SLACK <= self.measured_share <= most + SLACK

    def cells(self) -> tuple[str, ...]:
        """Return the line of a table, by HEADINGS."""
        return (
            self.name,
            str(self.seed),
            str(self.recorded),
            format_percent(self.recorded_share),
            str(self.limit),
            " to ".join(map(format_percent, self.predicted)),
            format_percent(self.measured_share),
            "" if self.is_within else "FAIL",
        )


def all_loads() -> dict[str, Path]:
    """Return the files of all loads, by name."""
    return {path.stem: path for path in sorted(HERE.glob("*.yml"))}


def read_loads(path: Path, seed: int = SEED) -> Loads:
    """Read a load with the random numbers of a seed; raises ValueError if it is invalid."""
    text = filled(path.stem, path.read_text(encoding="utf-8"), seed)
    return msgspec.convert(yaml.safe_load(text), Loads)


def compare(path: Path, seed: int, directory: Path) -> Iterator[Comparison]:
    """Run a load under all its limits, and yield a comparison for each but the first."""
    loads = read_loads(path, seed)
    recorded, *others = loads.limits
    demand, _ = _run(loads.text(recorded), directory / "recorded")
    idle_s = sum(map(_seconds, filter(_is_idle, _truth(directory / "recorded"))))
    recorded_share = measured_share(directory / "recorded", idle_s)
    for limit in others:
        _, limits = _run(loads.text(limit), directory / str(limit))
        predicted = throttled_share(demand, limits, TOLERANCE)
        measured = measured_share(directory / str(limit), idle_s)
        yield Comparison(path.stem, seed, recorded, recorded_share, limit, predicted, measured)


def _run(scenario: str, directory: Path) -> tuple[Demand, Limits]:
    """Run a scenario, and return what its load asked for, and the limits in question."""
    directory.mkdir(parents=True)
    file = directory / "load.yml"
    file.write_text(scenario, encoding="utf-8")
    run(file, directory)
    return replayed(directory)


def replayed(directory: Path) -> tuple[Demand, Limits]:
    """Return what the load of a run asked for, and the limits of its disk or of its machine."""
    truth = _truth(directory)
    states = list(replay(directory / TICKS, directory / CONFIG))
    records = [each for pair in pairwise(states) for each in window_records(*pair)]
    during = [each for each in records if truth[0].start_s < each.monotonic_s <= truth[-1].end_s]
    last = states[-1]
    served = [
        served_of([each for each in during if each.device == name]) for name in last.monitored
    ]
    of_machine = [group.shared.limits for group in last.groups.values()]
    of_disks = [disk.assignment.limits for disk in last.monitored.values()]
    [limits] = of_machine or of_disks
    return demand_of(total_served(served)), limits


def measured_share(directory: Path, idle_s: float) -> float:
    """Return the share of the time of a run in which requests waited for the limiter.

    Its time without requests counts as that of the recording: how long fio and PostgreSQL take to
    start differs from run to run.
    """
    busy = [window for window in _truth(directory) if not _is_idle(window)]
    return sum(window.throttled_s for window in busy) / (sum(map(_seconds, busy)) + idle_s)


def _truth(directory: Path) -> list[Window]:
    """Return the log of the limiter in question: that of the machine, if there is one."""
    of_machine = machine_truth_file(directory)
    return read_truth(of_machine if of_machine.exists() else truth_file(directory, 0))


def _is_idle(window: Window) -> bool:
    return not (window.reads or window.writes or window.inflight)


def _seconds(window: Window) -> float:
    return window.end_s - window.start_s


def _line(cells: Iterable[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main(arguments: Sequence[str] | None = None) -> int:
    """Compare loads; return 1 if a measured share is not in its range, else 0."""
    parser = argparse.ArgumentParser(prog="lab.advise", description=__doc__)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=all_loads())
    parser.add_argument("--seed", type=int, default=SEED, help="seed of the random numbers")
    options = parser.parse_args(arguments)
    done: list[Comparison] = []
    write(_line(HEADINGS))
    for name in options.only or all_loads():
        reason = why_not(all_loads()[name], options.seed)
        if reason is not None:
            write(f"{name}: SKIPPED: {reason}")
            continue
        with tempfile.TemporaryDirectory(prefix="disksla-advice-") as directory:
            for each in compare(all_loads()[name], options.seed, Path(directory)):
                write(_line(each.cells()))
                done.append(each)
    failed = sum(not each.is_within for each in done)
    write(f"{failed} of {len(done)} failed")
    return 1 if failed else 0


def why_not(path: Path, seed: int = SEED) -> str | None:
    """Return why a load cannot run on this machine; None if it can."""
    loads = read_loads(path, seed)
    with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
        file.write(loads.text(loads.limits[0]))
        file.flush()
        return missing() or missing_for(read_scenario(Path(file.name)))


if __name__ == "__main__":
    start(main)

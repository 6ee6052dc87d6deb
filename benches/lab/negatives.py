"""Programs on disks without a limiter: nothing may be throttled, whatever the terms say.

Each recording is judged without terms, and with promises just above the load.
"""

import json
import tempfile
from collections.abc import Iterable, Sequence
from pathlib import Path
from statistics import median

import msgspec

from lab.experiment import CONFIG, TICKS, read_results, read_truth, truth_file
from lab.judge import rows_within, throttled_seconds
from lab.replay import replay_records
from lab.requirements import time_problems
from lab.truth import Window

PART = "negatives"
WINDOWS = 10
"""Of the log, in a second."""
FACTORS = (None, 1.1, 1.3, 3.0)
"""Promised IOPS, as a multiple of the rate of the load; None without terms."""


class Negative(msgspec.Struct, frozen=True):
    """The verdicts on one disk without a limiter."""

    name: str
    iops: float
    """Rate of its load, by the log (`_usual_iops`)."""
    loaded_s: float
    throttled_s: tuple[float, ...]
    """By FACTORS."""
    steal_s: float = 0.0

    @property
    def problems(self) -> list[str]:
        """What is throttled for too long."""
        return [
            problem
            for factor, throttled_s in zip(FACTORS, self.throttled_s, strict=True)
            for problem in _problems(factor, throttled_s, self.loaded_s)
        ]


def _problems(factor: float | None, throttled_s: float, loaded_s: float) -> Iterable[str]:
    what = f"{'no terms' if factor is None else f'terms of {factor} times the load'}: "
    return time_problems("never", throttled_s, 0.0, loaded_s, what)


def negative(name: str, directory: Path) -> Negative:
    """Return the verdicts on a run whose files are in a directory."""
    [result] = read_results(directory)
    begin_s, end_s = result.phases[0].begun_s, result.phases[-1].ended_s
    truth = [
        window
        for window in read_truth(truth_file(directory, 0))
        if begin_s <= window.start_s and window.end_s <= end_s
    ]
    iops = _usual_iops(truth, end_s - begin_s)
    configuration = json.loads((directory / CONFIG).read_text(encoding="utf-8"))
    found = []
    for factor in FACTORS:
        terms = {"budget": "sum", "iops": max(1, round((factor or 0.0) * iops))}
        entry = {"match": {"device": result.device}, "terms": terms}
        disks = [] if factor is None else [entry]
        with tempfile.NamedTemporaryFile("w", suffix=".yml") as file:
            json.dump({**configuration, "disks": disks}, file)
            file.flush()
            rows = replay_records(directory / TICKS, Path(file.name))
        own = [row for row in rows if row.device == result.device]
        found.append(throttled_seconds(rows_within(own, begin_s, end_s)))
    return Negative(name, iops, end_s - begin_s, tuple(found), result.machine_steal_s)


def _usual_iops(truth: Sequence[Window], seconds: float) -> float:
    """Return the mean rate, or the median rate of a second if that is more.

    A program that starts slowly has a lower mean, and a promise just above it would be its rate.
    """
    served = [window.reads + window.writes for window in truth]
    by_second = [sum(served[at : at + WINDOWS]) for at in range(0, len(served), WINDOWS)]
    return max(sum(served) / seconds, median(by_second))

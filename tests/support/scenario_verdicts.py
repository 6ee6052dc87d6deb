"""What is said of a simulated disk, beside what was true of it."""

from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise

from disksla.pipeline.advance import advance
from disksla.pipeline.state import State
from disksla.pipeline.window_records import WindowRecord, window_records
from disksla.verdict.verdict import Ceiling
from support.simulated_host import CATALOG
from support.simulated_limiter import DEVICE, WINDOW_S, Scenario, Window, run


@dataclass(frozen=True)
class Episode:
    """Time for which a disk was held without a break."""

    start_s: float
    end_s: float


@dataclass(frozen=True)
class Judged:
    """Rows of all windows, and the truth."""

    rows: list[WindowRecord]
    truth: list[Window]
    state: State

    @property
    def throttled_s(self) -> float:
        """Give the seconds that were said to be throttled."""
        return sum(row.window_s or 0.0 for row in self.rows if row.verdict == "throttled")

    @property
    def held_s(self) -> float:
        """Give the seconds of the windows that were really held."""
        return sum(WINDOW_S for window in self.truth if window.held)

    @property
    def throttle_wait_s(self) -> float:
        """Give the I/O-seconds that are said to have been waited for the limiter."""
        return sum(row.throttle_wait_s or 0.0 for row in self.rows)

    @property
    def held_io_s(self) -> float:
        """Give the I/O-seconds that were really waited for it."""
        return sum(window.held_io_seconds for window in self.truth)

    def episodes(self) -> list[Episode]:
        """Give when the disk was really held, from the moment at which the first was."""
        groups = [list(group) for _, group in groupby(self.truth, key=lambda each: each.held)]
        return [
            Episode(group[0].end_s - group[0].held_s, group[-1].end_s)
            for group in groups
            if group[0].held
        ]

    def said(self, verdict: str) -> list[WindowRecord]:
        """Give the windows with a verdict."""
        return [row for row in self.rows if row.verdict == verdict]

    @property
    def ceiling(self) -> Ceiling:
        """Give the rate at which the disk was last seen held."""
        ceiling = self.state.monitored[DEVICE].detector.ceiling
        assert ceiling is not None
        return ceiling

    def between(self, start_s: float, end_s: float) -> list[WindowRecord]:
        """Give the windows that ended between two times."""
        return [row for row in self.rows if start_s <= row.monotonic_s < end_s]


@cache
def judged(scenario: Scenario) -> Judged:
    """Simulate, and send the ticks through the pipeline."""
    result = run(scenario)
    states = [State(scenario.settings(), CATALOG)]
    for tick in result.ticks:
        states.append(advance(states[-1], tick))
    rows = [row for before, after in pairwise(states) for row in window_records(before, after)]
    return Judged([row for row in rows if row.verdict is not None], result.truth, states[-1])

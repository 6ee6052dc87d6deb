"""Verdicts on simulated disks, with the truth."""

from dataclasses import dataclass
from functools import cache
from itertools import groupby, pairwise

from disksla.pipeline.advance import advance
from disksla.pipeline.state import State, needs_late_sample
from disksla.pipeline.tick import Tick
from disksla.pipeline.window_records import WindowRecord, window_records
from disksla.verdict.ceiling import Ceiling
from support.simulated_host import CATALOG
from support.simulated_limiter import DEVICE, WINDOW_S, Scenario, Window, run


@dataclass(frozen=True)
class Episode:
    """Time in which a disk was throttled without a break."""

    start_s: float
    end_s: float


@dataclass(frozen=True)
class ScenarioVerdicts:
    """Records of all windows, and the truth."""

    rows: list[WindowRecord]
    truth: list[Window]
    state: State

    @property
    def throttled_s(self) -> float:
        """Return the seconds with the verdict throttled."""
        return sum(row.throttled_s or 0.0 for row in self.rows)

    @property
    def true_throttled_s(self) -> float:
        """Return the seconds in which at least one request waited, in truth."""
        return sum(window.throttled_s for window in self.truth)

    @property
    def true_throttled_windows_s(self) -> float:
        """Return the seconds of the windows at whose end a request waited, in truth."""
        return sum(WINDOW_S for window in self.truth if window.throttled)

    @property
    def throttle_wait_s(self) -> float:
        """Return the throttle wait of the verdicts, in I/O-seconds."""
        return sum(row.throttle_wait_s or 0.0 for row in self.rows)

    @property
    def true_throttle_wait_s(self) -> float:
        """Return the throttle wait in truth, in I/O-seconds."""
        return sum(window.throttled_io_seconds for window in self.truth)

    def episodes(self) -> list[Episode]:
        """Return the times in which the disk was throttled, in truth."""
        groups = [list(group) for _, group in groupby(self.truth, key=lambda each: each.throttled)]
        return [
            Episode(group[0].end_s - group[0].throttled_s, group[-1].end_s)
            for group in groups
            if group[0].throttled
        ]

    def with_verdict(self, verdict: str) -> list[WindowRecord]:
        """Return the windows with a verdict."""
        return [row for row in self.rows if row.verdict == verdict]

    @property
    def ceiling(self) -> Ceiling:
        """Return the rate at which the disk was last seen throttled."""
        ceiling = self.state.monitored[DEVICE].detector.ceiling
        assert ceiling is not None
        return ceiling

    def between(self, start_s: float, end_s: float) -> list[WindowRecord]:
        """Return the windows that ended between two times."""
        return [row for row in self.rows if start_s <= row.monotonic_s < end_s]


@cache
def judged(scenario: Scenario) -> ScenarioVerdicts:
    """Run the simulation, and the pipeline on its ticks."""
    states = [State(scenario.settings(), CATALOG)]

    def takes_late(tick: Tick) -> bool:
        states.append(advance(states[-1], tick))
        return needs_late_sample(states[-1])

    result = run(scenario, takes_late)
    rows = [row for before, after in pairwise(states) for row in window_records(before, after)]
    return ScenarioVerdicts(
        [row for row in rows if row.verdict is not None], result.truth, states[-1]
    )

"""Verdicts on simulated disks, with the truth."""

from dataclasses import dataclass
from functools import cache, reduce
from itertools import pairwise

from disksla.state.history.history import History
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from disksla.state.pipeline.window_records import WindowRecord, window_records
from disksla.tell.explanation.past import HistoryView
from disksla.verdict.throttling.throttle import Ceiling
from population.judging import judged_states
from support.scenarios import SCENARIOS
from support.simulated_limiter import DEVICE, Scenario, Window, run


@dataclass(frozen=True)
class ScenarioVerdicts:
    """Records of all windows, and the truth."""

    rows: list[WindowRecord]
    truth: list[Window]
    states: list[State]
    """Before the first tick, and after each."""

    @property
    def state(self) -> State:
        """Return the last state."""
        return self.states[-1]

    @property
    def throttled_s(self) -> float:
        """Return the seconds with the verdict throttled."""
        return sum(row.throttled_s or 0.0 for row in self.rows)

    @property
    def true_throttled_s(self) -> float:
        """Return the seconds in which at least one request waited, in truth."""
        return sum(window.throttled_s for window in self.truth)

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
def lived(name: str) -> tuple[Snapshot, HistoryView]:
    """Return the snapshot and the past of a simulated disk at its end."""
    states = judged(SCENARIOS[name]).states
    return Snapshot(states[-1]), HistoryView(reduce(History.after, states, History()))


@cache
def judged(scenario: Scenario) -> ScenarioVerdicts:
    """Run the simulation, and the pipeline on its ticks."""
    result = run(scenario)
    states = list(judged_states(result.ticks, scenario.settings()))
    rows = [row for before, after in pairwise(states) for row in window_records(before, after)]
    return ScenarioVerdicts([row for row in rows if row.verdict is not None], result.truth, states)

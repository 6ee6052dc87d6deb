"""Events: when a problem begins and ends, and what the log says; over a restart, too."""

from collections.abc import Iterable

import msgspec
import pytest

from disksla.promise.configuration import Configuration
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.history import History
from disksla.state.history.events import AWAY_S, KEPT_S, events_after
from disksla.state.history.slot import RunningTotals, Slot
from disksla.state.pipeline import DiskEvent, advance, to_saved_state
from disksla.state.pipeline.saved_state import decode, encode
from disksla.state.pipeline.state import State
from disksla.tell.explanation.past import LogEvent, describe_events, new_events
from support.scenarios import SCENARIOS
from support.simulated_host import CATALOG, Machine, a_disk, reconfigured
from support.simulated_limiter import DEVICE, Scenario, run


def after(seconds: Iterable[float], field: str = "at_iops_s") -> list[tuple[str, float, float]]:
    """Return stage, begin and end of the events of a disk to which this happened each second."""
    events: tuple[DiskEvent, ...] = ()
    for now_s, each_s in enumerate(seconds, 1):
        slot = Slot(float(now_s), 1.0, None, RunningTotals(**{field: each_s}))
        events = events_after(events, slot, float(now_s))
    return [(event.stage, event.began_s, event.seen_s) for event in events]


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        ([0.0] * 10, []),
        ([1.0] * 2, [("seen", 0, 2)]),
        ([0.0] * 5 + [1.0] * 3, [("began", 5, 8)]),
        ([1.0] * 3 + [0.0] * 59, [("began", 0, 3)]),
        ([1.0] * 3 + [0.0] * 60, [("ended", 0, 3)]),
        ([1.0] * 2 + [0.0] * 60, []),
        ([*[1.0] * 3, *[0.0] * 60, *[1.0] * 4], [("ended", 0, 3), ("began", 63, 67)]),
        ([*[1.0, *[0.0] * 29] * 20], [("began", 0, 571)]),  # it comes and goes
        ([*[0.1, *[0.0] * 29] * 200], [("seen", 0, 5971)]),  # for a third of a percent of the time
        ([1.0] * 3 + [0.0] * int(KEPT_S + AWAY_S), []),
    ],
)
def test_begin_and_end(seconds: list[float], expected: list[tuple[str, float, float]]) -> None:
    assert after(seconds) == expected


def test_a_stall_is_said_at_once() -> None:
    assert after([0.3], "stalled_s") == [("began", 0, 1)]
    event = DiskEvent("stalled", None, 0.0, 5.0, seconds=5.0, stage="ended")
    [said] = describe_events([event])
    assert said.endswith(": hung, no request completes, 5 s in all.")


def test_each_problem_is_an_event_of_its_own() -> None:
    totals = RunningTotals(
        at_iops_s=1, at_machine_iops_s=1, below_s=1, slow_usual_s=1, stalled_s=1
    )
    slot = Slot(1.0, 1.0, 0.001, totals)
    found = [(e.cause, e.limit) for e in events_after((), slot, 1.0)]
    throttled = [("no_credits", "iops"), ("throttled", "machine_iops")]
    assert found == [("below", None), ("stalled", None), ("slow", None), *throttled]


def test_no_more_than_a_hundred_are_kept() -> None:
    over = DiskEvent("slow", None, 0.0, 1.0, stage="ended")
    assert len(events_after((over,) * 200, None, 2.0)) == 100


def followed(scenario: Scenario, history: History) -> tuple[State, History, list[str]]:
    """Return the state and history after a scenario, and the messages of the log."""
    state, lines = State(Configuration(scenario.settings(), CATALOG)), []
    for tick in run(scenario).ticks:
        state = advance(state, tick)
        before, history = history, history.after(state)
        for event in new_events(before, history):
            words = " ".join(f"{key}={value}" for key, value in event.values.items())
            lines.append(f"{event.message}: {words}")
    return state, history, lines


def test_a_problem_goes_on_after_a_restart() -> None:
    scenario = SCENARIOS["iops-300-deep"]
    state, history, [line] = followed(scenario, History())
    assert line.startswith("disk problem began: device=vdx cause=your_limit limit=iops rate=30")
    assert state.clocks is not None
    events = {"serial:1": history.disks[DEVICE].events}
    saved = to_saved_state(state, "machine", "boot", events)
    assert saved is not None
    assert decode(encode(saved), "machine", state.clocks).events == events
    disk = a_disk("vdb", serial="1")
    machine = Machine(disk)
    began_s = machine.clocks().realtime_s - 30
    [event] = events["serial:1"]
    event = msgspec.structs.replace(event, began_s=began_s, seen_s=began_s + 20)
    history = History(saved_events={"serial:1": (event,)}).after(machine.state)
    assert history.events_by_key() == {"serial:1": (event,)}
    logged = list[LogEvent]()
    for _ in range(55):
        before, history = history, history.after(machine.tick(after_s=1.0))
        logged += new_events(before, history)
    [ended] = logged
    assert (ended.message, ended.values["cause"]) == ("disk problem ended", "your_limit")
    [said] = describe_events(history.disks["vdb"].events)
    assert "You: throttled at the limit you bought (iops), 30" in said


def test_limits_that_change() -> None:
    machine = Machine(a_disk("vdb"))
    before = History().after(machine.state)
    machine.state = reconfigured(
        machine.state,
        Settings(disks=(DiskEntry(match=DiskMatch(device="vdb"), terms=SumTerms(iops=500.0)),)),
    )
    history = before.after(machine.tick(after_s=1.0))
    [event] = new_events(before, history)
    assert event == (
        "disk limits changed",
        {"device": "vdb", "before": "none", "now": "500 IOPS"},
        False,
    )
    assert describe_events(history.disks["vdb"].events)[0].endswith(
        ": The limits of the disk changed."
    )

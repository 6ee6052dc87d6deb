"""Which disks are looked at closer, and when."""

from collections.abc import Iterable

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.procfs import CloseSample
from disksla.promise.catalogue import NO_LIMITS
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.state import (
    ENOUGH_PAUSES,
    FIRST_LOOK_S,
    LOOK_EVERY_S,
    LOOK_S,
    MOST_LOOKED_AT,
    SHORT_LOOK_S,
    State,
    to_look_at,
)
from disksla.verdict.interval import Interval
from disksla.verdict.throttling.observation import observe
from disksla.verdict.throttling.second import Second, second_of
from disksla.verdict.throttling.verdict import DetectorState
from support.simulated_host import CATALOG, Machine, a_disk


def busy_since(times_s: list[float | None], pauses_at_s: Iterable[float] = ()) -> State:
    """Return the state of disks that are busy since these times, and paused then."""
    disks = [a_disk(f"vd{number}", number) for number in range(len(times_s))]
    machine = Machine(*disks, settings=Settings())
    paused = tuple(paused_second(end_s) for end_s in pauses_at_s)
    monitored = {
        device: msgspec.structs.replace(
            disk, detector=DetectorState(busy_since_s=since_s, seconds=paused)
        )
        for (device, disk), since_s in zip(machine.state.monitored.items(), times_s, strict=True)
    }
    return msgspec.structs.replace(
        State(Configuration(Settings(), CATALOG)), monitored=monitored, active=frozenset(monitored)
    )


def paused_second(end_s: float) -> Second:
    """Return a second with a pause that ended then."""
    samples = [
        CloseSample(end_s - 0.02 + 0.01 * number, reads, 0, 8 * reads, 0, inflight=1)
        for number, reads in enumerate((1, 1, 1, 2))
    ]
    window = Interval(
        end_s=end_s + 0.01,
        seconds=0.03,
        reads=1,
        writes=0,
        read_bytes=4096,
        written_bytes=0,
        read_ms=30,
        write_ms=0,
        inflight=1,
        inflight_before=1,
    )
    return second_of(int(end_s), (observe(window, samples[0], tuple(samples[1:])),), (), NO_LIMITS)


def looked_at_s(state: State, from_s: int, to_s: int) -> float:
    """Return how long the first disk is looked at within a time."""
    tenths = range(10 * from_s, 10 * to_s)
    return sum(bool(to_look_at(state, tenth / 10 + 1e-6)) for tenth in tenths) / 10


@given(st.lists(st.none() | st.floats(900.0, 1000.0), max_size=12), st.floats(1000.0, 1020.0))
def test_disks_that_are_busy_longest_are_looked_at_for_a_part_of_the_time(
    times_s: list[float | None], now_s: float
) -> None:
    state = busy_since(times_s)
    found = to_look_at(state, now_s)
    since_s = {f"vd{number}": each_s for number, each_s in enumerate(times_s)}
    is_turn = now_s % LOOK_EVERY_S < FIRST_LOOK_S
    wanted = {
        device: each_s
        for device, each_s in since_s.items()
        if each_s is not None and (is_turn or now_s - each_s < FIRST_LOOK_S)
    }
    assert len(found) == len(set(found)) == min(MOST_LOOKED_AT, len(wanted))
    looked_s = [wanted[device] for device in found]
    assert looked_s == sorted(wanted.values())[: len(found)]


def test_disk_at_which_nothing_pauses_is_looked_at_for_a_short_time() -> None:
    state = busy_since([1007.0])
    assert looked_at_s(state, 1007, 1010) == FIRST_LOOK_S
    assert looked_at_s(state, 1010, 1020) == FIRST_LOOK_S


def test_disk_that_pauses_is_looked_at_until_enough_is_seen() -> None:
    state = busy_since([1007.0], [1007.5, 1011.0])
    assert looked_at_s(state, 1007, 1010) == 3
    assert looked_at_s(state, 1010, 1020) == LOOK_S
    enough = busy_since([1007.0], [1011.0 + 0.01 * number for number in range(ENOUGH_PAUSES)])
    assert looked_at_s(enough, 1010, 1020) == SHORT_LOOK_S


def test_pauses_of_an_earlier_look_do_not_count() -> None:
    state = busy_since([1007.0], [1009.0])
    assert looked_at_s(state, 1010, 1020) == FIRST_LOOK_S


def test_disk_that_does_little_is_not_looked_at() -> None:
    """Requests are in flight for less than a quarter of the time, and at no two samples."""
    machine = Machine(a_disk())
    for _ in range(25):
        machine.does("vda", reads=1, read_sectors=8, busy_ms=4)
        machine.tick()
        assert to_look_at(machine.state, machine.now_s) == []
    machine.does("vda", reads=1, read_sectors=8, busy_ms=40)
    machine.tick()
    assert to_look_at(machine.state, machine.now_s) == ["vda"]
    for _ in range(25):
        machine.does("vda", reads=1, read_sectors=8, busy_ms=4)
        machine.tick()
    assert to_look_at(machine.state, machine.now_s) == []


@pytest.mark.parametrize(("read_ms", "is_looked_at"), [(15, False), (400, True)])
def test_disk_far_below_its_promise_is_looked_at_if_requests_wait(
    read_ms: int, is_looked_at: bool
) -> None:
    """150 of 3000 IOPS, for which 0.15 or 4 requests are in flight on average."""
    entry = DiskEntry(match=DiskMatch(device="vda"), terms=SumTerms(iops=3000.0))
    machine = Machine(a_disk(), settings=Settings(disks=(entry,)))
    looked: list[str] = []
    for _ in range(140):
        machine.does("vda", reads=15, read_sectors=120, read_ms=read_ms, busy_ms=100)
        machine.tick()
        looked += to_look_at(machine.state, machine.now_s)
    first = int(10 * FIRST_LOOK_S) + 10  # in its first second, nothing is known yet
    assert (len(looked) > first) == is_looked_at

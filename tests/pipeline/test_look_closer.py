"""Which disks are looked at closer, and when."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.settings import Settings
from disksla.pipeline.state import LOOK_EVERY_S, LOOK_S, MOST_LOOKED_AT, State, to_look_at
from disksla.verdict.verdict import DetectorState
from support.simulated_host import CATALOG, Machine, a_disk


def busy_since(times_s: list[float | None]) -> State:
    """Return the state of disks that are busy since these times."""
    disks = [a_disk(f"vd{number}", number) for number in range(len(times_s))]
    machine = Machine(*disks, settings=Settings())
    monitored = {
        device: msgspec.structs.replace(disk, detector=DetectorState(busy_since_s=since_s))
        for (device, disk), since_s in zip(machine.state.monitored.items(), times_s, strict=True)
    }
    return msgspec.structs.replace(
        State(Settings(), CATALOG), monitored=monitored, active=frozenset(monitored)
    )


@given(st.lists(st.none() | st.floats(900.0, 1000.0), max_size=12), st.floats(1000.0, 1020.0))
def test_disks_that_are_busy_longest_are_looked_at_for_a_part_of_the_time(
    times_s: list[float | None], now_s: float
) -> None:
    state = busy_since(times_s)
    found = to_look_at(state, now_s)
    since_s = {f"vd{number}": each_s for number, each_s in enumerate(times_s)}
    is_turn = now_s % LOOK_EVERY_S < LOOK_S
    wanted = {
        device: each_s
        for device, each_s in since_s.items()
        if each_s is not None and (is_turn or now_s - each_s < LOOK_S)
    }
    assert len(found) == len(set(found)) == min(MOST_LOOKED_AT, len(wanted))
    looked_s = [wanted[device] for device in found]
    assert looked_s == sorted(wanted.values())[: len(found)]


def test_disk_is_looked_at_for_four_seconds_of_ten_and_after_it_became_busy() -> None:
    state = busy_since([1007.0])
    looked = [
        tenth / 10 for tenth in range(10_070, 10_300) if to_look_at(state, tenth / 10 + 1e-6)
    ]
    assert (looked[0], looked[-1]) == (1007.0, 1023.9)
    assert sum(each < 1010 for each in looked) == 30
    assert sum(1010 <= each < 1020 for each in looked) == 40
    assert sum(each >= 1020 for each in looked) == 40


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

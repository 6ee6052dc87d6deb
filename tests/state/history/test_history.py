"""The history of disks: it has what the metrics have, in bounded memory."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.settings import DiskEntry, SamplingSettings, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.history.history import MINUTES_KEPT, SECONDS_KEPT, DiskHistory, History
from disksla.state.history.slot import BLOCK, PackedSlots, RunningTotals, Slot, totals_of, unpack
from disksla.state.pipeline.state import State
from disksla.verdict.throttling import LIMIT_KINDS, VERDICTS
from support.scenario_verdicts import lived
from support.simulated_host import CATALOG, Machine, a_disk
from support.simulated_limiter import DEVICE

NUMBERS = st.floats(0, 1e9, width=32)


def history_of(name: str) -> DiskHistory:
    return lived(name)[1].history.disks[DEVICE]


@given(
    st.builds(
        Slot,
        NUMBERS,
        NUMBERS,
        st.none() | NUMBERS,
        st.builds(RunningTotals, *[NUMBERS] * len(RunningTotals.__struct_fields__)),
    )
)
def test_packed_slots_are_unpacked(slot: Slot) -> None:
    assert list(unpack(slot.pack() * 2)) == [slot, slot]


def test_slots_have_verdicts_and_limits_in_their_order() -> None:
    totals = RunningTotals(*range(len(RunningTotals.__struct_fields__)))
    slot = Slot(0.0, 1.0, None, totals)
    assert slot.verdict_s == tuple(getattr(totals, f"{verdict}_s") for verdict in VERDICTS)
    assert slot.throttled_s == tuple(getattr(totals, f"at_{limit}_s") for limit in LIMIT_KINDS)


@pytest.mark.parametrize(
    "name", ["iops-300-deep", "burst-then-base", "below-60-of-100", "unlimited-stalled", "idle"]
)
def test_slots_add_up_to_the_metrics(name: str) -> None:
    slots = history_of(name).seconds()
    assert len(slots) >= 9
    assert all(slot.seconds == pytest.approx(1.0, abs=0.21) for slot in slots)
    [snapshot] = lived(name)[0].disks
    assert snapshot.counters is not None
    # The last second is not complete.
    reads = sum(slot.totals.reads for slot in slots)
    assert reads <= (snapshot.counters.reads or 0)
    assert reads >= (snapshot.counters.reads or 0) * 0.85
    for index, verdict in enumerate(VERDICTS):
        whole_s = snapshot.verdict_totals.seconds[index]
        in_slots_s = sum(slot.verdict_s[index] for slot in slots)
        assert in_slots_s == pytest.approx(whole_s, abs=1.5), verdict


def test_credits_are_in_the_slots() -> None:
    slots = history_of("burst-then-base").seconds()
    assert None not in {slot.credits_ratio for slot in slots}
    assert slots[-1].credits_ratio == pytest.approx(0.0, abs=0.05)
    without = history_of("iops-300-deep").seconds()
    assert {slot.credits_ratio for slot in without} == {None}


BY_SECONDS = Settings(sampling=SamplingSettings(interval_s=1.0))


def test_memory_is_bounded() -> None:
    machine = Machine(a_disk(), settings=BY_SECONDS)
    history = History()
    for _ in range(SECONDS_KEPT + 71):
        history = history.after(machine.tick(1.0))
    disk = history.disks["vda"]
    assert len(disk.seconds()) == SECONDS_KEPT
    assert len(disk.minutes()) == (SECONDS_KEPT + 70) // 60
    assert [slot.seconds for slot in disk.minutes()] == [60.0] * 6
    assert disk.minutes()[-1].verdict_s[VERDICTS.index("idle")] == 60.0
    for kept, most in ((disk.packed_seconds, SECONDS_KEPT), (disk.packed_minutes, MINUTES_KEPT)):
        assert len(kept.blocks) * BLOCK + len(kept.last) <= most + BLOCK
    block = disk.packed_seconds.blocks[0]
    assert len(block) < BLOCK * len(disk.packed_seconds.last[0]) / 5


@given(st.integers(0, 150), st.integers(1, 70))
def test_the_last_slots_are_kept(number: int, most: int) -> None:
    slots = [Slot(float(end_s), 1.0, None, RunningTotals()) for end_s in range(number)]
    kept = PackedSlots()
    for slot in slots:
        kept = kept.plus(slot.pack(), most)
    assert kept.unpacked(most) == slots[-most:]


@pytest.mark.parametrize("terms", ["vk.ceph-ssd", "aws.gp2"])  # without credits, and with
def test_idle_disk_has_the_slots_that_would_be_computed_for_it(terms: str) -> None:
    entry = DiskEntry(match=DiskMatch(device="vda"), terms=terms, size=100 * GIB)
    machine = Machine(a_disk(), settings=msgspec.structs.replace(BY_SECONDS, disks=(entry,)))
    short, long = History(), History()
    for second in range(150):
        if second % 30 < 3:
            machine.does("vda", reads=9000, read_sectors=9000, read_ms=7000)
        state = machine.tick(1.0, text="" if second // 20 == 5 else "as it is")
        monitored = {
            device: msgspec.structs.replace(disk_state)
            for device, disk_state in state.monitored.items()
        }
        short = short.after(state)
        long = long.after(msgspec.structs.replace(state, monitored=monitored))
    assert short.disks["vda"].seconds() == long.disks["vda"].seconds()
    assert short.disks["vda"].minutes() == long.disks["vda"].minutes()


def test_history_is_the_same_within_a_second() -> None:
    machine = Machine(a_disk())
    history = History().after(machine.tick())
    assert history.after(machine.tick()) is history


def test_gap_leaves_a_slot_out() -> None:
    machine = Machine(a_disk(), settings=BY_SECONDS)
    history = History().after(machine.tick(1.0))
    machine.does("vda", reads=9000, read_sectors=9000)
    history = history.after(machine.tick(30.0))
    assert history.disks["vda"].seconds() == []
    machine.does("vda", reads=70, read_sectors=7000)
    history = history.after(machine.tick(1.0))
    [slot] = history.disks["vda"].seconds()
    assert (slot.seconds, slot.totals.reads, slot.totals.read_bytes) == (1.0, 70, 7000 * 512)


def test_another_disk_of_the_same_name_has_no_history() -> None:
    machine = Machine(a_disk(serial="a"), settings=BY_SECONDS)
    history = History()
    for _ in range(3):
        history = history.after(machine.tick(1.0))
    assert len(history.disks["vda"].seconds()) == 2
    history = history.after(machine.tick(1.0, disks=(a_disk(serial="b"),)))
    assert history.disks["vda"].seconds() == []


def test_disk_that_is_gone_has_no_history() -> None:
    machine = Machine(a_disk(), a_disk("vdb", 16), settings=BY_SECONDS)
    history = History().after(machine.tick(1.0))
    assert history.disks.keys() == {"vda", "vdb"}
    history = history.after(machine.tick(1.0, disks=(a_disk(),)))
    assert history.disks.keys() == {"vda"}


def test_no_tick_is_no_history() -> None:
    history = History()
    assert history.after(State(Configuration(Settings(), CATALOG))) is history


def test_disk_that_is_not_listed_is_not_idle() -> None:
    machine = Machine(a_disk(), settings=BY_SECONDS)
    history = History().after(machine.tick(1.0))
    history = history.after(machine.tick(1.0, text=""))
    history = history.after(machine.tick(1.0, text=""))
    assert sum(sum(slot.verdict_s) for slot in history.disks["vda"].seconds()) < 2.0


def test_disk_without_counters_has_no_requests() -> None:
    machine = Machine(a_disk(), settings=BY_SECONDS, unreadable=True)
    disk_state = machine.state.monitored["vda"]
    assert disk_state.counters is None
    assert totals_of(disk_state, 0.0) == RunningTotals()

"""From ticks to what is known."""

import math
from bisect import bisect_left

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.custom_terms import SumBurst, SumTerms
from disksla.config.device_pattern import DevicePattern
from disksla.config.settings import DiscoverySettings, DiskEntry, DiskMatch, ProbeEntry, Settings
from disksla.credits.account import CreditLevel
from disksla.pipeline.advance import configure
from disksla.pipeline.probe_results import ProbeResult, ProbeTotals
from disksla.pipeline.snapshot import DiskSnapshot, SamplerSnapshot, take_snapshot
from disksla.pipeline.state import State, needs_host_wait
from disksla.pipeline.tick import Tick
from disksla.procfs.iowait import HostWait
from disksla.units import GIB
from support.scenario_verdicts import judged
from support.scenarios import SCENARIOS
from support.simulated_host import Machine, a_disk
from support.simulated_limiter import WINDOW_S

BURST = SumBurst(iops=2000.0, iops_credits=8000.0)


def seen(machine: Machine, device: str = "vda") -> DiskSnapshot:
    (view,) = [view for view in take_snapshot(machine.state).disks if view.disk.name == device]
    return view


def gaps(machine: Machine) -> dict[str, int]:
    return {reason: count for reason, count in machine.state.sampler_stats.gaps.items() if count}


def test_a_disk_starts_from_nothing_when_first_seen() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=7)
    assert seen(machine).counters is not None
    assert set(seen(machine).counters or ()) == {0}
    machine.tick()
    assert seen(machine).counters == (7, *[0] * 15)


def test_nothing_is_said_of_a_disk_before_it_was_sampled() -> None:
    machine = Machine(a_disk(), unreadable=True)
    assert seen(machine).counters is None
    assert seen(machine).inflight is None


def test_counts_bytes_and_rates_of_a_window() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=30, read_sectors=240, writes=10, written_sectors=2560)
    machine.tick()
    peak = seen(machine).peak
    assert peak.read_iops == pytest.approx(300)
    assert peak.write_iops == pytest.approx(100)
    assert peak.read_bytes_per_second == pytest.approx(300 * 4096)
    assert peak.written_bytes_per_second == pytest.approx(100 * 131072)


def test_the_present_is_the_mean_of_the_last_second() -> None:
    machine = Machine(a_disk())
    for reads in (60, 0, 0, 60, 0, 0, 60, 0, 0, 60, 60):
        machine.does("vda", reads=reads, inflight=1)
        machine.tick()
    assert seen(machine).present.read_iops == pytest.approx(240, rel=1e-6)
    for _ in range(11):
        machine.does("vda", inflight=0)
        machine.tick()
    assert seen(machine).present.read_iops == 0


def test_a_disk_that_does_nothing_is_not_looked_at_again() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vda", reads=1)
    before = machine.tick()
    assert before.active == {"vda"}
    after = machine.tick()
    assert after.active == frozenset()
    assert after.monitored["vdb"] is before.monitored["vdb"]


def test_requests_in_flight_come_from_sysfs_once_the_disk_is_awake() -> None:
    machine = Machine(a_disk())
    machine.sysfs_inflight = {"vda": (4, 8)}
    machine.does("vda", reads=1, inflight=5)
    machine.tick()
    assert seen(machine).inflight == 5
    machine.does("vda", reads=1)
    machine.tick()
    assert seen(machine).inflight == 12


def test_a_partition_in_use_keeps_its_disk_awake_though_the_whole_line_says_zero() -> None:
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.does("vda1", inflight=8)
    assert machine.tick().active == {"vda"}
    assert seen(machine).inflight == 8
    machine.sysfs_inflight = {"vda": (8, 0)}
    for _ in range(3):
        assert machine.tick().active == {"vda"}
        assert seen(machine).inflight == 8


def test_old_kernels_count_a_partition_in_the_whole_once() -> None:
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.does("vda", inflight=8)
    machine.does("vda1", inflight=8)
    machine.tick()
    assert seen(machine).inflight == 8


def test_a_stalled_disk_stays_awake() -> None:
    machine = Machine(a_disk())
    machine.does("vda", inflight=4)
    for _ in range(15):
        assert machine.tick().active == {"vda"}
    machine.does("vda", reads=4, read_ms=6399, inflight=-4)
    machine.does("vda", inflight=0)
    machine.tick()
    assert seen(machine).read_latency_s.total == pytest.approx(6.399)


@pytest.mark.parametrize(
    ("after_s", "asleep_s", "set_by_s", "reason"),
    [(5.0, 0, 0, "late"), (0.1, 3600, 0, "suspend"), (0.1, 0, -7200, "clock_step")],
)
def test_time_that_cannot_be_judged_is_a_gap_and_loses_no_request(
    after_s: float, asleep_s: float, set_by_s: float, reason: str
) -> None:
    machine = Machine(a_disk())
    machine.tick()
    machine.asleep_s += asleep_s
    machine.set_by_s += set_by_s
    machine.does("vda", reads=1000, read_ms=2000)
    machine.tick(after_s)
    assert gaps(machine) == {reason: 1}
    assert seen(machine).counters is not None
    assert seen(machine).counters == (1000, 0, 0, 2000, *[0] * 12)
    assert seen(machine).peak.read_iops == 0
    assert seen(machine).read_latency_s.count == 1000


def test_an_unreadable_file_is_a_gap_when_it_is_over() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=3)
    for _ in range(5):
        machine.tick(text=None, problems={"diskstats": "Input/output error"})
        assert not take_snapshot(machine.state).sampler.collectors["diskstats"]
    assert gaps(machine) == {}
    machine.tick()
    assert gaps(machine) == {"unreadable": 1}
    assert take_snapshot(machine.state).sampler.collectors["diskstats"]
    assert take_snapshot(machine.state).sampler.errors["diskstats"] == 5
    assert seen(machine).counters == (3, *[0] * 15)


def test_what_was_wrong_with_the_host_stays_so_until_it_is_asked_again() -> None:
    machine = Machine(a_disk())

    def asked(host: HostWait | None, **problems: str) -> SamplerSnapshot:
        machine.take(Tick(machine.clocks(), machine.text(), host=host, problems=problems))
        return take_snapshot(machine.state).sampler

    told = asked(HostWait(), iowait="no cpu line", diskstats="garbled")
    assert (told.collectors["iowait"], told.collectors["diskstats"]) == (False, False)
    told = asked(None)
    assert (told.collectors["iowait"], told.collectors["diskstats"]) == (False, True)
    assert told.problems == {"iowait": "no cpu line"}
    assert told.errors["iowait"] == 1
    assert asked(HostWait(iowait_s=1.0)).collectors["iowait"]


def test_a_garbled_line_is_a_gap_of_its_disk_alone() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vda", reads=5)
    machine.does("vdb", reads=5)
    machine.tick()
    good = machine.text().splitlines()
    for _ in range(3):
        machine.does("vdb", reads=1)
        machine.tick(text="\n".join([good[0][:30], machine.text().splitlines()[1]]))
        assert list(machine.state.sampler_stats.problems) == ["diskstats:vda"]
        assert seen(machine, "vda").inflight is None
    machine.tick()
    assert machine.state.sampler_stats.problems == {}
    assert gaps(machine) == {"malformed": 1}
    assert (seen(machine, "vda").counters or [None])[0] == 5
    assert (seen(machine, "vdb").counters or [None])[0] == 8


def test_a_disk_whose_line_vanishes_is_a_gap() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vdb", reads=5)
    machine.tick()
    for _ in range(3):
        machine.tick(text=machine.text().splitlines()[0])
    assert gaps(machine) == {"vanished": 1}
    assert seen(machine, "vdb").inflight is None
    machine.tick(disks=(machine.disks[0],))
    assert [view.disk.name for view in take_snapshot(machine.state).disks] == ["vda"]


def test_a_disk_that_comes_is_watched_and_the_others_go_on() -> None:
    machine = Machine(a_disk("vda"))
    machine.does("vda", reads=5)
    machine.tick()
    both = (*machine.disks, a_disk("vdb", minor=16))
    machine.disks = both
    machine.numbers["vdb"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.does("vda", reads=2)
    machine.tick(disks=both)
    machine.does("vdb", reads=1)
    machine.tick()
    assert (seen(machine, "vda").counters or [None])[0] == 7
    assert (seen(machine, "vdb").counters or [None])[0] == 1
    assert gaps(machine) == {}


def test_another_disk_under_the_same_name_starts_anew() -> None:
    machine = Machine(a_disk(diskseq=3, serial="one"))
    machine.does("vda", reads=500)
    machine.tick()
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.does("vda", reads=900)  # more than the disk before it: only its identity tells
    machine.tick(disks=(a_disk(diskseq=9, serial="two"),))
    assert gaps(machine) == {"replaced": 1}
    assert (seen(machine).counters or [None])[0] == 0


def test_a_serial_that_udev_adds_later_does_not_make_another_disk() -> None:
    machine = Machine(a_disk(diskseq=3))
    machine.does("vda", reads=500)
    machine.tick(disks=(a_disk(diskseq=3, serial="one"),))
    assert gaps(machine) == {}
    assert (seen(machine).counters or [None])[0] == 500


def test_counters_that_start_over_are_a_gap_and_lose_nothing_counted() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=500, read_sectors=4000)
    machine.tick()
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.does("vda", reads=1, read_sectors=8)
    machine.tick()
    machine.does("vda", reads=1, read_sectors=8)
    machine.tick()
    assert gaps(machine) == {"reset": 1}
    assert (seen(machine).counters or [None])[0] == 501


def test_other_settings_choose_other_disks_and_keep_what_was_counted() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vda", reads=5)
    machine.tick()
    only = Settings(discovery=DiscoverySettings(include=(DevicePattern("^vda$"),)))
    machine.state = configure(machine.state, only)
    machine.tick()
    assert [view.disk.name for view in take_snapshot(machine.state).disks] == ["vda"]
    assert (seen(machine).counters or [None])[0] == 5


actions = st.lists(
    st.tuples(
        st.sampled_from([0.1, 0.1, 0.1, 0.1, 0.103, 0.5]),
        st.integers(0, 50),
        st.integers(0, 50),
        st.integers(0, 3),
    ),
    max_size=40,
)


@given(actions)
def test_every_window_and_every_request_is_counted_once(
    doings: list[tuple[float, int, int, int]],
) -> None:
    machine = Machine(a_disk())
    for after_s, reads, writes, inflight in doings:
        machine.does(
            "vda",
            reads=reads,
            read_sectors=8 * reads,
            read_ms=3 * reads,
            writes=writes,
            inflight=inflight,
        )
        machine.tick(after_s)
    machine.does("vda", inflight=0)
    for _ in range(12):
        machine.tick()
    view = seen(machine)
    windows = 12 + sum(1 for after_s, *_ in doings if after_s < 0.3)
    assert machine.state.assessed.windows == windows
    assert (
        machine.state.monitored["vda"]
        .totals.settled(machine.state.assessed, machine.now_s)
        .load.count
        <= windows
    )
    assert view.counters is not None
    assert view.counters[0] == sum(reads for _, reads, _, _ in doings)
    assert view.read_latency_s.count == view.counters[0]
    assert view.read_latency_s.total == pytest.approx(view.counters[0] * 0.003)
    assert view.counters[4] == sum(writes for _, _, writes, _ in doings)


@given(st.text(max_size=300))
def test_any_text_is_survived(text: str) -> None:
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.tick(text=text)
    machine.tick(text=text + machine.text())
    machine.tick()
    assert [view.disk.name for view in take_snapshot(machine.state).disks] == ["vda"]
    assert seen(machine).disk.size_bytes == 100 * GIB


def promised(iops: float, burst: SumBurst | None = None, device: str = "vda") -> Settings:
    contract = SumTerms(iops=iops, burst=burst)
    return Settings(disks=(DiskEntry(match=DiskMatch(device=device), terms=contract),))


def credits_of(machine: Machine) -> CreditLevel:
    (level,) = seen(machine).credits
    return level


def width(level: CreditLevel) -> float:
    return level.upper_credits - level.lower_credits


@pytest.mark.parametrize(
    "name", ["burst-then-base", "burst-then-base-synchronous", "burst-in-turns"]
)
def test_the_credits_of_a_simulated_disk_are_between_the_bounds(name: str) -> None:
    found = judged(SCENARIOS[name])
    ends_s = [window.end_s for window in found.truth]
    checked = 0
    for row in found.rows:
        (level,) = row.credits
        number = bisect_left(ends_s, row.monotonic_s)
        if not 0 < number < len(ends_s):
            continue
        # The limiter fills its bucket between its windows, and samples are taken within one.
        highest = max(0.0, found.truth[number - 1].levels[0]) + 300 * WINDOW_S
        lowest = max(0.0, found.truth[number].levels[0])
        assert level.lower_credits <= min(highest, level.capacity_credits) + 1e-6
        assert level.upper_credits >= lowest - 1e-6
        assert level.lower_credits <= level.estimate_credits <= level.upper_credits
        checked += 1
    assert checked > 90


def test_a_burst_that_is_used_up_is_known_to_be() -> None:
    found = judged(SCENARIOS["burst-then-base"])
    (draining,) = found.between(1003.0, 1003.1)[0].credits
    assert draining.exhaustion_s < 60
    (empty,) = found.rows[-1].credits
    assert empty.upper_credits < 0.05 * empty.capacity_credits


def test_a_disk_that_sleeps_saves_up_credits_and_is_not_looked_at_for_it() -> None:
    machine = Machine(a_disk(), settings=promised(300.0, BURST))
    machine.does("vda", reads=1)
    machine.tick()
    machine.tick()
    first, account = credits_of(machine), machine.state.monitored["vda"].credits
    for _ in range(100):
        machine.tick()
    later = credits_of(machine)
    assert machine.state.monitored["vda"].credits is account
    assert later.lower_credits == pytest.approx(first.lower_credits + 3000, rel=0.02)
    assert later.upper_credits == 8000.0
    assert later.exhaustion_s == math.inf
    machine.does("vda", reads=1)
    machine.tick()
    assert credits_of(machine).lower_credits == pytest.approx(later.lower_credits + 30, rel=0.02)


def a_rested_machine() -> Machine:
    machine = Machine(a_disk(), settings=promised(300.0, BURST))
    for _ in range(400):
        machine.tick()
    assert width(credits_of(machine)) < 100
    return machine


def test_credits_begin_anew_under_another_burst_and_go_on_under_the_same() -> None:
    machine = a_rested_machine()
    known = credits_of(machine)
    machine.state = configure(machine.state, promised(300.0, BURST))
    machine.tick()
    assert credits_of(machine) == known
    smaller = SumBurst(iops=2000.0, iops_credits=5000.0)
    machine.state = configure(machine.state, promised(300.0, smaller))
    assert seen(machine).credits == ()
    machine.tick()
    anew = credits_of(machine)
    assert anew.capacity_credits == anew.upper_credits == 5000.0
    assert anew.lower_credits < 100
    machine.state = configure(machine.state, promised(300.0))
    machine.tick()
    assert seen(machine).credits == ()


def test_what_is_not_seen_widens_the_bounds_until_counters_tell_of_it() -> None:
    machine = a_rested_machine()
    for _ in range(10):
        machine.tick(text="")
    assert width(credits_of(machine)) > 1500
    machine.tick()
    assert width(credits_of(machine)) < 200


def test_counters_that_start_over_hide_what_was_used() -> None:
    machine = a_rested_machine()
    machine.does("vda", reads=500)
    machine.tick()
    before = credits_of(machine)
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.does("vda", reads=1)
    machine.tick()
    assert gaps(machine) == {"reset": 1}
    assert credits_of(machine).lower_credits < before.lower_credits - 150


def test_a_late_sample_still_knows_what_was_used() -> None:
    machine = a_rested_machine()
    machine.does("vda", reads=5000)
    machine.tick(4.0)
    assert gaps(machine) == {"late": 1}
    level = credits_of(machine)
    assert level.lower_credits <= 8000 - 5000 + 1200 <= level.upper_credits
    assert width(level) < 1300


def throttled(machine: Machine, seconds: float, share: float = 1.0) -> None:
    """Let vda be held at 300 IOPS, with something waiting all the time."""
    for _ in range(round(seconds * 10)):
        machine.does("vda", reads=round(30 * share), read_ms=3200, inflight=32)
        machine.now_s += 0.1
        waited_s = machine.now_s - 1000
        host = HostWait(4 * waited_s, waited_s, waited_s / 2)
        machine.take(Tick(machine.clocks(), machine.text(), host=host))


def test_what_the_host_waits_is_laid_to_the_disk_that_is_throttled() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16), settings=promised(300.0))
    assert not needs_host_wait(machine.state)
    throttled(machine, 3.0)
    assert needs_host_wait(machine.state)
    assert seen(machine).verdict == "throttled"
    ledger = seen(machine).verdict_totals
    throttled_s = sum(ledger.throttled_s)
    assert throttled_s > 2
    told_s = throttled_s - 0.1  # the first time that it is asked, it tells of no window
    assert ledger.host.iowait_s == pytest.approx(4 * told_s)
    assert ledger.host.pressure_some_s == pytest.approx(told_s)
    assert ledger.host.pressure_full_s == pytest.approx(told_s / 2)
    assert seen(machine, "vdb").verdict_totals.host == HostWait(0.0, 0.0, 0.0)


def test_what_the_host_waits_for_a_disk_that_is_not_throttled_is_laid_to_nobody() -> None:
    machine = Machine(a_disk(), settings=promised(3000.0))
    throttled(machine, 1.0, share=0.5)
    assert seen(machine).verdict != "throttled"
    assert seen(machine).verdict_totals.host == HostWait(0.0, 0.0, 0.0)


def test_the_host_is_asked_at_first_and_when_a_disk_is_at_its_promise() -> None:
    machine = Machine(a_disk(), settings=promised(300.0), unreadable=True)
    assert needs_host_wait(machine.state)
    machine.tick()
    assert not needs_host_wait(machine.state)
    machine.does("vda", reads=30)
    machine.tick()
    assert seen(machine).verdict == "met"
    assert needs_host_wait(machine.state)


def a_probe(device: str = "vda", **told: object) -> ProbeResult:
    usual: dict[str, object] = {"kind": "read-latency", "timestamp_s": 1.7e9, "requests": 100}
    return ProbeResult(device=device, **usual | told)  # type: ignore[arg-type]


def take_probes(machine: Machine, *outcomes: ProbeResult, text: str | None = "as it is") -> None:
    said = machine.text() if text is not None else None
    machine.take(Tick(machine.clocks(), said, probes=outcomes))


def test_probes_are_counted_and_go_on_being_counted() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    take_probes(machine, a_probe(), a_probe("vdb", skipped="busy"))
    take_probes(machine, a_probe("gone"), a_probe(failure="timeout"), text=None)
    machine.does("vda", reads=5, inflight=1)
    machine.tick()
    machine.tick(disks=(a_disk("vda", holders=("dm-0",)), a_disk("vdb", minor=16)))
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.tick()
    of_vda, of_vdb = (disk.probes["read-latency"] for disk in take_snapshot(machine.state).disks)
    assert (of_vda.runs, of_vda.requests, of_vda.failures["timeout"]) == (2, 200, 1)
    assert (of_vdb.runs, of_vdb.skips["busy"]) == (0, 1)


def test_probes_of_another_disk_under_the_same_name_begin_anew() -> None:
    machine = Machine(a_disk("vda", serial="one"))
    take_probes(machine, a_probe())
    machine.tick(disks=(a_disk("vda", serial="two"),))
    assert seen(machine).probes == {}


def test_probes_that_are_configured_are_there_from_the_start() -> None:
    probes = (ProbeEntry(kind="write-latency", disks=("vda",)),)
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16), settings=Settings(probes=probes))
    of_vda, of_vdb = (disk.probes for disk in take_snapshot(machine.state).disks)
    assert of_vda == {"write-latency": ProbeTotals(last_attempt_s=machine.clocks().realtime_s)}
    assert of_vdb == {}


def test_settings_may_change_before_the_first_tick() -> None:
    asked = Settings(probes=(ProbeEntry(kind="read-latency"),))
    state = configure(State(Settings(), Machine().state.catalog), asked)
    assert state.settings == asked
    assert take_snapshot(state).disks == ()


def test_a_probe_waits_for_its_turn_since_it_was_asked_for() -> None:
    asked = Settings(probes=(ProbeEntry(kind="read-latency", every_s=3600.0),))
    machine = Machine(a_disk("vda"))
    machine.tick()
    machine.state = configure(machine.state, asked)
    begun_s = machine.clocks().realtime_s
    machine.tick()
    assert seen(machine).probes["read-latency"].last_attempt_s == begun_s
    assert seen(machine).probe_intervals_s == {"read-latency": 3600.0}
    machine.state = configure(machine.state, Settings())
    machine.tick(after_s=60.0)
    assert (seen(machine).probes, seen(machine).probe_intervals_s) == ({}, {})
    machine.state = configure(machine.state, asked)
    assert seen(machine).probes["read-latency"].last_attempt_s == begun_s + 60.1

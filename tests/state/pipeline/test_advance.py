"""advance: ticks in, state and snapshots out."""

import math
from bisect import bisect_left
from itertools import pairwise
from operator import attrgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB, KIB
from disksla.kernel.procfs.iowait import HostWait
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms
from disksla.promise.configuration.settings import (
    DevicePattern,
    DiscoverySettings,
    DiskEntry,
    ProbeEntry,
    Settings,
)
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.probe_results import ProbeResult, ProbeTotals
from disksla.state.pipeline.snapshot import DiskSnapshot, SamplerStats, Snapshot
from disksla.state.pipeline.state import State, needs_host_wait, needs_inflight
from disksla.state.pipeline.tick import Tick
from disksla.verdict.credits.account import CreditLevel
from support.scenario_verdicts import judged
from support.scenarios import SCENARIOS
from support.simulated_host import CATALOG, Machine, a_disk, reconfigured
from support.simulated_limiter import WINDOW_S

BURST = SumBurst(iops=2000.0, iops_credits=8000.0)


def snapshot_of(machine: Machine, device: str = "vda") -> DiskSnapshot:
    (found,) = [disk for disk in Snapshot(machine.state).disks if disk.disk.name == device]
    return found


def disk_names(machine: Machine) -> list[str]:
    return [disk.disk.name for disk in Snapshot(machine.state).disks]


def gaps(machine: Machine) -> dict[str, int]:
    return {reason: count for reason, count in machine.state.sampler_stats.gaps.items() if count}


def test_counters_start_at_zero_at_first_sample() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=7)
    assert snapshot_of(machine).counters is not None
    assert set(snapshot_of(machine).counters or ()) == {0}
    machine.tick()
    assert snapshot_of(machine).counters == (7, *[0] * 15)


def test_unsampled_disk_has_no_values() -> None:
    machine = Machine(a_disk(), unreadable=True)
    assert snapshot_of(machine).counters is None
    assert snapshot_of(machine).inflight is None


def test_present_rates_are_means_of_last_second() -> None:
    machine = Machine(a_disk())
    for reads in (60, 0, 0, 60, 0, 0, 60, 0, 0, 60, 60):
        machine.does("vda", reads=reads, inflight=1)
        machine.tick()
    assert snapshot_of(machine).present.read_iops == pytest.approx(240, rel=1e-6)
    for _ in range(11):
        machine.does("vda", inflight=0)
        machine.tick()
    assert snapshot_of(machine).present.read_iops == 0


def test_idle_disk_is_not_updated() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vda", reads=1)
    before = machine.tick()
    assert before.active == {"vda"}
    after = before
    for _ in range(10):  # until its window is decided, at the end of the second
        after = machine.tick()
    assert after.active == frozenset()
    assert after.monitored["vdb"] is before.monitored["vdb"]
    assert machine.tick().monitored["vda"] is after.monitored["vda"]


def test_inflight_of_disk_without_partitions_is_that_of_its_line() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=1, inflight=5)
    machine.tick()
    assert needs_inflight(machine.state) == frozenset()
    machine.sysfs_inflight = {"vda": (4, 8)}  # as of an older recording
    machine.does("vda", reads=1)
    machine.tick()
    assert snapshot_of(machine).inflight == 5


def test_inflight_of_disk_with_partitions_is_from_sysfs() -> None:
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.sysfs_inflight = {"vda": (4, 8)}
    machine.does("vda", reads=1, inflight=5)
    machine.tick()
    assert snapshot_of(machine).inflight == 5
    assert needs_inflight(machine.state) == {"vda"}
    machine.does("vda", reads=1)
    machine.tick()
    assert snapshot_of(machine).inflight == 12


def test_journal_commit_in_flight_is_not_idle() -> None:
    """Linux 6.18 counts it in /proc/diskstats, not in sysfs, while its data is written."""
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.sysfs_inflight = {"vda": (0, 0)}
    machine.does("vda", writes=1, flushes=2, inflight=1)
    machine.tick()
    machine.does("vda", writes=1, flushes=2, inflight=1)
    machine.tick()
    assert snapshot_of(machine).inflight == 0  # completed between both readings
    assert machine.tick().active == {"vda"}
    assert snapshot_of(machine).inflight == 1


def test_inflight_of_partition_keeps_whole_disk_active() -> None:
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.does("vda1", inflight=8)
    assert machine.tick().active == {"vda"}
    assert snapshot_of(machine).inflight == 8
    machine.sysfs_inflight = {"vda": (8, 0)}
    for _ in range(3):
        assert machine.tick().active == {"vda"}
        assert snapshot_of(machine).inflight == 8


def test_inflight_before_6_12_is_not_counted_twice() -> None:
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.does("vda", inflight=8)
    machine.does("vda1", inflight=8)
    machine.tick()
    assert snapshot_of(machine).inflight == 8


def test_stalled_disk_stays_active() -> None:
    machine = Machine(a_disk())
    machine.does("vda", inflight=4)
    for _ in range(15):
        assert machine.tick().active == {"vda"}
    machine.does("vda", reads=4, read_ms=6399, inflight=-4)
    machine.does("vda", inflight=0)
    machine.tick()
    assert snapshot_of(machine).totals.read_latency.histogram.total == pytest.approx(6.399)


@pytest.mark.parametrize(
    ("after_s", "suspended_s", "step_s", "reason"),
    [(5.0, 0, 0, "late"), (0.1, 3600, 0, "suspend"), (0.1, 0, -7200, "clock_step")],
)
def test_gap_has_a_reason_and_loses_no_request(
    after_s: float, suspended_s: float, step_s: float, reason: str
) -> None:
    machine = Machine(a_disk())
    machine.tick()
    machine.asleep_s += suspended_s
    machine.set_by_s += step_s
    machine.does("vda", reads=1000, read_ms=2000)
    machine.tick(after_s)
    assert gaps(machine) == {reason: 1}
    assert snapshot_of(machine).counters is not None
    assert snapshot_of(machine).counters == (1000, 0, 0, 2000, *[0] * 12)
    assert snapshot_of(machine).peak.read_iops == 0
    assert snapshot_of(machine).totals.read_latency.histogram.count == 1000


def test_unreadable_diskstats_is_one_gap_at_its_end() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=3)
    for _ in range(5):
        machine.tick(text=None, problems={"diskstats": "Input/output error"})
        assert not Snapshot(machine.state).sampler.collectors["diskstats"]
    assert gaps(machine) == {}
    machine.tick()
    assert gaps(machine) == {"unreadable": 1}
    assert Snapshot(machine.state).sampler.collectors["diskstats"]
    assert Snapshot(machine.state).sampler.errors["diskstats"] == 5
    assert snapshot_of(machine).counters == (3, *[0] * 15)


def test_host_problem_stays_until_host_is_read_again() -> None:
    machine = Machine(a_disk())

    def sampled(host: HostWait | None, **problems: str) -> SamplerStats:
        machine.take(Tick(machine.clocks(), machine.text(), host=host, problems=problems))
        return Snapshot(machine.state).sampler

    sampler = sampled(HostWait(), iowait="no cpu line", diskstats="garbled")
    assert (sampler.collectors["iowait"], sampler.collectors["diskstats"]) == (False, False)
    sampler = sampled(None)
    assert (sampler.collectors["iowait"], sampler.collectors["diskstats"]) == (False, True)
    assert sampler.problems == {"iowait": "no cpu line"}
    assert sampler.errors["iowait"] == 1
    assert sampled(HostWait(iowait_s=1.0)).collectors["iowait"]


def test_malformed_line_is_a_gap_of_its_disk_only() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vda", reads=5)
    machine.does("vdb", reads=5)
    machine.tick()
    good = machine.text().splitlines()
    for _ in range(3):
        machine.does("vdb", reads=1)
        machine.tick(text="\n".join([good[0][:30], machine.text().splitlines()[1]]))
        assert list(machine.state.sampler_stats.problems) == ["diskstats:vda"]
        assert snapshot_of(machine, "vda").inflight is None
    machine.tick()
    assert machine.state.sampler_stats.problems == {}
    assert gaps(machine) == {"malformed": 1}
    assert (snapshot_of(machine, "vda").counters or [None])[0] == 5
    assert (snapshot_of(machine, "vdb").counters or [None])[0] == 8


def test_vanished_line_is_a_gap() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vdb", reads=5)
    machine.tick()
    for _ in range(3):
        machine.tick(text=machine.text().splitlines()[0])
    assert gaps(machine) == {"vanished": 1}
    assert snapshot_of(machine, "vdb").inflight is None
    machine.tick(disks=(machine.disks[0],))
    assert disk_names(machine) == ["vda"]


def test_new_disk_is_monitored_and_others_continue() -> None:
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
    assert (snapshot_of(machine, "vda").counters or [None])[0] == 7
    assert (snapshot_of(machine, "vdb").counters or [None])[0] == 1
    assert gaps(machine) == {}


def test_replaced_disk_starts_at_zero() -> None:
    machine = Machine(a_disk(diskseq=3, serial="one"))
    machine.does("vda", reads=500)
    machine.tick()
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.does("vda", reads=900)  # more than its predecessor: only the identity differs
    machine.tick(disks=(a_disk(diskseq=9, serial="two"),))
    assert gaps(machine) == {"replaced": 1}
    assert (snapshot_of(machine).counters or [None])[0] == 0


def test_serial_added_later_keeps_the_disk() -> None:
    machine = Machine(a_disk(diskseq=3))
    machine.does("vda", reads=500)
    machine.tick(disks=(a_disk(diskseq=3, serial="one"),))
    assert gaps(machine) == {}
    assert (snapshot_of(machine).counters or [None])[0] == 500


def test_counter_reset_is_a_gap_and_keeps_totals() -> None:
    machine = Machine(a_disk())
    machine.does("vda", reads=500, read_sectors=4000)
    machine.tick()
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.does("vda", reads=1, read_sectors=8)
    machine.tick()
    machine.does("vda", reads=1, read_sectors=8)
    machine.tick()
    assert gaps(machine) == {"reset": 1}
    assert (snapshot_of(machine).counters or [None])[0] == 501


def test_configure_selects_disks_and_keeps_totals() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    machine.does("vda", reads=5)
    machine.tick()
    only = Settings(discovery=DiscoverySettings(include=(DevicePattern("^vda$"),)))
    machine.state = reconfigured(machine.state, only)
    machine.tick()
    assert disk_names(machine) == ["vda"]
    assert (snapshot_of(machine).counters or [None])[0] == 5


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
def test_each_window_and_request_is_counted_once(
    windows: list[tuple[float, int, int, int]],
) -> None:
    machine = Machine(a_disk())
    for after_s, reads, writes, inflight in windows:
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
    disk = snapshot_of(machine)
    assessed = 12 + sum(1 for after_s, *_ in windows if after_s < 0.3)
    assert machine.state.assessed.windows == assessed
    assert (
        machine.state.monitored["vda"]
        .totals.with_idle_until(machine.state.assessed, machine.now_s)
        .load.count
        <= assessed
    )
    assert disk.counters is not None
    assert disk.counters[0] == sum(reads for _, reads, _, _ in windows)
    assert disk.totals.read_latency.histogram.count == disk.counters[0]
    assert disk.totals.read_latency.histogram.total == pytest.approx(disk.counters[0] * 0.003)
    assert disk.counters[4] == sum(writes for _, _, writes, _ in windows)


@given(st.text(max_size=300))
def test_any_diskstats_text_is_accepted(text: str) -> None:
    machine = Machine(a_disk("vda"), a_disk("vda1", minor=1, partition_of="vda"))
    machine.tick(text=text)
    machine.tick(text=text + machine.text())
    machine.tick()
    assert disk_names(machine) == ["vda"]
    assert snapshot_of(machine).disk.size_bytes == 100 * GIB


def with_terms(iops: float, burst: SumBurst | None = None, device: str = "vda") -> Settings:
    terms = SumTerms(iops=iops, burst=burst)
    return Settings(disks=(DiskEntry(match=DiskMatch(device=device), terms=terms),))


def credits_of(machine: Machine) -> CreditLevel:
    (level,) = snapshot_of(machine).credits
    return level


def width(level: CreditLevel) -> float:
    return level.upper_credits - level.lower_credits


@pytest.mark.parametrize(
    "name", ["burst-then-base", "burst-then-base-synchronous", "burst-in-turns"]
)
def test_simulated_credits_are_within_bounds(name: str) -> None:
    found = judged(SCENARIOS[name])
    ends_s = [window.end_s for window in found.truth]
    checked = 0
    for state in found.states[2:]:
        assert state.clocks is not None
        (disk,) = Snapshot(state).disks
        (level,) = disk.credits
        number = bisect_left(ends_s, state.clocks.monotonic_s)
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


def test_exhausted_burst_is_detected() -> None:
    found = judged(SCENARIOS["burst-then-base"])
    draining, empty = (Snapshot(found.states[number]).disks[0].credits[0] for number in (30, -1))
    assert draining.exhaustion_s < 60
    assert empty.upper_credits < 0.05 * empty.capacity_credits


def test_idle_disk_gains_credits_without_updates() -> None:
    machine = Machine(a_disk(), settings=with_terms(300.0, BURST))
    machine.does("vda", reads=1)
    for _ in range(11):
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


def test_credit_bounds_contain_every_number_of_data_writes_under_flushes() -> None:
    disk = a_disk(largest_request_bytes=128 * KIB)
    machine = Machine(disk, settings=with_terms(300.0, BURST))
    for _ in range(400):
        machine.tick()
    assert credits_of(machine).upper_credits == 8000.0
    for _ in range(10):  # 100 writes, of which 16 to 100 have data
        machine.does("vda", writes=100, written_sectors=16 * 256, write_ms=90, flushes=50)
        machine.tick()
    level = credits_of(machine)
    assert level.lower_credits <= 8000 - 1000 + 300
    assert level.upper_credits >= 8000 - 160
    assert level.estimate_credits == pytest.approx(8000 - 500 + 300, abs=200)


def machine_after_idle() -> Machine:
    machine = Machine(a_disk(), settings=with_terms(300.0, BURST))
    for _ in range(400):
        machine.tick()
    assert width(credits_of(machine)) < 100
    return machine


def test_configure_resets_credits_only_for_another_burst() -> None:
    machine = machine_after_idle()
    before = credits_of(machine)
    machine.state = reconfigured(machine.state, with_terms(300.0, BURST))
    machine.tick()
    assert credits_of(machine) == before
    smaller = SumBurst(iops=2000.0, iops_credits=5000.0)
    machine.state = reconfigured(machine.state, with_terms(300.0, smaller))
    assert snapshot_of(machine).credits == ()
    machine.tick()
    after = credits_of(machine)
    assert after.capacity_credits == after.upper_credits == 5000.0
    assert after.lower_credits < 100
    machine.state = reconfigured(machine.state, with_terms(300.0))
    machine.tick()
    assert snapshot_of(machine).credits == ()


def test_bounds_widen_until_counters_are_read_again() -> None:
    machine = machine_after_idle()
    for _ in range(10):
        machine.tick(text="")
    assert width(credits_of(machine)) > 1500
    machine.tick()
    assert width(credits_of(machine)) < 200


def test_counter_reset_widens_the_bounds() -> None:
    machine = machine_after_idle()
    machine.does("vda", reads=500)
    machine.tick()
    before = credits_of(machine)
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.does("vda", reads=1)
    machine.tick()
    assert gaps(machine) == {"reset": 1}
    assert credits_of(machine).lower_credits < before.lower_credits - 150


def test_late_sample_narrows_the_bounds() -> None:
    machine = machine_after_idle()
    machine.does("vda", reads=5000)
    machine.tick(4.0)
    assert gaps(machine) == {"late": 1}
    level = credits_of(machine)
    assert level.lower_credits <= 8000 - 5000 + 1200 <= level.upper_credits
    assert width(level) < 1300


def throttle(machine: Machine, seconds: float, share: float = 1.0) -> None:
    """Throttle vda at a share of 300 IOPS, with requests waiting all the time."""
    for _ in range(round(seconds * 10)):
        machine.does("vda", reads=round(30 * share), read_ms=3200, inflight=32)
        machine.now_s += 0.1
        waited_s = machine.now_s - 1000
        host = HostWait(4 * waited_s, waited_s, waited_s / 2)
        machine.take(Tick(machine.clocks(), machine.text(), host=host))


def test_host_wait_is_attributed_to_throttled_disk() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16), settings=with_terms(300.0))
    assert not needs_host_wait(machine.state)
    throttle(machine, 8.0)
    assert needs_host_wait(machine.state)
    assert snapshot_of(machine).verdict == "throttled"
    totals = snapshot_of(machine).verdict_totals
    throttled_s = sum(totals.throttled_s)
    assert throttled_s > 2
    attributed_s = throttled_s
    first_s = 0.05  # of the window in which the load began; no iowait is known of it
    assert totals.host.iowait_s == pytest.approx(4 * (attributed_s - first_s))
    assert totals.host.pressure_some_s == pytest.approx(attributed_s - first_s)
    assert totals.host.pressure_full_s == pytest.approx((attributed_s - first_s) / 2)
    assert snapshot_of(machine, "vdb").verdict_totals.host == HostWait(0.0, 0.0, 0.0)


def test_host_wait_is_not_attributed_without_throttling() -> None:
    machine = Machine(a_disk(), settings=with_terms(3000.0))
    throttle(machine, 8.0, share=0.5)
    assert snapshot_of(machine).verdict != "throttled"
    assert snapshot_of(machine).verdict_totals.host == HostWait(0.0, 0.0, 0.0)


def test_windows_are_counted_once_by_the_limits_of_their_time() -> None:
    machine = Machine(a_disk(), settings=with_terms(300.0))
    published = []
    for tick in range(40):
        if tick in {7, 23}:  # in the middle of a second
            machine.state = reconfigured(machine.state, with_terms(100.0 if tick == 7 else 3000.0))
        machine.does("vda", reads=10, read_ms=50)
        state = machine.tick(0.1)
        published.append(Snapshot(state).disks[0])
    for before, after in pairwise(published):
        for name in ("load", "read_latency.histogram"):
            counts = (attrgetter(name)(each.totals).counts for each in (before, after))
            assert all(old <= new for old, new in zip(*counts, strict=True))
    assert published[-1].load is not None
    latency_s = published[-1].totals.read_latency.histogram
    assert (published[-1].load.count, latency_s.count) == (40, 400)
    assert sum(published[-1].verdict_totals.seconds) == pytest.approx(4.0, abs=1.0)


def test_host_wait_is_needed_at_start_and_at_the_limit() -> None:
    machine = Machine(a_disk(), settings=with_terms(300.0), unreadable=True)
    assert needs_host_wait(machine.state)
    machine.tick()
    assert not needs_host_wait(machine.state)
    for _ in range(11):
        machine.does("vda", reads=30)
        machine.tick()
    assert snapshot_of(machine).verdict == "met"
    assert needs_host_wait(machine.state)


def a_probe(device: str = "vda", **values: object) -> ProbeResult:
    defaults: dict[str, object] = {"kind": "read-latency", "timestamp_s": 1.7e9, "requests": 100}
    return ProbeResult(device=device, **defaults | values)  # type: ignore[arg-type]


def tick_with_probes(machine: Machine, *results: ProbeResult, readable: bool = True) -> None:
    text = machine.text() if readable else None
    machine.take(Tick(machine.clocks(), text, probes=results))


def test_probe_totals_survive_ticks_and_resets() -> None:
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16))
    tick_with_probes(machine, a_probe(), a_probe("vdb", skipped="busy"))
    tick_with_probes(machine, a_probe("gone"), a_probe(failure="timeout"), readable=False)
    machine.does("vda", reads=5, inflight=1)
    machine.tick()
    machine.tick(disks=(a_disk("vda", holders=("dm-0",)), a_disk("vdb", minor=16)))
    machine.numbers["vda"] = dict.fromkeys(machine.numbers["vda"], 0)
    machine.tick()
    of_vda, of_vdb = (disk.probes["read-latency"] for disk in Snapshot(machine.state).disks)
    assert (of_vda.runs, of_vda.requests, of_vda.failures["timeout"]) == (2, 200, 1)
    assert (of_vdb.runs, of_vdb.skips["busy"]) == (0, 1)


def test_probe_totals_of_replaced_disk_start_at_zero() -> None:
    machine = Machine(a_disk("vda", serial="one"))
    tick_with_probes(machine, a_probe())
    machine.tick(disks=(a_disk("vda", serial="two"),))
    assert snapshot_of(machine).probes == {}


def test_configured_probes_are_present_from_start() -> None:
    probes = (ProbeEntry(kind="write-latency", disks=("vda",)),)
    machine = Machine(a_disk("vda"), a_disk("vdb", minor=16), settings=Settings(probes=probes))
    of_vda, of_vdb = (disk.probes for disk in Snapshot(machine.state).disks)
    assert of_vda == {"write-latency": ProbeTotals(last_attempt_s=machine.clocks().realtime_s)}
    assert of_vdb == {}


def test_configure_before_first_tick() -> None:
    settings = Settings(probes=(ProbeEntry(kind="read-latency"),))
    state = reconfigured(State(Configuration(Settings(), CATALOG)), settings)
    assert state.settings == settings
    assert Snapshot(state).disks == ()


def test_last_attempt_starts_when_probe_is_configured() -> None:
    settings = Settings(probes=(ProbeEntry(kind="read-latency", every_s=3600.0),))
    machine = Machine(a_disk("vda"))
    machine.tick()
    machine.state = reconfigured(machine.state, settings)
    configured_s = machine.clocks().realtime_s
    machine.tick()
    assert snapshot_of(machine).probes["read-latency"].last_attempt_s == configured_s
    assert snapshot_of(machine).probe_intervals_s == {"read-latency": 3600.0}
    machine.state = reconfigured(machine.state, Settings())
    machine.tick(after_s=60.0)
    assert (snapshot_of(machine).probes, snapshot_of(machine).probe_intervals_s) == ({}, {})
    machine.state = reconfigured(machine.state, settings)
    assert snapshot_of(machine).probes["read-latency"].last_attempt_s == configured_s + 60.1

"""Disks that share a limit of the machine: what throttles each of them, and the group."""

from random import Random

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.units import GIB
from disksla.kernel.disks.disk import Disk
from disksla.promise.catalogue.machine import MachineChoice, find_machine
from disksla.promise.catalogue.machine_tables import load_machine_rules, read_table
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms
from disksla.promise.configuration.settings import (
    DevicePattern,
    DiscoverySettings,
    DiskEntry,
    MachineSettings,
    Settings,
)
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.restore import PreviousRun
from disksla.state.pipeline.snapshot import GroupSnapshot, Snapshot
from disksla.state.pipeline.state import State, needs_host_wait, to_saved_state
from support.examples import scaled
from support.simulated_host import FIELDS, Machine, a_disk, reconfigured

DISKS = (a_disk("vda"), a_disk("vdb", 16), a_disk("vdc", 32))
WINDOWS = 90
SEEN_S = WINDOWS / 10 - 0.2
"""A rate is steady after some seconds, the last of which is then said to be throttled."""


def settings_of(
    machine: SumTerms | None, own: dict[str, SumTerms], **sections: object
) -> Settings:
    entries = tuple(
        DiskEntry(match=DiskMatch(device=name), terms=terms) for name, terms in own.items()
    )
    return Settings(disks=entries, machine=MachineSettings(limits=machine), **sections)  # type: ignore[arg-type]


class SharedLimiter:
    """Serves the requests of disks with a limit each, and one together, per window of 100 ms.

    A deep disk has 32 requests in flight, another one at a time. Requests that find no tokens wait
    for the next window. The machine serves those that came first.
    """

    def __init__(
        self, machine: Machine, own: dict[str, float], shared: float, seed: int = 1
    ) -> None:
        self.machine = machine
        self.own = own
        self.shared = shared
        self.random = Random(seed)

    def serve(self, wanted: dict[str, int], depth: int = 32, size: int = 4096) -> State:
        """Serve as many of the wanted requests of each disk as there are tokens."""
        tokens = round(self.shared / 10)
        served = dict.fromkeys(wanted, 0)
        limits = {name: round(self.own[name] / 10) for name in wanted}
        waiting = [name for name, number in wanted.items() for _ in range(number)]
        self.random.shuffle(waiting)
        for name in waiting:
            if tokens and served[name] < limits[name]:
                served[name] += 1
                tokens -= 1
        for name, number in served.items():
            is_throttled = number < wanted[name]
            inflight = min(depth, wanted[name] - number) if is_throttled else 0
            self.machine.does(
                name,
                reads=number,
                read_sectors=number * size // 512,
                read_ms=int(100 * inflight + 0.2 * number),
                inflight=inflight,
            )
        return self.machine.tick()


def limits_of(state: State, device: str) -> dict[str, float]:
    """Return the throttled seconds of a disk by limit, without zeros."""
    (snapshot,) = [disk for disk in Snapshot(state).disks if disk.disk.name == device]
    seconds = snapshot.verdict_totals.throttled_s
    kinds = ("iops", "bandwidth", "machine_iops", "machine_bandwidth", "unknown")
    return {kind: each for kind, each in zip(kinds, seconds, strict=True) if each}


def verdicts_of(state: State, device: str) -> dict[str, float]:
    """Return the seconds of a disk by verdict, without zeros."""
    (snapshot,) = [disk for disk in Snapshot(state).disks if disk.disk.name == device]
    names = ("idle", "unproven", "met", "throttled", "below", "stalled")
    seconds = snapshot.verdict_totals.seconds
    return {name: each for name, each in zip(names, seconds, strict=True) if each}


def group_of(state: State) -> GroupSnapshot:
    (group,) = Snapshot(state).groups
    return group


def of_own(iops: float) -> SumTerms:
    return SumTerms(iops=iops)


def test_disk_at_the_limit_of_the_machine_is_throttled_by_it_and_not_below() -> None:
    """The disk was sold with 9,000 IOPS, and the machine allows 2,000."""
    machine = Machine(*DISKS, settings=settings_of(of_own(2000), {"vda": of_own(9000)}))
    limiter = SharedLimiter(machine, {"vda": 9000.0}, 2000)
    for _ in range(WINDOWS):
        limiter.serve({"vda": 400})
    assert limits_of(machine.state, "vda") == pytest.approx({"machine_iops": SEEN_S}, abs=0.2)
    assert "below" not in verdicts_of(machine.state, "vda")
    assert group_of(machine.state).throttled_s["iops"] == pytest.approx(SEEN_S, abs=0.2)
    assert group_of(machine.state).present_load == pytest.approx(1.0, rel=0.01)


@scaled(20)
@given(
    shared=st.integers(500, 6000),
    shares=st.tuples(st.floats(0.2, 3), st.floats(0.2, 3)),
    seed=st.integers(0, 2**16),
)
def test_disks_that_vary_while_their_sum_is_constant(
    shared: int, shares: tuple[float, float], seed: int
) -> None:
    """One that uses less than half of what each may get is not said to wait for the others."""
    loads = dict(zip(("vda", "vdb"), (0.6 + share for share in shares), strict=True))
    machine = Machine(
        *DISKS, settings=settings_of(of_own(shared), dict.fromkeys(loads, of_own(9000)))
    )
    limiter = SharedLimiter(machine, dict.fromkeys(loads, 9000.0), shared, seed)
    varied = Random(seed)
    for _ in range(WINDOWS):
        limiter.serve(
            {
                each: int(shared / 10 * load * varied.uniform(0.8, 1.2))
                for each, load in loads.items()
            }
        )
    for device, load in loads.items():
        found = limits_of(machine.state, device)
        assert found.keys() <= {"machine_iops"}
        if load > 0.4 * sum(loads.values()):
            assert found["machine_iops"] > 0.9 * SEEN_S
        assert "below" not in verdicts_of(machine.state, device)


def test_disk_at_its_own_limit_is_throttled_by_that() -> None:
    """Both limits are reached at the same time: that of the disk is named."""
    own = {"vda": of_own(800), "vdb": of_own(9000)}
    machine = Machine(*DISKS, settings=settings_of(of_own(2000), own))
    limiter = SharedLimiter(machine, {"vda": 800.0, "vdb": 9000.0}, 2000)
    for _ in range(WINDOWS):
        limiter.serve({"vda": 400, "vdb": 60})
    assert limits_of(machine.state, "vda").keys() == {"iops"}
    assert limits_of(machine.state, "vdb") == {}


@pytest.mark.parametrize(
    ("own", "shared", "expected"),
    [(2060, 2000, "machine_iops"), (2000, 2060, "iops"), (2000, 2000, "iops")],
)
def test_lower_of_two_near_limits_is_named(own: int, shared: int, expected: str) -> None:
    machine = Machine(*DISKS, settings=settings_of(of_own(shared), {"vda": of_own(own)}))
    limiter = SharedLimiter(machine, {"vda": float(own)}, shared)
    for _ in range(WINDOWS):
        limiter.serve({"vda": 400})
    assert limits_of(machine.state, "vda").keys() == {expected}


@scaled(10)
@given(seed=st.integers(0, 2**16))
def test_limits_of_their_own_are_never_called_those_of_the_machine(seed: int) -> None:
    """The negative control: together, the disks stay below the limit of the machine."""
    varied = Random(seed)
    rates = {name: varied.randrange(400, 1500, 10) for name in ("vda", "vdb")}
    own = {name: of_own(rate) for name, rate in rates.items()}
    shared = sum(rates.values()) * 1.1
    machine = Machine(*DISKS, settings=settings_of(of_own(shared), own))
    limiter = SharedLimiter(machine, {name: float(rate) for name, rate in rates.items()}, shared)
    for _ in range(WINDOWS):
        limiter.serve(dict.fromkeys(rates, 400))
    for device in rates:
        assert limits_of(machine.state, device).keys() == {"iops"}
    assert group_of(machine.state).throttled_s == {"iops": 0.0, "bandwidth": 0.0}


@pytest.mark.parametrize("served", [1262, 1440])
def test_request_may_cost_both_iops_and_bandwidth_of_the_machine(served: int) -> None:
    """1,262 requests of 64 KiB per second by the constants of the block store, or 90 MiB/s."""
    rules = load_machine_rules("yandex")
    assert rules is not None
    entry = DiskEntry(match=DiskMatch(device="vda"), terms="yandex.network-ssd", size=960 * GIB)
    machine = Machine(
        *DISKS[:1], settings=Settings(disks=(entry,), machine=MachineSettings(vcpus=2))
    )
    choice = (MachineChoice(rules, None),)
    machine.state = reconfigured(machine.state, machine.state.settings, choice)
    limiter = SharedLimiter(machine, {"vda": 10_000.0}, served)
    for _ in range(WINDOWS):
        limiter.serve({"vda": 300}, size=65536)
    assert limits_of(machine.state, "vda").keys() == {"machine_bandwidth"}


BURSTING = SumTerms(iops=500, burst=SumBurst(iops=2000, iops_credits=10_000))


def test_credits_of_the_machine_outlive_a_restart() -> None:
    settings = settings_of(BURSTING, {"vda": of_own(9000)})
    machine = Machine(*DISKS, settings=settings)
    limiter = SharedLimiter(machine, {"vda": 9000.0}, 10_000)
    for _ in range(30):
        limiter.serve({"vda": 150})
    (before,) = group_of(machine.state).credits
    saved = to_saved_state(machine.state, "this machine", "this boot")
    assert saved is not None
    later = Machine(settings=settings)
    later.now_s, later.disks = machine.now_s, DISKS
    later.numbers = machine.numbers
    later.state = State(machine.state.configuration, PreviousRun(saved, "this boot"))
    later.tick(disks=DISKS)
    (level,) = group_of(later.state).credits
    assert level.upper_credits == pytest.approx(before.upper_credits, abs=200)
    assert level.upper_credits < level.capacity_credits - 1000
    without = msgspec.structs.replace(saved, groups={})
    later.state = State(machine.state.configuration, PreviousRun(without, "this boot"))
    later.tick(disks=DISKS)
    (level,) = group_of(later.state).credits
    assert level.upper_credits == level.capacity_credits


def test_limits_without_a_burst_have_no_credits_to_save() -> None:
    machine = Machine(*DISKS, settings=settings_of(of_own(2000), {"vda": of_own(9000)}))
    SharedLimiter(machine, {"vda": 9000.0}, 2000).serve({"vda": 400})
    saved = to_saved_state(machine.state, "this machine", "this boot")
    assert saved is None or saved.groups == {}


def test_idle_time_fills_the_credits_of_the_machine() -> None:
    machine = Machine(*DISKS, settings=settings_of(BURSTING, {"vda": of_own(9000)}))
    limiter = SharedLimiter(machine, {"vda": 9000.0}, 10_000)
    for _ in range(30):
        limiter.serve({"vda": 200})
    (before,) = group_of(machine.state).credits
    limiter.serve({"vda": 0})
    for _ in range(20):
        machine.tick()
    (after,) = group_of(machine.state).credits
    assert after.lower_credits == pytest.approx(before.lower_credits + 2.1 * 500, abs=60)
    assert group_of(machine.state).totals.load.count == 51


def test_disk_that_vanishes_leaves_a_gap_in_the_group() -> None:
    own = {"vda": of_own(9000), "vdb": of_own(9000)}
    machine = Machine(*DISKS, settings=settings_of(BURSTING, own))
    limiter = SharedLimiter(machine, {"vda": 9000.0, "vdb": 9000.0}, 10_000)
    for _ in range(20):
        limiter.serve({"vda": 150, "vdb": 20})
    (before,) = group_of(machine.state).credits
    lines = [line for line in machine.text().splitlines(keepends=True) if " vdb " not in line]
    machine.tick(text="".join(lines))
    (after,) = group_of(machine.state).credits
    assert after.upper_credits >= before.upper_credits
    assert after.lower_credits <= before.lower_credits
    assert machine.state.groups["custom"].window_verdict is None


def test_late_sample_is_a_gap_of_the_group_whose_requests_count() -> None:
    machine = Machine(*DISKS, settings=settings_of(BURSTING, {"vda": of_own(9000)}))
    limiter = SharedLimiter(machine, {"vda": 9000.0}, 10_000)
    for _ in range(20):
        limiter.serve({"vda": 150})
    (before,) = group_of(machine.state).credits
    machine.does("vda", reads=4000, read_sectors=32_000, read_ms=800)
    machine.tick(after_s=2.0)
    (after,) = group_of(machine.state).credits
    assert after.upper_credits == pytest.approx(before.upper_credits - 4000 + 1000, abs=100)
    assert machine.state.groups["custom"].window_verdict is None


def test_reload_keeps_totals_of_the_group_and_credits_of_the_same_burst() -> None:
    machine = Machine(*DISKS, settings=settings_of(BURSTING, {"vda": of_own(9000)}))
    limiter = SharedLimiter(machine, {"vda": 9000.0}, 10_000)
    for _ in range(20):
        limiter.serve({"vda": 150})
    (before,) = group_of(machine.state).credits
    reloaded = reconfigured(machine.state, settings_of(BURSTING, {"vdb": of_own(9000)}))
    assert group_of(reloaded).totals.load.count == 20
    assert group_of(reloaded).credits[0].upper_credits == pytest.approx(before.upper_credits)
    other = reconfigured(machine.state, settings_of(of_own(2000), {"vda": of_own(9000)}))
    assert group_of(other).credits == ()
    without = reconfigured(machine.state, settings_of(None, {"vda": of_own(9000)}))
    assert Snapshot(without).groups == ()
    assert reconfigured(without, settings_of(None, {})).groups == {}


def cached(caching: str | None) -> DiskEntry:
    return DiskEntry(
        match=DiskMatch(device="vda"),
        terms="azure.premium-ssd",
        size=1024 * GIB,
        caching=caching,  # type: ignore[arg-type]
    )


def azure(caching: str | None, name: str = "Standard_D4s_v3") -> Machine:
    """Return a machine with 6,400 uncached IOPS, which has a disk of 5,000."""
    rules = load_machine_rules("azure")
    assert rules is not None
    settings = Settings(disks=(cached(caching),))
    machine = Machine(*DISKS[:1], settings=settings)
    choice = MachineChoice(rules, find_machine(rules, read_table(rules), name))
    machine.state = reconfigured(machine.state, settings, (choice,))
    return machine


def hits_and_writes(machine: Machine, hits: list[int], writes: int) -> None:
    """Read from the cache of the host, and write as much as the machine lets pass."""
    for number in hits:
        machine.does(
            "vda",
            reads=number,
            read_sectors=number * 8,
            read_ms=number // 10,
            writes=writes,
            written_sectors=writes * 8,
            write_ms=3200,
            inflight=32,
        )
        machine.tick()


@pytest.mark.parametrize(
    ("caching", "groups"),
    [
        (None, ["uncached"]),
        ("none", ["uncached"]),
        ("read-only", ["cached", "uncached"]),
        ("read-write", ["cached", "uncached"]),
    ],
)
def test_limit_of_the_cache_is_over_disks_that_are_cached(
    caching: str | None, groups: list[str]
) -> None:
    assert sorted(azure(caching).state.groups) == groups


@pytest.mark.parametrize(("caching", "expected"), [("read-only", {"machine_iops"}), (None, set())])
def test_reads_from_the_cache_of_the_host_do_not_count(
    caching: str | None, expected: set[str]
) -> None:
    """The writes are at the limit of the machine, and the sum with the hits varies above it."""
    machine = azure(caching)
    varied = Random(1)
    hits_and_writes(machine, [varied.randrange(300, 1000) for _ in range(WINDOWS)], 640)
    found = limits_of(machine.state, "vda").keys()
    assert {limit for limit in found if limit.startswith("machine")} == expected


def test_credits_of_a_machine_with_a_cache_are_a_range_of_both_ends() -> None:
    """All requests use the credits of Standard_B12ms, or only those that reach the disk."""
    upper, lower = {}, {}
    for caching in ("none", "read-only", None):
        machine = azure(caching, "Standard_B12ms")
        hits_and_writes(machine, [300] * 30, 700)
        (uncached,) = [
            group for group in Snapshot(machine.state).groups if group.shared.name == "uncached"
        ]
        level = uncached.credits[0]
        upper[caching], lower[caching] = level.upper_credits, level.lower_credits
    assert upper["none"] < upper["read-only"] < upper[None]
    assert upper["read-only"] - upper["none"] == pytest.approx(30 * 300, rel=0.1)


def test_disks_of_a_type_that_shares_its_limits_are_a_group() -> None:
    """Two Balanced Persistent Disks of 100 GiB have the 4,200 IOPS of 200 GiB together."""
    entries = tuple(
        DiskEntry(match=DiskMatch(device=name), terms="gcp.pd-balanced") for name in ("vda", "vdb")
    )
    machine = Machine(*DISKS, settings=Settings(disks=entries))
    assignments = [machine.state.monitored[name].assignment for name in ("vda", "vdb")]
    assert [each.limits.rates.read_iops for each in assignments] == [4200, 4200]
    assert "share the limits of 200 GiB" in assignments[0].reason
    limiter = SharedLimiter(machine, {"vda": 9000.0, "vdb": 9000.0}, 4200)
    varied = Random(2)
    for _ in range(WINDOWS):
        limiter.serve({"vda": varied.randrange(150, 400), "vdb": varied.randrange(300, 400)})
    for device in ("vda", "vdb"):
        assert limits_of(machine.state, device).keys() == {"iops"}
        assert limits_of(machine.state, device)["iops"] > 0.9 * SEEN_S
        assert "below" not in verdicts_of(machine.state, device)
    assert Snapshot(machine.state).groups == ()


def test_size_in_the_configuration_is_the_total() -> None:
    entries = tuple(
        DiskEntry(match=DiskMatch(device=name), terms="gcp.pd-balanced", size=500 * GIB)
        for name in ("vda", "vdb")
    )
    machine = Machine(*DISKS, settings=Settings(disks=entries))
    assert machine.state.groups == {}
    assert machine.state.monitored["vda"].assignment.limits.rates.read_iops == 6000


@scaled(40)
@given(
    level=st.floats(0, 1),
    demands=st.lists(
        st.tuples(st.integers(0, 400), st.integers(0, 60), st.integers(1, 15)),
        min_size=2,
        max_size=12,
    ),
)
def test_bounds_of_credits_contain_the_level_of_a_bucket_that_disks_share(
    level: float, demands: list[tuple[int, int, int]]
) -> None:
    """The bucket of 3,000 I/Os gets 500 per second, and lets at most 2,000 per second pass."""
    capacity, base, peak = 3000.0, 50.0, 200.0
    tokens = level * capacity
    terms = SumTerms(iops=500, burst=SumBurst(iops=2000, iops_credits=capacity))
    own = {"vda": of_own(9000), "vdb": of_own(9000)}
    machine = Machine(*DISKS, settings=settings_of(terms, own))
    limiter = SharedLimiter(machine, {"vda": 9000.0, "vdb": 9000.0}, 0)
    for deep, quiet, windows in demands:
        for _ in range(windows):
            limiter.shared = 10 * int(min(peak, tokens + base))
            before = _requests(machine)
            limiter.serve({"vda": deep, "vdb": quiet})
            tokens = min(capacity, max(0.0, tokens + base - (_requests(machine) - before)))
            (credits_now,) = group_of(machine.state).credits
            slack = 2 * base
            assert credits_now.lower_credits - slack <= tokens <= credits_now.upper_credits + slack


def _requests(machine: Machine) -> int:
    return sum(machine.numbers[name]["reads"] for name in ("vda", "vdb"))


def test_limits_of_the_disks_may_add_up_to_that_of_the_machine() -> None:
    """The sum is constant at the limit of the machine, which throttles none of the disks."""
    own = {"vda": of_own(400), "vdb": of_own(100)}
    machine = Machine(*DISKS, settings=settings_of(BURSTING, own))
    limiter = SharedLimiter(machine, {"vda": 400.0, "vdb": 100.0}, 10_000)
    for _ in range(WINDOWS):
        limiter.serve({"vda": 200, "vdb": 200})
    assert limits_of(machine.state, "vda").keys() == {"iops"}
    assert limits_of(machine.state, "vdb").keys() == {"iops"}
    group = group_of(machine.state)
    assert group.throttled_s == {"iops": 0.0, "bandwidth": 0.0}
    assert group.credits[0].upper_credits > 9000  # the machine may have all of them


def excluded_beside(
    *disks: Disk, own: dict[str, SumTerms] | None = None, shared: int = 2000
) -> Machine:
    """Return a machine of which only those disks are monitored that have terms."""
    own = own or {"vda": of_own(9000)}
    discovery = DiscoverySettings(exclude=(DevicePattern.parse("."),))
    settings = settings_of(of_own(shared), own, discovery=discovery)
    return Machine(*disks, settings=settings)


@scaled(10)
@given(seed=st.integers(0, 2**16))
def test_verdicts_are_the_same_whether_the_other_disk_is_monitored(seed: int) -> None:
    varied = Random(seed)
    wanted = [(varied.randrange(0, 300), varied.randrange(0, 300)) for _ in range(30)]

    def throttled(machine: Machine) -> tuple[dict[str, float], tuple[int, ...]]:
        limiter = SharedLimiter(machine, {"vda": 9000.0, "vdb": 9000.0}, 2000, seed)
        for first, second in wanted:
            limiter.serve({"vda": first, "vdb": second})
        return limits_of(machine.state, "vda"), group_of(machine.state).totals.load.counts

    own = {"vda": of_own(9000), "vdb": of_own(9000)}
    both = throttled(Machine(*DISKS, settings=settings_of(of_own(2000), own)))
    assert throttled(excluded_beside(*DISKS)) == both


@pytest.mark.parametrize(
    "other",
    [
        a_disk("dm-0", 16, slaves=("vda",)),
        a_disk("vda1", 1, partition_of="vda"),
        a_disk("vdb", 16, is_local=True),
        a_disk("loop0", 16),
        a_disk("vdb", 16, hidden=True),
    ],
    ids=["stacked", "partition", "local", "loop", "hidden"],
)
def test_io_that_does_not_reach_the_limit_or_is_counted_already(other: Disk) -> None:
    machine = excluded_beside(DISKS[0], other)
    for _ in range(5):
        machine.does("vda", reads=100)
        machine.does(other.name, reads=100)
        machine.tick()
    assert machine.state.groups["custom"].counted == ("vda",)
    assert machine.state.others == {}
    assert group_of(machine.state).present_load == pytest.approx(5 * 100 / 1.0 / 2000)


def test_stacked_disk_that_is_monitored_is_judged_by_the_disk_below_it() -> None:
    """Its requests are counted at the disk below, together with those that are not its own."""
    lvm = a_disk("dm-0", 16, slaves=("vda",))
    machine = excluded_beside(DISKS[0], lvm, own={"dm-0": of_own(9000)})
    for _ in range(WINDOWS):
        for name, reads in (("dm-0", 150), ("vda", 200)):
            machine.does(name, reads=reads, read_sectors=8 * reads, read_ms=1600, inflight=16)
        machine.tick()
    group = machine.state.groups["custom"]
    assert (group.devices, group.counted) == (("dm-0",), ("vda",))
    assert group_of(machine.state).present_load == pytest.approx(1.0)
    assert limits_of(machine.state, "dm-0").keys() == {"machine_iops"}


def test_verdict_without_io_of_the_disk_below() -> None:
    """The kernel counted requests of a stacked disk, and has not yet sent them on."""
    lvm = a_disk("dm-0", 16, slaves=("vda",))
    machine = excluded_beside(DISKS[0], lvm, own={"dm-0": of_own(9000)})
    for _ in range(12):
        machine.does("dm-0", reads=10, read_ms=10)
        machine.tick()
    assert group_of(machine.state).present_load == 0.0
    assert verdicts_of(machine.state, "dm-0") == {"unproven": pytest.approx(0.8)}


def test_disk_that_appears_is_counted_from_its_second_sample() -> None:
    machine = excluded_beside(DISKS[0])
    machine.disks = DISKS[:2]
    machine.numbers["vdb"] = dict.fromkeys(FIELDS, 10**6)
    machine.tick(disks=DISKS[:2])
    machine.does("vdb", reads=100)
    machine.tick()
    assert machine.state.groups["custom"].counted == ("vda", "vdb")
    assert group_of(machine.state).present_load == pytest.approx(0.05)
    machine.tick(disks=DISKS[:2])
    assert machine.state.others["vdb"].reading is not None
    machine.disks = DISKS[:1]
    machine.tick(disks=DISKS[:1])
    assert machine.state.others == {}


def test_malformed_line_of_a_disk_that_is_not_monitored_is_a_gap_of_the_group() -> None:
    machine = excluded_beside(*DISKS)
    machine.does("vda", reads=100)
    machine.tick()
    loaded = sum(group_of(machine.state).totals.load.counts)
    machine.tick(text=machine.text().replace(" vdb 0 ", " vdb x "))
    assert sum(group_of(machine.state).totals.load.counts) == loaded
    assert machine.state.sampler_stats.problems.keys() == {"diskstats:vdb"}
    assert machine.state.monitored["vda"].is_listed


def test_disk_that_is_not_monitored_needs_no_iowait() -> None:
    machine = excluded_beside(*DISKS)
    machine.does("vdb", reads=100)
    machine.tick()
    assert machine.state.active == {"vdb"}
    assert not needs_host_wait(machine.state)


@pytest.mark.parametrize(
    ("volume", "counted"),
    [
        ({"is_local": False}, ("vda", "vdb")),
        ({"is_local": None}, ("vda",)),
        ({"is_local": True}, ("vda",)),
    ],
)
def test_volume_of_unknown_type_counts_where_the_machine_has_one_limit(
    volume: dict[str, bool | None], counted: tuple[str, ...]
) -> None:
    rules = load_machine_rules("aws")
    assert rules is not None
    machines = (MachineChoice(rules, find_machine(rules, read_table(rules), "m6i.large")),)
    entry = DiskEntry(match=DiskMatch(device="vda"), terms="aws.gp3")
    machine = Machine(DISKS[0], a_disk("vdb", 16, **volume), settings=Settings(disks=(entry,)))
    machine.state = reconfigured(machine.state, machine.state.settings, machines)
    machine.tick()
    assert machine.state.groups["ebs"].counted == counted


def test_disk_that_the_limit_of_the_machine_is_not_over() -> None:
    """Nothing says that it is local: the configuration has to."""
    own = {"vda": of_own(9000), "vdc": of_own(9000)}
    machine = excluded_beside(*DISKS, own=own)
    settings = machine.state.settings
    without = msgspec.structs.replace(settings.machine, exclude=(DevicePattern.parse("^vd[bc]$"),))
    machine.state = reconfigured(machine.state, msgspec.structs.replace(settings, machine=without))
    for device in ("vda", "vdb", "vdc"):
        machine.does(device, reads=100)
    machine.tick()
    group = machine.state.groups["custom"]
    assert (group.devices, group.counted) == (("vda",), ("vda",))
    assert group_of(machine.state).present_load == pytest.approx(100 / 2000)


def test_disk_that_uses_less_than_its_share_is_not_throttled_by_the_machine() -> None:
    own = {"vda": of_own(9000), "vdb": of_own(9000)}
    machine = Machine(*DISKS, settings=settings_of(of_own(2000), own))
    limiter = SharedLimiter(machine, {"vda": 9000.0, "vdb": 9000.0}, 2000)
    for _ in range(WINDOWS):
        limiter.serve({"vda": 400, "vdb": 20})
    assert limits_of(machine.state, "vda").keys() == {"machine_iops"}
    assert not limits_of(machine.state, "vdb")

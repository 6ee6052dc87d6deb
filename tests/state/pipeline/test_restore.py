"""Saving a disk, and restoring it in a later daemon."""

import msgspec
import pytest

from disksla.kernel.disks.disk import Disk
from disksla.promise.catalogue.limits import Assignment
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms
from disksla.promise.configuration.matching import assign
from disksla.promise.configuration.settings import DiskEntry, Settings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.disk_state import DiskState
from disksla.state.pipeline.probe_results import ProbeResult
from disksla.state.pipeline.restore import PreviousRun, restore_disk, save_disk
from disksla.state.pipeline.saved_state import SavedState
from disksla.state.pipeline.state import State, to_saved_state
from disksla.state.pipeline.tick import Tick
from disksla.verdict.credits.account import CreditAccount
from disksla.verdict.interval.interval import Clocks
from disksla.verdict.throttling.throttle import Ceiling, Throttle
from disksla.verdict.throttling.verdict import DetectorState
from support.simulated_host import CATALOG, Machine, a_disk, reconfigured

BURST = SumBurst(iops=2000.0, iops_credits=8000.0)
DISK = a_disk(serial="vol-1")
BOOT = "a7f0f4d0"


def settings(burst: SumBurst | None = BURST, terms: str | None = None) -> Settings:
    disk_terms = terms or SumTerms(iops=300.0, burst=burst)
    return Settings(disks=(DiskEntry(match=DiskMatch(device="vda"), terms=disk_terms),))


def idle_machine(disk: Disk = DISK) -> Machine:
    """Return a machine whose disk has been idle for long enough for tight bounds of credits."""
    machine = Machine(disk, settings=settings())
    for _ in range(2):
        machine.does(disk.name, reads=1)
        machine.tick()
    machine.now_s += 100.0
    machine.tick()
    return machine


def disk_state(machine: Machine) -> DiskState:
    return machine.state.monitored["vda"]


def bounds(account: CreditAccount | None) -> tuple[float, float]:
    assert account is not None
    (credit,) = account.bucket_credits
    return credit.lower_credits, credit.upper_credits


def saved_by(machine: Machine) -> SavedState:
    saved = to_saved_state(machine.state, "machine", BOOT)
    assert saved is not None
    return saved


def later(machine: Machine, seconds: float) -> Clocks:
    return Clocks(*(clock + seconds for clock in msgspec.structs.astuple(machine.clocks())))


def restored(
    machine: Machine,
    after_s: float = 1.0,
    disk: Disk = DISK,
    assignment: Assignment | None = None,
    boot: str = BOOT,
) -> DiskState:
    previous_run = PreviousRun(saved_by(machine), boot)
    return restore_disk(
        previous_run, disk, assignment or disk_state(machine).assignment, later(machine, after_s)
    )


def test_credits_are_restored() -> None:
    machine = idle_machine()
    lower, _ = bounds(disk_state(machine).credits_at(machine.clocks().boottime_s))
    assert lower > 7900
    restored_lower, restored_upper = bounds(restored(machine, after_s=1.0).credits)
    assert restored_lower == pytest.approx(lower - 2000, abs=100)
    assert restored_upper == 8000


def test_bounds_widen_by_clock_error_across_boots() -> None:
    assert bounds(restored(idle_machine(), 1.0, boot="another").credits) == (0.0, 8000.0)


def test_disk_without_serial_and_wwn_is_not_saved() -> None:
    anonymous = a_disk()
    machine = idle_machine(anonymous)
    assert save_disk(disk_state(machine), machine.clocks()) is None
    assert to_saved_state(machine.state, "machine", BOOT) is None
    assert restored(idle_machine(), disk=anonymous).credits is None


def test_disk_with_wwn_is_restored() -> None:
    disk = a_disk(wwn="naa.5000c5")
    assert bounds(restored(idle_machine(disk), disk=disk).credits)[0] > 5000


def test_other_disk_or_other_terms_are_not_restored() -> None:
    machine = idle_machine()
    assert restored(machine, disk=a_disk(serial="vol-2")).credits is None
    assignment = msgspec.structs.replace(disk_state(machine).assignment, terms="generic.ssd")
    assert restored(machine, assignment=assignment).credits is None


def test_nothing_is_restored_without_state_or_clock() -> None:
    assignment = disk_state(idle_machine()).assignment
    fresh = DiskState(disk=DISK, assignment=assignment)
    assert restore_disk(None, DISK, assignment, later(idle_machine(), 1.0)) == fresh
    assert (
        restore_disk(PreviousRun(saved_by(idle_machine()), BOOT), DISK, assignment, None) == fresh
    )


def test_new_bucket_starts_unknown() -> None:
    machine = idle_machine()
    both = SumBurst(
        iops=2000.0, iops_credits=8000.0, bytes_per_second=60e6, credit_bytes=100_000_000
    )
    terms = SumTerms(iops=300.0, bytes_per_second=25e6, burst=both)
    other = Settings(disks=(DiskEntry(match=DiskMatch(device="vda"), terms=terms),))
    assignment = reconfigured(machine.state, other).monitored["vda"].assignment
    account = restored(machine, assignment=assignment).credits
    assert account is not None
    iops, nbytes = account.bucket_credits
    assert iops.lower_credits > 5000
    assert (nbytes.lower_credits, nbytes.upper_credits) == (0.0, 100e6)


def test_removed_burst_has_no_credits() -> None:
    machine = idle_machine()
    assignment = reconfigured(machine.state, settings(None)).monitored["vda"].assignment
    assert restored(machine, assignment=assignment).credits is None


def test_ceiling_is_restored() -> None:
    ceiling = Ceiling(Throttle("base", "iops"), 300.5, 300.5 * 4096)
    machine = Machine(DISK, settings=settings(terms="vk.ceph-ssd"))
    throttled = msgspec.structs.replace(
        disk_state(machine), detector=DetectorState(ceiling=ceiling)
    )
    machine.state = msgspec.structs.replace(machine.state, monitored={"vda": throttled})
    later_disk = restored(machine)
    assert later_disk.credits is None
    assert later_disk.detector.ceiling is not None
    assert later_disk.detector.ceiling.iops == 300.5
    assert later_disk.detector.ceiling.bytes_per_second == 300.5 * 4096
    assert later_disk.detector.ceiling.throttle == Throttle("unknown", "unknown")


def test_disk_without_credits_and_ceiling_is_not_saved() -> None:
    machine = Machine(DISK, settings=settings(terms="vk.ceph-ssd"))
    machine.tick()
    assert save_disk(disk_state(machine), machine.clocks()) is None


def test_nothing_is_saved_before_first_sample() -> None:
    assert to_saved_state(State(Machine().state.configuration), "machine", BOOT) is None


def test_saved_credits_include_the_last_idle_time() -> None:
    machine = Machine(DISK, settings=settings())
    machine.does("vda", reads=1)
    machine.tick()
    early = saved_by(machine).disks["serial:vol-1"].credits["iops"]
    for _ in range(50):
        machine.tick()
    late = saved_by(machine).disks["serial:vol-1"].credits["iops"]
    assert late.lower_credits == pytest.approx(early.lower_credits + 1500, abs=100)


def test_saved_credits_of_unlisted_disk_are_lower() -> None:
    machine = idle_machine()
    before = saved_by(machine).disks["serial:vol-1"].credits["iops"]
    for _ in range(11):
        machine.tick(text="")
    after = saved_by(machine).disks["serial:vol-1"].credits["iops"]
    assert after.lower_credits <= before.lower_credits - 1700


def test_saved_state_has_machine_boot_and_clocks() -> None:
    machine = idle_machine()
    saved = saved_by(machine)
    assert (saved.machine, saved.boot, saved.clocks) == ("machine", BOOT, machine.clocks())
    assert saved.disks["serial:vol-1"].terms == disk_state(machine).assignment.terms


def run_probe(machine: Machine, nbytes: int = 4096) -> None:
    """Add the result of a probe that used this many bytes."""
    clocks = machine.clocks()
    result = ProbeResult(
        device="vda",
        kind="read-latency",
        timestamp_s=clocks.realtime_s,
        requests=1,
        transferred_bytes=nbytes,
        spent_bytes=nbytes,
    )
    machine.take(Tick(clocks, machine.text(), probes=(result,)))


def test_daily_budget_of_probes_is_restored() -> None:
    machine = idle_machine()
    run_probe(machine)
    run_probe(machine)
    now = later(machine, 60.0)
    other_terms = assign(DISK, settings(terms="vk.ceph-ssd"), CATALOG)
    for assignment in (disk_state(machine).assignment, other_terms):
        disk = restore_disk(PreviousRun(saved_by(machine), BOOT), DISK, assignment, now)
        totals = disk.probes["read-latency"]
        assert totals.spent_bytes(now.realtime_s) == 8192
        assert totals.spent_bytes(now.realtime_s + 86400) == 0
        assert totals.runs == 0
        assert not totals.is_used


def test_budget_is_saved_for_disk_without_credits() -> None:
    machine = Machine(DISK)
    assert to_saved_state(machine.state, "machine", BOOT) is None
    run_probe(machine)
    saved = saved_by(machine)
    assert saved.disks["serial:vol-1"].probes["read-latency"].bytes == 4096

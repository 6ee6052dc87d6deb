"""What one daemon leaves to the next."""

import msgspec
import pytest

from disksla.config.custom_terms import SumBurst, SumTerms
from disksla.config.matching import assign
from disksla.config.settings import DiskEntry, DiskMatch, Settings
from disksla.credits.account import CreditAccount
from disksla.disks.disk import Disk
from disksla.limits.assignment import Assignment
from disksla.pipeline.advance import configure
from disksla.pipeline.disk_state import DiskState
from disksla.pipeline.probe_results import ProbeResult
from disksla.pipeline.restore import PreviousRun, restore_disk, save_disk
from disksla.pipeline.saved_state import SavedState
from disksla.pipeline.state import State, to_saved_state
from disksla.pipeline.tick import Tick
from disksla.verdict.interval import Clocks
from disksla.verdict.throttling import Throttle
from disksla.verdict.verdict import Ceiling, DetectorState
from support.simulated_host import CATALOG, Machine, a_disk

BURST = SumBurst(iops=2000.0, iops_credits=8000.0)
DISK = a_disk(serial="vol-1")
BOOT = "a7f0f4d0"


def settings(burst: SumBurst | None = BURST, terms: str | None = None) -> Settings:
    contract = terms or SumTerms(iops=300.0, burst=burst)
    return Settings(disks=(DiskEntry(match=DiskMatch(device="vda"), terms=contract),))


def rested(disk: Disk = DISK, **told: object) -> Machine:
    """Give a machine whose disk has rested for so long that its credits are known."""
    machine = Machine(disk, settings=settings(), **told)  # type: ignore[arg-type]
    for _ in range(2):
        machine.does(disk.name, reads=1)
        machine.tick()
    machine.now_s += 100.0
    machine.tick()
    return machine


def watched(machine: Machine) -> DiskState:
    return machine.state.monitored["vda"]


def bounds(account: CreditAccount | None) -> tuple[float, float]:
    assert account is not None
    (content,) = account.bucket_credits
    return content.lower_credits, content.upper_credits


def saved_by(machine: Machine) -> SavedState:
    saved = to_saved_state(machine.state, "machine", BOOT)
    assert saved is not None
    return saved


def later(machine: Machine, seconds: float) -> Clocks:
    return Clocks(*(clock + seconds for clock in msgspec.structs.astuple(machine.clocks())))


def remembered(
    machine: Machine,
    after_s: float = 1.0,
    disk: Disk = DISK,
    assignment: Assignment | None = None,
    boot: str = BOOT,
) -> DiskState:
    previous_run = PreviousRun(saved_by(machine), boot)
    return restore_disk(
        previous_run, disk, assignment or watched(machine).assignment, later(machine, after_s)
    )


def test_credits_outlive_the_daemon() -> None:
    machine = rested()
    lower, _ = bounds(watched(machine).credits_at(machine.clocks().boottime_s))
    assert lower > 7900
    again_lower, again_upper = bounds(remembered(machine, after_s=1.0).credits)
    assert again_lower == pytest.approx(lower - 2000, abs=100)
    assert again_upper == 8000


def test_the_longer_nobody_looked_the_less_is_known() -> None:
    machine = rested()
    lowers = [bounds(remembered(machine, after_s).credits)[0] for after_s in (0.0, 1.0, 3.0, 10.0)]
    assert lowers == sorted(lowers, reverse=True)
    assert lowers[0] > 7800
    assert lowers[-1] == 0.0


def test_another_boot_leaves_a_doubt_about_the_time_between() -> None:
    assert bounds(remembered(rested(), 1.0, boot="another").credits) == (0.0, 8000.0)


def test_without_serial_and_wwn_a_disk_is_not_known_again() -> None:
    nameless = a_disk()
    machine = rested(nameless)
    assert save_disk(watched(machine), machine.clocks()) is None
    assert to_saved_state(machine.state, "machine", BOOT) is None
    assert remembered(rested(), disk=nameless).credits is None


def test_a_wwn_is_as_good() -> None:
    disk = a_disk(wwn="naa.5000c5")
    assert bounds(remembered(rested(disk), disk=disk).credits)[0] > 5000


def test_nothing_is_remembered_of_another_disk_or_of_other_terms() -> None:
    machine = rested()
    assert remembered(machine, disk=a_disk(serial="vol-2")).credits is None
    assignment = msgspec.structs.replace(watched(machine).assignment, terms="generic.ssd")
    assert remembered(machine, assignment=assignment).credits is None


def test_nothing_is_remembered_where_nothing_is_known() -> None:
    assignment = watched(rested()).assignment
    fresh = DiskState(DISK, assignment)
    assert restore_disk(None, DISK, assignment, later(rested(), 1.0)) == fresh
    assert restore_disk(PreviousRun(saved_by(rested()), BOOT), DISK, assignment, None) == fresh


def test_a_bucket_of_another_size_begins_anew() -> None:
    smaller = SumBurst(iops=2000.0, iops_credits=5000.0)
    machine = rested()
    state = configure(machine.state, settings(smaller))
    assignment = state.monitored["vda"].assignment
    assert bounds(remembered(machine, assignment=assignment).credits) == (0.0, 5000.0)


def test_a_bucket_that_was_not_there_begins_anew() -> None:
    machine = rested()
    both = SumBurst(
        iops=2000.0, iops_credits=8000.0, bytes_per_second=60e6, credit_bytes=100_000_000
    )
    contract = SumTerms(iops=300.0, bytes_per_second=25e6, burst=both)
    other = Settings(disks=(DiskEntry(match=DiskMatch(device="vda"), terms=contract),))
    assignment = configure(machine.state, other).monitored["vda"].assignment
    account = remembered(machine, assignment=assignment).credits
    assert account is not None
    iops, nbytes = account.bucket_credits
    assert iops.lower_credits > 5000
    assert (nbytes.lower_credits, nbytes.upper_credits) == (0.0, 100e6)


def test_a_burst_that_is_no_more_leaves_no_credits() -> None:
    machine = rested()
    assignment = configure(machine.state, settings(None)).monitored["vda"].assignment
    assert remembered(machine, assignment=assignment).credits is None


def test_the_ceiling_outlives_the_daemon() -> None:
    ceiling = Ceiling(Throttle("base", "iops"), 100, 10.0, 3000, 3000 * 4096)
    machine = Machine(DISK, settings=settings(terms="vk.ceph-ssd"))
    held = msgspec.structs.replace(watched(machine), detector=DetectorState(ceiling=ceiling))
    machine.state = msgspec.structs.replace(machine.state, monitored={"vda": held})
    again = remembered(machine)
    assert again.credits is None
    assert again.detector.ceiling is not None
    assert again.detector.ceiling.iops == 300
    assert again.detector.ceiling.bytes_per_second == 300 * 4096
    assert again.detector.ceiling.throttle == Throttle("unknown", "unknown")


def test_of_a_disk_of_which_nothing_was_learned_nothing_is_left() -> None:
    machine = Machine(DISK, settings=settings(terms="vk.ceph-ssd"))
    machine.tick()
    assert save_disk(watched(machine), machine.clocks()) is None


def test_before_the_first_sample_there_is_nothing_to_save() -> None:
    assert to_saved_state(State(Settings(), Machine().state.catalog), "machine", BOOT) is None


def test_the_rest_up_to_the_end_is_saved() -> None:
    machine = Machine(DISK, settings=settings())
    machine.does("vda", reads=1)
    machine.tick()
    early = saved_by(machine).disks["serial:vol-1"].credits["iops"]
    for _ in range(50):
        machine.tick()
    late = saved_by(machine).disks["serial:vol-1"].credits["iops"]
    assert late.lower_credits == pytest.approx(early.lower_credits + 1500, abs=100)


def test_of_a_disk_that_is_out_of_sight_less_is_left() -> None:
    machine = rested()
    before = saved_by(machine).disks["serial:vol-1"].credits["iops"]
    for _ in range(11):
        machine.tick(text="")
    after = saved_by(machine).disks["serial:vol-1"].credits["iops"]
    assert after.lower_credits <= before.lower_credits - 1700


def test_the_state_says_when_and_where_it_was_saved() -> None:
    machine = rested()
    saved = saved_by(machine)
    assert (saved.machine, saved.boot, saved.clocks) == ("machine", BOOT, machine.clocks())
    assert saved.disks["serial:vol-1"].terms == watched(machine).assignment.terms


def probed(machine: Machine, amount: int = 4096) -> None:
    """Let a probe spend something."""
    clocks = machine.clocks()
    outcome = ProbeResult(
        device="vda",
        kind="read-latency",
        timestamp_s=clocks.realtime_s,
        requests=1,
        transferred_bytes=amount,
        spent_bytes=amount,
    )
    machine.take(Tick(clocks, machine.text(), probes=(outcome,)))


def test_a_daemon_that_begins_anew_goes_on_with_the_allowance_of_the_day() -> None:
    machine = rested()
    probed(machine)
    probed(machine)
    now = later(machine, 60.0)
    other_terms = assign(DISK, settings(terms="vk.ceph-ssd"), CATALOG)
    for assignment in (watched(machine).assignment, other_terms):
        back = restore_disk(PreviousRun(saved_by(machine), BOOT), DISK, assignment, now)
        ledger = back.probes["read-latency"]
        assert ledger.spent_bytes(now.realtime_s) == 8192
        assert ledger.spent_bytes(now.realtime_s + 86400) == 0
        assert ledger.runs == 0
        assert not ledger.is_used


def test_what_probes_spent_is_kept_of_a_disk_without_credits_too() -> None:
    machine = Machine(DISK)
    assert to_saved_state(machine.state, "machine", BOOT) is None
    probed(machine)
    saved = saved_by(machine)
    assert saved.disks["serial:vol-1"].probes["read-latency"].bytes == 4096

import msgspec
from hypothesis import given

from disksla.metrics.status_line import status_line
from disksla.pipeline.snapshot import DiskSnapshot, SamplerSnapshot, Snapshot
from disksla.verdict.verdict import Verdict
from support.snapshots import ABOUT, IOPS_CREDITS, SAMPLER, unknown_disk_view, view, views

WELL = msgspec.structs.replace(SAMPLER, collectors={"diskstats": True})


def line(*disks: DiskSnapshot, sampler: SamplerSnapshot = WELL) -> str:
    return status_line(Snapshot(disks, sampler), ABOUT)


def disk(name: str, verdict: Verdict | None = None, *left: float) -> DiskSnapshot:
    levels = [
        msgspec.structs.replace(IOPS_CREDITS, estimate_credits=8000.0 * share) for share in left
    ]
    view = unknown_disk_view(name)
    return msgspec.structs.replace(view, verdict=verdict, credits=tuple(levels))


def test_where_all_is_well_there_is_little_to_say() -> None:
    assert line() == "0 disks watched"
    assert line(disk("vda")) == "1 disk watched"
    assert line(disk("vda", "idle"), disk("vdb", "met")) == "2 disks watched"


def test_disks_that_are_held_are_counted() -> None:
    told = line(
        *(disk("vda", "below"), disk("vdb", "throttled"), disk("vdc", "throttled")),
        *(disk("vdd", "stalled"), disk("vde", "unproven")),
    )
    assert told == ("5 disks watched, 2 throttled now, 1 below its promise now, 1 stalled now")


def test_the_disk_with_the_fewest_credits_is_named() -> None:
    told = line(disk("vda", "met", 0.5), disk("vdb", "met", 0.9, 0.125), disk("vdc", "met"))
    assert told == "3 disks watched, fewest burst credits: 12% on vdb"


def test_trouble_is_told() -> None:
    about = msgspec.structs.replace(ABOUT, reload_successful=False)
    assert status_line(view(), about) == (
        "0 disks watched; cannot be read: inflight;"
        " the configuration was refused, the one before is in force"
    )


@given(views)
def test_whatever_there_is_can_be_told(arbitrary: Snapshot) -> None:
    told = status_line(arbitrary, ABOUT)
    assert told.startswith(f"{len(arbitrary.disks)} disk")
    unreadable = [name for name, works in arbitrary.sampler.collectors.items() if not works]
    assert all(name in told for name in unreadable)

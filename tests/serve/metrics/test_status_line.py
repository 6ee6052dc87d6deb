"""Status line of `systemctl status`."""

import msgspec
from hypothesis import given

from disksla.serve.metrics.self_metrics import status_line
from disksla.state.pipeline.snapshot import DiskSnapshot, SamplerStats, Snapshot
from disksla.verdict.throttling.verdict import Verdict
from support.snapshots import (
    ABOUT,
    IOPS_CREDITS,
    SAMPLER,
    KnownSnapshot,
    changed,
    unknown_disk_view,
    view,
    views,
)

HEALTHY = msgspec.structs.replace(SAMPLER, problems={})


def line(*disks: DiskSnapshot, sampler: SamplerStats = HEALTHY) -> str:
    return status_line(KnownSnapshot(disks, sampler), ABOUT)


def disk(name: str, verdict: Verdict | None = None, *credit_shares: float) -> DiskSnapshot:
    levels = [
        msgspec.structs.replace(IOPS_CREDITS, estimate_credits=8000.0 * share)
        for share in credit_shares
    ]
    unknown = unknown_disk_view(name)
    return changed(unknown, verdict=verdict, credits=tuple(levels))


def test_number_of_monitored_disks() -> None:
    assert line() == "0 disks monitored"
    assert line(disk("vda")) == "1 disk monitored"
    assert line(disk("vda", "idle"), disk("vdb", "met")) == "2 disks monitored"


def test_problems_are_counted() -> None:
    text = line(
        *(disk("vda", "below"), disk("vdb", "throttled"), disk("vdc", "throttled")),
        *(disk("vdd", "stalled"), disk("vde", "unproven")),
    )
    assert text == "5 disks monitored, 2 throttled now, 1 below its promise now, 1 stalled now"


def test_lowest_credits_are_named() -> None:
    text = line(disk("vda", "met", 0.5), disk("vdb", "met", 0.9, 0.125), disk("vdc", "met"))
    assert text == "3 disks monitored, lowest burst credits: 12% on vdb"


def test_unreadable_sources_and_failed_reload() -> None:
    about = msgspec.structs.replace(ABOUT, reload_successful=False)
    assert status_line(view(), about) == (
        "0 disks monitored; cannot read: inflight;"
        " configuration reload failed, previous configuration in effect"
    )


@given(views)
def test_status_line_of_any_snapshot(arbitrary: Snapshot) -> None:
    text = status_line(arbitrary, ABOUT)
    assert text.startswith(f"{len(arbitrary.disks)} disk")
    unreadable = [name for name, works in arbitrary.sampler.collectors.items() if not works]
    assert all(name in text for name in unreadable)

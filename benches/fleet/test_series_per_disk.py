"""Series of a disk by its features and the profile, as documented in docs/fleet.md."""

import re
from collections.abc import Sequence
from pathlib import Path

from disksla.kernel.disks.disk import disk_key
from disksla.measure.verification.report import VerificationReport
from disksla.promise.configuration.settings import Profile
from disksla.serve.metrics.collector import PROFILES, SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline.snapshot import DiskSnapshot
from fleet.largest_disk import disks_by_feature, largest_disk, longest_report
from metrics_page import OF_DISKS
from support.snapshots import ABOUT, changed, view

PAGE = Path(__file__).parents[2] / "docs" / "fleet.md"
MOST_SERIES = 260
OF_SOME_DISKS = {
    *("disksla_probe_skipped", "disksla_probe_failures", "disksla_usual_latency_seconds"),
    *("disksla_nfs_operations", "disksla_nfs_wait_seconds"),
    *(f"disksla_consumer_{each}" for each in ("requests", "bytes", "watched_seconds")),
}


OF_DISK = re.compile(r'[{,](?:device|group)="')


def series_of(
    disk: DiskSnapshot,
    profile: Profile,
    report: VerificationReport | None = None,
    names: Sequence[str] = (),
) -> list[str]:
    """Return the series of a page of one disk, and of the group that it is in."""
    shown = changed(view(disk), profile=profile)
    reports = {} if report is None else {disk_key(disk.disk) or "": report}
    registry = make_registry(SnapshotCollector(lambda: shown, lambda: ABOUT, lambda: reports))
    lines = render_metrics(registry, names=names).body.decode().splitlines()
    return [line.rpartition(" ")[0] for line in lines if line[0] != "#" and OF_DISK.search(line)]


def test_largest_disk_has_fewer_than_260_series() -> None:
    series = series_of(largest_disk(), "full", longest_report())
    assert len(set(series)) == len(series)
    assert 180 < len(series) < MOST_SERIES


def test_largest_disk_has_all_metrics_of_disks() -> None:
    series = series_of(largest_disk(), "full", longest_report())
    names = {re.sub(r"(_bucket|_count|_sum)?\{.*", "", each) for each in series}
    families = {name.removesuffix("_total") for name in names}
    assert families | OF_SOME_DISKS >= {row.name.removesuffix("_total") for row in OF_DISKS}


def test_documented_names_select_twelve_series() -> None:
    [names] = re.findall(r"'name\[\]': \[(.*)\]", PAGE.read_text(encoding="utf-8"))
    assert len(series_of(largest_disk(), "default", names=names.split(", "))) == 12


def test_documented_series_by_feature() -> None:
    text = PAGE.read_text(encoding="utf-8")
    before = [0, 0, 0]
    for what, (disk, report) in disks_by_feature().items():
        series = [len(series_of(disk, profile, report)) for profile in PROFILES]
        added = " | ".join(
            f"{now - then:+d} | {now}" for now, then in zip(series, before, strict=True)
        )
        assert f"| {what} | {added} |" in text
        before = series


def test_disk_with_terms_has_at_most_64_series() -> None:
    """It is mounted, was throttled, and had flushes."""
    disk, report = disks_by_feature()["with one mounted file system"]
    lean, default, _ = (len(series_of(disk, profile, report)) for profile in PROFILES)
    assert (lean, default) <= (26, 64)
    unmounted, _ = disks_by_feature()["with terms that promise rates and a latency"]
    assert len(series_of(unmounted, "lean")) <= 25

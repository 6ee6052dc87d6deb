"""The disk with the most series: every metric that can be published of a disk."""

from disksla.clouds.ebs_statistics.reading import Reading
from disksla.clouds.ebs_statistics.statistics_page import parse
from disksla.measure.verification.report import VerificationReport
from disksla.measure.verification.suites import make_suite
from disksla.promise.catalogue.limits import NO_LIMITS, Bucket, Burst, Rates
from disksla.state.pipeline.probe_results import FAILURE_REASONS, ProbeResult, ProbeTotals
from disksla.state.pipeline.snapshot import DiskSnapshot
from disksla.state.provider_count import ProviderState
from disksla.verdict.throttling.throttle import Ceiling, Throttle
from support.ebs_pages import Page, bins_of
from support.reports import a_report, a_result
from support.snapshots import (
    BYTE_CREDITS,
    IOPS_CREDITS,
    SEPARATE_LIMITS,
    changed,
    probed_disk_view,
)

_BUCKETS = (Bucket("iops", 8000.0, 300.0, 300.0, 2000.0), Bucket("bytes", 64e6, 30e6, 30e6, 60e6))


def largest_disk() -> DiskSnapshot:
    """Return a volume of Kubernetes with every limit, two buckets and both kinds of probes."""
    burst = Burst(Rates(2000.0, 2000.0, 60e6, 60e6), _BUCKETS)
    limits = changed(SEPARATE_LIMITS, burst=burst)
    view = probed_disk_view()
    probes = {kind: _probed(totals) for kind, totals in view.probes.items()}
    return changed(
        view,
        disk=changed(view.disk, csi_driver="ebs.csi.aws.com", volume_handle="vol-0a1b2c3d"),
        assignment=changed(view.assignment, limits=limits),
        credits=(IOPS_CREDITS, BYTE_CREDITS),
        probes=probes,
        ceiling=Ceiling(Throttle("base", "iops"), 300.0, 30e6, 0.5),
        data_writes=1,
        provider=_read(),
        provider_is_current=True,
    )


def longest_report() -> VerificationReport:
    """Return the report of the longest suite."""
    limits = largest_disk().assignment.limits
    tests = max(
        (make_suite(name, limits, 0.03).tests for name in ("vk", "yandex", "terms")), key=len
    )
    return a_report(*(a_result(test.name) for test in tests))


def disks_by_feature() -> dict[str, tuple[DiskSnapshot, VerificationReport | None]]:
    """Return disks with more and more series, by the feature that was added last."""
    read = changed(largest_disk(), ceiling=probed_disk_view().ceiling, data_writes=None)
    volume = changed(read, provider=None)
    full = changed(volume, disk=changed(volume.disk, csi_driver=None, volume_handle=None))
    probed: dict[str, object] = {
        name: {"read-latency": getattr(full, name)["read-latency"]}
        for name in ("probes", "probe_intervals_s")
    }
    plain = changed(full.assignment.limits, burst=None)
    unprobed: dict[str, object] = {"probes": {}, "probe_intervals_s": {}}
    none = {"credits": (), **unprobed}
    mounted = changed(full.disk, holders=())
    unknown = changed(mounted, file_system_mounts=())
    promised = changed(full, assignment=changed(full.assignment, limits=plain), **none)
    bursting = changed(full, **unprobed)
    unreported = {
        "disk without terms": changed(
            promised,
            disk=unknown,
            assignment=changed(full.assignment, limits=NO_LIMITS),
            load=None,
            ceiling=None,
        ),
        "that was throttled once": changed(
            promised,
            disk=unknown,
            assignment=changed(full.assignment, limits=NO_LIMITS),
            load=None,
        ),
        "with terms that promise rates and a latency": changed(promised, disk=unknown),
        "with one mounted file system": changed(promised, disk=mounted),
        "with one holder (LVM, dm-crypt, md)": promised,
        "with credits of two buckets": bursting,
        "with probes of reads": changed(bursting, **probed),
        "with probes of writes too": full,
        "that is a volume of Kubernetes": volume,
        "whose statistics page is read (AWS)": read,
    }
    steps: dict[str, tuple[DiskSnapshot, VerificationReport | None]] = {
        what: (disk, None) for what, disk in unreported.items()
    }
    return {**steps, "after `disksla verify` with VK's suite": (read, longest_report())}


def _read() -> ProviderState:
    """Return what a page of EBS says; it was attached again once."""
    page = parse(Page(read_bins=bins_of({256: 1}), write_bins=bins_of({256: 1})).written())
    reading = Reading("nvme1n1", "vol0a1b2c3d", 1000.0, page)
    return ProviderState(failures={"reset": 1}).after([reading], 1000.0)


def _probed(totals: ProbeTotals) -> ProbeTotals:
    outcome = ProbeResult(
        device="vdb", kind="read-latency", timestamp_s=1.7e9, achieved_iops=20.0, target_iops=20.0
    )
    assert set(totals.failures) == set(FAILURE_REASONS)
    return totals.plus(outcome)

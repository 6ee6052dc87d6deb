"""Metrics of what each disk is, and of the limits that it was sold with."""

from collections.abc import Callable, Iterator

from disksla.promise.catalogue import Limits, Rates
from disksla.promise.configuration import Profile
from disksla.serve.metrics.metric import Labelled, Metric, Value, lean
from disksla.state.pipeline import DiskSnapshot


def _limit_rows(
    name: str, text: str, rates_of: Callable[[Limits], Rates | None], profile: Profile
) -> Iterator[Metric[DiskSnapshot]]:
    """Yield the rows of what is allowed of reads and writes, by `disksla_NAME_read_iops` etc."""
    for unit, what, field in (
        ("read_iops", "Reads", "read_iops"),
        ("write_iops", "Writes", "write_iops"),
        ("read_bytes_per_second", "Bytes read", "read_bytes_per_second"),
        ("written_bytes_per_second", "Bytes written", "write_bytes_per_second"),
    ):

        def value(snapshot: DiskSnapshot, field: str = field) -> Value:
            rates = rates_of(snapshot.assignment.limits)
            rate: float | None = getattr(rates, field, None)
            return rate

        yield Metric(f"disksla_{name}_{unit}", f"{what} per second {text}", value, profile=profile)


def _disk_info(snapshot: DiskSnapshot) -> Labelled:
    disk, limits = snapshot.disk, snapshot.assignment.limits
    return {
        (
            disk.serial or "",
            disk.wwn or "",
            disk.model or "",
            snapshot.assignment.provider,
            snapshot.assignment.terms,
            limits.budget.kind if limits.budget and limits.rates != Rates() else "",
            limits.latency_kind or "",
            "" if disk.rotational is None else str(disk.rotational).lower(),
            snapshot.assignment.source,
            snapshot.machine_type or "",
            disk.kind,
        ): 1
    }


_VOLUME = (
    "csi_driver", "volume_handle", "persistent_volume", "claim", "namespace", "storage_class",
)  # fmt: skip


def _kubernetes_volume(snapshot: DiskSnapshot) -> Labelled | None:
    disk = snapshot.disk
    if disk.csi_driver is None and disk.persistent_volume is None:
        return None
    return {tuple(getattr(disk, field) or "" for field in _VOLUME): 1}


_INFO_LABELS = (
    "serial", "wwn", "model", "provider", "terms", "budget", "latency_kind", "rotational",
    "terms_source", "machine_type", "kind",
)  # fmt: skip
_VOLUME_LABELS = (
    "csi_driver", "volume_handle", "persistentvolume", "persistentvolumeclaim", "namespace",
    "storage_class",
)  # fmt: skip
_LIMIT = "promised by the terms for the size of this disk."
_BURST_LIMIT = "allowed while burst credits last."

IDENTITY_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    lean(
        "disksla_disk_info",
        "The disk and its terms, always 1. budget is empty if and only if the disk has no"
        " limits. terms_source is who says what the disk is: configuration, file (of terms.d),"
        " api, metadata, or none. kind is disk or nfs.",
        _disk_info,
        _INFO_LABELS,
    ),
    lean(
        "disksla_mount_info",
        "Where a file system of the disk was mounted first, always 1. Bind mounts, and what pods"
        " and containers mount, are left out.",
        lambda snapshot: {(point,): 1 for point in snapshot.disk.file_system_mounts},
        ("mountpoint",),
    ),
    Metric(
        "disksla_disk_holder_info",
        "A device (device-mapper, md) on this disk or one of its partitions, always 1.",
        lambda snapshot: {(holder,): 1 for holder in snapshot.disk.holders},
        ("holder",),
    ),
    lean(
        "disksla_kubernetes_volume_info",
        "The volume of Kubernetes that the disk is, always 1. persistentvolumeclaim, its namespace"
        " and storage_class need a terms file with the volumes.",
        _kubernetes_volume,
        _VOLUME_LABELS,
    ),
    Metric(
        "disksla_disk_size_bytes",
        "Size of the disk in bytes, as the kernel reports it. Absent for an NFS mount.",
        lambda snapshot: None if snapshot.disk.is_mount else snapshot.disk.size_bytes,
    ),
)

LIMIT_METRICS: tuple[Metric[DiskSnapshot], ...] = (
    *_limit_rows("limit", _LIMIT, lambda limits: limits.rates, "lean"),
    lean(
        "disksla_limit_latency_seconds",
        "Latency of a request in seconds that the terms state, under their conditions.",
        lambda snapshot: snapshot.assignment.limits.latency_s,
    ),
    *_limit_rows(
        "burst_limit", _BURST_LIMIT, lambda limits: getattr(limits.burst, "rates", None), "default"
    ),
)

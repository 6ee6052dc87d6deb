"""What the daemon knows of all disks, as JSON: for `disksla explain` and `disksla top`."""

import math
from collections.abc import Mapping

import msgspec

from disksla.credits import CreditLevel
from disksla.history import joined
from disksla.limits import Rates, TermsSource
from disksla.pipeline import DiskSnapshot, Snapshot, Traffic
from disksla.text import escape_bytes
from disksla.verdict import LIMIT_KINDS, VERDICTS, LimitKind, Verdict
from disksla.web.disk_card import Past


class CreditsDocument(msgspec.Struct, frozen=True, kw_only=True):
    """Burst credits of one resource, as shares of the capacity."""

    resource: str
    ratio: float
    lower_ratio: float
    upper_ratio: float
    exhaustion_s: float | None
    """Seconds until they are used up at the present load; None while they do not decrease."""


class DiskDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One disk: now, and in the last five minutes."""

    device: str
    size_bytes: int
    mount_points: tuple[str, ...]
    terms: str
    terms_source: TermsSource
    said_by: str
    """Who says what the disk is, and when; empty for the configuration."""
    limits: Rates
    verdict: Verdict | None
    """On the last window; None after a gap."""
    limit: LimitKind | None
    """Where it is throttled now."""
    present: Traffic
    load_ratio: float | None
    """Mean load of the last second, 1.0 is at the limit."""
    inflight: int | None
    latency_s: float | None
    """Mean time of a request in the last five seconds; None if none completed."""
    credits: tuple[CreditsDocument, ...]
    sentences: tuple[str, ...]
    """What the last five minutes mean, problems first."""
    verdict_seconds: Mapping[Verdict, float]
    """In the last five minutes."""
    throttled_seconds: Mapping[LimitKind, float]


class DisksDocument(msgspec.Struct, frozen=True, kw_only=True):
    """All monitored disks of a host."""

    host: str
    version: str
    timestamp_s: float
    """Wall-clock time of the last sample, in seconds since 1970."""
    disks: tuple[DiskDocument, ...]


DISKS_PATH = "/api/v1/disks"
_LATENCY_SLOTS = 5


def disks_document(snapshot: Snapshot, past: Past, host: str, version: str) -> bytes:
    """Return the document as JSON."""
    disks = tuple(_disk(disk, past, snapshot.timestamp_s) for disk in snapshot.disks)
    return msgspec.json.encode(
        DisksDocument(host=host, version=version, timestamp_s=snapshot.timestamp_s, disks=disks)
    )


def _disk(snapshot: DiskSnapshot, past: Past, now_s: float) -> DiskDocument:
    slots = past.seconds(snapshot)
    whole = joined(slots)
    assignment = snapshot.assignment
    return DiskDocument(
        device=escape_bytes(snapshot.disk.name),
        size_bytes=snapshot.disk.size_bytes,
        mount_points=tuple(map(escape_bytes, snapshot.disk.mount_points)),
        terms=escape_bytes(assignment.terms),
        terms_source=assignment.source,
        said_by=escape_bytes(assignment.said_by(now_s)),
        limits=assignment.limits.rates,
        verdict=snapshot.verdict,
        limit=snapshot.throttle.limit if snapshot.throttle is not None else None,
        present=snapshot.present,
        load_ratio=snapshot.present_load,
        inflight=snapshot.inflight,
        latency_s=joined(slots[-_LATENCY_SLOTS:]).latency_s,
        credits=tuple(_credits(level) for level in snapshot.credits),
        sentences=tuple(past.explain(snapshot, slots)),
        verdict_seconds=dict(zip(VERDICTS, whole.verdict_s, strict=True)),
        throttled_seconds={
            limit: seconds
            for limit, seconds in zip(LIMIT_KINDS, whole.throttled_s, strict=True)
            if seconds
        },
    )


def _credits(level: CreditLevel) -> CreditsDocument:
    return CreditsDocument(
        resource=level.resource,
        ratio=level.ratio(level.estimate_credits),
        lower_ratio=level.ratio(level.lower_credits),
        upper_ratio=level.ratio(level.upper_credits),
        exhaustion_s=level.exhaustion_s if math.isfinite(level.exhaustion_s) else None,
    )

"""What the daemon knows of all disks, as JSON: for `disksla explain` and `disksla top`."""

from collections.abc import Iterable, Mapping

import msgspec

from disksla.history import joined
from disksla.limits import Rates, TermsSource
from disksla.pipeline import DiskSnapshot, Snapshot, Traffic
from disksla.text import escape_bytes
from disksla.verdict import LIMIT_KINDS, VERDICTS, LimitKind, Verdict
from disksla.web.credits_document import CreditsDocument, credits_document
from disksla.web.disk_card import BAD_VERDICTS, Past


class DiskDocument(msgspec.Struct, frozen=True, kw_only=True):
    """One disk: now, and in a period, which is the last five minutes if the daemon says it."""

    device: str
    size_bytes: int
    mount_points: tuple[str, ...]
    terms: str
    terms_source: TermsSource
    said_by: str | None
    """Who says what the disk is; None for the configuration, and if nothing does."""
    as_of_timestamp_s: float | None = msgspec.field(name="as_of")
    """When it was true, in seconds since 1970; None as above."""
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
    """What the period means, problems first."""
    verdict_seconds: Mapping[Verdict, float]
    """In the period."""
    throttled_seconds: Mapping[LimitKind, float]
    hour_sentences: tuple[str, ...] = ()
    """What the last hour means, problems first; empty in the first minute."""

    @property
    def bad_s(self) -> float:
        """How long the disk was throttled, below its promise or stalled."""
        return sum(self.verdict_seconds[verdict] for verdict in BAD_VERDICTS)


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
    disks = tuple(_disk(disk, past) for disk in snapshot.disks)
    return msgspec.json.encode(
        DisksDocument(host=host, version=version, timestamp_s=snapshot.timestamp_s, disks=disks)
    )


def _disk(snapshot: DiskSnapshot, past: Past) -> DiskDocument:
    slots = past.seconds(snapshot)
    history = past.of(snapshot)
    minutes = [] if history is None else history.with_limits(history.minutes())
    whole = joined(slots)
    document = disk_document(
        snapshot,
        joined(slots[-_LATENCY_SLOTS:]).latency_s,
        past.explain(snapshot, slots),
        dict(zip(VERDICTS, whole.verdict_s, strict=True)),
        dict(zip(LIMIT_KINDS, whole.throttled_s, strict=True)),
    )
    hour = tuple(past.explain(snapshot, minutes)) if minutes else ()
    return msgspec.structs.replace(document, hour_sentences=hour)


def disk_document(
    snapshot: DiskSnapshot,
    latency_s: float | None,
    sentences: Iterable[str],
    verdict_seconds: Mapping[Verdict, float],
    throttled_seconds: Mapping[LimitKind, float],
) -> DiskDocument:
    """Return what is known of a disk, and what it did in a period."""
    assignment = snapshot.assignment
    return DiskDocument(
        device=escape_bytes(snapshot.disk.name),
        size_bytes=snapshot.disk.size_bytes,
        mount_points=tuple(map(escape_bytes, snapshot.disk.mount_points)),
        terms=escape_bytes(assignment.terms),
        terms_source=assignment.source,
        said_by=escape_bytes(assignment.origin) or None,
        as_of_timestamp_s=assignment.as_of_timestamp_s,
        limits=assignment.limits.rates,
        verdict=snapshot.verdict,
        limit=snapshot.throttle.limit if snapshot.throttle is not None else None,
        present=snapshot.present,
        load_ratio=snapshot.present_load,
        inflight=snapshot.inflight,
        latency_s=latency_s,
        credits=tuple(map(credits_document, snapshot.credits)),
        sentences=tuple(sentences),
        verdict_seconds={verdict: verdict_seconds.get(verdict, 0.0) for verdict in VERDICTS},
        throttled_seconds={limit: each for limit, each in throttled_seconds.items() if each},
    )

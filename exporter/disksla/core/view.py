"""What is known of every disk at one moment, ready to be shown.

A view is made from the state when somebody asks (a scrape, a page, a command), with all that
was put off while disks were idle brought up to date.
"""

from collections.abc import Mapping

import msgspec

from disksla.core.disk import Disk
from disksla.core.diskstats import Counters
from disksla.core.histogram import Histogram
from disksla.core.ledger import Ledger
from disksla.core.limits import Limits
from disksla.core.probeledger import ProbeLedger
from disksla.core.purse import CreditLevel
from disksla.core.settings import ProbeKind
from disksla.core.verdict import Ceiling, Verdict
from disksla.core.verification import Verification


class Assignment(msgspec.Struct, frozen=True):
    """Which terms a disk is held against, and why these."""

    terms: str
    """Id in the catalogue, or `configuration` for terms written out there."""
    provider: str
    reason: str
    """One sentence for people: which rule matched on what, or why a generic type was taken."""
    size_bytes: int
    """Size the limits were derived from: the kernel's, unless the configuration overrides it."""
    limits: Limits


class Traffic(msgspec.Struct, frozen=True):
    """Rates of one disk, in requests and bytes per second."""

    read_iops: float = 0.0
    write_iops: float = 0.0
    read_bytes_per_second: float = 0.0
    written_bytes_per_second: float = 0.0


class DiskView(msgspec.Struct, frozen=True):
    """One watched disk."""

    disk: Disk
    assignment: Assignment
    totals: Counters | None
    """Since this daemon first saw the disk, unwrapped; None before the first sample."""
    inflight: int | None
    """Requests in flight at the last sample; None if the disk was not listed in it."""
    read_latency_s: Histogram
    write_latency_s: Histogram
    load: Histogram | None
    """Load of each window; None where nothing is promised."""
    peak: Traffic
    """Highest rates of any window within the last minute."""
    present: Traffic
    """Mean rates over the last second or so."""
    present_load: float | None
    """Load over the same time; None where nothing is promised."""
    verdict: Verdict | None = None
    """On the last window; None after a gap."""
    ledger: Ledger = Ledger()
    """Seconds by verdict, and what throttling cost."""
    ceiling: Ceiling | None = None
    """The rate at which the disk was last seen held."""
    credits: tuple[CreditLevel, ...] = ()
    """Burst credits by resource; none where the terms have none."""
    probes: Mapping[ProbeKind, ProbeLedger] = {}
    """What probes came to, by kind; those that are configured are present from the start."""
    probe_intervals_s: Mapping[ProbeKind, float | None] = {}
    """Time between two turns of the kinds that are configured; None of crontab lines."""
    verification: Verification | None = None
    """The last test against the terms; None where none is known."""


class SamplerView(msgspec.Struct, frozen=True):
    """How well we sampled."""

    ticks: int
    missed_ticks: int
    lateness_s: Histogram
    gaps: Mapping[str, int]
    """Gaps by reason; every reason is present from the start."""
    errors: Mapping[str, int]
    """Errors by source; every source is present from the start."""
    collectors: Mapping[str, bool]
    """Whether each source of data could be read when it was last tried."""
    troubles: Mapping[str, str] = {}
    """What is wrong with those that could not, where there are words for it."""


class View(msgspec.Struct, frozen=True):
    """Everything that leaves the house."""

    disks: tuple[DiskView, ...]
    sampler: SamplerView

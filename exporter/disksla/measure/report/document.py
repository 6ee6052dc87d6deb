"""The report as records: what is written as JSON, and what text, page and CSV are made from.

Times are seconds since 1970. Durations are sums of counted seconds unless they are between two
times.
"""

import csv
from collections.abc import Iterable, Iterator
from typing import Literal

import msgspec

from disksla.base.text import escape_bytes
from disksla.measure.prometheus import Facts
from disksla.promise.catalogue import Conditions, Rates
from disksla.verdict.throttling import LIMIT_KINDS, VERDICTS

HistoryGapReason = Literal["no samples", "daemon restarted", "not sampled"]


class PeriodTotals(msgspec.Struct, frozen=True):
    """Seconds of a time by verdict and limit, and the compliance."""

    period_s: float
    assessed_s: float
    """Time that has a verdict."""
    unassessed_s: float
    """The rest: gaps of disksla or of the history. It counts neither for nor against the disk."""
    proven_s: float
    """Time in which the promise was tested."""
    noncompliant_s: float
    """Time below the promise, or stalled; part of `proven_s`."""
    compliance_ratio: float | None
    """Share of the tested time that complies; None if the promise was not tested."""
    verdict_seconds: dict[str, float]
    throttled_seconds: dict[str, float]
    slow_seconds: dict[str, float]
    """By what latency was above: `promise` or `usual`. The verdicts have these seconds, too."""
    throttled_iowait_s: float | None
    """CPU seconds in iowait while the disk was throttled; None where it was not counted."""
    throttle_wait_s: float | None
    """I/O-seconds that requests waited because of throttling; None where they were not counted."""


class GivenService(msgspec.Struct, frozen=True):
    """What a disk gave: means over a time."""

    over_s: float
    read_iops: float
    write_iops: float
    read_bytes_per_second: float
    write_bytes_per_second: float
    queue_depth: float
    latency_s: float | None
    request_bytes: float | None
    load_ratio: float | None
    """None without the histogram of load."""


class ProbeWindow(msgspec.Struct, frozen=True):
    """Latency of the requests of probes in a time."""

    requests: int
    mean_s: float


class ProbeEvidence(msgspec.Struct, frozen=True):
    """What probes measured in the hour before an incident, during it, and in the hour after."""

    kind: str
    before: ProbeWindow | None
    during: ProbeWindow | None
    after: ProbeWindow | None


class Incident(msgspec.Struct, frozen=True):
    """A time in which a disk was below its promise or stalled, again and again."""

    start_timestamp_s: float
    """The scrape before the first second."""
    end_timestamp_s: float
    """The scrape after the last one."""
    below_s: float
    stalled_s: float
    proven_s: float
    throttled_s: float
    given: GivenService
    """Over the steps of which at least half is below or stalled; without one, over all that have
    such seconds."""
    promised: Rates
    promised_latency_s: float | None
    part: int
    """Number of the part of the disk whose terms were in force at the end, from 1."""
    probes: tuple[ProbeEvidence, ...] = ()
    verification_timestamp_s: float | None = None
    """End of the last `disksla verify` before the incident."""

    @property
    def noncompliant_s(self) -> float:
        """Time below the promise, or stalled."""
        return self.below_s + self.stalled_s


class ThrottledSpan(msgspec.Struct, frozen=True):
    """A time in which a disk was throttled again and again."""

    start_timestamp_s: float
    end_timestamp_s: float
    throttled_seconds: dict[str, float]
    """By limit."""
    throttled_iowait_s: float | None


class Gap(msgspec.Struct, frozen=True):
    """A time of which nothing, or not all, is known."""

    start_timestamp_s: float
    end_timestamp_s: float
    unassessed_s: float
    reason: HistoryGapReason


class CreditsEvidence(msgspec.Struct, frozen=True):
    """Burst credits of one resource in the period, read every five minutes or more."""

    resource: str
    capacity_credits: float
    lowest_credits: float
    """Lowest estimate, with its bounds at that time."""
    lowest_lower_bound_credits: float
    lowest_upper_bound_credits: float
    lowest_timestamp_s: float
    last_credits: float
    empty_s: float
    """Time in which not even the upper bound was 1 % of the capacity."""


class ConsumerEvidence(msgspec.Struct, frozen=True):
    """What a unit, container or pod used of a disk, while the disk was throttled or busy."""

    consumer: str
    requests_ratio: float | None
    """Share of the requests of all consumers; None where they were not counted."""
    bytes_ratio: float | None


class VerificationTest(msgspec.Struct, frozen=True):
    """One test of a verification."""

    test: str
    ratio: float | None
    required_ratio: float | None
    passed: bool | None


class Verification(msgspec.Struct, frozen=True):
    """A `disksla verify` whose results were there in the period."""

    timestamp_s: float
    tests: tuple[VerificationTest, ...]


class CataloguePage(msgspec.Struct, frozen=True):
    """The page that a row of the catalogue comes from."""

    url: str
    date: str


class Part(msgspec.Struct, frozen=True):
    """A time in which terms, size and limits of a disk were the same."""

    start_timestamp_s: float
    end_timestamp_s: float
    facts: Facts
    totals: PeriodTotals
    terms_timestamp_s: float | None = None
    """When the source of the terms was last true; None for the configuration."""
    title: str | None = None
    """The type in the catalogue; None if it is not there."""
    sources: tuple[CataloguePage, ...] = ()
    confidence: str | None = None
    iops_conditions: Conditions | None = None
    bandwidth_conditions: Conditions | None = None
    promised_time_share: float | None = None
    """Share of the time for which the provider states the rates."""


class Slice(msgspec.Struct, frozen=True):
    """One day of the period, or one hour of a period of up to three days."""

    start: str
    incidents: int
    """Incidents that end in it."""
    totals: PeriodTotals


class Allowance(msgspec.Struct, frozen=True):
    """The share of the time for which the provider states the rates, in seconds of the period."""

    promised_time_share: float
    allowed_s: float
    noncompliant_s: float
    is_exceeded: bool


class Uptime(msgspec.Struct, frozen=True):
    """The provider's published service level agreement, with stalled time as downtime."""

    title: str
    url: str
    date: str
    says: str
    stalled_s: float | None = None
    """None if stalled disks are not what the agreement counts."""
    uptime_ratio: float | None = None
    objective_ratio: float | None = None
    """None as above."""
    credit_ratio: float | None = None
    """Service credit for this uptime; 0 for none, None if none is published."""


class DiskReport(msgspec.Struct, frozen=True):
    """Everything about one disk."""

    labels: dict[str, str]
    serial: str
    mount_points: tuple[str, ...]
    objective_share: float
    """Least compliance that counts as compliant."""
    is_compliant: bool | None
    """None if the promise was not tested."""
    totals: PeriodTotals
    parts: tuple[Part, ...]
    incidents: tuple[Incident, ...]
    throttled_spans: tuple[ThrottledSpan, ...]
    gaps: tuple[Gap, ...]
    sampling_gaps: dict[str, int]
    """Gaps that the daemon itself counted in the period, on all disks of its host, by reason."""
    credits: tuple[CreditsEvidence, ...]
    verifications: tuple[Verification, ...]
    allowance: Allowance | None
    uptime: Uptime | None
    slices: tuple[Slice, ...]
    consumers: tuple[ConsumerEvidence, ...] = ()
    """Those that used it most, read every five minutes or more."""

    @property
    def title(self) -> str:
        """Instance and device."""
        return f"{self.labels.get('instance', '')} {self.labels.get('device', '')}".strip()

    @property
    def facts(self) -> Facts:
        """What is known of the disk at the end."""
        return self.parts[-1].facts if self.parts else Facts(serial=self.serial)


class Report(msgspec.Struct, frozen=True):
    """The report of a period."""

    disksla_report: int
    """Version of this format."""
    disksla_version: str
    start_timestamp_s: int
    end_timestamp_s: int
    utc_offset_s: int
    selection: tuple[str, ...]
    """What was selected: matchers, and patterns of disks."""
    is_compliant: bool | None
    """Whether all disks whose promise was tested comply; None if none was tested."""
    totals: PeriodTotals
    """Sums over the disks."""
    disks: tuple[DiskReport, ...]


_FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""A spreadsheet takes a text that starts like this for a formula."""
_COLUMNS = (
    *("instance", "device", "serial", "start", "period_s", "assessed_s", "unassessed_s"),
    *("proven_s", "noncompliant_s", "compliance_ratio", "incidents"),
    *(f"{verdict}_s" for verdict in VERDICTS),
    *(f"throttled_{limit}_s" for limit in LIMIT_KINDS),
    *("throttled_iowait_s", "throttle_wait_s"),
)


def report_csv(report: Report) -> str:
    """Return the rows with a heading. A ratio is empty where the promise was not tested."""
    written = _Text()
    rows = (row for disk in report.disks for row in _rows(disk))
    csv.writer(written).writerows((_COLUMNS, *rows))
    return "".join(written)


class _Text(list[str]):
    """What csv writes to."""

    write = list.append


def _rows(disk: DiskReport) -> Iterator[Iterable[object]]:
    name = [_text(disk.labels.get(label, "")) for label in ("instance", "device")]
    for each in disk.slices:
        totals = each.totals
        numbers = (
            *(totals.period_s, totals.assessed_s, totals.unassessed_s),
            *(totals.proven_s, totals.noncompliant_s, totals.compliance_ratio, each.incidents),
            *(totals.verdict_seconds[verdict] for verdict in VERDICTS),
            *(totals.throttled_seconds.get(limit, 0.0) for limit in LIMIT_KINDS),
            *(totals.throttled_iowait_s, totals.throttle_wait_s),
        )
        yield (*name, _text(disk.serial), each.start, *map(_number, numbers))


def _text(text: str) -> str:
    return escape_bytes(f"'{text}" if text.startswith(_FORMULA) else text)


def _number(value: float | None) -> str:
    return "" if value is None else f"{value:.9g}"

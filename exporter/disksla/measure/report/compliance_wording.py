"""Wording of the report."""

from collections.abc import Iterable, Iterator

from disksla.base.units import (
    format_bandwidth,
    format_count,
    format_duration,
    format_listed_bandwidth,
    format_size,
)
from disksla.measure.prometheus import Period
from disksla.measure.report.document import (
    ConsumerEvidence,
    DiskReport,
    GivenService,
    Part,
    PeriodTotals,
    Report,
    Uptime,
)
from disksla.promise.catalogue import CUSTOM_TERMS, TERMS_TITLES, UNKNOWN_TERMS, Rates
from disksla.tell.explanation import SHOWN_TEXT

_RULE = (
    "Tested is the time in which the load reached the promise: the disk kept it, gave less or hung"
    " (verdicts met, below and stalled), or was throttled at a limit of the disk. Time at a limit"
    " of the machine, or at an unknown limit, counts neither for nor against the disk. Compliance"
    " is the share of the tested time in which the disk neither gave less nor hung. A window of"
    " 100 ms is less than promised only if requests waited, no limit of the machine explains it,"
    " and either the queue was deep enough for the promise to apply or a limiter was seen at a"
    " lower rate."
)
_COUNTING = (
    "Seconds are differences of the daemon's counters between two scrapes, counted at the later"
    " one and never extrapolated. Time that was not assessed counts neither for nor against."
    " An incident is a time with such seconds, whose breaks are shorter than 10 min; it starts and"
    " ends at scrapes."
)
NOTES = (_RULE, _COUNTING)
LESS, HUNG = SHOWN_TEXT["below"].words, SHOWN_TEXT["stalled"].words


def period_of(report: Report) -> Period:
    """Return the period of a report."""
    return Period(report.start_timestamp_s, report.end_timestamp_s, report.utc_offset_s)


def period_text(report: Report) -> str:
    """Return the two moments and the zone; dates only where both are midnight."""
    period = period_of(report)
    ends = [period.text(report.start_timestamp_s), period.text(report.end_timestamp_s)]
    if all(end.endswith(" 00:00:00") for end in ends):
        ends = [end.removesuffix(" 00:00:00") for end in ends]
    return f"{ends[0]} to {ends[1]} {period.zone}"


def summary_text(report: Report) -> str:
    """Return how many disks comply, and the compliance of all together."""
    number = len(report.disks)
    failed = sum(disk.is_compliant is False for disk in report.disks)
    tested = sum(disk.is_compliant is not None for disk in report.disks)
    disks = f"{number} disk{'' if number == 1 else 's'}"
    return (
        f"{disks}, {tested} tested, {failed} not compliant; compliance"
        f" {compliance_text(report.totals)}, {less_text(report.totals)}"
    )


def seconds_text(seconds: float) -> str:
    """Return a duration with its two largest units: '4.2 s', '3 min 05 s', '7 h 02 min'."""
    if seconds < 60:  # noqa: PLR2004 -- a minute
        return f"{round(seconds, 1):g} s"
    minutes, rest_s = divmod(round(seconds), 60)
    if minutes < 60:  # noqa: PLR2004 -- an hour
        return f"{minutes} min {rest_s:02} s"
    hours, minutes = divmod(round(seconds / 60), 60)
    return f"{hours} h {minutes:02} min"


def share_text(ratio: float | None) -> str:
    """Return a share in percent, rounded down, so that only all of it is 100 %."""
    if ratio is None:
        return "not tested"
    return f"{int(ratio * 100_000 + 1e-6) / 1000:g} %"


def verdict_text(of: DiskReport | Report) -> str:
    """Return the outcome in words."""
    return {True: "COMPLIANT", False: "NOT COMPLIANT", None: "NOT TESTED"}[of.is_compliant]


def terms_text(disk: DiskReport) -> str:
    """Return what the disk was sold as, with its size."""
    facts = disk.facts
    size = "" if facts.size_bytes is None else f", {format_size(facts.size_bytes)}"
    terms = facts.terms or UNKNOWN_TERMS
    return f"{TERMS_TITLES.get(terms, terms)}{size}"


def compliance_text(totals: PeriodTotals) -> str:
    """Return the compliance with the time that it is of."""
    if totals.compliance_ratio is None:
        return f"not tested in {seconds_text(totals.assessed_s)}"
    return f"{share_text(totals.compliance_ratio)} of {seconds_text(totals.proven_s)} tested"


def less_text(totals: PeriodTotals) -> str:
    """Return for how long disks gave less than promised, or hung."""
    return f"{seconds_text(totals.noncompliant_s)} {LESS} or {HUNG}"


def rates_text(rates: Rates, latency_s: float | None = None) -> str:
    """Return promised rates in one line, those of reads and writes apart where they differ."""
    return ", ".join(_rates(rates, latency_s)) or "nothing"


def _rates(rates: Rates, latency_s: float | None) -> Iterator[str]:
    pairs = (
        (rates.read_iops, rates.write_iops, lambda rate: f"{format_count(rate)} IOPS"),
        (rates.read_bytes_per_second, rates.write_bytes_per_second, format_listed_bandwidth),
    )
    for read, write, shown in pairs:
        if read is not None and read == write:
            yield shown(read)
        else:
            yield from (f"{shown(read)} for reads",) if read is not None else ()
            yield from (f"{shown(write)} for writes",) if write is not None else ()
    if latency_s is not None:
        yield f"latency {format_duration(latency_s)}"


def given_facts(given: GivenService) -> list[str]:
    """Return what a disk did: rates, queue, latency, size of requests and load."""
    parts = [
        f"{format_count(given.read_iops)} reads/s",
        f"{format_count(given.write_iops)} writes/s",
        format_bandwidth(given.read_bytes_per_second + given.write_bytes_per_second),
        f"{given.queue_depth:.1f} in flight",
    ]
    if given.latency_s is not None and given.request_bytes is not None:
        parts.append(f"latency {format_duration(given.latency_s)}")
        parts.append(f"requests of {format_size(given.request_bytes)}")
    if given.load_ratio is not None:
        parts.append(f"load {given.load_ratio:.0%} of the limit")
    return parts


_SOURCES = {
    "configuration": "the configuration of disksla",
    "file": "a file in terms.d",
    "api": "the API of the provider",
    "metadata": "the metadata service of the provider",
}
_UNLISTED = {
    CUSTOM_TERMS: "the limits are written out in the configuration of disksla",
    UNKNOWN_TERMS: "nothing says what the disk was sold as",
    "": "nothing says what the disk was sold as",
}


def promise_sources(part: Part, period: Period) -> Iterator[str]:
    """Yield who says what the disk is, and where its promise is written."""
    source = part.facts.terms_source
    if source and source != "none":
        as_of_s = part.terms_timestamp_s
        as_of = "" if as_of_s is None else f", as of {period.text(as_of_s)}"
        yield f"who says what the disk is: {_SOURCES.get(source, source)}{as_of}"
    for page in part.sources:
        yield f"{page.url} ({page.date})"
    if part.title is not None and part.confidence != "high":
        yield f"confidence in the row of the catalogue: {part.confidence}"
    if part.title is None:
        yield _UNLISTED.get(part.facts.terms, "not a type of the catalogue of this version")


def throttled_text(totals: PeriodTotals) -> str:
    """Return the throttled time by limit, and the iowait that came with it."""
    by_limit = {limit: each for limit, each in totals.throttled_seconds.items() if each}
    if not by_limit:
        return "not throttled"
    parts = ", ".join(
        f"{limit_text(limit)} {seconds_text(seconds)}" for limit, seconds in by_limit.items()
    )
    if totals.throttled_iowait_s is None:
        return parts
    return f"{parts}; iowait meanwhile {seconds_text(totals.throttled_iowait_s)} of CPU time"


def consumers_text(consumers: Iterable[ConsumerEvidence]) -> str:
    """Return who used a disk while it was throttled or busy."""
    parts = []
    for unit in ("requests", "bytes"):
        shares = [(getattr(each, f"{unit}_ratio") or 0.0, each.consumer) for each in consumers]
        ordered = sorted(shares, key=lambda each: (-each[0], each[1]))
        named = [f"{100 * share:.0f} % {consumer}" for share, consumer in ordered if share]
        if named:
            parts.append(f"by {unit} {', '.join(named)}")
    return f"while throttled or busy: {'; '.join(parts)}"


def slow_text(totals: PeriodTotals) -> str:
    """Return how long requests took longer than they should; '' if not, or if it is not known."""
    words = {"promise": "above the promised latency", "usual": "far above the usual latency"}
    parts = [
        f"{words.get(than, than)} {seconds_text(seconds)}"
        for than, seconds in totals.slow_seconds.items()
        if seconds
    ]
    return ", ".join(parts)


def limit_text(limit: str) -> str:
    """Return a limit in words."""
    return {
        "iops": "at the IOPS you bought",
        "bandwidth": "at the bandwidth you bought",
        "machine_iops": "at the IOPS of the machine",
        "machine_bandwidth": "at the bandwidth of the machine",
        "unknown": "at an unknown limit (not tested)",
    }.get(limit, limit)


def uptime_text(uptime: Uptime) -> Iterator[str]:
    """Yield the provider's agreement and its arithmetic."""
    yield f"{uptime.title}, {uptime.url} ({uptime.date}). {uptime.says}"
    if uptime.stalled_s is not None:
        credit = "its service credits are not known here"
        if uptime.credit_ratio is not None:
            credit = f"service credit {uptime.credit_ratio:.0%}"
        yield (
            f"With the time in which it hung as downtime: {seconds_text(uptime.stalled_s)}, uptime"
            f" {share_text(uptime.uptime_ratio)} (objective {share_text(uptime.objective_ratio)});"
            f" {'no service credit' if uptime.credit_ratio == 0 else credit}."
        )

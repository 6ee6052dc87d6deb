"""What means say of disks, as a page: they ran at a limit, and never: they were throttled."""

from collections.abc import Iterator, Sequence

import msgspec

from disksla.base.units import (
    format_bandwidth,
    format_count,
    format_duration,
    format_percent,
    format_size,
)
from disksla.measure.means.limit_use import BELOW_RATIO, HIGH, NEAR, CreditsSeen, Latency, LimitUse
from disksla.measure.prometheus import Period
from disksla.promise.catalogue import Rates
from disksla.tell.explanation import describe_rates
from disksla.tell.page import (
    REPORT_STYLE,
    DataTable,
    FactList,
    Heading,
    HtmlPage,
    Line,
    PagePart,
    html_of,
)

_SHEET = HtmlPage(REPORT_STYLE)
_MOST_IN_HTML = 50
_NEAR, _HIGH = format_percent(NEAR), format_percent(HIGH)
_LIMITS = {"iops": "IOPS", "bandwidth": "bandwidth"}
_LEVELS = {"base": "at its limit", "burst": "at its burst limit"}


class DiskUse(msgspec.Struct, frozen=True):
    """What is known from means of a disk, or of disks under one limit of their machine."""

    title: str
    """Its name, with that of its machine where there are several."""
    terms: str
    size_bytes: int
    reason: str
    """Why these are its terms."""
    limits: Rates
    burst: Rates | None
    excess_ratio: float
    """The most by which a rate is above a limit and still at it."""
    use: LimitUse


def means_html(disks: Sequence[DiskUse], period: Period) -> str:
    """Return the page as HTML. Names of disks are escaped."""
    body = html_of(means_page(disks, period, _MOST_IN_HTML))
    return _SHEET.page(headline(disks), f"<main>\n{body}\n</main>")


def means_page(disks: Sequence[DiskUse], period: Period, most: int) -> Iterator[PagePart]:
    """Yield what is known of disks, of the first `most` in detail; times are those of a zone."""
    start, end = _time(period, period.start_timestamp_s), _time(period, period.end_timestamp_s)
    yield Heading(f"Disks from {start} to {end} {period.zone}", level=1)
    yield Line(headline(disks), "strong")
    if len(disks) > 1:
        yield _table(disks)
    for disk in disks[:most]:
        yield from _of_disk(disk, period)
    yield from (Line(note, "soft") for note in _notes(disks))


def headline(disks: Sequence[DiskUse]) -> str:
    """Return which disks ran at a limit."""
    at = [disk.title for disk in disks if disk.use.at_limit]
    known = sum(disk.use.largest_load is not None for disk in disks)
    if not known:
        return "No limits are known; say what the disks were sold as, with --terms."
    of = f"{len(at)} of {known} with known limits ran at a limit"
    return f"{of}: {', '.join(at)}." if at else f"{of}."


def _table(disks: Sequence[DiskUse]) -> DataTable:
    numbers = ("at a limit", f"above {_NEAR}", f"above {_HIGH}", "largest load", "IOPS")
    rows = []
    for disk in disks:
        use, cells = disk.use, ["", "", "", ""]
        if use.largest_load is not None:
            cells = [*map(_duration, (use.at_limit_s, use.near_s, use.high_s))]
            cells.append(format_percent(use.largest_load))
        rows.append((disk.title, disk.terms, *cells, format_count(use.largest_iops)))
    return DataTable(("disk", "type", *numbers), rows, numbers)


def _of_disk(disk: DiskUse, period: Period) -> Iterator[PagePart]:
    use, at = disk.use, disk.use.at_limit
    condition = "its limits are not known"
    if at:
        share = format_percent(use.at_limit_s / use.seconds)
        condition = f"ran at its limit for {format_duration(use.at_limit_s)}, {share} of the time"
    elif use.largest_load is not None:
        condition = f"never at a limit, at most at {format_percent(use.largest_load)}"
    size = format_size(disk.size_bytes) if disk.size_bytes else ""
    name = ", ".join(filter(None, (disk.title, disk.terms, size)))
    yield Heading(f"{name}: {condition}", style="bad" if at else "")
    burst = "" if disk.burst is None else describe_rates(disk.burst)
    intervals = f"{format_duration(use.seconds)} in intervals of {format_duration(use.interval_s)}"
    facts = [
        ("limits", describe_rates(disk.limits) or "not known"),
        ("burst", burst),
        ("type", disk.reason),
        ("seen", f"{_span(period, use.start_s, use.end_s)}, {intervals}"),
    ]
    for kind in dict.fromkeys((each.level, each.limit) for each in at):
        inside = [each for each in at if (each.level, each.limit) == kind]
        name = _LEVELS[kind[0]] + (f" of {_LIMITS[kind[1]]}" if kind[1] in _LIMITS else "")
        seconds = sum(each.seconds for each in inside)
        span = _span(period, inside[0].start_s, inside[-1].end_s)
        times = f", {len(inside)} times" if len(inside) > 1 else ""
        facts.append((name, f"{format_duration(seconds)} from {span}{times}"))
    if use.largest_load is not None:
        load = format_percent(use.largest_load)
        facts += [
            ("largest load", f"{load}, until {_time(period, use.largest_timestamp_s)}"),
            (f"above {_HIGH}", f"{_duration(use.high_s)}; above {_NEAR}: {_duration(use.near_s)}"),
        ]
    most = format_count(use.largest_iops), format_bandwidth(use.largest_bytes_per_second)
    facts += [
        ("most", f"{most[0]} IOPS, {most[1]}"),
        ("latency at it", _latency(use.latency_at_limit)),
        ("otherwise" if at else "latency", _latency(use.latency_otherwise)),
        *((f"credits ({each.resource})", _credits(each)) for each in use.credits),
    ]
    yield FactList(facts)
    if use.beyond_s:
        yield Line(
            f"For {format_duration(use.beyond_s)} it did more than these limits permit: it has"
            " others, or a cache of the host answers.",
            "note",
        )


def _latency(latency: Latency) -> str:
    named = [("reads", latency.read_s), ("writes", latency.write_s)]
    if latency.read_s is None and latency.write_s is None:
        named = [("requests", latency.request_s)]
    return ", ".join(f"{name} {format_duration(each)}" for name, each in named if each is not None)


def _credits(bucket: CreditsSeen) -> str:
    bounds = bucket.estimate_ratio, bucket.lower_ratio, bucket.upper_ratio
    estimate, lower, upper = map(format_percent, bounds)
    text = f"about {estimate} at the end, between {lower} and {upper}"
    if bucket.maybe_empty_s:
        about, certain = _duration(bucket.maybe_empty_s), _duration(bucket.empty_s)
        text += f"; used up for about {about}, certainly: {certain}"
    return text


def _notes(disks: Sequence[DiskUse]) -> Iterator[str]:
    """Yield what the words mean, and what cannot be known."""
    interval = format_duration(max(disk.use.interval_s for disk in disks))
    excess = format_percent(max(disk.excess_ratio for disk in disks))
    yield (
        f"At a limit: a rate from {format_percent(BELOW_RATIO)} below it to {excess} above it,"
        " with half a request or more in flight on average, in two intervals or more that follow"
        " each other."
    )
    yield (
        f"What happens within {interval} is not seen: that a disk was throttled for less is"
        " missed, one whose load is at a limit by chance looks the same, and that a disk gives"
        " less than promised, or hangs, is not known at all. The daemon sees it (disksla serve)."
    )


def _span(period: Period, start_s: float, end_s: float) -> str:
    return f"{_time(period, start_s)} to {_time(period, end_s)}"


def _time(period: Period, timestamp_s: float) -> str:
    """Return a time, or how long after the start it is if no time is known."""
    return period.text(timestamp_s) if period.start_timestamp_s else format_duration(timestamp_s)


def _duration(seconds: float) -> str:
    return format_duration(seconds) if seconds else "never"

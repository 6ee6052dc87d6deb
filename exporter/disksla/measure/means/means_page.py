"""What means say of disks, as a page and for JSON: they ran at a limit, and never: throttled."""

from collections.abc import Iterator, Sequence

import msgspec

from disksla.base.units import (
    format_bandwidth,
    format_count,
    format_duration,
    format_percent,
    format_size,
)
from disksla.measure.means.limit_use import (
    BELOW_RATIO,
    HIGH,
    NEAR,
    AtLimit,
    CreditsSeen,
    Latency,
    LimitUse,
)
from disksla.measure.prometheus import Period
from disksla.promise.catalogue import Rates, SharedLimits
from disksla.tell.explanation import describe_rates
from disksla.tell.html_page import REPORT_STYLE, HtmlPage
from disksla.tell.page import DataTable, FactList, Heading, Line, PagePart, Section, html_of

_SHEET = HtmlPage(REPORT_STYLE)
_MOST_STRETCHES, _MOST_IN_HTML = 5, 50
_NEAR, _HIGH = format_percent(NEAR), format_percent(HIGH)
_LIMITS = {"iops": "IOPS", "bandwidth": "bandwidth", "unknown": "limit"}


class MachineUse(msgspec.Struct, frozen=True):
    """What disks of a machine did together, relative to a limit of the machine."""

    shared: SharedLimits
    devices: tuple[str, ...]
    use: LimitUse


class DiskUse(msgspec.Struct, frozen=True):
    """What is known of a disk from means."""

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
    machine: tuple[MachineUse, ...] = ()

    @property
    def name(self) -> str:
        """The disk with what it was sold as."""
        size = f", {format_size(self.size_bytes)}" if self.size_bytes else ""
        return f"{self.title}, {self.terms}{size}"


def in_order(disks: Sequence[DiskUse]) -> list[DiskUse]:
    """Return disks, those that were longest at a limit first, then by their largest load."""
    return sorted(
        disks, key=lambda disk: (-disk.use.at_limit_s, -(disk.use.largest_load or 0), disk.title)
    )


def means_page(disks: Sequence[DiskUse], period: Period, most: int) -> Iterator[PagePart]:
    """Yield what is known of disks, `most` of them in detail; times are those of a zone."""
    yield Heading(f"Disks from {_time(period, period.start_timestamp_s)} to"
                  f" {_time(period, period.end_timestamp_s)} {period.zone}", level=1)  # fmt: skip
    yield Line(headline(disks), "strong")
    if len(disks) > 1:
        yield _table(disks)
    for disk in disks[:most]:
        yield Section([*_of_disk(disk, period)], "section")
    yield from (Line(note, "soft") for note in _notes(disks))


def means_html(disks: Sequence[DiskUse], period: Period) -> str:
    """Return the page as HTML. Names of disks are escaped."""
    body = html_of(means_page(disks, period, _MOST_IN_HTML))
    return _SHEET.page(headline(disks), f"<main>\n{body}\n</main>")


def headline(disks: Sequence[DiskUse]) -> str:
    """Return how many disks ran at a limit."""
    at = [disk.title for disk in disks if disk.use.at_limit]
    known = sum(disk.use.largest_load is not None for disk in disks)
    if not known:
        return "The limits of no disk are known; say what they were sold as, with --terms."
    of = f"{len(at)} of {known} disk{'' if known == 1 else 's'} with known limits"
    return f"{of} ran at a limit{': ' if at else '.'}{', '.join(at)}{'.' if at else ''}"


def _table(disks: Sequence[DiskUse]) -> DataTable:
    numbers = ("at a limit", f"above {_NEAR}", f"above {_HIGH}", "largest load", "IOPS")
    rows = []
    for disk in disks:
        use = disk.use
        known = [_duration(each) for each in (use.at_limit_s, use.near_s, use.high_s)]
        load = use.largest_load
        cells = (*known, format_percent(load)) if load is not None else ("", "", "", "")
        rows.append((disk.title, disk.terms, *cells, format_count(use.largest_iops)))
    return DataTable(("disk", "type", *numbers), rows, numbers)


def _of_disk(disk: DiskUse, period: Period) -> Iterator[PagePart]:
    use = disk.use
    style = "bad" if use.at_limit else ""
    yield Heading(f"{disk.name}: {_condition(use)}", style=style)
    facts = [
        ("limits", describe_rates(disk.limits) or "not known"),
        ("burst", "" if disk.burst is None else describe_rates(disk.burst)),
        ("type", disk.reason),
        ("seen", _seen(use, period)),
        *_facts(use, period),
    ]
    yield FactList(facts)
    yield _stretches(use, period)
    yield from (Line(_of_machine(machine, period)) for machine in disk.machine)
    if use.beyond_s:
        yield Line(
            f"For {format_duration(use.beyond_s)} it did more than these limits permit: it has"
            " others, or a cache of the host answers.",
            "note",
        )


def _condition(use: LimitUse) -> str:
    if use.largest_load is None:
        return "its limits are not known"
    if not use.at_limit:
        return f"never at a limit, at most at {format_percent(use.largest_load)}"
    share = format_percent(use.at_limit_s / use.seconds)
    return f"ran at its limit for {format_duration(use.at_limit_s)}, {share} of the time"


def _seen(use: LimitUse, period: Period) -> str:
    return (
        f"{_time(period, use.start_s)} to {_time(period, use.end_s)},"
        f" {format_duration(use.seconds)} in intervals of {format_duration(use.interval_s)}"
    )


def _facts(use: LimitUse, period: Period) -> Iterator[tuple[str, str]]:
    """Yield what was seen, by name."""
    most = (
        f"{format_count(use.largest_iops)} IOPS, {format_bandwidth(use.largest_bytes_per_second)}"
    )
    if use.largest_load is not None:
        for level, limit in dict.fromkeys((each.level, each.limit) for each in use.at_limit):
            chosen = [each for each in use.at_limit if (each.level, each.limit) == (level, limit)]
            seconds = format_duration(sum(each.seconds for each in chosen))
            yield (
                _name(chosen[0]),
                (
                    f"{seconds}, first {_time(period, chosen[0].start_s)}, last until"
                    f" {_time(period, chosen[-1].end_s)}"
                ),
            )
        yield (
            "largest load",
            f"{format_percent(use.largest_load)}, until {_time(period, use.largest_timestamp_s)}",
        )
        yield (
            f"above {_HIGH}",
            (f"{_duration(use.high_s)}; above {_NEAR}: {_duration(use.near_s)}"),
        )
    yield "most", most
    yield "latency at it", _latency(use.latency_at_limit)
    yield "latency" if not use.at_limit else "otherwise", _latency(use.latency_otherwise)
    for bucket in use.credits:
        yield f"credits ({bucket.resource})", _credits(bucket, period)


def _name(at: AtLimit) -> str:
    of = {"base": "at its limit", "burst": "at its burst limit"}[at.level]
    return f"{of} of {_LIMITS[at.limit]}" if at.limit != "unknown" else of


def _latency(latency: Latency) -> str:
    parts = [
        f"{name} {format_duration(seconds)}"
        for name, seconds in (("reads", latency.read_s), ("writes", latency.write_s))
        if seconds is not None
    ]
    if not parts and latency.request_s is not None:
        parts = [f"requests {format_duration(latency.request_s)}"]
    return ", ".join(parts)


def _credits(bucket: CreditsSeen, period: Period) -> str:
    estimate, lower, upper, lowest = map(
        format_percent,
        (bucket.estimate_ratio, bucket.lower_ratio, bucket.upper_ratio, bucket.lowest_ratio),
    )
    text = (
        f"about {estimate} at the end, between {lower} and {upper}; lowest about {lowest},"
        f" {_time(period, bucket.lowest_timestamp_s)}"
    )
    if bucket.maybe_empty_s:
        text += (
            f"; used up for about {format_duration(bucket.maybe_empty_s)}, certainly for"
            f" {format_duration(bucket.empty_s)}"
        )
    return text


def _of_machine(machine: MachineUse, period: Period) -> str:
    use, shared = machine.use, machine.shared
    first = f", first {_time(period, use.at_limit[0].start_s)}" if use.at_limit else ""
    return (
        f"{shared.machine or 'The machine'}, {shared.title} ({', '.join(machine.devices)}):"
        f" {_condition(use)} ({describe_rates(shared.limits.rates)}){first}."
    )


def _stretches(use: LimitUse, period: Period) -> DataTable:
    """Return the longest times at a limit, if there are several."""
    longest = sorted(use.at_limit, key=lambda each: -each.seconds)[:_MOST_STRETCHES]
    if len(longest) == 1:
        longest = []
    rows = [
        (_time(period, each.start_s), format_duration(each.seconds), _name(each))
        for each in sorted(longest, key=lambda each: each.start_s)
    ]
    caption = "Longest times at a limit" if len(use.at_limit) > len(longest) else ""
    return DataTable(("from", "for", "what"), rows, ("for",), caption=caption)


def _notes(disks: Sequence[DiskUse]) -> Iterator[str]:
    """Yield what the words mean, and what cannot be known."""
    uses = [disk.use for disk in disks]
    interval = format_duration(max((use.interval_s for use in uses), default=0.0))
    excess = format_percent(max((disk.excess_ratio for disk in disks), default=0.0))
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
    if not all(use.is_depth_known for use in uses):
        yield "Where the requests in flight are not known, no time is at a limit."


def _time(period: Period, timestamp_s: float) -> str:
    """Return a time, or how long after the start it is if no time is known."""
    return period.text(timestamp_s) if period.start_timestamp_s else format_duration(timestamp_s)


def _duration(seconds: float) -> str:
    return format_duration(seconds) if seconds else "never"

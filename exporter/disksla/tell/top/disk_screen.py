"""One disk: sentences, strip and curves, limits, credits; its consumers; and the help."""

from collections.abc import Iterator

from disksla.base.units import format_bandwidth, format_count, format_duration, format_percent
from disksla.promise.catalogue import TERMS_TITLES
from disksla.tell.api import LiveDiskDocument
from disksla.tell.explanation import (
    CONDITION_TEXT,
    SHOWN,
    SHOWN_TEXT,
    describe_condition,
    describe_load,
    describe_rates,
    read_and_write,
    shown_load,
)
from disksla.tell.top.line import Line, Look, Span, curve, fit, strip, wrap
from disksla.tell.top.view import problem_now
from disksla.verdict.throttling import LimitKind

_LABEL = 12
_VALUE = 12
_COLUMN_S = 5
_LEAST_CURVE = 10
_KINDS: tuple[LimitKind, ...] = ("iops", "bandwidth")
_SHARE = 9
_MOST_NAME = 60


def disk_lines(disk: LiveDiskDocument, now_s: float, width: int, look: Look) -> list[Line]:
    """Return what is known of a disk as lines that are at most this wide, if it is not small.

    `now_s` is the time of the last sample, in seconds since 1970.
    """
    lines: list[Line] = [_title(disk), ()]
    for sentence in disk.sentences:
        lines += [(Span(line),) for line in wrap(sentence, width)]
    lines += [(), *_charts(disk, width, look), _key(look), ()]
    for label, text in _facts(disk, now_s):
        lines += _beside((Span(fit(label, _LABEL), "soft"),), text, _LABEL, width)
    return lines


def _beside(label: Line, text: str, label_width: int, width: int) -> list[Line]:
    """Return a text in lines behind its label."""
    first, *others = wrap(text, width - label_width) or [""]
    rest: list[Line] = [(Span(" " * label_width), Span(line)) for line in others]
    return [(*label, Span(first)), *rest]


def _title(disk: LiveDiskDocument) -> Line:
    problem = problem_now(disk)
    words = describe_condition(disk.condition, disk.load_ratio)
    label = Span(f" {words} ", problem or "", problem is not None)
    return (Span(disk.device, "strong"), Span(" "), label, Span(f" {disk.size_text}"))


def _charts(disk: LiveDiskDocument, width: int, look: Look) -> Iterator[Line]:
    """Yield the strip and the curves, in front of them the last value, behind them the highest."""
    charts = disk.charts
    columns = max(_LEAST_CURVE, min(len(charts.verdicts), width - _LABEL - _VALUE))
    period = f"Last {columns * _COLUMN_S} s, {_COLUMN_S} s for each character"
    yield (Span(period, "heading"),)
    verdicts = strip(charts.verdicts[-columns:], columns, look.glyphs)
    yield (Span(fit("state", _LABEL), "soft"), Span(" " * _VALUE), *verdicts)
    iops, bandwidth = (
        rates[0] if rates[0] == rates[1] else None  # a limit that reads and writes have alike
        for rates in (read_and_write(disk.limits, kind) for kind in _KINDS)
    )
    for label, values, written, limit in (
        ("IOPS", charts.iops, format_count, iops),
        ("throughput", charts.bytes_per_second, format_bandwidth, bandwidth),
        ("await", charts.latency_s, format_duration, None),
        ("queue depth", charts.queue_depth, format_count, None),
        ("credits", charts.credits_ratio, format_percent, 1.0),
    ):
        if all(value is None for value in values):
            continue
        shown = values[-columns:]
        highest = max((value for value in shown if value is not None), default=0.0)
        last = "-" if shown[-1] is None else written(shown[-1])
        drawn = curve(shown, max(highest, limit or 0.0), has_blocks=look.has_blocks)
        yield (
            Span(fit(label, _LABEL), "soft"),
            Span(fit(last, _VALUE)),
            Span(drawn, "unproven"),
            Span(f" max {written(highest)}", "soft"),
        )


def _key(look: Look) -> Line:
    """Return what the characters of a strip mean."""
    return tuple(
        span
        for each in SHOWN
        for span in (Span(look.glyphs[each], each), Span(f" {SHOWN_TEXT[each].words} ", "soft"))
    )


def _facts(disk: LiveDiskDocument, now_s: float) -> Iterator[tuple[str, str]]:
    present = disk.present
    reads, writes = format_count(present.read_iops), format_count(present.write_iops)
    read, written = present.read_bytes_per_second, present.written_bytes_per_second
    now = f"{reads} r/s, {writes} w/s, {format_bandwidth(read)} read"
    yield "now", f"{now}, {format_bandwidth(written)} written, {disk.inflight or 0} in flight"
    if disk.load_ratio is not None:
        yield "load", describe_load(disk.load_ratio, "its limit")
    yield "limits", describe_rates(disk.limits) or "none are known"
    for level in disk.credits:
        yield "credits", level.describe()
    for machine in disk.machine_limits:
        load = machine.load_ratio
        used = "" if load is None else f"; load {format_percent(shown_load(load))}"
        yield "machine", f"{machine.limits}{used}"
    yield "terms", TERMS_TITLES.get(disk.terms, disk.terms)
    origin, as_of_s = disk.said_by or disk.terms_source, disk.as_of_timestamp_s
    ago = "" if as_of_s is None else f", {format_duration(max(0.0, now_s - as_of_s))} ago"
    yield "from", f"{origin}{ago}"
    if disk.mount_points:
        yield "mounted on", ", ".join(disk.mount_points)
    if disk.claim:
        yield "claim", disk.claim


def who_lines(disk: LiveDiskDocument, width: int) -> list[Line]:
    """Return who used a disk as lines that are at most this wide, if it is not small."""
    return [(Span(disk.device, "strong"), Span(" is used by")), (), *_consumers(disk, width)]


def _consumers(disk: LiveDiskDocument, width: int) -> Iterator[Line]:
    if not disk.consumers:
        why = disk.why_no_consumers or "it was not watched in the last five minutes"
        yield from ((Span(line),) for line in wrap(f"not known: {why}", width))
        return
    when = "throttled" if any(disk.throttled_seconds.values()) else "busy"
    yield (Span(f"Shares of what it served while it was {when}", "soft"),)
    names = min(_MOST_NAME, max(1, width - 2 * (_SHARE + 1) - 1))
    headings = (
        fit("consumer", names),
        *(fit(each, _SHARE, is_number=True) for each in ("requests", "bytes")),
    )
    yield (Span(" ".join(headings), "heading"),)
    for each in disk.consumers:
        name = f"{each.consumer} ({each.program})" if each.program else each.consumer
        shares = [
            fit("-" if share is None else f"{100 * share:.1f} %", _SHARE, is_number=True)
            for share in (each.requests, each.bytes)
        ]
        yield (Span(" ".join((fit(name, names), *shares))),)


_KEYS = (
    ("arrows, j k", "select a disk, or scroll; Page Up, Page Down, Home, End"),
    ("Enter", "open the selected disk"),
    ("w", "who uses the selected disk"),
    ("Esc, q", "back; q quits where all disks are shown"),
    ("Space", "freeze what is shown, or resume"),
    ("/", "list the disks whose name, mount point or claim contains a text; Esc: all"),
    ("t n i b a l", "sort by trouble, name, IOPS, throughput, await or load"),
    ("h, ?", "this help"),
)
_COLUMNS = (
    ("state", "of the last five seconds; the worst that applied for a tenth of them"),
    ("r/s, w/s", "reads and writes that completed in a second, as in iostat"),
    ("rMiB/s", "read, and wMiB/s written, in a second; 1 MiB is 1024 KiB"),
    ("await", "mean time of a request in ms, as in iostat"),
    ("aqu-sz", "mean number of requests in flight, as in iostat"),
    ("load", "utilization of the limit; at 100 % the disk is at the limit"),
    ("credits", "burst credits left, and when they are used up at the present load"),
    ("who", "unit, container or pod that used most of the disk in the last five minutes"),
    ("last 60 s", "the worst verdicts of the last minute, the present on the right"),
    ("trouble", "seconds with a problem: in the last minute, then in five"),
)
_STATES = tuple((each.short, each.meaning) for each in CONDITION_TEXT.values())
_HELP_LABEL = 22


def help_lines(look: Look, width: int) -> list[Line]:
    """Return the help as lines that are at most this wide, if it is not small."""
    lines: list[Line] = []
    for heading, entries in (("Keys", _KEYS), ("Columns", _COLUMNS), ("States", _STATES)):
        lines += [(Span(heading, "heading"),)]
        for name, text in entries:
            lines += _beside((Span(fit(name, _HELP_LABEL), "strong"),), text, _HELP_LABEL, width)
        lines.append(())
    lines += [(Span("Strips", "heading"),)]
    for shown in SHOWN:
        glyph = Span(look.glyphs[shown], shown)
        words = Span(fit(f" {SHOWN_TEXT[shown].words}", _HELP_LABEL - 1), "strong")
        lines += _beside((glyph, words), SHOWN_TEXT[shown].meaning, _HELP_LABEL, width)
    return lines

"""The table of all disks: which columns it has at which width, and their cells."""

from collections.abc import Callable, Sequence
from typing import NamedTuple

from disksla.base.units import MIB, format_duration
from disksla.tell.api import LiveDiskDocument
from disksla.tell.explanation import CONDITION_TEXT, shown_load
from disksla.tell.top.line import Line, Look, Span, Style, cells, clean, fit, strip
from disksla.tell.top.view import bytes_per_second, most_limited, names_of_use, problem_now

_WIDE = 100
"""Terminals of this width or wider have separate columns for reads and writes."""
_WIDEST = 120
"""Those of this width or wider also have who uses the disk."""
_NUMBER = 6
_LEAST_STRIP = 10
_MOST_STRIP = 60
_MOST_NAME = 16
_MOST_MOUNTED = 32
_MOST_WHO = 32
_MOST_MOUNTED_NARROW = 20
_STATE = "state"


class Column(NamedTuple):
    """A column of the table."""

    title: str
    width: int
    rank: int
    """The column with the lowest remains the longest when the terminal is narrow."""
    text: Callable[[LiveDiskDocument], str]
    is_number: bool = True


class Table(NamedTuple):
    """The columns that fit, and the width of the strip behind them."""

    columns: tuple[Column, ...]
    strip_width: int

    def heading(self) -> Line:
        """Return the line of titles."""
        titles = [
            fit(column.title, column.width, is_number=column.is_number) for column in self.columns
        ]
        strip_title = ["last 60 s"] if self.strip_width else []
        return (Span(" " + " ".join(titles + strip_title), "heading"),)

    def row(self, disk: LiveDiskDocument, look: Look, *, is_selected: bool) -> Line:
        """Return the line of a disk."""
        style: Style = "selected" if is_selected else ""
        spans = [Span(">" if is_selected else " ", style)]
        for column in self.columns:
            text = fit(column.text(disk), column.width, is_number=column.is_number)
            problem = problem_now(disk)
            if column.title == _STATE and problem is not None:
                spans += [Span(text, problem, is_label=True), Span(" ", style)]
            else:
                spans.append(Span(f"{text} ", style))
        return (*spans, *strip(disk.last_minute, self.strip_width, look.glyphs))


def table(disks: Sequence[LiveDiskDocument], width: int) -> Table:
    """Return the table of disks on a terminal of this width."""
    left = width - 1
    chosen = set()
    columns = _columns(disks, is_wide=width >= _WIDE)
    if width >= _WIDEST and any(map(_who, disks)):
        who_width = _widest([_who(disk) for disk in disks], len("who"), _MOST_WHO)
        columns.append(Column("who", who_width, 10, _who, is_number=False))
    for column in sorted(columns, key=lambda each: each.rank):
        needed = column.width + 1 + (_LEAST_STRIP if column.rank > _STRIP_RANK else 0)
        if needed <= left:
            chosen.add(column.title)
            left -= column.width + 1
    strip_width = min(left, _MOST_STRIP)
    return Table(
        tuple(column for column in columns if column.title in chosen),
        strip_width if strip_width >= _LEAST_STRIP else 0,
    )


_STRIP_RANK = 2
"""Columns of this rank are more important than the strip."""


def _columns(disks: Sequence[LiveDiskDocument], *, is_wide: bool) -> list[Column]:
    """Return all columns; those that are empty for every disk are left out."""
    name_width = _widest([disk.device for disk in disks], len("Device"), _MOST_NAME)
    columns = [Column("Device", name_width, 0, lambda disk: disk.device, is_number=False)]
    mounted = [", ".join(names_of_use(disk)) for disk in disks]
    if any(mounted):
        most = _MOST_MOUNTED if is_wide else _MOST_MOUNTED_NARROW
        columns.append(
            Column(
                "mounted on",
                _widest(mounted, len("mounted on"), most),
                3,
                lambda disk: ", ".join(names_of_use(disk)),
                is_number=False,
            )
        )
    columns += [
        Column(_STATE, max(len(each.short) for each in CONDITION_TEXT.values()), 1,
               _state, is_number=False),
        _rate("r/s", 4, lambda disk: disk.present.read_iops),
        _rate("w/s", 4, lambda disk: disk.present.write_iops),
    ]  # fmt: skip
    if is_wide:
        columns += [
            _rate("rMiB/s", 5, lambda disk: disk.present.read_bytes_per_second / MIB),
            _rate("wMiB/s", 5, lambda disk: disk.present.written_bytes_per_second / MIB),
        ]
    else:
        columns.append(_rate("MiB/s", 5, lambda disk: bytes_per_second(disk) / MIB))
    columns += [
        _rate("await", 4, lambda disk: disk.await_s and disk.await_s * 1e3),
        _rate("aqu-sz", 7, lambda disk: disk.queue_depth),
        Column(
            "load",
            5,
            _STRIP_RANK,
            lambda disk: percent(disk.load_ratio and shown_load(disk.load_ratio), 5),
        ),
    ]
    if any(disk.credits for disk in disks):
        columns += [Column("credits", 7, 6, _credits), Column("empty in", 8, 8, _empty_in)]
    return columns


def _state(disk: LiveDiskDocument) -> str:
    return "-" if disk.condition is None else CONDITION_TEXT[disk.condition].short


def _rate(title: str, rank: int, value: Callable[[LiveDiskDocument], float | None]) -> Column:
    return Column(title, _NUMBER, rank, lambda disk: number(value(disk), _NUMBER))


def _widest(texts: Sequence[str], least: int, most: int) -> int:
    return min(most, max(least, *(cells(clean(text)) for text in texts), least))


def _who(disk: LiveDiskDocument) -> str:
    """Return the consumer that used most of the disk, behind its share.

    It is that of the bytes if a limit of bandwidth throttled the disk, else of the requests.
    """
    first = next(iter(disk.consumers), None)
    if first is None:
        return ""
    shares = [first.requests, first.bytes]
    if most_limited(disk) in {"bandwidth", "machine_bandwidth"}:
        shares.reverse()
    share = next((each for each in shares if each is not None), 0.0)
    return f"{100 * share:.0f}% {first.consumer}"


def _credits(disk: LiveDiskDocument) -> str:
    """Return the credits left of the resource with the least."""
    return percent(min((each.ratio for each in disk.credits if each.is_known), default=None), 7)


def _empty_in(disk: LiveDiskDocument) -> str:
    known = (each.exhaustion_s for each in disk.credits if each.is_known)
    left_s = [each_s for each_s in known if each_s is not None]
    return format_duration(min(left_s)) if left_s else "-"


_PREFIXES = ("", "k", "M", "G", "T")
_ABSENT = "-"


def number(value: float | None, width: int) -> str:
    """Return a number with at most two decimals that is at most this wide.

    A long one is in thousands (k), millions (M) and so on, at a width of six or more.
    """
    if value is None:
        return _ABSENT
    for power, prefix in enumerate(_PREFIXES):
        text = _decimals(value / 1000**power) + prefix
        if len(text) <= width:
            return text
    return f"{value:.0e}"


def percent(ratio: float | None, width: int) -> str:
    """Return a ratio in percent."""
    return _ABSENT if ratio is None else f"{number(round(100 * ratio, 1), width - 1)}%"


def _decimals(value: float) -> str:
    if value < 9.995:  # noqa: PLR2004 -- below ten
        return f"{value:.2f}"
    return f"{value:.1f}" if value < 99.95 else f"{value:.0f}"  # noqa: PLR2004 -- below 100

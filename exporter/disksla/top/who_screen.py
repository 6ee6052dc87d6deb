"""The consumers of one disk: units, containers and pods, with their shares."""

from collections.abc import Iterator

from disksla.api import LiveDiskDocument
from disksla.top.line import Line, Span, fit, wrap

_SHARE = 9
_MOST_NAME = 60


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

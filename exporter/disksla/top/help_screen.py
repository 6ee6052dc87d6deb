"""The help: keys, columns and verdicts."""

from disksla.top.line import Line, Span, fit, wrap
from disksla.top.look import Look
from disksla.verdict import VERDICTS, Verdict

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
    ("verdict", "of the last second; the worst that applied for a tenth of it"),
    ("limit", "at which the disk is throttled now"),
    ("r/s, w/s", "reads and writes that completed in a second, as in iostat"),
    ("rMiB/s", "read, and wMiB/s written, in a second; 1 MiB is 1024 KiB"),
    ("await", "mean time of a request in ms, as in iostat"),
    ("aqu-sz", "mean number of requests in flight, as in iostat"),
    ("load", "utilization of the limit; at 100 % the disk is at the limit"),
    ("credits", "burst credits left, and when they are used up at the present load"),
    ("who", "unit, container or pod that used most of the disk in the last five minutes"),
    ("last 60 s", "the worst verdicts of the last minute, the present on the right"),
    ("trouble", "seconds throttled, below or stalled: in the last minute, then in five"),
)
_VERDICTS: dict[Verdict, str] = {
    "idle": "no request",
    "unproven": "the load asks for less than the limit and is served",
    "met": "the disk gives what was promised, or more",
    "throttled": "a limiter makes requests wait",
    "below": "requests wait, no limit explains it, and the disk gives less than promised",
    "stalled": "requests are in flight and none completes",
}
_LABEL = 14


def help_lines(look: Look, width: int) -> list[Line]:
    """Return the help as lines that are at most this wide, if it is not small."""
    lines: list[Line] = [(Span("Keys", "heading"),)]
    for key, text in _KEYS:
        lines += _entry((Span(fit(key, _LABEL), "strong"),), text, width)
    lines += [(), (Span("Columns", "heading"),)]
    for title, text in _COLUMNS:
        lines += _entry((Span(fit(title, _LABEL), "strong"),), text, width)
    lines += [(), (Span("Verdicts", "heading"),)]
    for verdict in VERDICTS:
        glyph = Span(look.glyphs[verdict], verdict)
        name = Span(fit(f" {verdict}", _LABEL - 1), "strong")
        lines += _entry((glyph, name), _VERDICTS[verdict], width)
    return lines


def _entry(label: Line, text: str, width: int) -> list[Line]:
    wrapped = wrap(text, width - _LABEL)
    rest: list[Line] = [(Span(" " * _LABEL), Span(line)) for line in wrapped[1:]]
    return [(*label, Span(wrapped[0])), *rest]

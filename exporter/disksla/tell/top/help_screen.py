"""The help: keys, columns and verdicts."""

from disksla.tell.explanation import SHOWN, SHOWN_WORDS, Shown
from disksla.tell.top.line import Line, Span, fit, wrap
from disksla.tell.top.look import Look

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
_STATES = (
    ("You: limit", "throttled at the limit you bought"),
    ("You: credits", "burst credits are used up, and it is throttled at the baseline"),
    ("Machine: limit", "throttled at a limit of the machine; a larger disk does not help"),
    ("unknown limit", "throttled at a limit that the terms do not explain"),
    ("Disk: slow", "requests take longer than promised, or far longer than usual"),
    ("Disk: less", "the disk gives less than promised"),
    ("Disk: stalled", "requests are in flight and none completes"),
)
_SHOWN: dict[Shown, str] = {
    "idle": "no request",
    "unproven": "the load asks for less than the limit and is served",
    "met": "the disk gives what was promised, or more",
    "slow": "requests took longer than promised, or far longer than usual",
    "throttled": "a limiter makes requests wait",
    "below": "requests wait, no limit explains it, and the disk gives less than promised",
    "stalled": "requests are in flight and none completes",
}
_LABEL = 22


def help_lines(look: Look, width: int) -> list[Line]:
    """Return the help as lines that are at most this wide, if it is not small."""
    lines: list[Line] = []
    for heading, entries in (("Keys", _KEYS), ("Columns", _COLUMNS), ("States", _STATES)):
        lines += [(Span(heading, "heading"),)]
        for name, text in entries:
            lines += _entry((Span(fit(name, _LABEL), "strong"),), text, width)
        lines.append(())
    lines += [(Span("Strips", "heading"),)]
    for shown in SHOWN:
        glyph = Span(look.glyphs[shown], shown)
        words = Span(fit(f" {SHOWN_WORDS[shown]}", _LABEL - 1), "strong")
        lines += _entry((glyph, words), _SHOWN[shown], width)
    return lines


def _entry(label: Line, text: str, width: int) -> list[Line]:
    wrapped = wrap(text, width - _LABEL)
    rest: list[Line] = [(Span(" " * _LABEL), Span(line)) for line in wrapped[1:]]
    return [(*label, Span(wrapped[0])), *rest]

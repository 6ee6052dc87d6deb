"""The help: keys, columns and verdicts."""

from disksla.tell.explanation import CONDITION_TEXT, SHOWN, SHOWN_TEXT
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
_STATES = tuple((each.short, each.meaning) for each in CONDITION_TEXT.values())
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
        words = Span(fit(f" {SHOWN_TEXT[shown].words}", _LABEL - 1), "strong")
        lines += _entry((glyph, words), SHOWN_TEXT[shown].meaning, width)
    return lines


def _entry(label: Line, text: str, width: int) -> list[Line]:
    wrapped = wrap(text, width - _LABEL)
    rest: list[Line] = [(Span(" " * _LABEL), Span(line)) for line in wrapped[1:]]
    return [(*label, Span(wrapped[0])), *rest]

"""All disks as a block of plain text, as `iostat` and `top -b` print them."""

from disksla.api import DisksDocument
from disksla.top.columns import table
from disksla.top.line import Line, Span, clean
from disksla.top.look import Look
from disksla.top.order import listed, problem_now
from disksla.top.screen import summary, title
from disksla.top.view import View


def block(document: DisksDocument, width: int, look: Look) -> str:
    """Return a block of lines: the host, the disks, and a sentence on each with a problem."""
    view = View()
    disks = listed(document.disks, view.sort)
    columns = table(document.disks, width)
    lines = [
        (Span(f"{look.clock(document.timestamp_s)} {title(document, look)}"),),
        summary(document, view, look),
        columns.heading(),
        *(columns.row(disk, look, is_selected=False) for disk in disks),
    ]
    bad = [disk for disk in disks if problem_now(disk)]
    text = [_plain(line) for line in lines]
    text += [clean(f"{disk.device}: {disk.sentences[0]}") for disk in bad if disk.sentences]
    return "\n".join(text) + "\n"


def _plain(line: Line) -> str:
    return clean("".join(span.text for span in line)).rstrip()

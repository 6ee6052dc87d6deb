"""What each step would change of a closed loop: a table and sentences."""

from rich.table import Table

from disksla.advice.closed_loop import ClosedLoop
from disksla.units import format_count, format_duration


def loop_sentence(loop: ClosedLoop) -> str:
    """Return what was seen of a closed loop."""
    free = (
        f"; without throttling it takes {format_duration(loop.service_s)} or more"
        if loop.service_s
        else ""
    )
    return (
        f"This is a closed loop: {format_count(loop.inflight)} requests are in flight while the"
        f" disk is throttled, and {format_count(loop.served_iops)} are served per second. So a"
        f" request takes {format_duration(loop.request_s)}{free}."
    )


def steps_table(loop: ClosedLoop) -> Table:
    """Return what each doubling of the limit changes."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in ("limit, IOPS", "served per second", "a request waits"):
        table.add_column(name, justify="right", no_wrap=True)
    for number, iops in enumerate(loop.steps()):
        least, most = map(format_count, loop.served(iops))
        table.add_row(
            format_count(iops) + ("" if number else " (now)"),
            least if least == most else f"{least} to {most}",
            waits_text(loop, iops),
        )
    return table


def waits_text(loop: ClosedLoop, iops: float) -> str:
    """Return how long a request waits for a limiter under a limit."""
    waits_s = loop.waits_s(iops)
    text = format_duration(waits_s)
    if iops < loop.served_iops:
        return f"{text} or more"
    return f"up to {text}" if iops > loop.served_iops and waits_s else text

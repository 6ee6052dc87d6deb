"""Readings of the statistics page of a simulated disk: the limiter's own count of its truth.

All requests are counted as reads.
"""

from collections.abc import Iterable, Sequence

import msgspec

from disksla.clouds.ebs_statistics.reading import Reading
from disksla.clouds.ebs_statistics.statistics_page import parse
from disksla.state.pipeline.tick import Tick
from support.ebs_pages import Page
from support.simulated_limiter import DEVICE, DISK, Window

_FIELDS = {
    "iops": "volume_exceeded_iops_us",
    "bandwidth": "volume_exceeded_tp_us",
    "machine_iops": "instance_exceeded_iops_us",
    "machine_bandwidth": "instance_exceeded_tp_us",
}


def exceeded_s(truth: Iterable[Window], until_s: float) -> dict[str, float]:
    """Return for how long requests waited for each limit up to a time.

    In a window of the limiter, they are counted evenly.
    """
    seconds = dict.fromkeys(_FIELDS, 0.0)
    for window in truth:
        part = (until_s - window.start_s) / (window.end_s - window.start_s)
        if part > 0 and window.limit is not None:
            seconds[window.limit] += window.throttled_s * min(1.0, part)
    return seconds


def readings(
    truth: Sequence[Window],
    times_s: Iterable[float],
    limits: dict[str, str] | None = None,
    reset_at_s: float = float("inf"),
) -> list[Reading]:
    """Return what the page says at these times, of a volume that was attached long before.

    `limits` rename those of the truth, as where the limiter is that of the machine. At
    `reset_at_s` the counters begin again, as after another attachment.
    """
    found = []
    for time_s in times_s:
        before_s = exceeded_s(truth, reset_at_s) if time_s >= reset_at_s else {}
        base_us = 0 if time_s >= reset_at_s else 5_000_000
        counters = dict.fromkeys(_FIELDS.values(), base_us)
        for limit, seconds in exceeded_s(truth, time_s).items():
            field = _FIELDS[(limits or {}).get(limit, limit)]
            counters[field] += round((seconds - before_s.get(limit, 0.0)) * 1e6)
        admitted = [window for window in truth if window.end_s <= time_s]
        page = Page(
            total_read_ops=sum(window.ops for window in admitted),
            total_read_bytes=sum(window.bytes for window in admitted),
        )
        for field, count_us in counters.items():
            page = page._replace(**{field: count_us})  # type: ignore[arg-type]
        found.append(Reading(DEVICE, DISK.serial or "", time_s, parse(page.written())))
    return found


def with_readings(ticks: Iterable[Tick], messages: Sequence[Reading]) -> list[Tick]:
    """Return the ticks with each reading in the first that comes after it."""
    waiting = list(messages)
    result = []
    for tick in ticks:
        due = [each for each in waiting if each.monotonic_s <= tick.clocks.monotonic_s]
        del waiting[: len(due)]
        result.append(msgspec.structs.replace(tick, provider=tuple(due)))
    return result

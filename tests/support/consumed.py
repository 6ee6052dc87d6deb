"""Ticks with readings of consumers, as the daemon and recordings have them."""

from collections.abc import Iterable, Mapping

from disksla.kernel.consumers.consumption import ConsumerReading, Consumption
from disksla.state.pipeline.tick import Tick


def with_consumers(
    ticks: Iterable[Tick], device: str, found: Mapping[str, tuple[float | None, float | None]]
) -> list[Tick]:
    """Return ticks, of which one in each second says what consumers used of a disk in it.

    `found` has their requests and bytes.
    """
    after, last_s = [], None
    consumers = tuple(
        Consumption(device, consumer, requests=requests, bytes=transferred)
        for consumer, (requests, transferred) in found.items()
    )
    for tick in ticks:
        now_s = tick.clocks.monotonic_s
        if last_s is not None and int(now_s) > int(last_s):
            reading = ConsumerReading({device: (last_s, now_s)}, consumers)
            after.append(tick.with_readings([reading]))
            last_s = now_s
        else:
            after.append(tick)
            last_s = now_s if last_s is None else last_s
    return after

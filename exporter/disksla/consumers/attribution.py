"""Requests of disks by consumer and program, from samples of them.

A sample stands for as many requests as the period says. What was counted, but not sampled or lost,
is unattributed.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

import msgspec

from disksla.consumers.consumption import Consumption
from disksla.events import Taken

UNATTRIBUTED = "unattributed"
SECTOR_BYTES = 512

Names = Callable[[int, str], tuple[str, str]]
"""Returns the consumer and the program of a cgroup and a thread."""


_Key = tuple[str, str, str]
"""Disk, consumer and program."""


class Attribution(msgspec.Struct, frozen=True):
    """What may still be sampled of what was counted: less than a period on each CPU."""

    open: tuple[float, float] = (0.0, 0.0)
    """Requests and parts of requests with bytes that were counted, but not sampled yet."""


def attributed(
    before: Attribution,
    taken: Taken,
    disks: Mapping[str, tuple[int, int]],
    names: Names,
    *,
    with_bytes: bool,
) -> tuple[Attribution, tuple[Consumption, ...]]:
    """Return what each consumer used of each disk, and what is not attributed.

    `disks` are those that are sampled, by their numbers. Bytes are None unless they are sampled.
    """
    devices = {major << 20 | minor: device for device, (major, minor) in disks.items()}
    requests: Counter[_Key] = Counter()
    sizes: Counter[_Key] = Counter()
    sampled = [0, 0]
    for sample, number in taken.seen.items():
        kind = int(sample.tracepoint != taken.requests)
        weight = number * taken.periods[kind]
        sampled[kind] += weight
        if sample.device in devices:
            comm = sample.comm.partition(b"\0")[0].decode(errors="replace")
            key = (devices[sample.device], *names(sample.cgroup, comm))
            if kind:
                sizes[key] += weight * sample.sectors * SECTOR_BYTES
            else:
                requests[key] += weight
    after, lost = _lost(before, taken, (sampled[0], sampled[1]))
    lost_bytes = lost[1] * sizes.total() / sampled[1] if sampled[1] else 0.0
    all_requests = {**requests, **_unattributed(requests, disks, lost[0])}
    all_sizes = {**sizes, **_unattributed(sizes, disks, lost_bytes)}
    return after, tuple(
        Consumption(
            *key,
            requests=float(all_requests.get(key, 0)),
            bytes=float(all_sizes.get(key, 0)) if with_bytes else None,
        )
        for key in sorted({**all_requests, **all_sizes})
    )


def added(parts: Iterable[tuple[Consumption, ...]]) -> tuple[Consumption, ...]:
    """Return what each consumer used in parts of a time; what is not known of a part is None."""
    sums: dict[_Key, Consumption] = {}
    for each in (consumption for part in parts for consumption in part):
        key = (each.device, each.consumer, each.program)
        so_far = sums.get(key)
        if so_far is not None:
            requests = _sum(so_far.requests, each.requests)
            size_bytes = _sum(so_far.bytes, each.bytes)
            sums[key] = Consumption(*key, requests=requests, bytes=size_bytes)
        else:
            sums[key] = each
    return tuple(sums[key] for key in sorted(sums))


def _sum(first: float | None, second: float | None) -> float | None:
    return None if first is None or second is None else first + second


def _lost(
    before: Attribution, taken: Taken, sampled: tuple[int, int]
) -> tuple[Attribution, tuple[float, float]]:
    """Return what may still be sampled, and how much more than that was counted."""
    balance = [
        is_open + counted - weight
        for is_open, counted, weight in zip(before.open, taken.counted, sampled, strict=True)
    ]
    most = [(period - 1) * taken.cpus for period in taken.periods]
    lost = [max(0.0, each - limit) for each, limit in zip(balance, most, strict=True)]
    after = [each - gone for each, gone in zip(balance, lost, strict=True)]
    return Attribution((after[0], after[1])), (lost[0], lost[1])


def _unattributed(used: Counter[_Key], disks: Collection[str], amount: float) -> dict[_Key, float]:
    """Return an amount for each disk by its share of what is known; equal shares without any."""
    if not amount:
        return {}
    known = dict.fromkeys(disks, 0)
    for (device, *_), each in used.items():
        known[device] += each
    total = sum(known.values())
    return {
        (device, UNATTRIBUTED, ""): amount * (each / total if total else 1 / len(known))
        for device, each in known.items()
        if each or not total
    }

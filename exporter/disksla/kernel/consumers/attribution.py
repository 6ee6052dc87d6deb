"""Requests of disks by consumer and program, from samples of them.

A sample stands for as many requests as the period says. What was counted, but not sampled or lost,
is unattributed.
"""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Mapping

from disksla.kernel.consumers.consumption import UNATTRIBUTED, Consumption
from disksla.kernel.performance_events import Taken

SECTOR_BYTES = 512

Names = Callable[[int, str], tuple[str, str]]
"""Returns the consumer and the program of a cgroup and a thread."""


_Key = tuple[str, str, str]  # disk, consumer and program


Open = tuple[int, int]
"""Requests, and parts of requests with bytes, that were counted, but not sampled yet: less than a
period on each CPU."""
NONE_OPEN: Open = (0, 0)


def attributed(
    before: Open,
    taken: Taken,
    disks: Mapping[str, tuple[int, int]],
    names: Names,
    *,
    with_bytes: bool,
) -> tuple[Open, tuple[Consumption, ...]]:
    """Return what is open, what each consumer used of each disk, and what is not attributed.

    `disks` are those that are sampled, by their numbers. Bytes are None unless they are sampled.
    """
    used, sampled = _used(taken, disks, names)
    after, (lost, lost_parts) = _lost(before, taken, sampled)
    lost_bytes = lost_parts * used[1].total() / sampled[1] if sampled[1] else 0.0
    requests = _with_unattributed(used[0], disks, lost)
    sizes = _with_unattributed(used[1], disks, lost_bytes)
    return after, tuple(
        Consumption(
            *key,
            requests=requests.get(key, 0.0),
            bytes=sizes.get(key, 0.0) if with_bytes else None,
        )
        for key in sorted({**requests, **sizes})
    )


def _used(
    taken: Taken, disks: Mapping[str, tuple[int, int]], names: Names
) -> tuple[tuple[Counter[_Key], Counter[_Key]], tuple[int, int]]:
    """Return requests and bytes by key, and of how many events the samples are."""
    devices = {major << 20 | minor: device for device, (major, minor) in disks.items()}
    used: tuple[Counter[_Key], Counter[_Key]] = (Counter(), Counter())
    sampled = [0, 0]
    for sample, number in taken.seen.items():
        kind = int(sample.tracepoint != taken.requests)
        events = number * taken.periods[kind]
        sampled[kind] += events
        if sample.device in devices:
            comm = sample.comm.partition(b"\0")[0].decode(errors="replace")
            key = (devices[sample.device], *names(sample.cgroup, comm))
            used[kind][key] += events * (sample.sectors * SECTOR_BYTES if kind else 1)
    return used, (sampled[0], sampled[1])


def total_consumption(parts: Iterable[tuple[Consumption, ...]]) -> tuple[Consumption, ...]:
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


def _lost(before: Open, taken: Taken, sampled: tuple[int, int]) -> tuple[Open, tuple[int, int]]:
    """Return what may still be sampled, and how much more than that was counted."""
    balance = [
        is_open + counted - weight
        for is_open, counted, weight in zip(before, taken.counted, sampled, strict=True)
    ]
    most = [(period - 1) * taken.cpus for period in taken.periods]
    lost = [max(0, each - limit) for each, limit in zip(balance, most, strict=True)]
    after = [each - gone for each, gone in zip(balance, lost, strict=True)]
    return (after[0], after[1]), (lost[0], lost[1])


def _with_unattributed(
    used: Counter[_Key], disks: Collection[str], amount: float
) -> dict[_Key, float]:
    """Return what is used, and an amount of each disk by its share; equal shares without any."""
    found = {key: float(each) for key, each in used.items()}
    known = dict.fromkeys(disks, 0)
    for (device, *_), each in used.items():
        known[device] += each
    total = sum(known.values())
    for device, each in known.items() if amount else ():
        share = each / total if total else 1 / len(known)
        key = (device, UNATTRIBUTED, "")
        if share:
            found[key] = found.get(key, 0.0) + amount * share
    return found

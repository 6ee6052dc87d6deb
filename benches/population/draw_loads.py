"""The loads of the population, by class."""

import math
from random import Random

from population.loads import Closed, Commits, Load, Open, Requests, Span, Timer

LOADS = (
    *("reads", "deep queue", "open loop", "mix", "few writes", "few reads", "one with fdatasync"),
    *("several with fdatasync", "commits", "commits and reads", "bandwidth", "timer", "changing"),
)
STEADY_LOADS = tuple(name for name in LOADS if name not in {"changing", "bandwidth"})


def draw_spans(
    chance: Random, load_class: str, iops: float, request_bytes: int, seconds: float
) -> tuple[Span, ...]:
    """Return the loads of a class for a disk that serves or admits so many requests a second."""
    if load_class != "changing":
        loads = _loads(chance, load_class, iops, request_bytes)
        return tuple(Span(load, 0.53, seconds) for load in loads)
    ends_s = sorted(chance.uniform(0.05, 0.95) * seconds for _ in range(chance.randint(1, 5)))
    spans: list[Span] = []
    for start_s, end_s in zip([0.0, *ends_s], [*ends_s, seconds], strict=True):
        if chance.random() < 0.8:
            loads = _loads(chance, chance.choice(STEADY_LOADS), iops, request_bytes)
            spans += [Span(load, start_s, end_s) for load in loads]
    return tuple(spans)


def _loads(chance: Random, load_class: str, iops: float, request_bytes: int) -> tuple[Load, ...]:
    reads = Requests(0.0, request_bytes)
    writes = Requests(1.0, request_bytes)
    few_per_second = chance.uniform(0.5, 5)
    think_s = chance.choice((0.0, chance.expovariate(1 / 0.002)))
    depth = _depth(chance, 1, 8)
    loads: tuple[Load, ...]
    match load_class:
        case "reads":
            loads = (Closed(depth, reads, think_s),)
        case "deep queue" | "bandwidth":
            kind = chance.choice((reads, writes, Requests(chance.random(), request_bytes)))
            loads = (Closed(_depth(chance, 1, 64), kind, think_s),)
        case "open loop":
            kind = chance.choice((reads, writes))
            loads = (Open(iops * chance.uniform(0.5, 1.2), kind),)
        case "mix":
            loads = (
                Closed(depth, Requests(chance.uniform(0.1, 0.9), request_bytes), think_s),
                Open(iops * chance.uniform(0.02, 0.3), writes, chance.choice((0.0, 0.2))),
            )
        case "few writes":
            loads = (Closed(depth, reads, think_s), Open(few_per_second, writes, 0.5))
        case "few reads":
            flush_every = chance.choice((0, 0, 1, 8))
            loads = (Closed(depth, writes, think_s, flush_every), Open(few_per_second, reads))
        case "one with fdatasync" | "several with fdatasync":
            several = 1 if load_class.startswith("one") else _depth(chance, 2, 16)
            loads = (Closed(several, writes, think_s, chance.choice((1, 1, 4, 16))),)
        case "timer":
            period_s = chance.choice((0.1, 0.1, log_uniform(chance, 0.03, 1)))
            batch = math.ceil(iops * period_s * chance.uniform(0.1, 1.5))
            loads = (Timer(period_s, batch, chance.choice((reads, writes))),)
        case _:
            loads = _database(chance, load_class, iops, writes)
    return loads


def _database(chance: Random, load_class: str, iops: float, writes: Requests) -> tuple[Load, ...]:
    """Return clients that commit, perhaps those that read, and perhaps a background writer."""
    clients, compute_s = _depth(chance, 1, 64), log_uniform(chance, 0.0003, 0.02)
    read_ratio = chance.uniform(0.1, 1.0) if load_class == "commits and reads" else 0.0
    commits = Commits(clients, compute_s, read_ratio)
    if chance.random() < 0.5:
        return (commits,)
    period_s = chance.uniform(0.1, 0.5)
    batch = math.ceil(iops * period_s * chance.uniform(0.05, 0.8))
    return (commits, Timer(period_s, batch, writes, 0.02))


def _depth(chance: Random, least: int, most: int) -> int:
    return round(log_uniform(chance, least, most))


def log_uniform(chance: Random, least: float, most: float) -> float:
    """Return a number between two, with an even distribution of its logarithm."""
    return math.exp(chance.uniform(math.log(least), math.log(most)))

"""What a disk really is, from how long it takes to get to places, and not from what it claims.

A platter has to turn and a head has to move: a read at a random place takes half a revolution
and a seek (2 ms at the very least, at 15000 rpm), scatters, takes longer the farther the places
lie apart, and is many times slower than reading on. Solid state has none of that, and a limiter
shows neither: it hands out answers at an even pace. Bandwidth tells nothing of the kind.
"""

from collections.abc import Iterator

import msgspec

from disksla.benchmark.identify_evidence import (
    HIT_S,
    Evidence,
    RequestStats,
    shape_of,
)
from disksla.benchmark.identify_rules import (
    NO_GAIN_RATIO,
    WAITS_RATIO,
    Medium,
    Signs,
    sequential_reads,
)
from disksla.fio import quantile_s
from disksla.units import format_bandwidth, format_count, format_duration, format_size


class Claim(msgspec.Struct, frozen=True):
    """What a disk is said to be."""

    name: str
    """Kernel name."""
    rotational: bool | None = None
    """By sysfs."""
    model: str | None = None
    sold_as: str | None = None
    """Id of its terms in the catalogue."""


_TURNS_PER_MINUTE = (4200, 5400, 5900, 7200, 10000, 15000)
_TURN_TOLERANCE_RATIO = 0.04


def observations(evidence: Evidence, random: RequestStats, signs: Signs) -> Iterator[str]:
    """Say what was seen, in order of weight."""
    middle = "in the middle" if random.bins else "in the mean"
    yield (
        f"A read of {format_size(random.request_bytes)} at a random place takes"
        f" {format_duration(signs.middle_s)} {middle}; one at a time, {format_count(random.iops)}"
        " are done in a second."
    )
    if signs.flat:
        yield "All of them take nearly the same time."
    elif signs.slow and signs.scattered:
        yield "Single reads scatter widely."
    if evidence.near is not None:
        near_s = format_duration(shape_of(evidence.near).middle_s)
        matters = "matters" if signs.travels else "does not matter"
        yield f"Between places near each other it takes {near_s}: the distance {matters}."
    for on in sequential_reads(evidence):
        times = random.mean_s / on.mean_s
        faster = f", {format_count(times)} times less" if times >= WAITS_RATIO else ""
        size = format_size(on.request_bytes)
        yield f"Reading on takes {format_duration(on.mean_s)} for {size}{faster}."
    if evidence.deep is not None and signs.gain_ratio is not None:
        more = (
            "no more than one"
            if signs.gain_ratio < NO_GAIN_RATIO
            else f"{format_count(signs.gain_ratio)} times as many as one"
        )
        yield (
            f"{evidence.deep.queue_depth} at a time do {format_count(evidence.deep.iops)} in a"
            f" second, {more}{': a limiter decides that' if signs.no_gain else ''}."
        )
    if signs.held:
        yield (
            f"A few wait so long that the mean is {format_duration(random.mean_s)}: a limiter lets"
            f" {format_count(random.iops)} a second pass."
        )
    if signs.windowed and evidence.deep is not None:
        waits = format_duration(quantile_s(evidence.deep.bins, 0.99))
        yield f"Of those, some wait {waits}: a limiter lets so many pass, and then none."
    yield from _signs_of_a_platter(evidence, random, signs)
    stream = signs.stream_bytes_per_second
    if stream is not None and signs.slow_stream:
        yield (
            f"Reading on at {format_bandwidth(stream)} is slow for solid state: a limit, or a"
            " network, decides the bandwidth."
        )


def _signs_of_a_platter(evidence: Evidence, random: RequestStats, signs: Signs) -> Iterator[str]:
    """Say what caches do that platters cannot, and what only platters do."""
    if not signs.slow or signs.flat:
        return
    if signs.reads_ahead:
        yield "Reading on does not wait for a platter to turn: a cache reads ahead."
    if signs.hit_share:
        quickest = (
            f"{100 * signs.hit_share:.2g} % of the random reads were"
            if random.bins
            else f"The quickest random read was, at {format_duration(random.least_s or 0.0)},"
        )
        yield f"{quickest} quicker than any platter ({format_duration(HIT_S)}): a cache answered."
    if evidence.written is not None:
        per_minute = 60 * evidence.written.iops
        turns = min(_TURNS_PER_MINUTE, key=lambda known: abs(known - per_minute))
        if abs(per_minute - turns) <= _TURN_TOLERANCE_RATIO * turns:
            yield (
                f"Sequential writes, {format_count(evidence.written.iops)} in a second, each wait"
                f" for one turn of a platter at {turns} rpm."
            )


def contradictions(medium: Medium, claim: Claim) -> Iterator[str]:
    """Say where claim and measurement do not agree."""
    if medium in {"rotating", "rotating_with_cache"}:
        for who, what in (
            ("Its model", claim.model),
            ("What it is sold as", claim.sold_as),
            ("Its name", claim.name),
        ):
            if what and ("ssd" in what.lower() or "nvme" in what.lower()):
                yield f"{who} promises solid state ({what}), but it seeks as a rotating disk does."
        if claim.rotational is False:
            yield "The kernel says that it does not rotate (rotational is 0), but it seeks."
    elif medium in {"ssd", "nvme"} and claim.rotational:
        yield (
            "The kernel says that it rotates (rotational is 1), but nothing seeks. Virtual disks"
            " often say so."
        )
    elif medium == "network" and claim.name.startswith("nvme"):
        yield "It is spoken to as NVMe, but answers from the far side of a network."

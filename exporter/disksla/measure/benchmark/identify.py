"""The medium of a disk: apply the rules to the evidence, and explain the result."""

from collections.abc import Iterator

import msgspec

from disksla.base.histogram import quantile_s
from disksla.base.units import format_bandwidth, format_count, format_duration, format_size
from disksla.measure.benchmark.identify_evidence import HIT_S, Evidence, RequestStats, shape_of
from disksla.measure.benchmark.identify_rules import (
    NO_GAIN_RATIO,
    RULES,
    TITLES,
    WAITS_RATIO,
    Medium,
    Signs,
    sequential_reads,
    signs_of,
)

MIN_REQUESTS = 30
"""Minimum number of random reads that shows a distribution."""
_NOTHING_RANDOM = (
    "No random reads were measured. Sequential throughput does not distinguish media: behind the"
    " limits of a cloud, rotating disks and SSDs both do 100 to 200 MB/s."
)


class IdentifiedMedium(msgspec.Struct, frozen=True):
    """The medium of a disk, and the reasons."""

    medium: Medium
    limited: bool
    """Whether some of the numbers are those of a limiter, and not of the medium."""
    conclusion: str
    observations: tuple[str, ...] = ()
    """What was measured, in sentences."""
    contradictions: tuple[str, ...] = ()
    """Claims that the measurements contradict, in sentences."""

    @property
    def title(self) -> str:
        """Name of the medium."""
        return TITLES[self.medium]


def identify(evidence: Evidence, claim: "Claim | None" = None) -> IdentifiedMedium:
    """Return the medium, which is `unknown` if the evidence is not conclusive."""
    random = evidence.random
    if random is None:
        return IdentifiedMedium("unknown", False, _NOTHING_RANDOM)  # noqa: FBT003 -- order of the fields
    if random.requests is not None and random.requests < MIN_REQUESTS:
        few = f"Only {random.requests} random reads completed; {MIN_REQUESTS} are needed."
        return IdentifiedMedium("unknown", False, few)  # noqa: FBT003
    signs = signs_of(evidence, random)
    rule = next(rule for rule in RULES if rule.applies(signs))
    medium = rule.medium
    if medium == "rotating" and (signs.reads_ahead or signs.hit_share):
        medium = "rotating_with_cache"
    return IdentifiedMedium(
        medium,
        signs.limited,
        rule.conclusion,
        tuple(observations(evidence, random, signs)),
        tuple(contradictions(medium, claim)) if claim else (),
    )


class Claim(msgspec.Struct, frozen=True):
    """What a disk claims to be."""

    name: str
    """Kernel name."""
    rotational: bool | None = None
    """As in sysfs."""
    model: str | None = None
    sold_as: str | None = None
    """Id of its terms in the catalogue."""


_ROTATIONS_PER_MINUTE = (4200, 5400, 5900, 7200, 10000, 15000)
_ROTATION_TOLERANCE_RATIO = 0.04


def observations(evidence: Evidence, random: RequestStats, signs: Signs) -> Iterator[str]:
    """Yield what was measured, as sentences, the most important first."""
    average = "median" if random.bins else "mean"
    yield (
        f"A random read of {format_size(random.request_bytes)} takes"
        f" {format_duration(signs.typical_s)} ({average}); at queue depth 1 the disk does"
        f" {format_count(random.iops)} IOPS."
    )
    if signs.flat:
        yield "The latency of these reads is almost constant."
    elif signs.slow and signs.scattered:
        yield "The latency of these reads varies widely."
    if evidence.near is not None:
        near_s = format_duration(shape_of(evidence.near).typical_s)
        matters = "matters" if signs.distance_matters else "does not matter"
        yield f"Within a small part of the disk it takes {near_s}: the distance {matters}."
    for reads in sequential_reads(evidence):
        times = random.mean_s / reads.mean_s
        less = f", {format_count(times)} times less than random" if times >= WAITS_RATIO else ""
        size = format_size(reads.request_bytes)
        yield f"A sequential read of {size} takes {format_duration(reads.mean_s)}{less}."
    if evidence.deep is not None and signs.depth_gain_ratio is not None:
        gain = (
            "no more than at queue depth 1"
            if signs.depth_gain_ratio < NO_GAIN_RATIO
            else f"{format_count(signs.depth_gain_ratio)} times as many as at queue depth 1"
        )
        yield (
            f"At queue depth {evidence.deep.queue_depth} it does"
            f" {format_count(evidence.deep.iops)} IOPS, {gain}"
            f"{': a limiter sets this rate' if signs.no_depth_gain else ''}."
        )
    if signs.windowed:
        yield (
            f"A few reads wait so long that the mean is {format_duration(random.mean_s)}: a"
            f" limiter allows {format_count(random.iops)} IOPS."
        )
    if signs.deep_windowed and evidence.deep is not None:
        waits = format_duration(quantile_s(evidence.deep.bins, 0.99))
        yield (
            f"Some of these wait {waits}: a limiter allows a number of requests, then none until"
            " its next window."
        )
    yield from _rotation_signs(evidence, signs)
    stream = signs.stream_bytes_per_second
    if stream is not None and signs.slow_stream:
        yield (
            f"Sequential reads at {format_bandwidth(stream)} are slow for an SSD: a limit or a"
            " network bounds the throughput."
        )


def _rotation_signs(evidence: Evidence, signs: Signs) -> Iterator[str]:
    """Yield what only a cache does, and what only a rotating disk does."""
    if not signs.slow or signs.flat:
        return
    if signs.reads_ahead:
        yield "Sequential reads do not wait for a rotation: a cache reads ahead."
    if signs.hit_share:
        yield (
            f"{100 * signs.hit_share:.2g} % of the random reads were faster than any rotating disk"
            f" ({format_duration(HIT_S)}): served from a cache."
        )
    if evidence.written is not None:
        per_minute = 60 * evidence.written.iops
        rpm = min(_ROTATIONS_PER_MINUTE, key=lambda known: abs(known - per_minute))
        if abs(per_minute - rpm) <= _ROTATION_TOLERANCE_RATIO * rpm:
            yield (
                f"Sequential writes, {format_count(evidence.written.iops)} per second, each wait"
                f" for one rotation at {rpm} rpm."
            )


def contradictions(medium: Medium, claim: Claim) -> Iterator[str]:
    """Yield the claims that the measurement contradicts, as sentences."""
    if medium in {"rotating", "rotating_with_cache"}:
        for source, value in (
            ("model", claim.model),
            ("catalogue type", claim.sold_as),
            ("name", claim.name),
        ):
            if value and ("ssd" in value.lower() or "nvme" in value.lower()):
                yield f"Its {source} claims an SSD ({value}), but it seeks like a rotating disk."
        if claim.rotational is False:
            yield "The kernel reports no rotation (rotational is 0), but the disk seeks."
    elif medium in {"ssd", "nvme"} and claim.rotational:
        yield (
            "The kernel reports rotation (rotational is 1), but the disk does not seek. Virtual"
            " disks often report this."
        )
    elif medium == "network" and claim.name.startswith("nvme"):
        yield "It is attached as NVMe, but has the latency of a network."

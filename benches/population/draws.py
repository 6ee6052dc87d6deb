"""The population: random disks and loads. Disks with even numbers have a limiter.

Parameters are drawn from wide ranges, and none of them is chosen for what a detector does.
"""

from dataclasses import dataclass, replace
from random import Random
from typing import NamedTuple

from disksla.state.pipeline.tick import Tick
from population.draw_loads import LOADS, draw_spans, log_uniform
from population.limiter import Burst, Limit
from population.loads import KIB, Span
from population.medium import Law, MediumSpec, ServiceTime
from population.sampler import Samples, simulate
from population.simulation import Noise, Spec

MB = 1e6
SMALL_BYTES = (4 * KIB, 4 * KIB, 8 * KIB, 16 * KIB)
LARGE_BYTES = (256 * KIB, 256 * KIB, 64 * KIB, 1024 * KIB)
WINDOWS_S = (0.01, 0.02, 0.05, 0.07, 0.1, 0.1, 0.1, 0.10005, 0.1002, 0.125, 0.2, 0.25, 0.5, 1.0)
LEAKY_RATIO = 0.25
BURST_RATIO = 0.15
FLUSH_BOUND_RATIO = 0.15
FLUSHING_LOADS = ("one with fdatasync", "several with fdatasync", "commits", "commits and reads")
SOLID: tuple[Law, ...] = ("constant", "gamma", "lognormal", "bimodal", "drifting")
IRREGULAR: tuple[Law, ...] = ("gamma", "lognormal")
_MOST_IOPS = 4000.0
"""Of disks without a limiter, so that a minute is simulated in a second."""
_HDD_IOPS = 125.0


class Classes(NamedTuple):
    """What the tables group disks by."""

    medium: str
    load: str
    limiter: str | None
    """None for a disk without a limiter."""


@dataclass(frozen=True)
class Draw:
    """One disk of a population: its parameters, and what was sampled of it."""

    seed: int
    number: int
    classes: Classes
    spec: Spec
    samples: Samples

    @property
    def ticks(self) -> list[Tick]:
        """Return the ticks, as a recording has them."""
        return self.samples.ticks

    @property
    def truth(self) -> list[float]:
        """Return for each tick the seconds before it in which a request waited for the limiter."""
        return self.samples.truth

    def describe(self) -> str:
        """Return the parameters as lines of text."""
        spec, samples = self.spec, self.samples
        iops, mb = samples.data_requests / spec.seconds, samples.data_bytes / spec.seconds / MB
        writes = "counted exactly" if spec.counts_data_writes else "not counted exactly"
        lines = [f"--seed {self.seed} --only {self.number} --seconds {spec.seconds:g}"]
        lines.append(f"  {self.classes}, write back {spec.write_back}, data writes {writes}")
        lines.append(f"  served {iops:.1f} data requests and {mb:.2f} MB a second")
        lines += [f"  {span.start_s:.1f} to {span.end_s:.1f} s {span.load}" for span in spec.spans]
        lines += [f"  {part}" for part in (spec.medium, spec.limit, spec.noise) if part]
        return "\n".join(lines)


def draw(seed: int, number: int, seconds: float = 60.0) -> Draw:
    """Return one disk of the population of a seed; the same arguments always have the same."""
    name = f"{seed}/{number}"
    draw_one = _limited if number % 2 == 0 else _unlimited
    classes, spec = draw_one(name, Random(name), seconds)
    return Draw(seed, number, classes, spec, simulate(spec))


def _limited(name: str, chance: Random, seconds: float) -> tuple[Classes, Spec]:
    load_class = chance.choice(LOADS)
    is_bandwidth = load_class == "bandwidth"
    limit = _limit(chance, is_bandwidth=is_bandwidth)
    request_bytes = chance.choice(LARGE_BYTES if is_bandwidth else SMALL_BYTES)
    law = chance.choice(SOLID)
    iops = limit.per_second / (request_bytes if is_bandwidth else 1)
    flush_s = min(0.02, log_uniform(chance, 0.05, 1.5) / iops)
    medium = MediumSpec(
        _service(chance, law, log_uniform(chance, 0.00015, 0.003)),
        _service(chance, chance.choice(IRREGULAR), flush_s),
        servers=chance.choice((4, 8, 16, 32, 64)),
        byte_s=1 / limit.per_second / log_uniform(chance, 0.5, 10) if is_bandwidth else 0.0,
    )
    spans = draw_spans(chance, load_class, iops, request_bytes, seconds)
    spec = _spec(name, chance, seconds, medium, spans)
    return Classes(law, load_class, _limiter_class(limit)), replace(spec, limit=limit)


def _unlimited(name: str, chance: Random, seconds: float) -> tuple[Classes, Spec]:
    if chance.random() < FLUSH_BOUND_RATIO:
        return _flush_bound(name, chance, seconds)
    law, load_class = chance.choice((*SOLID, "hdd")), chance.choice(LOADS)
    is_bandwidth = load_class == "bandwidth"
    request_bytes = chance.choice(LARGE_BYTES if is_bandwidth else SMALL_BYTES)
    servers = 1 if law == "hdd" else chance.choice((1, 1, 2, 3, 4, 8))
    iops = _HDD_IOPS if law == "hdd" else log_uniform(chance, 80, _MOST_IOPS)
    service = _service(chance, law, servers / iops)
    flush_s = chance.uniform(0.5, 2) / iops
    byte_s = 0.0
    if is_bandwidth:
        byte_s = servers / log_uniform(chance, 20 * MB, 400 * MB)
        iops = servers / (servers / iops + byte_s * request_bytes)
    flush = _service(chance, chance.choice(IRREGULAR), flush_s)
    medium = MediumSpec(service, flush, servers, byte_s)
    spans = draw_spans(chance, load_class, 0.85 * iops, request_bytes, seconds)
    return Classes(law, load_class, None), _spec(name, chance, seconds, medium, spans)


def _flush_bound(name: str, chance: Random, seconds: float) -> tuple[Classes, Spec]:
    """Return a disk whose writes are quick and whose flushes are slow."""
    load_class, flush_s = chance.choice(FLUSHING_LOADS), chance.uniform(0.005, 0.03)
    service = _service(chance, chance.choice(IRREGULAR), chance.uniform(0.0002, 0.001))
    flush = _service(chance, chance.choice(("constant", "lognormal")), flush_s)
    medium = MediumSpec(service, flush, chance.choice((1, 2, 4, 8)))
    spans = draw_spans(chance, load_class, 1 / flush_s, chance.choice(SMALL_BYTES), seconds)
    spec = replace(_spec(name, chance, seconds, medium, spans), write_back=True)
    return Classes("flush-bound", load_class, None), spec


def _spec(
    name: str, chance: Random, seconds: float, medium: MediumSpec, spans: tuple[Span, ...]
) -> Spec:
    noise = Noise(
        late_ratio=chance.choice((0.0, chance.uniform(0, 0.01))),
        late_s=chance.uniform(0.0005, 0.005),
        preempted_per_second=chance.choice((0.0, chance.uniform(0, 0.1), chance.uniform(0, 0.5))),
        late_sample_ratio=chance.uniform(0, 0.01),
    )
    write_back = chance.random() < 0.8
    return Spec(
        name,
        spans,
        medium,
        noise=noise,
        write_back=write_back,
        counts_data_writes=write_back and chance.random() < 0.25,
        phase_s=chance.uniform(0, 0.1),
        seconds=seconds,
    )


def _limit(chance: Random, *, is_bandwidth: bool) -> Limit:
    is_leaky = chance.random() < LEAKY_RATIO
    window_s = chance.choice((chance.choice(WINDOWS_S), log_uniform(chance, 0.01, 1.0)))
    per_second, most = log_uniform(chance, 100, 3000), 500.0
    if is_bandwidth:
        per_second, most = log_uniform(chance, 5 * MB, 100 * MB), 100 * MB
    burst = None
    if chance.random() < BURST_RATIO:
        per_second = min(per_second, most)
        burst = Burst(
            per_second=per_second * chance.uniform(2, 8),
            credits=per_second * chance.uniform(5, 60),
            initial_ratio=chance.random(),
        )
    return Limit(
        "bandwidth" if is_bandwidth else "iops",
        round(per_second),
        None if is_leaky else window_s,
        phase_s=chance.uniform(0, window_s),
        burst=burst,
    )


def _limiter_class(limit: Limit) -> str:
    if limit.burst is not None:
        return "burst, leaky" if limit.window_s is None else "burst, windows"
    if limit.window_s is None:
        return "leaky bucket"
    longest_s = next(
        bound_s for bound_s in (0.03, 0.08, 0.15, 0.4, 1.0) if limit.window_s <= bound_s
    )
    return f"windows up to {longest_s * 1000:4.0f} ms"


def _service(chance: Random, law: Law, mean_s: float) -> ServiceTime:
    """Return a service time of a class of media, with its other parameters drawn."""
    match law:
        case "gamma" | "lognormal":
            return ServiceTime(law, mean_s, chance.uniform(0.15, 0.8))
        case "bimodal":
            share, factor = chance.uniform(0.01, 0.3), chance.uniform(3, 20)
            return ServiceTime("bimodal", mean_s, slow_share=share, slow_factor=factor)
        case "drifting":
            spread, drift_s = chance.uniform(0.1, 0.5), log_uniform(chance, 0.5, 10)
            return ServiceTime("drifting", mean_s, spread, drift_s=drift_s)
        case "hdd":
            return ServiceTime("hdd", 0.008)
        case _:
            return ServiceTime("constant", mean_s)

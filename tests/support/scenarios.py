"""Scenarios of simulated disks under load, which the verdicts have to distinguish.

Names of throttled disks start with the limit.
"""

from dataclasses import replace
from typing import Any

from disksla.base.units import GIB, KIB, MIB
from disksla.promise.configuration.custom_terms import (
    SeparateTerms,
    SumBurst,
    SumTerms,
    TimeSharedTerms,
)
from support.simulated_limiter import (
    Closed,
    Limiter,
    Load,
    Medium,
    Open,
    Scenario,
    additive,
    separate,
    summed,
    time_shared,
)

_MB = 10**6
_EVERY_SECOND = tuple((second + 0.53, second + 0.58) for second in range(60))


def _limiter(iops: float | None = None, bandwidth: float | None = None) -> Limiter:
    return Limiter(buckets=summed(iops, bandwidth))


def _iops_limited(iops: float, *loads: Load, **options: Any) -> Scenario:
    return Scenario(limiter=_limiter(iops), loads=loads, terms=SumTerms(iops=iops), **options)


def _bandwidth_limited(bandwidth: float, *loads: Load, **options: Any) -> Scenario:
    terms = SumTerms(bytes_per_second=bandwidth)
    return Scenario(limiter=_limiter(bandwidth=bandwidth), loads=loads, terms=terms, **options)


_SYNCHRONOUS = Closed(depth=1, write_share=1.0, think_s=20e-6)
_MIXED = Closed(depth=32, write_share=0.4)
_MIXED_LARGE = Closed(depth=16, write_share=0.5, read_bytes=64 * KIB, write_bytes=128 * KIB)
_BURST = SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=8000.0))
_BURST_BUCKETS = summed(300, peak_per_second=2000, capacity=8000)
_YANDEX_SSD = ((1023 / (1024 / 1000 - 4 / 15), 4092 * KIB / (4 / 15 - 1 / 1000)),) * 2
"""C1 and C2 of a network-ssd of 32 GiB: 1000 IOPS at 4 KiB, 15 MiB/s at 4 MiB."""

THROTTLED: dict[str, Scenario] = {
    "iops-100-deep": _iops_limited(100, Closed(depth=32)),
    "iops-300-deep": _iops_limited(300, Closed(depth=32)),
    "iops-470-deep": _iops_limited(470, Closed(depth=32)),
    "iops-1000-deep": _iops_limited(1000, Closed(depth=32)),
    "iops-20000-deep": _iops_limited(20000, Closed(depth=64)),
    "iops-300-synchronous": _iops_limited(300, _SYNCHRONOUS),
    "iops-300-thinking": _iops_limited(300, replace(_SYNCHRONOUS, think_s=0.001)),
    "iops-300-depths": _iops_limited(
        300,
        Closed(depth=1, active=((0.53, 4.03),)),
        Closed(depth=8, active=((4.03, 7.03),)),
        Closed(depth=32, active=((7.03, 10.0),)),
    ),
    "iops-300-deep-then-synchronous": _iops_limited(
        300, Closed(depth=32, active=((0.53, 5.03),)), Closed(depth=1, active=((5.03, 10.0),))
    ),
    "iops-300-poisson-120": _iops_limited(300, Open(per_second=360, poisson=True)),
    "iops-300-paused": _iops_limited(300, Closed(depth=32, active=((0.53, 3.05), (6.02, 8.57)))),
    "iops-1000-stalled": _iops_limited(
        1000, Closed(depth=32), medium=Medium(stalls=((4.02, 5.52),)), seconds=9.0
    ),
    "iops-300-smooth": replace(
        _iops_limited(300, Closed(depth=32)), limiter=Limiter(buckets=summed(300), window_s=None)
    ),
    "iops-300-smooth-synchronous": replace(
        _iops_limited(300, _SYNCHRONOUS), limiter=Limiter(buckets=summed(300), window_s=None)
    ),
    "bandwidth-25-smooth": replace(
        _bandwidth_limited(25 * _MB, Closed(depth=16, read_bytes=256 * KIB)),
        limiter=Limiter(buckets=summed(bandwidth=25 * _MB), window_s=None),
    ),
    "bandwidth-5": _bandwidth_limited(5 * _MB, Closed(depth=8, read_bytes=MIB)),
    "bandwidth-5-split": _bandwidth_limited(5 * _MB, Closed(depth=8, read_bytes=512 * KIB)),
    "bandwidth-25": _bandwidth_limited(25 * _MB, Closed(depth=16, read_bytes=256 * KIB)),
    "bandwidth-25-synchronous": _bandwidth_limited(
        25 * _MB, replace(_SYNCHRONOUS, write_bytes=256 * KIB)
    ),
    "bandwidth-300": _bandwidth_limited(300 * _MB, Closed(depth=16, read_bytes=512 * KIB)),
    "mixed-separate": Scenario(
        limiter=Limiter(buckets=separate(500, 300, 70 * _MB, 40 * _MB), apart=True),
        loads=(_MIXED,),
        terms=SeparateTerms(
            read_iops=500.0,
            write_iops=300.0,
            read_bytes_per_second=70.0 * _MB,
            write_bytes_per_second=40.0 * _MB,
        ),
    ),
    "mixed-separate-bandwidth": Scenario(
        limiter=Limiter(buckets=separate(5000, 3000, 70 * _MB, 40 * _MB), apart=True),
        loads=(
            Closed(depth=8, read_bytes=256 * KIB),
            Closed(depth=8, write_share=1.0, write_bytes=256 * KIB),
        ),
        terms=SeparateTerms(
            read_iops=5000.0,
            write_iops=3000.0,
            read_bytes_per_second=70.0 * _MB,
            write_bytes_per_second=40.0 * _MB,
        ),
    ),
    "mixed-summed": Scenario(
        limiter=_limiter(1000, 60 * _MB),
        loads=(_MIXED,),
        terms=SumTerms(iops=1000.0, bytes_per_second=60.0 * _MB),
    ),
    "mixed-summed-bandwidth": Scenario(
        limiter=_limiter(1000, 60 * _MB),
        loads=(_MIXED_LARGE,),
        terms=SumTerms(iops=1000.0, bytes_per_second=60.0 * _MB),
    ),
    "mixed-time-shared": Scenario(
        limiter=Limiter(buckets=time_shared(500, 300, 70 * _MB, 40 * _MB)),
        loads=(_MIXED,),
        terms=TimeSharedTerms(
            read_iops=500.0,
            write_iops=300.0,
            read_bytes_per_second=70.0 * _MB,
            write_bytes_per_second=40.0 * _MB,
        ),
    ),
    "mixed-additive": Scenario(
        limiter=Limiter(buckets=additive(*_YANDEX_SSD)),
        loads=(_MIXED,),
        terms="yandex.network-ssd",
        size_bytes=32 * GIB,
    ),
    "mixed-additive-large": Scenario(
        limiter=Limiter(buckets=additive(*_YANDEX_SSD)),
        loads=(_MIXED_LARGE,),
        terms="yandex.network-ssd",
        size_bytes=32 * GIB,
    ),
    "burst-then-base": Scenario(
        limiter=Limiter(buckets=_BURST_BUCKETS), loads=(Closed(depth=32),), terms=_BURST
    ),
    "burst-then-base-synchronous": Scenario(
        limiter=Limiter(buckets=_BURST_BUCKETS), loads=(_SYNCHRONOUS,), terms=_BURST
    ),
    "burst-in-turns": Scenario(
        limiter=Limiter(buckets=summed(300, peak_per_second=2000, capacity=2000, initial=500)),
        loads=(Closed(depth=32, active=((0.53, 3.02), (8.03, 11.02), (13.03, 15.02))),),
        terms=SumTerms(iops=300.0, burst=SumBurst(iops=2000.0, iops_credits=2000.0)),
        seconds=16.0,
    ),
}
"""Throttled at the promise, most of the time."""

AT_TIMES: dict[str, Scenario] = {
    "iops-300-poisson-90": _iops_limited(300, Open(per_second=270, poisson=True), seconds=60.0),
    "iops-1000-poisson-90": _iops_limited(1000, Open(per_second=900, poisson=True), seconds=60.0),
    "iops-300-poisson-95": _iops_limited(300, Open(per_second=285, poisson=True), seconds=60.0),
    "iops-1000-poisson-95": _iops_limited(1000, Open(per_second=950, poisson=True), seconds=60.0),
    "iops-300-bursts": _iops_limited(300, Closed(depth=8, active=_EVERY_SECOND)),
    "iops-300-bursts-open": _iops_limited(300, Open(per_second=2000, active=_EVERY_SECOND)),
}
"""Throttled from time to time, for some windows."""

FREE: dict[str, Scenario] = {
    "idle": Scenario(terms=SumTerms(iops=300.0)),
    "steady-90": _iops_limited(300, Open(per_second=270)),
    "steady-90-fast": _iops_limited(20000, Open(per_second=18000), seconds=4.0),
    "steady-90-bandwidth": _bandwidth_limited(
        25 * _MB, Open(per_second=0.9 * 25 * _MB / (256 * KIB), read_bytes=256 * KIB)
    ),
    "steady-99": _iops_limited(300, Open(per_second=297)),
    "unlimited-deep": Scenario(
        loads=(Closed(depth=32),), medium=Medium(service_s=0.008, jitter=0.5)
    ),
    "unlimited-deep-above-its-promise": Scenario(
        loads=(Closed(depth=32),),
        medium=Medium(service_s=0.008, jitter=0.5),
        terms=SumTerms(iops=3000.0),
    ),
    "unlimited-slow": Scenario(
        loads=(Closed(depth=1),), medium=Medium(service_s=0.020), terms=SumTerms(iops=1000.0)
    ),
    "unlimited-slow-jitter": Scenario(
        loads=(Closed(depth=1),), medium=Medium(service_s=0.020, jitter=0.3)
    ),
    "unlimited-depths": Scenario(
        loads=(
            Closed(depth=1, active=((0.53, 4.03),)),
            Closed(depth=8, active=((4.03, 7.03),)),
            Closed(depth=32, active=((7.03, 10.0),)),
        ),
        medium=Medium(service_s=0.004, jitter=0.3, servers=16),
    ),
    "unlimited-stalled": Scenario(
        loads=(Closed(depth=4),),
        medium=Medium(service_s=0.001, jitter=0.3, stalls=((4.02, 5.52),)),
        terms=SumTerms(iops=10000.0),
    ),
}
"""Never throttled: if they are slow, it is not because of a limiter."""

BELOW: dict[str, Scenario] = {
    "below-60-of-100": replace(
        _iops_limited(60, Closed(depth=32), medium=Medium(service_s=0.01, jitter=0.5)),
        limiter=Limiter(buckets=summed(60), window_s=None),
        terms=SumTerms(iops=100.0),
    ),
    "below-600-of-1000-synchronous": replace(
        _iops_limited(600, _SYNCHRONOUS), terms=SumTerms(iops=1000.0)
    ),
    "below-600-lowered": Scenario(
        limiter=Limiter(buckets=summed(1000), changes=((5.02, summed(600)),)),
        loads=(Closed(depth=32),),
        terms=SumTerms(iops=1000.0),
    ),
}
"""Served less than promised. The first one serves too few requests to see that their flow is
even."""

SCENARIOS: dict[str, Scenario] = THROTTLED | AT_TIMES | FREE | BELOW

"""Disks behind limiters of their own, whose limits together are about that of the machine."""

from itertools import pairwise
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from disksla.promise.configuration import Configuration, Settings
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.settings import DiskEntry, MachineSettings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick
from disksla.state.pipeline.window_records import window_records
from support.examples import scaled
from support.simulated_host import CATALOG
from support.simulated_limiter import DEVICE, DISK, Closed, Limiter, Medium, Scenario, run, summed

OTHER = msgspec.structs.replace(DISK, name="vdy", minor=DISK.minor + 16, serial="other")
SHARES = {DISK: (0.55, 16, 0.0), OTHER: (0.44, 8, 1.0)}
"""Of the machine's limit; queue depth and share of writes."""


def ticks_of_both(first: Tick, second: Tick) -> Tick:
    """Return the samples of two disks, taken at the same time, as one."""
    assert first.clocks == second.clocks
    assert first.diskstats is not None
    assert second.diskstats is not None
    line = second.diskstats.replace(f"{DISK.minor} {DEVICE}", f"{OTHER.minor} {OTHER.name}")
    inflight = {OTHER.name: second.inflight[DEVICE]} if DEVICE in second.inflight else {}
    return msgspec.structs.replace(
        first,
        diskstats=first.diskstats + line,
        inflight={**first.inflight, **inflight},
        close={**first.close, OTHER.name: second.close[DEVICE]},
        disks=(DISK, OTHER) if first.disks else None,
    )


def throttled_s(seed: int) -> dict[tuple[str, str], float]:
    """Return the seconds for which each disk is said to be throttled, by limit and disk."""
    chance = Random(seed)
    machine_iops = chance.randint(120, 180)
    phase_s = chance.uniform(0.0, 0.1)
    entries, runs = [], []
    for disk, (share, depth, write_share) in SHARES.items():
        iops = round(share * machine_iops)
        active = (chance.uniform(0.5, 0.8), chance.uniform(5.5, 5.8))
        scenario = Scenario(
            limiter=Limiter(buckets=summed(iops), window_s=None),
            loads=(Closed(depth=depth, write_share=write_share, active=(active,)),),
            medium=Medium(service_s=0.006, jitter=0.5, servers=4),
            seconds=7.0,
            sampler_phase_s=phase_s,
            lateness=False,
            seed=chance.randrange(2**16),
        )
        runs.append(run(scenario).ticks)
        terms = SumTerms(iops=float(iops))
        entries.append(DiskEntry(match=DiskMatch(device=disk.name), terms=terms))
    machine = MachineSettings(limits=SumTerms(iops=float(machine_iops)))
    states = [State(Configuration(Settings(disks=tuple(entries), machine=machine), CATALOG))]
    for both in zip(*runs, strict=True):
        states.append(advance(states[-1], ticks_of_both(*both)))
    found: dict[tuple[str, str], float] = {}
    for before, after in pairwise(states):
        for row in window_records(before, after):
            if row.limit is not None:
                at = row.limit, row.device
                found[at] = found.get(at, 0.0) + (row.throttled_s or 0.0)
    return found


@scaled(20)
@given(seed=st.integers(0, 2**16))
def test_limits_of_the_disks_are_not_called_that_of_the_machine(seed: int) -> None:
    """Not when the loads begin or end, either, but for a second of each disk at most."""
    found = throttled_s(seed)
    assert {limit for limit, _ in found} <= {"iops", "machine_iops"}
    assert all(seconds < 1.1 for (limit, _), seconds in found.items() if limit != "iops")

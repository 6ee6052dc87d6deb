"""Disks behind limiters of their own, whose limits together are about that of the machine, and a
recording of a disk of Yandex Cloud's limits on a machine with 2 vCPUs.

The disk is a loop device of the lab behind a token bucket of 7,000 IOPS in windows of 100 ms,
which is what 2 vCPUs allow; it is configured as a network-ssd of 300 GiB, which has 10,000. fio
reads 1,500 times per second for 2 s, and then with 64 requests in flight for 8 s.
"""

from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from disksla.commands.replay import replay
from disksla.promise.configuration import Configuration, Settings
from disksla.promise.configuration.custom_terms import SumTerms
from disksla.promise.configuration.settings import DiskEntry, MachineSettings
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick
from disksla.state.pipeline.window_records import WindowRecord, window_records
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


RECORDING = Path(__file__).parent / "recordings" / "yandex-two-vcpus.jsonl.gz"


def configuration(directory: Path, machine: str = "") -> Path:
    file = directory / "disksla.yml"
    disk = "{match: {device: loop0}, terms: yandex.network-ssd, size: 300GiB}"
    file.write_text(f"discovery: {{include: [^loop0$]}}\ndisks: [{disk}]\n{machine}")
    return file


def records(config: Path) -> list[WindowRecord]:
    states = pairwise(replay(RECORDING, config))
    return [row for before, after in states for row in window_records(before, after)]


def seconds(rows: list[WindowRecord], verdict: str, limit: str | None = None) -> float:
    return sum(row.window_s or 0.0 for row in rows if (row.verdict, row.limit) == (verdict, limit))


def test_disk_at_the_limit_of_its_machine_is_not_below_its_promise(tmp_path: Path) -> None:
    """The recording has no close samples, so that the limiter is not seen.

    In the second in which the load begins, the machine is not at its limit yet.
    """
    rows = records(configuration(tmp_path))
    assert seconds(rows, "below") < 1.1
    assert {row.limit for row in rows} <= {None, "machine_iops"}


def test_group_has_the_limits_of_the_recorded_cpus(tmp_path: Path) -> None:
    *_, last = replay(RECORDING, configuration(tmp_path))
    (group,) = Snapshot(last).groups
    assert (group.shared.machine, group.shared.limits.rates.read_iops) == ("2 vCPUs", 7000)
    assert group.devices == ("loop0",)


def test_on_a_larger_machine_the_disk_would_be_below_its_promise(tmp_path: Path) -> None:
    rows = records(configuration(tmp_path, "machine: {vcpus: 16}\n"))
    assert seconds(rows, "throttled", "machine_iops") == 0
    assert seconds(rows, "below") + seconds(rows, "throttled", "unknown") > 5

"""Cost of a probe for a load on the same disk: `make lab ARGS=--probe-cost`.

A throttled disk serves a load at 80 % of its limit, in pairs of runs: one with a probe that lasts
as long as the load, and one without, in alternating order. In production a probe runs for 5 s of
every 10 minutes; here it runs all the time.

The disk and the load have real-time priority, so that the cost at the disk is measured; the CPU
time of the probe is reported beside it. If other work on the machine distorts both, the runs
without a probe differ among themselves, and there is no result.
"""

import os
import statistics
import subprocess
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

from disksla.base.histogram import LatencyBin
from disksla.kernel.disks.disk import Disk
from disksla.measure.fio.result import parse_fio
from disksla.measure.fio.runner import find_fio
from disksla.measure.probes.probe_plan import MOST_SHARE, plan_probe
from disksla.measure.probes.probe_runner import ProbeContext, run_probe
from disksla.promise.configuration.custom_terms import SumTerms, custom_limits
from disksla.promise.configuration.settings import ProbeEntry
from disksla.state.pipeline.probe_results import ProbeResult
from lab.disk import BlockDevice, made
from lab.scenario import Phase, read_scenario

SCENARIO = Path(__file__).parent / "probe-cost.yml"
MAX_CHANGE = 0.02
"""Change of the 99th percentile of the load, as the median of all pairs."""
MAX_NOISE = 0.05
"""Median deviation of the runs without a probe from their median."""
_LEAD_S = 0.5
"""Half of the ramp time of the load, before measuring starts."""


class Pair(NamedTuple):
    """99th percentile of the load without and with a probe, and the use of the probe."""

    without_s: float
    with_s: float
    share: float
    """IOPS of the probe, as a share of the promise."""
    cpu_s: float
    """CPU time of the probe, including the start and end of fio."""

    @property
    def change(self) -> float:
        """Relative change of the 99th percentile."""
        return self.with_s / self.without_s - 1


def percentile_s(bins: Sequence[LatencyBin], share: float) -> float:
    """Return a percentile, interpolated between bins, which are coarse for small changes."""
    rank = share * sum(each.requests for each in bins)
    passed = 0.0
    for low, high in pairwise((LatencyBin(bins[0].seconds, 0), *bins)):
        if passed + high.requests >= rank:
            part = (rank - passed) / high.requests
            return low.seconds + part * (high.seconds - low.seconds)
        passed += high.requests
    return bins[-1].seconds


def measure_pair(
    disk: BlockDevice, phase: Phase, iops: float, directory: Path, *, probe_first: bool
) -> Pair:
    """Run the load twice, once with a probe."""
    without: list[float] = []
    with_probe: list[tuple[float, float, float]] = []
    for has_probe in (probe_first, not probe_first):
        if has_probe:
            with_probe.append(_p99_with_probe(disk, phase, iops, directory))
        else:
            without.append(_p99(disk, phase))
    return Pair(without[0], *with_probe[0])


def _p99(disk: BlockDevice, phase: Phase, meanwhile: Callable[[], None] = lambda: None) -> float:
    command = [
        *("chrt", "--fifo", "1"),
        *("fio", "--name=load", f"--filename=/dev/{disk.device}", "--direct=1", "--thread"),
        *("--time_based", f"--runtime={phase.seconds:g}", f"--ramp_time={2 * _LEAD_S:g}"),
        *("--randrepeat=0", "--norandommap", "--output-format=json+", *(phase.fio or "").split()),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        try:
            meanwhile()
            output, _ = load.communicate()
        except BaseException:
            load.kill()
            raise
    return percentile_s(parse_fio(output).read.bins, 0.99)


def _p99_with_probe(
    disk: BlockDevice, phase: Phase, iops: float, directory: Path
) -> tuple[float, float, float]:
    entry = ProbeEntry(kind="read-latency", runtime_s=phase.seconds)
    plan = plan_probe(entry, disk.device, custom_limits(SumTerms(iops=iops)))
    context = ProbeContext(Disk(disk.device, 7, 0, 0), (), directory)
    fio = find_fio()
    outcomes: list[tuple[ProbeResult, float]] = []

    def probe() -> None:
        time.sleep(2 * _LEAD_S)
        before_s = _cpu_of_children_s()
        outcome = run_probe(fio, plan, context, threading.Event())
        outcomes.append((outcome, _cpu_of_children_s() - before_s))

    p99_s = _p99(disk, phase, probe)
    [(outcome, cpu_s)] = outcomes
    if not outcome.is_success:
        raise OSError(f"the probe failed: {outcome.message}")
    return p99_s, outcome.requests / entry.runtime_s / iops, cpu_s


def _cpu_of_children_s() -> float:
    """Return the CPU time of children that have ended; the load has not ended yet."""
    times = os.times()
    return times.children_user + times.children_system


def main(pairs: int, write: Callable[[str], None]) -> int:
    """Measure pairs, write a line for each and a summary; return 1 if a probe costs too much."""
    scenario = read_scenario(SCENARIO)
    [lab_disk] = scenario.disks
    [phase] = lab_disk.load
    iops = lab_disk.disk.meters[0].iops
    assert iops is not None
    write(f"{scenario.caption}\n")
    write("| p99 without, ms | with, ms | change | probe IOPS share | probe CPU, ms |")
    write("|--:|--:|--:|--:|--:|")
    measured: list[Pair] = []
    with ExitStack() as undo:
        directory = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-")))
        disk = undo.enter_context(made(SCENARIO, 0, lab_disk, directory))
        _set_real_time_priority(disk)
        disk.begin()
        for number in range(pairs):
            pair = measure_pair(disk, phase, iops, directory, probe_first=number % 2 == 0)
            measured.append(pair)
            write(_row(pair))
    write(f"\n{summary(measured)}\nload average: {os.getloadavg()[0]:.1f}")
    return 0 if is_cheap(measured) else 1


def noise(measured: Sequence[Pair]) -> float:
    """Return the median deviation of the runs without a probe from their median."""
    median_s = statistics.median(pair.without_s for pair in measured)
    return statistics.median(abs(pair.without_s / median_s - 1) for pair in measured)


def is_cheap(measured: Sequence[Pair]) -> bool:
    """Return whether a probe costs little; false if the runs differ too much."""
    return (
        noise(measured) <= MAX_NOISE
        and statistics.median(pair.change for pair in measured) < MAX_CHANGE
        and max(pair.share for pair in measured) < MOST_SHARE
    )


def summary(measured: Sequence[Pair]) -> str:
    """Return the result of all pairs in words."""
    change = statistics.median(pair.change for pair in measured)
    share = max(pair.share for pair in measured)
    deviation = noise(measured)
    result = (
        f"median change of p99 in {len(measured)} pairs: {change:+.2%} (allowed: below"
        f" {MAX_CHANGE:.0%})\nhighest probe IOPS share of the promise: {share:.2%} (allowed: below"
        f" {MOST_SHARE:.0%})\nmedian deviation without a probe: {deviation:.1%}"
    )
    if deviation <= MAX_NOISE:
        return result
    return f"{result} (over {MAX_NOISE:.0%}: the machine is too busy for a result)"


def _set_real_time_priority(disk: BlockDevice) -> None:
    """Set real-time priority for the disk: a real disk does not wait for the CPU."""
    assert disk.server is not None
    os.sched_setscheduler(disk.server.pid, os.SCHED_FIFO, os.sched_param(1))


def _row(pair: Pair) -> str:
    return (
        f"| {pair.without_s * 1e3:.3f} | {pair.with_s * 1e3:.3f} | {pair.change:+.2%} |"
        f" {pair.share:.2%} | {pair.cpu_s * 1e3:.0f} |"
    )

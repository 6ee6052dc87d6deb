"""What a probe costs the load that it runs beside: `make lab ARGS=--probe-cost`.

Pairs of runs on a throttled disk that serves a load at 80 % of its limit, one of each with a probe
that lasts as long as the load, and the other without, in changing order. In the field a probe
runs for 5 s of every 10 minutes; here it is all the time that is measured.

The disk and the load go first at the CPU, so that it is the cost at the disk that is measured;
what a probe takes of the CPU is told beside it. Other work on the machine drowns both: then the
runs without a probe differ among themselves, and nothing is concluded.
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

from disksla.config.custom_terms import SumTerms, custom_limits
from disksla.config.settings import ProbeEntry
from disksla.disks.disk import Disk
from disksla.fio.result import LatencyBin, parse_fio
from disksla.fio.runner import find_fio
from disksla.pipeline.probe_results import ProbeResult
from disksla.probes.plan import MOST_SHARE, plan_probe
from disksla.probes.runner import ProbeContext, run_probe
from lab.disk import Made, made
from lab.scenario import Phase, read_scenario

SCENARIO = Path(__file__).parent / "probe-cost.yml"
MOST_CHANGE = 0.02
"""Of the load's 99th percentile, as the median of all pairs."""
MOST_NOISE = 0.05
"""By which half of the runs without a probe may differ from their median."""
_LEAD_S = 0.5
"""By which the load begins before what is measured."""


class Pair(NamedTuple):
    """The load's 99th percentile without and with a probe, and what the probe used."""

    without_s: float
    with_s: float
    share: float
    """Of the promise."""
    cpu_s: float
    """With the start of fio and its end."""

    @property
    def change(self) -> float:
        """By which the probe changed the 99th percentile."""
        return self.with_s / self.without_s - 1


def percentile_s(bins: Sequence[LatencyBin], share: float) -> float:
    """Give a latency between the bins, which are coarse beside what is looked for."""
    wanted = share * sum(each.requests for each in bins)
    passed = 0.0
    for low, high in pairwise((LatencyBin(bins[0].seconds, 0), *bins)):
        if passed + high.requests >= wanted:
            part = (wanted - passed) / high.requests
            return low.seconds + part * (high.seconds - low.seconds)
        passed += high.requests
    return bins[-1].seconds


def measure_pair(disk: Made, phase: Phase, iops: float, room: Path, *, probe_first: bool) -> Pair:
    """Run the load twice, once of it with a probe."""
    without: list[float] = []
    with_probe: list[tuple[float, float, float]] = []
    for probed in (probe_first, not probe_first):
        if probed:
            with_probe.append(_probed(disk, phase, iops, room))
        else:
            without.append(_loaded(disk, phase))
    return Pair(without[0], *with_probe[0])


def _loaded(disk: Made, phase: Phase, meanwhile: Callable[[], None] = lambda: None) -> float:
    command = [
        *("chrt", "--fifo", "1"),
        *("fio", "--name=load", f"--filename=/dev/{disk.device}", "--direct=1", "--thread"),
        *("--time_based", f"--runtime={phase.seconds:g}", f"--ramp_time={2 * _LEAD_S:g}"),
        *("--randrepeat=0", "--norandommap", "--output-format=json+", *(phase.fio or "").split()),
    ]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as load:
        try:
            meanwhile()
            said, _ = load.communicate()
        except BaseException:
            load.kill()
            raise
    return percentile_s(parse_fio(said).read.bins, 0.99)


def _probed(disk: Made, phase: Phase, iops: float, room: Path) -> tuple[float, float, float]:
    entry = ProbeEntry(kind="read-latency", runtime_s=phase.seconds)
    plan = plan_probe(entry, disk.device, custom_limits(SumTerms(iops=iops)))
    around = ProbeContext(Disk(disk.device, 7, 0, 0), (), room)
    fio = find_fio()
    told: list[tuple[ProbeResult, float]] = []

    def probe() -> None:
        time.sleep(2 * _LEAD_S)
        before_s = _cpu_of_children_s()
        outcome = run_probe(fio, plan, around, threading.Event())
        told.append((outcome, _cpu_of_children_s() - before_s))

    p99_s = _loaded(disk, phase, probe)
    [(outcome, cpu_s)] = told
    if not outcome.is_success:
        raise OSError(f"the probe was not run: {outcome.message}")
    return p99_s, outcome.requests / entry.runtime_s / iops, cpu_s


def _cpu_of_children_s() -> float:
    """Give what children used that have ended; the load has not yet."""
    times = os.times()
    return times.children_user + times.children_system


def main(pairs: int, say: Callable[[str], None]) -> int:
    """Measure, print a line for each pair, and their medians; 1 if that is too much."""
    scenario = read_scenario(SCENARIO)
    [told] = scenario.disks
    [phase] = told.load
    iops = told.disk.meters[0].iops
    assert iops is not None
    say(f"{scenario.caption}\n")
    say("| p99 without, ms | with, ms | change | probe's share | its CPU, ms |")
    say("|--:|--:|--:|--:|--:|")
    measured: list[Pair] = []
    with ExitStack() as undo:
        room = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-")))
        disk = undo.enter_context(made(SCENARIO, 0, told, room))
        _put_first(disk)
        disk.begin()
        for number in range(pairs):
            pair = measure_pair(disk, phase, iops, room, probe_first=number % 2 == 0)
            measured.append(pair)
            say(_row(pair))
    say(f"\n{summary(measured)}; load average {os.getloadavg()[0]:.1f}")
    return 0 if is_cheap(measured) else 1


def noise(measured: Sequence[Pair]) -> float:
    """Give by how much half of the runs without a probe differ from their median."""
    median_s = statistics.median(pair.without_s for pair in measured)
    return statistics.median(abs(pair.without_s / median_s - 1) for pair in measured)


def is_cheap(measured: Sequence[Pair]) -> bool:
    """Tell whether a load hardly notices a probe; not if it cannot be told."""
    return (
        noise(measured) <= MOST_NOISE
        and statistics.median(pair.change for pair in measured) < MOST_CHANGE
        and max(pair.share for pair in measured) < MOST_SHARE
    )


def summary(measured: Sequence[Pair]) -> str:
    """Say what all pairs come to."""
    change = statistics.median(pair.change for pair in measured)
    share = max(pair.share for pair in measured)
    differ = noise(measured)
    words = (
        f"median change of the load's p99 in {len(measured)} pairs: {change:+.2%} (below"
        f" {MOST_CHANGE:.0%}); most of the promise that a probe used: {share:.2%} (below"
        f" {MOST_SHARE:.0%}); without a probe, half of the runs differ by {differ:.1%}"
    )
    if differ <= MOST_NOISE:
        return words
    return f"{words} (over {MOST_NOISE:.0%}: the machine is too busy to tell)"


def _put_first(disk: Made) -> None:
    """Let the disk go before all else at the CPU: a real one does not wait for it."""
    assert disk.server is not None
    os.sched_setscheduler(disk.server.pid, os.SCHED_FIFO, os.sched_param(1))


def _row(pair: Pair) -> str:
    return (
        f"| {pair.without_s * 1e3:.3f} | {pair.with_s * 1e3:.3f} | {pair.change:+.2%} |"
        f" {pair.share:.2%} | {pair.cpu_s * 1e3:.0f} |"
    )

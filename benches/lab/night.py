"""`make night`: a daemon that runs for hours under PostgreSQL, on a disk whose limit changes.

Each round of ten minutes has another limit or none, and phases of more and fewer clients, of a
rate, and of rest. After each round the seconds and the memory that the daemon reports are compared
with the log of the disk, and with the first round.
"""

import argparse
import json
import random
import subprocess
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack
from itertools import pairwise
from pathlib import Path
from typing import NamedTuple

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from lab.__main__ import missing, missing_for
from lab.disk import BlockDevice, all_made
from lab.experiment import SCENARIO, configuration
from lab.load import run_phase, target_on
from lab.options import start, write
from lab.requirements import FEW_POINTS, POINTS
from lab.scenario import Scenario, read_scenario
from lab.truth import Window
from support.daemon_process import DISKSLA, Daemon

_PHASES = (
    (200, "--client=8"),
    (60, None),
    (120, "--client=1"),
    (140, "--client=4 --rate=15"),
    (80, None),
)
ROUND_S = sum(seconds for seconds, _ in _PHASES)
_PER_HOUR = 3600 // ROUND_S
_SETTLE_S = 10.0
_UNCERTAIN_S = 2.0
"""Windows that are not decided at the begin and the end of a round."""
_GROWTH_MIB = 3.0
_IOPS = (150, 320)


class Moment(NamedTuple):
    """What the daemon reported at the end of a round."""

    at_s: float
    """Monotonic time."""
    by_verdict: dict[str, float]
    """Seconds."""
    resident_mib: float
    missed: float


def scenario_text(rounds: int, seed: int) -> str:
    """Return a scenario of one disk whose limit is another in each round."""
    generator = random.Random(seed)
    changes = []
    for number in range(1, rounds):
        iops = generator.choice([None, *(generator.randint(*_IOPS) for _ in range(3))])
        window = generator.choice(["50ms", "100ms", "200ms", "1s"])
        meters = [] if iops is None else [{"limit": "iops", "iops": iops, "window": window}]
        changes.append({"at": f"{number * ROUND_S}s", "meters": meters})
    phases = [
        {"for": f"{seconds}s", **({} if pgbench is None else {"pgbench": pgbench})}
        for seconds, pgbench in _PHASES
    ]
    first = {"limit": "iops", "iops": generator.randint(*_IOPS), "window": "100ms"}
    disk = {
        "disk": {
            "size": "1GiB",
            "meters": [first],
            "service": {"latency": "200us", "spread": 0.3},
            "changes": changes,
        },
        "cache": "write back",
        "file_system": "ext4",
        "postgresql": {"settings": {"wal_sync_method": "fdatasync"}},
        "load": phases,
    }
    return json.dumps({"caption": "a night of PostgreSQL", "disks": [disk]})


def problems(moments: Sequence[Moment], truth: Sequence[Window]) -> Iterator[str]:
    """Yield what is wrong of the rounds between moments."""
    for number, (before, after) in enumerate(pairwise(moments), start=1):
        found, seconds = _between(before, after), after.at_s - before.at_s
        true_s = sum(each.throttled_s for each in truth if before.at_s < each.end_s <= after.at_s)
        points = POINTS if true_s else FEW_POINTS
        if abs(found["throttled"] - true_s) > points * seconds:
            yield f"round {number}: {found['throttled']:.1f} s throttled; expected {true_s:.1f}"
        if found["stalled"]:
            yield f"round {number}: {found['stalled']:.1f} s stalled; expected none"
        if abs(sum(found.values()) - seconds) > _UNCERTAIN_S:
            yield f"round {number}: {sum(found.values()):.1f} s judged; expected {seconds:.1f}"
    hour = moments[min(_PER_HOUR, len(moments) - 1)]
    growth_mib = moments[-1].resident_mib - hour.resident_mib
    if growth_mib > _GROWTH_MIB:
        yield f"memory grew by {growth_mib:.1f} MiB after an hour; expected {_GROWTH_MIB} at most"


def _between(before: Moment, after: Moment) -> Mapping[str, float]:
    """Return the seconds by verdict of a round."""
    return {each: after.by_verdict[each] - before.by_verdict[each] for each in after.by_verdict}


def _moment(daemon: Daemon) -> Moment:
    """Return what the daemon reports now."""
    _, page = daemon.get("/metrics")
    at_s = time.monotonic()
    samples = [each for family in text_string_to_metric_families(page) for each in family.samples]
    values = {each.name: each.value for each in samples if not each.labels}
    by_verdict = {
        each.labels["verdict"]: each.value
        for each in samples
        if each.name == "disksla_verdict_seconds_total"
    }
    return Moment(
        at_s,
        by_verdict,
        values["process_resident_memory_bytes"] / 2**20,
        values["disksla_sampler_missed_ticks_total"],
    )


def _run(scenario: Scenario, path: Path, rounds: int) -> list[str]:
    """Run rounds; write a line for each, and return what is wrong."""
    directory, [lab_disk] = path.parent, scenario.disks
    with ExitStack() as undo:
        [disk] = undo.enter_context(all_made(path, scenario, directory))
        target = undo.enter_context(target_on(disk, lab_disk))
        config = {**configuration([disk], scenario), "state": {"directory": str(directory)}}
        daemon = _started(undo, directory, config)
        disk.begin()
        time.sleep(_SETTLE_S)
        moments = [_moment(daemon)]
        for number in range(1, rounds + 1):
            for phase in lab_disk.load:
                run_phase(target, phase)
            moments.append(_moment(daemon))
            write(_line(number, *moments[-2:]))
        disk.end()
    bad = [line for line in daemon.log() if "Traceback" in line or "level=error" in line]
    return [*problems(moments, list(_logged(disk))), *(f"log: {line}" for line in bad)]


def _started(undo: ExitStack, directory: Path, config: Mapping[str, object]) -> Daemon:
    """Start a daemon, until the end of the block."""
    file, log = directory / "config.yml", directory / "log"
    file.write_text(json.dumps(config), encoding="utf-8")
    process = subprocess.Popen(
        [DISKSLA, "serve", "--config.file", file, "--web.listen-address", "127.0.0.1:0"],
        stdout=subprocess.PIPE,
        stderr=undo.enter_context(log.open("w", encoding="utf-8")),
        text=True,
    )
    daemon = Daemon(process, log)
    undo.callback(daemon.end)
    return daemon


def _logged(disk: BlockDevice) -> Iterable[Window]:
    """Return the log of the disk."""
    assert disk.truth is not None
    return map(msgspec.json.Decoder(Window).decode, disk.truth.read_bytes().splitlines())


def _line(number: int, before: Moment, after: Moment) -> str:
    """Return what a round was, for one who waits."""
    seconds = ", ".join(
        f"{verdict} {each:.1f}" for verdict, each in _between(before, after).items() if each
    )
    missed = after.missed - before.missed
    return f"{number}: {seconds} s; {missed:.0f} ticks missed; {after.resident_mib:.1f} MiB"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run for some hours; return 1 if anything is wrong, else 0."""
    parser = argparse.ArgumentParser(prog="night", description=__doc__)
    parser.add_argument("--hours", type=float, default=6.0, help="default: %(default)s")
    parser.add_argument("--seed", type=int, default=random.randrange(10**6))
    options = parser.parse_args(arguments)
    rounds = max(1, round(options.hours * _PER_HOUR))
    with tempfile.TemporaryDirectory(prefix="disksla-night-") as directory:
        path = Path(directory) / SCENARIO
        path.write_text(scenario_text(rounds, options.seed), encoding="utf-8")
        scenario = read_scenario(path)
        reason = missing() or missing_for(scenario)
        if reason is not None:
            write(f"night: SKIPPED: {reason}")
            return 0
        write(f"seed {options.seed}, {rounds} rounds of {ROUND_S} s")
        found = _run(scenario, path, rounds)
    for each in found:
        write(each)
    write(f"{len(found)} problems")
    return 1 if found else 0


if __name__ == "__main__":
    start(main)

"""Run of one scenario on real disks: a recording by disksla, and the log of the truth."""

import gzip
import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

import msgspec
import psutil

from disksla.state.pipeline.tick import decode_header, decode_tick, encode
from lab.disk import BlockDevice, all_made
from lab.load import PhaseResult, Target, run_phase, target_on
from lab.long import spans_of
from lab.scenario import SEED, LabDisk, Scenario, drawn_text, read_scenario
from lab.truth import MACHINE_TRUTH, Window, truth_name
from support.waiting import eventually

_TIMEOUT_S = 20.0


def start_recorder(ticks: Path, config: Path) -> subprocess.Popen[bytes]:
    """Start to record to a file; return when something was recorded.

    It ends by SIGINT, which a process ignores if a shell started its parent with `&`.
    """
    disksla = str(Path(sys.executable).with_name("disksla"))
    command = [disksla, "record", str(ticks), "--for", "2h", "--config.file", str(config)]
    recorder = subprocess.Popen(
        ["env", "--default-signal=INT", *command],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    if not eventually(lambda: ticks.exists() and ticks.stat().st_size > 0, _TIMEOUT_S):
        stop_recorder(recorder)
        raise OSError("`disksla record` has recorded no tick")
    return recorder


def stop_recorder(recorder: subprocess.Popen[bytes]) -> None:
    """End a recording, if it has not ended."""
    if recorder.poll() is None:
        recorder.send_signal(signal.SIGINT)
        recorder.wait(_TIMEOUT_S)


def record_span(
    ticks: Path, config: Path, start_s: float, end_s: float, failed: threading.Event
) -> None:
    """Record from one time to another, both from now on, unless the run fails."""
    begun_s = time.monotonic()
    if failed.wait(start_s):
        return
    recorder = start_recorder(ticks, config)
    failed.wait(max(0.0, begun_s + end_s - time.monotonic()))
    stop_recorder(recorder)


LEAD_S = 0.5
"""Time without load before and after the loads."""
QUIET_SHARE = 0.05
"""Of the CPU time. A machine is quiet if its hypervisor took less during a run: with more, the
load, the limiter and the sampler are late."""
RUNS = 3
"""Most runs of a scenario."""
SCENARIO = "scenario.yml"
"""The scenario as it ran, with its random numbers."""
TICKS, CONFIG, RESULTS = "ticks.jsonl.gz", "config.yml", "seen.json"


class DiskResult(msgspec.Struct, frozen=True):
    """The results of the loads of one disk of a scenario."""

    device: str
    phases: list[PhaseResult]
    machine_iowait_s: float | None = None
    """iowait of all CPUs during the scenario, for any reason."""
    machine_steal_s: float = 0.0
    """Time in which the hypervisor ran something else on the CPUs of this machine."""


class Bench(NamedTuple):
    """A scenario whose disks are ready to be loaded, and its files."""

    scenario: Scenario
    disks: list[BlockDevice]
    targets: list[Target]
    home: Path
    """Directory of what is not kept."""
    config: Path
    seed: str


def run_until_quiet(
    path: Path,
    directory: Path,
    seed: int,
    write: Callable[[str], None],
    phase_s: float | None = None,
) -> None:
    """Run a scenario until the machine was quiet, RUNS times at most.

    What a run found makes no difference.
    """
    for number in range(1, RUNS + 1):
        stolen_share = run(path, directory, seed, phase_s)
        if stolen_share < QUIET_SHARE or number == RUNS:
            return
        write(f"{path.stem}: run again: {stolen_share:.0%} of the CPU time was taken (steal)")


def run(path: Path, directory: Path, seed: int = SEED, phase_s: float | None = None) -> float:
    """Run a scenario, and write the recording and the truth to a directory.

    Return the share of the CPU time that the hypervisor gave to others meanwhile. `phase_s` is
    another length of each phase of the loads.

    The files are `scenario.yml`, `ticks.jsonl.gz` and `config.yml` for `disksla replay`,
    `truth-N.jsonl.gz` for each disk that keeps a log, `truth-machine.jsonl.gz` for a limiter that
    the disks share, and `seen.json`, the results of the loads. Each of several recorders has a
    `ticks-N.jsonl.gz`.
    """
    directory.mkdir(parents=True, exist_ok=True)
    drawn = directory.resolve() / SCENARIO
    drawn.write_text(drawn_text(path, seed), encoding="utf-8")
    scenario = read_scenario(drawn)
    if phase_s is not None:
        scenario = scenario.lasting(phase_s)
    with ExitStack() as undo:
        home = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-")))
        disks = undo.enter_context(all_made(drawn, scenario, home))
        targets = [
            undo.enter_context(target_on(disk, lab_disk))
            for disk, lab_disk in zip(disks, scenario.disks, strict=True)
        ]
        config = directory / CONFIG
        config.write_text(json.dumps(configuration(disks, scenario), indent=1) + "\n")
        bench = Bench(scenario, disks, targets, home, config, f"{seed} {path.stem}")
        begun_s, before = time.monotonic(), psutil.cpu_times()
        results = _loaded(bench)
        ended_s, after = time.monotonic(), psutil.cpu_times()
        iowait_s, steal_s = after.iowait - before.iowait, after.steal - before.steal
        names = recorded_names(disks, scenario)
        disk_results = [
            DiskResult(name, phases, iowait_s, steal_s)
            for name, phases in zip(names.values(), results, strict=True)
        ]
        encoded = msgspec.json.format(msgspec.json.encode(disk_results))
        (directory / RESULTS).write_bytes(encoded + b"\n")
        for ticks in home.glob("ticks*.jsonl"):
            recording = only_devices(ticks.read_bytes(), names)
            if not scenario.exact:
                recording = without_exact_counts(recording)
            _compress(directory / f"{ticks.name}.gz", recording)
        for number, disk in enumerate(disks):
            if disk.truth is not None:
                _compress(truth_file(directory, number), disk.truth.read_bytes())
        if (home / MACHINE_TRUTH).exists():
            _compress(machine_truth_file(directory), (home / MACHINE_TRUTH).read_bytes())
    return steal_s / (psutil.cpu_count() or 1) / (ended_s - begun_s)


def _loaded(bench: Bench) -> list[list[PhaseResult]]:
    """Load the disks under their limits, record that, and return the results of each disk."""
    scenario = bench.scenario
    with ExitStack() as undo:
        if scenario.recorders is None:
            ticks = bench.home / TICKS.removesuffix(".gz")
            undo.callback(stop_recorder, start_recorder(ticks, bench.config))
        for disk in bench.disks:
            disk.begin()
        time.sleep(LEAD_S)
        spans = spans_of(scenario.recorders, scenario.load_s, bench.seed)
        executor = undo.enter_context(ThreadPoolExecutor(len(spans) + len(bench.disks)))
        failed = threading.Event()
        undo.callback(failed.set)
        recorded = [
            executor.submit(
                record_span, bench.home / f"ticks-{number}.jsonl", bench.config, *span, failed
            )
            for number, span in enumerate(spans)
        ]
        results = list(executor.map(_load, bench.targets, scenario.disks))
        for each in recorded:
            each.result()
        time.sleep(LEAD_S)
    for disk in bench.disks:
        disk.end()
    return results


def as_it_ran(scenario: Scenario, directory: Path) -> Scenario:
    """Return a scenario with the random numbers of the run in a directory."""
    ran = directory / SCENARIO
    return read_scenario(ran).with_expectations_of(scenario) if ran.exists() else scenario


def recordings_in(directory: Path) -> list[Path]:
    """Return the recordings of several recorders."""
    return sorted(directory.glob("ticks-*.jsonl.gz"))


def truth_file(directory: Path, number: int) -> Path:
    """Return the path of the log of one disk; a disk that the kernel limits has no log."""
    return directory / f"{truth_name(number)}.gz"


def machine_truth_file(directory: Path) -> Path:
    """Return the path of the log of the limiter that the disks of a scenario share, if any."""
    return directory / f"{MACHINE_TRUTH}.gz"


def read_truth(path: Path) -> list[Window]:
    """Read the log of a disk."""
    decoder = msgspec.json.Decoder(Window)
    return [decoder.decode(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def read_results(directory: Path) -> list[DiskResult]:
    """Read the results of the loads of each disk."""
    return msgspec.json.decode((directory / RESULTS).read_bytes(), type=list[DiskResult])


def _compress(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, mtime=0))


def _load(target: Target, lab_disk: LabDisk) -> list[PhaseResult]:
    return [run_phase(target, phase) for phase in lab_disk.load]


def configuration(disks: list[BlockDevice], scenario: Scenario) -> dict[str, object]:
    """Return the configuration of disksla for the disks of a scenario."""
    machine = scenario.machine
    names = "|".join(
        disk.device
        for disk, lab_disk in zip(disks, scenario.disks, strict=True)
        if lab_disk.is_monitored
    )
    return {
        "discovery": {"include": [f"^({names})$"]},
        **({"machine": {"limits": machine.limits}} if machine is not None else {}),
        "disks": [
            {
                "match": {"device": disk.device},
                "terms": lab_disk.terms,
                **({"size": lab_disk.sold_size} if lab_disk.sold_size else {}),
            }
            for disk, lab_disk in zip(disks, scenario.disks, strict=True)
            if lab_disk.terms is not None and lab_disk.is_monitored
        ],
    }


def recorded_names(disks: list[BlockDevice], scenario: Scenario) -> dict[str, str]:
    """Return the names in the recording, by the kernel name of each disk.

    A loop device that is not monitored would not count for the limits of the machine, because its
    file is on a disk that does. So it has the name of a disk there.
    """
    return {
        disk.device: disk.device if lab_disk.is_monitored else f"vd{disk.device}"
        for disk, lab_disk in zip(disks, scenario.disks, strict=True)
    }


def only_devices(recording: bytes, names: Mapping[str, str]) -> bytes:
    """Return a recording without other disks of this machine, with other names of these."""
    header, *lines = recording.splitlines()
    kept = [encode(decode_header(header))]
    for number, line in enumerate(lines, start=2):
        tick = decode_tick(line, number)
        text, disks = tick.diskstats, tick.disks
        if text is not None:
            rows = text.splitlines(keepends=True)
            devices = [row.split()[2] for row in rows]
            text = "".join(
                row.replace(f" {device} ", f" {names[device]} ", 1)
                for row, device in zip(rows, devices, strict=True)
                if device in names
            )
        if disks is not None:
            disks = tuple(
                msgspec.structs.replace(disk, name=names[disk.name])
                for disk in disks
                if disk.name in names
            )
        by_device = {
            field: {
                names[name]: each for name, each in getattr(tick, field).items() if name in names
            }
            for field in ("inflight", "data_writes", "close")
        }
        own = msgspec.structs.replace(tick, diskstats=text, disks=disks, **by_device)
        kept.append(encode(own))
    return b"".join(kept)


def without_exact_counts(recording: bytes) -> bytes:
    """Return a recording as a daemon sees it that may not count data writes exactly."""
    header, *lines = recording.splitlines(keepends=True)
    ticks = (decode_tick(line, number) for number, line in enumerate(lines, start=2))
    kept = (encode(msgspec.structs.replace(tick, data_writes={})) for tick in ticks)
    return header + b"".join(kept)

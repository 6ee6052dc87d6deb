"""One scenario, really run: a recording of what disksla saw, and the truth beside it."""

import gzip
import json
import signal
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack
from pathlib import Path

import msgspec
import psutil

from disksla.pipeline.recording import decode_header, decode_tick, encode
from lab.disk import Made, made
from lab.load import Seen, prepared, run_phase
from lab.scenario import LabDisk, read_scenario
from lab.truth import Window
from support.loop_device import eventually

LEAD_S = 1.0
"""Of quiet before and after."""
_PATIENCE_S = 20.0
TICKS, CONFIG, SEEN = "ticks.jsonl.gz", "config.yml", "seen.json"


class Loaded(msgspec.Struct, frozen=True):
    """One disk of a scenario and what its loads saw."""

    device: str
    phases: list[Seen]
    machine_iowait_s: float | None = None
    """What all CPUs were in iowait meanwhile, for whatever reason."""


def run(path: Path, directory: Path) -> None:
    """Run a scenario, and leave in a directory what was seen and what was true.

    These are `ticks.jsonl.gz` and `config.yml` for `disksla replay`, `truth-N.jsonl.gz` for each
    disk that knows it, and `seen.json`, what the loads saw.
    """
    scenario = read_scenario(path)
    directory.mkdir(parents=True, exist_ok=True)
    with ExitStack() as undo:
        room = Path(undo.enter_context(tempfile.TemporaryDirectory(prefix="disksla-lab-")))
        disks = [
            undo.enter_context(made(path.resolve(), number, disk, room))
            for number, disk in enumerate(scenario.disks)
        ]
        homes = [
            undo.enter_context(prepared(disk, told.load))
            for disk, told in zip(disks, scenario.disks, strict=True)
        ]
        config = directory / CONFIG
        config.write_text(json.dumps(_configuration(disks, scenario.disks), indent=1) + "\n")
        ticks = room / "ticks.jsonl"
        recorder = _record(ticks, config)
        undo.callback(_stop, recorder)
        if not eventually(lambda: ticks.exists() and ticks.stat().st_size > 0, _PATIENCE_S):
            raise OSError(f"{path.stem}: `disksla record` recorded nothing")
        for disk in disks:
            disk.begin()
        iowait_s = psutil.cpu_times().iowait
        time.sleep(LEAD_S)
        with ThreadPoolExecutor(len(disks)) as together:
            seen = list(together.map(_load, disks, scenario.disks, homes))
        time.sleep(LEAD_S)
        _stop(recorder)
        iowait_s = psutil.cpu_times().iowait - iowait_s
        loaded = [
            Loaded(disk.device, phases, iowait_s) for disk, phases in zip(disks, seen, strict=True)
        ]
        (directory / SEEN).write_bytes(msgspec.json.format(msgspec.json.encode(loaded)) + b"\n")
        _compress(directory / TICKS, _only(ticks.read_bytes(), [disk.device for disk in disks]))
        for number, disk in enumerate(disks):
            if disk.truth is not None:
                _compress(truth_file(directory, number), disk.truth.read_bytes())


def truth_file(directory: Path, number: int) -> Path:
    """Name the log of one disk of a scenario; a disk of the kernel's has none."""
    return directory / f"truth-{number}.jsonl.gz"


def read_truth(path: Path) -> list[Window]:
    """Read what a disk wrote of itself."""
    decoder = msgspec.json.Decoder(Window)
    return [decoder.decode(line) for line in gzip.decompress(path.read_bytes()).splitlines()]


def read_seen(directory: Path) -> list[Loaded]:
    """Read what the loads saw, for each disk."""
    return msgspec.json.decode((directory / SEEN).read_bytes(), type=list[Loaded])


def _compress(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, mtime=0))


def _load(disk: Made, told: LabDisk, home: Path | None) -> list[Seen]:
    return [run_phase(disk, phase, home) for phase in told.load]


def _configuration(disks: list[Made], told: tuple[LabDisk, ...]) -> dict[str, object]:
    names = "|".join(disk.device for disk in disks)
    return {
        "discovery": {"include": [f"^({names})$"]},
        "disks": [
            {
                "match": {"device": disk.device},
                "terms": lab_disk.terms,
                **({"size": lab_disk.sold_size} if lab_disk.sold_size else {}),
            }
            for disk, lab_disk in zip(disks, told, strict=True)
            if lab_disk.terms is not None
        ],
    }


def _record(ticks: Path, config: Path) -> subprocess.Popen[bytes]:
    """Record until an interrupt, to which a shell's background would have made it deaf."""
    disksla = str(Path(sys.executable).with_name("disksla"))
    command = [disksla, "record", str(ticks), "--duration", "1h", "--config.file", str(config)]
    return subprocess.Popen(
        ["env", "--default-signal=INT", *command],
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )


def _stop(recorder: subprocess.Popen[bytes]) -> None:
    if recorder.poll() is None:
        recorder.send_signal(signal.SIGINT)
        recorder.wait(_PATIENCE_S)


def _only(recording: bytes, devices: list[str]) -> bytes:
    """Leave other disks of this machine out of a recording."""
    header, *lines = recording.splitlines()
    kept = [encode(decode_header(header))]
    for number, line in enumerate(lines, start=2):
        tick = decode_tick(line, number)
        text, disks = tick.diskstats, tick.disks
        if text is not None:
            rows = text.splitlines(keepends=True)
            text = "".join(row for row in rows if row.split()[2] in devices)
        if disks is not None:
            disks = tuple(disk for disk in disks if disk.name in devices)
        inflight = {name: counts for name, counts in tick.inflight.items() if name in devices}
        kept.append(
            encode(msgspec.structs.replace(tick, diskstats=text, disks=disks, inflight=inflight))
        )
    return b"".join(kept)

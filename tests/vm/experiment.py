"""Run of one scenario in the virtual machine: a recording by disksla, and QEMU's trace."""

import gzip
import json
import tempfile
import time
from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

import msgspec
import psutil

from disksla.pipeline import Tick
from disksla.pipeline.recording import decode_header, decode_tick, encode
from lab.experiment import CONFIG, SCENARIO, TICKS, only_devices
from lab.scenario import drawn_text
from vm.clocks import Pause
from vm.daemon import Scrape, scrape
from vm.guest import Guest
from vm.limits import Change, QemuLimits
from vm.load import clean_up, prepare, run_phase
from vm.machine import Machine
from vm.scenario import Event, Scenario, all_scenarios, read_scenario
from vm.trace import own_lines

TRACE, RESULTS = "trace.gz", "seen.json"
_LEAD_S = 1.0
_DECIDED_S = 2.5
"""Time after which all verdicts are decided."""
_RECORDING = "/run/disksla-recording"
_CONFIG = "/etc/disksla/disksla.yml"
_PACKAGE = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_package"
_POLL_S = 0.5
_TMPFS = Path("/dev/shm")


class Results(msgspec.Struct, frozen=True):
    """What was done to the disk, and what the daemon said of it."""

    seed: int
    qemu: str
    """Version of QEMU."""
    changes: list[Change]
    pauses: list[Pause]
    before: Scrape
    after: Scrape
    steal_s: float
    """Time in which the hypervisor of the host ran something else on its CPUs."""


class Recording:
    """What `disksla record` has written in the virtual machine up to now."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._recorder = guest.start(
            f"exec disksla record {_RECORDING} --duration 3h --config.file {_CONFIG} 2>&1"
        )
        self._data = b""

    def until(self, guest_s: float) -> list[bytes]:
        """Wait for a tick after this time; return all lines up to now."""
        while True:
            if self._recorder.has_ended():
                raise OSError(f"disksla record: ended: {self._recorder.output(check=False)!r}")
            self._data += self._guest.tail(_RECORDING, len(self._data))
            *lines, _ = self._data.split(b"\n")
            if len(lines) > 1 and decode_tick(lines[-1], len(lines)).clocks.monotonic_s > guest_s:
                return lines
            time.sleep(_POLL_S)


def install(guest: Guest, package: Path, scenarios: Mapping[str, Scenario]) -> Recording:
    """Install the package, start the daemon with the terms of all disks, and record."""
    size_bytes = package.stat().st_size
    guest.run(
        f"cd /root; head -c {size_bytes} {_PACKAGE} >package.deb; dpkg --install package.deb;"
        "systemctl is-enabled disksla-exporter; systemctl is-active disksla-exporter"
    )
    guest.write(_CONFIG, configuration(scenarios))
    guest.run(f"disksla check-config {_CONFIG}; systemctl reload disksla-exporter")
    recording = Recording(guest)
    recording.until(0.0)
    return recording


def configuration(scenarios: Mapping[str, Scenario]) -> str:
    """Return the configuration of disksla for the disks of some scenarios, by name."""
    disks = [
        {"match": {"serial": name}, "terms": scenario.terms}
        for name, scenario in scenarios.items()
        if scenario.terms is not None
    ]
    return json.dumps({"discovery": {"include": ["^vd"]}, "disks": disks}, indent=1) + "\n"


def run(path: Path, seed: int, machine: Machine, recording: Recording, directory: Path) -> None:
    """Run a scenario, and write it, the recording, the trace and the results to a directory."""
    name, scenario = path.stem, read_scenario(path, seed)
    guest = machine.guest
    offset = machine.trace_bytes()
    changes: list[Change] = []
    pauses: list[Pause] = []

    def limit(limits: QemuLimits) -> None:
        changes.append(Change(machine.throttle(name, limits), limits))

    def happen(event: Event) -> None:
        if event.limits is not None:
            limit(event.limits)
        if event.pause is not None:
            pauses.append(Pause(*machine.pause(event.pause)))
        if event.replug:
            machine.unplug(name)
            machine.plug(name, write_cache=scenario.write_cache)
            limit(changes[-1].limits)

    with _disk_file(scenario.size) as file:
        machine.create_disk(name, file)
        machine.plug(name, write_cache=scenario.write_cache)
        prepare(guest, guest.device(name), scenario.load)
        limit(scenario.limits)
        time.sleep(_LEAD_S)
        before = scrape(guest, guest.device(name))
        steal_s = -psutil.cpu_times().steal
        for phase in scenario.load:
            run_phase(guest, guest.device(name), phase, happen)
        steal_s += psutil.cpu_times().steal
        time.sleep(_DECIDED_S)
        after = scrape(guest, guest.device(name))
        lines = recording.until(after.ended_s)
        trace = own_lines(machine.trace_since(offset))
        machine.throttle(name, QemuLimits())
        clean_up(guest, scenario.load)
        machine.unplug(name)
        machine.remove_disk(name)
    results = Results(seed, machine.version, changes, pauses, before, after, steal_s)
    directory.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.format(msgspec.json.encode(results))
    (directory / RESULTS).write_bytes(encoded + b"\n")
    (directory / SCENARIO).write_text(drawn_text(path, seed), encoding="utf-8")
    (directory / CONFIG).write_text(configuration({name: scenario}))
    _compress(directory / TICKS, cut(lines, name))
    _compress(directory / TRACE, "".join(f"{line}\n" for line in trace).encode())


def as_it_ran(name: str, directory: Path) -> Scenario:
    """Return a scenario with the random numbers of the run in a directory."""
    expected = read_scenario(all_scenarios()[name]).expect
    return msgspec.structs.replace(read_scenario(directory / SCENARIO), expect=expected)


@contextmanager
def _disk_file(size_bytes: int) -> Iterator[Path]:
    """Create a sparse file until the end of the block; in memory, if there is a tmpfs."""
    home = _TMPFS if _TMPFS.is_dir() else None
    with tempfile.TemporaryDirectory(prefix="disksla-vm-", dir=home) as directory:
        file = Path(directory) / "disk"
        with file.open("wb") as image:
            image.truncate(size_bytes)
        yield file


def _compress(path: Path, data: bytes) -> None:
    path.write_bytes(gzip.compress(data, mtime=0))


def cut(lines: list[bytes], serial: str) -> bytes:
    """Return the part of a recording from when a disk is plugged in, without other disks."""
    ticks = [decode_tick(line, number) for number, line in enumerate(lines[1:], start=2)]
    devices = devices_of(ticks, serial)
    first = next(number for number, tick in enumerate(ticks) if devices_of([tick], serial))
    header = encode(decode_header(lines[0]))
    return only_devices(header + b"".join(map(encode, ticks[first:])), devices)


def devices_of(ticks: Iterable[Tick], serial: str) -> list[str]:
    """Return the kernel names that a disk has in a recording."""
    names = {disk.name for tick in ticks for disk in tick.disks or () if disk.serial == serial}
    return sorted(names)

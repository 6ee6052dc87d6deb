"""Run of one scenario in the virtual machine: a recording by disksla, and QEMU's trace."""

import gzip
import json
import shlex
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from itertools import zip_longest
from pathlib import Path

import msgspec
import psutil

from disksla.state.pipeline import Tick
from disksla.state.pipeline.tick import decode_header, decode_tick, encode
from lab.experiment import CONFIG, SCENARIO, TICKS, only_devices
from lab.scenario import drawn_text
from vm.guest import OF_MACHINE, Guest, Scrape, of_device, scrape
from vm.limits import Change, QemuLimits
from vm.machine import Machine
from vm.scenario import Disk, Event, Phase, Scenario, SharedLimits, all_scenarios, read_scenario
from vm.truth import Pause, own_lines

_MOUNT_POINT = "/mnt"
_DATA = f"{_MOUNT_POINT}/pgbench"
_SERVER = "/usr/lib/postgresql/15/bin/pg_ctl --silent --pgdata " + _DATA
_OPTIONS = "-c listen_addresses= -c unix_socket_directories=/tmp"
_POLL_S = 0.05


def prepare(guest: Guest, device: str, phases: tuple[Phase, ...]) -> None:
    """Start PostgreSQL on the disk if a phase needs it."""
    if all(phase.pgbench is None for phase in phases):
        return
    start = shlex.quote(f'{_SERVER} --log /tmp/server.log --options "{_OPTIONS}" start')
    guest.run(
        f"mkfs.ext4 -q -E lazy_itable_init=0,lazy_journal_init=0 /dev/{device} >/dev/null;"
        f"mount /dev/{device} {_MOUNT_POINT}; cp -a /var/lib/postgresql/pgbench {_MOUNT_POINT}/;"
        f"sync; su postgres -c {start} >/dev/null; sync"
    )


def clean_up(guest: Guest, phases: tuple[Phase, ...]) -> None:
    """Stop PostgreSQL; the disk must be unlimited, or this takes long."""
    if any(phase.pgbench is not None for phase in phases):
        stop = shlex.quote(f"{_SERVER} --mode immediate stop")
        guest.run(f"su postgres -c {stop} >/dev/null; umount {_MOUNT_POINT}")


def run_phases(
    guest: Guest, phases: Sequence[tuple[str, Phase]], happen: Callable[[Event], None]
) -> None:
    """Run phases, each on a device, together to their end, with the events of the first.

    A program may fail only if its disk is unplugged.
    """
    commands = [guest.start(_script(device, phase)) for device, phase in phases]
    begun_s = time.monotonic()
    events = phases[0][1].events
    for event in events:
        while time.monotonic() < begun_s + event.at:
            time.sleep(_POLL_S)
        happen(event)
    for command in commands:
        command.output(check=not any(event.replug for event in events))


def _script(device: str, phase: Phase) -> str:
    """Return the script of a phase."""
    script = f"sleep {phase.seconds}"
    if phase.fio is not None:
        script = (
            f"fio --name=vm --filename=/dev/{device} --direct=1 --thread --time_based"
            f" --runtime={phase.seconds * 1000:.0f}ms --randrepeat=1 {phase.fio} >/dev/null"
        )
    elif phase.pgbench is not None:
        pgbench = f"pgbench --host /tmp --no-vacuum --time {phase.seconds:.0f} {phase.pgbench}"
        script = f"su postgres -c {shlex.quote(f'{pgbench} postgres')} >/dev/null"
    return script


TRACE, RESULTS = "trace.gz", "seen.json"
_LEAD_S = 1.0
_DECIDED_S = 2.5
"""Time after which all verdicts are decided."""
_RECORDING = "/run/disksla-recording"
_CONFIG = "/etc/disksla/disksla.yml"
PACKAGE = "/dev/disk/by-id/scsi-0QEMU_QEMU_HARDDISK_package"
_POLL_S = 0.5
_GIB = 2**30
_TMPFS = Path("/dev/shm")
_GROUP = "machine"
"""Throttle group of the disks that share limits."""


class DiskResults(msgspec.Struct, frozen=True, kw_only=True):
    """What was done to a disk or to the machine, and what the daemon said of it."""

    changes: list[Change]
    before: Scrape
    after: Scrape


class Results(DiskResults, frozen=True, kw_only=True):
    """Results of the first disk of a scenario, and of others."""

    seed: int
    qemu: str
    """Version of QEMU."""
    pauses: list[Pause]
    steal_s: float
    """Time in which the hypervisor of the host ran something else on its CPUs."""
    beside: list[DiskResults] = []
    """Of the other disks."""
    machine: DiskResults | None = None
    """Of all disks together, if the scenario has limits of the machine."""

    @property
    def disks(self) -> list[DiskResults]:
        """Results of all disks."""
        return [self, *self.beside]


class Recording:
    """What `disksla record` has written in the virtual machine up to now."""

    def __init__(self, guest: Guest) -> None:
        self._guest = guest
        self._recorder = guest.start(
            f"exec disksla record {_RECORDING} --for 3h --config.file {_CONFIG} 2>&1"
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


def install(guest: Guest, package: Path) -> Recording:
    """Install the package, which starts the daemon, and record."""
    size_bytes = package.stat().st_size
    guest.run(
        f"cd /root; head -c {size_bytes} {PACKAGE} >package.deb; dpkg --install package.deb;"
        "systemctl is-enabled disksla-exporter; systemctl is-active disksla-exporter"
    )
    guest.write(_CONFIG, configuration(()))
    recording = Recording(guest)
    recording.until(0.0)
    return recording


def configuration(disks: Iterable[tuple[str, Disk]], machine: SharedLimits | None = None) -> str:
    """Return the configuration of disksla for disks, each with its serial number."""
    entries = [
        {"match": {"serial": serial}, "terms": disk.terms}
        for serial, disk in disks
        if disk.terms is not None
    ]
    of_machine = {} if machine is None else {"limits": machine.limits, "exclude": ["^s"]}
    shared = {"machine": of_machine} if of_machine else {}
    sections = {"discovery": {"include": ["^vd"]}, **shared, "disks": entries}
    return json.dumps(sections, indent=1) + "\n"


class _Plugged:
    """The disks of a scenario while they are plugged in, and what happens to them."""

    def __init__(self, machine: Machine, name: str, scenario: Scenario) -> None:
        self._machine = machine
        self._name = name
        self._scenario = scenario
        self._disks = list(zip(scenario.serials(name), scenario.disks, strict=True))
        self._changes: dict[str, list[Change]] = {serial: [] for serial, _ in self._disks}
        self.pauses: list[Pause] = []

    def plug(self, undo: ExitStack) -> None:
        """Create the disks and plug them in, one after the other, and start what is on them.

        The trace does not say to which disk a request belongs, but the system reads each at first.
        """
        for serial, disk in self._disks:
            self._machine.create_disk(serial, undo.enter_context(_disk_file(_GIB)))
            self._machine.plug(serial, write_cache=disk.cache == "write back")
            device = self._machine.guest.device(serial)
            self._machine.guest.run("udevadm settle")
            prepare(self._machine.guest, device, disk.load)

    def unplug(self) -> None:
        """Unplug the disks, without limits."""
        for serial, disk in self._disks:
            self._machine.throttle(serial, QemuLimits())
            clean_up(self._machine.guest, disk.load)
            self._machine.unplug(serial)
            self._machine.remove_disk(serial)

    def limit(self) -> None:
        """Set the limits at the start: of the machine, or else of each disk."""
        machine = self._scenario.machine
        if machine is None or machine.throttle is None:
            for serial, disk in self._disks:
                self._limit(serial, disk.limits)
            return
        limits = machine.throttle
        at_s = [self._machine.throttle(serial, limits, _GROUP) for serial, _ in self._disks]
        for changes in self._changes.values():
            changes.append(Change(at_s[-1], limits))

    def load(self) -> None:
        """Run all phases."""
        guest = self._machine.guest
        for phases in zip_longest(*(disk.load for _, disk in self._disks)):
            run_phases(
                guest,
                [
                    (guest.device(serial), phase)
                    for (serial, _), phase in zip(self._disks, phases, strict=True)
                    if phase is not None
                ],
                self._happen,
            )

    def scrape(self) -> list[Scrape]:
        """Return the metrics of each disk, and then those of the machine, if it has limits."""
        guest = self._machine.guest
        patterns = [of_device(guest.device(serial)) for serial, _ in self._disks]
        if self._scenario.machine is not None:
            patterns.append(OF_MACHINE)
        return [scrape(guest, pattern) for pattern in patterns]

    def results(self, before: list[Scrape], after: list[Scrape]) -> list[DiskResults]:
        """Return the results of each disk, and then those of the machine, if it has limits."""
        changes = [*self._changes.values(), self._changes[self._name]]
        return [
            DiskResults(changes=each, before=first, after=last)
            for each, first, last in zip(changes, before, after, strict=False)
        ]

    def _limit(self, serial: str, limits: QemuLimits) -> None:
        self._changes[serial].append(Change(self._machine.throttle(serial, limits), limits))

    def _happen(self, event: Event) -> None:
        """Do what happens to the first disk."""
        if event.limits is not None:
            self._limit(self._name, event.limits)
        if event.pause is not None:
            self.pauses.append(Pause(*self._machine.pause(event.pause)))
        if event.replug:
            self._machine.unplug(self._name)
            is_cached = self._scenario.disks[0].cache == "write back"
            self._machine.plug(self._name, write_cache=is_cached)
            self._limit(self._name, self._changes[self._name][-1].limits)


def run(path: Path, seed: int, machine: Machine, recording: Recording, directory: Path) -> None:
    """Run a scenario, and write it, the recording, the trace and the results to a directory."""
    name, scenario = path.stem, read_scenario(path, seed)
    serials = scenario.serials(name)
    config = configuration(zip(serials, scenario.disks, strict=True), scenario.machine)
    machine.guest.write(_CONFIG, config)
    machine.guest.run(
        f"disksla check-config --config.file {_CONFIG}; systemctl reload disksla-exporter"
    )
    offset = machine.trace_bytes()
    plugged = _Plugged(machine, name, scenario)
    with ExitStack() as undo:
        plugged.plug(undo)
        plugged.limit()
        time.sleep(_LEAD_S)
        before = plugged.scrape()
        steal_s = -psutil.cpu_times().steal
        plugged.load()
        steal_s += psutil.cpu_times().steal
        time.sleep(_DECIDED_S)
        after = plugged.scrape()
        lines = recording.until(after[-1].ended_s)
        trace = own_lines(machine.trace_since(offset))
        plugged.unplug()
    first, *others = plugged.results(before, after)
    results = Results(
        changes=first.changes,
        before=first.before,
        after=first.after,
        machine=None if scenario.machine is None else others.pop(),
        beside=others,
        seed=seed,
        qemu=machine.version,
        pauses=plugged.pauses,
        steal_s=steal_s,
    )
    directory.mkdir(parents=True, exist_ok=True)
    encoded = msgspec.json.format(msgspec.json.encode(results))
    (directory / RESULTS).write_bytes(encoded + b"\n")
    (directory / SCENARIO).write_text(drawn_text(path, seed), encoding="utf-8")
    (directory / CONFIG).write_text(config)
    _compress(directory / TICKS, cut(lines, serials))
    _compress(directory / TRACE, "".join(f"{line}\n" for line in trace).encode())


def as_it_ran(name: str, directory: Path) -> Scenario:
    """Return a scenario with the random numbers of the run in a directory."""
    expected = read_scenario(all_scenarios()[name])
    return read_scenario(directory / SCENARIO).with_expectations_of(expected)


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


def cut(lines: list[bytes], serials: Sequence[str]) -> bytes:
    """Return the part of a recording from when the first of some disks is plugged in.

    Other disks are left out.
    """
    ticks = [decode_tick(line, number) for number, line in enumerate(lines[1:], start=2)]
    devices = {device: device for serial in serials for device in devices_of(ticks, serial)}
    first = next(number for number, tick in enumerate(ticks) if devices_of([tick], serials[0]))
    header = encode(decode_header(lines[0]))
    return only_devices(header + b"".join(map(encode, ticks[first:])), devices)


def devices_of(ticks: Iterable[Tick], serial: str) -> list[str]:
    """Return the kernel names that a disk has in a recording."""
    names = {disk.name for tick in ticks for disk in tick.disks or () if disk.serial == serial}
    return sorted(names)

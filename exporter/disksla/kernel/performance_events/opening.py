"""Opens performance events: in the helper for the daemon, and in commands that root runs.

It needs CAP_PERFMON, or CAP_SYS_ADMIN where kernel.perf_event_paranoid is above 2, and the files
`format` of tracefs, which only root can read; systemd passes them to the helper as credentials.
"""

import contextlib
import errno
import os
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import NamedTuple

from disksla.base.errors import DiskslaError
from disksla.base.operating_system import perf_events
from disksla.base.operating_system.machine import Roots
from disksla.kernel.performance_events import protocol

COMPLETED, REQUESTED, QUEUED = "block_rq_complete", "block_getrq", "block_bio_queue"
"""Tracepoints, and names of credentials. REQUESTED and QUEUED occur in the task that asks."""
_UPSTREAM = 2
"""Highest perf_event_paranoid of kernels without a patch; Debian's set 3, and Ubuntu's 4."""
_TRACEFS = (Path("kernel") / "tracing", Path("kernel") / "debug" / "tracing")


class EventFiles(NamedTuple):
    """Where the kernel says what is needed to open events."""

    roots: Roots
    credentials: Path | None = None
    """Directory with the files `format`, by the name of the tracepoint; None for tracefs."""

    def tracepoint(self, name: str) -> protocol.Tracepoint:
        """Return what the kernel says of a tracepoint. Raise DiskslaError."""
        try:
            text = self._file(name).read_text(encoding="ascii")
        except OSError as error:
            reason = error.strerror
        except UnicodeDecodeError as error:
            reason = str(error)
        else:
            if text.startswith("name: "):
                return protocol.parse_format(text)
            reason = "found none"  # what the unit passes then
        why = self._lockdown() or "it needs root, and tracefs at /sys/kernel/tracing"
        raise DiskslaError(f"cannot read the format of the tracepoint {name}: {reason}; {why}")

    def _file(self, name: str) -> Path:
        if self.credentials is not None:
            return self.credentials / name
        paths = [self.roots.sysfs / each / "events/block" / name / "format" for each in _TRACEFS]
        return next((path for path in paths[:-1] if path.exists()), paths[-1])

    def _lockdown(self) -> str | None:
        """Return that the kernel hides its tracepoints, if it says so."""
        with contextlib.suppress(OSError, UnicodeDecodeError):
            text = (self.roots.sysfs / "kernel/security/lockdown").read_text(encoding="ascii")
            if "[confidentiality]" in text:
                return "the kernel is locked down (confidentiality), and has no tracepoints then"
        return None


class Plan(NamedTuple):
    """What a request needs."""

    online: str  # list of the online CPUs
    tracepoints: tuple[protocol.Tracepoint, ...]
    filters: tuple[str, ...]
    paranoia: int | None

    def open(self) -> Iterator[tuple[int, list[int]]]:
        """Yield each CPU with the descriptors of its events, which the caller closes.

        Raise DiskslaError.
        """
        for cpu in perf_events.parse_cpus(self.online):
            try:
                yield cpu, self._open_on(cpu)
            except OSError as error:
                why = _why(error, self.paranoia)
                raise DiskslaError(f"cannot open performance events: {why}") from None

    def _open_on(self, cpu: int) -> list[int]:
        completed, *_ = self.tracepoints
        if len(self.tracepoints) == 1:
            return perf_events.open_counters(cpu, completed.number, self.filters)
        opened: list[int] = []
        try:
            for tracepoint, text in zip(self.tracepoints, self.filters, strict=True):
                opened.append(perf_events.open_sampler(cpu, tracepoint.number, text))
        except OSError:
            perf_events.close_all(opened)
            raise
        return opened


def plan(request: protocol.EventsRequest, files: EventFiles) -> Plan:
    """Return what a request needs. Raise DiskslaError."""
    roots, numbers = files.roots, request.numbers
    for device in request.devices:
        if not (roots.sysfs / "dev" / "block" / device).exists():
            raise DiskslaError(f"found the disk {device}; expected one that exists")
    try:
        online = (roots.sysfs / "devices/system/cpu/online").read_text(encoding="ascii").strip()
    except OSError as error:
        raise DiskslaError(f"cannot read the list of CPUs: {error.strerror}") from None
    if request.events == "data_writes":
        names: tuple[str, ...] = (COMPLETED,)
        filters = tuple(protocol.filter_of_data_writes(*number) for number in numbers)
    else:
        names = (REQUESTED, QUEUED)
        text = protocol.filter_of_requests(numbers)
        filters = (text, f"{text} && nr_sector>0")
    tracepoints = tuple(files.tracepoint(name) for name in names)
    return Plan(online, tracepoints, filters, perf_events.read_paranoia(roots.procfs))


def record_of(tracepoints: tuple[protocol.Tracepoint, ...]) -> protocol.Tracepoint | None:
    """Return the one of two tracepoints that has the form of their samples; None if events count.

    Raise DiskslaError if they differ.
    """
    if len(tracepoints) == 1:
        return None
    requested, queued = tracepoints
    if requested.comm is None or requested.comm != queued.comm:
        raise DiskslaError(
            f"found records of {REQUESTED} and {QUEUED} that differ; this kernel is not known"
        )
    return requested


def credentials_directory(environment: Mapping[str, str]) -> Path | None:
    """Return where systemd put the credentials of this process (systemd.exec(5))."""
    directory = environment.get("CREDENTIALS_DIRECTORY")
    return None if directory is None else Path(directory)


def describe_refusal(paranoia: int | None) -> str:
    """Return why the kernel refuses events of all processes; None if the value is not known.

    Above 2, the kernels of Debian and Ubuntu do not accept CAP_PERFMON.
    """
    if paranoia is None:
        return "kernel.perf_event_paranoid cannot be read"
    needed = "CAP_PERFMON" if paranoia <= _UPSTREAM else "CAP_SYS_ADMIN"
    return f"kernel.perf_event_paranoid is {paranoia}, at which this kernel requires {needed}"


def _why(error: OSError, paranoia: int | None) -> str:
    if error.errno == errno.EACCES:
        return f"{error.strerror}; {describe_refusal(paranoia)}"
    if error.errno in {errno.EPERM, errno.ENOSYS}:
        return (
            f"{error.strerror}; a filter of system calls (seccomp) or a security module forbids"
            " it, or this process has no CAP_PERFMON"
        )
    if error.errno in {errno.EMFILE, errno.ENFILE}:
        return f"{error.strerror}; raise LimitNOFILE"
    if error.errno == errno.EINVAL:
        return f"{error.strerror}; samples need Linux 5.7 with CONFIG_CGROUP_PERF"
    return error.strerror or os.strerror(error.errno or 0)

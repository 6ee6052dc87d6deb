"""Exact counts of data writes, by performance events, where the operator allows them.

/proc/diskstats counts an empty flush as a write. The tracepoint block:block_rq_complete has the
sectors of each request that completes, so an event with a filter counts the others. It needs
CAP_PERFMON, and the number of the tracepoint, which only root can read: the unit passes it as a
credential (systemd/disksla-exporter.service.d/30-count-data-writes.conf).
"""

import logging
import os
import resource
from collections.abc import Mapping
from pathlib import Path

from disksla.disks.sysfs_attributes import parse_count
from disksla.errors import DiskslaError
from disksla.system import describe_refusal
from disksla.system.log import fields
from disksla.system.perf_events import EventGroup, parse_cpus, read_paranoia
from disksla.system.roots import Roots

CREDENTIAL = "block_rq_complete"
"""Name of the credential that has the number of the tracepoint (systemd.exec(5))."""
_TRACEPOINT = Path("events") / "block" / "block_rq_complete" / "id"
_TRACEFS = (Path("kernel") / "tracing", Path("kernel") / "debug" / "tracing")
_NO_SECTOR = 2**64 - 1
"""Sector of commands that are neither reads nor writes, such as those of smartctl."""
_MAX_BYTES = 4096  # an attribute of sysfs is at most one page
_DESCRIPTOR_SHARE = 0.5
"""Largest share of the descriptors of this process that events may use."""

Numbers = Mapping[str, tuple[int, int]]
"""Major and minor number by device."""
Counts = dict[str, tuple[int, int]]
"""By device: the number of the opening of its events, and the data writes since."""

log = logging.getLogger("disksla.disks")


class DataWriteCounters:
    """Events that count the data writes of disks on all CPUs; opened by the first `read`."""

    def __init__(self, roots: Roots, environment: Mapping[str, str]) -> None:
        """Open nothing."""
        self._files = [roots.sysfs / directory / _TRACEPOINT for directory in _TRACEFS]
        credential = Path(environment.get("CREDENTIALS_DIRECTORY", "/nonexistent")) / CREDENTIAL
        self._is_configured = credential.exists()
        if self._is_configured:
            self._files = [credential]
        self._procfs = roots.procfs
        self._online = roots.sysfs / "devices" / "system" / "cpu" / "online"
        self._online_descriptor: int | None = None
        self.why_not: str | None = None
        """Why data writes are not counted, and will not be; None while they are, or may be."""
        self._problem: str | None = None
        self._groups: list[EventGroup] = []
        self._opened_for: tuple[bytes, Numbers] | None = None
        """The online CPUs, and the disks."""
        self._openings = 0
        self._last_disks: Numbers | None = None

    def read(self, disks: Numbers) -> tuple[Counts, dict[str, str]]:
        """Return the counts of disks, and an error by source.

        Counts of two openings have no difference: the events are opened again when the disks or
        the CPUs change. If they cannot be opened and the operator did not configure them, that is
        no error: it is logged once, and nothing is counted.
        """
        self._last_disks = disks
        if self.why_not is not None or not (disks or self._groups):
            return {}, {}
        try:
            counts = self._counts(disks)
        except PermissionError as error:
            self.close()
            self._fail(f"{error}: {describe_refusal(read_paranoia(self._procfs))}")
            counts = {}
        except (OSError, DiskslaError) as error:
            self.close()
            self._fail(str(error))
            counts = {}
        else:
            self._problem = None
        return counts, {} if self._problem is None else {"data_writes": self._problem}

    def may_wait(self, disks: Numbers) -> bool:
        """Return whether nothing is missed if idle disks are not read now.

        Not if their events have to be opened, which `read` does.
        """
        return self._last_disks is disks and self._problem is None

    def close(self) -> None:
        """Close all; `read` opens it again."""
        self._close_events()
        if self._online_descriptor is not None:
            os.close(self._online_descriptor)
            self._online_descriptor = None

    def _close_events(self) -> None:
        for group in self._groups:
            group.close()
        self._groups = []
        self._opened_for = None

    def _read_online(self) -> bytes:
        """Return the list of online CPUs; opening the file each time would cost ten times more."""
        if self._online_descriptor is None:
            self._online_descriptor = os.open(self._online, os.O_RDONLY | os.O_CLOEXEC)
        return os.pread(self._online_descriptor, _MAX_BYTES, 0)

    def _fail(self, problem: str) -> None:
        if self._is_configured or self._openings:
            self._problem = problem
            return
        self.why_not = problem
        log.info("data writes are not counted exactly", extra=fields(err=problem))

    def _counts(self, disks: Numbers) -> Counts:
        online = self._read_online()
        if self._opened_for != (online, disks):
            self._open(online, disks)
        by_cpu = [group.read() for group in self._groups]
        if None in by_cpu:  # a CPU was offline since
            self._open(online, disks)
            by_cpu = [group.read() for group in self._groups]
        counted = [counts for counts in by_cpu if counts is not None]
        if len(counted) < len(by_cpu):
            raise OSError("the events of a CPU do not count")
        return {
            device: (self._openings, sum(counts))
            for device, counts in zip(disks, zip(*counted, strict=True), strict=False)
        }

    def _open(self, online: bytes, disks: Numbers) -> None:
        self._close_events()
        cpus = parse_cpus(online.decode(errors="replace")) if disks else ()
        needed = len(cpus) * len(disks)
        most = _DESCRIPTOR_SHARE * resource.getrlimit(resource.RLIMIT_NOFILE)[0]
        if needed > most:
            raise DiskslaError(
                f"cannot count data writes of {len(disks)} disks on {len(cpus)} CPUs:"
                f" found {most:.0f} descriptors for it; expected {needed}; raise LimitNOFILE"
            )
        tracepoint = _read_number(self._files) if disks else 0
        filters = [_filter_of(*number) for number in disks.values()]
        for cpu in cpus:
            self._groups.append(EventGroup(cpu, tracepoint, filters))
        self._openings += 1
        self._opened_for = (online, dict(disks))


def _filter_of(major: int, minor: int) -> str:
    """Return the filter that lets data writes of one disk pass.

    They are what /proc/diskstats counts as writes (zeroing included, discards not), but with
    sectors. `rwbs` begins with the kind of a request; a write that flushes before it, with F.
    """
    return (
        f'dev=={major << 20 | minor} && nr_sector>0 && !(rwbs~"R*") && !(rwbs~"D*")'
        f" && sector!={_NO_SECTOR}"
    )


def _read_number(files: list[Path]) -> int:
    """Return the number of the tracepoint in the first file that exists. Raise DiskslaError."""
    try:
        file = next((file for file in files[:-1] if file.exists()), files[-1])
        return parse_count(file.read_text(encoding="ascii"))
    except (OSError, ValueError) as error:
        raise DiskslaError(
            f"cannot read the number of the tracepoint {CREDENTIAL}: {error};"
            " it needs root and tracefs, or the drop-in 30-count-data-writes.conf of the unit"
        ) from None


def data_write_counters(roots: Roots) -> DataWriteCounters:
    """Return counters for this process."""
    return DataWriteCounters(roots, os.environ)

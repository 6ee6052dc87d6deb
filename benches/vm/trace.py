"""QEMU's trace of requests. Pure functions.

Its events are, for each request of the guest and then for what QEMU makes of it:

- `virtio_blk_handle_read`, `_write`: the request arrived. A flush has no such event.
- `blk_co_preadv`, `_pwritev`: it arrived at the limiter; QEMU may have merged several into one.
- `bdrv_co_preadv_part`, `_pwritev_part`: the limiter has admitted it.
- `virtio_blk_req_complete`: it is complete.
- `blk_root_attach`: a disk was plugged in. The first requests after that at a device which had
  none before are those of the system of the guest, which reads each disk that it finds.

Each is a line `THREAD@SECONDS:EVENT NAME VALUE NAME VALUE ...` in wall-clock time of the host.
"""

import re
from collections import defaultdict, deque
from collections.abc import Iterable, Sequence
from typing import NamedTuple

SECTOR_BYTES = 512
IMMEDIATE_S = 0.0005
"""A request that is admitted within this time has not waited: QEMU has only written the trace."""
_LINE = re.compile(r"\d+@(?P<at_s>\d+\.\d+):(?P<event>\w+) (?P<values>.*)")
_WRITES = {"virtio_blk_handle_write", "blk_co_pwritev", "bdrv_co_pwritev_part"}


class Request(NamedTuple):
    """A read or write of the guest; not a flush."""

    arrived_s: float
    completed_s: float | None
    is_write: bool
    size_bytes: int


class Admission(NamedTuple):
    """A read or write at the limiter."""

    arrived_s: float
    admitted_s: float | None
    is_write: bool
    size_bytes: int

    @property
    def waited(self) -> bool:
        """Whether it waited for the limiter."""
        return self.admitted_s is None or self.admitted_s - self.arrived_s > IMMEDIATE_S


class Trace(NamedTuple):
    """What happened at the disks that were plugged in during the trace."""

    plugged_s: list[float]
    requests: list[Request]
    admissions: list[Admission]


class _Event(NamedTuple):
    at_s: float
    name: str
    values: dict[str, str]

    @property
    def is_write(self) -> bool:
        return self.name in _WRITES

    @property
    def place(self) -> tuple[str, bool, str, str]:
        """What the events of one request at the limiter have in common."""
        return self.values["bs"], self.is_write, self.values["offset"], self.values["bytes"]


def own_lines(lines: Iterable[str]) -> list[str]:
    """Return the lines of a trace without those of disks that were plugged in before."""
    backends: set[str] = set()
    kept = []
    for line in lines:
        event = _parsed(line)
        if event is None:
            continue
        if event.name == "blk_root_attach":
            backends |= {event.values["blk"], event.values["bs"]}
        known = event.values.get("blk", event.values.get("bs"))
        if known is None or known in backends:
            kept.append(line)
    return kept


def by_disk(lines: Sequence[str], disks: int) -> list[list[str]]:
    """Return the lines of each of several disks, of one trace that `own_lines` returned.

    Each disk was plugged in once and then read, before the next was; a single one may have been
    unplugged in between.
    """
    if disks == 1:
        return [list(lines)]
    plugged = -1
    owners: dict[str, int] = {}
    own: list[list[str]] = [[] for _ in range(disks)]
    for line in lines:
        event = _parsed(line)
        if event is None:
            continue
        if event.name == "blk_root_attach":
            plugged += 1
            owners[event.values["bs"]] = plugged
        place = event.values.get("vdev", event.values.get("bs", ""))
        own[owners.setdefault(place, plugged)].append(line)
    return own


def read_trace(lines: Iterable[str]) -> Trace:
    """Return the requests in the lines that `own_lines` returns."""
    plugged_s: list[float] = []
    requests: list[Request] = []
    admissions: list[Admission] = []
    arrived: dict[tuple[str, str], int] = {}
    waiting: defaultdict[tuple[str, bool, str, str], deque[int]] = defaultdict(deque)
    for event in filter(None, map(_parsed, lines)):
        values = event.values
        match event.name:
            case "blk_root_attach":
                plugged_s.append(event.at_s)
            case "virtio_blk_handle_read" | "virtio_blk_handle_write":
                arrived[values["vdev"], values["req"]] = len(requests)
                size_bytes = int(values["nsectors"]) * SECTOR_BYTES
                requests.append(Request(event.at_s, None, event.is_write, size_bytes))
            case "virtio_blk_req_complete":
                number = arrived.pop((values["vdev"], values["req"]), None)
                if number is not None:
                    requests[number] = requests[number]._replace(completed_s=event.at_s)
            case "blk_co_preadv" | "blk_co_pwritev":
                waiting[event.place].append(len(admissions))
                size_bytes = int(values["bytes"])
                admissions.append(Admission(event.at_s, None, event.is_write, size_bytes))
            case "bdrv_co_preadv_part" | "bdrv_co_pwritev_part" if waiting[event.place]:
                number = waiting[event.place].popleft()
                admissions[number] = admissions[number]._replace(admitted_s=event.at_s)
    return Trace(plugged_s, requests, admissions)


def _parsed(line: str) -> _Event | None:
    matched = _LINE.fullmatch(line)
    if matched is None:
        return None
    words = matched["values"].split()
    return _Event(
        float(matched["at_s"]), matched["event"], dict(zip(words[::2], words[1::2], strict=False))
    )

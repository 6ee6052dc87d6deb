"""Which performance events there are, and messages between the daemon and the helper for them.

Each is a packet (`packets`). A client sends an `EventsRequest`.
The helper answers with a `Batch` and its descriptors (SCM_RIGHTS) for each CPU, and then an `End`;
or with a `Refusal`.
"""

import re
from collections.abc import Iterable
from typing import Annotated, Literal

import msgspec

from disksla.base.errors import DiskslaError

COMM_BYTES = 16  # length of the name of a program in a record, with the zero at its end
_FIELD = re.compile(r"\b(\w+)(?:\[\d*\])?;\s*offset:(\d{1,9});\s*size:(\d{1,9});")
_NUMBER = re.compile(r"^ID: (\d{1,9})$", re.MULTILINE)
_NO_SECTOR = 2**64 - 1
"""Sector of commands that are neither reads nor writes, such as those of smartctl."""
_DEV, _SECTORS = (8, 4), (24, 4)
"""Offset and size of two fields; the same in all kernels since 2.6.31."""


_Number = Annotated[int, msgspec.Meta(ge=0, lt=10**9)]


class Tracepoint(msgspec.Struct, frozen=True):
    """What the file `format` of a tracepoint says."""

    number: _Number
    comm: _Number | None
    """Offset in bytes of the name of the program in a record; None if it has none."""


def parse_format(text: str) -> Tracepoint:
    """Return what a file `format` says. Raise DiskslaError for records of another form."""
    found = {name: (int(at), int(size)) for name, at, size in _FIELD.findall(text)}
    number = _NUMBER.search(text)
    comm, comm_bytes = found.get("comm", (None, COMM_BYTES))
    is_known = (found.get("dev"), found.get("nr_sector")) == (_DEV, _SECTORS)
    if number is None or not is_known or comm_bytes != COMM_BYTES or "rwbs" not in found:
        raise DiskslaError(
            f"found a record with the fields {', '.join(found) or 'none'};"
            " expected those of a tracepoint of block requests; this kernel is not known"
        )
    return Tracepoint(int(number[1]), comm)


def filter_of_data_writes(major: int, minor: int) -> str:
    """Return the filter that lets data writes of one disk pass.

    They are what /proc/diskstats counts as writes (zeroing included, discards not), but with
    sectors. `rwbs` begins with the kind of a request; a write that flushes before it, with F.
    """
    return (
        f'dev=={_device(major, minor)} && nr_sector>0 && !(rwbs~"R*") && !(rwbs~"D*")'
        f" && sector!={_NO_SECTOR}"
    )


def filter_of_requests(numbers: Iterable[tuple[int, int]]) -> str:
    """Return the filter that lets reads, writes and flushes of some disks pass."""
    disks = "||".join(f"dev=={_device(*number)}" for number in numbers)
    return f'({disks}) && !(rwbs~"D*")'


def _device(major: int, minor: int) -> int:
    """Return a device number as the kernel has it in records."""
    return major << 20 | minor


MOST_DISKS = 230  # the kernel reads at most a page of a filter, which has 17 bytes for each
MOST_DESCRIPTORS = 200  # of a batch; the kernel passes at most 253 (SCM_MAX_FD)
_DEVICE = re.compile(r"([0-9]{1,4}):([0-9]{1,7})")

EventKind = Literal["data_writes", "requests"]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**16)]


class EventsRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Asks for the events of some disks, on all CPUs."""

    events: EventKind
    """`data_writes`: one event for each disk, which counts from now on. `requests`: two events of
    all disks, disabled, of which the first samples requests and the second what they carry."""
    devices: tuple[str, ...]  # their numbers, such as 259:1

    @property
    def events_of_cpu(self) -> int:
        """How many events each CPU has."""
        return len(self.devices) if self.events == "data_writes" else 2

    @property
    def numbers(self) -> tuple[tuple[int, int], ...]:
        """Major and minor numbers. Raise DiskslaError."""
        found = [_DEVICE.fullmatch(device) for device in self.devices]
        numbers = tuple((int(each[1]), int(each[2])) for each in found if each is not None)
        if not 0 < len(found) <= MOST_DISKS or len({*numbers}) < len(found):
            raise DiskslaError(
                f"found {len(found)} disks; expected 1 to {MOST_DISKS} numbers such as 259:1,"
                " each once"
            )
        return numbers


class Batch(msgspec.Struct, frozen=True, tag="batch"):
    """Comes with descriptors of events of one CPU, in the order of the events."""

    cpu: _Count
    descriptors: Annotated[int, msgspec.Meta(ge=1, le=MOST_DESCRIPTORS)]


class End(msgspec.Struct, frozen=True, tag="end"):
    """All events are open."""

    online: str  # list of the CPUs that have them, such as 0-3
    record: Tracepoint | None = None
    """That of requests, which has the form of the samples; None for events that count."""


class Refusal(msgspec.Struct, frozen=True, tag="failure"):
    """No event is open."""

    message: str


REQUESTS = msgspec.json.Decoder(EventsRequest)
ANSWERS: msgspec.json.Decoder[Batch | End | Refusal] = msgspec.json.Decoder(Batch | End | Refusal)

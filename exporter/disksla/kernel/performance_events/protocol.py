"""Messages between the daemon and the helper that opens performance events for it.

Each is a packet (`packets`). A client sends an `EventsRequest`.
The helper answers with a `Batch` and its descriptors (SCM_RIGHTS) for each CPU, and then an `End`;
or with a `Refusal`.
"""

import re
from typing import Annotated, Literal

import msgspec

from disksla.base.errors import DiskslaError
from disksla.kernel.performance_events.tracepoints import Tracepoint

MOST_DISKS = 230
"""The kernel reads at most a page of a filter, which has 17 bytes for each."""
MOST_DESCRIPTORS = 200
"""Of a batch; the kernel passes at most 253 (SCM_MAX_FD)."""
_DEVICE = re.compile(r"([0-9]{1,4}):([0-9]{1,7})")

EventKind = Literal["data_writes", "requests"]
_Count = Annotated[int, msgspec.Meta(ge=0, le=2**16)]


class EventsRequest(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Asks for the events of some disks, on all CPUs."""

    events: EventKind
    """`data_writes`: one event for each disk, which counts from now on. `requests`: two events of
    all disks, disabled, of which the first samples requests and the second what they carry."""
    devices: tuple[str, ...]
    """Their numbers, such as 259:1."""

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

    online: str
    """List of the CPUs that have them, such as 0-3."""
    record: Tracepoint | None = None
    """That of requests, which has the form of the samples; None for events that count."""


class Refusal(msgspec.Struct, frozen=True, tag="failure"):
    """No event is open."""

    message: str


REQUESTS = msgspec.json.Decoder(EventsRequest)
ANSWERS: msgspec.json.Decoder[Batch | End | Refusal] = msgspec.json.Decoder(Batch | End | Refusal)

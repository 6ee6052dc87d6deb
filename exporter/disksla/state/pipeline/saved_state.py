"""File format of the saved state: credits, ceilings, bytes used by probes, events of each disk.

The file is read strictly. It is rejected as a whole if it is damaged, of another format or
machine, from the future, or inconsistent: unknown credits are better than wrong ones.
"""

import zlib
from collections.abc import Sequence
from typing import Annotated, Literal

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError
from disksla.promise.catalogue import Bucket, Resource
from disksla.promise.configuration import ProbeKind
from disksla.verdict.credits import CreditAccount, Credits, advance_unobserved, from_bounds
from disksla.verdict.interval import Clocks
from disksla.verdict.throttling import LimitKind

FORMAT = 1
CLOCK_ERROR_S = 60.0  # assumed error of the wall clock over a reboot

_Level = Annotated[float, msgspec.Meta(ge=0)]


class SavedCredits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bounds of one token bucket, in its unit (I/Os, bytes, or seconds of base service)."""

    capacity_credits: Annotated[float, msgspec.Meta(gt=0)]
    lower_credits: _Level
    upper_credits: _Level
    estimate_credits: _Level
    request_credits: _Level

    def __post_init__(self) -> None:
        """Raise ValueError unless 0 <= lower <= estimate <= upper <= capacity."""
        if not (
            self.lower_credits
            <= self.estimate_credits
            <= self.upper_credits
            <= self.capacity_credits
            < float("inf")
        ):
            raise ValueError("expected lower <= estimate <= upper <= capacity")


class SavedSpending(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Bytes that probes of one kind used of one day's budget."""

    day: int  # days of UTC since 1970
    bytes: Annotated[int, msgspec.Meta(ge=0)]


class SavedDisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Saved state of one disk."""

    terms: str  # terms that were assigned to it; credits are restored only under the same terms
    credits: dict[Resource, SavedCredits] = {}
    ceiling_iops: _Level | None = None  # rate at which it was last throttled
    ceiling_bytes_per_second: _Level | None = None
    probes: dict[ProbeKind, SavedSpending] = {}
    """So that a restart of the daemon does not reset the daily budget."""


EventCause = Literal["throttled", "no_credits", "slow", "below", "stalled", "limits_changed"]
"""`no_credits`: throttled at its own limit, without burst credits."""
Stage = Literal["seen", "began", "ended"]  # `seen`: for too short a time to be said


class DiskEvent(msgspec.Struct, frozen=True, forbid_unknown_fields=True, gc=False):
    """A problem, or a change of the limits; times are those of the wall clock, since 1970."""

    cause: EventCause
    limit: LimitKind | None  # where it is throttled
    began_s: float
    seen_s: float  # when it was seen last; its end, if it has ended
    seconds: float = 0.0  # how long it applied
    stage: Stage = "seen"
    iops: float = 0.0  # what the disk served while it applied, at last
    bytes_per_second: float = 0.0

    @property
    def is_over(self) -> bool:
        """Whether it has ended."""
        return self.stage == "ended"


class SavedState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Content of the file."""

    machine: str  # hash of the machine id (machine-id(5)), not the id itself
    boot: str  # boot id of the kernel (random(4))
    clocks: Clocks
    disks: dict[str, SavedDisk]  # by `disk_key`
    groups: dict[str, dict[Resource, SavedCredits]] = {}
    """Credits of the machine, by the group of disks that share them."""
    events: dict[str, tuple[DiskEvent, ...]] = {}  # of the last hour, by `disk_key`


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    disksla_state: int  # version of the format
    crc32: int
    content: msgspec.Raw


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_state = msgspec.json.Decoder(SavedState).decode


def save_credits(
    account: CreditAccount | None, buckets: Sequence[Bucket]
) -> dict[Resource, SavedCredits]:
    """Return the records of credits; empty without a burst."""
    return {
        bucket.resource: SavedCredits(
            bucket.capacity,
            credit.lower_credits,
            credit.upper_credits,
            credit.estimate_credits,
            credit.request_credits,
        )
        for bucket, credit in zip(buckets, account.bucket_credits if account else (), strict=False)
    }


def encode(state: SavedState) -> bytes:
    """Return the file: one line of JSON with a checksum."""
    content = msgspec.json.encode(state)
    envelope = _Envelope(FORMAT, zlib.crc32(content), msgspec.Raw(content))
    return msgspec.json.encode(envelope) + b"\n"


def decode(text: bytes, machine: str, now: Clocks) -> SavedState:
    """Parse a file that this machine saved before `now`. Raise DiskslaError for anything else."""
    try:
        envelope = _decode_envelope(text)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"not a saved state: {error}") from None
    if envelope.disksla_state != FORMAT:
        raise DiskslaError(f"found format {envelope.disksla_state}; expected {FORMAT}")
    if zlib.crc32(envelope.content) != envelope.crc32:
        raise DiskslaError("damaged: the checksum does not match the content")
    try:
        state = _decode_state(envelope.content)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"invalid content: {error}") from None
    if state.machine != machine:
        raise DiskslaError("saved by another machine")
    if not state.clocks.realtime_s <= now.realtime_s + CLOCK_ERROR_S:
        ahead_s = state.clocks.realtime_s - now.realtime_s
        raise DiskslaError(f"saved {ahead_s:.0f} s in the future; check the system clock")
    return state


def seconds_since_saved(state: SavedState, boot: str, now: Clocks) -> tuple[float, float]:
    """Return the shortest and the longest time that can have passed since state was saved.

    Within one boot the kernel counted it exactly. Across boots there is only wall time, which may
    be wrong by CLOCK_ERROR_S.
    """
    if state.boot == boot and now.boottime_s >= state.clocks.boottime_s:
        passed_s = now.boottime_s - state.clocks.boottime_s
        return passed_s, passed_s
    passed_s = now.realtime_s - state.clocks.realtime_s
    return max(0.0, passed_s - CLOCK_ERROR_S), max(0.0, passed_s) + CLOCK_ERROR_S


def resume(
    saved: SavedCredits | None, bucket: Bucket, elapsed_s: tuple[float, float]
) -> Credits | None:
    """Return credits after a time in which any amount of I/O may have been done.

    `elapsed_s` is the shortest and the longest that this time can have been. None if nothing was
    saved, or the saved bucket had another capacity.
    """
    if saved is None or saved.capacity_credits != bucket.capacity:
        return None
    _, *levels = msgspec.structs.astuple(saved)
    return advance_unobserved(from_bounds(bucket, *levels), bucket, *elapsed_s, use=None)

"""What outlives the daemon: the credits of disks, the rates they were held at, what probes spent.

State is read strictly. What is damaged, of another format or machine, from the future, or says
what cannot be, is refused as a whole: unknown credits are better than wrong ones.
"""

import zlib
from collections.abc import Mapping
from typing import Annotated

import msgspec

from disksla.config import ProbeKind
from disksla.credits import Credits, advance_unobserved, from_bounds
from disksla.errors import DECODE_ERRORS, DiskslaError
from disksla.limits import Bucket, Resource
from disksla.verdict import Clocks

FORMAT = 1
CLOCK_DOUBT_S = 60.0
"""By which wall time may be wrong, across a restart of the machine."""

_Level = Annotated[float, msgspec.Meta(ge=0)]


class SavedCredits(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was known of one bucket, in the bucket's unit."""

    capacity_credits: Annotated[float, msgspec.Meta(gt=0)]
    lower_credits: _Level
    upper_credits: _Level
    estimate_credits: _Level
    request_credits: _Level

    def __post_init__(self) -> None:
        """Refuse levels that cannot be."""
        if not (
            self.lower_credits
            <= self.estimate_credits
            <= self.upper_credits
            <= self.capacity_credits
            < float("inf")
        ):
            raise ValueError("expected lower <= estimate <= upper <= capacity")


class SavedSpending(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What probes took off one day's allowance."""

    day: int
    """In days of UTC since 1970."""
    bytes: Annotated[int, msgspec.Meta(ge=0)]


class SavedDisk(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """What was known of one disk."""

    terms: str
    """What it was taken to be sold as; credits are of no meaning under other terms."""
    credits: dict[Resource, SavedCredits] = {}
    ceiling_iops: _Level | None = None
    """The rate at which it was last seen held."""
    ceiling_bytes_per_second: _Level | None = None
    probes: dict[ProbeKind, SavedSpending] = {}
    """So that a daemon that begins anew goes on with the day's allowance."""


class SavedState(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """Everything that is saved."""

    machine: str
    """A hash of the machine's id (machine-id(5)), not the id itself."""
    boot: str
    """The kernel's random id of the boot (random(4))."""
    clocks: Clocks
    disks: dict[str, SavedDisk]
    """By `disk_key`."""


class _Envelope(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    disksla_state: int
    """Number of the format."""
    crc32: int
    content: msgspec.Raw


_decode_envelope = msgspec.json.Decoder(_Envelope).decode
_decode_state = msgspec.json.Decoder(SavedState).decode


def save_credits(credits_by_bucket: Mapping[Bucket, Credits]) -> dict[Resource, SavedCredits]:
    """Give the record of a disk's credits."""
    return {
        bucket.resource: SavedCredits(
            bucket.capacity,
            now.lower_credits,
            now.upper_credits,
            now.estimate_credits,
            now.request_credits,
        )
        for bucket, now in credits_by_bucket.items()
    }


def encode(state: SavedState) -> bytes:
    """Write state as one line of JSON."""
    content = msgspec.json.encode(state)
    envelope = _Envelope(FORMAT, zlib.crc32(content), msgspec.Raw(content))
    return msgspec.json.encode(envelope) + b"\n"


def decode(text: bytes, machine: str, now: Clocks) -> SavedState:
    """Read state that this machine saved before `now`; raises Refusal for anything else."""
    try:
        envelope = _decode_envelope(text)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"not a saved state: {error}") from None
    if envelope.disksla_state != FORMAT:
        raise DiskslaError(f"format {envelope.disksla_state}, where {FORMAT} is known")
    if zlib.crc32(envelope.content) != envelope.crc32:
        raise DiskslaError("damaged: the checksum is not that of the content")
    try:
        state = _decode_state(envelope.content)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"says what cannot be: {error}") from None
    if state.machine != machine:
        raise DiskslaError("saved by another machine")
    if not state.clocks.realtime_s <= now.realtime_s + CLOCK_DOUBT_S:
        ahead_s = state.clocks.realtime_s - now.realtime_s
        raise DiskslaError(f"saved {ahead_s:.0f} s in the future; is the clock right?")
    return state


def seconds_away(state: SavedState, boot: str, now: Clocks) -> tuple[float, float]:
    """Give the least and the most seconds that have passed since state was saved.

    Within one boot the kernel has counted them; across boots wall time is all there is.
    """
    if state.boot == boot and now.boottime_s >= state.clocks.boottime_s:
        passed_s = now.boottime_s - state.clocks.boottime_s
        return passed_s, passed_s
    passed_s = now.realtime_s - state.clocks.realtime_s
    return max(0.0, passed_s - CLOCK_DOUBT_S), max(0.0, passed_s) + CLOCK_DOUBT_S


def resume(
    saved: SavedCredits, bucket: Bucket, away_s: tuple[float, float], inflight: int = 0
) -> Credits | None:
    """Give what is known of credits after a time away, in which anybody may have used the disk.

    None if they are of a bucket of another size: begin anew.
    """
    if saved.capacity_credits != bucket.capacity:
        return None
    then = from_bounds(
        bucket,
        saved.lower_credits,
        saved.upper_credits,
        saved.estimate_credits,
        saved.request_credits,
    )
    return advance_unobserved(then, bucket, *away_s, use=None, inflight=inflight)

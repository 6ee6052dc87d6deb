"""Ticks as JSON lines: what `record` writes, `replay` reads, and a bug report encloses."""

import msgspec

from disksla.errors import DECODE_ERRORS, DiskslaError
from disksla.pipeline.tick import Tick

FORMAT = 1


class RecordingHeader(msgspec.Struct, frozen=True):
    """First line of a recording."""

    recording: int
    """Number of the format."""
    interval_s: float
    """Time between ticks."""
    kernel: str
    """Release of the kernel that was recorded."""
    disksla: str
    """Version that recorded."""


_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(RecordingHeader)
_tick_decoder = msgspec.json.Decoder(Tick)


def encode(record: RecordingHeader | Tick) -> bytes:
    """Write one line."""
    return _encoder.encode(record) + b"\n"


def decode_header(line: bytes) -> RecordingHeader:
    """Read the first line; raises Refusal if this is no recording that we know."""
    try:
        header = _header_decoder.decode(line)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"line 1: not the header of a recording: {error}") from None
    if header.recording != FORMAT:
        raise DiskslaError(f"line 1: format {header.recording}, where {FORMAT} is known")
    if not 0 < header.interval_s < float("inf"):
        raise DiskslaError(f"line 1: interval_s {header.interval_s} is not a time between ticks")
    return header


def decode_tick(line: bytes, number: int) -> Tick:
    """Read one tick; raises Refusal with the number of the line if it is none."""
    try:
        return _tick_decoder.decode(line)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"line {number}: not a tick: {error}") from None

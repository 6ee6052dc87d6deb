"""File format of a recording: a header and ticks, one JSON object per line.

`disksla record` writes it, `disksla replay` reads it, and bug reports enclose it.
"""

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError
from disksla.promise.configuration import ConfigurationText, TermsFile
from disksla.state.pipeline.tick import Tick

FORMAT = 1


class RecordingHeader(msgspec.Struct, frozen=True, omit_defaults=True):
    """First line of a recording."""

    recording: int
    """Version of the format."""
    interval_s: float
    """Time between ticks."""
    kernel: str
    """Kernel release of the recorded machine."""
    disksla: str
    """Version of disksla that recorded."""
    terms_files: tuple[TermsFile, ...] = ()
    """What the files of terms.d said at the start, the best source first."""
    configuration: ConfigurationText = ConfigurationText()
    """The files of the operator, as they are written."""


_encoder = msgspec.json.Encoder()
_header_decoder = msgspec.json.Decoder(RecordingHeader)
_tick_decoder = msgspec.json.Decoder(Tick)


def encode(record: RecordingHeader | Tick) -> bytes:
    """Return one line."""
    return _encoder.encode(record) + b"\n"


def decode_header(line: bytes) -> RecordingHeader:
    """Parse the first line. Raise DiskslaError if it is not a header of this format."""
    try:
        header = _header_decoder.decode(line)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"line 1: invalid header of a recording: {error}") from None
    if header.recording != FORMAT:
        raise DiskslaError(f"line 1: found format {header.recording}; expected {FORMAT}")
    if not 0 < header.interval_s < float("inf"):
        raise DiskslaError(
            f"line 1: found interval_s {header.interval_s}; expected a number above zero"
        )
    return header


def decode_tick(line: bytes, number: int) -> Tick:
    """Parse one tick. Raise DiskslaError with the line number if it is not one."""
    try:
        return _tick_decoder.decode(line)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"line {number}: invalid tick: {error}") from None

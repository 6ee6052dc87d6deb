"""Whether the wall clock is synchronised, as the kernel knows it (adjtimex(2))."""

import ctypes
import os
import struct
from typing import NamedTuple

from disksla.base.errors import DiskslaError

_UNSYNCHRONISED = 0x40  # STA_UNSYNC of linux/timex.h
_TIMEX = struct.Struct("@Illlli")
"""Start of `struct timex`: modes, offset, freq, maxerror (us), esterror, status. Then more."""
_BYTES = 512  # longer than the structure on any machine
_MICROSECONDS = 1e6


class ClockState(NamedTuple):
    """State of the wall clock."""

    is_synchronised: bool
    error_s: float
    """Largest error, as the kernel estimates it; it grows while nothing sets the clock."""


def read_clock_state() -> ClockState:
    """Return the state of the wall clock; any user may read it.

    NTP, PTP and the tools of hypervisors report to the kernel that they set the clock. Raise
    DiskslaError if the kernel does not answer, as in some sandboxes.
    """
    buffer = ctypes.create_string_buffer(_BYTES)  # modes is 0: nothing is set
    if ctypes.CDLL(None, use_errno=True).adjtimex(buffer) < 0:
        code = ctypes.get_errno()
        raise DiskslaError(f"adjtimex failed: {os.strerror(code)}")
    _, _, _, error_us, _, status = _TIMEX.unpack_from(buffer)
    return ClockState(not status & _UNSYNCHRONISED, error_us / _MICROSECONDS)

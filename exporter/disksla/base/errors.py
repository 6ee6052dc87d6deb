"""`DiskslaError`, the base of all exceptions; what decoding JSON raises; why clouds fail."""

from typing import Literal

import msgspec


class DiskslaError(Exception):
    """Base of all exceptions of disksla: a request could not be carried out.

    The message has the form `WHAT failed: WHY; HINT`, or `found X; expected Y`. A command prints
    it and exits with status 2; a reload that raises it changes nothing.
    """


DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Raised for JSON that is malformed, of another shape, not UTF-8, or nested too deeply."""

ExchangeReason = Literal[
    "unreachable",
    "denied",
    "throttled",
    "expired",
    "redirected",
    "invalid",
    "too_large",
    "timeout",
    "clock",
    "no_credentials",
    "not_found",
]
"""Why a question to a cloud failed: `disksla detect` writes it, the daemon reads and counts it."""

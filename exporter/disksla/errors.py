"""Exceptions: `DiskslaError`, the base of all, and what decoding JSON may raise."""

import msgspec


class DiskslaError(Exception):
    """Base of all exceptions of disksla: a request could not be carried out.

    The message has the form `WHAT failed: WHY; HINT`, or `found X; expected Y`. A command prints
    it and exits with status 2; a reload that raises it changes nothing.
    """


DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Raised for JSON that is malformed, of another shape, not UTF-8, or nested too deeply."""

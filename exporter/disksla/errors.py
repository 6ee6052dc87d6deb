"""Exceptions: one base, whose text is written for the person at the keyboard."""

import msgspec


class DiskslaError(Exception):
    """Base of all exceptions of disksla: something that was asked for could not be done.

    The text has the form `WHAT failed: WHY; HINT`, or `found X; expected Y`. A command prints it
    and exits with status 2; a reload that raises it changes nothing.
    """


DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""Raised for JSON that is malformed, of another shape, not UTF-8, or nested too deeply."""

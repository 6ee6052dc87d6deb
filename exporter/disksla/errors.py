"""Saying no: the one exception whose text is meant for the person at the keyboard."""

import msgspec


class DiskslaError(Exception):
    """Something asked for could not be done.

    The text says what, where, and what would be right. A command that meets one prints it and
    exits with status 2; a reload that meets one changes nothing.
    """


DECODE_ERRORS = (msgspec.MsgspecError, UnicodeDecodeError, RecursionError)
"""It is no JSON or of another shape, not UTF-8, or nested more deeply than anything of ours."""

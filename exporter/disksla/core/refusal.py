"""Saying no: the one exception whose text is meant for the person at the keyboard."""


class Refusal(Exception):  # noqa: N818 -- it is not an error of ours
    """Something asked for could not be done.

    The text says what, where, and what would be right. A command that meets one prints it and
    exits with status 2; a reload that meets one changes nothing.
    """

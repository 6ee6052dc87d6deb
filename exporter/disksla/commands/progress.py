"""A bar on standard error while a person waits, if it is a terminal."""

import contextlib
import sys
from collections.abc import Callable, Iterator

from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from disksla.commands.terminal import Terminal

Tell = Callable[[str, float], None]
"""Takes what is being done, and the seconds of it that have passed."""


@contextlib.contextmanager
def shown_progress(total_s: float) -> Iterator[Tell]:
    """Show how far a test of this length has come; gives what is to be told of it."""
    if not sys.stderr.isatty():
        yield lambda _what, _seconds: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=Terminal(stderr=True), transient=True) as bar:
        yield _Told(bar, total_s)


class _Told:
    """Adds up what was done one after another."""

    def __init__(self, bar: Progress, total_s: float) -> None:
        self._bar = bar
        self._task = bar.add_task("", total=total_s)
        self._what = ""
        self._done_s = self._passed_s = 0.0

    def __call__(self, what: str, seconds: float) -> None:
        if what != self._what:
            self._done_s += self._passed_s
            self._what = what
        self._passed_s = seconds
        self._bar.update(self._task, description=what, completed=self._done_s + seconds)

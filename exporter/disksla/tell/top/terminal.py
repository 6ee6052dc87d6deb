"""The terminal: alternate screen, keys as they are typed, resize, suspension and restoration."""

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Mapping
from types import FrameType
from typing import Self

from rich.console import Console, Group
from rich.live import Live
from rich.style import Style as RichStyle
from rich.text import Text

from disksla.base.errors import DiskslaError
from disksla.tell.api import DisksDocument
from disksla.tell.explanation import SHOWN_TEXT
from disksla.tell.top.line import Line, Look, in_ascii
from disksla.tell.top.screen import place_of, screen
from disksla.tell.top.sources import DiskSource, Poller
from disksla.tell.top.view import Keys, Size, View, press

_REDRAW_S = 1.0
_ESCAPE_S = 0.05
"""Time after which a lone escape character is the key Esc, and not the beginning of another."""
_READ_BYTES = 1024

_STYLES: dict[str, RichStyle] = {
    "": RichStyle.null(),
    "strong": RichStyle(bold=True),
    "soft": RichStyle(dim=True),
    "title": RichStyle(bold=True),
    "heading": RichStyle(bold=True, underline=True),
    "selected": RichStyle(reverse=True),
    **{
        shown: RichStyle(color=text.colour or None, dim=not text.colour)
        for shown, text in SHOWN_TEXT.items()
    },
}
_LABELS: dict[str, RichStyle] = {
    shown: RichStyle(
        color="#000000" if shown == "throttled" else "#ffffff", bgcolor=text.colour, bold=True
    )
    for shown, text in SHOWN_TEXT.items()
    if text.colour
}
"""Black on orange and white on the darker colours have a contrast of 5:1 or more."""


_Handler = Callable[[int, FrameType | None], None]


class _HungUpError(DiskslaError):
    """The terminal is gone."""


class _Wakeup:
    """A pipe that ends a wait: written by signals that arrive, and by other threads.

    It stays open, because a thread may write to it until the process ends.
    """

    def __enter__(self) -> Self:
        self._reader, self._writer = os.pipe2(os.O_NONBLOCK | os.O_CLOEXEC)
        self._before = signal.set_wakeup_fd(self._writer, warn_on_full_buffer=False)
        return self

    def __exit__(self, *_: object) -> None:
        signal.set_wakeup_fd(self._before)

    def wake(self) -> None:
        """End the wait; may be called from any thread, also at the end."""
        with contextlib.suppress(BlockingIOError):  # full: the wait ends anyway
            os.write(self._writer, b"\0")

    def wait(self, keyboard: int, timeout_s: float) -> bool:
        """Wait for a key, a signal, `wake` or the time; return whether there is a key."""
        ready, _, _ = select.select([keyboard, self._reader], [], [], timeout_s)
        with contextlib.suppress(BlockingIOError):
            os.read(self._reader, _READ_BYTES)
        return keyboard in ready


@contextlib.contextmanager
def _keys_as_typed(keyboard: int) -> Iterator[None]:
    """Read keys at once and without echo; what was before is restored at the end."""
    before = termios.tcgetattr(keyboard)
    try:
        tty.setcbreak(keyboard)
        yield
    finally:
        with contextlib.suppress(termios.error):
            termios.tcsetattr(keyboard, termios.TCSADRAIN, before)


@contextlib.contextmanager
def _alternate_screen(live: Live) -> Iterator[None]:
    """Show `live` on the alternate screen; what was before is restored at the end."""
    live.start()
    try:
        yield
    finally:
        try:
            live.stop()
            sys.stdout.flush()
        except OSError:  # the terminal is gone, and what is left to write with it
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)


def _typed(keyboard: int) -> bytes:
    """Return what was typed. Raise _HungUpError if the terminal is gone."""
    try:
        data = os.read(keyboard, _READ_BYTES)
    except OSError as error:
        raise _HungUpError from error
    if not data:
        raise _HungUpError
    return data


def _text(line: Line) -> Text:
    styled = [(span.text, (_LABELS if span.is_label else _STYLES)[span.style]) for span in line]
    return Text.assemble(*styled, no_wrap=True, overflow="crop")


@contextlib.contextmanager
def _handled(handlers: Mapping[signal.Signals, _Handler]) -> Iterator[None]:
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


class TopTerminal:
    """Shows the disks of a source on the terminal of this process."""

    def __init__(self, console: Console, source: DiskSource, look: Look) -> None:
        """Show what `console` can show; `look.problem` is set from the source."""
        self._console = console
        self._source = source
        self._look = look
        self._keyboard = sys.stdin.fileno()
        self._is_suspended = False
        self._view = View()
        self._shown: DisksDocument | None = None

    def show(self, interval_s: float, is_stopped: Callable[[], bool]) -> None:
        """Show the disks until the user quits, or `is_stopped` after a signal."""
        handlers: dict[signal.Signals, _Handler] = {
            signal.SIGWINCH: lambda *_: None,  # ends the wait
            signal.SIGTSTP: self._suspend,
        }
        live = Live(console=self._console, screen=True, auto_refresh=False,
                    redirect_stdout=False, redirect_stderr=False)  # fmt: skip
        while not (self._view.has_quit or is_stopped()):
            with _Wakeup() as wakeup, _handled(handlers):
                poller = Poller(self._source, interval_s, wakeup.wake)
                try:
                    with _keys_as_typed(self._keyboard), _alternate_screen(live):
                        self._follow(poller, live, wakeup, is_stopped)
                except _HungUpError:
                    return
                finally:
                    poller.stop()
            if self._is_suspended:  # until it is continued, as by `fg`
                self._is_suspended = False
                signal.raise_signal(signal.SIGTSTP)

    def _follow(
        self, poller: Poller, live: Live, wakeup: _Wakeup, is_stopped: Callable[[], bool]
    ) -> None:
        """Show answers and press keys, until there is an end or a suspension."""
        while not (self._view.has_quit or self._is_suspended or is_stopped()):
            self._refresh(*poller.latest(), live)
            self._press(wakeup)

    def _suspend(self, _signal_number: int, _frame: FrameType | None) -> None:
        self._is_suspended = True

    def _refresh(self, document: DisksDocument | None, problem: str, live: Live) -> None:
        if self._shown is None or not self._view.is_frozen:
            if document is not None and not self._look.has_blocks:
                document = in_ascii(document)
            self._shown = document
        self._look = self._look._replace(problem=problem)
        lines = screen(self._shown, self._view, self._size, self._look)
        try:
            live.update(Group(*map(_text, lines)), refresh=True)
        except OSError as error:
            raise _HungUpError from error

    def _press(self, wakeup: _Wakeup) -> None:
        """Wait until something happens, and press the keys that were typed."""
        if not wakeup.wait(self._keyboard, _REDRAW_S):
            return
        keys, pressed = Keys().read(_typed(self._keyboard))
        while keys.pending:
            if not wakeup.wait(self._keyboard, _ESCAPE_S):
                pressed += keys.ended()
                break
            keys, more = keys.read(_typed(self._keyboard))
            pressed += more
        for key in pressed:
            place = place_of(self._shown, self._view, self._size, self._look)
            self._view = press(self._view, key, place)

    @property
    def _size(self) -> Size:
        return Size(*self._console.size)

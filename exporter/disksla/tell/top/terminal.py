"""The terminal: alternate screen, keys as they are typed, resize, suspension and restoration."""

import contextlib
import os
import select
import signal
import sys
import termios
import tty
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from types import FrameType
from typing import Self

from rich.console import Console
from rich.control import Control
from rich.segment import Segment
from rich.style import Style as RichStyle

from disksla.base.errors import DiskslaError
from disksla.tell.api import DisksDocument
from disksla.tell.explanation import SHOWN_TEXT
from disksla.tell.top.keys import Keys
from disksla.tell.top.line import Line, Span
from disksla.tell.top.look import Look, in_ascii
from disksla.tell.top.screen import place_of, screen
from disksla.tell.top.sources import DiskSource, LastAnswer, Poller
from disksla.tell.top.view import Size, View, press

_REDRAW_S = 1.0
_ESCAPE_S = 0.05
"""Time after which a lone escape character is the key Esc, and not the beginning of another."""
_READ_BYTES = 1024
_USUAL_SIZE = Size(80, 24)
"""Of a terminal that does not say its size."""

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


class _Screen:
    """The alternate screen without echo and cursor; what was before is restored at the end."""

    def __init__(self, console: Console) -> None:
        self._console = console
        self.keyboard = sys.stdin.fileno()
        self._size: Size | None = None
        self._drawn: tuple[Line, ...] = ()

    def __enter__(self) -> Self:
        self._before = termios.tcgetattr(self.keyboard)
        try:
            tty.setcbreak(self.keyboard)
            self._console.set_alt_screen(enable=True)
            self._console.show_cursor(show=False)
        except BaseException:
            self._restore()
            raise
        self._size = None
        return self

    def __exit__(self, *_: object) -> None:
        self._restore()

    def _restore(self) -> None:
        try:
            self._console.show_cursor(show=True)
            self._console.set_alt_screen(enable=False)
            sys.stdout.flush()
        except OSError:  # the terminal is gone, and what is left to write with it
            nowhere = os.open(os.devnull, os.O_WRONLY)
            os.dup2(nowhere, sys.stdout.fileno())
            os.close(nowhere)
        with contextlib.suppress(termios.error):
            termios.tcsetattr(self.keyboard, termios.TCSADRAIN, self._before)

    @property
    def size(self) -> Size:
        """Size of the terminal now. Raise _HungUpError if it is gone."""
        try:
            size = os.get_terminal_size(sys.stdout.fileno())
        except OSError as error:
            raise _HungUpError from error
        return Size(*size) if all(size) else _USUAL_SIZE

    def read(self) -> bytes:
        """Return what was typed. Raise _HungUpError if the terminal is gone."""
        try:
            data = os.read(self.keyboard, _READ_BYTES)
        except OSError as error:
            raise _HungUpError from error
        if not data:
            raise _HungUpError
        return data

    def draw(self, lines: Sequence[Line], size: Size) -> None:
        """Write the lines that changed; all of them if the size of the screen has changed.

        Raise _HungUpError if the terminal is gone.
        """
        try:
            with self._console:  # written at once, at the end
                if size != self._size:
                    self._console.control(Control.clear())
                    self._size, self._drawn = size, ()
                for row, (line, before) in enumerate(zip_longest(lines, self._drawn)):
                    if line != before:
                        segments = [_segment(span) for span in line]
                        self._console.update_screen_lines([segments], y=row)
                self._drawn = tuple(lines)
        except OSError as error:
            raise _HungUpError from error

    def redraw(self) -> None:
        """Write all lines the next time: another program may have written to the terminal."""
        self._size = None

    def suspend(self) -> None:
        """Restore the terminal and stop this process until it is continued, as by `fg`."""
        self._restore()
        handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
        signal.raise_signal(signal.SIGTSTP)
        signal.signal(signal.SIGTSTP, handler)
        self.__enter__()


def _segment(span: Span) -> Segment:
    styles = _LABELS if span.is_label else _STYLES
    return Segment(span.text, styles[span.style])


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
        self._is_suspended = False
        self._view = View()
        self._shown: DisksDocument | None = None

    def show(self, interval_s: float, is_stopped: Callable[[], bool]) -> None:
        """Show the disks until the user quits, or `is_stopped` after a signal."""
        handlers: dict[signal.Signals, _Handler] = {
            signal.SIGWINCH: lambda *_: None,  # ends the wait
            signal.SIGTSTP: self._suspend,
        }
        with _Wakeup() as wakeup, _handled(handlers), _Screen(self._console) as on_screen:
            poller = Poller(self._source, interval_s, wakeup.wake)
            try:
                with contextlib.suppress(_HungUpError):
                    while not (self._view.has_quit or is_stopped()):
                        self._refresh(poller.latest(), on_screen)
                        self._press(on_screen, wakeup)
                        if self._is_suspended:
                            self._is_suspended = False
                            on_screen.suspend()
            finally:
                poller.stop()

    def _suspend(self, _signal_number: int, _frame: FrameType | None) -> None:
        self._is_suspended = True

    def _refresh(self, answer: LastAnswer, on_screen: _Screen) -> None:
        if self._shown is None or not self._view.is_frozen:
            document = answer.document
            if document is not None and not self._look.has_blocks:
                document = in_ascii(document)
            self._shown = document
        self._look = self._look._replace(problem=answer.problem)
        size = on_screen.size
        on_screen.draw(screen(self._shown, self._view, size, self._look), size)

    def _press(self, on_screen: _Screen, wakeup: _Wakeup) -> None:
        """Wait until something happens, and press the keys that were typed."""
        if not wakeup.wait(on_screen.keyboard, _REDRAW_S):
            return
        keys, pressed = Keys().read(on_screen.read())
        while keys.pending:
            if not wakeup.wait(on_screen.keyboard, _ESCAPE_S):
                pressed += keys.ended()
                break
            keys, more = keys.read(on_screen.read())
            pressed += more
        for key in pressed:
            place = place_of(self._shown, self._view, on_screen.size, self._look)
            self._view = press(self._view, key, place)
            if key == "redraw":
                on_screen.redraw()

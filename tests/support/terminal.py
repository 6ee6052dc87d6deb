"""A program on a terminal of its own, whose screen tests read."""

import codecs
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path

from support.waiting import eventually

_SEQUENCE = re.compile(r"\x1b\[(\?)?([0-9;]*)([A-Za-z])")
_ALTERNATE, _CURSOR = "1049", "25"
_READ_BYTES = 65536


class Emulator:
    """What a terminal shows: rows, each written from its first column, with their colours."""

    def __init__(self) -> None:
        self.rows: dict[int, str] = {}
        """With the sequences of colours, by number from 1."""
        self.is_alternate = False
        self.has_cursor = True
        self.before = ""
        """What was written outside of the alternate screen."""
        self.height = 1000
        """Rows below it are not shown: they were written before a change of the size was seen."""
        self._row = 1
        self._pending = ""

    def feed(self, text: str) -> None:
        """Carry out what a program has written; fail for what `disksla top` does not write."""
        text = self._pending + text
        at = 0
        for found in _SEQUENCE.finditer(text):
            self._write(text[at : found.start()])
            self._carry_out(found)
            at = found.end()
        rest = text[at:]
        cut = rest.find("\x1b")
        self._write(rest if cut < 0 else rest[:cut])
        self._pending = "" if cut < 0 else rest[cut:]

    def _write(self, text: str) -> None:
        if not self.is_alternate:
            self.before += text
            return
        for number, line in enumerate(text.replace("\r", "").split("\n")):
            if number:
                self._row += 1
                self.rows[self._row] = ""
            assert line.isprintable(), line
            self._add(line)

    def _add(self, text: str) -> None:
        self.rows[self._row] = self.rows.get(self._row, "") + text

    def _carry_out(self, found: re.Match[str]) -> None:
        private, numbers, kind = found.groups()
        match kind:
            case "m":
                if self.is_alternate:
                    self._add(found.group())
            case "H":
                row, column = (numbers or "1;1").split(";")
                assert column == "1", found.group()
                self._row = int(row)
                self.rows[self._row] = ""
            case "J":
                self.rows = {}
            case "h" | "l" if private and numbers == _ALTERNATE:
                self.is_alternate, self.rows = kind == "h", {}
            case "h" | "l" if private and numbers == _CURSOR:
                self.has_cursor = kind == "h"
            case _:
                raise AssertionError(found.group())

    def lines(self) -> list[str]:
        """Return the rows without colours."""
        last = min(self.height, max(self.rows, default=0))
        return [_SEQUENCE.sub("", self.rows.get(row, "")) for row in range(1, last + 1)]


class TerminalProgram:
    """A program that runs on a terminal."""

    def __init__(self, process: subprocess.Popen[bytes], controller: int) -> None:
        self.process = process
        self.screen = Emulator()
        self.controller = controller
        self._decoder = codecs.getincrementaldecoder("utf-8")()

    def type(self, keys: str) -> None:
        """Type keys."""
        os.write(self.controller, keys.encode())

    def resize(self, columns: int, rows: int) -> None:
        """Change the size of the terminal; the kernel signals SIGWINCH."""
        fcntl.ioctl(self.controller, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        self.screen.height = rows

    def settings(self) -> list[object]:
        """Return the modes of the terminal: echo, line by line, ..."""
        return termios.tcgetattr(self.controller)

    def read(self, within_s: float = 0.02) -> None:
        """Carry out what the program has written, and what it writes soon."""
        while select.select([self.controller], [], [], within_s)[0]:
            try:
                data = os.read(self.controller, _READ_BYTES)
            except OSError:  # the program has ended
                return
            self.screen.feed(self._decoder.decode(data))
            within_s = 0.0

    def shows(self, *texts: str, within_s: float) -> bool:
        """Wait until all these texts are on the screen; return whether they are."""

        def are_shown() -> bool:
            self.read()
            shown = "\n".join(self.screen.lines())
            return all(text in shown for text in texts)

        return eventually(are_shown, within_s)

    def end(self, within_s: float) -> int:
        """Wait for the end of the program; return its exit status."""
        deadline = time.monotonic() + within_s
        while self.process.poll() is None and time.monotonic() < deadline:
            self.read()
        self.read()
        return self.process.wait(0.0)


@contextmanager
def on_terminal(
    command: Sequence[str | Path],
    columns: int = 80,
    rows: int = 24,
    environment: Mapping[str, str] | None = None,
) -> Iterator[TerminalProgram]:
    """Run a program on a terminal of this size until the end of the block."""
    controller, terminal = pty.openpty()
    usual = {"TERM": "xterm-256color", "COLORTERM": "truecolor", "LC_ALL": "C.UTF-8"}
    left_out = ("NO_COLOR", "COLUMNS", "LINES", "FORCE_COLOR", "PYTHONUNBUFFERED")
    inherited = {name: value for name, value in os.environ.items() if name not in left_out}
    fcntl.ioctl(controller, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
    process = subprocess.Popen(
        [*command],
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        env={**inherited, **usual, **(environment or {})},
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 -- one thread, and the terminal is its own
    )
    os.close(terminal)
    try:
        yield TerminalProgram(process, controller)
    finally:
        if process.poll() is None:
            process.send_signal(signal.SIGKILL)
            process.wait()
        os.close(controller)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)

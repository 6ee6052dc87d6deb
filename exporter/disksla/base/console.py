"""Output of commands: safe tables, progress bars and JSON."""

import contextlib
import sys
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
from rich.console import Console, ConsoleOptions, RenderableType
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.segment import Segment

from disksla.base.errors import DiskslaError
from disksla.base.text import escape_control


class SafeConsole(Console):
    """A console that escapes control characters, which names of disks may contain."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        """Create a console without the markup of rich."""
        super().__init__(stderr=stderr, quiet=quiet, highlight=False, markup=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Yield the segments with their text escaped; control segments (colours) stay."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(escape_control(segment.text), segment.style)


def write_file(path: Path, content: bytes) -> None:
    """Write a file of results. Raise DiskslaError if it cannot be written, or is a disk."""
    try:
        if path.is_block_device():
            raise DiskslaError(f"cannot write {path}: it is a block device; choose a file")
        path.write_bytes(content)
    except OSError as error:
        raise DiskslaError(f"cannot write {path}: {error.strerror}") from error


ProgressCallback = Callable[[str, float], None]
"""Called with the name of the current step and the seconds since it started."""


@contextlib.contextmanager
def progress_bar(total_s: float) -> Iterator[ProgressCallback]:
    """Show the progress of steps that take `total_s` together; yield what to call with it.

    Without a terminal on stderr, nothing is shown.
    """
    if not sys.stderr.isatty():
        yield lambda _what, _seconds: None
        return
    columns = (TextColumn("{task.description}"), BarColumn(), TimeRemainingColumn())
    with Progress(*columns, console=SafeConsole(stderr=True), transient=True) as bar:
        task = bar.add_task("", total=total_s)
        steps = [("", 0.0)]

        def show(step: str, seconds: float) -> None:
            """Add the current step to the steps that are finished."""
            if step == steps[-1][0]:
                del steps[-1]
            steps.append((step, seconds))
            bar.update(task, description=step, completed=sum(each_s for _, each_s in steps))

        yield show


_DIGITS = 15
"""Significant digits; more would show the error of binary fractions (11250.000000000002)."""


def to_json(value: Any) -> str:
    """Return records, mappings and sequences of them as indented JSON."""
    plain = _plain(msgspec.to_builtins(value))
    return msgspec.json.format(msgspec.json.encode(plain), indent=2).decode()


def _plain(value: Any) -> Any:
    match value:
        case dict():
            return {key: _plain(item) for key, item in value.items()}
        case list() | tuple():
            return [_plain(item) for item in value]
        case float():
            short = float(f"{value:.{_DIGITS}g}")
            return int(short) if short.is_integer() else short
        case _:
            return value

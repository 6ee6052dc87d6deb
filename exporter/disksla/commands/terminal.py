"""What people are shown in tables: on a terminal, which obeys some characters."""

from collections.abc import Iterable

from rich.console import Console, ConsoleOptions, RenderableType
from rich.segment import Segment

from disksla.core.visible import visible


class Terminal(Console):
    """A console on which no name of a disk can move the cursor, change a title or hide a line."""

    def __init__(self, *, stderr: bool = False, quiet: bool = False) -> None:
        """Take texts for what they are, without rich's own marks in them."""
        super().__init__(stderr=stderr, quiet=quiet, highlight=False, markup=False, emoji=False)

    def render(
        self, renderable: RenderableType, options: ConsoleOptions | None = None
    ) -> Iterable[Segment]:
        """Give what is written; colours are not text, and stay."""
        for segment in super().render(renderable, options):
            if segment.control:
                yield segment
            else:
                yield Segment(visible(segment.text), segment.style)

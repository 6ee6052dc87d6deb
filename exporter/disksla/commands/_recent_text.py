"""Text of what disks did lately."""

import textwrap
from collections.abc import Sequence

from rich.text import Text

from disksla.api import DiskDocument
from disksla.commands._recent import RecentDisks
from disksla.config import CUSTOM_TERMS
from disksla.console import SafeConsole
from disksla.history import headline
from disksla.limits import UNKNOWN_TERMS
from disksla.units import format_size

_INDENT = "  "
_TITLES = {UNKNOWN_TERMS: "unknown type", CUSTOM_TERMS: "terms written out"}


def print_recent(recent: RecentDisks, order: Sequence[str]) -> None:
    """Print what each disk did: those with problems first, then in the `order` of names."""
    console = SafeConsole()
    if not recent.disks:
        console.print("No disk is monitored; disksla discover shows why.")
        return
    places = {name: place for place, name in enumerate(order)}
    disks = sorted(
        recent.disks.values(), key=lambda disk: (-disk.bad_s, places.get(disk.device, len(places)))
    )
    bad_s = {disk.device: disk.bad_s for disk in disks}
    console.print(headline(bad_s, recent.period, recent.seconds), style="bold")
    for disk in disks:
        facts = [format_size(disk.size_bytes), _TITLES.get(disk.terms, disk.terms)]
        facts += [f"mounted at {each}" for each in disk.mount_points]
        console.print()
        console.print(Text.assemble((disk.device, "bold"), ", ", ", ".join(facts)))
        for sentence in sentences_of(disk):
            lines = textwrap.wrap(sentence, console.width - len(_INDENT), break_on_hyphens=False)
            console.print(textwrap.indent("\n".join(lines), _INDENT), soft_wrap=True)


def sentences_of(disk: DiskDocument) -> list[str]:
    """Return what a disk did lately, and its burst credits as far as they are known.

    Of a disk that was throttled, also why it is not known who used it.
    """
    sentences = [*disk.sentences, *(each.describe() for each in disk.credits if each.is_known)]
    if disk.why_no_consumers is not None and disk.throttled_seconds and not disk.consumers:
        sentences.append(
            f"Who used the disk is not known: {disk.why_no_consumers} (docs/consumers.md)."
        )
    return sentences

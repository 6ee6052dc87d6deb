"""What is shown of the disks, in which order, how a key changes that, and keys from bytes."""

import codecs
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from typing import Literal, NamedTuple

from disksla.tell.api import LiveDiskDocument
from disksla.tell.explanation import CONDITION_TEXT, PROBLEMS, Shown
from disksla.verdict.throttling import LimitKind

SortKey = Literal["trouble", "name", "iops", "throughput", "await", "load"]


def bytes_per_second(disk: LiveDiskDocument) -> float:
    """Return the throughput of a disk now."""
    return disk.present.read_bytes_per_second + disk.present.written_bytes_per_second


def problem_now(disk: LiveDiskDocument) -> Shown | None:
    """Return the problem that a disk has now, as it is coloured; None without one."""
    shown = None if disk.condition is None else CONDITION_TEXT[disk.condition].shown
    return shown if shown in PROBLEMS else None


def most_limited(disk: LiveDiskDocument) -> LimitKind | None:
    """Return where the disk was throttled for most of the last five minutes."""
    return max(disk.throttled_seconds, key=disk.throttled_seconds.__getitem__, default=None)


def trouble(disk: LiveDiskDocument) -> tuple[float, float, float]:
    """Return how bad a disk is: seconds with problems in the last minute, in five, and load."""
    bad = sum(each in PROBLEMS for each in disk.last_minute)
    return bad, disk.bad_s, disk.load_ratio or 0.0


_HIGHEST_FIRST: Mapping[SortKey, Callable[[LiveDiskDocument], tuple[float, ...]]] = {
    "trouble": trouble,
    "name": lambda _disk: (),
    "iops": lambda disk: (disk.present.read_iops + disk.present.write_iops,),
    "throughput": lambda disk: (bytes_per_second(disk),),
    "await": lambda disk: (disk.await_s or 0.0,),
    "load": lambda disk: (disk.load_ratio or 0.0,),
}
SORT_KEYS: Mapping[str, SortKey] = dict(zip("tnibal", _HIGHEST_FIRST, strict=True))
"""By the key that is pressed."""


def listed(
    disks: Iterable[LiveDiskDocument], sort: SortKey, text: str = ""
) -> list[LiveDiskDocument]:
    """Return the disks whose name, mount point or claim contains a text, in order.

    Those that are equal are in the order of their names, in which nvme10n1 follows nvme2n1.
    """
    value = _HIGHEST_FIRST[sort]
    found = [disk for disk in disks if text in "\0".join((disk.device, *names_of_use(disk)))]
    return sorted(found, key=lambda disk: ([-each for each in value(disk)], _name(disk.device)))


def names_of_use(disk: LiveDiskDocument) -> tuple[str, ...]:
    """Return what a disk is used for: its claim, or its mount points."""
    return (disk.claim,) if disk.claim else disk.mount_points


def _name(device: str) -> tuple[list[tuple[str, int]], str]:
    parts = re.findall(r"([^0-9]*)([0-9]{0,18})", device)
    return [(text, int(digits or 0)) for text, digits in parts], device


LONGEST_FILTER = 40


class Size(NamedTuple):
    """Size of a terminal."""

    columns: int
    rows: int


class View(NamedTuple):
    """What is shown."""

    sort: SortKey = "trouble"
    selected: str | None = None
    """Name of a disk; None for the first."""
    is_open: bool = False
    """The selected disk is shown alone."""
    is_who: bool = False
    """Of an open disk, its consumers are shown."""
    is_help: bool = False
    is_frozen: bool = False
    has_quit: bool = False
    scrolled: int = 0
    """Lines above the first that is shown, of one disk or of the help."""
    filter: str = ""
    """What the names, mount points or claims of the disks contain."""
    is_typing: bool = False
    """Keys are letters of the filter."""

    @property
    def is_list(self) -> bool:
        """Whether all disks are shown."""
        return not (self.is_open or self.is_help)


class Place(NamedTuple):
    """Where the view is in what there is."""

    names: Sequence[str] = ()
    """Of the disks that are listed, in their order."""
    page: int = 1
    """Lines that scroll, on the screen."""
    longest: int = 0
    """Most lines to scroll."""


_STEPS: Mapping[str, float] = {
    "up": -1, "k": -1, "down": 1, "j": 1, "home": float("-inf"), "end": float("inf"),
}  # fmt: skip
_PAGES: Mapping[str, int] = {"page-up": -1, "page-down": 1}


def press(view: View, key: str, place: Place) -> View:
    """Return the view after a key."""
    if view.is_typing:
        return _typed(view, key)
    if key in SORT_KEYS and not view.is_help:
        return view._replace(sort=SORT_KEYS[key])
    step = _STEPS.get(key, _PAGES.get(key, 0) * max(1, place.page))
    change = _CHANGES.get(key)
    return _moved(view, step, place) if step else change(view, place) if change else view


def _moved(view: View, step: float, place: Place) -> View:
    """Return the view after a key that moves."""
    if not view.is_list:
        return view._replace(scrolled=_bounded(view.scrolled + step, place.longest))
    if not place.names:
        return view
    index = place.names.index(view.selected) if view.selected in place.names else 0
    return view._replace(selected=place.names[_bounded(index + step, len(place.names) - 1)])


def _bounded(index: float, most: int) -> int:
    return int(min(max(0, index), max(0, most)))


def _typed(view: View, key: str) -> View:
    """Return the view after a key while a filter is typed."""
    match " " if key == "space" else key:
        case "enter":
            return view._replace(is_typing=False)
        case "escape":
            return view._replace(is_typing=False, filter="")
        case "backspace":
            return view._replace(filter=view.filter[:-1])
        case letter if len(letter) == 1 and len(view.filter) < LONGEST_FILTER:
            return view._replace(filter=view.filter + letter)
        case _:
            return view


def _back(view: View, _place: Place) -> View:
    """Return the view before this one: first without help, then all disks, then without filter."""
    if view.is_help:
        return view._replace(is_help=False, scrolled=0)
    kept = view.filter if view.is_open else ""
    return view._replace(is_open=False, is_who=False, scrolled=0, filter=kept)


def _open(view: View, place: Place) -> View:
    if not view.is_list or not place.names:
        return view
    name = view.selected if view.selected in place.names else place.names[0]
    return view._replace(selected=name, is_open=True, is_who=False, scrolled=0)


def _help(view: View, _place: Place) -> View:
    return view._replace(is_help=not view.is_help, scrolled=0)


def _who(view: View, place: Place) -> View:
    """Return the view with the consumers of the selected disk, or without them."""
    opened = _open(view, place)
    is_shown = opened.is_open and not view.is_help
    return opened._replace(is_who=not view.is_who, scrolled=0) if is_shown else view


_CHANGES: Mapping[str, Callable[[View, Place], View]] = {
    "q": lambda view, place: view._replace(has_quit=True) if view.is_list else _back(view, place),
    "escape": _back,
    "enter": _open,
    "w": _who,
    "space": lambda view, _: view._replace(is_frozen=not view.is_frozen),
    "h": _help,
    "?": _help,
    "/": lambda view, _: view._replace(is_typing=True, filter="") if view.is_list else view,
}


_ESCAPE = "\x1b"
_SEQUENCE = re.compile(r"\x1b(?:\[[0-?]*[ -/]*[@-~]|O[@-~])")
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|O)?")
_LONGEST = 32
"""Bytes of a sequence; a longer one is none."""
_SEQUENCES = {
    **{f"\x1b{kind}{letter}": key for kind in "[O" for letter, key in
       (("A", "up"), ("B", "down"), ("H", "home"), ("F", "end"))},
    "\x1b[5~": "page-up",
    "\x1b[6~": "page-down",
    "\x1b[1~": "home",
    "\x1b[7~": "home",
    "\x1b[4~": "end",
    "\x1b[8~": "end",
}  # fmt: skip
_CONTROLS = {
    "\r": "enter",
    "\n": "enter",
    " ": "space",
    "\x7f": "backspace",
    "\b": "backspace",
    "\f": "redraw",
}


class Keys(NamedTuple):
    """What was read and is not a key yet: the beginning of a sequence, or of a letter."""

    pending: bytes = b""

    def read(self, data: bytes) -> tuple["Keys", list[str]]:
        """Return what remains, and the keys of the bytes that were read."""
        arrived = self.pending + data
        text, length = codecs.utf_8_decode(arrived, "replace", False)  # noqa: FBT003 -- C
        rest = arrived[length:]
        keys: list[str] = []
        while text:
            unfinished = _UNFINISHED.fullmatch(text)
            if unfinished and len(text) < _LONGEST:
                return Keys(text.encode() + rest), keys
            length, key = _first(text)
            keys += [key] if key else []
            text = text[length:]
        return Keys(rest), keys

    def ended(self) -> list[str]:
        """Return the keys of what remains if nothing follows: Esc alone."""
        return ["escape"] if self.pending.startswith(_ESCAPE.encode()) else []


def _first(text: str) -> tuple[int, str]:
    """Return the length and the name of the first key; without a name if it means nothing."""
    sequence = _SEQUENCE.match(text)
    if sequence:
        return sequence.end(), _SEQUENCES.get(sequence.group(), "")
    if text[0] == _ESCAPE:
        return 1, "escape"
    key = _CONTROLS.get(text[0], text[0])
    return 1, key if key.isprintable() else ""

"""Keys: bytes of a terminal to keys, and what keys change."""

from functools import reduce

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.tell.top.view import LONGEST_FILTER, SORT_KEYS, Keys, Place, View, press
from support.examples import scaled

NAMES = ("vda", "vdb", "vdc", "vdd")
PLACE = Place(NAMES, page=2, longest=5)


def typed(*keys: str, view: View | None = None, place: Place = PLACE) -> View:
    return reduce(lambda before, key: press(before, key, place), keys, view or View())


NAMED_KEYS = (
    "up", "down", "page-up", "page-down", "home", "end", "enter", "escape", "space", "backspace",
)  # fmt: skip
ANY_KEY = st.text(max_size=2) | st.sampled_from((*NAMED_KEYS, *"jkqh?/tnibal"))


@scaled(400)
@given(st.lists(ANY_KEY, max_size=20), st.lists(st.text(max_size=3), max_size=5, unique=True))
def test_any_keys_keep_the_view_in_its_place(keys: list[str], names: list[str]) -> None:
    place = Place(names, page=3, longest=4)
    view = typed(*keys, place=place)
    assert 0 <= view.scrolled <= 4
    assert view.selected is None or view.selected in names
    assert len(view.filter) <= LONGEST_FILTER
    assert not view.is_open or view.selected is not None


@scaled(100)
@given(st.lists(ANY_KEY, max_size=20))
def test_escape_and_q_always_quit_in_the_end(keys: list[str]) -> None:
    assert typed(*keys, "escape", "q", "q", "q").has_quit


@pytest.mark.parametrize(
    ("keys", "selected"),
    [
        ((), None),
        (("down",), "vdb"),
        (("j", "j", "k"), "vdb"),
        (("up",), "vda"),
        (("end",), "vdd"),
        (("end", "down"), "vdd"),
        (("page-down",), "vdc"),
        (("end", "page-up"), "vdb"),
        (("end", "home"), "vda"),
    ],
)
def test_arrows_select(keys: tuple[str, ...], selected: str | None) -> None:
    assert typed(*keys).selected == selected


def test_selection_stays_with_its_disk_when_the_order_changes() -> None:
    view = typed("down", "down")
    assert press(view, "down", PLACE._replace(names=("vdc", "vdb", "vda"))).selected == "vdb"
    gone = press(view, "down", PLACE._replace(names=("vda", "vdb")))
    assert gone.selected == "vdb"
    assert press(view, "down", Place()) == view


def test_a_disk_is_opened_scrolled_and_closed() -> None:
    view = typed("down", "enter")
    assert (view.selected, view.is_open) == ("vdb", True)
    assert typed("enter").selected == "vda"
    assert typed("down", "down", view=view).scrolled == 2
    assert typed("end", "down", view=view).scrolled == 5
    assert typed("enter", view=view) == view
    for key in ("escape", "q"):
        assert typed("down", key, view=view) == view._replace(is_open=False)
    assert typed("enter", place=Place()) == View()


def test_who_uses_a_disk_is_shown_and_left() -> None:
    view = typed("down", "w")
    assert (view.selected, view.is_open, view.is_who) == ("vdb", True, True)
    assert typed("w", view=view) == typed("down", "enter")
    assert typed("w", view=typed("down", "enter")) == view
    assert typed("escape", view=view) == View(selected="vdb")
    assert typed("h", "w", view=view) == view._replace(is_help=True)
    assert typed("w", place=Place()) == View()


@pytest.mark.parametrize("key", ["h", "?"])
def test_help_returns_to_what_was_shown(key: str) -> None:
    opened = typed("enter")
    helped = typed(key, "down", "t", view=opened)
    assert helped.is_help
    assert helped.scrolled == 1
    for back in (key, "q", "escape"):
        assert typed(back, view=helped) == opened


def test_keys_sort_freeze_and_quit() -> None:
    for key, sort in SORT_KEYS.items():
        assert typed(key).sort == sort
    assert typed("space").is_frozen
    assert not typed("space", "space").is_frozen
    assert typed("q").has_quit
    assert typed("x", "f1") == View()


def test_filter_is_typed_kept_and_removed() -> None:
    assert typed("/", "v", "d", "q", "backspace", "space", "up") == View(
        filter="vd ", is_typing=True
    )
    kept = typed("/", "v", "d", "enter")
    assert kept == View(filter="vd")
    assert typed("enter", "escape", view=kept) == View(filter="vd", selected="vda")
    assert typed("escape", view=kept) == View()
    assert typed("/", "v", "escape") == View()
    assert typed("enter", "/") == typed("enter")


def read(data: bytes) -> list[str]:
    keys, pressed = Keys().read(data)
    return pressed + keys.ended()


@pytest.mark.parametrize(
    ("data", "keys"),
    [
        (b"jk q\r", ["j", "k", "space", "q", "enter"]),
        (b"\x1b[A\x1b[B\x1bOA\x1bOB", ["up", "down", "up", "down"]),
        (b"\x1b[5~\x1b[6~\x1b[H\x1b[F", ["page-up", "page-down", "home", "end"]),
        (b"\x1b[1~\x1b[4~\x1b[7~\x1b[8~", ["home", "end", "home", "end"]),
        (b"\x1b", ["escape"]),
        (b"\x1b\x1b[A", ["escape", "up"]),
        (b"\x1bq", ["escape", "q"]),
        (b"\x1b[1;5C\x1b[15~\x1b[200~x", ["x"]),
        (b"\x7f\x08\x03\x0c", ["backspace", "backspace", "redraw"]),
        ("д数".encode(), ["д", "数"]),
        (b"\xffa", ["\ufffd", "a"]),
        (b"\x1b[" + b"0" * 40, ["escape", "[", *"0" * 40]),
        (b"", []),
    ],
)  # fmt: skip
def test_bytes_are_keys(data: bytes, keys: list[str]) -> None:
    assert read(data) == keys


@scaled(300)
@given(st.lists(st.binary(max_size=6) | st.sampled_from((b"\x1b[A", b"\x1b", "д".encode()))))
def test_any_bytes_are_read(parts: list[bytes]) -> None:
    keys = Keys()
    for part in parts:
        keys, pressed = keys.read(part)
        assert all(key.isprintable() and key for key in pressed)
        assert len(keys.pending) < 140


KEYS_OF_TERMINALS = st.sampled_from(
    (b"j", b"\x1b[A", b"\x1bOB", b"\x1b[5~", b" ", b"\r", "д".encode(), "数".encode())
)


@scaled(200)
@given(st.lists(KEYS_OF_TERMINALS, max_size=8).map(b"".join), st.integers(0, 40))
def test_keys_do_not_depend_on_how_bytes_arrive(data: bytes, at: int) -> None:
    keys, first = Keys().read(data[:at])
    keys, second = keys.read(data[at:])
    assert first + second == read(data)
    assert not keys.pending

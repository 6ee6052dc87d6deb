"""Pages as data: what a browser and a terminal show of them."""

from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.tell.page import (
    DataTable,
    Drawing,
    FactList,
    Heading,
    Items,
    Line,
    PagePart,
    Section,
    Styled,
    html_of,
)
from disksla.tell.page import HtmlPage as Sheet
from disksla.tell.printed_page import print_parts, text_of
from support.html_page import HtmlPage
from support.snapshots import nasty_text

Golden = Callable[[Path, str], None]

GOLDEN = Path(__file__).parent / "golden"
LONG = "found that a disk is slower than it was sold as"
RATES = (
    ("IOPS", "3000", "300", Drawing("<svg></svg>")),
    ("bandwidth", Styled("125 MiB/s", "bad"), ("-", Styled("not known", "soft")), ""),
)
EVERYTHING: tuple[PagePart, ...] = (
    Heading("Disk vdb", level=1),
    Line(("Limits of ", Styled("gp3", "soft"), "; see ", Styled("vdb", href="/disk?name=vdb&x"))),
    FactList(
        (
            ("size", "30 GiB"),
            ("serial", None),
            ("model", ""),
            (Styled("wrong", "bad"), (LONG * 2, Styled("fix: " + "run it " * 12, "copied"))),
            ("queue", (Drawing("<meter></meter>"), "32")),
        )
    ),
    Heading(("Rates of ", Styled("vdb", "strong")), id="rates", style="good"),
    DataTable(("", "read", "write", "bar"), RATES, ("read", "write"), "wide", "Sold"),
    DataTable(("disk", "says", "note"), (("vdb", LONG, (LONG, Styled("more"))), ("vdc", "", ""))),
    Line("Only on the page is a drawing.", "soft"),
    Drawing("<svg><rect></rect></svg>", "a drawing"),
    Items((LONG * 2, "short")),
    Items(()),
    DataTable(("nothing",), ()),
    Section((Line(Styled("in a browser")),), "section", "cards", "cards", where="page"),
    Section((Line("on a terminal"),), where="terminal"),
    Section((Line(("so ", Styled("not here", where="page"), "here")),), summary="folded"),
    Line("https://example.com/" + "long/" * 20, "copied"),
)


def test_all_parts_in_a_browser(golden: Golden) -> None:
    html = html_of(EVERYTHING)
    HtmlPage(html)
    golden(GOLDEN / "everything.html", html + "\n")


def test_all_parts_as_text(golden: Golden) -> None:
    golden(GOLDEN / "everything.txt", text_of(EVERYTHING))


def test_a_terminal_shows_the_same_text(capsys: pytest.CaptureFixture[str]) -> None:
    print_parts(EVERYTHING)
    assert capsys.readouterr().out == text_of(EVERYTHING)


_pieces = nasty_text | st.builds(Styled, nasty_text, st.sampled_from(("", "soft")), nasty_text)
_words = _pieces | st.lists(_pieces, max_size=3).map(tuple)
_parts = st.one_of(
    st.builds(Heading, _words, st.integers(1, 3)),
    st.builds(Line, _words),
    st.lists(_words, max_size=2).map(Items),
    st.lists(st.tuples(_pieces, _words), max_size=3).map(FactList),
    st.lists(st.tuples(_words, _words), max_size=3).map(lambda rows: DataTable(("a", "b"), rows)),
)


@given(st.lists(_parts, max_size=4))
def test_texts_never_become_markup(parts: list[PagePart]) -> None:
    page = HtmlPage(Sheet("").page("title", html_of([Section(parts)])))
    tables = [each for each in parts if isinstance(each, DataTable) and each.rows]
    assert len(page.rows) == sum(1 + len(table.rows) for table in tables)
    text = text_of(parts)
    text.encode()
    assert text.replace("\n", "").isprintable()


@given(st.lists(st.text("ab ", max_size=60), min_size=1), st.integers(30, 100))
def test_words_fit_the_width(texts: list[str], width: int) -> None:
    parts = (Line(" ".join(texts)), FactList([("name", tuple(texts))]), Items(texts))
    for line in text_of(parts, width).splitlines():
        assert len(line) <= width or max(map(len, line.split())) > width - 20

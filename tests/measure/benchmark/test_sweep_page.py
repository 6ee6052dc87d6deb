"""The page of heat maps: complete and self-contained."""

import re
from collections.abc import Callable
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from disksla.measure.benchmark.sweep_matrix import SweepRow
from disksla.measure.benchmark.sweep_page import LEVELS, sweep_html, sweep_page
from disksla.tell.page import html_of
from disksla.tell.printed_page import text_of
from support.html_page import HtmlPage
from support.sweeps import HEADER, PLAN, ROWS

GOLDEN = Path(__file__).parent / "golden"


def levels(page: HtmlPage) -> list[int]:
    """Return the colours of all cells."""
    assert "script" not in page.tags
    classes = (named.get("class") or "" for _, named in page.elements)
    return [int(level[1]) for each in classes if (level := re.match(r"l(\d+)\b", each))]


def test_page(golden: Callable[[Path, str], None]) -> None:
    for name, text in (
        ("sweep.txt", text_of(sweep_page(HEADER, ROWS, "2026-11-20"))),
        ("sweep.html", html_of(sweep_page(HEADER, ROWS, "2026-11-20")) + "\n"),
    ):
        golden(GOLDEN / name, text)


def test_what_was_not_measured() -> None:
    rows = (replace(ROWS[0], mean_latency_s=None), *ROWS[2:])
    assert sweep_html(HEADER, rows, "").count('class="none"') == 1 + 3
    assert "100% seq, 100% read               -" in text_of(sweep_page(HEADER, rows, ""))
    page = sweep_html(replace(HEADER, directory=None, file_bytes=None), (), "")
    assert "No cell was measured yet." in page
    assert "the device itself, read only" in page


numbers = st.floats(0, 1e12)


@given(
    st.lists(
        st.builds(SweepRow, st.sampled_from(PLAN.cells()), numbers | st.none(), numbers, numbers),
        max_size=6,
        unique_by=lambda row: row.cell,
    ).map(tuple)
)
def test_any_numbers_give_a_valid_page(rows: tuple[SweepRow, ...]) -> None:
    found = levels(HtmlPage(sweep_html(HEADER, rows, "")))
    assert all(0 <= level < LEVELS for level in found)

"""The page of heat maps: complete and self-contained."""

import re

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from disksla.measure.benchmark.sweep_html import LEVELS, sweep_html
from disksla.measure.benchmark.sweep_matrix import SweepRow
from support.html_page import HtmlPage
from support.sweeps import HEADER, PLAN, ROWS


def levels(page: HtmlPage) -> list[int]:
    """Return the colours of all cells."""
    assert "script" not in page.tags
    classes = (named.get("class") or "" for _, named in page.elements)
    return [int(level[1]) for each in classes if (level := re.match(r"l(\d+)", each))]


def test_each_map_shows_each_cell_once() -> None:
    page = sweep_html(HEADER, ROWS, "2026-11-20")
    found = HtmlPage(page)
    assert len(levels(found)) == 3 * len(ROWS)
    assert len(found.of("caption")) == 3 * 4
    assert ">29736</td>" in page
    assert ">10</td>" in page
    assert "32 of 32 cells" in page
    assert "&lt;b&gt;" in page
    assert "a file of 1 GiB in /data" in page


def test_colours_span_all_steps() -> None:
    page = sweep_html(HEADER, ROWS, "")
    assert {0, LEVELS - 1} <= set(levels(HtmlPage(page)))
    assert 'class="l7 deep">29736' in page


def test_missing_value_is_a_dash() -> None:
    unanswered = replace(ROWS[0], mean_latency_s=None)
    page = sweep_html(HEADER, (unanswered, *ROWS[2:]), "")
    assert page.count('class="none"') == 1 + 3
    HtmlPage(page)


def test_sweep_without_results_is_noted() -> None:
    page = sweep_html(replace(HEADER, directory=None, file_bytes=None), (), "")
    assert "No cell was measured yet." in page
    assert "the device itself, read only" in page
    HtmlPage(page)


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

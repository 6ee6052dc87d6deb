"""The page of heat maps: complete and self-contained."""

import re
from html.parser import HTMLParser

from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from disksla.benchmark.sweep_html import LEVELS, sweep_html
from disksla.benchmark.sweep_matrix import SweepRow
from support.sweeps import HEADER, PLAN, ROWS


class Outline(HTMLParser):
    """Counts tags, and checks that each is closed."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.open: list[str] = []
        self.levels: list[int] = []
        self.captions: list[str] = []
        self.feed(page)
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        named = dict(attrs)
        assert not {"src", "onclick", "onload"} & set(named)
        assert tag not in {"script", "link", "img", "iframe"}
        if tag != "meta":
            self.open.append(tag)
        level = re.match(r"l(\d+)", named.get("class") or "")
        if level:
            self.levels.append(int(level[1]))

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        if self.open[-1:] == ["caption"]:
            self.captions.append(data)


def test_each_map_shows_each_cell_once() -> None:
    page = sweep_html(HEADER, ROWS, "2026-11-20")
    outline = Outline(page)
    assert len(outline.levels) == 3 * len(ROWS)
    assert len(outline.captions) == 3 * 4
    assert ">29736</td>" in page
    assert ">10</td>" in page
    assert "32 of 32 cells" in page
    assert "&lt;b&gt;" in page
    assert "a file of 1 GiB in /data" in page


def test_colours_span_all_steps() -> None:
    page = sweep_html(HEADER, ROWS, "")
    assert {0, LEVELS - 1} <= set(Outline(page).levels)
    assert 'class="l7 deep">29736' in page


def test_missing_value_is_a_dash() -> None:
    unanswered = replace(ROWS[0], mean_latency_s=None)
    page = sweep_html(HEADER, (unanswered, *ROWS[2:]), "")
    assert page.count('class="none"') == 1 + 3
    Outline(page)


def test_sweep_without_results_is_noted() -> None:
    page = sweep_html(replace(HEADER, directory=None, file_bytes=None), (), "")
    assert "No cell was measured yet." in page
    assert "the device itself, read only" in page
    Outline(page)


numbers = st.floats(0, 1e12)


@given(
    st.lists(
        st.builds(SweepRow, st.sampled_from(PLAN.cells()), numbers | st.none(), numbers, numbers),
        max_size=6,
        unique_by=lambda row: row.cell,
    ).map(tuple)
)
def test_any_numbers_give_a_valid_page(rows: tuple[SweepRow, ...]) -> None:
    levels = Outline(sweep_html(HEADER, rows, "")).levels
    assert all(0 <= level < LEVELS for level in levels)

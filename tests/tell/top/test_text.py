"""Lines, numbers, strips and curves: their width, and what they show."""

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len

from disksla.tell.top.columns import number, percent
from disksla.tell.top.line import (
    BLOCKS,
    LETTERS,
    Line,
    Span,
    cells,
    clean,
    curve,
    fit,
    fit_line,
    strip,
    wrap,
)
from disksla.verdict.throttling import VERDICTS, Verdict
from support.documents import HOSTILE
from support.examples import scaled

TEXTS = st.text(max_size=60) | st.just(HOSTILE)
WIDTHS = st.integers(0, 40)


@scaled(300)
@given(TEXTS)
def test_clean_text_has_nothing_to_execute_and_no_more_cells_than_counted(text: str) -> None:
    cleaned = clean(text)
    assert cleaned.isprintable()
    assert clean(cleaned) == cleaned
    assert cell_len(cleaned) <= cells(cleaned)


@scaled(300)
@given(TEXTS, WIDTHS, st.booleans())
def test_fitted_text_has_its_width(text: str, width: int, is_number: bool) -> None:
    assert cells(fit(text, width, is_number=is_number)) == width


@pytest.mark.parametrize(
    ("text", "width", "fitted"),
    [("vdb", 5, "vdb  "), ("nvme10n1", 5, "nvme~"), ("数据库", 4, "数~ "), ("a\nb", 5, "a\\nb ")],
)
def test_text_is_filled_or_cut_off(text: str, width: int, fitted: str) -> None:
    assert fit(text, width) == fitted


def test_numbers_are_on_the_right() -> None:
    assert fit("12", 5, is_number=True) == "   12"


@scaled(200)
@given(st.lists(st.builds(Span, TEXTS), max_size=4).map(tuple), WIDTHS)
def test_fitted_line_has_its_width(line: Line, width: int) -> None:
    assert sum(cells(span.text) for span in fit_line(line, width)) == width


def test_selection_reaches_the_edge() -> None:
    assert fit_line((Span("vdb", "selected"),), 5)[-1] == Span("  ", "selected")
    assert fit_line((Span("vdb", "strong"),), 5)[-1] == Span("  ", "")


@scaled(200)
@given(TEXTS, st.integers(8, 40))
def test_wrapped_text_fits(text: str, width: int) -> None:
    assert all(cells(line) <= width for line in wrap(text, width))


def test_text_that_is_too_long_is_cut_at_a_word() -> None:
    assert wrap("one two three four", 9, 2) == ["one two", "three ..."]
    assert wrap("one two", 9, 2) == ["one two"]
    assert wrap("数据库 数据库 数据库", 16) == ["数据库 数据库", "数据库"]


@scaled(300)
@given(st.none() | st.floats(0, 1e300), st.integers(6, 9))
def test_number_fits_and_is_not_cut(value: float | None, width: int) -> None:
    for text in (number(value, width), percent(value, width)):
        assert len(text) <= width + 1
        assert text == "-" if value is None else text[0].isdigit()
    assert len(number(value, width)) <= width


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (None, "-"), (0.0, "0.00"), (3.14159, "3.14"), (9.996, "10.0"), (42.42, "42.4"),
        (99.96, "100"), (312.4, "312"), (123_456.0, "123456"), (1_234_567.0, "1235k"),
        (12_345_678_901.0, "12346M"), (5e20, "5e+20"),
    ],
)  # fmt: skip
def test_numbers_are_written_as_iostat_does(value: float | None, text: str) -> None:
    assert number(value, 6) == text


def test_percents() -> None:
    assert [percent(ratio, 5) for ratio in (None, 0.003, 0.981, 1.0, 1.25, 40.0)] == [
        "-", "0.30%", "98.1%", "100%", "125%", "4000%",
    ]  # fmt: skip


MINUTES = st.lists(st.none() | st.sampled_from(VERDICTS), max_size=60)


@scaled(200)
@given(MINUTES, WIDTHS)
def test_strip_has_its_width_and_the_worst_verdict(
    verdicts: list[Verdict | None], width: int
) -> None:
    spans = strip(verdicts, width, LETTERS)
    text = "".join(span.text for span in spans)
    assert len(text) == width
    assert all(set(span.text) <= {LETTERS[each], " "} for span in spans for each in VERDICTS
               if span.style == each)  # fmt: skip
    known = [each for each in verdicts if each is not None]
    if known and width:
        worst = max(known, key=VERDICTS.index)
        assert LETTERS[worst] in text
        assert {span.style for span in spans} - {""} <= set(known)


def test_strip_ends_at_the_present() -> None:
    verdicts: list[Verdict | None] = [None, "idle", "met", "throttled", "idle"]
    assert [span.text for span in strip(verdicts, 7, BLOCKS)] == ["   ", "▁", "▃", "▅", "▁"]
    assert "".join(span.text for span in strip(verdicts, 3, LETTERS)) == (" +T")


@scaled(200)
@given(st.lists(st.none() | st.floats(0, 1e9), max_size=60), st.floats(0, 1e9), st.booleans())
def test_curve_has_a_character_for_each_value(
    values: list[float | None], top: float, has_blocks: bool
) -> None:
    text = curve(values, top, has_blocks=has_blocks)
    assert len(text) == len(values)
    assert text.isascii() or has_blocks
    assert all((letter == " ") == (value is None) for letter, value in zip(text, values,
               strict=True))  # fmt: skip


def test_curve_is_as_high_as_the_share_of_its_top() -> None:
    assert curve([0.0, 50.0, 100.0, None, 200.0], 100.0, has_blocks=True) == "▁▅█ █"
    assert curve([0.0, 50.0, 100.0, None], 100.0, has_blocks=False) == "_=# "
    assert curve([0.0], 0.0, has_blocks=True) == "▁"

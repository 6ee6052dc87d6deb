"""Pressure."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.procfs.pressure import parse_pressure_s

TEXT = """\
some avg10=0.81 avg60=3.79 avg300=1.40 total=4940862
full avg10=0.77 avg60=3.69 avg300=1.36 total=4799013
"""


def test_totals_are_seconds() -> None:
    assert parse_pressure_s(TEXT) == (4.940862, 4.799013)


@pytest.mark.parametrize(
    "text",
    [
        "",
        "some total=1\n",
        TEXT.replace("total", "sum"),
        TEXT.replace("total=", f"total={10**400}"),
    ],
)
def test_anything_else_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no totals of some and full"):
        parse_pressure_s(text)


@given(st.text())
def test_any_text_is_parsed_or_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no totals"):
        parse_pressure_s(text)

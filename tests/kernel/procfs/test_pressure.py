"""Parsing of /proc/pressure/io."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.procfs.iowait import parse_pressure_s

TEXT = """\
some avg10=0.81 avg60=3.79 avg300=1.40 total=4940862
full avg10=0.77 avg60=3.69 avg300=1.36 total=4799013
"""


def test_parse_pressure_returns_seconds() -> None:
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
def test_parse_pressure_rejects_missing_totals(text: str) -> None:
    with pytest.raises(ValueError, match="expected lines 'some' and 'full'"):
        parse_pressure_s(text)


@given(st.text())
def test_parse_pressure_rejects_any_other_text(text: str) -> None:
    with pytest.raises(ValueError, match="expected lines 'some' and 'full'"):
        parse_pressure_s(text)

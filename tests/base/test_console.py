"""JSON output of commands."""

import json

from hypothesis import given
from hypothesis import strategies as st

from disksla.base.console import to_json


def test_whole_numbers_are_written_without_a_point() -> None:
    assert to_json([1.0, 11250.000000000002, 0.5, None, True, "1.0"]) == (
        '[\n  1,\n  11250,\n  0.5,\n  null,\n  true,\n  "1.0"\n]'
    )


@given(st.floats(-1e14, 1e14))
def test_numbers_keep_fifteen_digits(number: float) -> None:
    assert abs(json.loads(to_json({"n": number}))["n"] - number) <= abs(number) * 1e-14

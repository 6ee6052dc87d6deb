"""Lists of CPUs; tests/integration/test_data_writes.py has what needs a permission."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.perf_events import parse_cpus


@pytest.mark.parametrize(
    ("text", "expected"),
    [("0\n", (0,)), ("0-3\n", (0, 1, 2, 3)), ("0-1,4,6-7\n", (0, 1, 4, 6, 7))],
)
def test_list_of_cpus(text: str, expected: tuple[int, ...]) -> None:
    assert parse_cpus(text) == expected


@pytest.mark.parametrize("text", ["", "\n", "all", "0-", "0,,1", "-1"])
def test_anything_else_is_an_error(text: str) -> None:
    with pytest.raises(DiskslaError, match="expected a list of CPUs such as 0-3,6"):
        parse_cpus(text)


@given(st.sets(st.integers(0, 300), min_size=1))
def test_any_set_of_cpus_round_trips(cpus: set[int]) -> None:
    assert parse_cpus(",".join(map(str, sorted(cpus)))) == tuple(sorted(cpus))

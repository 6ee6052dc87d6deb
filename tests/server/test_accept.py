"""What a client accepts."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.server.accept import accepted, accepts_gzip


@pytest.mark.parametrize(
    ("header", "is_accepted"),
    [
        ("gzip", True),
        ("deflate, GZIP ; Q=0.5", True),
        ("gzip;q=1.000", True),
        ("gzip;q=0.001", True),
        ("", False),
        ("*", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000, identity", False),
        ("gzip; q = 0", False),
        ("identity;q=1, gzip;q=0.5", False),
        ("identity;q=0.5, gzip;q=0.5", True),
        ("gzip;q=2", False),
        ("gzip;q=", False),
        ("gzip;q=\u0661", False),
    ],
)
def test_gzip(header: str, is_accepted: bool) -> None:
    assert accepts_gzip(header) is is_accepted


def test_parameters_are_apart_from_the_quality() -> None:
    [first, second] = accepted("Text/Plain; Version=0.0.4 ;q=0.3 , */*")
    assert first == ("text/plain", frozenset({"version=0.0.4"}), 0.3)
    assert second == ("*/*", frozenset(), 1.0)


@given(st.text())
def test_any_header_has_qualities(header: str) -> None:
    assert all(0.0 <= each.quality <= 1.0 for each in accepted(header))

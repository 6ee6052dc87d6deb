"""Device patterns: what they match, and that a search takes linear time."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.promise.configuration.settings import DevicePattern


@given(st.text(max_size=20), st.text(max_size=20))
def test_pattern_is_searched_in_name(text: str, name: str) -> None:
    pattern = DevicePattern.parse(re.escape(text))
    assert pattern.is_in(name) == (text in name)
    assert pattern.is_in(name + text)


@pytest.mark.parametrize(
    "pattern", ["(a|a)*b", "(a+)+b", "(a|aa)+$", "(?:a?){99}a{99}$", "(.*)*b"]
)
def test_search_time_is_linear(pattern: str) -> None:
    """Python's `re` takes exponential time for each of these."""
    assert not DevicePattern.parse(pattern).is_in("a" * 255 + "!")


@pytest.mark.parametrize(
    "text", ["(", "[", "*", "(?=a)", r"(a)\1", "a{9999}", "((a{99}){99}){99}"]
)
def test_parse_rejects_invalid_expressions(text: str) -> None:
    with pytest.raises(
        ValueError, match=r"^found '.*'; expected a regular expression \(.+\)$"
    ) as raised:
        DevicePattern.parse(text)
    assert text in str(raised.value)


def test_search_in_name_with_surrogates() -> None:
    assert DevicePattern.parse("^sd.$").is_in("sd\udcff")
    assert not DevicePattern.parse("^sd$").is_in("sd\udcff")


def test_patterns_are_equal_by_text() -> None:
    assert DevicePattern.parse("^vd") == DevicePattern("^vd")

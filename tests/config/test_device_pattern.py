"""Expressions are searched in time by the length of the name, whatever they say."""

import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.device_pattern import DevicePattern


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_text_is_found_where_it_stands(text: str, name: str) -> None:
    pattern = DevicePattern.parse(re.escape(text))
    assert pattern.is_in(name) == (text in name)
    assert pattern.is_in(name + text)


@pytest.mark.parametrize(
    "pattern", ["(a|a)*b", "(a+)+b", "(a|aa)+$", "(?:a?){99}a{99}$", "(.*)*b"]
)
def test_no_expression_takes_for_ever(pattern: str) -> None:
    """Python's own re would need more steps for each of these than anybody has time for."""
    assert not DevicePattern.parse(pattern).is_in("a" * 255 + "!")


@pytest.mark.parametrize(
    "text", ["(", "[", "*", "(?=a)", r"(a)\1", "a{9999}", "((a{99}){99}){99}"]
)
def test_others_are_refused_by_name(text: str) -> None:
    with pytest.raises(ValueError, match=r"^'.*' is no regular expression \(.+\)$") as refused:
        DevicePattern.parse(text)
    assert text in str(refused.value)


def test_a_name_that_is_no_text_is_searched_too() -> None:
    assert DevicePattern.parse("^sd.$").is_in("sd\udcff")
    assert not DevicePattern.parse("^sd$").is_in("sd\udcff")


def test_patterns_are_known_by_what_they_say() -> None:
    assert DevicePattern.parse("^vd") == DevicePattern("^vd")

"""Groups that are held at their own limit."""

from math import inf

import pytest

from disksla.base.counts import Counts
from disksla.kernel.consumers.consumption import OwnLimit
from disksla.kernel.consumers.sharing import Limited, OwnLimits
from support.cgroup_tree import NUMBER

LIMITED = {3: Limited("checkout.service", {NUMBER: Counts(inf, 50, inf, inf)})}
HELD = (OwnLimit("vda", "checkout.service", "writes", 50.0),)


def held(rates: list[float], limited: dict[int, Limited] | None = None) -> list[bool]:
    """Return after each second whether the group is held; it writes so much in each."""
    limits, total, found = OwnLimits(), 0.0, []
    for second, rate in enumerate(rates):
        total += rate
        counted = {3: {NUMBER: Counts(0, total, 0, 4096 * total)}}
        own = limits.after(float(second), counted, limited or LIMITED, {NUMBER: "vda"})
        assert own in ((), HELD)
        found.append(bool(own))
    return found


def test_the_rate_of_the_limit_for_ten_seconds() -> None:
    assert held([50.0] * 13) == [False] * 10 + [True] * 3
    assert held([51.4, 49.0] * 7)[-1]


@pytest.mark.parametrize("rate", [0.0, 30.0, 48.4, 51.6, 200.0])
def test_another_rate_is_not_held(rate: float) -> None:
    assert not any(held([rate] * 20))


def test_a_limit_that_is_none_holds_nobody() -> None:
    limits = {3: Limited("a.service", {NUMBER: Counts(inf, inf, inf, inf)})}
    assert not any(held([0.0] * 20, limits))
    assert not any(held([0.0] * 20, {3: Limited("a.service", {NUMBER: Counts(0, 0, 0, 0)})}))


def test_a_limit_at_another_disk_is_left_out() -> None:
    limits = OwnLimits()
    found: tuple[OwnLimit, ...] = ()
    for second in range(13):
        counted = {3: {NUMBER: Counts(0, 50.0 * second, 0, 0)}}
        found = limits.after(float(second), counted, LIMITED, {"8:0": "sda"})
    assert found == ()


def test_a_group_that_ended_is_not_held() -> None:
    limits = OwnLimits()
    for second in range(11):
        counted = {3: {NUMBER: Counts(0, 50.0 * second, 0, 0)}}
        limits.after(float(second), counted, LIMITED, {NUMBER: "vda"})
    assert limits.after(11.0, {}, LIMITED, {NUMBER: "vda"}) == ()


def test_nothing_is_known_before_it_was_cleared() -> None:
    limits = OwnLimits()
    for second in range(11):
        counted = {3: {NUMBER: Counts(0, 50.0 * second, 0, 0)}}
        limits.after(float(second), counted, LIMITED, {NUMBER: "vda"})
    limits.clear()
    counted = {3: {NUMBER: Counts(0, 550.0, 0, 0)}}
    assert limits.after(11.0, counted, LIMITED, {NUMBER: "vda"}) == ()

"""What lies between two readings: leaves, the kernel, groups that ended, and debts."""

from math import inf

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.counts import Counts
from disksla.kernel.consumers import sharing
from disksla.kernel.consumers.consumption import (
    NOTHING,
    Consumption,
    OwnLimit,
    WatchedDisk,
    parse_io_max,
    parse_io_stat,
)
from disksla.kernel.consumers.groups import Group, GroupTree
from disksla.kernel.consumers.sharing import Limited, OwnLimits
from support.cgroup_tree import NUMBER

ROOT, TOP, A, B = 1, 2, 3, 4
ROLES = sharing.Roles(ROOT, (TOP,), {A: "a.service", B: "b.service"})
DISK = WatchedDisk("vda", NUMBER, is_busy=True, requests=0, merges=0, largest_request_bytes=None)


def counted(**written: int) -> dict[int, dict[str, Counts]]:
    """Return a reading in which groups have written so many bytes, in requests of 100."""
    ids = {"root": ROOT, "top": TOP, "a": A, "b": B}
    return {
        ids[name]: {NUMBER: Counts(0, amount / 100, 0, amount)} for name, amount in written.items()
    }


def test_the_root_has_what_the_kernel_did_and_a_parent_what_ended_groups_did() -> None:
    before = counted(root=1000, top=900, a=500, b=100)
    after = counted(root=2000, top=1700, a=900, b=300)
    growth = sharing.growth_at(before, after, ROLES, NUMBER)
    assert growth.kernel == Counts(0, 2, 0, 200)
    assert growth.unattributed == Counts(0, 2, 0, 200)
    assert growth.consumers == {
        "a.service": Counts(0, 4, 0, 400),
        "b.service": Counts(0, 2, 0, 200),
    }


def test_a_group_that_ended_or_is_new_has_no_difference() -> None:
    """But for what was made since the scan before: all that it did counts."""
    before, after = counted(root=0, top=0, a=500), counted(root=900, top=900, b=300)
    assert sharing.growth_at(before, after, ROLES, NUMBER).consumers == {}
    new = ROLES._replace(made_since=frozenset({B}))
    growth = sharing.growth_at(before, after, new, NUMBER)
    assert growth.consumers == {"b.service": Counts(0, 3, 0, 300)}
    assert growth.unattributed.bytes == 600


def test_other_disks_do_not_count() -> None:
    before, after = counted(root=0, top=0, a=0), counted(root=900, top=900, a=300)
    assert sharing.growth_at(before, after, ROLES, "8:0") == sharing.Growth(NOTHING, NOTHING, {})


@given(st.lists(st.integers(-50, 200), min_size=1, max_size=30))
def test_requests_in_flight_do_not_add_up_to_io_of_the_kernel(kernel: list[int]) -> None:
    """What is published is at most the highest sum until then."""
    debt, published = None, 0.0
    sums = [sum(kernel[: index + 1]) for index in range(len(kernel))]
    for written in kernel:
        growth = sharing.Growth(Counts(0, 0, 0, written), NOTHING, {})
        positive, debt = sharing.with_debt(growth, debt)
        assert positive.kernel.written_bytes >= 0
        published += positive.kernel.written_bytes
    assert published == max(0, *sums)


@pytest.mark.parametrize(
    ("merges", "bytes_each", "largest", "known"),
    [
        (0, 4096, 131072, True),
        (2, 4096, 131072, True),
        (3, 4096, 131072, False),
        (0, 131072, 131072, False),
        (0, 131072, None, True),
    ],
)
def test_requests_are_known_where_few_are_merged_or_split(
    merges: int, bytes_each: int, largest: int | None, known: bool
) -> None:
    disk = DISK._replace(requests=100, merges=merges, largest_request_bytes=largest)
    growth = sharing.Growth(NOTHING, NOTHING, {"a.service": Counts(0, 100, 0, 100 * bytes_each)})
    assert sharing.counts_requests(disk, DISK, growth) is known


def test_no_more_than_a_few_consumers_are_named() -> None:
    many = {f"{index:02}.service": Counts(0, 1, 0, 1000 + index) for index in range(20)}
    growth = sharing.Growth(Counts(0, 0, 0, 7), NOTHING, many)
    found = sharing.consumptions("vda", growth, with_requests=False)
    assert [each.consumer for each in found[:2]] == ["19.service", "18.service"]
    assert len(found) == sharing.MOST_NAMED + 2
    assert found[-2:] == [
        Consumption("vda", "other", bytes=4006.0),
        Consumption("vda", "kernel", bytes=7.0),
    ]
    assert sum(each.bytes or 0 for each in found) == sum(a.bytes for a in many.values()) + 7


def tree(*groups: tuple[int, int, bool]) -> GroupTree:
    """Return a tree of groups: id, id of the group above, and whether it has io.stat."""
    return GroupTree({each: Group(each, above, f"/{each}", io) for each, above, io in groups})


def test_leaves_are_the_lowest_groups_that_count() -> None:
    found = tree((1, 0, True), (2, 1, True), (3, 1, True), (4, 2, True), (5, 2, True),
                 (6, 4, False))  # fmt: skip
    assert [group.id for group in found.leaves(100)] == [3, 4, 5]
    assert [group.id for group in found.tops] == [2, 3]
    assert [group.id for group in found.above(found.groups[4])] == [2]


def test_a_group_stands_for_those_below_it_where_there_are_too_many() -> None:
    few = [(1, 0, True), (2, 1, True), (3, 1, True), (4, 3, True), (5, 3, True)]
    many = [(number, 2, True) for number in range(10, 10_010)]
    found = tree(*few, *many)
    assert [group.id for group in found.leaves(100)] == [2, 4, 5]
    assert len(found.leaves(20_000)) == 10_002
    assert tree().leaves(100) == []


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


def test_numbers_by_disk() -> None:
    text = (
        "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n"
        "254:16 rbytes=0 wbytes=512 rios=0 wios=1 dbytes=0 dios=0 cost.usage=7\n"
    )
    assert parse_io_stat(text) == {
        "254:0": Counts(1, 2, 4096, 8192),
        "254:16": Counts(0, 1, 0, 512),
    }
    assert parse_io_stat("") == {}


def test_disks_without_numbers_may_be_alone_or_before_another() -> None:
    """As some kernels print them."""
    text = "7:1 7:0 254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n8:0 \n"
    assert parse_io_stat(text) == {"254:0": Counts(3, 4, 1, 2), "8:0": Counts()}


def test_an_odd_line_costs_the_line_only() -> None:
    """A path of NVMe has no name of its own, so the kernel prints (unknown)."""
    nameless = "(unknown) rbytes=9 rios=7\n"
    for odd in (nameless, "vda rbytes=1\n", "254:16 rbytes=x\n"):
        assert parse_io_stat(f"{odd}254:0 rbytes=1 wbytes=2 rios=3 wios=4\n") == {
            "254:0": Counts(3, 4, 1, 2)
        }
    assert parse_io_stat(nameless) == {}
    limits = parse_io_max("(unknown) rbps=1 wbps=max riops=max wiops=max\n254:0 wiops=50\n")
    assert limits == {"254:0": Counts(inf, 50, inf, inf)}


@pytest.mark.parametrize("text", ["vda rbytes=1\n", "254:0 rbytes=x\n", "254:0 garbage\n"])
def test_other_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="found"):
        parse_io_stat(text)


def test_limits_by_disk() -> None:
    text = "254:0 rbps=max wbps=1048576 riops=max wiops=50\n"
    assert parse_io_max(text) == {"254:0": Counts(inf, 50, inf, 1048576)}
    assert parse_io_max("") == {}
    for other in ("many", "-1", "nan", "1_0", "18446744073709551616"):
        with pytest.raises(ValueError, match="expected a disk"):
            parse_io_max(f"254:0 wiops={other}\n")

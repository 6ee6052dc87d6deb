"""Promises of arrays: examples, and any array beside requests that go down to its disks."""

from collections import Counter
from collections.abc import Iterator, Mapping
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.disks.disk import Disk
from disksla.kernel.disks.layer import How, Layer
from disksla.promise.array_promise import (
    Array,
    ArrayPart,
    ArrayPromise,
    Bound,
    arrays_of,
    layers_of,
    promise_of,
)
from disksla.promise.catalogue import NO_LIMITS, Limits, Rates, build_limits

_REQUESTS = 1200


def node(how: How, *members: ArrayPart | str, copies: int = 1) -> ArrayPart:
    names = tuple(member if isinstance(member, str) else "md" for member in members)
    return ArrayPart(Layer(how, how, names, copies), members)


def limits(read: float | None, write: float | None = None) -> Limits:
    return build_limits(Rates(read_iops=read, write_iops=write or read), "separate")


def promised(
    tree: ArrayPart | str | None,
    of: Mapping[str, Limits],
    *machine: Bound,
    rotational: bool | None = False,
) -> ArrayPromise | None:
    device = Disk("dm-0", 253, 0, 1, rotational=rotational)
    return promise_of(Array(device, tuple(of), tree), of, machine)


A, B, C, D = "abcd"
SAME = dict.fromkeys((A, B, C, D), limits(300, 200))
UNEVEN = {A: limits(300), B: limits(100)}


@pytest.mark.parametrize(
    ("tree", "of", "read", "write", "binds", "is_uneven"),
    [
        (node("striped", A, B, C, D), SAME, 1200, 800, "abcd", False),
        (node("striped", A, B), UNEVEN, 200, 200, "b", True),
        (node("striped", A, B, C, D, copies=2), SAME, 1200, 400, "abcd", False),
        (node("striped", A, B, C, copies=2), SAME, 900, 300, "abc", False),
        (node("mirrored", A, B), SAME, 600, 200, "ab", False),
        (node("mirrored", A, B), UNEVEN, 100, 100, "b", False),
        (node("striped", A, B, copies=2), UNEVEN, 100, 100, "b", True),
        (node("linear", A, B), UNEVEN, 100, 100, "b", False),
        (node("linear", A), SAME, 300, 200, "a", False),
        (node("striped", A, node("mirrored", B, C)), SAME, 600, 400, "a", True),
        (node("linear", node("striped", A, B), C), SAME, 300, 200, "c", False),
        # Two parts of one disk share what it is promised.
        (node("striped", A, A, B, B), SAME, 600, 400, "ab", False),
        (node("linear", A, A), SAME, 300, 200, "a", False),
    ],
)  # fmt: skip
def test_promise(
    tree: ArrayPart, of: dict[str, Limits], read: float, write: float, binds: str, is_uneven: bool
) -> None:
    used = {name: each for name, each in of.items() if name in str(tree.members)}
    promise = promised(tree, used)
    assert promise is not None
    assert (promise.rates.read_iops, promise.rates.write_iops) == (read, write)
    assert promise.rates.read_bytes_per_second is None
    assert ("".join(promise.binding["read_iops"]), promise.is_uneven) == (binds, is_uneven)


def test_a_mirror_writes_twice_to_the_machine() -> None:
    machine = Bound("the machine", frozenset("abcd"), Rates(read_iops=350, write_iops=350))
    promise = promised(node("mirrored", A, B), {A: SAME[A], B: SAME[B]}, machine)
    assert promise is not None
    assert promise.rates == Rates(read_iops=350, write_iops=175)
    assert promise.binding == dict.fromkeys(("read_iops", "write_iops"), ("the machine",))


@pytest.mark.parametrize("rotational", [True, None])
def test_one_copy_may_serve_all_reads_of_rotational_disks(rotational: bool | None) -> None:
    promise = promised(node("striped", A, B, C, D, copies=2), SAME, rotational=rotational)
    assert promise is not None
    assert (promise.rates.read_iops, promise.rates.write_iops) == (600, 400)


@pytest.mark.parametrize(
    ("tree", "of"),
    [
        (None, SAME),
        (node("unknown", A, B), SAME),
        (node("linear", node("unknown", A, B)), SAME),
        (node("striped", A, B), {A: SAME[A], B: NO_LIMITS}),
    ],
)
def test_what_is_not_known_is_not_promised(tree: ArrayPart | None, of: dict[str, Limits]) -> None:
    assert promised(tree, of) is None
    array = Array(Disk("dm-0", 253, 0, 1), (A, "e"), node("striped", A, "e"))
    assert promise_of(array, SAME) is None


TREES = st.recursive(
    st.sampled_from("abcd"),
    lambda members: st.builds(
        lambda how, members: node(how, *members),
        st.sampled_from(("linear", "striped", "mirrored")),
        st.lists(members, min_size=1, max_size=3),
    ),
    max_leaves=5,
)
RATES = st.fixed_dictionaries({name: st.integers(10, 40) for name in "abcd"})


def targets(
    tree: ArrayPart | str, used: Counter[str], rates: Mapping[str, int], part: int, *, writes: bool
) -> Iterator[list[str]]:
    """Yield the disks of one request after another, as the kernel chooses them.

    A linear array is used in the `part` of its load only, and of a mirror the disk is read that
    would be free first.
    """
    if isinstance(tree, str):
        while True:
            yield [tree]
    below = [targets(each, used, rates, part // 3, writes=writes) for each in tree.members]
    count, turn = len(below), 0
    while True:
        match tree.layer.how:
            case "linear":
                yield next(below[part % count])
            case "striped":
                yield next(below[turn % count])
            case _ if writes:
                yield [disk for each in below for disk in next(each)]
            case _:
                offers = [next(each) for each in below]
                yield min(offers, key=lambda disks: max((used[d] + 1) / rates[d] for d in disks))
        turn += 1


@given(TREES.filter(lambda tree: not isinstance(tree, str)), RATES, st.booleans())
def test_no_disk_is_above_its_limit_at_the_promise(
    tree: ArrayPart, rates: dict[str, int], writes: bool
) -> None:
    reached = []
    for part in range(9):
        used = Counter[str]()
        for disks in islice(targets(tree, used, rates, part, writes=writes), _REQUESTS):
            used.update(disks)
        reached.append(_REQUESTS / max(count / rates[disk] for disk, count in used.items()))
    promise = promised(tree, {name: limits(rate) for name, rate in rates.items()})
    assert promise is not None
    rate = promise.rates.write_iops if writes else promise.rates.read_iops
    assert rate is not None
    assert rate <= 1.03 * min(reached)
    if "linear" not in str(tree) and (writes or "mirrored" not in str(tree)):
        assert rate >= 0.97 * min(reached)


def test_arrays_of_a_machine() -> None:
    raid = Layer("striped", "RAID 0", ("sda1", "sdb"))
    disks = [
        Disk("sda", 8, 0, 10),
        Disk("sda1", 8, 1, 4, partition_of="sda", holders=("md0",)),
        Disk("sdb", 8, 16, 10, holders=("md0",)),
        Disk("sdc", 8, 32, 10, path_of="sdb"),
        Disk("md0", 9, 0, 14, slaves=("sda1", "sdb"), layer=raid, holders=("dm-0",)),
        Disk("dm-0", 254, 0, 14, slaves=("md0",), layer=Layer("linear", "LVM", ("md0",))),
        Disk("dm-1", 254, 1, 14, slaves=("sdb",), layer=Layer("linear", "LVM", ("sdb",))),
        Disk("dm-2", 254, 2, 14, slaves=("sdb", "sdc"), layer=Layer("linear", "", ("sdb", "sdc"))),
        Disk("bcache0", 252, 0, 14, slaves=("sda", "sdb")),
        Disk("dm-3", 254, 3, 14, slaves=("sda", "dm-3"), layer=Layer("linear", "", ("dm-3",))),
    ]
    found = {array.device.name: array for array in arrays_of(disks)}
    assert found.keys() == {"dm-0", "bcache0"}
    assert [layer.title for layer in layers_of(found["dm-0"].tree)] == ["LVM", "RAID 0"]
    assert found["dm-0"].disks == found["bcache0"].disks == ("sda", "sdb")
    assert found["bcache0"].tree is None

"""Mutations are many, bounded, and the same again for the same choices."""

import json
import random

import pytest

from fuzz.mutation import LONGEST, mutate, swollen
from fuzz.target import Target, Tree

GOOD = b'{"disks": [{"name": "vda", "size": 100}, {"name": "vdb", "size": 200}], "on": true}'
TREE = Tree(json.loads, lambda tree: json.dumps(tree).encode())
BYTES = Target("bytes", lambda _: True, lambda: [GOOD], words=(b"word",))
TREES = BYTES._replace(tree=TREE)


def some(target: Target, count: int = 300) -> list[bytes]:
    return [
        mutate(GOOD, target, [GOOD], random.Random(number).randrange) for number in range(count)
    ]


@pytest.mark.parametrize("target", [BYTES, TREES], ids=["bytes", "trees"])
def test_they_are_many_and_bounded_and_the_same_again(target: Target) -> None:
    mutations = some(target)
    assert mutations == some(target)
    assert len(set(mutations)) > 250
    assert max(map(len, mutations)) <= LONGEST
    assert any(b"word" in each for each in mutations)


def test_half_of_those_of_a_tree_are_trees() -> None:
    mutations = some(TREES)
    trees = sum(_is_tree(each) for each in mutations)
    assert trees > len(mutations) / 5
    assert trees > 3 * sum(map(_is_tree, some(BYTES)))


def _is_tree(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


def test_what_has_no_tree_is_edited_by_bytes() -> None:
    target = BYTES._replace(tree=TREE)
    torn = GOOD[:-1]
    mutations = [mutate(torn, target, [torn], random.Random(n).randrange) for n in range(50)]
    assert len(set(mutations)) > 20


def test_a_swollen_one_keeps_what_was_there() -> None:
    for number in range(50):
        content = swollen(GOOD, random.Random(number).randrange)
        assert len(content) > 200_000
        assert content[:1] in {GOOD[:1], b" ", b"\n", b"\t"}

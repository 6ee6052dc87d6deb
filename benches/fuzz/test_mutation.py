"""Mutations differ, are bounded in size, and can be repeated."""

import json
import random

import pytest

from fuzz.mutation import MOST_BYTES, expand, mutate
from fuzz.target import Target, Tree

GOOD = b'{"disks": [{"name": "vda", "size": 100}, {"name": "vdb", "size": 200}], "on": true}'
TREE = Tree(json.loads, lambda tree: json.dumps(tree).encode())
BYTES = Target("bytes", lambda _: True, lambda: [GOOD], words=(b"word",))
TREES = BYTES._replace(tree=TREE)


def mutations_of(target: Target, count: int = 300) -> list[bytes]:
    return [
        mutate(GOOD, target, [GOOD], random.Random(number).randrange) for number in range(count)
    ]


@pytest.mark.parametrize("target", [BYTES, TREES], ids=["bytes", "trees"])
def test_mutations_differ_and_can_be_repeated(target: Target) -> None:
    mutations = mutations_of(target)
    assert mutations == mutations_of(target)
    assert len(set(mutations)) > 250
    assert max(map(len, mutations)) <= MOST_BYTES
    assert any(b"word" in each for each in mutations)


@pytest.mark.nightly
def test_many_mutations_of_a_tree_are_trees() -> None:
    mutations = mutations_of(TREES)
    trees = sum(_is_tree(each) for each in mutations)
    assert trees > len(mutations) / 5
    assert trees > 3 * sum(map(_is_tree, mutations_of(BYTES)))


def _is_tree(content: bytes) -> bool:
    try:
        json.loads(content)
    except ValueError:
        return False
    return True


@pytest.mark.nightly
def test_invalid_tree_is_edited_by_bytes() -> None:
    target = BYTES._replace(tree=TREE)
    truncated = GOOD[:-1]
    mutations = [
        mutate(truncated, target, [truncated], random.Random(n).randrange) for n in range(50)
    ]
    assert len(set(mutations)) > 20


@pytest.mark.nightly
def test_expanded_input_keeps_its_beginning() -> None:
    for number in range(50):
        content = expand(GOOD, random.Random(number).randrange)
        assert len(content) > 200_000
        assert content[:1] in {GOOD[:1], b" ", b"\n", b"\t"}

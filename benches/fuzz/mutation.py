"""Mutations of valid input: edits of bytes, and of branches of a parsed tree.

The caller makes the choices, so that a mutation can be repeated.
"""

import copy
from collections.abc import Callable, Iterator
from typing import Any

from fuzz.target import Target, Tree

Choose = Callable[[int], int]
"""Returns a number from 0 to below its argument."""

MOST_EDITS = 4
MOST_BYTES = 64 * 1024
"""Size limit of mutations; longer input covers nothing more."""

EXPANDED_BYTES = 256 * 1024
"""Least size of expanded input; code that takes quadratic time needs minutes for it."""

_ODD_BYTES = (
    *(b"\x00", b"\xff", b"\n", b"\r\n", b"\t", b" ", b"\\", b'"', b"'", b"<", b"&", b"\x1b[2J"),
    *("\u202e".encode(), "\u2028".encode(), "\u0661".encode(), b"\xed\xa0\x80", b"\xef\xbb\xbf"),
    *(b"0", b"-1", b"1e999", b"NaN", b"18446744073709551616", b"9" * 5000, b"{", b"[", b"]", b"}"),
)
_ODD_VALUES: tuple[Any, ...] = (
    *(None, "", "\x00", "\x1b[2J", "\ud800", "<script>", "a" * 5000, True, [], {}, [[[]]]),
    *(-1, 0, 2**31, 2**32, 2**53, 2**63, 2**64, 10**30, 0.1, -0.0, 1e308, 5e-324, 1e19),
)


def mutate(content: bytes, target: Target, seeds: list[bytes], choose: Choose) -> bytes:
    """Return the content with a few edits, which insert words and parts of the seeds."""
    edits = 1 + choose(MOST_EDITS)
    if target.tree is not None and choose(2):
        content = _edit_tree(content, target.tree, choose)
        edits = choose(2)
    for _ in range(edits):
        content = _edit(content, target.words + _ODD_BYTES, seeds, choose)
    return content[:MOST_BYTES]


def expand(content: bytes, choose: Choose) -> bytes:
    """Return the content with a few of its bytes, or whitespace, repeated many times."""
    begin = choose(len(content) + 1)
    piece = (content[begin : begin + 1 + choose(3)], b" ", b"\n", b"\t")[choose(4)] or b" "
    return content[:begin] + piece * (EXPANDED_BYTES // len(piece)) + content[begin:]


def _edit(content: bytes, words: tuple[bytes, ...], seeds: list[bytes], choose: Choose) -> bytes:
    """Return the content with one edit."""
    begin = choose(len(content) + 1)
    end = begin + 1 + choose(1 << choose(8))
    before, place, after = content[:begin], content[begin:end], content[end:]
    word = words[choose(len(words))]
    other = seeds[choose(len(seeds))]
    edits: tuple[Callable[[], bytes], ...] = (
        lambda: before + after,
        lambda: before + place + place + after,
        lambda: before + word + place + after,
        lambda: before + word + after,
        lambda: before + bytes([choose(256)]) + place[1:] + after,
        lambda: before + place * (2 << choose(10)) + after,
        lambda: before,
        lambda: after + place + before,
        lambda: before + other[choose(len(other) + 1) :],
    )
    return edits[choose(len(edits))]()


def _edit_tree(content: bytes, tree: Tree, choose: Choose) -> bytes:
    """Return the content with changed branches; unchanged if it is not a tree."""
    try:
        root = tree.loads(content)
        for _ in range(1 + choose(MOST_EDITS)):
            places = list(_places(root))
            if places:
                _edit_branch(*places[choose(len(places))], places[choose(len(places))], choose)
        return tree.dumps(root)
    except (
        ValueError,
        OverflowError,
        RecursionError,
    ):  # not a tree, or one that cannot be encoded
        return content


def _edit_branch(parent: Any, key: Any, other: tuple[Any, Any], choose: Choose) -> None:
    """Change the value at one place of a tree."""
    value = parent[key]
    match choose(7):
        case 0:
            del parent[key]
        case 1 | 2:
            parent[key] = copy.deepcopy(_ODD_VALUES[choose(len(_ODD_VALUES))])
        case 3:
            parent[key] = copy.deepcopy(other[0][other[1]])
        case 4 if isinstance(parent, dict):
            parent[f"{key}{'x' * choose(3)}"] = parent.pop(key)
        case 5 if isinstance(parent, list):
            parent.extend([value] * (1 + choose(200)))
        case _ if isinstance(value, int | float):
            parent[key] = value * (-1, 0, 0.5, 2, 1e9, 2**32)[choose(6)]
        case _:
            parent[key] = str(value)


def _places(node: Any) -> Iterator[tuple[Any, Any]]:
    """Yield each place of a tree whose value can be changed, as container and key."""
    if isinstance(node, dict):
        entries = list(node.items())
    else:
        entries = list(enumerate(node)) if isinstance(node, list) else []
    for key, value in entries:
        yield node, key
        yield from _places(value)

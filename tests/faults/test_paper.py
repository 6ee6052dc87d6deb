"""docs/reliability.md: each row names tests that are there."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
PAPER = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
NAMED = sorted(set(re.findall(r"`(tests/\S+\.py)(?: -k (\w+))?`", PAPER)))
ROWS = re.findall(
    r"^\| (?!fault|-|:|scrapers|none|100, |ticks|\d+ \|)(.*) \|$", PAPER, re.MULTILINE
)


@pytest.mark.parametrize(("file", "words"), NAMED)
def test_what_shows_a_fault_is_there(file: str, words: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    tests = [
        node.name
        for node in tree.body
        if isinstance(node, ast.FunctionDef) and node.name.startswith("test_")
    ]
    assert [name for name in tests if words in name]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row).split(" |")[0])
def test_no_fault_is_only_told_of(row: str) -> None:
    assert "`tests/" in row.rsplit("|", 1)[1]

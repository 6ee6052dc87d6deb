"""docs/reliability.md: each row names tests that exist."""

import ast
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
DOCUMENT = (ROOT / "docs" / "reliability.md").read_text(encoding="utf-8")
TESTS = sorted(set(re.findall(r"`((?:tests|benches)/\S+\.py)(?: -k (\w+))?`", DOCUMENT)))
ROWS = re.findall(r"^\| (?!fault )(.*) \|$", DOCUMENT, re.MULTILINE)


@pytest.mark.parametrize(("file", "expression"), TESTS)
def test_named_test_exists(file: str, expression: str) -> None:
    tree = ast.parse((ROOT / file).read_text(encoding="utf-8"))
    tests = [
        node.name
        for node in tree.body
        if isinstance(node, (ast.FunctionDef, ast.AsyncFunctionDef))
        and node.name.startswith("test_")
    ]
    assert [name for name in tests if expression in name]


@pytest.mark.parametrize("row", ROWS, ids=lambda row: str(row).split(" |")[0])
def test_every_fault_names_a_test(row: str) -> None:
    assert re.search("`(tests|benches)/", row.rsplit("|", 1)[1])

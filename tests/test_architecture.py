"""The packages: what is pure, how a package is entered, and what docs/architecture.md shows."""

import ast
import configparser
import re
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "exporter" / "disksla"
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")
PURE_CONTRACT = SETUP["importlinter:contract:pure"]
PURE = set(PURE_CONTRACT["source_modules"].split())
MACHINE = set(PURE_CONTRACT["forbidden_modules"].split())
LAYERS = SETUP["importlinter:contract:layers"]["layers"].replace("|", " ").split()
PACKAGES = sorted(path.parent.name for path in SOURCE.glob("*/__init__.py"))
ENTER_BY_MODULE = {"commands", "daemon.py"}
"""They put the parts together, so they may import any module."""


def test_every_pure_module_is_on_the_list() -> None:
    graph = grimp.build_graph("disksla", include_external_packages=True)
    machine = MACHINE & graph.modules
    modules = {name for name in graph.modules if name.startswith("disksla.")}
    reaching = {name for name in modules if any(graph.chain_exists(name, m) for m in machine)}
    assert sorted(modules - reaching) == sorted(PURE)


def entries() -> Iterator[tuple[str, str]]:
    """Yield the file and the module of imports that enter another package by a pure module."""
    for path in SOURCE.rglob("*.py"):
        room = path.relative_to(SOURCE).parts[0]
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.ImportFrom) and node.module in PURE:
                package = node.module.split(".")[1]
                is_facade = node.module.count(".") == 1
                if not is_facade and package != room and room not in ENTER_BY_MODULE:
                    yield str(path.relative_to(SOURCE)), node.module


def test_a_package_is_entered_through_its_facade() -> None:
    assert sorted(entries()) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_a_facade_has_a_caption_and_lists_its_names(package: str) -> None:
    tree = ast.parse((SOURCE / package / "__init__.py").read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    imported = {
        alias.name
        for node in tree.body
        if isinstance(node, ast.ImportFrom)
        for alias in node.names
    }
    listed = [
        ast.literal_eval(node.value)
        for node in tree.body
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "__all__"
    ]
    assert set(listed[0] if listed else ()) == imported


def test_the_architecture_document_shows_every_package() -> None:
    document = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    [tree] = re.findall(r"^```\nexporter/disksla/\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)
    shown = re.findall(r"^  (\w+)(?:/|\.py) ", tree, re.MULTILINE)
    assert sorted(shown) == sorted(set(LAYERS) - {"__main__"})

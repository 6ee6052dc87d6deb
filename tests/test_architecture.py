"""Packages: pure modules, imports through facades, names of classes, docs/architecture.md."""

import ast
import configparser
import re
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import grimp
import pytest

from pure_files import MACHINE, pure_modules, touching_modules

ROOT = Path(__file__).resolve().parent.parent
SOURCE = ROOT / "exporter" / "disksla"
SETUP = configparser.ConfigParser()
SETUP.read(ROOT / "setup.cfg", encoding="utf-8")
PURE = pure_modules()
ROOMS = SETUP["importlinter:contract:layers"]["layers"].split()[1:]
"""Those of the contract, without `__main__`."""
PACKAGES = sorted(str(path.parent.relative_to(SOURCE)) for path in SOURCE.glob("*/**/__init__.py"))
"""Rooms, and the packages in them."""
OWN_FILES = "disksla.base.package_files"
"""Reads files of the package, which are part of the program."""
ANY_MODULE = {"commands", "serve/daemon.py"}
"""What puts the packages together and may import any module of them."""
IMPORT = re.compile(r"^ *from (disksla\.[\w.]+) import ", re.MULTILINE)
CLASS = re.compile(r"^ *class ([A-Za-z]\w*)[(:]", re.MULTILINE)
"""Those without an underscore."""
MOST_POSITIONS = 5
"""Arguments of a call by position. Of more, nobody sees which is which."""


def test_modules_use_no_file_clock_or_process_but_those_that_are_listed() -> None:
    """Facades (packages) are pure: a module that touches the machine is imported by its name."""
    graph = grimp.build_graph("disksla", include_external_packages=True)
    modules = {name for name in graph.modules if name.startswith("disksla.")}
    for importer in graph.find_modules_that_directly_import(OWN_FILES):
        graph.remove_import(importer=importer, imported=OWN_FILES)
    chains = {
        name: " -> ".join(chain)
        for name in modules
        for reached in MACHINE & graph.modules
        if (chain := graph.find_shortest_chain(name, reached))
    }
    unlisted = {name: chain for name, chain in chains.items() if name in PURE}
    assert unlisted == {}, "not in tests/pure_files.py"
    assert touching_modules() - chains.keys() == set(), "listed, but pure or removed"


def imports_past_a_facade() -> Iterator[tuple[str, str]]:
    """Yield file and module of each import of a pure module of another package."""
    for path in SOURCE.rglob("*.py"):
        file = path.relative_to(SOURCE)
        own = str(file.parent)
        if not ANY_MODULE.isdisjoint({str(file), own}):
            continue
        for module in IMPORT.findall(path.read_text(encoding="utf-8")):
            package = "/".join(module.split(".")[1:-1])
            if module in PURE and package not in {"", own, *ROOMS}:
                yield str(file), module


def test_packages_are_imported_through_their_facades() -> None:
    assert sorted(imports_past_a_facade()) == []


@pytest.mark.parametrize("package", PACKAGES)
def test_facade_has_a_caption_and_imports_names_only(package: str) -> None:
    tree = ast.parse((SOURCE / package / "__init__.py").read_text(encoding="utf-8"))
    assert ast.get_docstring(tree)
    others = [node for node in tree.body[1:] if not isinstance(node, ast.ImportFrom)]
    assert others == []


def test_no_two_classes_have_the_same_name() -> None:
    """A thing has one name (docs/glossary.md); those of a module alone have an underscore."""
    modules = defaultdict(list)
    for path in SOURCE.rglob("*.py"):
        for name in CLASS.findall(path.read_text(encoding="utf-8")):
            modules[name].append(str(path.relative_to(SOURCE)))
    assert {name: paths for name, paths in modules.items() if len(paths) > 1} == {}


def test_architecture_document_shows_every_package() -> None:
    document = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
    [tree] = re.findall(r"^```\nexporter/disksla/\n(.*?)^```$", document, re.MULTILINE | re.DOTALL)
    shown: list[str] = []
    for indent, name in re.findall(r"^( +)(\w+)/ ", tree, re.MULTILINE):
        is_room = len(indent) == len("  ")
        shown.append(name if is_room else f"{shown[-1].split('/')[0]}/{name}")
    assert [name for name in shown if "/" not in name] == ROOMS
    assert sorted(shown) == PACKAGES


def calls_with_many_positions() -> Iterator[str]:
    """Yield file, line and function of each call with more than five positional arguments."""
    for path in SOURCE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and len(node.args) > MOST_POSITIONS:
                yield f"{path.relative_to(SOURCE)}:{node.lineno} {ast.unparse(node.func)}"


def test_calls_name_their_arguments_if_they_are_many() -> None:
    """`*arguments` counts as one; calls of libraries count, too."""
    assert sorted(calls_with_many_positions()) == []

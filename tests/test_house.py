"""What holds for the house as a whole: its words, its units, its papers."""

import ast
import configparser
import contextlib
import importlib
import importlib.metadata
import io
import itertools
import os
import pkgutil
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

import disksla
from disksla.cli import COMMANDS, build_parser

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SOURCE = ROOT / "exporter" / "disksla"
MODULES = sorted(SOURCE.rglob("*.py"))
PAPERS = [
    *(README, ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"),
    *sorted((ROOT / "docs").rglob("*.md")),
]
LINE_LENGTH = 99

UNIT = re.compile(
    r"[._](s|seconds|bytes|iops|credits|ratio|share|load|(bytes|iops|requests)_per_\w+|per_second)$"
)
"""How the name of a number ends: with its unit, or with a word for a number that has none."""

UNIT_STANDS_ELSEWHERE = {
    "disksla.fio.result._Latency.mean": "in the name of fio's object, clat_ns",
    "disksla.histogram": "in the unit of what is observed, which its owner's name tells",
    "disksla.limits.size_rules": "in the unit of the row of the catalogue that holds the rule",
    "disksla.limits.limits.Bucket.capacity": "in the unit of its `resource`",
    "disksla.metrics.metric.Metric.value": "in the name of the metric",
    "disksla.verification.suites.Requirement": "in its own `unit`",
    "disksla.verification.report.SuiteTestResult": "in its own `unit`",
}
"""Fields, or whole modules of them, whose unit is not in their name, and why."""


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def run(program: str, *words: str) -> str:
    """Give what a program of our own environment prints, on a terminal 80 columns wide."""
    command = [str(Path(sys.executable).with_name(program)), *words]
    environment = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(
        command, capture_output=True, check=True, text=True, env=environment
    ).stdout


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):.*## ", read(ROOT / "Makefile"), flags=re.MULTILINE))


@pytest.mark.parametrize("path", MODULES, ids=relative)
def test_a_module_begins_with_a_caption(path: Path) -> None:
    docstring = ast.get_docstring(ast.parse(read(path)))
    assert docstring, "a module says what it is"
    caption = docstring.splitlines()[0]
    assert caption[0] == caption[0].upper(), caption
    assert caption.endswith("."), "a caption is a sentence on one line"
    assert len(caption) <= LINE_LENGTH


def records() -> Iterator[type[msgspec.Struct]]:
    for found in pkgutil.walk_packages(disksla.__path__, "disksla."):
        if found.name == "disksla.__main__":
            continue
        module = importlib.import_module(found.name)
        for value in vars(module).values():
            if (
                isinstance(value, type)
                and issubclass(value, msgspec.Struct)
                and value.__module__ == found.name
            ):
                yield value


def holds_floats(hint: object) -> bool:
    """Return whether a field of this type is a float; fields of a generic record are its own."""
    origin = typing.get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        return False
    return hint is float or any(holds_floats(part) for part in typing.get_args(hint))


def float_fields() -> set[str]:
    return {
        f"{record.__module__}.{record.__name__}.{name}"
        for record in records()
        for name, hint in typing.get_type_hints(record).items()
        if holds_floats(hint)
    }


def test_a_float_in_a_record_names_its_unit() -> None:
    unnamed = {field for field in float_fields() if not UNIT.search(field)}
    excused = {
        place: {field for field in unnamed if field.startswith(place)}
        for place in UNIT_STANDS_ELSEWHERE
    }
    assert unnamed == set().union(*excused.values())
    assert all(excused.values()), "an excuse that nothing needs"


def test_the_list_of_metrics_is_fresh() -> None:
    made = run("python", "-m", "disksla.metrics.reference")
    assert made == read(ROOT / "docs" / "metrics.md"), "out of date: make docs"


@pytest.mark.parametrize("path", PAPERS, ids=relative)
def test_papers_name_only_targets_that_the_makefile_has(path: Path) -> None:
    named = set(re.findall(r"(?:`|^    )make ([a-z]+)", read(path), flags=re.MULTILINE))
    assert named <= make_targets()


def test_newcomers_are_told_of_every_target() -> None:
    told = read(README) + read(ROOT / "CONTRIBUTING.md")
    missing = {target for target in make_targets() if f"make {target}" not in told}
    assert missing == set()


COMMAND_LINE = re.compile(r"disksla ([a-z]+(?:-[a-z]+)*)((?: [^`\n|#]*)?)")


@pytest.mark.parametrize("path", PAPERS, ids=relative)
def test_papers_use_only_options_that_commands_have(path: Path) -> None:
    for command, rest in COMMAND_LINE.findall(code_in(read(path))):
        assert command in COMMANDS, f"disksla {command}"
        known = options_of(command)
        for option in re.findall(r"(?<=\s)--[a-z][a-z.-]*", rest):
            assert option in known, f"disksla {command} {option}"


def code_in(text: str) -> str:
    blocks = re.findall(r"^```(?:sh|console)?\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    inline = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    commands = [line for block in blocks for line in block.splitlines()] + inline
    prompt = re.compile(r"^(?:\$ )?(?:sudo )?(?:\.venv/bin/)?(?=disksla )")
    return "\n".join(prompt.sub("", line) for line in commands if prompt.match(line))


def options_of(command: str) -> set[str]:
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        build_parser((command,)).parse_args([command, "--help"])
    return set(re.findall(r"--[a-z][a-z.-]*", shown.getvalue()))


def plain(name: str) -> str:
    return name.lower().replace("_", "-")


def test_what_we_depend_on_is_used_and_accounted_for() -> None:
    imported = {
        name.split(".")[0]
        for path in MODULES
        for node in ast.walk(ast.parse(read(path)))
        for name in imports(node)
    }
    ours = imported - set(sys.stdlib_module_names) - {"disksla"}
    owners = importlib.metadata.packages_distributions()
    used = {plain(owners[name][0]) for name in ours}
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    declared = re.findall(r"^[\w-]+", setup["options"]["install_requires"], flags=re.MULTILINE)
    table = read(ROOT / "CONTRIBUTING.md").partition("## What we depend on")[2]
    told = re.findall(r"^\| ([\w-]+) \| (?!for )", table, flags=re.MULTILINE)
    assert {plain(name) for name in declared} == used
    assert {plain(name) for name in told} == used


def imports(node: ast.AST) -> list[str]:
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if isinstance(node, ast.ImportFrom):
        return [node.module or ""]
    return []


def test_the_readme_shows_what_the_command_prints() -> None:
    shown = re.findall(
        r"^```console\n\$ disksla (.*)\n((?s:.*?))^```$", read(README), flags=re.MULTILINE
    )
    assert shown
    for words, expected in shown:
        printed = run("disksla", *words.split())
        assert [line.rstrip() for line in printed.rstrip().splitlines()] == expected.splitlines()


def test_the_readme_shows_a_good_configuration(tmp_path: Path) -> None:
    [shown] = re.findall(r"^```yaml\n(.*?)^```$", read(README), flags=re.MULTILINE | re.DOTALL)
    config = tmp_path / "disks.yml"
    config.write_text(shown, encoding="utf-8")
    assert "good: 2 disks" in run("disksla", "check-config", str(config))


@pytest.mark.parametrize("path", PAPERS, ids=relative)
def test_links_of_papers_lead_somewhere(path: Path) -> None:
    links = re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", read(path))
    assert [link for link in links if not (path.parent / link).exists()] == []


def test_the_changelog_has_room_for_what_comes_next() -> None:
    sections = re.findall(r"^## \[?([^]\s]+)", read(ROOT / "CHANGELOG.md"), flags=re.MULTILINE)
    assert sections[0] == "Unreleased"


def written_files() -> Iterator[Path]:
    rooms = ("exporter", "tests", "docs", "grafana", "systemd", "packaging", ".ci")
    top = (path for path in ROOT.iterdir() if path.is_file())
    yield from (path for path in top if not path.name.startswith(".coverage"))
    for path in itertools.chain.from_iterable((ROOT / room).rglob("*") for room in rooms):
        made = {"__pycache__", "disksla_exporter.egg-info"} & set(path.parts)
        if path.is_file() and not made:
            yield path


def test_no_file_says_where_it_was_written() -> None:
    here = re.compile(rf"(?<![\w.-]){re.escape(str(ROOT))}(?![\w-])".encode())
    assert [relative(path) for path in written_files() if here.search(path.read_bytes())] == []

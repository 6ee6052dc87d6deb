"""Records and documents of the repository: units, commands, links."""

import configparser
import contextlib
import importlib
import importlib.metadata
import io
import os
import pkgutil
import re
import subprocess
import sys
import typing
from collections.abc import Iterator
from functools import cache
from pathlib import Path

import msgspec
import pytest

import disksla
from catalog_page import pages
from catalog_text import facts
from disksla.commands.cli import build_parser
from disksla.commands.command_table import COMMANDS
from disksla.promise.catalogue.catalog import load_catalog

ROOT = Path(__file__).resolve().parent.parent
README = ROOT / "README.md"
SOURCE = ROOT / "exporter" / "disksla"
MODULES = sorted(SOURCE.rglob("*.py"))
DOCUMENTS = [
    *(README, ROOT / "README.ru.md", ROOT / "CONTRIBUTING.md", ROOT / "SECURITY.md"),
    ROOT / "benches" / "README.md",
    *sorted((ROOT / "docs").rglob("*.md")),
]
MOST_BYTES = 1_000_000

UNIT = re.compile(
    r"[._](s|seconds|bytes|iops|requests|credits|ratio|share|load|(bytes|iops|requests)_per_\w+|per_second)$"
)
"""The end of the name of a number: its unit, or a word for a number without unit."""

UNIT_ELSEWHERE = {
    "disksla.measure.advice.search.Price": "in the currency of the list, or in the name",
    "disksla.kernel.consumers.consumer_totals.ConsumerSums.sums": "in the name of its field",
    "disksla.measure.fio.result._Latency.mean": "in the name of fio's object, clat_ns",
    "disksla.base.counts.Counts": "requests",
    "disksla.promise.catalogue.cost_model.Work": "requests",
    "disksla.state.history.slot.RunningTotals": "requests; fields in seconds end in _s",
    "disksla.verdict.credits.bounds.Use": "that of the bucket",
    "disksla.measure.report.evidence._ServiceCredit.below": "percent, as in agreements",
    "disksla.base.histogram": "in the name of the field that holds the histogram",
    "disksla.promise.catalogue.rules": "that of the row of the catalogue with the rule",
    "disksla.promise.catalogue.limits.Bucket.capacity": "in the unit of its `resource`",
    "disksla.serve.metrics.metric.Buckets.bounds": "in the name of the metric",
    "disksla.serve.metrics.metric.Metric.value": "in the name of the metric",
    "disksla.measure.report.document.GivenService.queue_depth": "requests",
    "disksla.measure.means.sysstat._Statistics.disk": "in the name of the column",
    "disksla.measure.prometheus.query": "in the name of the metric",
    "disksla.measure.prometheus.step.Scrape": "in the name of the metric",
    "disksla.tell.api.disks_document.LiveDiskDocument.queue_depth": "requests",
    "disksla.tell.api.disks_document.ChartsDocument.queue_depth": "requests",
    "disksla.measure.verification.measurement.Measurement.counted_inflight": "requests",
    "disksla.measure.verification.suites.Requirement": "in its own `unit`",
    "disksla.measure.verification.report.SuiteTestResult": "in its own `unit`",
}
"""Fields, or modules of fields, without a unit in their name, and where the unit is."""


def read(path: Path) -> str:
    return path.read_text(encoding="utf-8")


def run(program: str, *arguments: str) -> str:
    """Return the output of a program of this environment on a terminal of 80 columns."""
    command = [str(Path(sys.executable).with_name(program)), *arguments]
    environment = {**os.environ, "COLUMNS": "80"}
    return subprocess.run(
        command, capture_output=True, check=True, text=True, env=environment
    ).stdout


def relative(path: Path) -> str:
    return str(path.relative_to(ROOT))


def make_targets() -> set[str]:
    return set(re.findall(r"^([a-z]+):.*## ", read(ROOT / "Makefile"), flags=re.MULTILINE))


def tracked_files() -> list[Path]:
    """Return the files that git tracks, of those that exist."""
    command = ["git", "-C", str(ROOT), "ls-files", "-z"]
    try:
        listed = subprocess.run(command, capture_output=True, check=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("NOT TESTED: not a clone of the repository, or git is missing")
    names = listed.stdout.decode().strip("\0").split("\0")
    return [path for name in names if (path := ROOT / name).is_file()]


def test_no_large_file_is_tracked() -> None:
    """A built package, or a long recording, stays in all clones for ever."""
    found = {relative(path): path.stat().st_size for path in tracked_files()}
    assert found
    assert {name: size for name, size in found.items() if size > MOST_BYTES} == {}


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


def has_floats(hint: object) -> bool:
    """Return whether a field of this type is a float; fields of a generic record are its own."""
    origin = typing.get_origin(hint)
    if isinstance(origin, type) and issubclass(origin, msgspec.Struct):
        return False
    return hint is float or any(has_floats(part) for part in typing.get_args(hint))


def float_fields() -> set[str]:
    return {
        f"{record.__module__}.{record.__name__}.{name}"
        for record in records()
        for name, hint in typing.get_type_hints(record).items()
        if has_floats(hint)
    }


def test_float_field_names_its_unit() -> None:
    unnamed = {field for field in float_fields() if not UNIT.search(field)}
    listed = {
        place: {field for field in unnamed if field.startswith(place)} for place in UNIT_ELSEWHERE
    }
    assert unnamed == set().union(*listed.values())
    assert all(listed.values()), "UNIT_ELSEWHERE lists a place without such a field"


def test_catalogue_documents_are_up_to_date() -> None:
    docs = ROOT / "docs"
    paths = [docs / "catalog.md", *(docs / "catalog").iterdir()]
    found = {path.relative_to(docs).as_posix(): read(path) for path in paths}
    assert pages(load_catalog().rows) == found, "out of date: make docs"


def test_each_fact_of_a_type_is_in_its_section_or_said_of_all_types() -> None:
    rows = [row for row in load_catalog().rows if row.budget is not None or row.is_file_storage]
    written = pages(rows)
    for row in rows:
        sections = written[f"catalog/{row.provider}.md"].split("\n## ")
        [section] = [text for text in sections if f"### {row.id}\n" in text]
        own = section.partition(f"### {row.id}\n")[2].partition("\n### ")[0]
        for what, text in facts(row):
            said = own if f"| {what} |" in own else section.partition("\n### ")[0]
            assert f"| {what} | {text} |" in said, row.id


def test_runbook_of_the_daemon_is_up_to_date() -> None:
    generated = run("python", "packaging/runbook.py")
    served = ROOT / "exporter" / "disksla" / "serve" / "pages" / "runbook.html"
    assert generated == read(served), "out of date: make docs"


def test_documents_name_existing_make_targets() -> None:
    named = {
        (relative(path), target)
        for path in DOCUMENTS
        for target in re.findall(r"(?:`|^    )make ([a-z]+)", read(path), flags=re.MULTILINE)
    }
    assert [each for each in named if each[1] not in make_targets()] == []


def test_every_make_target_is_documented() -> None:
    named = ("README.md", "CONTRIBUTING.md", "benches/README.md")
    documents = "".join(read(ROOT / name) for name in named)
    assert {target for target in make_targets() if f"make {target}" not in documents} == set()


COMMAND_LINE = re.compile(r"disksla ([a-z]+(?:-[a-z]+)*)((?: [^`\n|#]*)?)")


def test_documents_use_existing_commands_and_options() -> None:
    for path in DOCUMENTS:
        for command, rest in COMMAND_LINE.findall(code_in(read(path))):
            assert command in COMMANDS, f"{path}: disksla {command}"
            existing = options_of(command)
            for option in re.findall(r"(?<=\s)--[a-z][a-z.-]*", rest):
                assert option in existing, f"{path}: disksla {command} {option}"


def code_in(text: str) -> str:
    blocks = re.findall(r"^```(?:sh|console)?\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)
    inline = re.findall(r"(?<!`)`([^`\n]+)`(?!`)", text)
    commands = [line for block in blocks for line in block.splitlines()] + inline
    prompt = re.compile(r"^(?:[$#] )?(?:sudo )?(?:\.venv/bin/)?(?=disksla )")
    return "\n".join(prompt.sub("", line) for line in commands if prompt.match(line))


@cache
def options_of(command: str) -> set[str]:
    with contextlib.redirect_stdout(io.StringIO()) as shown, contextlib.suppress(SystemExit):
        build_parser((command,)).parse_args([command, "--help"])
    return set(re.findall(r"--[a-z][a-z.-]*", shown.getvalue()))


def normalized(name: str) -> str:
    return name.lower().replace("_", "-")


IMPORT = re.compile(r"^ *(?:from (\w+)[\w.]* import |import (\w+)[\w.]*$)", re.MULTILINE)


def test_dependencies_are_declared_used_and_explained() -> None:
    imported = {
        name for path in MODULES for found in IMPORT.findall(read(path)) for name in found if name
    }
    foreign = imported - set(sys.stdlib_module_names) - {"disksla"}
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    declared = re.findall(r"^[\w-]+", setup["options"]["install_requires"], flags=re.MULTILINE)
    owners = {
        top: name
        for name in declared
        for top in re.findall(
            r"^(\w+)[/.]",
            importlib.metadata.distribution(name).read_text("RECORD") or "",
            flags=re.MULTILINE,
        )
    }
    used = {normalized(owners.get(name, name)) for name in foreign}
    table = read(ROOT / "docs" / "dependencies.md")
    explained = re.findall(r"^\| ([\w-]+) \| (?!for )", table, flags=re.MULTILINE)
    assert {normalized(name) for name in declared} == used
    assert {normalized(name) for name in explained} == used


def test_readme_says_what_is_said_of_a_throttled_database() -> None:
    recording = ROOT / "benches" / "lab" / "recordings" / "postgresql-8-fsync"
    files = [f"--recording={recording}/ticks.jsonl.gz", f"--config.file={recording}/config.yml"]
    printed = run("disksla", "explain", "loop0", *files)
    for path in (README, ROOT / "README.ru.md"):
        [shown] = re.findall(r"(?:^> .*\n)+", read(path), flags=re.MULTILINE)
        assert " ".join(shown.replace("> ", "").split()) in " ".join(printed.split())


def test_readme_configuration_is_valid(tmp_path: Path) -> None:
    [shown] = re.findall(r"^```yaml\n(.*?)^```$", read(README), flags=re.MULTILINE | re.DOTALL)
    config = tmp_path / "disks.yml"
    config.write_text(shown, encoding="utf-8")
    assert "good: 2 disks" in run("disksla", "check-config", "--config.file", str(config))


def test_links_of_documents_exist() -> None:
    links = {
        (path, link)
        for path in DOCUMENTS
        for link in re.findall(r"\]\(([^):#]+)(?:#[^)]*)?\)", read(path))
    }
    assert [each for each in links if not (each[0].parent / each[1]).exists()] == []


def test_list_of_decisions_is_complete() -> None:
    """Those that rule are records; a link to one is beside what was given up for it."""
    folder = ROOT / "docs" / "adr"
    rule, _, given_up = read(folder / "README.md").partition("## Tried")
    decisions = [path.name for path in sorted(folder.glob("[0-9]*.md"))]
    link = re.compile(r"\((\d\S+\.md)\)")
    assert sorted(link.findall(rule)) == decisions
    assert set(link.findall(given_up)) <= set(decisions)

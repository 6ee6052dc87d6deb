"""The configuration file, its regular expressions, and the files of an operator's catalogue."""

import contextlib
import json
import math
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import yaml

from disksla.base.console import to_json
from disksla.base.errors import DiskslaError
from disksla.base.schema.reader import MAX_PROBLEMS
from disksla.base.units import GIB
from disksla.measure.probes.probe_plan import plan_probe
from disksla.promise.catalogue import derive_limits
from disksla.promise.catalogue.catalog import load_catalog, parse_catalog
from disksla.promise.catalogue.derivation import derivation
from disksla.promise.configuration.matching import assign, why_not_monitored
from disksla.promise.configuration.settings import DevicePattern, Settings
from disksla.promise.configuration.settings_file import parse_settings
from disksla.tell.limits_text import limits_document
from fuzz.target import Target, Tree
from support.simulated_host import a_disk

CATALOG = load_catalog()
TESTS = Path(__file__).parents[3] / "tests"
CONFIGS = TESTS / "base" / "schema" / "configurations"
ROWS = TESTS / "promise" / "catalogue" / "catalog.d"
DISKS = (
    a_disk("vda", serial="6ea73b81-555e-4a74-9", mount_points=("/", "/var/lib/postgresql")),
    a_disk("vdb", minor=16, wwn="naa.5000c500a1b2c3d4", model="QEMU HARDDISK"),
    a_disk("nvme0n1", minor=32, by_id=("nvme-one",)),
    a_disk("loop4", minor=48, rotational=True),
)
LONGEST_NAME = 255
"""Longest name of a file, and so of a device."""
SIZES_BYTES = (1, 10 * GIB, 2**60)
NAMES = ("vda", "nvme0n1p1", "cciss/c0d0", *(c * LONGEST_NAME for c in "a0-"), "a" * 254 + "!")


def configuration(content: bytes) -> bool:
    """Check that each problem has a place, and that valid settings can be used and written."""
    try:
        settings = parse_settings(content, "f.yml", CATALOG)
    except DiskslaError as error:
        _check_problems(error)
        return False
    for disk in DISKS:
        why_not_monitored(disk, settings)
        limits = assign(disk, settings, CATALOG).limits
        for entry in settings.probes:
            if entry.covers(disk.name):
                assert plan_probe(entry, disk.name, limits).describe()
    assert parse_settings(written(settings).encode(), "f.yml", CATALOG) == settings
    return True


def catalogue(content: bytes) -> bool:
    """Check that each problem has a place, and that limits can be derived from valid rows."""
    try:
        rows = parse_catalog(content, "f.yml").rows
    except DiskslaError as error:
        _check_problems(error)
        return False
    for row in rows:
        for size_bytes in SIZES_BYTES:
            with contextlib.suppress(DiskslaError):  # a provisioned value is missing
                limits = derive_limits(row, size_bytes)
                rates = msgspec.structs.astuple(limits.rates)
                assert all(rate is None or 0 < rate < math.inf for rate in rates)
                assert to_json(limits_document(limits))
                assert all(step.steps for step in derivation(row, size_bytes))
    return True


def _check_problems(error: DiskslaError) -> None:
    lines = str(error).split("\n")
    assert len(lines) <= MAX_PROBLEMS + 1
    for line in lines:
        assert line.isprintable()
        assert re.fullmatch(r"f\.yml:\d+: .+|f\.yml: only the first \d+ problems are listed", line)


def written(settings: Settings) -> str:
    """Return settings as YAML. JSON is YAML, except for DEL."""
    return json.dumps(_plain(settings, "")).replace("\x7f", "\\u007f")


def _plain(value: Any, name: str) -> Any:
    """Return the value as in a file: a text with its unit for every number."""
    match value:
        case DevicePattern():
            return value.pattern
        case msgspec.Struct():
            config = value.__struct_config__
            fields = {
                field.encode_name: _plain(getattr(value, field.name), field.name)
                for field in msgspec.structs.fields(value)
                if getattr(value, field.name) != field.default
            }
            return fields if config.tag is None else {str(config.tag_field): config.tag, **fields}
        case tuple():
            return [_plain(each, name) for each in value]
        case int() | float():
            return _quantity(value, name)
        case _:
            return value


def _quantity(value: float, name: str) -> str:
    if name.endswith(("_ratio", "_share")):
        return f"{Decimal(repr(value)) * 100:f}%"
    number = f"{Decimal(repr(value)):f}"
    if name.endswith(("bytes", "bytes_per_second")):
        return f"{number}B"
    return f"{number}s" if name.endswith("_s") else number


def expression(content: bytes) -> bool:
    """Check that a valid expression is searched in names without delay."""
    text = content.decode(errors="replace")[:500]
    document = json.dumps({"discovery": {"include": [text]}}).replace("\x7f", "\\u007f")
    try:
        [pattern] = parse_settings(document.encode(), "f.yml", CATALOG).discovery.include
    except DiskslaError:
        return False
    for name in NAMES:
        pattern.is_in(name)
    return True


def _configs() -> list[bytes]:
    return [path.read_bytes() for path in sorted(CONFIGS.glob("good-*.yml"))]


def _rows() -> list[bytes]:
    return [path.read_bytes() for path in sorted(ROWS.glob("*.yml"))]


def loads_yaml(content: bytes) -> Any:
    try:
        return yaml.safe_load(content)
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise ValueError(str(error)) from error


YAML = Tree(loads_yaml, lambda tree: yaml.safe_dump(tree, allow_unicode=True).encode())

TARGETS = (
    Target(
        "configuration",
        configuration,
        _configs,
        words=(
            *(b"disks: ", b"match: ", b"terms: ", b"budget: sum", b"probes:\n- ", b"kind: "),
            *(b"- ", b"? ", b": ", b"&a ", b"*a", b"<<: ", b"!!int ", b"---\n", b"...\n", b"~"),
            *(b"100ms", b"25MB/s", b"0.0000000001s", b"99999999999TiB", b"300", b"3%", b"vk.hdd"),
            *(b"%YAML 1.1\n", b"{" * 50, b"[" * 50, b"- " * 50, b"cron: '* * * * *'\n"),
        ),
        tree=YAML,
    ),
    Target(
        "catalogue",
        catalogue,
        _rows,
        words=(
            *(
                b"terms: ",
                b"rule: ",
                b"burst: ",
                b"budget: time_shared",
                b"{rule: clamp, base: 1}",
            ),
            *(b"- ", b": ", b"&a ", b"*a", b"<<: ", b"<<: [*a, *b]", b"~", b"{", b"[" * 50),
            *(b"0.5ms", b"25MB/s", b"0.0000000001s", b"99999999999TiB", b"300", b"0.000000001"),
        ),
        tree=YAML,
    ),
    Target(
        "expression",
        expression,
        lambda: [
            rb"^(z?ram|loop|fd|(h|s|v|xv)d[a-z]|nvme\d+n\d+p)\d+$",
            rb"^vd[b-z]$",
            rb"^(sd[a-z]+|dm-[0-9]{1,3})$",
            rb"(a|a)*b",
            rb"(?:(a+)+)+!",
            rb"a?a?a?a?a?a?a?a?aaaaaaaa",
        ],
        words=(b"(", b")*", b")+", b"{1,9}", b"|", b"a?", b".*", b"(?:", b"\\w", b"[a-z]", b"$"),
    ),
)

"""The configuration file, and the regular expressions in it."""

import json
import re
from decimal import Decimal
from pathlib import Path
from typing import Any

import msgspec
import yaml

from disksla.config.device_pattern import DevicePattern
from disksla.config.matching import assign, why_unwatched
from disksla.config.settings import Settings
from disksla.config.settings_file import parse_settings
from disksla.errors import DiskslaError
from disksla.limits.catalog import load_catalog
from disksla.probes.plan import plan_probe
from disksla.schema.reader import MAX_PROBLEMS
from fuzz.target import Target, Tree
from support.simulated_host import a_disk

CATALOG = load_catalog()
CONFIGS = Path(__file__).parent.parent.parent / "schema" / "configurations"
DISKS = (
    a_disk("vda", serial="6ea73b81-555e-4a74-9", mount_points=("/", "/var/lib/postgresql")),
    a_disk("vdb", minor=16, wwn="naa.5000c500a1b2c3d4", model="QEMU HARDDISK"),
    a_disk("nvme0n1", minor=32, by_id=("nvme-one",)),
    a_disk("loop4", minor=48, rotational=True),
)
LONGEST_NAME = 255
"""Of a file, and so of anything in sysfs."""
NAMES = ("vda", "nvme0n1p1", "cciss/c0d0", *(c * LONGEST_NAME for c in "a0-"), "a" * 254 + "!")


def configuration(content: bytes) -> bool:
    """It is refused with a place for each problem; or it can be acted on, and written again."""
    try:
        settings = parse_settings(content, "f.yml", CATALOG)
    except DiskslaError as error:
        lines = str(error).split("\n")
        assert len(lines) <= MAX_PROBLEMS + 1
        for line in lines:
            assert line.isprintable()
            assert re.fullmatch(
                r"f\.yml:\d+: .+|f\.yml: only the first \d+ problems are listed", line
            )
        return False
    for disk in DISKS:
        why_unwatched(disk, settings)
        limits = assign(disk, settings, CATALOG).limits
        for entry in settings.probes:
            if entry.covers(disk.name):
                assert plan_probe(entry, disk.name, limits).in_words()
    assert parse_settings(written(settings).encode(), "f.yml", CATALOG) == settings
    return True


def written(settings: Settings) -> str:
    """Write settings as a person could; JSON is YAML too, but for DEL."""
    return json.dumps(_plain(settings, "")).replace("\x7f", "\\u007f")


def _plain(value: Any, name: str) -> Any:
    """Give what stands in the file: a text with its unit for every number."""
    match value:
        case DevicePattern():
            return value.pattern
        case msgspec.Struct():
            config = value.__struct_config__
            given = {
                field.encode_name: _plain(getattr(value, field.name), field.name)
                for field in msgspec.structs.fields(value)
                if getattr(value, field.name) != field.default
            }
            return given if config.tag is None else {str(config.tag_field): config.tag, **given}
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
    """It is searched in names without delay, or it is refused; there is no third way."""
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

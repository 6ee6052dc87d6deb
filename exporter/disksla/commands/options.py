"""Options that several commands share. Flags say where; the configuration file says what."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from disksla.core.refusal import Refusal
from disksla.core.units import parse_duration_s, parse_size_bytes
from disksla.runtime.paths import Paths

Quantity = TypeVar("Quantity", int, float)


def add_config_file(parser: argparse.ArgumentParser) -> None:
    """Add --config.file."""
    parser.add_argument(
        "--config.file",
        dest="config_file",
        type=Path,
        metavar="FILE",
        help="YAML configuration (default: none; everything discoverable is discovered)",
    )


def add_web_config_file(parser: argparse.ArgumentParser) -> None:
    """Add --web.config.file."""
    parser.add_argument(
        "--web.config.file",
        dest="web_config_file",
        type=Path,
        metavar="FILE",
        help="YAML of TLS, client certificates and passwords, as for node_exporter"
        " (default: none; everybody is answered, in clear)",
    )


def add_duration(parser: argparse.ArgumentParser, default: str, help_text: str) -> None:
    """Add --duration."""
    parser.add_argument(
        "--duration",
        dest="duration_s",
        type=duration_s,
        default=default,
        metavar="TIME",
        help=help_text,
    )


def duration_s(text: str) -> float:
    """Read a duration, as argparse wants it."""
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Add --path.procfs, --path.sysfs and --path.udev-data."""
    for option, default, what in (
        ("procfs", Paths().procfs, "procfs"),
        ("sysfs", Paths().sysfs, "sysfs"),
        ("udev-data", Paths().udev_data, "the udev database"),
    ):
        parser.add_argument(
            f"--path.{option}",
            dest=f"path_{option.replace('-', '_')}",
            type=Path,
            default=default,
            metavar="DIR",
            help=f"mount point of {what} (default: %(default)s)",
        )


def parsed(where: str, text: str, parse: Callable[[str], Quantity]) -> Quantity:
    """Read a number with its unit. Raises Refusal that says where it was wrong."""
    try:
        return parse(text)
    except ValueError as error:
        raise Refusal(f"{where}: {error}") from error


def given(where: str, text: str | None, parse: Callable[[str], Quantity]) -> Quantity | None:
    """Read an option that may have been left out. Raises Refusal."""
    return None if text is None else parsed(where, text, parse)


def some_bytes(where: str, text: str) -> int:
    """Read a size above zero. Raises Refusal."""
    size = parsed(where, text, parse_size_bytes)
    if not size:
        raise Refusal(f"{where}: expected a size above zero, such as 500GiB, not '{text}'")
    return size


def paths_of(arguments: argparse.Namespace) -> Paths:
    """Give the paths that `add_paths` let the user choose."""
    return Paths(
        procfs=arguments.path_procfs,
        sysfs=arguments.path_sysfs,
        udev_data=arguments.path_udev_data,
    )

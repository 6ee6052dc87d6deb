"""Options that several commands share. Flags say where; the configuration file says what."""

import argparse
from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

from disksla.errors import DiskslaError
from disksla.system.roots import Roots
from disksla.units import parse_duration_s, parse_size_bytes

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


def add_force(parser: argparse.ArgumentParser, help_text: str) -> None:
    """Add --force."""
    parser.add_argument("--force", action="store_true", help=help_text)


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
        ("procfs", Roots().procfs, "procfs"),
        ("sysfs", Roots().sysfs, "sysfs"),
        ("udev-data", Roots().udev_data, "the udev database"),
    ):
        parser.add_argument(
            f"--path.{option}",
            dest=f"path_{option.replace('-', '_')}",
            type=Path,
            default=default,
            metavar="DIR",
            help=f"mount point of {what} (default: %(default)s)",
        )


def parse_option(where: str, text: str, parse: Callable[[str], Quantity]) -> Quantity:
    """Read a number with its unit. Raises Refusal that says where it was wrong."""
    try:
        return parse(text)
    except ValueError as error:
        raise DiskslaError(f"{where}: {error}") from error


def parse_optional(
    where: str, text: str | None, parse: Callable[[str], Quantity]
) -> Quantity | None:
    """Read an option that may have been left out. Raises Refusal."""
    return None if text is None else parse_option(where, text, parse)


def parse_positive_size(where: str, text: str) -> int:
    """Read a size above zero. Raises Refusal."""
    size = parse_option(where, text, parse_size_bytes)
    if not size:
        raise DiskslaError(f"{where}: expected a size above zero, such as 500GiB, not '{text}'")
    return size


def roots_of(arguments: argparse.Namespace) -> Roots:
    """Give the paths that `add_paths` let the user choose."""
    return Roots(
        procfs=arguments.path_procfs,
        sysfs=arguments.path_sysfs,
        udev_data=arguments.path_udev_data,
    )

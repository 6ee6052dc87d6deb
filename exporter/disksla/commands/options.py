"""Options that several commands share. Flags say where; the configuration file says what."""

import argparse
from pathlib import Path

from disksla.core.units import parse_duration_s
from disksla.runtime.paths import Paths


def add_config_file(parser: argparse.ArgumentParser) -> None:
    """Add --config.file."""
    parser.add_argument(
        "--config.file",
        dest="config_file",
        type=Path,
        metavar="FILE",
        help="YAML configuration (default: none; everything discoverable is discovered)",
    )


def add_duration(parser: argparse.ArgumentParser, default: str, help_text: str) -> None:
    """Add --duration."""

    def duration_s(text: str) -> float:
        try:
            return parse_duration_s(text)
        except ValueError as error:
            raise argparse.ArgumentTypeError(str(error)) from None

    parser.add_argument(
        "--duration",
        dest="duration_s",
        type=duration_s,
        default=default,
        metavar="TIME",
        help=help_text,
    )


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


def paths_of(arguments: argparse.Namespace) -> Paths:
    """Give the paths that `add_paths` let the user choose."""
    return Paths(
        procfs=arguments.path_procfs,
        sysfs=arguments.path_sysfs,
        udev_data=arguments.path_udev_data,
    )

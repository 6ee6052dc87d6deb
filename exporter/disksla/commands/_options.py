"""Options that several commands share, and the parsing of their values."""

import argparse
import base64
from collections.abc import Callable, Iterable
from pathlib import Path
from typing import TypeVar

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import Roots, default_roots
from disksla.base.schema.yaml_file import MAX_FILE_BYTES, read_named
from disksla.base.units import parse_duration_s, parse_size_bytes
from disksla.commands._option_table import add_options, add_paths_of
from disksla.promise.catalogue import Terms
from disksla.promise.configuration import parse_disk_size
from disksla.promise.configuration.settings_file import DEFAULT_FILE

Quantity = TypeVar("Quantity")


def add_config_file(
    parser: argparse.ArgumentParser,
    help_text: str = f"YAML configuration (default: {DEFAULT_FILE}, if there is such a file)",
) -> None:
    """Add --config.file."""
    add_options(parser, f"--config.file FILE  {help_text}")


def add_web_config_file(parser: argparse.ArgumentParser) -> None:
    """Add --web.config.file."""
    help_text = "YAML file of TLS, client certificates and passwords, as for node_exporter"
    more = "(default: none; no TLS and no authentication)"
    add_options(parser, f"--web.config.file FILE  {help_text} {more}")


def add_duration(parser: argparse.ArgumentParser, default: str | None, help_text: str) -> None:
    """Add --for."""
    more = {"dest": "duration_s", "type": duration_s, "default": default}
    add_options(parser, f"--for TIME  {help_text}", {"--for": more})


def duration_s(text: str) -> float:
    """Parse a duration. Raise ArgumentTypeError, as argparse expects."""
    try:
        return parse_duration_s(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from None


def add_paths(parser: argparse.ArgumentParser) -> None:
    """Add --path.procfs, --path.sysfs, --path.udev-data and --path.rootfs."""
    roots = default_roots()
    add_paths_of(
        parser,
        {
            "procfs": roots.procfs,
            "sysfs": roots.sysfs,
            "udev-data": roots.udev_data,
            "rootfs": roots.rootfs,
        },
    )


def check_unused(arguments: argparse.Namespace, mode: str, options: Iterable[str]) -> None:
    """Raise DiskslaError if one of these options is given, which mean nothing in a mode."""
    for option in options:
        name = option.removeprefix("--").replace("-", "_")
        if getattr(arguments, name) != arguments.parser.get_default(name):
            raise DiskslaError(f"found {option} with {mode}; expected one of them")


def parse_option(where: str, text: str, parse: Callable[[str], Quantity]) -> Quantity:
    """Parse the value of an option. Raise DiskslaError that names the option."""
    try:
        return parse(text)
    except ValueError as error:
        raise DiskslaError(f"{where}: {error}") from error


def parse_optional(
    where: str, text: str | None, parse: Callable[[str], Quantity]
) -> Quantity | None:
    """Parse an optional value; None if it is missing. Raise DiskslaError if it is invalid."""
    return None if text is None else parse_option(where, text, parse)


def parse_positive_size(where: str, text: str) -> int:
    """Parse a size above zero. Raise DiskslaError if it is invalid."""
    size = parse_option(where, text, parse_size_bytes)
    if not size:
        raise DiskslaError(f"{where}: expected a size above zero, such as 500GiB, not '{text}'")
    return size


def parse_size_of_disk(where: str, text: str, terms: Terms) -> int:
    """Parse the size of a disk of a type. Raise DiskslaError if it is invalid."""
    parse_option(where, text, parse_disk_size)
    return parse_size_bytes(text, binary_gb=terms.binary_gb)


def roots_of(arguments: argparse.Namespace) -> Roots:
    """Return the paths of the options of `add_paths`."""
    return Roots(
        procfs=arguments.path_procfs,
        sysfs=arguments.path_sysfs,
        udev_data=arguments.path_udev_data,
        rootfs=arguments.path_rootfs,
    )


def add_password_and_ca(parser: argparse.ArgumentParser, option: str) -> None:
    """Add OPTION.password-file and OPTION.ca-file, for the server whose address is OPTION."""
    add_options(
        parser,
        f"""
{option}.password-file FILE  file with USER:PASSWORD
{option}.ca-file FILE        certificates that the server's has to be signed with
                             (default: the system's)
""",
        {
            f"{option}.password-file": {"dest": "password_file"},
            f"{option}.ca-file": {"dest": "ca_file"},
        },
    )


def password_headers(path: Path | None) -> dict[str, str]:
    """Return the headers with the password of a file, if it is given. Raise DiskslaError."""
    if path is None:
        return {}
    credentials = base64.b64encode(secret_of(path).encode()).decode()
    return {"Authorization": f"Basic {credentials}"}


def secret_of(path: Path) -> str:
    """Return the one line of a file. Raise DiskslaError."""
    content = read_named(path, MAX_FILE_BYTES)
    try:
        secret = content.decode().strip()
    except UnicodeDecodeError as error:
        raise DiskslaError(f"cannot read {path}: {error}") from None
    if not secret or not secret.isprintable():
        raise DiskslaError(f"cannot use {path}: expected one line")
    return secret

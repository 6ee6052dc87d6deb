"""How commands ask the daemon of this machine, or of the one that --url names."""

import argparse
import sys
from collections.abc import Sequence

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.machine import default_roots
from disksla.base.text import escape_bytes, escape_control
from disksla.commands._option_table import add_options
from disksla.commands._options import add_password_and_ca, password_headers, roots_of
from disksla.tell.api import DiskDocument, DisksDocument
from disksla.tell.api.daemon_client import DEFAULT_URL, SOCKET_URL, Access, ask_disks

_DEFAULT = f"(default: {SOCKET_URL} where this user may use it, else {DEFAULT_URL})"


def add_url(parser: argparse.ArgumentParser) -> None:
    """Add --url."""
    where = "on this machine: unix:///FILE, or http:// or https:// on loopback"
    add_options(parser, f"--url URL  where to ask the daemon, {where} {_DEFAULT}")


def add_remote_url(
    parser: argparse.ArgumentParser, group: argparse._MutuallyExclusiveGroup | None = None
) -> None:
    """Add --url, which may be of another machine, and its access."""
    where = "of this machine or another one: unix:///FILE, http:// or https://"
    add_options(group or parser, f"--url URL  where to ask the daemon, {where} {_DEFAULT}")
    add_password_and_ca(parser, "--url")


def access_of(arguments: argparse.Namespace) -> Access:
    """Return the access of `add_remote_url`. Raise DiskslaError."""
    authority = None if arguments.ca_file is None else str(arguments.ca_file)
    if arguments.url is None and (arguments.password_file or authority):
        raise DiskslaError("found --url.password-file or --url.ca-file; expected them with --url")
    return Access(password_headers(arguments.password_file), authority)


def disks_of_daemon(
    arguments: argparse.Namespace, instead: str, names: Sequence[str] = ()
) -> DisksDocument | None:
    """Return what the daemon knows of these disks, by default of all; None if it does not say.

    It is not asked about other roots of procfs or sysfs, unless its URL is given. If it does not
    say, standard error has why, and what is done `instead`. Raise DiskslaError if the URL is
    none, or does not answer.
    """
    if arguments.url is None and roots_of(arguments) != default_roots():
        return None

    def print_reason(reason: str) -> None:
        if arguments.url is not None:
            raise DiskslaError(
                f"cannot ask the daemon: {reason}; see that it runs, and that --url is right"
            )
        line = escape_control(f"disksla: cannot ask the daemon: {reason}; {instead}")
        print(line.replace("\n", " "), file=sys.stderr)

    return ask_disks(arguments.url, print_reason, names, access_of(arguments))


def chosen_disks(disks: Sequence[DiskDocument], names: Sequence[str]) -> Sequence[DiskDocument]:
    """Return the disks of these kernel names, mount points or claims, or all.

    Raise DiskslaError if there is no such disk.
    """
    if not disks:
        raise DiskslaError("the daemon monitors no disk; disksla disks shows why")
    if not names:
        return disks
    by_name: dict[str, list[DiskDocument]] = {}
    for disk in disks:
        for name in filter(None, {*disk.mount_points, disk.claim, disk.device}):
            by_name.setdefault(name, []).append(disk)
    wanted = [escape_bytes(name.removeprefix("/dev/")) for name in names]
    if missing := [name for name in wanted if name not in by_name]:
        raise DiskslaError(
            f"the daemon does not monitor {', '.join(missing)}; it monitors"
            f" {', '.join(disk.device for disk in disks)}"
        )
    return list({disk.device: disk for name in wanted for disk in by_name[name]}.values())

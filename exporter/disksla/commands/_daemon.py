"""How commands ask the daemon of this machine."""

import argparse
import sys
from collections.abc import Sequence

from disksla.api import DisksDocument
from disksla.api.daemon_client import DEFAULT_URL, SOCKET_URL, ask_disks
from disksla.commands._options import roots_of
from disksla.system.roots import Roots
from disksla.text import escape_control


def add_url(parser: argparse.ArgumentParser | argparse._MutuallyExclusiveGroup) -> None:
    """Add --url."""
    parser.add_argument(
        "--url",
        metavar="URL",
        help="where to ask the daemon, on this machine: unix:///FILE, or http:// or https:// on"
        f" loopback (default: {SOCKET_URL} where this user may use it, else {DEFAULT_URL})",
    )


def disks_of_daemon(
    arguments: argparse.Namespace, instead: str, names: Sequence[str] = ()
) -> DisksDocument | None:
    """Return what the daemon knows of these disks, by default of all; None if it does not say.

    It is not asked about other roots of procfs or sysfs, unless its URL is given. If it does not
    say, standard error has why, and what is done `instead`. Raise DiskslaError if the URL is not
    of this machine.
    """
    if arguments.url is None and roots_of(arguments) != Roots():
        return None

    def print_reason(reason: str) -> None:
        line = escape_control(f"disksla: cannot ask the daemon: {reason}; {instead}")
        print(line.replace("\n", " "), file=sys.stderr)

    return ask_disks(arguments.url, print_reason, names)

"""What the daemon of another machine says of its disks."""

import argparse

from disksla.base.console import to_json
from disksla.base.errors import DiskslaError
from disksla.commands._daemon import chosen_disks
from disksla.commands._recent import from_daemon, print_recent


def explain_remote(arguments: argparse.Namespace) -> int:
    """Print what the daemon of another machine says; nothing that is known of this one."""
    recent = from_daemon(arguments)
    if recent is None:  # a daemon that is named and does not answer is an error
        raise DiskslaError("found --duration with --url of another machine; expected one of them")
    found = chosen_disks(tuple(recent.disks.values()), arguments.devices)
    disks = {disk.device: disk for disk in found}
    if arguments.json:
        head = {"host": recent.host, "version": recent.version, "source": recent.source}
        print(to_json(head | {"timestamp_s": recent.timestamp_s, "disks": list(disks.values())}))
    else:
        print_recent(recent._replace(disks=disks), list(disks))
    return 0

"""The file of `disksla limits --textfile`, for the textfile collector of node_exporter."""

import argparse
import os
import sys
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.state_file import replace_file
from disksla.base.text import escape_control
from disksla.commands._context import read_context
from disksla.promise.configuration import match_disks
from disksla.serve.metrics.limit_metrics import limits_page
from disksla.state.pipeline import GroupSnapshot, Snapshot, State
from disksla.state.pipeline.advance import configure

_MODE = 0o644
"""node_exporter reads the file as another user. It has no secrets."""
_NO_LIMITS = 1


def write_textfile(arguments: argparse.Namespace) -> int:
    """Write the limits of the monitored disks, and name those without any on standard error.

    Return the exit status. Raise DiskslaError, and leave the file as it was, if the configuration
    or the list of devices cannot be read, or the file not be written.
    """
    path: Path = arguments.textfile
    if path.suffix != ".prom":  # node_exporter reads no others
        raise DiskslaError(f"--textfile: found '{path}'; expected a name that ends with .prom")
    host = read_context(arguments)
    matched = match_disks(host.configuration, host.disks, os.cpu_count())
    snapshot = Snapshot(configure(State(host.configuration), matched, None))
    disks = [each for each in snapshot.disks if each.assignment.limits.throttled_charges]
    for each in snapshot.disks:
        if each not in disks:
            problem = f"{each.disk.name} left out: no limits are known: {each.assignment.reason}"
            print(f"disksla: {escape_control(problem)}", file=sys.stderr)
    try:
        replace_file(path, limits_page(disks, _comparable(snapshot)), _MODE)
    except OSError as error:
        raise DiskslaError(f"cannot write {path}: {error.strerror}") from error
    return 0 if disks else _NO_LIMITS


def _comparable(snapshot: Snapshot) -> list[GroupSnapshot]:
    """Return the groups whose load is the sum of their disks: no cache of the host serves any."""
    cached = {each.disk.name for each in snapshot.disks if each.assignment.caching != "none"}
    return [
        group
        for group in snapshot.groups
        if not group.shared.is_cache
        and not (group.shared.excludes_hits and cached.intersection(group.devices))
    ]

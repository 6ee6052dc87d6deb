"""`disksla open-events`: open performance events of block requests, for the daemon."""

import argparse
import os
import signal
import socket
from functools import partial

from disksla.base.operating_system.log import set_up_logging
from disksla.base.operating_system.machine import Roots, default_roots
from disksla.base.operating_system.packets import shut_down
from disksla.base.operating_system.systemd import FIRST_DESCRIPTOR
from disksla.base.operating_system.unix_socket import UnixSocket
from disksla.commands._option_table import add_log_options, add_options, add_paths_of
from disksla.kernel.performance_events.helper import OpenSets, answer, passed_connection, serve
from disksla.kernel.performance_events.opening import EventFiles, credentials_directory, plan


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --listen, --path.sysfs, --path.procfs, --log.level and --log.format."""
    add_options(
        parser,
        """
--listen FILE  Unix socket to listen on, for the user and the group of the process and for root,
               to answer all clients; without it, answer the connection that systemd passed, and
               end when its events are closed
""",
    )
    add_log_options(parser)
    roots = default_roots()
    add_paths_of(parser, {"sysfs": roots.sysfs, "procfs": roots.procfs})


def run(arguments: argparse.Namespace) -> int:
    """Answer one client, and wait for its events to end; or with --listen all, until SIGTERM."""
    set_up_logging(arguments.log_level, arguments.log_format)
    roots = Roots(procfs=arguments.path_procfs, sysfs=arguments.path_sysfs)
    files = EventFiles(roots, credentials_directory(os.environ))
    prepare = partial(plan, files=files)
    if arguments.listen is None:
        open_sets = OpenSets()
        with passed_connection(FIRST_DESCRIPTOR) as connection:
            answer(connection, prepare, open_sets)
        open_sets.wait()
    else:
        with UnixSocket(arguments.listen, socket.SOCK_SEQPACKET).listening() as listening:
            # As process 1 of a container, a signal without a handler does not end it.
            signal.signal(signal.SIGTERM, lambda *_: shut_down(listening))
            serve(listening, prepare)
    return 0

"""`disksla ebs-statistics`: read what AWS counts of its disks, for the daemon."""

import argparse
import signal
import socket
import sys
import threading
from functools import partial
from pathlib import Path

from disksla.base.operating_system.log import set_up_logging
from disksla.base.operating_system.machine import default_roots
from disksla.base.operating_system.packets import encode
from disksla.base.operating_system.unix_socket import DEFAULT_EBS_SOCKET, UnixSocket
from disksla.clouds.ebs_statistics import Failure
from disksla.clouds.ebs_statistics.helper import Helper
from disksla.clouds.ebs_statistics.nvme import find_devices, read_statistics
from disksla.commands._option_table import add_log_options, add_options, add_paths_of

_SIGNALS = {signal.SIGINT, signal.SIGTERM}
_STACK_BYTES = 256 * 1024
"""Of each thread: they call little."""


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --socket, --once, --path.sysfs, --path.dev, --log.level and --log.format."""
    add_options(
        parser,
        """
--socket FILE  Unix socket to listen on, for the user and the group of the process and for root
               (default: %(default)s)
--once         read each disk once, print what its page says as a line of JSON, and end
""",
        {"--socket": {"default": DEFAULT_EBS_SOCKET}},
    )
    add_log_options(parser)
    add_paths_of(parser, {"sysfs": default_roots().sysfs, "dev": Path("/dev")})


def run(arguments: argparse.Namespace) -> int:
    """Read until SIGTERM or SIGINT; with --once, return 1 if a page could not be read."""
    find = partial(find_devices, arguments.path_sysfs)
    read = partial(read_statistics, sysfs=arguments.path_sysfs, dev=arguments.path_dev)
    if arguments.once:
        messages = [read(device) for device in find()]
        sys.stdout.write("".join(f"{encode(message).decode()}\n" for message in messages))
        return int(any(isinstance(message, Failure) for message in messages))
    set_up_logging(arguments.log_level, arguments.log_format)
    threading.stack_size(_STACK_BYTES)
    with UnixSocket(arguments.socket, socket.SOCK_SEQPACKET).listening() as listening:
        signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
        helper = Helper(listening, find, read)
        helper.start()
        try:
            signal.sigwait(_SIGNALS)
        finally:
            helper.stop()
    return 0

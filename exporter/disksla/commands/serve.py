"""`disksla serve`: watch the disks of this machine and serve what is seen."""

import argparse
import contextlib
import faulthandler
import logging
import os
import signal
from collections.abc import Sequence

from disksla.commands._options import add_config_file, add_paths, add_web_config_file, roots_of
from disksla.daemon import Daemon
from disksla.errors import DiskslaError
from disksla.system.log import set_up_logging
from disksla.system.systemd import ServiceManager, inherited_sockets
from disksla.web.access import AccessControl
from disksla.web.listen import DEFAULT_LISTEN_ADDRESS, Listen, ListenAddress, parse_listen_address
from disksla.web.server import DEFAULT_SCRAPE_LIMIT

SIGNALS = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}

log = logging.getLogger("disksla.serve")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_config_file(parser)
    add_paths(parser)
    parser.add_argument(
        "--web.listen-address",
        dest="listen",
        action="append",
        metavar="ADDRESS",
        help=f"HOST:PORT to serve on; may be given again (default: {DEFAULT_LISTEN_ADDRESS})",
    )
    parser.add_argument(
        "--web.systemd-socket",
        dest="systemd_socket",
        action="store_true",
        help="serve on the sockets that systemd passes (socket activation)",
    )
    parser.add_argument(
        "--web.telemetry-path",
        dest="telemetry_path",
        default="/metrics",
        metavar="PATH",
        help="path of the metrics (default: %(default)s)",
    )
    add_web_config_file(parser)
    parser.add_argument(
        "--web.max-requests",
        dest="max_requests",
        type=_count,
        default=DEFAULT_SCRAPE_LIMIT.most,
        metavar="N",
        help="scrapes that are answered at once, 0 for any number (default: %(default)s)",
    )
    parser.add_argument(
        "--log.level",
        dest="log_level",
        choices=("debug", "info", "warning", "error"),
        default="info",
        help="least severe log lines to write (default: %(default)s)",
    )
    parser.add_argument(
        "--log.format",
        dest="log_format",
        choices=("logfmt", "json"),
        default="logfmt",
        help="form of log lines (default: %(default)s); in the journal of systemd, a line has its"
        " severity in front instead of a time",
    )


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; read the configuration again on SIGHUP.

    Signals are taken one at a time by this thread and by no other, so that none of them
    interrupts anything.
    """
    set_up_logging(arguments.log_level, arguments.log_format)
    telemetry_path = arguments.telemetry_path
    if not telemetry_path.startswith("/") or telemetry_path == "/":
        raise DiskslaError(
            f"--web.telemetry-path is '{telemetry_path}': expected a path such as /metrics"
        )
    listen = _places(arguments)
    access = AccessControl(arguments.web_config_file)
    daemon = Daemon(
        roots_of(arguments),
        arguments.config_file,
        listen,
        telemetry_path,
        ServiceManager.of(os.environ),
        access,
        arguments.max_requests,
    )
    faulthandler.enable()  # the watchdog ends us by SIGABRT, and the log then says where we were
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        addresses = daemon.start()
        _tell_where_to_look(addresses, telemetry_path, "https" if access.speaks_tls else "http")
        while signal.sigwait(SIGNALS) == signal.SIGHUP:
            with contextlib.suppress(DiskslaError):  # logged, and visible in the metrics
                daemon.reload()
        log.info("stopping")
    finally:
        daemon.stop()
    return 0


def _places(arguments: argparse.Namespace) -> list[Listen]:
    """Give where to listen: where we are told, or on what systemd passed. Raises Refusal."""
    passed = inherited_sockets(os.environ)
    if arguments.systemd_socket:
        if arguments.listen:
            raise DiskslaError(
                "--web.systemd-socket and --web.listen-address exclude each other:"
                " the first leaves it to the socket unit where to listen"
            )
        if not passed:
            raise DiskslaError(
                "--web.systemd-socket: systemd passed no socket;"
                " expected to be started by a socket unit"
            )
        return list(passed)
    if passed:
        raise DiskslaError(
            f"systemd passed {len(passed)} socket(s), on which nobody would answer:"
            " expected --web.systemd-socket"
        )
    return [parse_listen_address(text) for text in arguments.listen or [DEFAULT_LISTEN_ADDRESS]]


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"expected a whole number such as 40, not '{text}'")
    return int(text)


def _tell_where_to_look(
    addresses: Sequence[ListenAddress], telemetry_path: str, scheme: str
) -> None:
    for address in addresses:
        host = address.host or "localhost"
        shown = f"[{host}]" if ":" in host else host
        print(
            f"disksla: look at {scheme}://{shown}:{address.port}/"
            f" and scrape {scheme}://{shown}:{address.port}{telemetry_path}",
            flush=True,
        )

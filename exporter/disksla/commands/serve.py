"""`disksla serve`: run the exporter until SIGTERM or SIGINT; with --once, print the metrics."""

import argparse
import contextlib
import faulthandler
import logging
import os
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

from prometheus_client import ProcessCollector

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.log import set_up_logging
from disksla.base.operating_system.systemd import ServiceManager, inherited_sockets
from disksla.base.operating_system.unix_socket import DEFAULT_SOCKET
from disksla.commands._context import prepare_sampler, with_ebs_readings
from disksla.commands._option_table import add_log_options, add_options
from disksla.commands._options import (
    add_config_file,
    add_duration,
    add_paths,
    add_web_config_file,
    roots_of,
)
from disksla.serve.daemon import Daemon, WebOptions
from disksla.serve.http_server.access import AccessControl, names_of_machine
from disksla.serve.http_server.connection import (
    DEFAULT_LISTEN_ADDRESS,
    Listen,
    ListenAddress,
    parse_listen_address,
)
from disksla.serve.http_server.turns import MOST_SCRAPES
from disksla.serve.metrics import SnapshotCollector, make_registry
from disksla.serve.metrics.render import read_build_info, render_metrics
from disksla.state.pipeline import Snapshot

SIGNALS = {signal.SIGHUP, signal.SIGINT, signal.SIGTERM}

log = logging.getLogger("disksla.serve")


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the options of this command."""
    add_options(parser, "--once  sample for a short time, print the metrics, and end")
    add_duration(parser, "2s", "with --once: duration of sampling (default: %(default)s)")
    add_config_file(parser)
    add_web_config_file(parser)
    add_options(
        parser,
        f"""
--web.listen-address ADDRESS  HOST:PORT to listen on; repeatable (default:
                              {DEFAULT_LISTEN_ADDRESS})
--web.systemd-socket          listen on the sockets that systemd passes (socket activation)
--web.unix-socket FILE        Unix socket to listen on too, for the user and the group of the
                              daemon and for root, without TLS or passwords; '' for none (default:
                              %(default)s, if its directory exists)
--web.telemetry-path PATH     path of the metrics (default: %(default)s)
--web.max-requests N          maximum number of concurrent scrapes, 0 for no limit (default:
                              %(default)s)
--web.host NAME               a name by which browsers may open the pages where there is neither
                              TLS nor a password, beside IP addresses and the names that the
                              machine has itself; repeatable
--web.no-reload               refuse POST /-/reload; SIGHUP (systemctl reload) still reloads the
                              configuration
""",
        {
            "--web.listen-address": {"action": "append"},
            "--web.unix-socket": {"type": str, "default": str(DEFAULT_SOCKET)},
            "--web.telemetry-path": {"default": "/metrics"},
            "--web.max-requests": {"type": _count, "default": MOST_SCRAPES},
            "--web.host": {"action": "append", "default": []},
        },
    )
    add_log_options(parser)
    add_paths(parser)


def run(arguments: argparse.Namespace) -> int:
    """Serve until SIGTERM or SIGINT; reload the configuration on SIGHUP.

    Signals are blocked in all threads, and this thread waits for them one at a time, so that no
    signal interrupts a system call.
    """
    if arguments.once:
        return _print_once(arguments)
    set_up_logging(arguments.log_level, arguments.log_format)
    telemetry_path = arguments.web_telemetry_path
    if not telemetry_path.startswith("/") or telemetry_path == "/":
        raise DiskslaError(
            f"--web.telemetry-path: found '{telemetry_path}'; expected a path such as /metrics"
        )
    listen = _listen_places(arguments)
    names = names_of_machine() | {host.lower() for host in arguments.web_host}
    access = AccessControl(arguments.web_config_file, names)
    web = WebOptions(
        listen=listen,
        telemetry_path=telemetry_path,
        access=access,
        max_scrapes=arguments.web_max_requests,
        unix_socket=Path(arguments.web_unix_socket) if arguments.web_unix_socket else None,
        may_reload=not arguments.web_no_reload,
    )
    manager = ServiceManager.from_environment(os.environ)
    daemon = Daemon(roots_of(arguments), arguments.config_file, manager, web)
    faulthandler.enable()  # the watchdog sends SIGABRT: then log where each thread was
    signal.pthread_sigmask(signal.SIG_BLOCK, SIGNALS)
    try:
        addresses = daemon.start()
        _print_urls(addresses, telemetry_path, "https" if access.speaks_tls else "http")
        while signal.sigwait(SIGNALS) == signal.SIGHUP:
            with contextlib.suppress(DiskslaError):  # logged, and visible in the metrics
                daemon.reload()
        log.info("stopping")
    finally:
        daemon.stop()
    return 0


def _print_once(arguments: argparse.Namespace) -> int:
    """Sample for a while, then print the metrics in the text format."""
    sampler = prepare_sampler(arguments)
    with with_ebs_readings(sampler):
        sampler.run_for(arguments.duration_s)
    collector = SnapshotCollector(lambda: Snapshot(sampler.state), read_build_info)
    registry = make_registry(collector)
    ProcessCollector(registry=registry)
    sys.stdout.buffer.write(render_metrics(registry).body)
    sys.stdout.buffer.flush()
    return 0


def _listen_places(arguments: argparse.Namespace) -> list[Listen]:
    """Return the addresses of the command line, or the sockets that systemd passed.

    Raises DiskslaError if the options contradict each other or what systemd passed.
    """
    passed = inherited_sockets(os.environ)
    if arguments.web_systemd_socket:
        if arguments.web_listen_address:
            raise DiskslaError(
                "--web.systemd-socket excludes --web.listen-address:"
                " the socket unit names the address"
            )
        if not passed:
            raise DiskslaError(
                "--web.systemd-socket: found no socket from systemd;"
                " expected to be started by a socket unit"
            )
        return list(passed)
    if passed:
        raise DiskslaError(
            f"found {len(passed)} socket(s) from systemd; expected --web.systemd-socket"
            " to serve on them"
        )
    texts = arguments.web_listen_address or [DEFAULT_LISTEN_ADDRESS]
    return [parse_listen_address(text) for text in texts]


def _count(text: str) -> int:
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"found '{text}'; expected a whole number such as 40")
    return int(text)


def _print_urls(addresses: Sequence[ListenAddress], telemetry_path: str, scheme: str) -> None:
    for address in addresses:
        host = address.host or "localhost"
        site = f"{scheme}://{f'[{host}]' if ':' in host else host}:{address.port}"
        print(f"disksla: status page on {site}/, metrics on {site}{telemetry_path}", flush=True)

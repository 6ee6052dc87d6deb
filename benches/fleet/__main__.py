"""A simulated fleet on loopback: measure its cost for Prometheus, or show a day of it."""

import argparse
import signal
import sys
import tempfile
import threading
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fleet.demo import Demo, show
from fleet.measure import Measurement, measure, report
from fleet.stack import missing

_TERMINATED = 128 + signal.SIGTERM


def _arguments(argv: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fleet", description=__doc__)
    commands = parser.add_subparsers(required=True)
    measurement = commands.add_parser(
        "measure", help="print the table of docs/fleet.md (make fleet)"
    )
    measurement.add_argument(
        "--hosts",
        type=int,
        default=1000,
        help="number of hosts, with ten disks each (default: %(default)s)",
    )
    measurement.add_argument(
        "--interval",
        type=float,
        default=60.0,
        help="scrape interval in seconds (default: %(default)s)",
    )
    measurement.add_argument(
        "--rounds",
        type=int,
        default=16,
        help="number of scrapes to measure; in 16 minutes, every rule group but that of an hour is"
        " evaluated three times (default: %(default)s)",
    )
    measurement.add_argument(
        "--rules",
        type=float,
        help="evaluation interval of rules in seconds (default: the scrape interval)",
    )
    measurement.add_argument(
        "--block", type=int, help="length of a block of data in minutes (default: 120)"
    )
    measurement.add_argument(
        "--without-rules",
        type=int,
        default=3,
        help="number of scrapes after them, without rules (default: %(default)s)",
    )
    measurement.add_argument(
        "--history",
        type=float,
        default=0.0,
        help="hours of history that are scraped first, faster, into the head (default: none)",
    )
    measurement.set_defaults(run=_measure)
    demo = commands.add_parser("demo", help="run until Ctrl-C (make demo)")
    demo.add_argument(
        "--hosts",
        type=int,
        default=20,
        help="number of hosts, with ten disks each (default: %(default)s)",
    )
    demo.add_argument(
        "--hours", type=float, default=24.0, help="hours of history (default: %(default)s)"
    )
    demo.add_argument(
        "--interval",
        type=float,
        default=60.0,
        help="scrape interval in seconds (default: %(default)s)",
    )
    demo.set_defaults(run=_show)
    return parser.parse_args(argv)


def _measure(arguments: argparse.Namespace, home: Path) -> None:
    measurement = Measurement(
        arguments.hosts,
        arguments.interval,
        arguments.rounds,
        arguments.rules,
        arguments.block,
        arguments.without_rules,
        arguments.history * 3600,
    )
    figures = measure(measurement, home, time.sleep)
    sys.stdout.write(report(figures))


def _show(arguments: argparse.Namespace, home: Path) -> None:
    settings = Demo(arguments.hosts, arguments.hours, arguments.interval)
    with suppress(KeyboardInterrupt):
        show(settings, home, _print, _wait)


def _wait() -> None:
    threading.Event().wait()


def _print(line: str) -> None:
    sys.stdout.write(f"demo: {line}\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command, or print why it is skipped."""
    arguments = _arguments(argv)
    if (reason := missing()) is not None:
        sys.stdout.write(f"fleet: SKIPPED: {reason}\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="disksla-fleet-") as home:
        arguments.run(arguments, Path(home))
    return 0


if __name__ == "__main__":
    # shells start background jobs with SIGINT ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    sys.exit(main())

"""A simulated fleet on loopback: what it costs a Prometheus, or a day of it to look at."""

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


def _arguments(words: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="fleet", description=__doc__)
    commands = parser.add_subparsers(required=True)
    measured = commands.add_parser("measure", help="make fleet; the table of docs/fleet.md")
    measured.add_argument("--hosts", type=int, default=1000, help="of ten disks each")
    measured.add_argument("--interval", type=float, default=60.0, help="of scrapes, in seconds")
    measured.add_argument("--rounds", type=int, default=10, help="of scraping, measured")
    measured.add_argument("--rules", type=float, help="interval of rules, where it is another")
    measured.add_argument("--block", type=int, help="minutes in a block of data, in place of 120")
    measured.set_defaults(run=_measure)
    shown = commands.add_parser("demo", help="make demo; until Ctrl-C")
    shown.add_argument("--hosts", type=int, default=20, help="of ten disks each")
    shown.add_argument("--hours", type=float, default=24.0, help="of history")
    shown.add_argument("--interval", type=float, default=60.0, help="of scrapes, in seconds")
    shown.set_defaults(run=_show)
    return parser.parse_args(words)


def _measure(arguments: argparse.Namespace, home: Path) -> None:
    measurement = Measurement(
        arguments.hosts, arguments.interval, arguments.rounds, arguments.rules, arguments.block
    )
    figures = measure(measurement, home, time.sleep)
    sys.stdout.write(report(figures))


def _show(arguments: argparse.Namespace, home: Path) -> None:
    demo = Demo(arguments.hosts, arguments.hours, arguments.interval)
    with suppress(KeyboardInterrupt):
        show(demo, home, _say, _forever)


def _forever() -> None:
    threading.Event().wait()


def _say(line: str) -> None:
    sys.stdout.write(f"demo: {line}\n")
    sys.stdout.flush()


def main(words: Sequence[str] | None = None) -> int:
    """Do what was asked for, or say why not."""
    arguments = _arguments(words)
    if (reason := missing()) is not None:
        sys.stdout.write(f"fleet: SKIPPED: {reason}\n")
        return 0
    with tempfile.TemporaryDirectory(prefix="disksla-fleet-") as home:
        arguments.run(arguments, Path(home))
    return 0


if __name__ == "__main__":
    signal.signal(signal.SIGINT, signal.default_int_handler)  # jobs of scripts are born deaf to it
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    sys.exit(main())

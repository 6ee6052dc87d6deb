"""`make demo`: rules, alerts and dashboards over a simulated day of 200 disks, until Ctrl-C."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from fleet.demo import Demo, show
from fleet.stack import missing

_TERMINATED = 128 + signal.SIGTERM


def _print(line: str) -> None:
    sys.stdout.write(f"demo: {line}\n")
    sys.stdout.flush()


def main(argv: Sequence[str] | None = None) -> int:
    """Show the fleet, or print why it is skipped."""
    parser = argparse.ArgumentParser(
        prog="fleet", description=__doc__, formatter_class=argparse.ArgumentDefaultsHelpFormatter
    )
    parser.add_argument("--hosts", type=int, default=40, help="hosts, with 4 or 6 disks each")
    parser.add_argument("--hours", type=float, default=24.0, help="hours of history")
    parser.add_argument("--interval", type=float, default=60.0, help="scrape interval in seconds")
    arguments = parser.parse_args(argv)
    if (reason := missing()) is not None:
        _print(f"SKIPPED: {reason}")
        return 0
    settings = Demo(arguments.hosts, arguments.hours, arguments.interval)
    with tempfile.TemporaryDirectory(prefix="disksla-fleet-") as home, suppress(KeyboardInterrupt):
        show(settings, Path(home), _print)
    return 0


if __name__ == "__main__":
    # shells start background jobs with SIGINT ignored
    signal.signal(signal.SIGINT, signal.default_int_handler)
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    sys.exit(main())

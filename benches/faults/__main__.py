"""`make soak`: run a day of ticks, or 100 scrapers, and measure memory and missed ticks."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from faults.scrapers import header, idle, scrape_in_rounds, table_row
from faults.soak import ALLOWED_BYTES, DAY_TICKS, HEADER, Soak, growth_bytes, report, usage_row
from support.daemon_process import DISKSLA, PATIENCE_S, Daemon
from support.waiting import eventually

LOADS = ("100, every second", 1.0), ("100, without a pause", 0.0)
IDLE_S = 20.0
MAX_MISSED_SHARE = 0.01


def _soak(directory: Path, ticks: int, seed: int) -> bool:
    soak = Soak(directory, seed)
    usages = []
    _print(HEADER)
    for usage in soak.run(ticks):
        usages.append(usage)
        _print(usage_row(usage))
    _print(report(soak, usages))
    return growth_bytes(usages) <= ALLOWED_BYTES and not soak.wrong


def _scrape(directory: Path, rounds: int) -> bool:
    """Scrape a daemon that monitors the disks of this host, loop devices included."""
    config, log = directory / "config.yml", directory / "log"
    config.write_text(json.dumps({"discovery": {"include": ["^loop"]}}), encoding="utf-8")
    command = (
        DISKSLA,
        "serve",
        f"--config.file={config}",
        "--web.listen-address=127.0.0.1:0",
        "--web.max-requests=0",  # the worst case: the default limit is 40
    )
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(command, stdout=subprocess.PIPE, stderr=errors, text=True) as process,
    ):
        daemon = Daemon(process, log)
        try:
            assert eventually(lambda: daemon.get("/-/ready")[0] == 200, PATIENCE_S)
            _print(f"{len(daemon.devices())} disks")
            _print(header())
            _print(table_row("none", idle(daemon.address, IDLE_S)))
            missed_shares = []
            for name, pause_s in LOADS:
                result = scrape_in_rounds(daemon.address, rounds, pause_s)
                missed_shares.append(result.missed_share)
                _print(table_row(name, result))
        finally:
            daemon.end()
    return max(missed_shares) < MAX_MISSED_SHARE


def _print(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(arguments: Sequence[str] | None = None) -> int:
    """Print the table; return 1 if memory grew, something is wrong, or many ticks were missed."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument(
        "--ticks",
        type=int,
        default=DAY_TICKS,
        help="ticks of 100 ms (default: %(default)s, a day)",
    )
    parser.add_argument(
        "--seed", type=int, default=1, help="seed of the simulated machine (default: %(default)s)"
    )
    parser.add_argument(
        "--scrapers", action="store_true", help="run 100 concurrent scrapers instead"
    )
    parser.add_argument(
        "--rounds", type=int, default=60, help="rounds of scraping (default: %(default)s)"
    )
    options = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="disksla-soak-") as directory:
        if options.scrapers:
            passed = _scrape(Path(directory), options.rounds)
        else:
            passed = _soak(Path(directory), options.ticks, options.seed)
    return 0 if passed else 1


if __name__ == "__main__":
    sys.exit(main())

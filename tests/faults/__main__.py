"""`make soak`: a day of ticks, or a hundred scrapers, and what that did to memory."""

import argparse
import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from pathlib import Path

from faults.scrapers import flood, head, quiet, row
from faults.soak import ALLOWED_BYTES, DAY_TICKS, Soak, growth_bytes, report
from support.daemon_process import DISKSLA, PATIENCE_S, Daemon
from support.loop_device import eventually

FLOODS = ("100, every second", 1.0), ("100, without a pause", 0.0)
QUIET_S = 20.0
MOST_MISSED_SHARE = 0.01


def _soak(directory: Path, ticks: int, seed: int) -> bool:
    soak = Soak(directory, seed)
    weights = list(soak.run(ticks))
    _say(report(soak, weights))
    return growth_bytes(weights) <= ALLOWED_BYTES


def _scrape(directory: Path, rounds: int) -> bool:
    """Flood a daemon that watches the disks of this machine, loops among them."""
    config, log = directory / "config.yml", directory / "log"
    config.write_text(json.dumps({"discovery": {"include": ["^loop"]}}), encoding="utf-8")
    words = (
        "serve",
        f"--config.file={config}",
        "--web.listen-address=127.0.0.1:0",
        "--web.max-requests=0",  # the worst: by default it answers 40 at once
    )
    with (
        log.open("w", encoding="utf-8") as errors,
        subprocess.Popen(
            [DISKSLA, *words], stdout=subprocess.PIPE, stderr=errors, text=True
        ) as process,
    ):
        daemon = Daemon(process, log)
        try:
            assert eventually(lambda: daemon.get("/-/ready")[0] == 200, PATIENCE_S)
            _say(f"{len(daemon.devices())} disks")
            _say(head())
            _say(row("none", quiet(daemon.address, QUIET_S)))
            shares = []
            for name, pause_s in FLOODS:
                seen = flood(daemon.address, rounds, pause_s)
                shares.append(seen.missed_share)
                _say(row(name, seen))
        finally:
            daemon.end()
    return max(shares) < MOST_MISSED_SHARE


def _say(text: str) -> None:
    sys.stdout.write(text + "\n")
    sys.stdout.flush()


def main(words: Sequence[str] | None = None) -> int:
    """Print the table; the status tells whether memory was flat, or the sampler in time."""
    parser = argparse.ArgumentParser(prog="soak", description=__doc__)
    parser.add_argument("--ticks", type=int, default=DAY_TICKS, help="of 100 ms")
    parser.add_argument("--seed", type=int, default=1, help="of what the machine goes through")
    parser.add_argument("--scrapers", action="store_true", help="instead, 100 scrapers at once")
    parser.add_argument("--rounds", type=int, default=60, help="of scraping")
    arguments = parser.parse_args(words)
    with tempfile.TemporaryDirectory(prefix="disksla-soak-") as directory:
        if arguments.scrapers:
            good = _scrape(Path(directory), arguments.rounds)
        else:
            good = _soak(Path(directory), arguments.ticks, arguments.seed)
    return 0 if good else 1


if __name__ == "__main__":
    sys.exit(main())

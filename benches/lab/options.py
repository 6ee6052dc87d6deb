"""Options of `make lab` and `make vm`, and what both do alike."""

import argparse
import signal
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NoReturn

from lab.scenario import SEED

_TERMINATED = 128 + signal.SIGTERM


def parser_of(
    program: str, description: str | None, scenarios: Iterable[str]
) -> argparse.ArgumentParser:
    """Return a parser of the options that both programs have."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument(
        "--only", nargs="+", metavar="NAME", choices=scenarios, help="scenarios to run"
    )
    parser.add_argument(
        "--seed", type=int, default=SEED, help="seed of the random numbers (default: %(default)s)"
    )
    parser.add_argument(
        "--keep", type=Path, metavar="DIR", help="directory for recordings and the truth"
    )
    parser.add_argument(
        "--judge", type=Path, metavar="DIR", help="directory of recordings to judge; run nothing"
    )
    return parser


def chosen(options: argparse.Namespace, scenarios: dict[str, Path]) -> dict[str, Path]:
    """Return the scenarios to run, or those whose recordings are to be judged."""
    return {
        name: path
        for name, path in scenarios.items()
        if (options.only is None or name in options.only)
        and (options.judge is None or (options.judge / name).is_dir())
    }


@contextmanager
def recordings(options: argparse.Namespace) -> Iterator[Path]:
    """Yield the directory of the recordings: a temporary one, unless an option names it."""
    with tempfile.TemporaryDirectory(prefix="disksla-recordings-") as directory:
        yield options.judge or options.keep or Path(directory)


def write(text: str) -> None:
    """Write lines at once: a run takes minutes."""
    sys.stdout.write(f"{text}\n")
    sys.stdout.flush()


def finish(failed: int, count: int) -> int:
    """Write how many failed; return 1 if any did, else 0."""
    write(f"{failed} of {count} failed")
    return 1 if failed else 0


def start(main: Callable[[], int]) -> NoReturn:
    """Run a program, and end; SIGTERM unwinds it, which removes disks and virtual machines."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(_TERMINATED))
    sys.exit(main())

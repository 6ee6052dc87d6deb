"""What all checks of a virtual machine share: skip them, check by name, report differences."""

import argparse
import time
from collections.abc import Iterable, Mapping

from lab.options import write
from vm.__main__ import missing


def parser_of(
    program: str, description: str, machines: Mapping[str, object]
) -> argparse.ArgumentParser:
    """Return a parser with --only, for the machines to check (default: all)."""
    parser = argparse.ArgumentParser(prog=program, description=description)
    parser.add_argument("--only", nargs="+", metavar="NAME", choices=machines, default=[*machines])
    return parser


def is_skipped(program: str) -> bool:
    """Return whether no virtual machine can run here; write why."""
    reason = missing()
    if reason is not None:
        write(f"{program}: SKIPPED: {reason}")
    return reason is not None


def report(checks: Iterable[tuple[str, list[str]]]) -> int:
    """Write the differences of each machine; return 1 if there are any, else 0."""
    began, failed, count = time.monotonic(), 0, 0
    for name, different in checks:
        write(f"{name}: {'FAIL' if different else 'OK'}")
        for line in different:
            write(f"  {line}")
        failed += bool(different)
        count += 1
    write(f"{failed} of {count} failed, {time.monotonic() - began:.0f} s")
    return 1 if failed else 0

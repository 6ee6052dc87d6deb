"""The allocator's arenas, of which each reserves 64 MiB of addresses."""

import subprocess
import sys

import pytest

THREADS = 4
ALLOCATE_IN_THREADS = f"""
import sys, threading
from pathlib import Path
from disksla.system.allocator import share_one_arena

def address_mib():
    return int(Path("/proc/self/statm").read_text().split()[0]) / 256

if sys.argv[1] == "shared":
    share_one_arena()
threading.stack_size(1 << 20)
before_mib = address_mib()
everyone = threading.Barrier({THREADS} + 1)

def allocate():
    kept = [bytes(1000) for _ in range(100)]
    everyone.wait()
    everyone.wait()

for _ in range({THREADS}):
    threading.Thread(target=allocate).start()
everyone.wait()
print(address_mib() - before_mib)
everyone.wait()
"""


def reserved_mib(arenas: str) -> float:
    """Return the addresses that threads reserve."""
    command = [sys.executable, "-c", ALLOCATE_IN_THREADS, arenas]
    return float(subprocess.run(command, check=True, capture_output=True, text=True).stdout)


def test_threads_share_one_arena() -> None:
    if reserved_mib("own") < THREADS * 64:
        pytest.skip("NOT TESTED: threads have no arenas of their own here")
    assert reserved_mib("shared") < 64

"""What a process without privileges can do with the descriptors of the helper.

Run as root: it becomes nobody, in a user namespace of its own, and prints what succeeds.
"""

import ctypes
import errno
import fcntl
import mmap
import os
import struct
import sys
import time
from collections.abc import Callable
from pathlib import Path

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.perf_events import EventGroup, open_counters
from disksla.kernel.performance_events.opened import ask
from disksla.kernel.performance_events.protocol import EventsRequest

NOBODY = 65534
NEW_USER = 0x10000000  # linux/sched.h
SET_FILTER, SET_PERIOD, ENABLE, DISABLE = 0x40082406, 0x40082404, 0x2400, 0x2401
WRITES = 25
SETTLE_S = 0.2


def main() -> None:
    """Print a line for each attempt."""
    helper, device = Path(sys.argv[1]), sys.argv[2]
    disk = None
    number = device
    if Path(f"/dev/{device}").exists():
        status = Path(f"/dev/{device}").stat()
        number = f"{os.major(status.st_rdev)}:{os.minor(status.st_rdev)}"
        disk = os.open(f"/dev/{device}", os.O_WRONLY | os.O_DIRECT)
    lose_privileges()
    if "--refused" in sys.argv:
        try:
            ask(helper, EventsRequest("data_writes", (number,)))
        except DiskslaError as error:
            print(error)  # noqa: T201
        return
    counters = ask(helper, EventsRequest("data_writes", (number,))).by_cpu
    samplers = ask(helper, EventsRequest("requests", (number,))).by_cpu
    assert disk is not None
    attempt(disk, counters, samplers)


def attempt(
    disk: int, counters: dict[int, tuple[int, ...]], samplers: dict[int, tuple[int, ...]]
) -> None:
    """Print what succeeds."""
    say("own event", lambda: open_counters(0, 1, [""]))
    groups = [EventGroup(each) for each in counters.values()]
    before = total(groups)
    page = mmap.mmap(-1, 4096)
    for position in range(WRITES):
        os.pwrite(disk, page, position * 4096)
    time.sleep(SETTLE_S)  # a request is counted in the context of an interrupt
    print(f"count: {total(groups) - before} writes of {WRITES}")  # noqa: T201
    (counter, *_), *_ = counters.values()
    (sampler, *_), *_ = samplers.values()
    say("filter of a counter", lambda: fcntl.ioctl(counter, SET_FILTER, b"dev==0\0"))
    say("period of a counter", lambda: fcntl.ioctl(counter, SET_PERIOD, struct.pack("=Q", 7)))
    say("map of the samples", lambda: mmap.mmap(sampler, 9 * mmap.PAGESIZE))
    say("filter of a sampler", lambda: fcntl.ioctl(sampler, SET_FILTER, b"dev==0\0"))
    say("period of a sampler", lambda: fcntl.ioctl(sampler, SET_PERIOD, struct.pack("=Q", 7)))
    say(
        "enable and disable a sampler",
        lambda: [fcntl.ioctl(sampler, each, 0) for each in (ENABLE, DISABLE)],
    )


def say(what: str, call: Callable[[], object]) -> None:
    """Print whether a call succeeds, or its error."""
    try:
        call()
    except OSError as error:
        print(f"{what}: {errno.errorcode[error.errno or 0]}")  # noqa: T201
    else:
        print(f"{what}: done")  # noqa: T201


def total(groups: list[EventGroup]) -> int:
    """Return what all CPUs counted."""
    return sum(sum(group.read() or ()) for group in groups)


def lose_privileges() -> None:
    """Become nobody, with capabilities in a namespace of its own only."""
    os.setgroups([])
    os.setgid(NOBODY)
    os.setuid(NOBODY)
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(NEW_USER):
        print("NOT TESTED: this kernel permits no user namespaces")  # noqa: T201
        raise SystemExit


if __name__ == "__main__":
    main()

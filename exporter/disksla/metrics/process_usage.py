"""What the process of the daemon uses, from /proc/self: CPU time, memory and open files."""

import os
import resource
from functools import cache
from pathlib import Path

from disksla.metrics.self_metrics import ProcessUsage

_SELF = Path("/proc/self")


def read_process_usage() -> ProcessUsage | None:
    """Return what this process uses; None while that cannot be read, as with no free file."""
    try:
        virtual, resident = map(int, (_SELF / "statm").read_bytes().split()[:2])
        open_fds = len(list((_SELF / "fd").iterdir()))
        started_timestamp_s = _started_timestamp_s()
    except OSError:
        return None
    used = resource.getrusage(resource.RUSAGE_SELF)
    max_fds, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    return ProcessUsage(
        cpu_s=used.ru_utime + used.ru_stime,
        resident_bytes=resident * resource.getpagesize(),
        virtual_bytes=virtual * resource.getpagesize(),
        started_timestamp_s=started_timestamp_s,
        open_fds=open_fds,
        max_fds=None if max_fds == resource.RLIM_INFINITY else max_fds,
    )


@cache
def _started_timestamp_s() -> float:
    """Return the Unix time at which this process started. Raise OSError."""
    after_name = (_SELF / "stat").read_bytes().rpartition(b")")[2].split()
    started_ticks = int(after_name[19])  # field 22 of proc_pid_stat(5)
    [boot_line] = [
        line for line in Path("/proc/stat").read_bytes().splitlines() if line.startswith(b"btime ")
    ]
    return int(boot_line.split()[1]) + started_ticks / os.sysconf("SC_CLK_TCK")

"""Time that the host waited for I/O: iowait of its CPUs, and pressure."""

import errno
from pathlib import Path

import psutil

from disksla.core.hostwait import HostWait
from disksla.core.pressure import parse_pressure_s


class HostWaitFiles:
    """Reads both, when asked: /proc/stat is long on hosts with many CPUs."""

    def __init__(self, procfs: Path) -> None:
        """Take the place of procfs, for psutil as well."""
        psutil.PROCFS_PATH = str(procfs)
        self._pressure = procfs / "pressure" / "io"

    def read(self) -> tuple[HostWait, dict[str, str]]:
        """Give the seconds since boot, and what could not be read.

        A kernel without pressure (before 4.20, or started with psi=0) is no trouble.
        """
        iowait_s = some_s = full_s = None
        troubles = {}
        try:
            iowait_s = psutil.cpu_times().iowait
        except (OSError, ValueError, IndexError) as error:
            troubles["iowait"] = f"{type(error).__name__}: {error}"
        try:
            some_s, full_s = parse_pressure_s(self._pressure.read_text(encoding="ascii"))
        except FileNotFoundError:
            pass
        except OSError as error:
            if error.errno != errno.EOPNOTSUPP:
                troubles["pressure"] = str(error)
        except ValueError as error:
            troubles["pressure"] = str(error)
        return HostWait(iowait_s, some_s, full_s), troubles

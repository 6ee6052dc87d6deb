"""Time that the host waited for I/O: iowait of its CPUs, and pressure."""

import errno
import math
from pathlib import Path

import psutil

from disksla.procfs.files import NotKernelFileError, require_kernel_file
from disksla.procfs.iowait import HostWait
from disksla.procfs.pressure import parse_pressure_s


class HostWaitFiles:
    """Reads both, when asked: /proc/stat is long on hosts with many CPUs."""

    def __init__(self, procfs: Path) -> None:
        """Take the place of procfs, for psutil as well."""
        psutil.PROCFS_PATH = str(procfs)
        self._procfs = procfs
        self._pressure = procfs / "pressure" / "io"
        self._stand_ins: dict[str, str] | None = None

    def read(self) -> tuple[HostWait, dict[str, str]]:
        """Give the seconds since boot, and what could not be read.

        A kernel without pressure (before 4.20, or started with psi=0) is no trouble.
        """
        if self._stand_ins is None:
            self._stand_ins = self._find_stand_ins()
        problems = dict(self._stand_ins)
        iowait_s = some_s = full_s = None
        if "iowait" not in problems:
            try:
                iowait_s = _seconds(psutil.cpu_times().iowait)
            except (OSError, ValueError, IndexError, TypeError) as error:  # too short a line
                problems["iowait"] = f"{type(error).__name__}: {error}"
        if "pressure" not in problems:
            try:
                some_s, full_s = parse_pressure_s(self._pressure.read_text(encoding="ascii"))
            except FileNotFoundError:
                pass
            except OSError as error:
                if error.errno != errno.EOPNOTSUPP:
                    problems["pressure"] = str(error)
            except ValueError as error:
                problems["pressure"] = str(error)
        return HostWait(iowait_s, some_s, full_s), problems

    def _find_stand_ins(self) -> dict[str, str]:
        """Tell which of the files are not the kernel's; looking costs more than reading."""
        found = {}
        for source, file in (("iowait", self._procfs / "stat"), ("pressure", self._pressure)):
            try:
                require_kernel_file(file, self._procfs)
            except NotKernelFileError as stand_in:
                found[source] = str(stand_in)
        return found


def _seconds(number: float) -> float:
    """Give what psutil read, unless the kernel cannot have written it."""
    if not 0 <= number < math.inf:
        raise ValueError(f"iowait of {number} s")
    return number

"""/proc/stat and /proc/pressure/io: read the time that the host waited for I/O."""

import errno
import math
from pathlib import Path

import psutil

from disksla.kernel.procfs.files import NotKernelFileError, require_kernel_file
from disksla.kernel.procfs.iowait import HostWait, parse_pressure_s


class HostWaitFiles:
    """Reads iowait of all CPUs, and I/O pressure.

    Not at every tick: /proc/stat is long on hosts with many CPUs.
    """

    def __init__(self, procfs: Path) -> None:
        """Set the root of procfs, for psutil as well."""
        psutil.PROCFS_PATH = str(procfs)
        self._procfs = procfs
        self._pressure = procfs / "pressure" / "io"
        self._not_kernel_files: dict[str, str] | None = None

    def read(self) -> tuple[HostWait, dict[str, str]]:
        """Return the seconds since boot, and errors by source: `iowait`, `pressure`.

        A kernel without pressure (before 4.20, or booted with psi=0) is not an error.
        """
        if self._not_kernel_files is None:
            self._not_kernel_files = self._find_not_kernel_files()
        problems = dict(self._not_kernel_files)
        iowait_s = some_s = full_s = None
        if "iowait" not in problems:
            try:
                iowait_s = _seconds(psutil.cpu_times().iowait)
            except (OSError, ValueError, IndexError, TypeError) as error:  # the line is too short
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

    def _find_not_kernel_files(self) -> dict[str, str]:
        """Return errors by source; checked once, because that costs more than reading."""
        found = {}
        for source, file in (("iowait", self._procfs / "stat"), ("pressure", self._pressure)):
            try:
                require_kernel_file(file, self._procfs)
            except NotKernelFileError as error:
                found[source] = str(error)
        return found


def _seconds(number: float) -> float:
    """Return `number`. Raise ValueError if the kernel cannot have written it."""
    if not 0 <= number < math.inf:
        raise ValueError(f"found iowait of {number} s; expected 0 s or more")
    return number

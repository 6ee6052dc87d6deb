"""Time that the host waited for I/O (iowait and PSI), and its attribution to throttled disks.

iowait is CPU time that was idle while a task waited for I/O: ill-defined per CPU, hidden by other
work, and able to decrease (proc_stat(5)). Pressure (PSI, Documentation/accounting/psi.rst) is the
time in which some tasks, or all, were stalled on I/O. Neither is counted per disk, and neither
includes I/O submitted by libaio. The published values are therefore a correlation: the part of
both in windows in which a disk was throttled, shared between the throttled disks in proportion to
the time that requests waited at each.
"""

import re
from collections.abc import Mapping

from msgspec.structs import astuple

from disksla.base.counts import Summable


class HostWait(Summable, frozen=True, gc=False):
    """Seconds that the host waited for I/O, since boot or within a window.

    None where the kernel does not report them.
    """

    iowait_s: float | None = None
    pressure_some_s: float | None = None
    pressure_full_s: float | None = None

    def since(self, before: "HostWait") -> "HostWait":
        """Return the increase since `before`, at least 0, because iowait may decrease."""
        return self._each(lambda now_s, before_s: max(0.0, now_s - before_s), before)

    def where_known(self, host: "HostWait") -> "HostWait":
        """Return these seconds, with None where `host` has None."""
        pairs = zip(astuple(self), astuple(host), strict=True)
        return HostWait(*(None if known_s is None else own_s for own_s, known_s in pairs))

    def shared(self, waited_s: Mapping[str, float]) -> dict[str, "HostWait"]:
        """Return the share of each device, in proportion to `waited_s`; equal shares if that is 0.

        `waited_s` has the I/O-seconds that requests waited at each device.
        """
        together_s = sum(waited_s.values())
        parts = {}
        for device, disk_s in waited_s.items():
            parts[device] = self * (disk_s / together_s if together_s else 1 / len(waited_s))
        return parts


_TOTAL = re.compile(r"^(some|full) .*\btotal=(\d{1,20})$", re.MULTILINE)
_MICROSECONDS = 1e6


def parse_pressure_s(text: str) -> tuple[float, float]:
    """Return the seconds since boot in which some tasks, and in which all, were stalled on I/O.

    Raise ValueError if the text has no such totals.
    """
    totals = {kind: int(total) / _MICROSECONDS for kind, total in _TOTAL.findall(text)}
    if totals.keys() != {"some", "full"}:
        raise ValueError(f"found {text[:120]!r}; expected lines 'some' and 'full' with total=")
    return totals["some"], totals["full"]

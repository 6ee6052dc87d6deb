"""What the whole host waited for its disks, and each disk's part of it.

iowait is CPU time that was idle while some task waited for I/O: ill-defined per CPU, hidden by
other work, and able to fall (proc_stat(5)). Pressure (PSI, Documentation/accounting/psi.rst) is
the time in which some tasks, or all, stood still for I/O. Neither knows disks, and neither sees
what is done asynchronously. So what is published is a correlation: the part of them that fell
into windows in which a disk was throttled, shared between the disks that were by how long
requests waited at each.
"""

from collections.abc import Callable, Mapping

import msgspec


class HostWait(msgspec.Struct, frozen=True, gc=False):
    """Cumulative seconds since boot; None where the kernel does not tell."""

    iowait_s: float | None = None
    pressure_some_s: float | None = None
    pressure_full_s: float | None = None


def between(before: HostWait, after: HostWait) -> HostWait:
    """Give what was added; never less than nothing, for iowait may fall."""
    return _each(before, after, lambda old_s, new_s: max(0.0, new_s - old_s))


def added(total: HostWait, part: HostWait) -> HostWait:
    """Give the sum; what one of them does not know is not known."""
    return _each(total, part, lambda total_s, part_s: total_s + part_s)


def told_by(host: HostWait, total: HostWait) -> HostWait:
    """Give of a total what the host tells of at all."""
    return _each(host, total, lambda _, total_s: total_s)


def shared(whole: HostWait, waited_s: Mapping[str, float]) -> dict[str, HostWait]:
    """Share out what the host waited by the I/O-seconds that requests waited at each disk."""
    together_s = sum(waited_s.values())
    parts = {}
    for device, disk_s in waited_s.items():
        share = disk_s / together_s if together_s else 1 / len(waited_s)
        shares = HostWait(share, share, share)
        parts[device] = _each(whole, shares, lambda whole_s, part: whole_s * part)
    return parts


def _each(one: HostWait, other: HostWait, combine: Callable[[float, float], float]) -> HostWait:
    return HostWait(
        *(
            None if left is None or right is None else combine(left, right)
            for left, right in zip(
                msgspec.structs.astuple(one), msgspec.structs.astuple(other), strict=True
            )
        )
    )

"""Preconditions of a valid verification, and the ones that were violated.

Source: https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla. It requires a disk that is
not the boot disk and has no other load, and one of four file systems if a file is used.
"""

import math
from typing import Literal

import msgspec

from disksla.credits import WINDOW_S
from disksla.disks import VERIFY_MAX_OTHER_LOAD, Disk
from disksla.units import format_duration
from disksla.verification.suites import Suite

Precondition = Literal[
    "boot_disk", "other_load", "file_system", "probed", "short_runtime", "base_not_reached"
]

CUT_WINDOWS = 3
"""How many windows of the limiter a test may gain or lose: a full one at its start, and a partial
one at each end."""
_SYSTEM_MOUNT_POINTS = {"/", "/boot", "/boot/efi", "/efi", "/usr"}
_ROUNDING_RATIO = 0.01


class Violation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A precondition that was violated."""

    precondition: Precondition
    message: str


def known_violations(
    disk: Disk, suite: Suite, runtime_s: float, tolerance_ratio: float, file_system: str | None
) -> tuple[Violation, ...]:
    """Return the violations that are known before the disk is accessed.

    `file_system` is the type of the file system of the scratch file; None without one.
    """
    found = (
        boot_disk(disk),
        short_runtime(runtime_s, tolerance_ratio),
        None if file_system is None else wrong_file_system(suite, file_system),
    )
    return tuple(violation for violation in found if violation is not None)


def least_runtime_s(tolerance_ratio: float) -> float:
    """Return the shortest runtime for which the windows of the limiter do not matter.

    What a test gains or loses by them must be within the tolerance: 10 s at 3 %.
    """
    return CUT_WINDOWS * WINDOW_S / tolerance_ratio


def short_runtime(runtime_s: float, tolerance_ratio: float) -> Violation | None:
    """Return the violation if tests are too short; a deviation of 1 % counts as rounding."""
    least_s = least_runtime_s(tolerance_ratio)
    if runtime_s >= least_s or math.isclose(runtime_s, least_s, rel_tol=_ROUNDING_RATIO):
        return None
    return Violation(
        "short_runtime",
        f"a runtime of {format_duration(runtime_s)} is too short: limiters have windows of"
        f" {format_duration(WINDOW_S)}, so a tolerance of {100 * tolerance_ratio:.3g}% needs at"
        f" least {format_duration(least_s)}",
    )


def boot_disk(disk: Disk) -> Violation | None:
    """Return the violation if the system runs from the disk, which then always has other load."""
    mount_points = sorted(_SYSTEM_MOUNT_POINTS & set(disk.mount_points))
    if not mount_points:
        return None
    return Violation(
        "boot_disk",
        f"the system runs from {disk.name}: it is mounted at {', '.join(mount_points)}",
    )


def wrong_file_system(suite: Suite, file_system: str) -> Violation | None:
    """Return the violation if the suite does not allow this file system for its file."""
    if not suite.file_systems or file_system in suite.file_systems:
        return None
    allowed = ", ".join(suite.file_systems)
    return Violation(
        "file_system",
        f"the scratch file is on {file_system}; suite {suite.name} expects {allowed}",
    )


def other_load(share: float, when: str) -> Violation | None:
    """Return the violation if other processes used more than a negligible share of the promise."""
    if share <= VERIFY_MAX_OTHER_LOAD:
        return None
    return Violation(
        "other_load",
        f"other load {when}: {100 * share:.2g}% of the promise; at most"
        f" {100 * VERIFY_MAX_OTHER_LOAD:.2g}% is allowed",
    )

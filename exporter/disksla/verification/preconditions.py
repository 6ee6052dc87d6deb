"""The conditions under which a test of a disk proves anything, and those that did not hold.

Source: https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla, which asks for a disk that
is not booted from and has no other load, and for one of four file systems where a file is used.
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
"""So many of the limiter's windows a run may gain or lose: one that it finds full, and one cut at
either end."""
_SYSTEM = {"/", "/boot", "/boot/efi", "/efi", "/usr"}
_ROUNDING_RATIO = 0.01


class Violation(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A condition of the test that did not hold."""

    precondition: Precondition
    message: str


def least_runtime_s(tolerance_ratio: float) -> float:
    """Give how long a line must run for the limiter's windows not to matter.

    What it gains or loses by them must stay within the tolerance: 10 s at 3 %.
    """
    return CUT_WINDOWS * WINDOW_S / tolerance_ratio


def short_runtime(runtime_s: float, tolerance_ratio: float) -> Violation | None:
    """Say if lines run for too short a time; a hundredth less is rounding."""
    least_s = least_runtime_s(tolerance_ratio)
    if runtime_s >= least_s or math.isclose(runtime_s, least_s, rel_tol=_ROUNDING_RATIO):
        return None
    return Violation(
        "short_runtime",
        f"a line of {format_duration(runtime_s)} is too short: limiters work in windows of"
        f" {format_duration(WINDOW_S)}, so a tolerance of {100 * tolerance_ratio:.3g} % needs"
        f" {format_duration(least_s)}",
    )


def boot_disk(disk: Disk) -> Violation | None:
    """Say if the system runs from a disk, which is never without other load."""
    held = sorted(_SYSTEM & set(disk.mount_points))
    if not held:
        return None
    return Violation(
        "boot_disk", f"the system runs from {disk.name}: it is mounted at {', '.join(held)}"
    )


def wrong_file_system(suite: Suite, file_system: str) -> Violation | None:
    """Say if the procedure is not meant for a file on such a file system."""
    if not suite.file_systems or file_system in suite.file_systems:
        return None
    meant = ", ".join(suite.file_systems)
    return Violation(
        "file_system", f"the file lies on {file_system}; suite {suite.name} is meant for {meant}"
    )


def other_load(share: float, when: str) -> Violation | None:
    """Say if others used more of the promise than can be overlooked."""
    if share <= VERIFY_MAX_OTHER_LOAD:
        return None
    return Violation(
        "other_load",
        f"{when}, others used {100 * share:.2g} % of the promise; {VERIFY_MAX_OTHER_LOAD:.0%} at"
        " most can be overlooked",
    )

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.limits.limits import NO_LIMITS
from disksla.verification.preconditions import (
    boot_disk,
    least_runtime_s,
    other_load,
    short_runtime,
    wrong_file_system,
)
from disksla.verification.suites import make_suite
from support.simulated_host import a_disk


def test_short_runtime_is_a_violation() -> None:
    assert least_runtime_s(0.03) == pytest.approx(10)
    assert short_runtime(10.0, 0.03) is None
    assert short_runtime(9.95, 0.03) is None
    found = short_runtime(5.0, 0.03)
    assert found is not None
    assert found.precondition == "short_runtime"
    assert found.message == (
        "a runtime of 5 s is too short: limiters have windows of 100 ms, so a tolerance of 3%"
        " needs at least 10 s"
    )


@given(st.floats(0.001, 0.5))
def test_least_runtime_is_accepted(tolerance: float) -> None:
    assert short_runtime(least_runtime_s(tolerance), tolerance) is None
    assert short_runtime(0.9 * least_runtime_s(tolerance), tolerance) is not None


@pytest.mark.parametrize("mount_point", ["/", "/boot", "/boot/efi", "/usr"])
def test_boot_disk_is_a_violation(mount_point: str) -> None:
    found = boot_disk(a_disk(mount_points=("/data", mount_point)))
    assert found is not None
    assert found.message == f"the system runs from vda: it is mounted at {mount_point}"
    assert boot_disk(a_disk(mount_points=("/data", "/home"))) is None


def test_vk_accepts_four_file_systems() -> None:
    vk, yandex = (make_suite(name, NO_LIMITS, 0.03) for name in ("vk", "yandex"))
    assert wrong_file_system(vk, "xfs") is None
    assert wrong_file_system(yandex, "btrfs") is None
    found = wrong_file_system(vk, "btrfs")
    assert found is not None
    assert found.message == "the scratch file is on btrfs; suite vk expects ext2, ext3, ext4, xfs"


def test_little_other_load_is_accepted() -> None:
    assert other_load(0.01, "before the test") is None
    found = other_load(0.123, "during randread-4k")
    assert found is not None
    assert found.message == (
        "other load during randread-4k: 12% of the promise; at most 1% is allowed"
    )

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.measure.fio.result import DirectionResult, FioResult
from disksla.measure.verification.preconditions import (
    Violation,
    journal_writes,
    known_violations,
    least_runtime_s,
    other_load,
    other_share,
    short_runtime,
    transferred_between,
    transferred_by,
)
from disksla.measure.verification.suites import SuiteName, make_suite
from disksla.promise.catalogue.cost_model import Rates, Work, separate_charges
from disksla.promise.catalogue.limits import NO_LIMITS
from support.simulated_host import a_disk


def violation(found: Violation | None) -> Violation:
    assert found is not None
    return found


def test_short_runtime_is_a_violation() -> None:
    assert least_runtime_s(0.03) == pytest.approx(10)
    assert short_runtime(10.0, 0.03) is None
    assert short_runtime(9.95, 0.03) is None
    found = violation(short_runtime(5.0, 0.03))
    assert found.precondition == "short_runtime"
    assert found.message == (
        "a runtime of 5 s is too short: limiters have windows of 100 ms, so a tolerance of 3%"
        " needs at least 10 s"
    )


@given(st.floats(0.001, 0.5))
def test_least_runtime_is_accepted(tolerance: float) -> None:
    assert short_runtime(least_runtime_s(tolerance), tolerance) is None
    assert short_runtime(0.9 * least_runtime_s(tolerance), tolerance) is not None


@pytest.mark.parametrize(
    ("mount_points", "suite", "file_system", "expected"),
    [
        (("/data", "/home"), "vk", None, []),
        ((), "vk", "xfs", []),
        ((), "yandex", "btrfs", []),
        (
            ("/data", "/boot/efi", "/"),
            "vk",
            "btrfs",
            [
                "the system runs from vda: it is mounted at /, /boot/efi",
                "the scratch file is on btrfs; suite vk expects ext2, ext3, ext4, xfs",
            ],
        ),
    ],
)
def test_what_is_known_before_the_disk_is_accessed(
    mount_points: tuple[str, ...], suite: SuiteName, file_system: str | None, expected: list[str]
) -> None:
    disk = a_disk(mount_points=mount_points)
    found = known_violations(disk, make_suite(suite, NO_LIMITS, 0.03), 60.0, 0.03, file_system)
    assert [each.message for each in found] == expected


def test_little_other_load_is_accepted() -> None:
    assert other_load(0.01, "before the test") is None
    found = violation(other_load(0.123, "during randread-4k"))
    assert found.message == (
        "other load during randread-4k: 12% of the promise; at most 1% is allowed"
    )


CHARGES = separate_charges(Rates(1000.0, 500.0, 100e6, 100e6))
COUNTERS = (100, 5, 800, 10, 50, 2, 400, 20)


def test_merged_requests_are_counted() -> None:
    later = (110, 8, 880, 10, 51, 2, 408, 20)
    assert transferred_between(COUNTERS, later) == Work(13, 1, 80 * 512, 8 * 512)
    assert transferred_between(COUNTERS[:3], (101, 5, 808)) == Work(1, 0, 4096, 0)


def test_own_transfers_are_those_reported_by_fio() -> None:
    read = DirectionResult(10, 40960, 1.0, 10.0, 40960.0, 0.001)
    write = DirectionResult(2, 8192, 1.0, 2.0, 8192.0, 0.001)
    assert transferred_by(FioResult("fio-3.33", read, write)) == Work(10, 2, 40960, 8192)


@pytest.mark.parametrize(
    ("disk", "own", "request_bytes", "share"),
    [
        (Work(1000, 0, 4096000), Work(1000, 0, 4096000), 4096, 0.0),
        (Work(1100, 0, 4505600), Work(1000, 0, 4096000), 4096, 0.1),  # other reads
        (Work(1000, 50, 4096000, 204800), Work(1000, 0, 4096000), 4096, 0.1),  # other writes
        (Work(900, 0, 4096000), Work(1000, 0, 4096000), 4096, 0.0),  # never negative
        (Work(800, 0, 100 * 2**20), Work(100, 0, 100 * 2**20), 2**20, 0.0),  # split requests
        (Work(80, 0, 200 * 2**20), Work(100, 0, 100 * 2**20), 2**20, 1.048576),
        (Work(100, 8, 100 * 2**20, 0), Work(100, 0, 100 * 2**20), 2**20, 0.016),
    ],
)
def test_other_share(disk: Work, own: Work, request_bytes: int, share: float) -> None:
    assert other_share(CHARGES, 1.0, disk, own, request_bytes) == pytest.approx(share)


def test_journal_writes() -> None:
    assert journal_writes(60.0) == Work(writes=120, written_bytes=120 * 4096)
    assert journal_writes(0.1).writes == 1


amounts = st.integers(0, 10**9)
transfers = st.builds(Work, amounts, amounts, amounts, amounts)


@given(transfers, transfers, st.sampled_from([4096, 65536, 2**20]), st.floats(0.1, 1000))
def test_own_transfers_are_not_other_load(
    own: Work, more: Work, size: int, seconds: float
) -> None:
    assert other_share(CHARGES, seconds, own, own, size) == 0.0
    assert other_share((), seconds, more, Work(), size) == 0.0
    assert other_share(CHARGES, seconds, own + more, own, size) >= 0.0

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.core.cost import Allowance, separate_charges
from disksla.core.fio import FioResult, Measured
from disksla.core.otherload import Done, bookkeeping, done_between, done_by, other_share

CHARGES = separate_charges(Allowance(1000.0, 100e6), Allowance(500.0, 100e6))
COUNTERS = (100, 5, 800, 10, 50, 2, 400, 20)


def test_requests_count_as_they_were_handed_in() -> None:
    later = (110, 8, 880, 10, 51, 2, 408, 20)
    assert done_between(COUNTERS, later) == Done(13, 1, 80 * 512, 8 * 512)
    assert done_between(COUNTERS[:3], (101, 5, 808)) == Done(1, 0, 4096, 0)


def test_a_test_is_taken_at_its_word() -> None:
    read = Measured(10, 40960, 1.0, 10.0, 40960.0, 0.001)
    write = Measured(2, 8192, 1.0, 2.0, 8192.0, 0.001)
    assert done_by(FioResult("fio-3.33", read, write)) == Done(10, 2, 40960, 8192)
    assert Done(1, 2, 3, 4).plus(Done(10, 20, 30, 40)) == Done(11, 22, 33, 44)


@pytest.mark.parametrize(
    ("disk", "own", "request_bytes", "share"),
    [
        (Done(1000, 0, 4096000), Done(1000, 0, 4096000), 4096, 0.0),
        (Done(1100, 0, 4505600), Done(1000, 0, 4096000), 4096, 0.1),  # reads beside reads
        (Done(1000, 50, 4096000, 204800), Done(1000, 0, 4096000), 4096, 0.1),  # writes
        (Done(900, 0, 4096000), Done(1000, 0, 4096000), 4096, 0.0),  # never less than nothing
        (Done(800, 0, 100 * 2**20), Done(100, 0, 100 * 2**20), 2**20, 0.0),  # in pieces
        (Done(80, 0, 200 * 2**20), Done(100, 0, 100 * 2**20), 2**20, 1.048576),
        (Done(100, 8, 100 * 2**20, 0), Done(100, 0, 100 * 2**20), 2**20, 0.016),
    ],
)
def test_others_are_what_the_test_did_not_do(
    disk: Done, own: Done, request_bytes: int, share: float
) -> None:
    assert other_share(CHARGES, 1.0, disk, own, request_bytes) == pytest.approx(share)


def test_a_file_system_keeps_its_books() -> None:
    assert bookkeeping(60.0) == Done(writes=120, written_bytes=120 * 4096)
    assert bookkeeping(0.1).writes == 1


def test_without_a_promise_there_is_no_share() -> None:
    assert other_share((), 1.0, Done(5, 5, 5, 5), Done(), 4096) == 0.0


amounts = st.integers(0, 10**9)
dones = st.builds(Done, amounts, amounts, amounts, amounts)


@given(dones, dones, st.sampled_from([4096, 65536, 2**20]), st.floats(0.1, 1000))
def test_the_test_itself_is_no_other(own: Done, more: Done, size: int, seconds: float) -> None:
    assert other_share(CHARGES, seconds, own, own, size) == 0.0
    assert other_share(CHARGES, seconds, own.plus(more), own, size) >= 0.0

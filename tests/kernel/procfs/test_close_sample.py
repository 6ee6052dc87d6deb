"""Close samples: the counters of one disk."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.procfs.diskstats import CloseSample, parse_close_sample

LINUX_6 = b"  101    2   808    9    50    7   1600   20    3    15   29 0 0 0 0 7 4\n"
LINUX_4 = b"  101    2   808    9    50    7   1600   20    3    15   29\n"
COUNT = st.integers(0, 2**64 - 1)


def test_sample_has_requests_sectors_and_flushes() -> None:
    sample = parse_close_sample(12.3456789, LINUX_6)
    assert sample == CloseSample(12.34568, 101, 50, 808, 1600, 3, 7, 4)


def test_old_kernels_count_no_flushes() -> None:
    assert parse_close_sample(1.0, LINUX_4) == CloseSample(1.0, 101, 50, 808, 1600, 3)


def test_requests_in_flight_of_partitions_are_those_of_sysfs() -> None:
    assert parse_close_sample(1.0, LINUX_6, b"       4       8\n").inflight == 12


def test_kernels_that_count_below_zero() -> None:
    assert parse_close_sample(1.0, LINUX_4.replace(b" 3 ", b" -1 ")).inflight == 0


def test_paths_of_a_disk_add_up() -> None:
    one, other = parse_close_sample(1.0, LINUX_6), parse_close_sample(1.0, LINUX_4)
    assert one + other == CloseSample(1.0, 202, 100, 1616, 3200, 6, 7, 4)


@pytest.mark.parametrize(
    "text", [b"", b"\n", b"1 2 3\n", LINUX_4[:45], LINUX_4.replace(b"808", b"many"), b"\xff" * 40]
)
def test_other_texts_are_rejected(text: bytes) -> None:
    with pytest.raises(ValueError, match=r"^found .*; expected 11 numbers or more$"):
        parse_close_sample(1.0, text)


def test_other_texts_of_inflight_are_rejected() -> None:
    with pytest.raises(ValueError, match=r"^found .*; expected two numbers$"):
        parse_close_sample(1.0, LINUX_6, b"one\n")


@given(st.floats(0, 1e8), st.lists(COUNT, min_size=11, max_size=20))
def test_numbers_are_those_of_the_text(at_s: float, numbers: list[int]) -> None:
    text = b" ".join(b"%8d" % number for number in numbers) + b"\n"
    sample = parse_close_sample(at_s, text)
    assert abs(sample.at_s - at_s) <= 0.000_005 + 1e-8
    assert (sample.reads, sample.writes) == (numbers[0], numbers[4])
    assert (sample.read_sectors, sample.written_sectors) == (numbers[2], numbers[6])
    assert sample.inflight == (numbers[8] if numbers[8] < 2**31 else 0)
    flushes = (*numbers[15:17], 0, 0)[:2]
    assert (sample.flushes, sample.flush_ms) == flushes


@given(st.binary(max_size=200), st.none() | st.binary(max_size=30))
def test_any_bytes_are_a_sample_or_an_error(text: bytes, inflight: bytes | None) -> None:
    try:
        sample = parse_close_sample(1.0, text, inflight)
    except ValueError:
        return
    assert sample.inflight >= 0

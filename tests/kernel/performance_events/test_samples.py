"""Samples as the kernel writes them."""

import contextlib
import struct
from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.kernel.performance_events.samples import (
    MOST_PER_S,
    PERIODS,
    RecordForm,
    RequestSample,
    buffer_pages,
    period_for,
)
from support.request_samples import lost, record

COMMS = (36, 38)  # offset of the name of the program in kernels up to 6.12, and in 6.18


UNKNOWN = struct.pack("=IHHQ", 5, 0, 16, 0)  # a record of another kind, such as THROTTLE
names = st.binary(min_size=16, max_size=16)
samples = st.builds(
    RequestSample,
    st.integers(0, 2**16 - 1),
    st.integers(0, 2**32 - 1),
    st.integers(0, 2**32 - 1),
    names,
    st.integers(0, 2**64 - 1),
)


@pytest.mark.parametrize("comm", COMMS)
def test_size_of_a_sample_is_that_of_the_kernel(comm: int) -> None:
    """88 bytes were measured on 5.10, 6.1, 6.12 and 6.18."""
    sample = RequestSample(1183, 7 << 20, 8, b"postgres".ljust(16, b"\0"), 4711)
    content = record(sample, comm)
    assert len(content) == 88
    assert RecordForm(comm).parse(content * 3) == {sample: 3}


@given(st.sampled_from(COMMS), st.lists(samples, max_size=20))
def test_samples_are_read_as_they_were_written(comm: int, written: list[RequestSample]) -> None:
    content = b"".join(record(each, comm, pid) for pid, each in enumerate(written))
    assert RecordForm(comm).parse(content) == Counter(written)


@given(
    st.sampled_from(COMMS),
    st.lists(st.one_of(samples, st.integers(0, 2**40), st.just(UNKNOWN)), max_size=20),
)
def test_other_records_between_them(comm: int, written: list[RequestSample | int | bytes]) -> None:
    content, expected = b"", Counter[RequestSample]()
    for each in written:
        if isinstance(each, RequestSample):
            content += record(each, comm)
            expected[each] += 1
        elif isinstance(each, int):
            content += lost(each)
        else:
            content += each
    assert RecordForm(comm).parse(content) == expected


@given(st.binary(max_size=400))
def test_any_content_is_read_or_refused(content: bytes) -> None:
    with contextlib.suppress(DiskslaError):
        found = RecordForm(38).parse(content)
        assert found.total() * 88 <= len(content)


@pytest.mark.parametrize(
    "content",
    [
        record(RequestSample(1, 2, 3, bytes(16), 4), 48),  # a record that is longer
        record(RequestSample(1, 2, 3, bytes(16), 4), 38)[:-8],
        record(RequestSample(1, 2, 3, bytes(16), 4), 38).replace(b"\x3c\0\0\0", b"\x38\0\0\0"),
        struct.pack("=IHH", 9, 0, 0) * 11,
        struct.pack("=IHH", 9, 0, 88),
        b"\0" * 88,
    ],
)
def test_records_of_another_form_are_refused(content: bytes) -> None:
    with pytest.raises(DiskslaError, match="this kernel is not known"):
        RecordForm(38).parse(content)


@pytest.mark.parametrize("comm", [None, 0, 28, 31, 257])
def test_offset_that_cannot_be(comm: int | None) -> None:
    with pytest.raises(DiskslaError, match=f"found the name of a program at offset {comm}"):
        RecordForm(comm)


def test_periods_are_odd_primes() -> None:
    """Each is prime to the others and to 2, so that no pattern of requests repeats with it."""
    assert PERIODS[0] == 1
    for period in PERIODS[1:]:
        assert all(period % factor for factor in range(2, int(period**0.5) + 1))
        assert period % 2


@given(st.floats(0, 1e7), st.sampled_from([MOST_PER_S, MOST_PER_S / 2]))
def test_samples_are_limited(events_per_s: float, most_per_s: float) -> None:
    period = period_for(events_per_s, most_per_s)
    assert events_per_s / period <= most_per_s or period == PERIODS[-1]
    shorter = [each for each in PERIODS if each < period]
    assert not shorter or events_per_s / shorter[-1] > most_per_s


@pytest.mark.parametrize(
    ("cpus", "pages"), [(1, 64), (4, 64), (5, 32), (8, 32), (9, 16), (512, 16)]
)
def test_buffers_take_little_memory(cpus: int, pages: int) -> None:
    assert buffer_pages(cpus) == pages
    assert pages * 4096 // 88 > MOST_PER_S / 4


def test_lost_samples_and_records_of_other_kinds() -> None:
    sample = RequestSample(1183, 7 << 20, 8, b"postgres".ljust(16, b"\0"), 4711)
    content = record(sample, 36) + lost(443) + UNKNOWN + record(sample, 36)
    assert RecordForm(36).parse(content) == {sample: 2}


@pytest.mark.parametrize(
    ("events_per_s", "period"), [(0, 1), (2000, 1), (2001, 3), (30_000, 29), (1e9, PERIODS[-1])]
)
def test_period_for_a_rate(events_per_s: float, period: int) -> None:
    assert period_for(events_per_s, MOST_PER_S) == period

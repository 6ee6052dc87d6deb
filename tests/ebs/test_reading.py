"""Lines between the helper and its clients."""

from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.ebs.reading import (
    LONGEST_LINE_BYTES,
    Alive,
    Failure,
    Reading,
    Watch,
    decode_message,
    decode_request,
    encode,
)
from disksla.ebs.statistics import PageFailureReason, parse
from disksla.errors import DiskslaError
from support.ebs_pages import Page

MOST = 2**63 - 1
BINS = [(MOST - 1, MOST - 1, 2**32 - 1)] * 63 + [(MOST, MOST, 2**32 - 1)]
LARGEST = Page(0x3C23B510, 1, *(MOST,) * 11, BINS, BINS)


def test_a_reading_is_read_as_it_was_written() -> None:
    reading = Reading("nvme1n1", "vol0a1b", 12.5, parse(LARGEST.written()), 0.001)
    line = encode(reading)
    assert decode_message(line) == reading
    assert line.endswith(b"\n")
    assert line.count(b"\n") == 1
    assert len(line) < LONGEST_LINE_BYTES


@given(st.sampled_from(get_args(PageFailureReason)), st.text(max_size=100))
def test_a_failure_is_read_as_it_was_written(reason: str, message: str) -> None:
    failure = Failure("nvme1n1", reason, message)  # type: ignore[arg-type]
    assert decode_message(encode(failure)) == failure


def test_that_the_helper_works_is_read_as_it_was_written() -> None:
    assert decode_message(encode(Alive())) == Alive()


@given(st.lists(st.text(min_size=1, max_size=64), max_size=128))
def test_a_request_is_read_as_it_was_written(devices: list[str]) -> None:
    request = Watch(tuple(devices))
    assert decode_request(encode(request)) == request


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"\xff\n",
        b"[" * 5000,
        b'{"type":"other"}',
        b'{"type":"failure","device":"a","reason":"unheard of"}',
        b'{"type":"failure","device":"","reason":"short"}',
        b'{"type":"reading","device":"a","serial":"","monotonic_s":1e400,"statistics":{}}',
        b'{"type":"watch","devices":[]}',
    ],
)
def test_other_lines_of_the_helper_are_rejected(line: bytes) -> None:
    with pytest.raises(DiskslaError, match=r"line of the helper: .*; expected the same version"):
        decode_message(line)


@pytest.mark.parametrize("line", [b"", b"{}", b'{"type":"watch","devices":[""]}'])
def test_other_lines_of_a_client_are_rejected(line: bytes) -> None:
    with pytest.raises(DiskslaError, match="line of the client: "):
        decode_request(line)

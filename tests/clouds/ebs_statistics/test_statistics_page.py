"""The statistics page: bytes -> Statistics, against an independent writer of the layout."""

from contextlib import suppress
from typing import get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.clouds.ebs_statistics.statistics_page import (
    PAGE_BYTES,
    BadPageError,
    Bin,
    PageFault,
    Statistics,
    parse,
)
from support.ebs_pages import EBS_MAGIC, INSTANCE_STORE_MAGIC, UNBOUNDED, Page, bins_of

COUNTERS = st.integers(0, 2**63 - 1)


@st.composite
def some_bins(draw: st.DrawFn) -> tuple[tuple[int, int, int], ...]:
    """Ascend from any bound, with and without gaps, up to 64 bins, the last perhaps unbounded."""
    bounds: list[int] = sorted(draw(st.lists(st.integers(0, 2**40), max_size=128)))
    pairs = list(zip(bounds[::2], bounds[1::2], strict=False))
    is_unbounded: bool = draw(st.booleans())
    if pairs and is_unbounded:
        pairs[-1] = (pairs[-1][0], UNBOUNDED)
    return tuple((*pair, draw(st.integers(0, 2**32 - 1))) for pair in pairs)


PAGES = st.builds(
    Page,
    st.sampled_from([EBS_MAGIC, INSTANCE_STORE_MAGIC]),
    st.sampled_from([0, 1]),
    *[COUNTERS] * 11,
    some_bins(),
    some_bins(),
    st.integers(0, 255),
)


def as_written(bins: tuple[Bin, ...]) -> list[tuple[int, int, int]]:
    return [
        (each.lower_us, UNBOUNDED if each.upper_us is None else each.upper_us, each.count)
        for each in bins
    ]


@given(PAGES)
def test_what_is_written_is_parsed(page: Page) -> None:
    found = parse(page.written())
    exceeded = page[8:12]
    assert found.version == page.version
    assert (
        *(found.read_operations, found.write_operations, found.read_bytes, found.write_bytes),
        *(found.read_us, found.write_us),
    ) == page[2:8]
    assert found.queue_length == page.queue_length
    assert as_written(found.read_latency) == list(page.read_bins)
    assert as_written(found.write_latency) == list(page.write_bins)
    if page.magic == EBS_MAGIC:
        assert found.kind == "ebs"
        assert tuple(found.exceeded_us.values()) == exceeded
        assert list(found.exceeded_us) == [
            "iops",
            "bandwidth",
            "machine_iops",
            "machine_bandwidth",
        ]
    else:
        assert found.kind == "instance_store"
        assert found.exceeded_us == {"iops": exceeded[2], "bandwidth": exceeded[3]}


def test_a_page_of_a_volume() -> None:
    page = Page(
        version=1,
        total_read_ops=10,
        total_read_bytes=40960,
        total_read_time_us=5000,
        volume_exceeded_iops_us=1,
        volume_exceeded_tp_us=2,
        instance_exceeded_iops_us=3,
        instance_exceeded_tp_us=4,
        queue_length=32,
        read_bins=((0, 256, 4), (256, 512, 6), (512, UNBOUNDED, 0)),
    )
    assert parse(page.written()) == Statistics(
        *("ebs", 1, 10, 0, 40960, 0, 5000, 0),
        {"iops": 1, "bandwidth": 2, "machine_iops": 3, "machine_bandwidth": 4},
        32,
        (Bin(0, 256, 4), Bin(256, 512, 6), Bin(512, None, 0)),
        (),
    )


@pytest.mark.parametrize(
    ("page", "reason", "message"),
    [
        (b"", "short", "found 0 bytes; expected 4096"),
        (Page().written()[:4095], "short", "found 4095 bytes; expected 4096"),
        (bytes(4096), "magic", "found magic 0x00000000; expected 0x3C23B510 or 0xEC2C0D7E"),
        (b"\xff" * 4096, "magic", "found magic 0xFFFFFFFF"),
        (Page(version=2).written(), "version", "found version 2; expected 0 or 1"),
        (Page(total_read_ops=2**63).written(), "counter", "found 9223372036854775808"),
        (Page(instance_exceeded_tp_us=2**64 - 1).written(), "counter", "found 18446744073709551"),
        (Page(queue_length=2**63).written(), "counter", "found 9223372036854775808"),
        (Page(read_bins=((5, 4, 0),)).written(), "bins", "found a bin from 5 to 4 us after 0 us"),
        (Page(write_bins=((0, 4, 0), (3, 8, 0))).written(), "bins", "from 3 to 8 us after 4 us"),
        (Page(read_bins=((2**63, 2**64 - 1, 0),)).written(), "bins", "expected bins that ascend"),
    ],
)
def test_what_cannot_be_right_is_not_used(page: bytes, reason: str, message: str) -> None:
    with pytest.raises(BadPageError, match=r"^statistics page: found ") as raised:
        parse(page)
    assert raised.value.reason == reason
    assert reason in get_args(PageFault)
    assert message in str(raised.value)


@pytest.mark.parametrize("offset", [512, 2056])
@pytest.mark.parametrize("length", [65, 2**32 - 1])
def test_more_bins_than_there_is_space_for(offset: int, length: int) -> None:
    page = bytearray(Page().written())
    page[offset : offset + 4] = length.to_bytes(4, "little")
    with pytest.raises(BadPageError, match=f"found {length} bins; expected at most 64") as raised:
        parse(bytes(page))
    assert raised.value.reason == "bins"


def test_64_bins_fill_the_space() -> None:
    bins = tuple((place, place + 1, place) for place in range(64))
    found = parse(Page(read_bins=bins, write_bins=bins, reserved=255).written())
    assert as_written(found.read_latency) == as_written(found.write_latency) == list(bins)


@given(PAGES, st.lists(st.tuples(st.integers(0, PAGE_BYTES - 1), st.integers(0, 255))))
def test_any_bytes_are_parsed_or_rejected(page: Page, edits: list[tuple[int, int]]) -> None:
    content = bytearray(page.written())
    for offset, value in edits:
        content[offset] = value
    with suppress(BadPageError):
        assert len(parse(bytes(content)).read_latency) <= 64


def test_powers_of_two_are_bins() -> None:
    bins = bins_of({256: 7})
    assert sum(each.count for each in parse(Page(read_bins=bins).written()).read_latency) == 7

"""What a volume did between two readings: differences, wraps, resets."""

from typing import Any, get_args

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.packets import LONGEST_BYTES, decode_packet, encode
from disksla.clouds.ebs_statistics import reading
from disksla.clouds.ebs_statistics.statistics_page import Bin, PageFailureReason, parse
from support.ebs_pages import INSTANCE_STORE_MAGIC, Page

BEFORE = Page(
    total_read_ops=100,
    total_write_ops=200,
    total_read_bytes=300,
    total_write_bytes=400,
    total_read_time_us=500,
    total_write_time_us=600,
    volume_exceeded_iops_us=700,
    volume_exceeded_tp_us=800,
    instance_exceeded_iops_us=900,
    instance_exceeded_tp_us=1000,
    queue_length=5,
    read_bins=((0, 512, 60), (512, 1024, 40)),
    write_bins=((0, 512, 200),),
)


COUNTERS = BEFORE._fields[2:12]


def read(page: Page, at_s: float = 10.0, serial: str = "vol1") -> reading.Reading:
    return reading.Reading("nvme1n1", serial, at_s, parse(page.written()))


def change(before: Page, after: Page) -> reading.Change | None:
    return reading.change_between(read(before), read(after, 11.0))


def changed(before: Page, after: Page) -> reading.Change:
    found = change(before, after)
    assert found is not None
    return found


def test_nothing_happened() -> None:
    same = changed(BEFORE, BEFORE._replace(queue_length=0))
    assert set(same.exceeded_us.values()) == {0}
    assert [each.count for each in same.read_latency] == [0, 0]


@given(st.lists(st.integers(0, 2**40), min_size=10, max_size=10), st.integers(0, 2**31))
def test_counters_are_subtracted(rises: list[int], requests: int) -> None:
    rises[0] = max(rises[0], requests)
    totals: dict[str, Any] = {
        name: getattr(BEFORE, name) + rise for name, rise in zip(COUNTERS, rises, strict=True)
    }
    bins = ((0, 512, (60 + requests) % 2**32), (512, 1024, 40))
    after = BEFORE._replace(read_bins=bins, **totals)
    found = changed(BEFORE, after)
    assert (found.read_us, found.write_us, *found.exceeded_us.values()) == tuple(rises[4:])
    assert found.read_latency == (Bin(0, 512, requests), Bin(512, 1024, 0))


@given(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1))
def test_bins_wrap(before: int, requests: int) -> None:
    first = BEFORE._replace(write_bins=((0, 512, before),))
    second = first._replace(
        total_write_ops=first.total_write_ops + requests,
        write_bins=((0, 512, (before + requests) % 2**32),),
    )
    found = changed(first, second)
    assert found.write_latency == (Bin(0, 512, requests),)


@pytest.mark.parametrize("field", COUNTERS)
def test_a_counter_that_fell_is_a_reset(field: str) -> None:
    assert change(BEFORE, BEFORE._replace(**{field: getattr(BEFORE, field) - 1})) is None


@pytest.mark.parametrize(
    "after",
    [
        BEFORE._replace(magic=INSTANCE_STORE_MAGIC),
        BEFORE._replace(read_bins=((0, 512, 60),)),
        BEFORE._replace(write_bins=((0, 256, 200),)),
        BEFORE._replace(read_bins=((0, 512, 59), (512, 1024, 40))),
        BEFORE._replace(write_bins=((0, 512, 0),), total_write_ops=100_000),
    ],
    ids=["another kind", "fewer bins", "other bounds", "a bin fell", "a bin began again"],
)
def test_other_resets(after: Page) -> None:
    assert change(BEFORE, after) is None


def test_another_volume_or_time_that_did_not_pass() -> None:
    assert reading.change_between(read(BEFORE), read(BEFORE, 11.0, "vol2")) is None
    assert reading.change_between(read(BEFORE), read(BEFORE, 10.0)) is None
    assert reading.change_between(read(BEFORE), read(BEFORE, 9.0)) is None


def test_an_instance_store_disk_has_two_limits() -> None:
    store = BEFORE._replace(magic=INSTANCE_STORE_MAGIC)
    found = changed(store, store._replace(instance_exceeded_iops_us=950))
    assert found.exceeded_us == {"iops": 50, "bandwidth": 0}


def test_limits_that_a_recorded_page_lacks_begin_at_zero() -> None:
    before = read(BEFORE)
    fewer = msgspec.structs.replace(before.statistics, exceeded_us={})
    found = reading.change_between(
        msgspec.structs.replace(before, statistics=fewer), read(BEFORE, 11.0)
    )
    assert found is not None
    assert found.exceeded_us["iops"] == 700


MOST = 2**63 - 1
BINS = [(MOST - 1, MOST - 1, 2**32 - 1)] * 63 + [(MOST, MOST, 2**32 - 1)]
LARGEST = Page(0x3C23B510, 1, *(MOST,) * 11, BINS, BINS)


MESSAGE = st.one_of(
    st.builds(
        reading.Failure,
        st.text(min_size=1, max_size=64),
        st.sampled_from(get_args(PageFailureReason)),
        st.text(max_size=100),
    ),
    st.just(reading.Alive()),
    st.just(reading.Reading("nvme1n1", "vol0a1b", 12.5, parse(LARGEST.written()), 0.001)),
)


@given(MESSAGE)
def test_a_message_is_read_as_it_was_written(message: reading.Message) -> None:
    packet = encode(message)
    assert decode_packet(reading.MESSAGES, packet) == message
    assert len(packet) < LONGEST_BYTES


@given(st.lists(st.text(min_size=1, max_size=64), max_size=128))
def test_a_request_is_read_as_it_was_written(devices: list[str]) -> None:
    request = reading.Watch(tuple(devices))
    assert decode_packet(reading.REQUESTS, encode(request)) == request


@pytest.mark.parametrize(
    ("decoder", "packet"),
    [
        (reading.MESSAGES, b""),
        (reading.MESSAGES, b"\xff"),
        (reading.MESSAGES, b"[" * 5000),
        (reading.MESSAGES, b'{"type":"other"}'),
        (reading.MESSAGES, b'{"type":"failure","device":"a","reason":"unheard of"}'),
        (reading.MESSAGES, b'{"type":"failure","device":"","reason":"short"}'),
        (
            reading.MESSAGES,
            b'{"type":"reading","device":"a","serial":"","monotonic_s":1e400,"statistics":{}}',
        ),
        (reading.MESSAGES, b'{"type":"watch","devices":[]}'),
        (reading.REQUESTS, b"{}"),
        (reading.REQUESTS, b'{"type":"watch","devices":[""]}'),
    ],
)
def test_other_packets_are_rejected(decoder: msgspec.json.Decoder[object], packet: bytes) -> None:
    with pytest.raises(DiskslaError, match="expected a message of the same version"):
        decode_packet(decoder, packet)

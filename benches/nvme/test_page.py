"""The writer of pages, byte by byte as in the table of the layout. Needs no virtual machine."""

import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.clouds.ebs_statistics.statistics_page import parse
from nvme.page import EBS, INSTANCE_STORE, LIMITS, Usage, page


def used() -> Usage:
    usage = Usage()
    usage.add(is_write=False, size_bytes=4096, latency_s=0.0005)
    usage.add(is_write=True, size_bytes=2**20, latency_s=3.0)
    usage.add(is_write=True, size_bytes=16384, latency_s=0.0)
    usage.exceeded_s |= dict(zip(LIMITS, (1.5, 2.5, 3.5, 0.000001), strict=True))
    return usage


def test_counters_are_where_the_layout_has_them() -> None:
    data = page(used(), 7, magic=EBS, version=1)
    assert len(data) == 8192
    assert struct.unpack_from("<II", data) == (0x3C23B510, 1)
    assert struct.unpack_from("<6Q", data, 8) == (1, 2, 4096, 2**20 + 16384, 500, 3_000_000)
    assert struct.unpack_from("<5Q", data, 56) == (1_500_000, 2_500_000, 3_500_000, 1, 7)
    assert data[96:512] == bytes(416)


def test_instance_store_has_its_own_limits_in_the_last_two_counters() -> None:
    data = page(used(), 0, magic=INSTANCE_STORE, version=0)
    assert len(data) == 4096
    assert struct.unpack_from("<4Q", data, 56) == (0, 0, 1_500_000, 2_500_000)


REQUESTS = st.tuples(
    st.booleans(), st.integers(512, 2**21), st.floats(min_value=0.0, max_value=100.0)
)
SECONDS = st.tuples(*[st.integers(0, 2**40)] * 4)


@pytest.mark.parametrize("magic", [EBS, INSTANCE_STORE])
@pytest.mark.parametrize("version", [0, 1])
@given(requests=st.lists(REQUESTS, max_size=20), exceeded_us=SECONDS)
def test_parser_reads_what_was_written(
    magic: int, version: int, requests: list[tuple[bool, int, float]], exceeded_us: tuple[int, ...]
) -> None:
    usage = Usage()
    for is_write, size_bytes, latency_s in requests:
        usage.add(is_write=is_write, size_bytes=size_bytes, latency_s=latency_s)
    exceeded = dict(zip(LIMITS, exceeded_us, strict=True))
    usage.exceeded_s |= {limit: us / 1e6 for limit, us in exceeded.items()}
    read = parse(page(usage, 3, magic=magic, version=version)[:4096])
    of_volume = {"iops", "bandwidth"}
    assert read.exceeded_us == {
        limit: us for limit, us in exceeded.items() if magic == EBS or limit in of_volume
    }
    assert [read.read_operations, read.write_operations] == usage.operations
    assert [read.read_bytes, read.write_bytes] == usage.size_bytes
    assert [read.read_us, read.write_us] == [round(time_s * 1e6) for time_s in usage.latency_s]
    assert [each.count for each in read.read_latency] == usage.counts[0]
    assert [each.count for each in read.write_latency] == usage.counts[1]
    assert (read.version, read.queue_length) == (version, 3)

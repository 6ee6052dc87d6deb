"""Requests by consumer, from samples."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.kernel.consumers import Consumption
from disksla.kernel.consumers.attribution import NONE_OPEN, attributed, total_consumption
from disksla.kernel.performance_events import Taken
from disksla.kernel.performance_events.samples import RequestSample

REQUESTS, BYTES = 1183, 1184
DISKS = {"vda": (254, 0), "vdb": (254, 16)}
A, B = 254 << 20, 254 << 20 | 16
GROUPS = {1: "kernel", 7: "db.service", 8: "backup.service"}


def name(cgroup: int, comm: str) -> tuple[str, str]:
    return GROUPS.get(cgroup, ""), comm


def sample(point: int, device: int, cgroup: int, comm: str, sectors: int = 8) -> RequestSample:
    return RequestSample(point, device, sectors, comm.encode().ljust(16, b"\0"), cgroup)


def taken(
    seen: dict[RequestSample, int],
    counted: tuple[int, int],
    periods: tuple[int, int] = (1, 1),
    cpus: int = 2,
) -> Taken:
    return Taken(Counter(seen), REQUESTS, periods, counted, cpus)


def used(found: Taken, *, with_bytes: bool = True) -> set[Consumption]:
    _, consumptions = attributed(NONE_OPEN, found, DISKS, name, with_bytes=with_bytes)
    assert len(set(consumptions)) == len(consumptions)
    return set(consumptions)


def test_requests_and_bytes_by_disk_consumer_and_program() -> None:
    seen = {
        sample(REQUESTS, A, 7, "postgres"): 70,
        sample(REQUESTS, A, 7, "postgres", 16): 2,
        sample(REQUESTS, A, 8, "rsync"): 28,
        sample(REQUESTS, B, 8, "rsync"): 5,
        sample(BYTES, A, 7, "postgres"): 72,
        sample(BYTES, A, 8, "rsync", 1024): 10,
    }
    assert used(taken(seen, (105, 82))) == {
        Consumption("vda", "db.service", "postgres", 72.0, 72 * 4096.0),
        Consumption("vda", "backup.service", "rsync", 28.0, 10 * 524288.0),
        Consumption("vdb", "backup.service", "rsync", 5.0, 0.0),
    }


def test_bytes_are_not_known_if_they_are_not_sampled() -> None:
    seen = {sample(REQUESTS, A, 7, "postgres"): 3}
    assert used(taken(seen, (3, 0)), with_bytes=False) == {
        Consumption("vda", "db.service", "postgres", 3.0, None)
    }


def test_a_sample_stands_for_a_period() -> None:
    seen = {sample(REQUESTS, A, 7, "a"): 10, sample(BYTES, A, 7, "a"): 2}
    assert used(taken(seen, (75, 140), (7, 61))) == {
        Consumption("vda", "db.service", "a", 70.0, 122 * 4096.0)
    }


def test_lost_samples_are_unattributed_by_the_share_of_each_disk() -> None:
    seen = {
        sample(REQUESTS, A, 7, "a"): 30,
        sample(REQUESTS, B, 7, "a"): 10,
        sample(BYTES, A, 7, "a"): 20,
    }
    assert used(taken(seen, (80, 30))) == {
        Consumption("vda", "db.service", "a", 30.0, 20 * 4096.0),
        Consumption("vdb", "db.service", "a", 10.0, 0.0),
        Consumption("vda", "unattributed", "", 30.0, 10 * 4096.0),
        Consumption("vdb", "unattributed", "", 10.0, 0.0),
    }


def test_if_all_is_lost_no_disk_is_preferred() -> None:
    assert used(taken({}, (80, 30))) == {
        Consumption("vda", "unattributed", "", 40.0, 0.0),
        Consumption("vdb", "unattributed", "", 40.0, 0.0),
    }


def test_a_disk_that_is_not_known_is_left_out() -> None:
    assert used(taken({sample(REQUESTS, 5, 7, "a"): 3}, (3, 0))) == set()


def test_name_that_is_no_text() -> None:
    seen = {RequestSample(REQUESTS, A, 8, b"\xff\xfe\0other".ljust(16, b"\0"), 7): 1}
    (found,) = used(taken(seen, (1, 0)))
    assert found.program == "\ufffd\ufffd"


@pytest.mark.parametrize("period", [1, 7, 61])
@given(st.lists(st.integers(0, 500), min_size=1, max_size=20))
def test_what_is_counted_is_attributed_or_unattributed(period: int, counts: list[int]) -> None:
    """Over any time, but for less than a period on each CPU."""
    before, open_events, total = NONE_OPEN, 0, 0.0
    for count in counts:
        open_events += count
        samples, open_events = divmod(open_events, period)
        found = taken({sample(REQUESTS, A, 7, "a"): samples // 2}, (count, 0), (period, 1))
        before, consumptions = attributed(before, found, DISKS, name, with_bytes=True)
        total += sum(each.requests or 0.0 for each in consumptions)
    assert sum(counts) - (period - 1) * 2 <= total <= sum(counts)


@given(st.lists(st.tuples(st.integers(0, 100), st.integers(0, 100)), max_size=20))
def test_nothing_is_unattributed_if_no_sample_is_lost(steps: list[tuple[int, int]]) -> None:
    """Samples may be read before they are counted, and events counted before they are sampled."""
    before, ahead = NONE_OPEN, 0
    for sampled, late in steps:
        counted = sampled + ahead - late if sampled + ahead >= late else 0
        ahead = sampled + ahead - counted
        found = taken({sample(REQUESTS, A, 7, "a"): sampled}, (counted, 0))
        before, consumptions = attributed(before, found, DISKS, name, with_bytes=True)
        assert all(each.consumer != "unattributed" for each in consumptions)


def test_parts_are_added() -> None:
    first = (Consumption("vda", "a", "x", 1.0, 512.0), Consumption("vda", "b", "x", 1.0, 512.0))
    second = (Consumption("vda", "b", "x", 2.0, None), Consumption("vdb", "b", "x", 2.0, 1.0))
    assert total_consumption([first, (), second, first[:1]]) == (
        Consumption("vda", "a", "x", 2.0, 1024.0),
        Consumption("vda", "b", "x", 3.0, None),
        Consumption("vdb", "b", "x", 2.0, 1.0),
    )

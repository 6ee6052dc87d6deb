"""Sums over readings of a disk's statistics page, and their way into the state."""

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from disksla.clouds.ebs_statistics.reading import Failure, Reading
from disksla.clouds.ebs_statistics.statistics_page import parse
from disksla.state.pipeline.tick import Tick, decode_tick, encode
from disksla.state.provider_count import (
    LONGEST_SPAN_S,
    PROVIDER_LATENCY_BOUNDS_S,
    STALE_S,
    ProviderState,
)
from support.ebs_pages import INSTANCE_STORE_MAGIC, UNBOUNDED, Page, bins_of
from support.simulated_host import Machine, a_disk

FIRST = Page(
    total_read_ops=1000, volume_exceeded_iops_us=5_000_000, read_bins=bins_of({256: 900, 512: 100})
)


def read(page: Page, at_s: float = 1000.0, serial: str = "vol1") -> Reading:
    return Reading("nvme1n1", serial, at_s, parse(page.written()))


def after(*messages: Reading | Failure, state: ProviderState | None = None) -> ProviderState:
    """Return the state after a tick for each of the messages, a second apart."""
    state = state or ProviderState()
    for message in messages:
        state = state.after([message], state.tick_s + 1.0 if state.last else 1000.0)
    return state


def later(page: Page, **rises: int) -> Page:
    return page._replace(**{name: getattr(page, name) + rise for name, rise in rises.items()})


def test_counters_begin_at_zero_with_every_limit_of_the_page() -> None:
    state = after(read(FIRST))
    assert state.throttled_us == dict.fromkeys(
        ("iops", "bandwidth", "machine_iops", "machine_bandwidth"), 0
    )
    assert state.read_latency_s.count == 0
    store = after(read(FIRST._replace(magic=INSTANCE_STORE_MAGIC)))
    assert store.throttled_us == {"iops": 0, "bandwidth": 0}


@given(st.lists(st.tuples(st.integers(0, 10**6), st.integers(0, 500)), max_size=8))
def test_what_readings_add_up_to(steps: list[tuple[int, int]]) -> None:
    """However often the page is read, the sums are those of the first and the last page."""
    page, state = FIRST, after(read(FIRST))
    for number, (exceeded_us, requests) in enumerate(steps, 1):
        page = later(
            page,
            total_read_ops=requests,
            total_read_time_us=300 * requests,
            instance_exceeded_iops_us=exceeded_us,
        )._replace(read_bins=bins_of({256: 900 + page.total_read_ops + requests - 1000, 512: 100}))
        state = after(read(page, 1000.0 + number), state=state)
    at_once = after(read(FIRST), read(page, 2000.0))
    assert state.throttled_us == at_once.throttled_us
    assert state.throttled_us["machine_iops"] == sum(us for us, _ in steps)
    assert state.read_latency_s.counts == at_once.read_latency_s.counts
    assert state.read_latency_s.count == sum(requests for _, requests in steps)
    assert state.write_latency_s.count == 0


def test_requests_are_in_the_bucket_of_their_bin() -> None:
    page = later(FIRST, total_read_ops=10, total_read_time_us=4000)
    page = page._replace(read_bins=bins_of({256: 910, 512: 100}))
    state = after(read(FIRST), read(page, 1001.0))
    bucket = PROVIDER_LATENCY_BOUNDS_S.index(0.000512)
    assert state.read_latency_s.counts[bucket] == state.read_latency_s.count == 10
    assert state.read_latency_s.total == 0.004


def test_a_bin_across_a_bound_counts_in_the_bucket_of_its_upper_bound() -> None:
    bins = ((0, 100, 1), (100, 600, 2), (600, 10**9, 3), (10**9, UNBOUNDED, 4))
    empty = tuple((lower, upper, 0) for lower, upper, _ in bins)
    state = after(read(Page(read_bins=empty)))
    state = after(read(Page(total_read_ops=10, read_bins=bins), 1001.0), state=state)
    bounds = {*PROVIDER_LATENCY_BOUNDS_S, float("inf")}
    counts = dict(zip(sorted(bounds), state.read_latency_s.counts, strict=True))
    assert {bound: count for bound, count in counts.items() if count} == {
        0.000128: 1,
        0.001024: 2,
        float("inf"): 7,
    }


def test_a_reset_is_counted_and_nothing_is_lost_or_added() -> None:
    state = after(read(FIRST))
    state = after(read(later(FIRST, volume_exceeded_iops_us=70), 1001.0), state=state)
    state = after(read(Page(), 1002.0), state=state)
    assert state.exceeded_us is None
    assert state.failures["reset"] == 1
    assert state.throttled_us["iops"] == 70
    state = after(read(Page(volume_exceeded_iops_us=3), 1003.0), state=state)
    assert state.exceeded_us is not None
    assert state.throttled_us["iops"] == 73
    assert state.failures["reset"] == 1


def test_span_that_is_too_long_gives_no_count() -> None:
    state = ProviderState().after([read(FIRST)], 1000.0)
    for tick_s, is_known in ((1000.0 + LONGEST_SPAN_S, True), (1000.1 + LONGEST_SPAN_S, False)):
        found = state.after([read(later(FIRST, volume_exceeded_tp_us=9), tick_s)], tick_s)
        assert (found.exceeded_us is not None) is is_known
        assert found.throttled_us["bandwidth"] == 9


def test_failures_are_counted_by_reason_and_stop_nothing() -> None:
    state = after(Failure("nvme1n1", "permission", "why"))
    assert state.last is None
    assert not state.is_current(0.0)
    assert state.failures == {"permission": 1}
    state = after(read(FIRST), Failure("nvme1n1", "status"), state=state)
    assert state.last == read(FIRST)
    assert state.is_current(1000.0 + STALE_S - 0.1)
    assert not state.is_current(1000.0 + STALE_S)


def test_readings_reach_the_disk_and_stay() -> None:
    machine = Machine(a_disk("nvme1n1", serial="vol1"), a_disk("vdb", 16))
    tick = Tick(
        machine.clocks(),
        machine.text(),
        provider=(
            read(later(FIRST, volume_exceeded_tp_us=9), 1001.0),
            read(later(FIRST, volume_exceeded_tp_us=100), 1002.0, serial="vol2"),
            Failure("nvme1n1", "short"),
            Failure("nvme7n1", "short"),
        ),
    )
    assert decode_tick(encode(tick), 2) == tick
    machine.take(Tick(machine.clocks(), machine.text(), provider=(read(FIRST),)))
    machine.take(tick)
    provider = machine.state.monitored["nvme1n1"].provider
    assert provider is not None
    assert provider.throttled_us["bandwidth"] == 9
    assert provider.failures["short"] == 1
    assert machine.state.monitored["vdb"].provider is None
    machine.does("nvme1n1", reads=5, inflight=1)
    machine.tick()
    machine.tick(text="nothing")
    machine.tick()
    assert machine.state.monitored["nvme1n1"].provider == provider
    machine.does("nvme1n1", reads=-5)
    machine.tick()
    assert machine.state.monitored["nvme1n1"].provider == provider


def test_another_volume_under_the_same_name_begins_again() -> None:
    machine = Machine(a_disk("nvme1n1", serial="vol1"))
    machine.take(Tick(machine.clocks(), machine.text(), provider=(read(FIRST),)))
    same = msgspec.structs.replace(machine.disks[0], mount_points=("/srv",))
    machine.tick(disks=(same,))
    assert machine.state.monitored["nvme1n1"].provider is not None
    machine.tick(disks=(a_disk("nvme1n1", serial="vol2"),))
    assert machine.state.monitored["nvme1n1"].provider is None


def test_a_disk_without_a_serial_takes_every_reading() -> None:
    machine = Machine(a_disk("nvme1n1"))
    machine.take(Tick(machine.clocks(), machine.text(), provider=(read(FIRST),)))
    assert machine.state.monitored["nvme1n1"].provider is not None

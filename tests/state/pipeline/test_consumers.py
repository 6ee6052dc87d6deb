"""What consumers used of disks, from ticks to state, snapshot and metrics."""

from functools import reduce

import msgspec
import pytest

from disksla.base.errors import DiskslaError
from disksla.kernel.consumers.consumer_totals import MOST_NAMES, Held
from disksla.kernel.consumers.consumption import ConsumerReading, Consumption, OwnLimit
from disksla.promise.configuration import Configuration
from disksla.promise.configuration.settings import Settings
from disksla.serve.metrics.collector import SnapshotCollector, make_registry
from disksla.serve.metrics.render import render_metrics
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.snapshot import Snapshot
from disksla.state.pipeline.state import State, to_watch
from disksla.state.pipeline.tick import Tick, decode_tick, encode
from support.consumed import with_consumers
from support.simulated_host import CATALOG, Machine, a_disk, reconfigured
from support.simulated_limiter import DEVICE, Closed, Limiter, Scenario, run, summed
from support.snapshots import changed

A = "postgresql@15-main.service"
THROTTLED = Scenario(
    loads=(Closed(depth=8),), limiter=Limiter(buckets=summed(iops=300)), seconds=12.0, terms=None
)


def reading(
    end_s: float, *consumers: Consumption, device: str = "vda", own: tuple[OwnLimit, ...] = ()
) -> ConsumerReading:
    return ConsumerReading({device: (end_s - 1.0, end_s)}, consumers, own)


def take(machine: Machine, *readings: ConsumerReading) -> State:
    """Take a tick with readings."""
    machine.now_s += 0.1
    machine.take(Tick(machine.clocks(), machine.text()).with_readings(readings))
    return machine.state


def samples(state: State, profile: str = "default") -> list[str]:
    """Return the samples of consumers on the page of metrics."""
    snapshot = changed(Snapshot(state), profile=profile)
    page = render_metrics(make_registry(SnapshotCollector(lambda: snapshot))).body.decode()
    return [line for line in page.splitlines() if line.startswith("disksla_consumer_")]


def test_readings_are_summed_up_for_metrics() -> None:
    machine = Machine(a_disk())
    assert samples(machine.state) == []
    for end_s in (1001.0, 1002.0):
        found = (
            Consumption("vda", A, requests=80.0, bytes=8192.0),
            Consumption("vda", "kernel", bytes=512.0),
        )
        take(machine, reading(end_s, *found))
    of_a = f'{{consumer="{A}",device="vda",program=""}}'
    assert samples(machine.state) == [
        f"disksla_consumer_requests_total{of_a} 160.0",
        f"disksla_consumer_bytes_total{of_a} 16384.0",
        'disksla_consumer_bytes_total{consumer="kernel",device="vda",program=""} 1024.0',
        'disksla_consumer_watched_seconds_total{device="vda"} 2.0',
    ]
    assert samples(machine.state, "lean") == []


def test_readings_of_one_tick_are_joined() -> None:
    by_group = reading(1001.0, Consumption("vda", A, bytes=4096.0))
    by_program = reading(1001.5, Consumption("vda", A, "postgres", requests=1.0))
    clocks = Machine(a_disk()).clocks()
    tick = Tick(clocks, "").with_readings([by_group, by_program, ConsumerReading(why_not="off")])
    assert tick.consumers == (*by_group.consumers, *by_program.consumers)
    assert tick.watched_s == {"vda": (1000.0, 1001.5)}
    assert tick.why_no_consumers == "off"
    assert decode_tick(encode(tick), 2) == tick


def test_disks_that_are_not_monitored_are_left_out() -> None:
    machine = Machine(a_disk())
    own = (OwnLimit("sdz", A, "writes", 50.0),)
    used = Consumption("sdz", A, bytes=1.0)
    state = take(machine, reading(1001.0, used, device="sdz", own=own))
    assert state.monitored["vda"].consumers.watched_s == 0.0
    assert state.consumers_seen_s == {}


def test_the_configuration_switches_it_off() -> None:
    machine = Machine(a_disk(), settings=Settings(consumers=False))
    machine.does("vda", reads=1, inflight=1)
    machine.tick()
    state = take(machine, reading(1001.0, Consumption("vda", A, bytes=1.0)))
    assert samples(state) == []
    assert to_watch(state) == []
    machine.state = reconfigured(state, Settings())
    assert [each.device for each in to_watch(machine.state)] == ["vda"]
    state = take(machine, reading(1002.0, Consumption("vda", A, bytes=1.0)))
    assert samples(state) != []
    assert samples(reconfigured(state, Settings(consumers=False))) == []


def test_disks_with_io_are_watched_and_a_busy_one_is_named_so() -> None:
    machine = Machine(a_disk(), a_disk("vdb", minor=16))
    machine.does("vda", reads=1, inflight=4, reads_merged=3)
    machine.tick()
    assert [(each.device, each.is_busy) for each in to_watch(machine.state)] == [("vda", False)]
    for _ in range(20):
        machine.does("vda", reads=10, read_sectors=80, reads_merged=1, inflight=4)
        machine.tick()
    [watched] = to_watch(machine.state)
    assert (watched.device, watched.number, watched.is_busy) == ("vda", "254:0", True)
    assert (watched.requests, watched.merges) == (201, 23)


def test_at_most_a_hundred_names_have_series_at_a_time() -> None:
    disks = [a_disk(f"vd{index}", minor=index) for index in range(40)]
    machine = Machine(*disks)
    for number, disk in enumerate(disks):
        found = [Consumption(disk.name, f"{number}-{each}", bytes=9.0) for each in range(4)]
        take(machine, reading(1001.0, *found, device=disk.name))
    lines = [line for line in samples(machine.state) if "bytes" in line]
    named = {line for line in lines if 'consumer="other"' not in line}
    assert MOST_NAMES - 10 <= len(named) <= MOST_NAMES
    assert len(machine.state.consumers_seen_s) == len(named)
    assert 'disksla_consumer_bytes_total{consumer="other",device="vd39",program=""} 36.0' in lines


def test_names_that_were_silent_for_an_hour_make_room() -> None:
    """A node with jobs: each has a pod of another name."""
    machine = Machine(a_disk())
    for job in range(150):
        for second in range(2):
            machine.tick(60.0 if second else 121.0)
            end_s = machine.clocks().monotonic_s
            take(machine, reading(end_s, Consumption("vda", f"job-{job}", bytes=9.0)))
        lines = [line for line in samples(machine.state) if "bytes" in line]
        assert any(f'consumer="job-{job}"' in line for line in lines), job
        assert len(machine.state.consumers_seen_s) <= MOST_NAMES


def test_what_was_used_while_the_disk_was_throttled_is_apart() -> None:
    ticks = with_consumers(run(THROTTLED).ticks, DEVICE, {A: (250.0, None), "b": (50.0, None)})
    state = reduce(advance, ticks, State(Configuration(THROTTLED.settings(), CATALOG)))
    slots = state.monitored[DEVICE].consumers.slots_since(0.0)
    throttled_s = sum(slot.throttled_s for slot in slots)
    requests = sum(slot.throttled[A, ""].requests or 0.0 for slot in slots if slot.throttled)
    assert throttled_s >= 6.0
    assert requests / throttled_s == pytest.approx(250.0, rel=0.2)


def test_a_group_at_its_own_limit_counts_while_the_disk_is_not_throttled() -> None:
    own = OwnLimit(DEVICE, A, "writes", 50.0)
    ticks = run(THROTTLED).ticks
    state = reduce(advance, ticks, State(Configuration(THROTTLED.settings(), CATALOG)))
    held = ConsumerReading(own_limits=(own,))
    last = ticks[-1]
    clocks = msgspec.structs.replace(last.clocks, monotonic_s=last.clocks.monotonic_s + 0.1)
    after = advance(state, Tick(clocks, last.diskstats).with_readings([held]))
    assert after.monitored[DEVICE].consumers.held == ()
    machine = Machine(a_disk())
    own = OwnLimit("vda", A, "writes", 50.0)
    state = take(machine, ConsumerReading(own_limits=(own,)))
    assert state.monitored["vda"].consumers.held == (Held(own, machine.now_s),)


def test_why_consumers_are_not_known_stays_until_they_are() -> None:
    machine = Machine(a_disk())
    assert take(machine, ConsumerReading(why_not="io is off")).why_no_consumers == "io is off"
    machine.tick()
    [disk] = Snapshot(machine.state).disks
    assert disk.why_no_consumers == "io is off"
    assert take(machine, ConsumerReading(why_not="")).why_no_consumers is None


@pytest.mark.parametrize(
    "consumers", ['[["vda","a","",-1,null]]', '[["vda","a","",1e300]]', f'[["vda","{"a" * 300}"]]']
)
def test_recordings_with_impossible_amounts_are_refused(consumers: str) -> None:
    clocks = '{"monotonic_s":1.0,"boottime_s":1.0,"realtime_s":1.0}'
    line = f'{{"clocks":{clocks},"diskstats":null,"consumers":{consumers}}}'
    with pytest.raises(DiskslaError, match="invalid tick"):
        decode_tick(line.encode(), 2)

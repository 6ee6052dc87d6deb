"""Ticks that are read first and processed together later."""

import functools
import itertools
import time
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.configuration import Configuration
from disksla.config.device_pattern import DevicePattern
from disksla.config.settings import DiscoverySettings, SamplingSettings, Settings
from disksla.pipeline.advance import advance
from disksla.pipeline.batch import LONGEST_S, is_complete, is_idle
from disksla.pipeline.sampler import Sampler
from disksla.pipeline.state import State
from disksla.pipeline.tick import Tick
from disksla.system.roots import Roots
from support.simulated_host import CATALOG, Machine, a_disk
from support.waiting import eventually

WITHIN_S = 20.0
LINE = " 254 0 vda {reads} 0 {sectors} 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
LOADED = {"reads": 10, "read_sectors": 80}


def machine(interval_s: float = 0.1) -> Machine:
    """Return a machine whose disk does something since the last tick but one."""
    of_interval = Settings(sampling=SamplingSettings(interval_s=interval_s))
    host = Machine(a_disk("vda"), settings=of_interval)
    for _ in range(3):
        host.does("vda", **LOADED)
        host.tick(interval_s)
    return host


def next_tick(host: Machine) -> Tick:
    host.does("vda", **LOADED)
    return Tick(host.clocks(), host.text())


@given(st.floats(0.01, 10.0))
def test_a_load_waits_for_at_most_the_longest_batch(interval_s: float) -> None:
    host = machine(interval_s)
    ticks = [next_tick(host)]
    while not is_complete(host.state, ticks):
        ticks.append(next_tick(host))
    assert len(ticks) == 1 or len(ticks) * interval_s <= LONGEST_S + interval_s / 2
    assert len(ticks) * interval_s > LONGEST_S - interval_s


def test_four_ticks_of_a_tenth_of_a_second_are_a_batch() -> None:
    host = machine()
    ticks = [next_tick(host) for _ in range(4)]
    assert [is_complete(host.state, ticks[:count]) for count in (1, 2, 3, 4)] == [False] * 3 + [
        True
    ]


@pytest.mark.parametrize(
    "event",
    [{"disks": ()}, {"probes": (None,)}, {"close": {"vda": ()}}],
    ids=["disks", "probes", "close"],
)
def test_events_do_not_wait(event: dict[str, object]) -> None:
    host = machine()
    assert is_complete(host.state, [msgspec.structs.replace(next_tick(host), **event)])


def test_what_begins_on_an_idle_machine_does_not_wait() -> None:
    host = machine()
    for _ in range(10):  # until its windows are decided, at the end of the second
        host.tick()
    unchanged = Tick(host.clocks(), host.text())
    assert is_idle(host.state, host.text())
    assert not is_complete(host.state, [unchanged])
    assert not is_idle(host.state, next_tick(host).diskstats)
    assert is_complete(host.state, [unchanged, next_tick(host)])


def test_nothing_waits_before_the_first_state() -> None:
    assert is_complete(State(Settings(), CATALOG), [next_tick(machine())])


def test_sampler_in_batches_has_the_state_of_tick_by_tick(tmp_path: Path) -> None:
    file = tmp_path / "diskstats"
    ticks: list[Tick] = []
    waited_s: list[float] = []
    reads = itertools.count(5, step=5)

    def load() -> None:
        count = next(reads)
        file.write_text(LINE.format(reads=count, sectors=count * 8))

    def on_tick(tick: Tick) -> None:
        ticks.append(tick)
        waited_s.append(time.monotonic() - tick.clocks.monotonic_s)

    def loaded() -> bool:
        load()
        return len(ticks) >= 12

    load()
    initial = State(Settings(), CATALOG)
    sampler = Sampler(Roots(tmp_path, tmp_path), initial, on_tick, in_batches=True)
    sampler.post((a_disk("vda"),))
    sampler.start()
    assert eventually(loaded, WITHIN_S, every_s=0.02)
    sampler.stop()
    assert functools.reduce(advance, ticks, initial) == sampler.state
    assert sampler.state.assessed.windows >= 10
    assert sum(wait_s > 0.08 for wait_s in waited_s) >= 6


def test_configuration_does_not_wait(tmp_path: Path) -> None:
    (tmp_path / "diskstats").write_text(LINE.format(reads=1, sectors=8))
    ticks: list[Tick] = []
    initial = State(Settings(), CATALOG)
    sampler = Sampler(Roots(tmp_path, tmp_path), initial, ticks.append, in_batches=True)
    sampler.post((a_disk("vda"),))
    sampler.start()
    assert eventually(lambda: len(ticks) >= 5, WITHIN_S)
    assert "vda" in sampler.state.monitored
    excluded = Settings(discovery=DiscoverySettings(exclude=(DevicePattern("^vda$"),)))
    count = len(ticks)
    sampler.post(Configuration(excluded, CATALOG))
    assert eventually(lambda: not sampler.state.monitored, WITHIN_S, every_s=0.001)
    sampler.stop()
    assert len(ticks) - count <= 5

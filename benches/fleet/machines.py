"""A simulated machine whose disks share a limit with burst credits, with a playback of each disk.

Two disks of a database want twice the baseline of the machine. For half an hour the burst credits
give it to them, for half an hour they share the baseline, and for an hour the machine is idle.
"""

from collections.abc import Iterator
from random import Random

from disksla.base.units import MB
from disksla.promise.configuration.custom_terms import SumBurst, SumTerms
from disksla.promise.configuration.settings import (
    DiskEntry,
    MachineSettings,
    SamplingSettings,
    Settings,
)
from disksla.promise.disk_entry import DiskMatch
from disksla.state.pipeline.state import State
from fleet.playback import Playback, make_playbacks
from support.simulated_host import Machine, a_disk

CYCLE_S = 7200.0
_LOADED_S = 3600.0
_TICKS_PER_S = 4
"""Fewer than usual: the machine is simulated for hours."""
_FRAME_S = 60.0
_BASE_IOPS, _PEAK_IOPS, _CREDITS = 1000, 3000, 1_800_000
_WANTED_IOPS = {"vdb": 1500, "vdc": 500}
"""Of each disk, in that order: the first one's page has the series of the machine."""
_DEPTHS = {"vdb": 24, "vdc": 8}
"""Requests in flight while the machine throttles."""
_SERVICE_MS = 0.5
_SECTORS = 8
_SEED = 1


def machine_playbacks() -> dict[str, Playback]:
    """Return the playback of each disk."""
    frames = int(CYCLE_S / _FRAME_S)
    return make_playbacks(_states(), int(CYCLE_S * _TICKS_PER_S), list(_WANTED_IOPS), frames)


def _states() -> Iterator[State]:
    """Yield the state after each tick of a cycle; credits are full at its start."""
    machine = Machine(
        *(a_disk(name, 16 * number) for number, name in enumerate(_WANTED_IOPS)),
        settings=_settings(),
    )
    # Credits are only certain to be full after idle time that was sampled.
    for _ in range(int(1.1 * _CREDITS / _BASE_IOPS * _TICKS_PER_S)):
        machine.tick(after_s=1 / _TICKS_PER_S)
    tokens, random = float(_CREDITS), Random(_SEED)
    for number in range(int(CYCLE_S * _TICKS_PER_S)):
        tokens = min(_CREDITS, tokens + _BASE_IOPS / _TICKS_PER_S)
        if number < _LOADED_S * _TICKS_PER_S:
            tokens -= _load(machine, tokens, random)
        else:
            _rest(machine)
        yield machine.tick(after_s=1 / _TICKS_PER_S)


def _settings() -> Settings:
    burst = SumBurst(iops=float(_PEAK_IOPS), iops_credits=float(_CREDITS))
    limits = SumTerms(iops=float(_BASE_IOPS), bytes_per_second=20 * MB, burst=burst)
    entries = tuple(
        DiskEntry(match=DiskMatch(device=name), terms="aws.gp3") for name in _WANTED_IOPS
    )
    return Settings(
        sampling=SamplingSettings(interval_s=1 / _TICKS_PER_S),
        disks=entries,
        machine=MachineSettings(type="m5.example", limits=limits),
    )


def _rest(machine: Machine) -> None:
    """Leave no request in flight."""
    for name in _WANTED_IOPS:
        machine.numbers[name]["inflight"] = 0


def _load(machine: Machine, tokens: float, random: Random) -> int:
    """Serve the requests of a tick, and return how many these are."""
    wanted = {name: iops // _TICKS_PER_S for name, iops in _WANTED_IOPS.items()}
    is_throttled = tokens < sum(wanted.values())
    if is_throttled:
        all_served = int(tokens)
        first, second = wanted
        wanted[first] = round(all_served * random.uniform(0.6, 0.85))
        wanted[second] = all_served - wanted[first]
    for name, number in wanted.items():
        inflight = _DEPTHS[name] if is_throttled else 0
        took_ms = round(1000 / _TICKS_PER_S * inflight + _SERVICE_MS * number)
        machine.does(name, reads=number, read_sectors=_SECTORS * number, read_ms=took_ms)
        machine.numbers[name]["inflight"] = inflight
    return sum(wanted.values())

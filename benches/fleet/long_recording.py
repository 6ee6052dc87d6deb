"""A recording of any length: one of the lab that repeats while its counters continue."""

import gzip
from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec.structs import replace

from disksla.commands.replay import replay
from disksla.kernel.procfs import HostWait
from disksla.state.pipeline.advance import advance
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick, decode_tick
from disksla.verdict.interval import Clocks

_FIRST_COUNTER = 3
_INFLIGHT = 11
"""Of a line of /proc/diskstats."""


def long_states(
    recording: Path, seconds: float, start_s: float, config: Path | None = None
) -> Iterator[State]:
    """Yield the state after each tick of a recording that repeats for a time from a Unix time."""
    state = next(replay(recording / "ticks.jsonl.gz", config or recording / "config.yml"))
    with gzip.open(recording / "ticks.jsonl.gz") as lines:
        ticks = [decode_tick(line, number) for number, line in enumerate(lines) if number]
    for tick in _long_ticks(ticks, seconds, start_s):
        state = advance(state, tick)
        yield state


def _long_ticks(ticks: Sequence[Tick], seconds: float, start_s: float) -> Iterator[Tick]:
    first, last = ticks[0].clocks, ticks[-1].clocks
    round_s = last.monotonic_s - first.monotonic_s + 0.1
    before, after = _counters(ticks[0]), _counters(ticks[-1])
    increase = {name: _minus(after[name], before[name]) for name in before}
    waits = [tick.host for tick in ticks if tick.host is not None]
    number = 0
    while number * round_s < seconds:
        for index, tick in enumerate(ticks):
            yield replace(
                tick,
                clocks=_later(tick.clocks, number * round_s, start_s - first.realtime_s),
                diskstats=_text(tick, increase, number),
                host=_waited(tick.host, waits, number),
                disks=None if number or index else tick.disks,
            )
        number += 1


def _later(clocks: Clocks, seconds: float, realtime_s: float) -> Clocks:
    return Clocks(
        clocks.monotonic_s + seconds,
        clocks.boottime_s + seconds,
        clocks.realtime_s + seconds + realtime_s,
    )


def _counters(tick: Tick) -> dict[str, list[int]]:
    lines = (line.split() for line in (tick.diskstats or "").splitlines())
    return {words[2]: list(map(int, words[_FIRST_COUNTER:])) for words in lines}


def _minus(after: Sequence[int], before: Sequence[int]) -> list[int]:
    return [last - first for last, first in zip(after, before, strict=True)]


def _text(tick: Tick, increase: dict[str, list[int]], rounds: int) -> str:
    lines = []
    for line in (tick.diskstats or "").splitlines():
        words = line.split()
        for index in range(_FIRST_COUNTER, len(words)):
            if index != _INFLIGHT:
                rise = rounds * increase[words[2]][index - _FIRST_COUNTER]
                words[index] = str(int(words[index]) + rise)
        lines.append(" ".join(words) + "\n")
    return "".join(lines)


def _waited(host: HostWait | None, waits: Sequence[HostWait], rounds: int) -> HostWait | None:
    if host is None:
        return None
    return host + waits[-1].since(waits[0]) * rounds

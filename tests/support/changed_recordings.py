"""The recordings of this repository: cut, repeated, shuffled, with ticks dropped, with no and with
huge differences of counters, and with close samples that are right or damaged."""

import gzip
from collections.abc import Callable, Iterator, Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import NamedTuple

import msgspec
from hypothesis import strategies as st

from disksla.commands.replay import replay
from disksla.kernel.nfs.mountstats import MountReading
from disksla.kernel.procfs.diskstats import CloseSample
from disksla.state.pipeline.state import State
from disksla.state.pipeline.tick import Tick, decode_tick

ROOT = Path(__file__).parents[2]
RECORDINGS = sorted(
    path
    for pattern in (
        "benches/*/recordings/**/ticks.jsonl.gz",
        "tests/**/recordings/*.rec.gz",
        "tests/hosts/*/ticks.jsonl",
    )
    for path in ROOT.glob(pattern)
)
MOST_TICKS = 120
_READS, _READ_SECTORS, _WRITES, _WRITTEN_SECTORS, _INFLIGHT = 3, 5, 7, 9, 11
_FLUSHES, _FLUSH_MS = 18, 19


@cache
def recorded(path: Path) -> tuple[State, tuple[Tick, ...]]:
    """Return the state before the first tick of a recording, and its ticks."""
    config = path.parent / "config.yml"
    state = next(replay(path, config if config.exists() else None))
    with gzip.open(path) if path.suffix == ".gz" else path.open("rb") as lines:
        found = [decode_tick(line, number) for number, line in enumerate(lines) if number]
    return state, tuple(found)


def close_samples(before: Tick, after: Tick) -> dict[str, tuple[CloseSample, ...]]:
    """Return samples every 10 ms between two ticks, as if all completed at constant rates."""
    lines = [dict(_lines(tick)) for tick in (before, after)]
    begin_s, end_s = before.clocks.monotonic_s, after.clocks.monotonic_s
    steps = max(1, min(10, round((end_s - begin_s) / 0.01)))
    return {
        device: tuple(
            CloseSample(
                begin_s + (end_s - begin_s) * step / steps,
                last[_READS] + (now[_READS] - last[_READS]) * step // steps,
                last[_WRITES] + (now[_WRITES] - last[_WRITES]) * step // steps,
                last[_READ_SECTORS] + (now[_READ_SECTORS] - last[_READ_SECTORS]) * step // steps,
                last[_WRITTEN_SECTORS]
                + (now[_WRITTEN_SECTORS] - last[_WRITTEN_SECTORS]) * step // steps,
                now[_INFLIGHT],
                now[_FLUSHES],
                now[_FLUSH_MS],
            )
            for step in range(1, steps + 1)
        )
        for device, now in lines[1].items()
        if (last := lines[0].get(device)) is not None
    }


def _lines(tick: Tick) -> Iterator[tuple[str, dict[int, int]]]:
    for line in (tick.diskstats or "").splitlines():
        words = line.split()
        numbers = {at: int(word) for at, word in enumerate(words) if at > 2 and word.isdecimal()}
        if len(words) > _INFLIGHT and len(numbers) == len(words) - 3:
            yield words[2], {_FLUSHES: 0, _FLUSH_MS: 0} | numbers


def with_close(ticks: list[Tick], chance: Random) -> list[Tick]:
    damage = chance.choice((0.0, 0.0, 0.3, 1.0))
    found = ticks[:1]
    for before, after in pairwise(ticks):
        close = close_samples(before, after)
        if chance.random() < damage:
            close = {device: damaged(samples, chance) for device, samples in close.items()}
        found.append(msgspec.structs.replace(after, close=close))
    return found


def damaged(samples: tuple[CloseSample, ...], chance: Random) -> tuple[CloseSample, ...]:
    found = [*samples]
    for _ in range(chance.randint(1, 4)):
        at = chance.randrange(len(found))
        changes: list[dict[str, float]] = [
            {"at_s": found[0].at_s},
            {"at_s": found[at].at_s + chance.uniform(-5, 5)},
            {"at_s": 0.0},
            {"reads": 0},
            {"writes": chance.randrange(2**63), "written_sectors": chance.randrange(2**63)},
            {"read_sectors": max(0, found[at].read_sectors - 8)},
            {"inflight": chance.choice((0, 2**62))},
            {"flushes": chance.randrange(2**63), "flush_ms": chance.randrange(2**40)},
            {"flush_ms": 0},
        ]
        found[at] = msgspec.structs.replace(found[at], **chance.choice(changes))
    if chance.random() < 0.3:
        chance.shuffle(found)
    return tuple(found[chance.randint(0, 3) :])


def dropped(ticks: list[Tick], chance: Random) -> list[Tick]:
    share = chance.choice((0.02, 0.2, 0.6))
    return [ticks[0], *(tick for tick in ticks[1:] if chance.random() >= share)]


def thinned(ticks: list[Tick], chance: Random) -> list[Tick]:
    """Return every so many ticks, as of a machine without CPU time."""
    return ticks[:: chance.randint(2, 30)]


def shuffled(ticks: list[Tick], chance: Random) -> list[Tick]:
    """Shuffle the texts of some ticks; time goes on."""
    texts = [tick.diskstats for tick in ticks]
    for _ in range(chance.randint(1, 20)):
        first, second = chance.randrange(len(ticks)), chance.randrange(len(ticks))
        texts[first], texts[second] = texts[second], texts[first]
    return [
        msgspec.structs.replace(tick, diskstats=text)
        for tick, text in zip(ticks, texts, strict=True)
    ]


def out_of_order(ticks: list[Tick], chance: Random) -> list[Tick]:
    later = ticks[1:]
    chance.shuffle(later)
    return [ticks[0], *later]


def repeated(ticks: list[Tick], chance: Random) -> list[Tick]:
    """Return ticks in which the counters stand still for a time, again and again."""
    found, text = [], ticks[0].diskstats
    for tick in ticks:
        text = text if chance.random() < 0.5 else tick.diskstats
        found.append(msgspec.structs.replace(tick, diskstats=text))
    return found


def huge(ticks: list[Tick], chance: Random) -> list[Tick]:
    """Return ticks in which some counters increase by any number, in some or in all windows."""
    share = chance.choice((0.02, 1.0))
    rise, factor = 0, 1 << chance.randint(0, 50)
    found = []
    for tick in ticks:
        rise += chance.randrange(1, 8) * factor if chance.random() < share else 0
        lines = (line.split() for line in (tick.diskstats or "").splitlines())
        text = "".join(" ".join(_raised(words, rise, chance)) + "\n" for words in lines)
        found.append(msgspec.structs.replace(tick, diskstats=text if tick.diskstats else None))
    return found


def _raised(words: list[str], rise: int, chance: Random) -> list[str]:
    return [
        str(int(word) + rise)
        if at > 2 and at != _INFLIGHT and word.isdecimal() and chance.random() < 0.9
        else word
        for at, word in enumerate(words)
    ]


def in_flight(ticks: list[Tick], chance: Random) -> list[Tick]:
    """Return ticks in which requests are in flight, whatever completes."""
    number = chance.choice(("0", "1", "7", str(2**40)))
    found = []
    for tick in ticks:
        lines = [line.split() for line in (tick.diskstats or "").splitlines()]
        text = "".join(
            " ".join([*words[:_INFLIGHT], number, *words[_INFLIGHT + 1 :]]) + "\n"
            for words in lines
            if len(words) > _INFLIGHT
        )
        found.append(msgspec.structs.replace(tick, diskstats=text or tick.diskstats))
    return found


def metadata(ticks: list[Tick], _: Random) -> list[Tick]:
    """Return ticks in which NFS mounts do neither reads nor writes, but as many others."""
    found = []
    for tick in ticks:
        mounts = {
            name: MountReading(
                reads=0,
                writes=0,
                read_bytes=0,
                written_bytes=0,
                read_ms=0,
                write_ms=0,
                others=each.others + each.reads + each.writes,
                replies=each.replies,
                connects=each.connects,
            )
            for name, each in (tick.mounts or {}).items()
        }
        found.append(msgspec.structs.replace(tick, mounts=mounts or tick.mounts))
    return found


CHANGES: dict[str, Callable[[list[Tick], Random], list[Tick]]] = {
    "as it is": lambda ticks, _: ticks,
    "dropped": dropped,
    "thinned": thinned,
    "shuffled": shuffled,
    "out of order": out_of_order,
    "repeated": repeated,
    "huge": huge,
    "in flight": in_flight,
    "metadata": metadata,
}


class ChangedRecording(NamedTuple):
    """A part of a recording, with changes."""

    path: Path
    changes: Sequence[str]
    has_close: bool
    seed: int

    def read(self, most_ticks: int = MOST_TICKS) -> tuple[State, list[Tick]]:
        """Return the state before the first tick, and the ticks."""
        chance = Random(self.seed)
        state, all_ticks = recorded(self.path)
        begin = chance.randrange(len(all_ticks))
        ticks = [all_ticks[0], *all_ticks[max(1, begin) : begin + most_ticks]]
        for change in self.changes:
            ticks = CHANGES[change](ticks, chance)
        return state, with_close(ticks, chance) if self.has_close else ticks


changed_recordings = st.builds(
    ChangedRecording,
    st.sampled_from(RECORDINGS),
    st.lists(st.sampled_from(sorted(CHANGES)), max_size=3),
    st.booleans(),
    st.integers(0, 2**32),
)

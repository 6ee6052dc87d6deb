"""`advance` on any sequence of samples: it never fails, and every second has one verdict.

The sequences are the recordings of this repository: cut, repeated, shuffled, with ticks dropped,
with no and with huge differences of counters, and with close samples that are right or damaged.
"""

import gzip
import math
from collections.abc import Callable, Iterator
from functools import cache
from itertools import pairwise
from pathlib import Path
from random import Random

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from disksla.commands.replay import replay
from disksla.interval import GapReason
from disksla.pipeline.advance import advance
from disksla.pipeline.disk_state import DiskState
from disksla.pipeline.recording import decode_tick
from disksla.pipeline.snapshot import take_snapshot
from disksla.pipeline.state import State
from disksla.pipeline.tick import Tick
from disksla.pipeline.window_records import window_records
from disksla.procfs.close_sample import CloseSample
from disksla.verdict.verdict import VERDICTS, longest_silence_s

ROOT = Path(__file__).parents[2]
RECORDINGS = sorted(
    path
    for pattern in (
        "benches/*/recordings/**/ticks.jsonl.gz",
        "tests/*/recordings/*.rec.gz",
        "tests/hosts/*/ticks.jsonl",
    )
    for path in ROOT.glob(pattern)
)
MOST_TICKS = 120
DECIDED_WITHIN_S = 1.4
"""After the longest silence: the rest of a second, and windows that are late."""
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


CHANGES: dict[str, Callable[[list[Tick], Random], list[Tick]]] = {
    "as it is": lambda ticks, _: ticks,
    "dropped": dropped,
    "shuffled": shuffled,
    "out of order": out_of_order,
    "repeated": repeated,
    "huge": huge,
    "in flight": in_flight,
}


def published(state: State) -> dict[tuple[str, str], tuple[int, ...]]:
    """Return the counts of all histograms."""
    found = {}
    for each in take_snapshot(state).disks:
        found[each.disk.name, "read"] = each.read_latency_s.counts
        found[each.disk.name, "write"] = each.write_latency_s.counts
        found[each.disk.name, "load"] = each.load.counts if each.load is not None else ()
    return found


def check_seconds(state: State, device: str, disk_state: DiskState, begun_s: float) -> None:
    """Check that the seconds of all verdicts are those from when the disk is known until it was
    read last, which is the last tick but for NFS mounts.
    """
    assessed = state.assessed_of(disk_state.disk)
    totals = disk_state.totals
    if disk_state.is_listed and device not in state.active:
        totals = totals.with_idle_until(assessed, 0.0)
    verdicts = totals.verdict_totals
    undecided_s = sum(window.seconds for window in totals.undecided.windows)
    assert all(seconds >= -1e-9 and math.isfinite(seconds) for seconds in verdicts.seconds)
    decided_s = sum(verdicts.seconds)
    # A mount that is read once a second is not assessed in the second in which a gap was.
    of_all: tuple[GapReason, ...] = ("late", "suspend", "clock_step", "unreadable")
    of_one: tuple[GapReason, ...] = ("reset", "vanished", "malformed", "replaced")
    reasons = of_one + of_all if disk_state.disk.is_mount else of_one
    has_gaps = any(state.sampler_stats.gaps[gap] for gap in reasons)
    assessed_s = assessed.seconds - begun_s
    if has_gaps or not disk_state.is_listed:
        assert decided_s + undecided_s <= assessed_s + 1e-6
    else:
        assert abs(decided_s + undecided_s - assessed_s) < 1e-6
    assert abs(sum(verdicts.throttled_s) - verdicts.seconds[VERDICTS.index("throttled")]) < 1e-6
    silence_s = longest_silence_s(disk_state.assignment.limits)
    assert undecided_s <= silence_s + DECIDED_WITHIN_S
    assert len(totals.undecided.windows) == len(disk_state.detector.pending)


@given(
    path=st.sampled_from(RECORDINGS),
    changes=st.lists(st.sampled_from(sorted(CHANGES)), max_size=3),
    has_close=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_advance_never_fails_and_every_second_has_a_verdict(
    path: Path, changes: list[str], has_close: bool, seed: int
) -> None:
    chance = Random(seed)
    state, all_ticks = recorded(path)
    begin = chance.randrange(len(all_ticks))
    ticks = [all_ticks[0], *all_ticks[max(1, begin) : begin + MOST_TICKS]]
    for change in changes:
        ticks = CHANGES[change](ticks, chance)
    if has_close:
        ticks = with_close(ticks, chance)
    begun_s: dict[str, float] = {}
    counts: dict[tuple[str, str], tuple[int, ...]] = {}
    for tick in ticks:
        before, state = state, advance(state, tick)
        rows = window_records(before, state)
        counts_before, counts = counts, published(state)
        for key in counts.keys() & counts_before.keys():
            pairs = zip(counts_before[key], counts[key], strict=True)
            assert all(old <= new for old, new in pairs), key
        for device, disk_state in state.monitored.items():
            assessed_s = state.assessed_of(disk_state.disk).seconds
            if disk_state.reading is not None:
                begun_s.setdefault(device, assessed_s)
            check_seconds(state, device, disk_state, begun_s.get(device, assessed_s))
        for group in state.groups.values():
            assert len(group.totals.undecided.windows) == len(group.detector.pending)
        assert all(0 <= (row.throttled_s or 0.0) <= (row.window_s or 0.0) + 1e-9 for row in rows)

"""Schedule of each disk of the fleet, as a function of seed, disk and time.

A disk has a model and a day: which playback is active in each five minutes. All days are the same,
so the time that each playback has run until any moment is computed without simulating the days
before. The days of disks start at different times.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random

from fleet.models import MACHINE_DISKS, RECORDED, Model, models

DAY_S = 86_400
SLOT_S = 300
SLOTS = DAY_S // SLOT_S
DISKS_PER_HOST = 10
_HOSTS_PER_MACHINE_LIMIT = 4
"""Of so many hosts, one has disks that share a limit of the machine."""
_OLDEST_DAYS = 30
_MOST_SHIFT_S = 2 * 3600

Day = tuple[str, ...]
"""The name of a playback for each slot."""


def _day(usual: dict[int, str], **special: tuple[tuple[float, float], ...]) -> Day:
    """Return a day: the usual playback from each hour on, and special ones between two hours."""
    day = []
    for slot in range(SLOTS):
        hour = slot * SLOT_S / 3600
        playback = usual[max(start for start in usual if start <= hour)]
        for name, times in special.items():
            if any(start <= hour < end for start, end in times):
                playback = name
        day.append(playback)
    return tuple(day)


_OFFICE = {0: "idle", 6: "light", 9: "busy", 18: "light", 22: "idle"}
_ROUND_THE_CLOCK = {0: "light", 8: "busy", 20: "light"}

DAYS: dict[str, Day] = {
    "quiet": _day({0: "idle", 7: "light", 20: "idle"}),
    "office": _day(_OFFICE),
    "backup": _day(_OFFICE, throttled=((1, 2.5),), synchronous=((2.5, 3),)),
    "crowded": _day(
        _ROUND_THE_CLOCK, throttled=tuple((hour, hour + 0.6) for hour in range(9, 18))
    ),
    "degraded": _day(_ROUND_THE_CLOCK, below=((4, 10), (14, 22))),
    "slow": _day(_ROUND_THE_CLOCK, slow=((0, 24),)),
    "stalling": _day(_OFFICE, stalled=((3, 3.25), (11, 11.25), (19, 19.25))),
    "credits": ("cycle",) * SLOTS,
    "recorded": ("recorded",) * SLOTS,
}
_DAYS_OF = {
    "quiet": 40,
    "office": 32,
    "backup": 12,
    "crowded": 8,
    "degraded": 3,
    "slow": 3,
    "stalling": 2,
}
"""How many of a hundred disks have each day."""
_MODELS_OF = {"ssd": 45, "hdd": 20, "nvme": 10, "shared": 20, "unknown": 5}


@dataclass(frozen=True)
class Disk:
    """One disk of the fleet."""

    device: str
    serial: str
    model: str
    day: str
    shift_s: int
    """How much earlier than others its day starts."""
    born_s: int
    """Unix time at which its counters started: the start of one of its days."""


@dataclass(frozen=True)
class Progress:
    """The active playback of a disk, and how long each has run."""

    playback: str
    played_s: dict[str, float]
    """Time for which each playback of the model has run."""


def host_name(number: int) -> str:
    """Return the name of a host."""
    return f"host-{number:04d}"


def disks_of(seed: int, host: int, now_s: float) -> tuple[Disk, ...]:
    """Return the disks of a host of a fleet that started at a time."""
    return tuple(_disk(seed, host, place, int(now_s) // DAY_S) for place in range(DISKS_PER_HOST))


def _disk(seed: int, host: int, place: int, today: int) -> Disk:
    rng = Random(f"{seed}/{host}/{place}")
    shift_s = rng.randrange(-_MOST_SHIFT_S, _MOST_SHIFT_S)
    born = today - _oldest_days(seed, host)
    if place == DISKS_PER_HOST - 1:
        model, day = RECORDED[host % len(RECORDED)], "recorded"
    elif place == DISKS_PER_HOST - 2 and host % 2:
        model, day, shift_s = "credits", "credits", rng.randrange(DAY_S)
    elif place < len(MACHINE_DISKS) and host % _HOSTS_PER_MACHINE_LIMIT == 0:
        model, day = MACHINE_DISKS[place], "credits"
        shift_s = Random(f"{seed}/{host}/machine").randrange(DAY_S)
    else:
        model = _one_of(rng, _MODELS_OF)
        day = _one_of(rng, _DAYS_OF)
    return Disk(
        device=f"vd{chr(ord('b') + place)}",
        serial=f"{rng.getrandbits(64):016x}"[:15],
        model=model,
        day=day,
        shift_s=shift_s,
        born_s=born * DAY_S - shift_s,
    )


def _oldest_days(seed: int, host: int) -> int:
    """Return the age of the host in days; at least two, so that no disk starts in the future."""
    return Random(f"{seed}/{host}").randrange(2, _OLDEST_DAYS)


def _one_of(rng: Random, weights: dict[str, int]) -> str:
    return rng.choices(list(weights), list(weights.values()))[0]


def model_of(disk: Disk) -> Model:
    """Return the model of a disk."""
    return models()[disk.model]


def progress_of(disk: Disk, now_s: float) -> Progress:
    """Return the progress of a disk at a Unix time."""
    days, of_day_s = divmod(now_s - disk.born_s, DAY_S)
    slot = int(of_day_s // SLOT_S)
    day = DAYS[disk.day]
    played_s = {
        playback: days * whole_s + _seconds_before(disk.day)[slot][playback]
        for playback, whole_s in _seconds_before(disk.day)[-1].items()
    }
    played_s[day[slot]] += of_day_s - slot * SLOT_S
    return Progress(day[slot], played_s)


@cache
def _seconds_before(day: str) -> tuple[Counter[str], ...]:
    """Return for how long each playback runs before each slot of a day, and in the whole day."""
    slots: Iterator[Counter[str]] = (Counter({playback: SLOT_S}) for playback in DAYS[day])
    return tuple(accumulate(slots, lambda before, slot: before + slot, initial=Counter()))

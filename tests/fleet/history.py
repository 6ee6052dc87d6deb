"""What every disk of the fleet has gone through up to a moment: a function of seed, disk and time.

A disk is of a model and has a day: which reel is played in each five minutes of it. Every day is
like the one before, so how long each reel was played by any moment is known without going through
all that was before. Disks keep different hours.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import accumulate
from random import Random

from fleet.models import RECORDED, Model, models

DAY_S = 86_400
SLOT_S = 300
SLOTS = DAY_S // SLOT_S
DISKS_PER_HOST = 10
_OLDEST_DAYS = 30
_MOST_SHIFT_S = 2 * 3600

Day = tuple[str, ...]
"""The name of a reel for each slot."""


def _day(usual: dict[int, str], **special: tuple[tuple[float, float], ...]) -> Day:
    """Give a day: what begins at an hour, and what happens from one hour to another."""
    day = []
    for slot in range(SLOTS):
        hour = slot * SLOT_S / 3600
        reel = usual[max(begun for begun in usual if begun <= hour)]
        for name, times in special.items():
            if any(start <= hour < end for start, end in times):
                reel = name
        day.append(reel)
    return tuple(day)


_OFFICE = {0: "idle", 6: "light", 9: "busy", 18: "light", 22: "idle"}
_ROUND_THE_CLOCK = {0: "light", 8: "busy", 20: "light"}

DAYS: dict[str, Day] = {
    "quiet": _day({0: "idle", 7: "light", 20: "idle"}),
    "office": _day(_OFFICE),
    "backup": _day(_OFFICE, held=((1, 2.5),), synchronous=((2.5, 3),)),
    "crowded": _day(_ROUND_THE_CLOCK, held=tuple((hour, hour + 0.6) for hour in range(9, 18))),
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
"""Of so many disks in a hundred."""
_MODELS_OF = {"ssd": 45, "hdd": 20, "nvme": 10, "shared": 20, "unknown": 5}


@dataclass(frozen=True)
class Disk:
    """One disk of the fleet."""

    device: str
    serial: str
    model: str
    day: str
    shift_s: int
    """How long before the others its day begins."""
    born_s: int
    """Unix time from which it has been watched: the beginning of one of its days."""


@dataclass(frozen=True)
class Playing:
    """How far a disk has come."""

    reel: str
    played_s: dict[str, float]
    """How long each reel of the model was played."""


def host_name(number: int) -> str:
    """Give the name of a host."""
    return f"host-{number:04d}"


def disks_of(seed: int, host: int, now_s: float) -> tuple[Disk, ...]:
    """Give the disks of a host of a fleet that was begun at some time."""
    return tuple(_disk(seed, host, place, int(now_s) // DAY_S) for place in range(DISKS_PER_HOST))


def _disk(seed: int, host: int, place: int, today: int) -> Disk:
    dice = Random(f"{seed}/{host}/{place}")
    shift_s = dice.randrange(-_MOST_SHIFT_S, _MOST_SHIFT_S)
    born = today - _oldest_days(seed, host)
    if place == DISKS_PER_HOST - 1:
        model, day = RECORDED[host % len(RECORDED)], "recorded"
    elif place == DISKS_PER_HOST - 2 and host % 2:
        model, day, shift_s = "credits", "credits", dice.randrange(DAY_S)
    else:
        model = _one_of(dice, _MODELS_OF)
        day = _one_of(dice, _DAYS_OF)
    return Disk(
        device=f"vd{chr(ord('b') + place)}",
        serial=f"{dice.getrandbits(64):016x}"[:15],
        model=model,
        day=day,
        shift_s=shift_s,
        born_s=born * DAY_S - shift_s,
    )


def _oldest_days(seed: int, host: int) -> int:
    """Give how many whole days ago the host was started; two at least, so that it was by now."""
    return Random(f"{seed}/{host}").randrange(2, _OLDEST_DAYS)


def _one_of(dice: Random, weights: dict[str, int]) -> str:
    return dice.choices(list(weights), list(weights.values()))[0]


def model_of(disk: Disk) -> Model:
    """Give the model of a disk."""
    return models()[disk.model]


def playing(disk: Disk, now_s: float) -> Playing:
    """Tell how far a disk has come by a Unix time."""
    days, of_day_s = divmod(now_s - disk.born_s, DAY_S)
    slot = int(of_day_s // SLOT_S)
    day = DAYS[disk.day]
    played_s = {
        reel: days * whole_s + _played_before(disk.day)[slot][reel]
        for reel, whole_s in _played_before(disk.day)[-1].items()
    }
    played_s[day[slot]] += of_day_s - slot * SLOT_S
    return Playing(day[slot], played_s)


@cache
def _played_before(day: str) -> tuple[Counter[str], ...]:
    """Give how long each reel was played before each slot of a day, and in all of it."""
    slots: Iterator[Counter[str]] = (Counter({reel: SLOT_S}) for reel in DAYS[day])
    return tuple(accumulate(slots, lambda before, slot: before + slot, initial=Counter()))

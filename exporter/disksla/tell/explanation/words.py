"""The words that a person reads of a disk, on pages and terminals: two tables, and rates.

Whoever says one of these facts takes it from here; dashboards are compared by a test.
"""

from collections.abc import Mapping
from typing import Literal, NamedTuple, get_args

from disksla.base.units import format_bandwidth, format_count
from disksla.promise.catalogue import Rates
from disksla.verdict.throttling import VERDICTS, LimitKind, Verdict

_MUCH_MORE = 1.01
_WHOLE_FROM_S = 10.0
"""Seconds are shown without a fraction from here on."""

Shown = Literal["idle", "unproven", "met", "slow", "throttled", "below", "stalled"]
"""A verdict, or slow: requests took far longer than they should, and no verdict explains it."""
SHOWN: tuple[Shown, ...] = get_args(Shown)
"""The worst last."""
PROBLEMS: tuple[Shown, ...] = ("slow", "throttled", "below", "stalled")
_MAY_BE_SLOW: tuple[Verdict, ...] = ("unproven", "met", "idle")

Condition = Literal[
    "idle", "ok", "unknown_limit", "your_limit", "no_credits", "machine_limit",
    "slow", "below", "stalled",
]  # fmt: skip
CONDITIONS: tuple[Condition, ...] = get_args(Condition)
"""The worst last."""


class ShownText(NamedTuple):
    """How a strip shows a window, and what that means."""

    words: str
    did: str  # what the disk did in that time
    meaning: str
    colour: str  # on pages and terminals, dark and light; empty for a faint one of the theme
    block: str  # the worse, the higher
    letter: str  # where there are no blocks, or no colours


class ConditionText(NamedTuple):
    """What is said of a disk first."""

    words: str
    short: str  # for a column of a table
    meaning: str
    shown: Shown  # the strip's colour


SHOWN_TEXT: Mapping[Shown, ShownText] = {
    "idle": ShownText(
        words="idle", did="was idle", meaning="no request", colour="", block="▁", letter="."
    ),
    "unproven": ShownText(
        words="OK",
        did="served the load",
        meaning="the load asks for less than the limit and is served",
        colour="#5e92cc",
        block="▂",
        letter="-",
    ),
    "met": ShownText(
        words="promise kept",
        did="gave what was promised",
        meaning="the disk gives what was promised, or more",
        colour="#3f9c62",
        block="▃",
        letter="+",
    ),
    "slow": ShownText(
        words="slow",
        did="was slow",
        meaning="requests took longer than promised, or far longer than usual",
        colour="#cf5a9b",
        block="▄",
        letter="L",
    ),
    "throttled": ShownText(
        words="throttled",
        did="was throttled",
        meaning="a limiter makes requests wait",
        colour="#d07a0e",
        block="▅",
        letter="T",
    ),
    "below": ShownText(
        words="less than promised",
        did="gave less than promised",
        meaning="requests wait, no limit explains it, and the disk gives less than promised",
        colour="#d93a36",
        block="▆",
        letter="B",
    ),
    "stalled": ShownText(
        words="hung",
        did="hung",
        meaning="requests are in flight and none completes",
        colour="#9a63c4",
        block="█",
        letter="H",
    ),
}
CONDITION_TEXT: Mapping[Condition, ConditionText] = {
    "idle": ConditionText("Idle", "idle", "no request", "idle"),
    "ok": ConditionText("OK", "OK", "nothing makes requests wait", "unproven"),
    "unknown_limit": ConditionText(
        "Throttled at an unknown limit",
        "unknown limit",
        "throttled at a limit that the terms do not explain",
        "throttled",
    ),
    "your_limit": ConditionText(
        "You: throttled at the limit you bought",
        "You: limit",
        "throttled at the limit you bought",
        "throttled",
    ),
    "no_credits": ConditionText(
        "You: out of credits, throttled at the baseline",
        "You: credits",
        "burst credits are used up, and it is throttled at the baseline",
        "throttled",
    ),
    "machine_limit": ConditionText(
        "The machine: throttled at its limit",
        "Machine: limit",
        "throttled at a limit of the machine; a larger disk does not help",
        "throttled",
    ),
    "slow": ConditionText(
        "The disk: slow",
        "Disk: slow",
        "requests take longer than promised, or far longer than usual",
        "slow",
    ),
    "below": ConditionText(
        "The disk: gives less than promised",
        "Disk: less",
        "the disk gives less than promised",
        "below",
    ),
    "stalled": ConditionText(
        "The disk: hung, no request completes",
        "Disk: hung",
        "requests are in flight and none completes",
        "stalled",
    ),
}

VERDICT_STYLE = ".idle { --verdict: var(--line); }\n" + "".join(
    f".{shown} {{ --verdict: {text.colour}; }}\n"
    for shown, text in SHOWN_TEXT.items()
    if text.colour
)


def shown_seconds(verdict_s: Mapping[Verdict, float], slow_s: float) -> dict[Shown, float]:
    """Return seconds by what is shown, the worst last; those of slow are taken from the others."""
    seconds: dict[Shown, float] = {each: verdict_s[each] for each in VERDICTS}
    left_s = slow_s
    for verdict in _MAY_BE_SLOW:
        taken_s = min(left_s, seconds[verdict])
        seconds[verdict] -= taken_s
        left_s -= taken_s
    seconds["slow"] = slow_s - left_s
    return {each: seconds[each] for each in SHOWN}


def describe_rates(rates: Rates) -> str:
    """Return all limits of the rates as text."""
    kinds: tuple[LimitKind, ...] = ("iops", "bandwidth")
    present = (limit for limit in kinds if read_and_write(rates, limit) != (None, None))
    return " and ".join(limit_text(rates, limit) for limit in present)


def limit_text(rates: Rates, limit: LimitKind) -> str:
    """Return one limit as text, with a single number if reads and writes have the same."""
    read, write = read_and_write(rates, limit)
    formatted = format_bandwidth if limit == "bandwidth" else iops_text
    if read == write or write is None or read is None:
        rate = read if read is not None else write
        kind = "" if read == write else " for reads" if write is None else " for writes"
        return f"{formatted(rate or 0.0)}{kind}"
    return f"{formatted(read)} for reads and {formatted(write)} for writes"


def read_and_write(rates: Rates, limit: LimitKind) -> tuple[float | None, float | None]:
    """Return the limits of reads and of writes."""
    if limit == "bandwidth":
        return rates.read_bytes_per_second, rates.write_bytes_per_second
    return rates.read_iops, rates.write_iops


def seconds_text(seconds: float) -> str:
    """Return seconds with two digits at least."""
    return f"{seconds:.0f}" if seconds >= _WHOLE_FROM_S else f"{seconds:.2g}"


def iops_text(rate: float, most: float = 0.0) -> str:
    """Return a rate of requests, as a range if it may be more by a hundredth."""
    more = f" to {format_count(most)}" if most > _MUCH_MORE * rate else ""
    return f"{format_count(rate)}{more} IOPS"

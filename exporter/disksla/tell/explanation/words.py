"""The words that a person reads of a disk, on pages and terminals: two tables, and rates.

Whoever says one of these facts takes it from here; dashboards are compared by a test.
"""

import re
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
    colour: str  # on pages and terminals, dark and light; empty for a faint one of the theme
    block: str  # the worse, the higher
    letter: str  # where there are no blocks, or no colours
    meaning: str


class ConditionText(NamedTuple):
    """What is said of a disk first."""

    words: str
    short: str  # for a column of a table
    shown: Shown  # the strip's colour
    meaning: str


_SHOWN = """
idle       idle                was idle                 none     ▁  .
    no request
unproven   OK                  served the load          #5e92cc  ▂  -
    the load asks for less than the limit and is served
met        promise kept        gave what was promised   #3f9c62  ▃  +
    the disk gives what was promised, or more
slow       slow                was slow                 #cf5a9b  ▄  L
    requests took longer than promised, or far longer than usual
throttled  throttled           was throttled            #d07a0e  ▅  T
    a limiter makes requests wait
below      less than promised  gave less than promised  #d93a36  ▆  B
    requests wait, no limit explains it, and the disk gives less than promised
stalled    hung                hung                     #9a63c4  █  H
    requests are in flight and none completes
"""
_CONDITIONS = """
idle  Idle  idle  idle
    no request
ok  OK  OK  unproven
    nothing makes requests wait
unknown_limit  Throttled at an unknown limit  unknown limit  throttled
    throttled at a limit that the terms do not explain
your_limit  You: throttled at the limit you bought  You: limit  throttled
    throttled at the limit you bought
no_credits  You: out of credits, throttled at the baseline  You: credits  throttled
    burst credits are used up, and it is throttled at the baseline
machine_limit  The machine: throttled at its limit  Machine: limit  throttled
    throttled at a limit of the machine; a larger disk does not help
slow  The disk: slow  Disk: slow  slow
    requests take longer than promised, or far longer than usual
below  The disk: gives less than promised  Disk: less  below
    the disk gives less than promised
stalled  The disk: hung, no request completes  Disk: hung  stalled
    requests are in flight and none completes
"""


def _rows(table: str) -> dict[str, list[str]]:
    """Return the cells behind each name; two blanks or a line are between them."""
    rows = (re.split(r"\s{2,}", row) for row in re.split(r"\n(?=\S)", table.strip()))
    return {name: ["" if cell == "none" else cell for cell in cells] for name, *cells in rows}


def _condition_text(words: str, short: str, shown: str, meaning: str) -> ConditionText:
    return ConditionText(words, short, next(each for each in SHOWN if each == shown), meaning)


SHOWN_TEXT: Mapping[Shown, ShownText] = {each: ShownText(*_rows(_SHOWN)[each]) for each in SHOWN}
CONDITION_TEXT: Mapping[Condition, ConditionText] = {
    each: _condition_text(*_rows(_CONDITIONS)[each]) for each in CONDITIONS
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

"""What strips show, in words and colours, on pages and terminals."""

from collections.abc import Mapping
from typing import Literal, get_args

from disksla.verdict.throttling import VERDICTS, Verdict

Shown = Literal["idle", "unproven", "met", "slow", "throttled", "below", "stalled"]
"""A verdict, or slow: requests took far longer than they should, and no verdict explains it."""
SHOWN: tuple[Shown, ...] = get_args(Shown)
"""The worst last."""
PROBLEMS: tuple[Shown, ...] = ("slow", "throttled", "below", "stalled")
SHOWN_WORDS: Mapping[Shown, str] = {
    "idle": "idle",
    "unproven": "OK",
    "met": "promise kept",
    "slow": "slow",
    "throttled": "throttled",
    "below": "less than promised",
    "stalled": "stalled",
}
"""What a person reads instead of the labels."""
_MAY_BE_SLOW: tuple[Verdict, ...] = ("unproven", "met", "idle")
VERDICT_COLOURS: Mapping[Shown, str] = {
    "unproven": "#5e92cc",
    "met": "#3f9c62",
    "slow": "#cf5a9b",
    "throttled": "#d07a0e",
    "below": "#d93a36",
    "stalled": "#9a63c4",
}
"""On pages and terminals, dark and light; idle is a faint colour of the theme."""

VERDICT_STYLE = ".idle { --verdict: var(--line); }\n" + "".join(
    f".{shown} {{ --verdict: {colour}; }}\n" for shown, colour in VERDICT_COLOURS.items()
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

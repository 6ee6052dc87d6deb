"""What a person reads of a disk first: who or what makes requests wait, and what to do next."""

from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

from disksla.base.units import format_count, format_percent
from disksla.promise.catalogue import Assignment
from disksla.tell.explanation.words import (
    CONDITION_TEXT,
    CONDITIONS,
    Condition,
    Shown,
    seconds_text,
    shown_seconds,
)
from disksla.verdict.credits import CreditLevel
from disksla.verdict.throttling import OF_MACHINE, LimitKind, Verdict

LEAST_SHARE = 0.01
"""What holds for a smaller share of a period is not said."""
_LEAST_S = 0.1
"""Nor is what holds for less than a window."""
_NOTICEABLE = 0.1
"""Share of a period."""
_EMPTY = 0.01
"""Credits below this share of the capacity are used up."""
_MOST_FULL = 1.1
"""Load of a second that is no more than the limit: one more window of 100 ms fits its edges."""
_FIVE_MINUTES_S = 290.0
"""At least: the verdicts on the last seconds may be missing."""
_MAX_NAMED = 8
_PROBLEMS = tuple(reversed(CONDITIONS[CONDITIONS.index("unknown_limit") :]))
"""The worst first."""

_EVIDENCE = "disksla record slow.jsonl.gz --for 60s keeps the evidence"

ConditionSeconds = Mapping[Condition, float]


class PeriodSeconds(NamedTuple):
    """How long each verdict and each limit applied in a period, and how long a disk was slow."""

    verdicts: Mapping[Verdict, float]
    """Each of them."""
    throttled: Mapping[LimitKind, float]
    slow: float
    """These seconds are among those of the verdicts."""

    @property
    def shown(self) -> Mapping[Shown, float]:
        """Seconds by what is shown, the worst last: those of slow are taken from the others."""
        return shown_seconds(self.verdicts, self.slow)

    @property
    def worst_shown(self) -> Shown | None:
        """The worst of what is shown that applied for a tenth of the time; None without any."""
        least_s = _NOTICEABLE * sum(self.verdicts.values())
        applied = [each for each, seconds in self.shown.items() if 0 < seconds >= least_s]
        return applied[-1] if applied else None

    def conditions(self) -> ConditionSeconds:
        """Return how long each condition held; throttled time has the shares of the limits."""
        shown = self.shown
        seconds = dict.fromkeys(CONDITIONS, 0.0)
        for each in ("idle", "slow", "below", "stalled"):
            seconds[each] = shown[each]
        seconds["ok"] = shown["unproven"] + shown["met"]
        by_limit = self.throttled if any(self.throttled.values()) else {"unknown": 1.0}
        whole_s = sum(by_limit.values())
        for limit, each_s in by_limit.items():
            seconds[condition_of_limit(limit)] += shown["throttled"] * each_s / whole_s
        return seconds


def condition_of_limit(limit: str) -> Condition:
    """Return what is said of a disk that is throttled at a limit."""
    if limit == "unknown":
        return "unknown_limit"
    return "machine_limit" if limit in OF_MACHINE else "your_limit"


def is_said(seconds: float, whole_s: float) -> bool:
    """Return whether something held for long enough to be said of a period."""
    return seconds >= max(_LEAST_S, LEAST_SHARE * whole_s)


def present_condition(
    seconds: ConditionSeconds, levels: Sequence[CreditLevel] = ()
) -> Condition | None:
    """Return the worst condition that held for a tenth of the time; None if nothing is known."""
    whole_s = sum(seconds.values())
    found = [each for each in CONDITIONS if 0 < seconds[each] >= _NOTICEABLE * whole_s]
    if not found:
        return None
    is_empty = any(each.ratio(each.upper_credits) < _EMPTY for each in levels)
    return "no_credits" if found[-1] == "your_limit" and is_empty else found[-1]


def describe_condition(condition: Condition | None, load_ratio: float | None) -> str:
    """Return the words; of a disk that is OK, with the load, if it is known."""
    if condition is None:
        return "Not known yet"
    words = CONDITION_TEXT[condition].words
    if condition != "ok" or load_ratio is None:
        return words
    return f"{words}, {describe_load(load_ratio, 'the limit')}"


def describe_load(load_ratio: float, limit: str) -> str:
    """Return a load in whole percent of a limit; above it, as times of what is promised."""
    ratio = shown_load(load_ratio)
    if ratio > 1:
        return f"{format_count(ratio)} times what is promised"
    share = "under 1 %" if ratio < LEAST_SHARE else format_percent(round(ratio, 2))
    return f"{share} of {limit}"


def shown_load(load_ratio: float) -> float:
    """Return a load without what the edges of its windows add to the limit."""
    return min(load_ratio, 1.0) if round(load_ratio, 2) <= _MOST_FULL else load_ratio


def watched_period(disks: Iterable[ConditionSeconds]) -> str:
    """Return the last five minutes in words, or for how long the disks have been watched."""
    watched_s = max((sum(each.values()) for each in disks), default=0.0)
    if watched_s >= _FIVE_MINUTES_S:
        return "the last five minutes"
    return f"the last {seconds_text(watched_s)} s"


def headline(disks: Mapping[str, ConditionSeconds], period: str) -> str:
    """Return which disks had which problem in a period, the worst problems first."""
    problems = {name: problems_of(each) for name, each in disks.items()}
    by_problem = {
        problem: names
        for problem in _PROBLEMS
        if (names := [name for name, each in problems.items() if problem in each])
    }
    if not by_problem:
        return f"No problem was seen in {period}."
    number = len(set().union(*by_problem.values()))
    of_disks = f"{number} of {len(disks)} disks had" if len(disks) > 1 else "The disk had"
    causes = [
        f"{CONDITION_TEXT[each].words} ({_named(names)})." for each, names in by_problem.items()
    ]
    return " ".join([f"{of_disks} a problem in {period}.", *causes])


def problems_of(seconds: ConditionSeconds) -> list[Condition]:
    """Return the problems that lasted long enough, the worst first; to hang is never too short."""
    whole_s = sum(seconds.values())
    return [
        problem
        for problem in _PROBLEMS
        if is_said(seconds[problem], whole_s) or (problem == "stalled" and seconds[problem] > 0)
    ]


def _named(names: Sequence[str]) -> str:
    more = f" and {len(names) - _MAX_NAMED} more" if len(names) > _MAX_NAMED else ""
    return ", ".join(names[:_MAX_NAMED]) + more


def next_step(device: str, assignment: Assignment, seconds: ConditionSeconds) -> str | None:
    """Return a sentence for the worst problem of a period; None without a problem."""
    worst = next(iter(problems_of(seconds)), None)
    if worst is None:
        return None
    step = f"disksla advise {device} says which disk or machine would have been enough"
    match worst:
        case "stalled":
            step = (
                f"look for errors of {device} in the kernel log (journalctl --dmesg), and ask the"
                f" provider; {_EVIDENCE}"
            )
        case "below":
            step = (
                "disksla report writes the proof for a ticket, from the series in Prometheus;"
                f" {_EVIDENCE} while it lasts"
            )
        case "slow":
            step = (
                f"disksla verify {device} --latency says whether it is slow without load, too, and"
                " the kernel log (journalctl --dmesg) whether it had errors; then ask the provider"
            )
        case "unknown_limit" if assignment.source == "none":
            step = how_to_say_the_terms("this disk was")
        case "unknown_limit":
            step = (
                "disksla detect asks the cloud for its type and size; disksla doctor checks them"
            )
    return f"Next: {step}."


def how_to_say_the_terms(what: str) -> str:
    """Return how the terms of disks get known, `what` is such as 'this disk was'."""
    return (
        f"disksla detect asks the cloud what {what} sold as; elsewhere, write the type under disks"
        " in /etc/disksla/disksla.yml (disksla limits lists the types)"
    )


def without_terms(sources: Iterable[str]) -> str | None:
    """Return what to do where the terms of no disk are known, by the sources of all."""
    each = list(sources)
    if not each or any(source != "none" for source in each):
        return None
    what = "this disk was" if len(each) == 1 else "these disks were"
    return (
        f"What {what} sold as is not known, so there is no promise to compare with. Next:"
        f" {how_to_say_the_terms('they were' if len(each) > 1 else 'it was')}."
    )

"""Spans of steps: incidents, throttled times and gaps."""

from collections.abc import Callable, Iterator, Sequence
from statistics import median

from disksla.measure.prometheus import Step
from disksla.measure.report.document import Gap, HistoryGapReason, ThrottledSpan
from disksla.measure.report.step_totals import totals_of

BREAK_S = 600.0
"""Spans with a shorter break between them are one."""
_LEAST_GAP_S = 5.0
"""A verdict may be decided two seconds late; so much may be missing of a step without a gap."""
_LONG = 2.5
"""A step of so many usual ones is one in which samples are missing."""
_HALF = 0.5


def spans(steps: Sequence[Step], is_in: Callable[[Step], bool]) -> list[list[Step]]:
    """Return the steps of each span, with those of short breaks inside it."""
    found: list[list[Step]] = []
    since: list[Step] = []
    for step in steps:
        since.append(step)
        if not is_in(step):
            continue
        if found and step.start_s - found[-1][-1].end_s < BREAK_S:
            found[-1] += since
        else:
            found.append([step])
        since = []
    return found


def incident_spans(steps: Sequence[Step]) -> list[list[Step]]:
    """Return the steps of each incident: times below the promise or stalled."""
    return spans(steps, lambda step: step.noncompliant_s > 0)


def worst_steps(incident: Sequence[Step]) -> list[Step]:
    """Return the steps that are below or stalled for half of their time; without one, for any."""
    bad = [step for step in incident if step.noncompliant_s > 0]
    return [step for step in bad if step.noncompliant_s >= _HALF * step.seconds] or bad


def throttled_spans(steps: Sequence[Step]) -> tuple[ThrottledSpan, ...]:
    """Return the times in which a disk was throttled."""
    found = []
    for span in spans(steps, lambda step: step.is_throttled):
        totals = totals_of(span, span[-1].end_s - span[0].start_s)
        found.append(
            ThrottledSpan(
                span[0].start_s,
                span[-1].end_s,
                totals.throttled_seconds,
                totals.throttled_iowait_s,
            )
        )
    return tuple(found)


def gaps(steps: Sequence[Step], start_s: float, end_s: float) -> tuple[Gap, ...]:
    """Return the times between two moments that were not assessed."""
    if not steps:
        return (Gap(start_s, end_s, end_s - start_s, "no samples"),)
    usual_s = median(step.seconds for step in steps)
    found = [gap for gap in _gaps_between(steps, start_s, usual_s) if gap is not None]
    rest_s = end_s - steps[-1].end_s
    if rest_s > _LONG * usual_s:
        found.append(Gap(steps[-1].end_s, end_s, rest_s, "no samples"))
    joined: list[Gap] = []
    for gap in found:
        last = joined[-1] if joined else gap
        is_next = last.reason == gap.reason and gap.start_timestamp_s <= last.end_timestamp_s
        if joined and is_next:
            both_s = round(last.unassessed_s + gap.unassessed_s, 6)
            joined[-1] = Gap(last.start_timestamp_s, gap.end_timestamp_s, both_s, gap.reason)
        else:
            joined.append(gap)
    return tuple(joined)


def _gaps_between(steps: Sequence[Step], start_s: float, usual_s: float) -> Iterator[Gap | None]:
    last_s = start_s
    for step in steps:
        if step.start_s - last_s > _LEAST_GAP_S:
            yield Gap(last_s, step.start_s, step.start_s - last_s, "no samples")
        yield _gap_in(step, usual_s)
        last_s = step.end_s


def _gap_in(step: Step, usual_s: float) -> Gap | None:
    unassessed_s = round(step.seconds - step.assessed_s, 6)
    if unassessed_s <= _LEAST_GAP_S:
        return None
    reason: HistoryGapReason = "not sampled"
    if step.is_reset:
        reason = "daemon restarted"
    elif step.seconds > _LONG * usual_s:
        reason = "no samples"
    return Gap(step.start_s, step.end_s, unassessed_s, reason)

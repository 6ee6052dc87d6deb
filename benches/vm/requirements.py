"""Requirements of a scenario that the metrics of the daemon do not meet. Pure functions."""

from collections.abc import Iterable, Sequence

from lab.judge import Facts
from lab.requirements import CEILING_TOLERANCE, time_problems
from lab.scenario import Expectation
from lab.truth import WINDOW_S, Window
from vm.daemon import DiskMetrics

CLOCK_TOLERANCE_S = 0.02


def daemon_problems(
    daemon: DiskMetrics,
    before: DiskMetrics,
    truth: Sequence[Window],
    facts: Facts,
    expected: Expectation,
    loaded_s: float,
) -> Iterable[str]:
    """Yield a message for each requirement that the metrics of the daemon do not meet.

    `before` are those when the truth begins.
    """
    truth_s = sum(window.throttled_s for window in truth)
    reported_s = daemon.throttled_s - before.throttled_s
    yield from time_problems(expected.throttled, reported_s, truth_s, loaded_s, "/metrics: ")
    for name, seconds in daemon.limits.items():
        other_s = seconds - before.limits.get(name, 0.0)
        if name in expected.never and other_s:
            yield f"/metrics: {name} for {other_s:.1f} s, expected never"
        if expected.limit not in {None, name} and other_s > 2 * WINDOW_S:
            yield f"/metrics: {name} for {other_s:.1f} s, expected {expected.limit}"
    limit, is_bandwidth = facts.limit_rate or float("inf"), facts.is_bandwidth
    ceiling = daemon.ceiling_bytes_per_second if is_bandwidth else daemon.ceiling_iops
    if expected.ceiling and (ceiling is None or abs(ceiling / limit - 1) > CEILING_TOLERANCE):
        yield f"/metrics: ceiling {ceiling}, expected {limit:g}"


def credit_problems(daemon: DiskMetrics, truth: Sequence[Window]) -> Iterable[str]:
    """Yield a message if the bounds of the daemon do not contain the level of any window."""
    for resource in truth[0].credits if truth else ():
        lower, upper = daemon.credits.get(resource, (float("inf"), float("-inf")))
        levels = [window.credits[resource] for window in truth]
        if lower > max(levels) or upper < min(levels):
            yield (
                f"/metrics: credits from {lower:g} to {upper:g},"
                f" truth {min(levels):.0f} to {max(levels):.0f}"
            )


def clock_problems(error_s: float) -> Iterable[str]:
    """Yield a message if the clocks cannot be matched well enough to compare windows."""
    if error_s > CLOCK_TOLERANCE_S:
        yield f"clocks: error {error_s * 1e3:.0f} ms, allowed {CLOCK_TOLERANCE_S * 1e3:.0f} ms"

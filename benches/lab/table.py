"""Results as a table for a terminal of 80 columns."""

from collections.abc import Sequence

from lab.negatives import FACTORS, Negative
from lab.verdict import Verdict

HEADINGS = ("scenario", "truth s", "found s", "window ms", "limit", "")
NEGATIVE_HEADINGS = (
    *("scenario", "IOPS"),
    *("no terms" if factor is None else f"x {factor}" for factor in FACTORS),
    "",
)
"""Seconds that are said to be throttled."""
_WIDTHS = (32, 8, 8, 9, 14, 4)
_NEGATIVE_WIDTHS = (36, 7, 8, 6, 6, 6, 4)
_LITTLE_S = 0.05


def headings(result: type = Verdict) -> str:
    """Return the line of headings of a kind of results."""
    return _line(NEGATIVE_HEADINGS if result is Negative else HEADINGS)


def row(result: Verdict | Negative) -> str:
    """Return the line of one disk, followed by the requirements that it does not meet."""
    problems = list(result.problems)
    if problems and result.steal_s > _LITTLE_S:  # the hypervisor ran something else
        problems.append(f"steal: {result.steal_s:.1f} s of CPU time")
    lines = [_line((result.name, *cells(result))), *(f"    {problem}" for problem in problems)]
    return "\n".join(lines)


def _line(cells: Sequence[str]) -> str:
    first_width, *widths = _WIDTHS if len(cells) == len(_WIDTHS) else _NEGATIVE_WIDTHS
    columns = [f"{cell:>{width}}" for cell, width in zip(cells[1:], widths, strict=True)]
    return " ".join([f"{cells[0]:<{first_width}}", *columns]).rstrip()


def cells(result: Verdict | Negative) -> tuple[str, ...]:
    """Return the formatted results of one disk."""
    passed = "FAIL" if result.problems else "pass"
    if isinstance(result, Negative):
        return (f"{result.iops:.0f}", *(f"{each:.2f}" for each in result.throttled_s), passed)
    findings = result.findings
    limits = sorted(findings.limits, key=lambda name: -findings.limits[name])
    window_s, true_s = findings.limiter_window_s, findings.facts.limiter_window_s
    return (
        f"{findings.truth_s:.1f}",
        f"{findings.reported_s:.1f}",
        f"{_milliseconds(window_s)}/{_milliseconds(true_s)}",
        limits[0] if limits else "-",
        passed,
    )


def _milliseconds(value_s: float | None) -> str:
    return "-" if value_s is None else f"{value_s * 1e3:.0f}"

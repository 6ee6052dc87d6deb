"""Results as a table for a terminal of 80 columns."""

from lab.judge import relative_error
from lab.verdict import Verdict

_HEADINGS = ("scenario", "truth s", "found s", "onset s", "end s", "ceiling", "wait", "")
_WIDTHS = (24, 7, 7, 7, 6, 7, 7, 4)


def headings() -> str:
    """Return the line of headings."""
    return _line(_HEADINGS)


def row(verdict: Verdict) -> str:
    """Return the line of one disk, followed by the requirements that it does not meet."""
    return "\n".join(
        [
            _line((verdict.name, *cells(verdict))),
            *(f"    {problem}" for problem in verdict.problems),
            *_stolen(verdict),
        ]
    )


def _stolen(verdict: Verdict) -> tuple[str, ...]:
    """Return what may explain a failure: the hypervisor ran something else."""
    if not verdict.problems or not verdict.steal_s:
        return ()
    return (f"    steal: {verdict.steal_s:.1f} s of CPU time",)


def _line(cells: tuple[str, ...]) -> str:
    first, *others = cells
    first_width, *widths = _WIDTHS
    columns = [f"{cell:>{width}}" for cell, width in zip(others, widths, strict=True)]
    return " ".join([f"{first:<{first_width}}", *columns]).rstrip()


def cells(verdict: Verdict) -> tuple[str, ...]:
    """Return the formatted results of one disk."""
    findings = verdict.findings
    return (
        f"{findings.truth_s:.1f}",
        f"{findings.reported_s:.1f}",
        _seconds(findings.onset_delay_s),
        _seconds(findings.end_delay_s),
        _percent(findings.ceiling_error),
        _percent(relative_error(findings.reported_wait_s, findings.true_wait_s)),
        _passed(verdict),
    )


def _passed(verdict: Verdict) -> str:
    if verdict.problems:
        return "FAIL"
    return "slow" if verdict.is_slow else "open" if verdict.is_open else "pass"


def more_cells(verdict: Verdict) -> tuple[str, ...]:
    """Return the formatted results that do not fit a terminal."""
    findings = verdict.findings
    attributed_s, machine_s = findings.attributed_iowait_s, findings.machine_iowait_s
    iowait = window = burst = flushes = "-"
    if findings.true_limiter_window_s is not None:
        found_s, true_s = findings.limiter_window_s, findings.true_limiter_window_s
        window = f"{'-' if found_s is None else round(found_s * 1e3)} of {round(true_s * 1e3)}"
    if findings.true_burst_depth is not None:
        burst = f"{_depth(findings.burst_depth)} of {_depth(findings.true_burst_depth)}"
    if verdict.flush_share:
        flushes = f"{verdict.flush_share:.0%}"
    if attributed_s and machine_s is not None:
        iowait = f"{attributed_s:.1f} of {machine_s:.1f}"
    return (
        _percent(findings.share_error) if findings.loaded_s else "-",
        _percent(findings.credit_width_share).lstrip("+"),
        _percent(findings.credit_estimate_error_share),
        _percent(findings.empty_error),
        iowait,
        window,
        burst,
        flushes,
    )


def _depth(depth: float | None) -> str:
    """Return requests, or bytes in MB: no scenario has a million requests."""
    if depth is None:
        return "-"
    return f"{depth / 1e6:.0f} MB" if depth >= 1e6 else f"{depth:.0f}"


def _seconds(value_s: float | None) -> str:
    return "-" if value_s is None else f"{value_s:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:+.1f}%"

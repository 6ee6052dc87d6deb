"""How near disksla came, as a table for a terminal."""

from lab.judge import relative
from lab.verdict import Verdict

_HEADINGS = ("scenario", "truth s", "said s", "onset s", "end s", "ceiling", "wait", "")
_WIDTHS = (24, 7, 7, 7, 6, 7, 7, 4)


def head() -> str:
    """Give the headings."""
    return _line(_HEADINGS)


def rows(verdict: Verdict) -> str:
    """Give the line of one disk, and under it what was not as expected."""
    return "\n".join(
        [_line((verdict.name, *cells(verdict))), *(f"    {line}" for line in verdict.problems)]
    )


def _line(cells: tuple[str, ...]) -> str:
    first, *others = cells
    first_width, *widths = _WIDTHS
    columns = [f"{cell:>{width}}" for cell, width in zip(others, widths, strict=True)]
    return " ".join([f"{first:<{first_width}}", *columns]).rstrip()


def cells(verdict: Verdict) -> tuple[str, ...]:
    """Give how near disksla came, for people."""
    findings = verdict.findings
    return (
        f"{findings.truth_s:.1f}",
        f"{findings.said_s:.1f}",
        _seconds(findings.onset_delay_s),
        _seconds(findings.end_delay_s),
        _percent(findings.ceiling_error),
        _percent(relative(findings.wait_said_s, findings.wait_truth_s)),
        "FAIL" if verdict.problems else "pass",
    )


def more_cells(verdict: Verdict) -> tuple[str, ...]:
    """Give what a terminal has no room for."""
    findings = verdict.findings
    said_s, machine_s = findings.iowait_said_s, findings.iowait_machine_s
    iowait = f"{said_s:.1f} of {machine_s:.1f}" if said_s and machine_s is not None else "-"
    return (
        _percent(findings.share_error) if findings.loaded_s else "-",
        _percent(findings.credit_width_share).lstrip("+"),
        _percent(findings.credit_estimate_error_share),
        _percent(findings.empty_error),
        iowait,
    )


def _seconds(value_s: float | None) -> str:
    return "-" if value_s is None else f"{value_s:.2f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{value * 100:+.1f}%"

"""Wording that the reports share: amounts, subjects and results as text."""

from typing import assert_never

from disksla.config import CUSTOM_TERMS
from disksla.units import format_bandwidth, format_count, format_duration
from disksla.verification.report import MeasuredLevel, SuiteTestResult, VerificationReport
from disksla.verification.suites import Unit

LEVEL_TEXT: dict[MeasuredLevel, str] = {
    "base": "measured at the baseline",
    "burst": "measured while bursting",
    "burst_then_base": "measured while bursting, then at the baseline",
}


def format_amount(unit: Unit | None, amount: float | None) -> str:
    """Return an amount with its unit; a dash if it is unknown."""
    if unit is None or amount is None:
        return "-"
    match unit:
        case "iops":
            return f"{format_count(amount)} IOPS"
        case "bytes_per_second":
            return format_bandwidth(amount)
        case "seconds":
            return format_duration(amount)
        case _:
            assert_never(unit)


def format_terms(report: VerificationReport) -> str:
    """Return the terms, or that they are written out in the configuration."""
    return "from the configuration" if report.terms == CUSTOM_TERMS else report.terms


def format_subject(report: VerificationReport) -> str:
    """Return what was verified: the disk and its terms."""
    disk = "" if report.device is None else f"disk {report.device}"
    if report.target == "elsewhere":
        disk = f"imported result for {disk}" if disk else "imported result"
    return f"{disk}, terms {format_terms(report)}"


def format_percent(ratio: float | None) -> str:
    """Return a ratio as a percentage with one decimal; a dash if it is unknown."""
    return "-" if ratio is None else f"{100 * ratio:.1f}%"


def format_result(result: SuiteTestResult) -> str:
    """Return one sentence with what was measured and required, or why nothing was measured."""
    if result.measured is None:
        return result.reason
    bound = "at most" if result.unit == "seconds" else "at least"
    measured = format_amount(result.unit, result.measured)
    required = format_amount(result.unit, result.required)
    parts = [f"{measured} measured, {bound} {required} required ({result.why})"]
    if result.level is not None:
        parts.append(LEVEL_TEXT[result.level])
    if result.reason:
        parts.append(result.reason)
    return "; ".join(parts)

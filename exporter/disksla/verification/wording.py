"""The words for one judged result, the same on paper, in a terminal and in XML."""

from typing import assert_never

from disksla.config import CUSTOM_TERMS
from disksla.units import format_bandwidth, format_count, format_duration
from disksla.verification.report import MeasuredLevel, SuiteTestResult, VerificationReport
from disksla.verification.suites import Unit

LEVEL_TEXT: dict[MeasuredLevel, str] = {
    "base": "base",
    "burst": "burst",
    "burst_then_base": "burst, then base",
}


def format_amount(unit: Unit | None, amount: float | None) -> str:
    """Write an amount with its unit; a dash for what is not known."""
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


def format_subject(verification: VerificationReport) -> str:
    """Say what was held against what."""
    terms = verification.terms
    if terms == CUSTOM_TERMS:
        terms = "the terms in the configuration"
    return f"{verification.device or 'a result made elsewhere'} against {terms}"


def format_percent(ratio: float | None) -> str:
    """Write a share, with a digit after the point; a dash for what is not known."""
    return "-" if ratio is None else f"{100 * ratio:.1f} %"


def format_result(result: SuiteTestResult) -> str:
    """Say in one sentence what came out of a result."""
    if result.measured is None:
        return result.reason
    bound = "at most" if result.unit == "seconds" else "at least"
    measured = format_amount(result.unit, result.measured)
    required = format_amount(result.unit, result.required)
    parts = [f"{measured} measured, {bound} {required} required ({result.why})"]
    if result.level is not None:
        parts.append(f"measured at {LEVEL_TEXT[result.level]} level")
    if result.reason:
        parts.append(result.reason)
    return "; ".join(parts)

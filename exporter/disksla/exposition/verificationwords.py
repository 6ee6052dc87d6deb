"""The words for one judged line, the same on paper, in a terminal and in XML."""

from typing import assert_never

from disksla.core.matching import WRITTEN_OUT
from disksla.core.suite import Unit
from disksla.core.units import format_bandwidth, format_count, format_duration
from disksla.core.verification import JudgedLine, Level, Verification

LEVEL_WORDS: dict[Level, str] = {
    "base": "base",
    "burst": "burst",
    "burst_then_base": "burst, then base",
}


def amount_words(unit: Unit | None, amount: float | None) -> str:
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


def subject_words(verification: Verification) -> str:
    """Say what was held against what."""
    terms = verification.terms
    if terms == WRITTEN_OUT:
        terms = "the terms in the configuration"
    return f"{verification.device or 'a result made elsewhere'} against {terms}"


def percent_words(ratio: float | None) -> str:
    """Write a share, with a digit after the point; a dash for what is not known."""
    return "-" if ratio is None else f"{100 * ratio:.1f} %"


def judged_words(line: JudgedLine) -> str:
    """Say in one sentence what came out of a line."""
    if line.measured is None:
        return line.reason
    bound = "at most" if line.unit == "seconds" else "at least"
    measured = amount_words(line.unit, line.measured)
    required = amount_words(line.unit, line.required)
    parts = [f"{measured} measured, {bound} {required} required ({line.why})"]
    if line.level is not None:
        parts.append(f"measured at {LEVEL_WORDS[line.level]} level")
    if line.reason:
        parts.append(line.reason)
    return "; ".join(parts)

"""The report of a verification: its record, its verdict, and its JSON."""

from collections import Counter
from typing import Annotated, Literal, assert_never

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError
from disksla.base.units import format_bandwidth, format_count, format_duration
from disksla.measure.verification.measurement import Percentile
from disksla.measure.verification.preconditions import Violation
from disksla.measure.verification.suites import SuiteName, Unit
from disksla.promise.catalogue import CUSTOM_TERMS
from disksla.verdict.throttling import Verdict

SuiteTestVerdict = Literal["pass", "fail", "shown", "untested", "skipped", "unmeasured"]
ReportVerdict = Literal["kept", "part", "broken", "not_valid", "incomplete"]
MeasuredLevel = Literal["base", "burst", "burst_then_base"]
Target = Literal["device", "file", "elsewhere"]
VERDICT_TEXT: dict[ReportVerdict, str] = {
    "kept": "PASSED: all judged tests meet the promise",
    "part": "PASSED IN PART: all judged tests meet the promise, others were not tested",
    "broken": "FAILED: at least one judged test misses the promise",
    "not_valid": "NOT VALID: a precondition is violated",
    "incomplete": "INCOMPLETE: not all tests were measured",
}

_Number = Annotated[float, msgspec.Meta(ge=0)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Timestamp = Annotated[float, msgspec.Meta(ge=0, le=253_402_300_799)]
"""Unix time up to the end of the year 9999, the last one that `datetime` can represent."""


class SuiteTestResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The result of one test of a suite.

    `promised`, `required`, `burst` and `measured` are in `unit`. `ratio` is measured over promised
    for a rate, and promised over measured for a latency, so that more is always better.
    """

    test: str
    caption: str
    writes: bool
    verdict: SuiteTestVerdict
    in_suite: bool = True
    """Whether the test is one of the suite; False for another load of an imported result."""
    reason: str = ""
    """Why the test failed, was not measured, or cannot fail."""
    unit: Unit | None = None
    promised: _Number | None = None
    required: _Number | None = None
    burst: _Number | None = None
    measured: _Number | None = None
    ratio: _Number | None = None
    required_ratio: _Number | None = None
    """Share of the promise that is required at this request size."""
    why: str = ""
    """Where `required` comes from."""
    level: MeasuredLevel | None = None
    """Whether burst credits were used; None if the terms have none."""
    iops: _Number | None = None
    bytes_per_second: _Number | None = None
    mean_latency_s: _Number | None = None
    percentiles: tuple[Percentile, ...] = ()
    runtime_s: _Number | None = None
    other_share: _Number | None = None
    """Share of the promise that other load used meanwhile; None if it was not monitored."""
    window_seconds: dict[Verdict, _Number] = {}
    """Seconds by verdict of the 100 ms windows; empty if the disk was not monitored."""


class VerificationReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A complete verification: what --json prints, and what is saved for the daemon."""

    disksla_verification: Literal[1] = 1
    """Version of the format."""
    disksla_version: str
    verdict: ReportVerdict
    summary: str = ""
    """How many tests of the suite have a result, and their verdicts, in a line."""
    device: str | None = None
    """Kernel name; None for an imported result."""
    key: str | None = None
    """Identifies the disk, as `disk_key` does; None if it has no serial and no WWN."""
    serial: str | None = None
    wwn: str | None = None
    model: str | None = None
    size_bytes: _Bytes
    """Size as sold."""
    terms: str
    provider: str
    suite: SuiteName
    procedure: str
    """Page that publishes the procedure, or a description of it."""
    tolerance_ratio: float
    """Share by which a test may miss its requirement and still pass."""
    target: Target
    tool: str
    began_timestamp_s: _Timestamp
    ended_timestamp_s: _Timestamp
    violations: tuple[Violation, ...] = ()
    unjudged: tuple[str, ...] = ()
    """Imported measurements that were not judged, each with the reason."""
    tests: tuple[SuiteTestResult, ...]

    @property
    def status(self) -> int:
        """Exit status: 0 passed, 1 failed, 2 no valid result, 3 passed in part."""
        return {"kept": 0, "broken": 1, "part": 3}.get(self.verdict, 2)


def report_verdict(
    results: tuple[SuiteTestResult, ...], violations: tuple[Violation, ...]
) -> ReportVerdict:
    """Return the verdict that follows from the results.

    With a violated precondition neither a pass nor a failure is valid. A suite of which tests are
    missing in an imported result can fail, but not pass.
    """
    found = {result.verdict for result in results}
    if violations:
        return "not_valid"
    if "unmeasured" in found or not found & {"pass", "fail"}:
        return "incomplete"
    if "fail" in found:
        return "broken"
    is_part = any(result.in_suite and result.verdict == "untested" for result in results)
    return "part" if is_part else "kept"


def summarize(
    results: tuple[SuiteTestResult, ...], unjudged: tuple[str, ...], *, is_imported: bool
) -> str:
    """Return a line that says what was tested: `1 of 10 tests present: passed`.

    Tests of the suite for which the terms promise nothing are not counted.
    """
    suite = [each for each in results if each.in_suite and each.required is not None]
    present = [each for each in suite if each.measured is not None]
    others = [each for each in results if not each.in_suite]
    where = "present" if is_imported else "measured"
    parts = [f"{len(present)} of {len(suite)} tests {where}{_verdicts(present)}"]
    if others:
        loads = "load" if len(others) == 1 else "loads"
        parts.append(f"{len(others)} other {loads}{_verdicts(others)}")
    if unjudged:
        parts.append(f"{len(unjudged)} not judged")
    return "; ".join(parts)


def _verdicts(results: list[SuiteTestResult]) -> str:
    counts = Counter(result.verdict for result in results)
    found = [(counts[verdict], text) for verdict, text in _VERDICT_TEXT.items() if counts[verdict]]
    if len(found) == 1:
        return f": {found[0][1]}"
    return ": " + ", ".join(f"{count} {text}" for count, text in found) if found else ""


_VERDICT_TEXT: dict[SuiteTestVerdict, str] = {
    "pass": "passed",
    "fail": "failed",
    "shown": "shown",
    "untested": "not tested",
}

_decode = msgspec.json.Decoder(VerificationReport).decode


def encode_report(report: VerificationReport) -> bytes:
    """Return a report as indented JSON."""
    text = msgspec.json.encode(report)
    return msgspec.json.format(text, indent=2) + b"\n"


def decode_report(text: bytes) -> VerificationReport:
    """Parse a report. Raise DiskslaError if it is invalid, or contradicts itself."""
    try:
        report = _decode(text)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"invalid verification report: {error}") from None
    verdict = report_verdict(report.tests, report.violations)
    if report.verdict != verdict:
        raise DiskslaError(
            f"invalid verification report: found verdict '{report.verdict}'; expected '{verdict}',"
            " which follows from its tests"
        )
    return report


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

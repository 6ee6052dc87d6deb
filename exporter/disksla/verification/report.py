"""The report of a verification: its record, its verdict, and its JSON."""

from typing import Annotated, Literal

import msgspec

from disksla.errors import DECODE_ERRORS, DiskslaError
from disksla.verdict import Verdict as WindowVerdict
from disksla.verification.measurement import Percentile
from disksla.verification.preconditions import Violation
from disksla.verification.suites import SuiteName, Unit

SuiteTestVerdict = Literal["pass", "fail", "shown", "skipped", "unmeasured"]
ReportVerdict = Literal["kept", "broken", "not_valid", "incomplete"]
MeasuredLevel = Literal["base", "burst", "burst_then_base"]
Target = Literal["device", "file", "elsewhere"]
VERDICT_TEXT: dict[ReportVerdict, str] = {
    "kept": "PASSED: all judged tests meet the promise",
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
    window_seconds: dict[WindowVerdict, _Number] = {}
    """Seconds by verdict of the 100 ms windows; empty if the disk was not monitored."""


class VerificationReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A complete verification: what --json prints, and what is saved for the daemon."""

    disksla_verification: Literal[1] = 1
    """Version of the format."""
    disksla_version: str
    verdict: ReportVerdict
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
        """Exit status: 0 passed, 1 failed, 2 no valid result."""
        return {"kept": 0, "broken": 1}.get(self.verdict, 2)


def report_verdict(
    results: tuple[SuiteTestResult, ...], violations: tuple[Violation, ...]
) -> ReportVerdict:
    """Return the verdict that follows from the results.

    With a violated precondition neither a pass nor a failure is valid.
    """
    found = {result.verdict for result in results}
    if violations:
        return "not_valid"
    if "unmeasured" in found or not found & {"pass", "fail"}:
        return "incomplete"
    return "broken" if "fail" in found else "kept"


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

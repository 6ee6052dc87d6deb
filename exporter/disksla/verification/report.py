"""The account of an acceptance test: each test judged, what spoils the whole, and the verdict."""

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
VERDICT_WORDS: dict[ReportVerdict, str] = {
    "kept": "the promise is kept",
    "broken": "the promise is NOT kept",
    "not_valid": "NOT VALID: the conditions of a test did not hold",
    "incomplete": "INCOMPLETE: not everything was measured",
}

_Number = Annotated[float, msgspec.Meta(ge=0)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Timestamp = Annotated[float, msgspec.Meta(ge=0, le=253_402_300_799)]
"""Unix time up to the end of the year 9999, where calendars end."""


class SuiteTestResult(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One test of a suite, held against its requirement.

    `promised`, `required`, `burst` and `measured` are in `unit`. `ratio` is the share of the
    promise that was measured, so that more is better: of a latency, promised over measured.
    """

    test: str
    caption: str
    writes: bool
    verdict: SuiteTestVerdict
    reason: str = ""
    """Why it failed, was not measured, or is only shown."""
    unit: Unit | None = None
    promised: _Number | None = None
    required: _Number | None = None
    burst: _Number | None = None
    measured: _Number | None = None
    ratio: _Number | None = None
    required_ratio: _Number | None = None
    """The share of the promise that is required at this request size."""
    why: str = ""
    level: MeasuredLevel | None = None
    """Whether credits were spent; None where the terms have none."""
    iops: _Number | None = None
    bytes_per_second: _Number | None = None
    mean_latency_s: _Number | None = None
    percentiles: tuple[Percentile, ...] = ()
    runtime_s: _Number | None = None
    other_share: _Number | None = None
    """Of the promise, that others used meanwhile; None where nobody looked."""
    window_seconds: dict[WindowVerdict, _Number] = {}
    """Seconds by the verdict on each 100 ms window; empty where nobody looked."""


class VerificationReport(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole test. This is the document that is printed, saved, and read by the daemon."""

    disksla_verification: Literal[1] = 1
    """Number of the format."""
    disksla_version: str
    verdict: ReportVerdict
    device: str | None = None
    """Kernel name; None for a result that was made elsewhere."""
    key: str | None = None
    """By which the disk is known again; None if it has neither serial nor WWN."""
    serial: str | None = None
    wwn: str | None = None
    model: str | None = None
    size_bytes: _Bytes
    """The size that was sold."""
    terms: str
    provider: str
    suite: SuiteName
    procedure: str
    """Where the suite is from."""
    tolerance_ratio: float
    """Share by which a test may miss what is required and still pass."""
    target: Target
    tool: str
    began_timestamp_s: _Timestamp
    ended_timestamp_s: _Timestamp
    violations: tuple[Violation, ...] = ()
    unjudged: tuple[str, ...] = ()
    """Measurements of a result made elsewhere that fit no test, and why."""
    tests: tuple[SuiteTestResult, ...]

    @property
    def status(self) -> int:
        """The exit status: 0 kept, 1 not kept, 2 could not be told."""
        return {"kept": 0, "broken": 1}.get(self.verdict, 2)


def report_verdict(
    tests: tuple[SuiteTestResult, ...], violations: tuple[Violation, ...]
) -> ReportVerdict:
    """Give the verdict on the whole.

    A test whose conditions did not hold proves nothing, in neither direction.
    """
    found = {test.verdict for test in tests}
    if violations:
        return "not_valid"
    if "unmeasured" in found or not found & {"pass", "fail"}:
        return "incomplete"
    return "broken" if "fail" in found else "kept"


_decode = msgspec.json.Decoder(VerificationReport).decode


def encode_report(verification: VerificationReport) -> bytes:
    """Write an account as indented JSON."""
    text = msgspec.json.encode(verification)
    return msgspec.json.format(text, indent=2) + b"\n"


def decode_report(text: bytes) -> VerificationReport:
    """Read an account; raises Refusal for what is none, or says what cannot be."""
    try:
        found = _decode(text)
    except DECODE_ERRORS as error:
        raise DiskslaError(f"not the account of a test: {error}") from None
    if found.verdict != report_verdict(found.tests, found.violations):
        raise DiskslaError(f"says '{found.verdict}', which does not follow from its tests")
    return found

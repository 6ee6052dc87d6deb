"""The account of an acceptance test: each line judged, what spoils the whole, and the verdict."""

from typing import Annotated, Literal, assert_never

import msgspec

from disksla.core.disk import Disk
from disksla.core.precondition import Violation
from disksla.core.refusal import Refusal
from disksla.core.saved import disk_key
from disksla.core.suite import Line, Requirement, Suite, SuiteName, Unit
from disksla.core.trial import Percentile, Trial
from disksla.core.undecodable import UNDECODABLE
from disksla.core.units import format_count
from disksla.core.verdict import Verdict as WindowVerdict

LineVerdict = Literal["pass", "fail", "shown", "skipped", "unmeasured"]
Verdict = Literal["kept", "broken", "not_valid", "incomplete"]
Level = Literal["base", "burst", "burst_then_base"]
Target = Literal["device", "file", "elsewhere"]
VERDICT_WORDS: dict[Verdict, str] = {
    "kept": "the promise is kept",
    "broken": "the promise is NOT kept",
    "not_valid": "NOT VALID: the conditions of a test did not hold",
    "incomplete": "INCOMPLETE: not everything was measured",
}

_Number = Annotated[float, msgspec.Meta(ge=0)]
_Bytes = Annotated[int, msgspec.Meta(ge=0, le=2**63 - 1)]
_Timestamp = Annotated[float, msgspec.Meta(ge=0, le=253_402_300_799)]
"""Unix time up to the end of the year 9999, where calendars end."""


class JudgedLine(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One line of a suite, held against its requirement.

    `promised`, `required`, `burst` and `measured` are in `unit`. `ratio` is the share of the
    promise that was measured, so that more is better: of a latency, promised over measured.
    """

    test: str
    caption: str
    writes: bool
    verdict: LineVerdict
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
    level: Level | None = None
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


class Verification(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A whole test. This is the document that is printed, saved, and read by the daemon."""

    disksla_verification: Literal[1] = 1
    """Number of the format."""
    disksla_version: str
    verdict: Verdict
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
    """Share by which a line may miss what is required and still pass."""
    target: Target
    tool: str
    began_timestamp_s: _Timestamp
    ended_timestamp_s: _Timestamp
    violations: tuple[Violation, ...] = ()
    unjudged: tuple[str, ...] = ()
    """Measurements of a result made elsewhere that fit no line, and why."""
    lines: tuple[JudgedLine, ...]

    @property
    def status(self) -> int:
        """The exit status: 0 kept, 1 not kept, 2 could not be told."""
        return {"kept": 0, "broken": 1}.get(self.verdict, 2)


class Run(msgspec.Struct, frozen=True, kw_only=True):
    """How a suite was run, beside what came out."""

    disksla_version: str
    disk: Disk | None
    """None for a result that was made elsewhere."""
    terms: str
    provider: str
    size_bytes: int
    """The size that was sold."""
    target: Target
    tool: str
    tolerance_ratio: float
    began_timestamp_s: float
    ended_timestamp_s: float
    violations: tuple[Violation, ...] = ()
    unjudged: tuple[str, ...] = ()


def judge(
    line: Line,
    trial: Trial,
    tolerance_ratio: float,
    *,
    is_held_at_base: bool = False,
    other_share: float | None = None,
    window_seconds: dict[WindowVerdict, float] | None = None,
) -> JudgedLine:
    """Hold one measurement against what its line requires.

    Of rates, what was measured must be `required` less the tolerance, at least; of latency, the
    mean must be `required` and the tolerance at most. `is_held_at_base` says that the limiter was
    seen to hold the disk at its base rate when the line ended.
    """
    requirement = line.requirement
    if requirement is None:
        return skipped(line, line.unpromised)
    measured = _measured(requirement, trial)
    ratio = _ratio(requirement, measured)
    required_ratio = requirement.required / requirement.promised
    passed = ratio >= required_ratio * (1 - tolerance_ratio)
    verdict: LineVerdict = "pass" if passed else "fail"
    if not requirement.is_binding:
        verdict = "shown"
    return JudgedLine(
        test=line.test,
        caption=line.caption,
        writes=line.writes,
        verdict=verdict,
        reason=_reason(line, requirement, trial, tolerance_ratio, verdict),
        unit=requirement.unit,
        promised=requirement.promised,
        required=requirement.required,
        burst=requirement.burst,
        measured=measured,
        ratio=ratio,
        required_ratio=required_ratio,
        why=requirement.why,
        level=_level(requirement, measured, tolerance_ratio, is_held_at_base=is_held_at_base),
        iops=trial.measured.iops,
        bytes_per_second=trial.measured.bytes_per_second,
        mean_latency_s=trial.measured.mean_latency_s,
        percentiles=trial.percentiles,
        runtime_s=trial.measured.runtime_s,
        other_share=other_share,
        window_seconds=window_seconds or {},
    )


def skipped(line: Line, reason: str) -> JudgedLine:
    """Give a line that was not meant to be measured."""
    return _without_measure(line, "skipped", reason)


def unmeasured(line: Line, reason: str) -> JudgedLine:
    """Give a line that should have been measured and was not."""
    return _without_measure(line, "unmeasured", reason)


def verdict_of(lines: tuple[JudgedLine, ...], violations: tuple[Violation, ...]) -> Verdict:
    """Give the verdict on the whole.

    A test whose conditions did not hold proves nothing, in neither direction.
    """
    found = {line.verdict for line in lines}
    if violations:
        return "not_valid"
    if "unmeasured" in found or not found & {"pass", "fail"}:
        return "incomplete"
    return "broken" if "fail" in found else "kept"


def verification_of(suite: Suite, run: Run, lines: tuple[JudgedLine, ...]) -> Verification:
    """Put an account together."""
    disk = run.disk
    return Verification(
        disksla_version=run.disksla_version,
        verdict=verdict_of(lines, run.violations),
        device=disk.name if disk else None,
        key=disk_key(disk) if disk else None,
        serial=disk.serial if disk else None,
        wwn=disk.wwn if disk else None,
        model=disk.model if disk else None,
        size_bytes=run.size_bytes,
        terms=run.terms,
        provider=run.provider,
        suite=suite.name,
        procedure=suite.source,
        tolerance_ratio=run.tolerance_ratio,
        target=run.target,
        tool=run.tool,
        began_timestamp_s=run.began_timestamp_s,
        ended_timestamp_s=run.ended_timestamp_s,
        violations=run.violations,
        unjudged=run.unjudged,
        lines=lines,
    )


_decode = msgspec.json.Decoder(Verification).decode


def encode(verification: Verification) -> bytes:
    """Write an account as indented JSON."""
    text = msgspec.json.encode(verification)
    return msgspec.json.format(text, indent=2) + b"\n"


def decode(text: bytes) -> Verification:
    """Read an account; raises Refusal for what is none, or says what cannot be."""
    try:
        found = _decode(text)
    except UNDECODABLE as error:
        raise Refusal(f"not the account of a test: {error}") from None
    if found.verdict != verdict_of(found.lines, found.violations):
        raise Refusal(f"says '{found.verdict}', which does not follow from its lines")
    return found


def _without_measure(line: Line, verdict: LineVerdict, reason: str) -> JudgedLine:
    requirement = line.requirement
    return JudgedLine(
        test=line.test,
        caption=line.caption,
        writes=line.writes,
        verdict=verdict,
        reason=reason,
        unit=requirement.unit if requirement else None,
        promised=requirement.promised if requirement else None,
        required=requirement.required if requirement else None,
        why=requirement.why if requirement else "",
    )


def _measured(requirement: Requirement, trial: Trial) -> float | None:
    measured = trial.measured
    match requirement.unit:
        case "iops":
            return measured.iops
        case "bytes_per_second":
            return measured.bytes_per_second
        case "seconds":
            return measured.mean_latency_s
        case _:
            assert_never(requirement.unit)


def _ratio(requirement: Requirement, measured: float | None) -> float:
    if measured is None:
        return 0.0
    if requirement.unit == "seconds":
        return requirement.promised / max(measured, 1e-9)
    return measured / requirement.promised


def _reason(
    line: Line,
    requirement: Requirement,
    trial: Trial,
    tolerance_ratio: float,
    verdict: LineVerdict,
) -> str:
    reasons = []
    if verdict == "shown":
        reasons.append("the provider names this latency, and does not guarantee it")
    if not trial.measured.requests:
        reasons.append("nothing completed")
    elif requirement.unit == "seconds" and line.rate_iops is not None:
        iops = trial.measured.iops
        if iops < line.rate_iops * (1 - tolerance_ratio):
            reasons.append(
                f"only {format_count(iops)} of {format_count(line.rate_iops)} IOPS were served,"
                " so requests queued"
            )
    return "; ".join(reasons)


def _level(
    requirement: Requirement,
    measured: float | None,
    tolerance_ratio: float,
    *,
    is_held_at_base: bool,
) -> Level | None:
    if requirement.burst is None or measured is None:
        return None
    if measured <= requirement.promised * (1 + tolerance_ratio):
        return "base"
    return "burst_then_base" if is_held_at_base else "burst"

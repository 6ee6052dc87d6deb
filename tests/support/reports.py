"""Verification reports: a complete example, and a Hypothesis strategy for arbitrary ones."""

import msgspec
from hypothesis import strategies as st

from disksla.measure.verification.measurement import SHOWN_SHARES, Percentile
from disksla.measure.verification.preconditions import Violation
from disksla.measure.verification.report import (
    SuiteTestResult,
    VerificationReport,
    report_verdict,
    summarize,
)
from disksla.measure.verification.suites import SUITES
from support.any_records import records
from support.snapshots import KINDS, nasty_text

PERCENTILES = tuple(Percentile(share, 0.001 * (1 + share) ** 4) for share in SHOWN_SHARES)


def a_result(test: str = "randread-4k", **changes: object) -> SuiteTestResult:
    """Return the result of a test that passed, with changes."""
    passed = SuiteTestResult(
        test=test,
        caption="Random reads of 4 KiB, 32 in flight",
        writes=False,
        verdict="pass",
        unit="iops",
        promised=1000.0,
        required=1000.0,
        measured=1002.0,
        ratio=1.002,
        required_ratio=1.0,
        why="100% of 1000 IOPS",
        iops=1002.0,
        bytes_per_second=1002.0 * 4096,
        mean_latency_s=0.032,
        percentiles=PERCENTILES,
        runtime_s=60.0,
        other_share=0.0,
        window_seconds={"throttled": 59.0, "idle": 0.9, "met": 0.1},
    )
    return msgspec.structs.replace(passed, **changes)


RESULTS = (
    a_result(),
    a_result(
        "randread-8k",
        verdict="fail",
        required=750.0,
        measured=700.0,
        ratio=0.7,
        required_ratio=0.75,
        why="75% of 1000 IOPS",
        level="burst_then_base",
    ),
    a_result(
        "read-1m",
        unit="bytes_per_second",
        promised=125.0 * 2**20,
        required=125.0 * 2**20,
        measured=500.0 * 2**20,
        ratio=4.0,
        why="bandwidth limit of 125 MiB/s",
    ),
    a_result(
        "latency-randread-4k",
        verdict="shown",
        unit="seconds",
        promised=0.003,
        required=0.003,
        measured=0.002,
        ratio=1.5,
        why="mean latency; the limit is indicative",
        reason="the latency is indicative; it is shown, not judged",
    ),
    SuiteTestResult(
        test="randwrite-4k",
        caption="",
        writes=True,
        verdict="unmeasured",
        reason="fio was stopped",
    ),
    SuiteTestResult(test="write-1m", caption="", writes=True, verdict="skipped", reason="no file"),
    SuiteTestResult(test="write-4m", caption="", writes=True, verdict="skipped", reason="no file"),
)


def a_report(
    *results: SuiteTestResult, hostile: str = "", **changes: object
) -> VerificationReport:
    """Return a report of these results; `hostile` is appended to all names of the device."""
    violations: tuple[Violation, ...] = changes.pop("violations", ())  # type: ignore[assignment]
    report = VerificationReport(
        disksla_version="0.1.0",
        verdict=report_verdict(results, violations),
        summary=summarize(results, (), is_imported=False),
        device=f"vdb{hostile}",
        key=f"serial:vol-1{hostile}",
        serial=f"vol-1{hostile}",
        wwn=f"0x5{hostile}",
        model=f"Virtual Disk{hostile}",
        size_bytes=20 * 2**30,
        terms="vk.ceph-ssd",
        provider="vk",
        suite="vk",
        procedure="https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla",
        tolerance_ratio=0.03,
        target="device",
        tool="fio 3.33",
        began_timestamp_s=1.7e9,
        ended_timestamp_s=1.7e9 + 300.5,
        violations=violations,
        tests=results,
    )
    return msgspec.structs.replace(report, **changes)


_results = records(
    SuiteTestResult,
    KINDS,
    "test caption writes verdict reason unit required measured ratio required_ratio why level iops"
    " bytes_per_second mean_latency_s window_seconds",
    percentiles=st.just(()) | st.tuples(st.builds(Percentile, st.just(0.5), st.floats(0, 1e4))),
)
reports = st.builds(
    a_report,
    hostile=nasty_text,
    tool=nasty_text,
    terms=nasty_text,
    suite=st.sampled_from(SUITES),
    target=st.sampled_from(["device", "file", "elsewhere"]),
    unjudged=st.lists(nasty_text, max_size=2).map(tuple),
    violations=st.lists(st.builds(Violation, st.just("other_load"), nasty_text), max_size=2).map(
        tuple
    ),
    tests=st.lists(_results, max_size=4).map(tuple),
)
"""Text may contain any characters, as the names of a device may."""

"""Verification report as JUnit XML, for Jenkins, GitLab and other build servers.

Source: https://github.com/testmoapp/junitxml, which documents the elements that they support.
"""

import datetime as dt
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from disksla.text import escape_xml
from disksla.verification.report import (
    VERDICT_TEXT,
    SuiteTestResult,
    VerificationReport,
    format_result,
    format_subject,
)


def report_junit(report: VerificationReport) -> bytes:
    """Return the XML document. Names of devices and terms are escaped."""
    device = report.device or "imported"
    classname = f"disksla.{device}.{report.suite}"
    results = report.tests
    violations = report.violations
    counts = {
        "tests": len(results) + len(violations),
        "failures": _count(results, "fail"),
        "errors": _count(results, "unmeasured") + len(violations),
        "skipped": _count(results, "skipped") + _count(results, "untested"),
    }
    totals = {name: str(count) for name, count in counts.items()}
    seconds = report.ended_timestamp_s - report.began_timestamp_s
    time = {"time": f"{max(0.0, seconds):.3f}"}
    suites = ET.Element("testsuites", {"name": "disksla verify", **totals, **time})
    began = dt.datetime.fromtimestamp(report.began_timestamp_s, dt.UTC)
    suite = ET.SubElement(
        suites,
        "testsuite",
        {
            "name": escape_xml(format_subject(report)),
            **totals,
            **time,
            "timestamp": began.strftime("%Y-%m-%dT%H:%M:%S"),
        },
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(report):
        ET.SubElement(properties, "property", {"name": name, "value": escape_xml(value)})
    for result in results:
        _case(suite, classname, result)
    for violation in violations:
        case = ET.SubElement(
            suite,
            "testcase",
            {"classname": escape_xml(classname), "name": violation.precondition, "time": "0.000"},
        )
        ET.SubElement(
            case, "error", {"message": escape_xml(violation.message), "type": "precondition"}
        )
    ET.indent(suites)
    text: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _properties(report: VerificationReport) -> Iterable[tuple[str, str]]:
    for name, value in (
        ("summary", report.summary),
        ("verdict", VERDICT_TEXT[report.verdict]),
        ("device", report.device),
        ("serial", report.serial),
        ("wwn", report.wwn),
        ("model", report.model),
        ("terms", report.terms),
        ("size_bytes", str(report.size_bytes)),
        ("tool", report.tool),
        ("disksla_version", report.disksla_version),
    ):
        if value is not None:
            yield name, value


def _case(suite: ET.Element, classname: str, result: SuiteTestResult) -> None:
    case = ET.SubElement(
        suite,
        "testcase",
        {
            "classname": escape_xml(classname),
            "name": escape_xml(result.test),
            "time": f"{result.runtime_s or 0.0:.3f}",
        },
    )
    message = escape_xml(format_result(result))
    match result.verdict:
        case "fail":
            failure = ET.SubElement(case, "failure", {"message": message, "type": "promise"})
            failure.text = escape_xml(result.caption)
        case "unmeasured":
            ET.SubElement(case, "error", {"message": message, "type": "unmeasured"})
        case "skipped" | "untested":
            ET.SubElement(case, "skipped", {"message": message})
        case _:
            ET.SubElement(case, "system-out").text = message


def _count(results: Iterable[SuiteTestResult], verdict: str) -> int:
    return sum(result.verdict == verdict for result in results)

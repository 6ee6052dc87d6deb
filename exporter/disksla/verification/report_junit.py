"""Verification report as JUnit XML, for Jenkins, GitLab and other build servers.

Source: https://github.com/testmoapp/junitxml, which documents the elements that they support.
"""

import datetime as dt
from collections import Counter
from xml.etree import ElementTree as ET

from disksla.text import escape_xml
from disksla.verification.report import (
    VERDICT_TEXT,
    SuiteTestResult,
    VerificationReport,
    format_result,
    format_subject,
)

_PROPERTIES = ("device", "serial", "wwn", "model", "terms", "size_bytes", "tool")


def report_junit(report: VerificationReport) -> bytes:
    """Return the XML document. Names of devices and terms are escaped."""
    classname = f"disksla.{report.device or 'imported'}.{report.suite}"
    verdicts = Counter(result.verdict for result in report.tests)
    totals = {
        "tests": len(report.tests) + len(report.violations),
        "failures": verdicts["fail"],
        "errors": verdicts["unmeasured"] + len(report.violations),
        "skipped": verdicts["skipped"] + verdicts["untested"],
        "time": f"{max(0.0, report.ended_timestamp_s - report.began_timestamp_s):.3f}",
    }
    began = dt.datetime.fromtimestamp(report.began_timestamp_s, dt.UTC)
    timestamp = began.strftime("%Y-%m-%dT%H:%M:%S")
    root = ET.Element("root")
    suites = _add(root, "testsuites", name="disksla verify", **totals)
    suite = _add(suites, "testsuite", name=format_subject(report), **totals, timestamp=timestamp)
    properties = _add(suite, "properties")
    known = {
        "summary": report.summary,
        "verdict": VERDICT_TEXT[report.verdict],
        **{name: getattr(report, name) for name in _PROPERTIES},
        "disksla_version": report.disksla_version,
    }
    for name, value in known.items():
        if value is not None:
            _add(properties, "property", name=name, value=value)
    for result in report.tests:
        time = f"{result.runtime_s or 0.0:.3f}"
        _add_outcome(
            _add(suite, "testcase", classname=classname, name=result.test, time=time), result
        )
    for violation in report.violations:
        case = _add(
            suite, "testcase", classname=classname, name=violation.precondition, time="0.000"
        )
        _add(case, "error", message=violation.message, type="precondition")
    ET.indent(suites)
    text: bytes = ET.tostring(suites, encoding="utf-8", xml_declaration=True)
    return text + b"\n"


def _add_outcome(case: ET.Element, result: SuiteTestResult) -> None:
    message = format_result(result)
    match result.verdict:
        case "fail":
            failure = _add(case, "failure", message=message, type="promise")
            failure.text = escape_xml(result.caption)
        case "unmeasured":
            _add(case, "error", message=message, type="unmeasured")
        case "skipped" | "untested":
            _add(case, "skipped", message=message)
        case _:
            _add(case, "system-out").text = escape_xml(message)


def _add(parent: ET.Element, tag: str, **attributes: object) -> ET.Element:
    """Add an element with these attributes, escaped."""
    return ET.SubElement(
        parent, tag, {name: escape_xml(str(value)) for name, value in attributes.items()}
    )

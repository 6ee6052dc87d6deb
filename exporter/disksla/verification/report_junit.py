"""The account of a test as JUnit XML, which Jenkins and GitLab show beside other tests.

Form: https://github.com/testmoapp/junitxml, which says what both of them read.
"""

import datetime as dt
from collections.abc import Iterable
from xml.etree import ElementTree as ET

from disksla.text import escape_xml
from disksla.verification.report import VERDICT_WORDS, SuiteTestResult, VerificationReport
from disksla.verification.wording import format_result, format_subject


def report_junit(verification: VerificationReport) -> bytes:
    """Give the document. What a device or a person named is escaped."""
    device = verification.device or "elsewhere"
    classname = f"disksla.{device}.{verification.suite}"
    results = verification.tests
    violations = verification.violations
    counts = {
        "tests": len(results) + len(violations),
        "failures": _count(results, "fail"),
        "errors": _count(results, "unmeasured") + len(violations),
        "skipped": _count(results, "skipped"),
    }
    totals = {name: str(count) for name, count in counts.items()}
    seconds = verification.ended_timestamp_s - verification.began_timestamp_s
    time = {"time": f"{max(0.0, seconds):.3f}"}
    suites = ET.Element("testsuites", {"name": "disksla verify", **totals, **time})
    began = dt.datetime.fromtimestamp(verification.began_timestamp_s, dt.UTC)
    suite = ET.SubElement(
        suites,
        "testsuite",
        {
            "name": escape_xml(format_subject(verification)),
            **totals,
            **time,
            "timestamp": began.strftime("%Y-%m-%dT%H:%M:%S"),
        },
    )
    properties = ET.SubElement(suite, "properties")
    for name, value in _properties(verification):
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


def _properties(verification: VerificationReport) -> Iterable[tuple[str, str]]:
    for name, value in (
        ("verdict", VERDICT_WORDS[verification.verdict]),
        ("device", verification.device),
        ("serial", verification.serial),
        ("wwn", verification.wwn),
        ("model", verification.model),
        ("terms", verification.terms),
        ("size_bytes", str(verification.size_bytes)),
        ("tool", verification.tool),
        ("disksla_version", verification.disksla_version),
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
    words = escape_xml(format_result(result))
    match result.verdict:
        case "fail":
            failure = ET.SubElement(case, "failure", {"message": words, "type": "promise"})
            failure.text = escape_xml(result.caption)
        case "unmeasured":
            ET.SubElement(case, "error", {"message": words, "type": "unmeasured"})
        case "skipped":
            ET.SubElement(case, "skipped", {"message": words})
        case _:
            ET.SubElement(case, "system-out").text = words


def _count(results: Iterable[SuiteTestResult], verdict: str) -> int:
    return sum(result.verdict == verdict for result in results)

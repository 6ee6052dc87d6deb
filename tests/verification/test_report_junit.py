"""JUnit XML as build servers parse it."""

from xml.etree import ElementTree as ET

from hypothesis import example, given

from disksla.verification.preconditions import Violation
from disksla.verification.report import VerificationReport
from disksla.verification.report_junit import report_junit
from support.examples import scaled
from support.reports import RESULTS, a_report, a_result, reports

HOSTILE = "<failure/>]]>\"'&\x00\x1b\udcff\uffff"


def parse(report: VerificationReport) -> ET.Element:
    root = ET.fromstring(report_junit(report))
    assert root.tag == "testsuites"
    return root


def counts(element: ET.Element) -> dict[str, int]:
    return {name: int(element.attrib[name]) for name in ("tests", "failures", "errors", "skipped")}


def counted(root: ET.Element) -> dict[str, int]:
    return {
        "tests": len(root.findall("testsuite/testcase")),
        "failures": len(root.findall(".//failure")),
        "errors": len(root.findall(".//error")),
        "skipped": len(root.findall(".//skipped")),
    }


def test_each_result_is_a_test_case() -> None:
    root = parse(a_report(*RESULTS))
    assert counts(root) == {"tests": 7, "failures": 1, "errors": 1, "skipped": 2}
    [suite] = root
    assert suite.attrib["name"] == "disk vdb, terms vk.ceph-ssd"
    assert suite.attrib["timestamp"] == "2023-11-14T22:13:20"
    assert suite.attrib["time"] == "300.500"
    cases = {case.attrib["name"]: case for case in suite.findall("testcase")}
    assert cases["randread-4k"].attrib["time"] == "60.000"
    assert cases["randread-4k"].findtext("system-out") == (
        "1002 IOPS measured, at least 1000 IOPS required (100% of 1000 IOPS)"
    )
    failure = cases["randread-8k"].find("failure")
    assert failure is not None
    assert failure.attrib["message"] == (
        "700 IOPS measured, at least 750 IOPS required (75% of 1000 IOPS);"
        " measured while bursting, then at the baseline"
    )
    assert cases["randread-4k"].attrib["classname"] == "disksla.vdb.vk"


def test_violation_is_an_error() -> None:
    violation = Violation("other_load", "other load")
    root = parse(a_report(a_result(), violations=(violation,)))
    assert counts(root) == {"tests": 2, "failures": 0, "errors": 1, "skipped": 0}
    [error] = root.findall(".//error")
    assert error.attrib == {"message": "other load", "type": "precondition"}


def test_imported_result_has_no_device() -> None:
    root = parse(
        a_report(a_result(), target="elsewhere", device=None, serial=None, wwn=None, model=None)
    )
    names = {each.attrib["name"] for each in root.findall(".//property")}
    assert names == {"summary", "verdict", "terms", "size_bytes", "tool", "disksla_version"}
    assert root[0].attrib["name"] == "imported result, terms vk.ceph-ssd"


@scaled(80)
@given(reports)
@example(a_report(a_result(test=HOSTILE, why=HOSTILE), hostile=HOSTILE))
def test_names_never_become_markup(report: VerificationReport) -> None:
    root = parse(report)
    assert counts(root) == counts(root[0]) == counted(root)

import pytest

from disksla.text import escape_xml
from disksla.verification.report import (
    format_amount,
    format_percent,
    format_result,
    format_subject,
)
from support.reports import RESULTS, a_report


@pytest.mark.parametrize(
    ("unit", "amount", "text"),
    [
        ("iops", 11250.0, "11250 IOPS"),
        ("bytes_per_second", 125.0 * 2**20, "125 MiB/s"),
        ("seconds", 0.0005, "0.5 ms"),
        ("iops", None, "-"),
        (None, 1.0, "-"),
    ],
)
def test_amount_has_its_unit(unit: str | None, amount: float | None, text: str) -> None:
    assert format_amount(unit, amount) == text  # type: ignore[arg-type]


def test_percent_has_one_decimal() -> None:
    assert (format_percent(0.7), format_percent(None)) == ("70.0%", "-")


def test_result_is_one_sentence() -> None:
    sentences = {result.test: format_result(result) for result in RESULTS}
    assert sentences["read-1m"] == (
        "500 MiB/s measured, at least 125 MiB/s required (bandwidth limit of 125 MiB/s)"
    )
    assert sentences["latency-randread-4k"] == (
        "2 ms measured, at most 3 ms required (mean latency; the limit is indicative);"
        " the latency is indicative; it is shown, not judged"
    )
    assert sentences["randwrite-4k"] == "fio was stopped"


def test_subject_of_custom_terms_and_imported_results() -> None:
    custom = a_report(terms="custom")
    assert format_subject(custom) == "disk vdb, terms from the configuration"
    imported = a_report(device=None, target="elsewhere")
    assert format_subject(imported) == "imported result, terms vk.ceph-ssd"
    imported = a_report(target="elsewhere")
    assert format_subject(imported) == "imported result for disk vdb, terms vk.ceph-ssd"


def test_characters_that_xml_forbids_are_escaped() -> None:
    assert (
        escape_xml("a\x00\x1b\udcff\ufffe\n\U0001f4be") == "a\\x00\\x1b\\udcff\\ufffe\n\U0001f4be"
    )

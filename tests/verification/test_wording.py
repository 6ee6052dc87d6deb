import pytest

from disksla.text import escape_xml
from disksla.verification.wording import (
    format_amount,
    format_percent,
    format_result,
    format_subject,
)
from support.reports import LINES, an_account


@pytest.mark.parametrize(
    ("unit", "amount", "words"),
    [
        ("iops", 11250.0, "11250 IOPS"),
        ("bytes_per_second", 125.0 * 2**20, "125 MiB/s"),
        ("seconds", 0.0005, "0.5 ms"),
        ("iops", None, "-"),
        (None, 1.0, "-"),
    ],
)
def test_an_amount_has_its_unit(unit: str | None, amount: float | None, words: str) -> None:
    assert format_amount(unit, amount) == words  # type: ignore[arg-type]


def test_a_share_has_a_digit_after_the_point() -> None:
    assert (format_percent(0.7), format_percent(None)) == ("70.0%", "-")


def test_a_line_is_told_in_a_sentence() -> None:
    told = {line.test: format_result(line) for line in LINES}
    assert told["read-1m"] == (
        "500 MiB/s measured, at least 125 MiB/s required (bandwidth limit of 125 MiB/s)"
    )
    assert told["latency-randread-4k"] == (
        "2 ms measured, at most 3 ms required (mean latency; the limit is indicative);"
        " the latency is indicative; it is shown, not judged"
    )
    assert told["randwrite-4k"] == "fio was stopped"


def test_a_contract_has_no_name() -> None:
    written_out = an_account(terms="configuration")
    assert format_subject(written_out) == "disk vdb, terms from the configuration"
    assert format_subject(an_account(device=None)) == "imported result, terms vk.ceph-ssd"


def test_what_xml_forbids_is_written_out() -> None:
    assert (
        escape_xml("a\x00\x1b\udcff\ufffe\n\U0001f4be") == "a\\x00\\x1b\\udcff\\ufffe\n\U0001f4be"
    )

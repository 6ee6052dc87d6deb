"""The report of a verification on a terminal of 80 columns."""

import argparse
from pathlib import Path

import pytest

from disksla.commands._verify_report import write_report
from disksla.errors import DiskslaError
from disksla.verification.report import VerificationReport
from support.reports import RESULTS, a_report, a_result

WIDE = (
    a_result("latency-randwrite-16k", measured=16891.0, ratio=135.131, level="burst"),
    a_result(
        "read-1m",
        unit="bytes_per_second",
        promised=28.61 * 2**20,
        required=28.61 * 2**20,
        measured=28.61 * 2**20,
        level="base",
    ),
    *RESULTS,
)


def options(**changes: object) -> argparse.Namespace:
    return argparse.Namespace(**({"json": False, "html": None, "junit": None} | changes))


def printed(report: VerificationReport, capsys: pytest.CaptureFixture[str]) -> list[str]:
    write_report(options(), report)
    return [line.rstrip() for line in capsys.readouterr().out.splitlines()]


def test_each_result_is_a_row(capsys: pytest.CaptureFixture[str]) -> None:
    assert printed(a_report(*RESULTS[:1]), capsys) == [
        "1 of 1 tests measured: passed",
        "Verification report: disk vdb, terms vk.ceph-ssd, suite vk",
        "",
        "test          required   measured   ratio   min  verdict",
        "randread-4k  1000 IOPS  1002 IOPS  100.2%  100%  pass",
        "",
        "PASSED: all judged tests meet the promise",
    ]


def test_the_widest_table_fits(capsys: pytest.CaptureFixture[str]) -> None:
    lines = printed(a_report(*WIDE), capsys)
    assert max(map(len, lines)) <= 80
    assert "…" not in "".join(lines)
    text = "\n".join(lines)
    assert " ".join(next(row for row in lines if "randread-8k" in row).split()) == (
        "randread-8k 750 IOPS 700 IOPS 70.0% 75% both fail"
    )
    assert "write-1m, write-4m: no file" in text


def test_unwritable_report_file_is_an_error() -> None:
    with pytest.raises(DiskslaError, match="No such file or directory"):
        write_report(options(html=Path("/nowhere/page.html")), a_report(*RESULTS))

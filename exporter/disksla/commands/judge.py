"""`disksla judge`: compare a result of fio or DiskSpd that was made elsewhere with terms."""

import argparse
import importlib.metadata
import sys
import time
from pathlib import Path

from disksla.commands._options import add_config_file, parse_positive_size
from disksla.commands._verify_report import add_report_arguments, check_report_files, write_report
from disksla.config.settings_file import read_configuration
from disksla.errors import DiskslaError
from disksla.limits import derive_limits
from disksla.verification.import_results import (
    LARGEST_BYTES,
    decode_text,
    judge_imported,
    parse_result,
)
from disksla.verification.judge import VerificationRun, make_report
from disksla.verification.suites import SUITES, default_suite, make_suite


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add RESULT, the terms, and the reports."""
    parser.add_argument(
        "result",
        metavar="RESULT",
        help="output file of fio (JSON) or DiskSpd (XML or text); - for standard input",
    )
    parser.add_argument(
        "--terms", required=True, metavar="ID", help="terms of the disk, such as vk.ceph-ssd"
    )
    parser.add_argument(
        "--size", required=True, metavar="SIZE", help="size of the disk as sold, such as 500GiB"
    )
    parser.add_argument(
        "--suite", choices=SUITES, help="test suite to judge by (default: the provider's)"
    )
    add_config_file(parser)
    add_report_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge a result. Return 0 if it passed, 1 if it failed, 2 without a judged test."""
    check_report_files(arguments)
    configuration = read_configuration(arguments.config_file)
    terms = configuration.catalog[arguments.terms]
    tolerance_ratio = configuration.settings.assessment.tolerance_ratio
    size_bytes = parse_positive_size("--size", arguments.size)
    limits = derive_limits(terms, size_bytes)
    suite = make_suite(arguments.suite or default_suite(terms.provider), limits, tolerance_ratio)
    if not any(test.requirement for test in suite.tests):
        raise DiskslaError(f"cannot judge by {terms.id}: it has no limits")
    content, made_s = _read(arguments.result)
    measurements = parse_result(decode_text(content))
    results, unjudged = judge_imported(suite, measurements, tolerance_ratio)
    report = make_report(
        suite,
        VerificationRun(
            disksla_version=importlib.metadata.version("disksla-exporter"),
            disk=None,
            terms=terms.id,
            provider=terms.provider,
            size_bytes=size_bytes,
            target="elsewhere",
            tool=measurements[0].tool,
            tolerance_ratio=tolerance_ratio,
            began_timestamp_s=made_s,
            ended_timestamp_s=made_s,
            unjudged=unjudged,
        ),
        results,
    )
    write_report(arguments, report)
    return report.status


def _read(name: str) -> tuple[bytes, float]:
    """Return the content and its time: that of the file, as few results contain one."""
    if name == "-":
        content, made_s = sys.stdin.buffer.read(LARGEST_BYTES + 1), time.time()
    else:
        try:
            with Path(name).open("rb") as file:
                content = file.read(LARGEST_BYTES + 1)
            made_s = Path(name).stat().st_mtime
        except OSError as error:
            raise DiskslaError(f"cannot read {name}: {error.strerror}") from error
    if len(content) > LARGEST_BYTES:
        raise DiskslaError(f"{name} is larger than 64 MiB; expected output of fio or DiskSpd")
    return content, made_s

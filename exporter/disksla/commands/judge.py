"""`disksla judge`: hold a result of fio or DiskSpd that was made elsewhere against terms."""

import argparse
import importlib.metadata
import sys
import time
from pathlib import Path

from disksla.commands._options import add_config_file, parse_positive_size
from disksla.commands._verify_report import add_report_arguments, check_report_files, write_report
from disksla.config.settings_file import read_settings
from disksla.errors import DiskslaError
from disksla.limits import derive_limits
from disksla.limits.catalog import load_catalog
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
        help="JSON of fio, or XML or text of DiskSpd; - for standard input",
    )
    parser.add_argument("--terms", required=True, metavar="ID", help="terms, as vk.ceph-ssd")
    parser.add_argument("--size", required=True, metavar="SIZE", help="size of the disk")
    parser.add_argument("--suite", choices=SUITES, help="whose tests (default: the provider's)")
    add_config_file(parser)
    add_report_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Print how the result compares; 1 if the promise was not kept."""
    check_report_files(arguments)
    catalog = load_catalog()
    terms = catalog[arguments.terms]
    tolerance = read_settings(arguments.config_file, catalog).assessment.tolerance_ratio
    size_bytes = parse_positive_size("--size", arguments.size)
    limits = derive_limits(terms, size_bytes)
    suite = make_suite(arguments.suite or default_suite(terms.provider), limits, tolerance)
    if not any(test.requirement for test in suite.tests):
        raise DiskslaError(f"{terms.id} promises nothing against which a result could be judged")
    content, made_s = _read(arguments.result)
    measurements = parse_result(decode_text(content))
    tests, unjudged = judge_imported(suite, measurements, tolerance)
    verification = make_report(
        suite,
        VerificationRun(
            disksla_version=importlib.metadata.version("disksla-exporter"),
            disk=None,
            terms=terms.id,
            provider=terms.provider,
            size_bytes=size_bytes,
            target="elsewhere",
            tool=measurements[0].tool,
            tolerance_ratio=tolerance,
            began_timestamp_s=made_s,
            ended_timestamp_s=made_s,
            unjudged=unjudged,
        ),
        tests,
    )
    write_report(arguments, verification)
    return verification.status


def _read(name: str) -> tuple[bytes, float]:
    """Give the content, and when it was made: a result seldom tells."""
    if name == "-":
        content, made_s = sys.stdin.buffer.read(LARGEST_BYTES + 1), time.time()
    else:
        try:
            with Path(name).open("rb") as file:
                content = file.read(LARGEST_BYTES + 1)
            made_s = Path(name).stat().st_mtime
        except OSError as error:
            raise DiskslaError(f"{name} cannot be read: {error.strerror}") from error
    if len(content) > LARGEST_BYTES:
        raise DiskslaError(f"{name} is larger than 64 MiB; expected a result of fio or DiskSpd")
    return content, made_s

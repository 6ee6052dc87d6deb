"""`disksla judge`: compare a result of fio or DiskSpd that was made elsewhere with terms."""

import argparse
import os
import sys
import time
from pathlib import Path
from typing import NamedTuple

import msgspec

from disksla.base.console import write_file
from disksla.base.errors import DiskslaError
from disksla.commands._context import add_context_arguments, read_context
from disksla.commands._option_table import add_options
from disksla.commands._options import parse_size_of_disk
from disksla.commands._provision import add_provision, read_provision
from disksla.kernel.disks import Disk
from disksla.measure.verification import VerificationReport
from disksla.measure.verification.import_results import (
    LARGEST_BYTES,
    decode_text,
    judge_imported,
    parse_result,
)
from disksla.measure.verification.judge import make_report
from disksla.measure.verification.report import encode_report
from disksla.measure.verification.report_page import report_html, report_page
from disksla.measure.verification.suites import SUITES, default_suite, make_suite, within_machine
from disksla.promise.catalogue import Assignment, SharedLimits, beyond_bounds, derive_limits
from disksla.promise.configuration.settings_file import read_configuration
from disksla.tell.printed_page import print_parts


class _Contract(NamedTuple):
    """What a result is judged by."""

    assignment: Assignment
    tolerance_ratio: float
    disk: Disk | None = None
    machine: tuple[SharedLimits, ...] = ()


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add RESULT, the terms, and the reports."""
    result = "output file of fio (JSON or normal) or DiskSpd (XML or text); - for standard input"
    add_options(parser, f"RESULT  {result}")
    add_options(
        parser.add_mutually_exclusive_group(required=True),
        """
--terms ID       terms of the disk, such as vk.ceph-ssd
--device DEVICE  judge by the terms of this disk of this machine: those of the configuration, of
                 terms files, or of the provider
""",
    )
    add_options(parser, "--size SIZE  with --terms: size of the disk as sold, such as 500GiB")
    add_provision(parser)
    add_options(
        parser,
        """
--direct  the requests were direct, where the result does not say it (normal output of fio)
--suite   test suite to judge by (default: the provider's)
""",
        {"--suite": {"choices": SUITES}},
    )
    add_report_arguments(parser)
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Judge a result. Return 0 if it passed, 1 if it failed, 3 if it passed in part, else 2."""
    check_report_files(arguments)
    contract = _of_terms(arguments) if arguments.device is None else _of_disk(arguments)
    assignment, tolerance_ratio, disk, machine = contract
    limits = assignment.limits
    name = arguments.suite or default_suite(assignment.provider)
    suite = make_suite(name, limits, tolerance_ratio)
    if not any(test.requirement for test in suite.tests):
        raise DiskslaError(f"cannot judge by {assignment.terms}: it has no limits")
    suite = within_machine(suite, machine, tolerance_ratio)
    content, made_s = _read(arguments.result)
    measurements = parse_result(decode_text(content))
    if arguments.direct:
        measurements = tuple(
            msgspec.structs.replace(each, is_direct=True) if each.is_direct is None else each
            for each in measurements
        )
    results, unjudged = judge_imported(suite, limits, measurements, tolerance_ratio, machine)
    report = make_report(
        suite,
        assignment,
        disk,
        results,
        target="elsewhere",
        tool=measurements[0].tool,
        tolerance_ratio=tolerance_ratio,
        began_timestamp_s=made_s,
        ended_timestamp_s=made_s,
        unjudged=unjudged,
    )
    write_report(arguments, report)
    return report.status


def _of_terms(arguments: argparse.Namespace) -> _Contract:
    """Return a type of the catalogue, with --size and provisioned values."""
    if arguments.size is None:
        raise DiskslaError("--terms needs --size SIZE: limits depend on the size of the disk")
    configuration = read_configuration(arguments.config_file)
    terms = configuration.catalog[arguments.terms]
    size_bytes = parse_size_of_disk("--size", arguments.size, terms)
    provision = read_provision(arguments)
    limits = derive_limits(terms, size_bytes, provision)
    for note in beyond_bounds(terms, size_bytes, provision):
        print(f"disksla: {note}", file=sys.stderr)
    return _Contract(
        Assignment(terms.id, terms.provider, "", size_bytes, limits),
        configuration.settings.assessment.tolerance_ratio,
    )


def _of_disk(arguments: argparse.Namespace) -> _Contract:
    """Return what the configuration, a terms file or the provider says of a disk."""
    for option in ("size", "iops", "bandwidth", "option"):
        if getattr(arguments, option):
            raise DiskslaError(f"--{option} needs --terms: the terms of --device have their own")
    host = read_context(arguments)
    disk = host.find(arguments.device)
    assignment = host.assignment(disk)
    if not assignment.limits.promise_charges:
        reason = assignment.problem or assignment.reason
        raise DiskslaError(f"cannot judge by the terms of {disk.name}: no limits: {reason}")
    return _Contract(
        assignment,
        host.settings.assessment.tolerance_ratio,
        disk,
        tuple(each for each in host.machine_limits(disk) if not each.is_cache),
    )


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


def add_report_arguments(parser: argparse.ArgumentParser) -> None:
    """Add --json and --html."""
    add_options(
        parser,
        """
--json       print the report as JSON
--html FILE  also write the report to FILE as an HTML page with charts
""",
    )


def check_report_files(arguments: argparse.Namespace) -> None:
    """Raise DiskslaError, before anything is measured, if the page cannot be written."""
    path = arguments.html
    if path is None:
        return
    is_file = not path.is_dir() and not path.is_block_device()
    if not is_file or not os.access(path if path.exists() else path.parent, os.W_OK):
        raise DiskslaError(f"cannot write {path}; choose a file in a writable directory")


def write_report(arguments: argparse.Namespace, report: VerificationReport) -> None:
    """Print the report, and write it to the file of --html."""
    if arguments.json:
        print(encode_report(report).decode(), end="")
    else:
        print_parts(report_page(report))
    if arguments.html is not None:
        write_file(arguments.html, report_html(report).encode())

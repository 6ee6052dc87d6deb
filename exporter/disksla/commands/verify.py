"""`disksla verify`: the provider's acceptance test of a disk, with a report.

Nothing is written to a disk unless a person names where. The test ends soon after an interrupt,
with a report of what was measured by then, and leaves neither a file nor a fio behind.
"""

import argparse
import contextlib
import importlib.metadata
import logging
import shlex
import sys
import time
from pathlib import Path

import msgspec

from disksla.commands._console import progress_bar
from disksla.commands._context import HostContext, add_context_arguments, read_context
from disksla.commands._interrupt import StoppedError, StopRequest, stop_on_signal
from disksla.commands._options import parse_option, parse_positive_size, roots_of
from disksla.commands._verify_report import add_report_arguments, check_report_files, write_report
from disksla.config import DiskEntry, DiskMatch
from disksla.disks import Disk
from disksla.errors import DiskslaError
from disksla.fio import fio_arguments, writable_region
from disksla.fio.filesystem import file_system_of
from disksla.fio.raw_device import exclusive_device
from disksla.fio.runner import find_fio
from disksla.fio.scratch_file import SCRATCH_DIRECTORY, scratch_file
from disksla.limits import Assignment
from disksla.system.lock import measurement_lock
from disksla.units import format_duration, parse_duration_s
from disksla.verification import SuiteTestResult, VerificationReport
from disksla.verification.judge import VerificationRun, make_report
from disksla.verification.preconditions import (
    Violation,
    boot_disk,
    short_runtime,
    wrong_file_system,
)
from disksla.verification.runner import SuitePlan, SuiteRunner, base_estimate_s, not_run_tests
from disksla.verification.store import save_report
from disksla.verification.suites import SUITES, Suite, default_suite, make_suite
from disksla.verification.watch import monitored


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEVICE, what to test and where, and the reports."""
    parser.add_argument(
        "device", metavar="DEVICE", help="vdb, /dev/vdb, or a name under /dev/disk/by-id"
    )
    parser.add_argument("--suite", choices=SUITES, help="whose tests (default: the provider's)")
    parser.add_argument(
        "--runtime", default="60s", metavar="TIME", help="of each test (default: %(default)s)"
    )
    parser.add_argument("--terms", metavar="ID", help="instead of what the configuration says")
    parser.add_argument("--size", metavar="SIZE", help="that was sold, instead of the kernel's")
    where = parser.add_mutually_exclusive_group()
    where.add_argument(
        "--file",
        type=Path,
        metavar="DIR",
        help="test on a file, made in this directory of the disk and removed; writes too",
    )
    where.add_argument(
        "--write-to-raw-device",
        metavar="NAME",
        help="test writes on the device too, which must be empty; repeats its kernel name",
    )
    parser.add_argument("--file-size", metavar="SIZE", help="of that file (default: the suite's)")
    parser.add_argument(
        "--wait-for-base",
        action="store_true",
        help="before each test, load the disk until its burst credits are gone",
    )
    parser.add_argument(
        "--force",
        action="store_true",
        help="measure although conditions are violated; the result stays not valid",
    )
    parser.add_argument("--dry-run", action="store_true", help="say what would be run, and end")
    add_report_arguments(parser)
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Test a disk; 0 if it keeps its promise, 1 if not, 2 if that could not be told."""
    check_report_files(arguments)
    host = read_context(arguments)
    disk = host.find(arguments.device)
    if disk.partition_of is not None:
        raise DiskslaError(
            f"{disk.name} is a part of {disk.partition_of}, which is what was sold;"
            f" expected `disksla verify {disk.partition_of}`"
        )
    host = _with_terms(host, disk, arguments)
    assignment = host.assignment(disk)
    suite = _suite(arguments, host, assignment)
    violations = _violations(arguments, host, disk, suite)
    plan = _plan(arguments, host, disk, suite)
    _say(_estimate(plan, assignment))
    if arguments.dry_run:
        _print_dry_run(plan, violations)
        return 0
    with stop_on_signal() as interrupted:
        verification = _test(arguments, host, disk, plan, violations, interrupted)
    write_report(arguments, verification)
    _save(host, verification)
    if interrupted.by is not None:
        return 128 + interrupted.by
    return verification.status


def _with_terms(host: HostContext, disk: Disk, arguments: argparse.Namespace) -> HostContext:
    """Put what the person said of the terms before what the configuration says."""
    if arguments.terms is None and arguments.size is None:
        return host
    size_bytes = None if arguments.size is None else parse_positive_size("--size", arguments.size)
    match = DiskMatch(device=disk.name)
    if arguments.terms is not None:
        entry = DiskEntry(
            match=match, terms=host.catalog[arguments.terms].id, size_bytes=size_bytes
        )
    else:
        told = host.entry(disk)
        if told is None:
            raise DiskslaError(
                f"--size without --terms, and nothing is configured for {disk.name}"
            )
        entry = msgspec.structs.replace(told, match=match, size_bytes=size_bytes)
    settings = msgspec.structs.replace(host.settings, disks=(entry, *host.settings.disks))
    return msgspec.structs.replace(host, settings=settings)


def _suite(arguments: argparse.Namespace, host: HostContext, assignment: Assignment) -> Suite:
    name = arguments.suite or default_suite(assignment.provider)
    suite = make_suite(name, assignment.limits, _tolerance(host))
    if not any(test.requirement for test in suite.tests):
        raise DiskslaError(
            f"nothing is promised that could be verified: {assignment.reason};"
            " expected --terms ID, or an entry of `disks` in --config.file"
        )
    return suite


def _violations(
    arguments: argparse.Namespace, host: HostContext, disk: Disk, suite: Suite
) -> list[Violation]:
    """Give the conditions of which it is known beforehand that they do not hold."""
    file = arguments.file
    found = [
        boot_disk(disk),
        short_runtime(_runtime_s(arguments), _tolerance(host)),
        wrong_file_system(suite, file_system_of(file, disk)) if file is not None else None,
    ]
    return [violation for violation in found if violation is not None]


def _plan(arguments: argparse.Namespace, host: HostContext, disk: Disk, suite: Suite) -> SuitePlan:
    """Say what will be run; raises Refusal where it would write to what it must not."""
    file, name = arguments.file, arguments.write_to_raw_device
    if name is not None:
        if name != disk.name:
            raise DiskslaError(
                f"--write-to-raw-device says '{name}', but the disk is {disk.name}; expected the"
                " kernel name of the disk that may be overwritten"
            )
        with exclusive_device(disk, roots_of(arguments)):
            pass  # raises Refusal with every reason why this disk must not be overwritten
    offset_bytes, span_bytes = _region(arguments, disk, suite)
    return SuitePlan(
        suite=suite,
        target=f"/dev/{disk.name}"
        if file is None
        else f"{file.resolve()}/{SCRATCH_DIRECTORY}/file",
        span_bytes=span_bytes,
        runtime_s=_runtime_s(arguments),
        tolerance_ratio=_tolerance(host),
        with_writes=file is not None or name is not None,
        wait_for_base=arguments.wait_for_base,
        offset_bytes=offset_bytes,
        is_file=file is not None,
    )


def _region(arguments: argparse.Namespace, disk: Disk, suite: Suite) -> tuple[int, int | None]:
    """Give offset and length of what is used; of a disk that is written, all but its ends."""
    if arguments.file is not None:
        told = arguments.file_size
        return 0, suite.file_bytes if told is None else parse_positive_size("--file-size", told)
    if arguments.file_size is not None:
        raise DiskslaError("--file-size: there is no file without --file DIR")
    if arguments.write_to_raw_device is not None:
        return writable_region(disk.size_bytes)
    return 0, None


def _test(
    arguments: argparse.Namespace,
    host: HostContext,
    disk: Disk,
    plan: SuitePlan,
    violations: list[Violation],
    interrupted: StopRequest,
) -> VerificationReport:
    fio = find_fio()
    assignment = host.assignment(disk)
    settings, catalog = host.settings, host.catalog
    began_s = time.time()
    tests: tuple[SuiteTestResult, ...]
    with contextlib.ExitStack() as undo:
        if not undo.enter_context(measurement_lock(Path(settings.state.directory))):
            violations.append(
                Violation("probed", "another measurement of disksla runs on this machine")
            )
        watch = undo.enter_context(
            monitored(roots_of(arguments), settings, catalog, disk, host.disks)
        )
        progress = undo.enter_context(progress_bar(plan.estimate_s))

        def acceptance(plan: SuitePlan) -> SuiteRunner:
            return SuiteRunner(plan, fio, watch, assignment.limits, interrupted.stop, progress)

        busy = acceptance(plan).look_for_load()
        violations += [busy] if busy is not None else []
        tests = not_run_tests(plan, "the conditions of the test do not hold (--force measures)")
        if arguments.force or not violations:
            tests = not_run_tests(plan, "the test was ended before")
            undo.enter_context(contextlib.suppress(StoppedError))
            if arguments.write_to_raw_device is not None:
                undo.enter_context(exclusive_device(disk, roots_of(arguments)))
            if arguments.file is not None and plan.span_bytes is not None:
                progress("making the test file", 0.0)
                file = scratch_file(
                    arguments.file, plan.span_bytes, on_written=interrupted.end_if_wanted
                )
                plan = plan._replace(target=str(undo.enter_context(file)))
            tests, spoiled = acceptance(plan).run()
            violations += spoiled
    return make_report(
        plan.suite,
        VerificationRun(
            disksla_version=importlib.metadata.version("disksla-exporter"),
            disk=disk,
            terms=assignment.terms,
            provider=assignment.provider,
            size_bytes=assignment.size_bytes,
            target="device" if arguments.file is None else "file",
            tool=f"fio {fio.version[0]}.{fio.version[1]}",
            tolerance_ratio=plan.tolerance_ratio,
            began_timestamp_s=began_s,
            ended_timestamp_s=time.time(),
            violations=tuple(violations),
        ),
        tests,
    )


def _estimate(plan: SuitePlan, assignment: Assignment) -> str:
    number = len(plan.tests)
    tests = f"{number} {'test' if number == 1 else 'tests'} of {format_duration(plan.runtime_s)}"
    words = f"about {format_duration(plan.estimate_s)}: {tests}"
    if plan.is_file:
        words += ", and the time to write the test file"
    if assignment.limits.buckets:
        base_s = base_estimate_s(assignment.limits)
        if plan.wait_for_base:
            return f"{words}, and up to {format_duration(base_s)} to use up burst credits"
        words += (
            "; the disk has burst credits, so it may be measured above its base"
            " (--wait-for-base uses them up)"
        )
    return words


def _print_dry_run(plan: SuitePlan, violations: list[Violation]) -> None:
    for test in plan.tests:
        print(shlex.join(["fio", *fio_arguments(plan.job(test))]))
    for violation in violations:
        _say(f"condition violated: {violation.message}")


def _save(host: HostContext, verification: VerificationReport) -> None:
    logging.getLogger("disksla.state").addHandler(logging.NullHandler())  # said below
    directory = Path(host.settings.state.directory)
    problem = save_report(directory, verification)
    if problem is not None:
        _say(f"not left for the daemon to publish: {problem}")


def _tolerance(host: HostContext) -> float:
    return host.settings.assessment.tolerance_ratio


def _runtime_s(arguments: argparse.Namespace) -> float:
    runtime_s = parse_option("--runtime", arguments.runtime, parse_duration_s)
    if not 1 <= runtime_s <= 86400:  # noqa: PLR2004 -- a second, and a day
        raise DiskslaError(f"--runtime: expected 1s to 1d, not '{arguments.runtime}'")
    return runtime_s


def _say(words: str) -> None:
    print(f"disksla: {words}", file=sys.stderr)

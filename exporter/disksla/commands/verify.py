"""`disksla verify`: run the provider's acceptance test on a disk and report the result.

Nothing is written to a disk unless --file or --write-to-raw-device is given. After an interrupt
the command reports what was measured so far, and leaves neither a scratch file nor a running fio.
"""

import argparse
import logging
import sys
from pathlib import Path

import msgspec

from disksla.base.console import progress_bar
from disksla.base.errors import DiskslaError
from disksla.base.schema import duration
from disksla.base.text import command_lines
from disksla.base.units import format_duration
from disksla.commands._context import (
    HostContext,
    add_context_arguments,
    add_device,
    read_context,
    stop_on_signal,
)
from disksla.commands._latency import measure_latency
from disksla.commands._option_table import add_options
from disksla.commands._options import (
    check_unused,
    parse_option,
    parse_optional,
    parse_positive_size,
    roots_of,
)
from disksla.commands.judge import add_report_arguments, check_report_files, write_report
from disksla.kernel.disks import Disk
from disksla.measure.fio import fio_arguments, writable_region
from disksla.measure.fio.raw_device import exclusive_device
from disksla.measure.fio.scratch_file import SCRATCH_DIRECTORY, file_system_of
from disksla.measure.verification.judge import SuitePlan, base_estimate_s
from disksla.measure.verification.preconditions import known_violations
from disksla.measure.verification.runner import VerificationRequest, run_verification
from disksla.measure.verification.store import save_report
from disksla.measure.verification.suites import (
    SUITES,
    Suite,
    default_suite,
    make_suite,
    within_machine,
)
from disksla.promise.catalogue import Assignment
from disksla.promise.configuration import PROBE_KINDS, DiskEntry, DiskMatch, parse_disk_size
from disksla.promise.configuration.settings_file import with_terms_files

_RUNTIME = duration("1s", "1d", "60s")
_OF_A_TEST = (
    "--suite", "--runtime", "--terms", "--size", "--file", "--write-to-raw-device",
    "--destroy-data", "--file-size", "--wait-for-base", "--force", "--html",
)  # fmt: skip


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add DEVICE, the options of the tests, and the reports."""
    add_device(parser)
    add_options(
        parser,
        """
--latency       measure the latency once instead, at a low rate, as a probe of the daemon does
--kind          with --latency: kind of probe, with the settings of the configuration if it has
                such a probe (default: %(default)s)
--suite         test suite to run (default: the provider's)
--runtime TIME  duration of each test (default: %(default)s)
--terms ID      terms to test against (default: from the configuration)
--size SIZE     size as sold (default: as reported by the kernel)
""",
        {
            "--kind": {"choices": PROBE_KINDS, "default": PROBE_KINDS[0]},
            "--suite": {"choices": SUITES},
            "--runtime": {"default": "60s"},
        },
    )
    add_options(
        parser.add_mutually_exclusive_group(),
        """
--file DIR                  test reads and writes on a scratch file in this directory of the disk;
                            the file is removed afterwards (default: test reads on the device)
--write-to-raw-device NAME  test reads and writes on the device and OVERWRITE it; NAME must repeat
                            its kernel name, and the device must be empty and unused
""",
    )
    add_options(
        parser,
        """
--destroy-data SERIAL  with --write-to-raw-device: DESTROY what the device contains; SERIAL must
                       repeat its serial number, or its WWN if it has none
--file-size SIZE       size of the scratch file (default: as the suite specifies)
--wait-for-base        use up the burst credits before each test, to measure the baseline
--force                run the tests although a precondition is violated; the result stays not
                       valid
--dry-run              print the fio commands and exit
""",
    )
    add_report_arguments(parser)
    add_context_arguments(parser)


def run(arguments: argparse.Namespace) -> int:
    """Verify a disk. Return 0 if it passed, 1 if it failed, 2 without a valid result."""
    if arguments.latency:
        check_unused(arguments, "--latency", _OF_A_TEST)
        return measure_latency(arguments)
    check_unused(arguments, "a test without --latency", ["--kind"])
    check_report_files(arguments)
    host = read_context(arguments)
    disk = host.find_block_device(arguments.device)
    if disk.partition_of is not None:
        raise DiskslaError(
            f"cannot verify {disk.name}: it is a partition; verify the whole disk by"
            f" `disksla verify {disk.partition_of}`"
        )
    request = _request(arguments, _with_terms(host, disk, arguments), disk)
    _print_note(_estimate(request.plan, request.assignment))
    if arguments.dry_run:
        for test in request.plan.tests:
            print(command_lines(["fio", *fio_arguments(request.plan.job(test))]))
        for violation in request.violations:
            _print_note(f"precondition violated: {violation.message}")
        return 0
    with stop_on_signal() as interrupted, progress_bar(request.plan.estimate_s) as progress:
        report = run_verification(request, interrupted.stop, progress)
    write_report(arguments, report)
    # A failure to write the file is printed below, not logged.
    logging.getLogger("disksla.state").addHandler(logging.NullHandler())
    problem = save_report(Path(host.settings.state.directory), report)
    if problem is not None:
        _print_note(f"the daemon will not publish this result: {problem}")
    if interrupted.by is not None:
        return 128 + interrupted.by
    return report.status


def _with_terms(host: HostContext, disk: Disk, arguments: argparse.Namespace) -> HostContext:
    """Return the context in which --terms and --size replace the configured terms of the disk."""
    if arguments.terms is None and arguments.size is None:
        return host
    size = parse_optional("--size", arguments.size, parse_disk_size)
    match = DiskMatch(device=disk.name)
    if arguments.terms is not None:
        entry = DiskEntry(match=match, terms=host.catalog[arguments.terms].id, size=size)
    else:
        configured = host.entry(disk)
        if configured is None:
            raise DiskslaError(
                f"--size needs --terms: the configuration has no entry for {disk.name}"
            )
        entry = msgspec.structs.replace(configured, match=match, size=size)
    settings = msgspec.structs.replace(host.settings, disks=(entry, *host.settings.disks))
    configuration = msgspec.structs.replace(host.configuration, settings=settings)
    return msgspec.structs.replace(
        host, configuration=with_terms_files(configuration, configuration.terms_files)
    )


def _request(arguments: argparse.Namespace, host: HostContext, disk: Disk) -> VerificationRequest:
    assignment = host.assignment(disk)
    tolerance_ratio = host.settings.assessment.tolerance_ratio
    name = arguments.suite or default_suite(assignment.provider)
    suite = make_suite(name, assignment.limits, tolerance_ratio)
    if not any(test.requirement for test in suite.tests):
        raise DiskslaError(
            f"{disk.name} has no limits to verify: {assignment.reason}; use --terms ID, or add"
            " the disk to `disks` in the configuration"
        )
    uncached = [each for each in host.machine_limits(disk) if not each.is_cache]
    suite = within_machine(suite, uncached, tolerance_ratio)
    directory: Path | None = arguments.file
    file_system = None if directory is None else file_system_of(directory, disk)
    plan = _plan(arguments, disk, suite, tolerance_ratio)
    violations = known_violations(disk, suite, plan.runtime_s, tolerance_ratio, file_system)
    return VerificationRequest(
        roots=roots_of(arguments),
        configuration=host.configuration,
        disks=host.disks,
        disk=disk,
        assignment=assignment,
        plan=plan,
        directory=directory,
        destroy_data=arguments.destroy_data,
        violations=violations,
        force=arguments.force,
    )


def _plan(
    arguments: argparse.Namespace, disk: Disk, suite: Suite, tolerance_ratio: float
) -> SuitePlan:
    """Return the plan. Raise DiskslaError if it would overwrite a disk that it must not."""
    directory, name = arguments.file, arguments.write_to_raw_device
    if name is None and arguments.destroy_data is not None:
        raise DiskslaError("--destroy-data needs --write-to-raw-device NAME")
    if name is not None:
        if name != disk.name:
            raise DiskslaError(
                f"--write-to-raw-device: found '{name}'; expected '{disk.name}', the kernel name"
                " of the disk to overwrite"
            )
        with exclusive_device(disk, roots_of(arguments), destroy_data=arguments.destroy_data):
            pass  # raises an error with all reasons why the disk must not be overwritten
    offset_bytes, span_bytes = _region(arguments, disk, suite)
    return SuitePlan(
        suite=suite,
        target=f"/dev/{disk.name}"
        if directory is None
        else f"{directory.resolve()}/{SCRATCH_DIRECTORY}/file",
        span_bytes=span_bytes,
        runtime_s=parse_option("--runtime", arguments.runtime, _RUNTIME.parse),
        tolerance_ratio=tolerance_ratio,
        with_writes=directory is not None or name is not None,
        wait_for_base=arguments.wait_for_base,
        offset_bytes=offset_bytes,
        is_file=directory is not None,
    )


def _region(arguments: argparse.Namespace, disk: Disk, suite: Suite) -> tuple[int, int | None]:
    """Return offset and length of the region to use; a raw disk keeps its first and last MiB."""
    if arguments.file is not None:
        size = arguments.file_size
        return 0, suite.file_bytes if size is None else parse_positive_size("--file-size", size)
    if arguments.file_size is not None:
        raise DiskslaError("--file-size needs --file DIR")
    if arguments.write_to_raw_device is not None:
        return writable_region(disk.size_bytes)
    return 0, None


def _estimate(plan: SuitePlan, assignment: Assignment) -> str:
    number = len(plan.tests)
    text = (
        f"{number} {'test' if number == 1 else 'tests'} of {format_duration(plan.runtime_s)};"
        f" expected duration: {format_duration(plan.estimate_s)}"
    )
    if plan.is_file:
        text += ", plus the time to write the scratch file"
    if assignment.limits.buckets and plan.wait_for_base:
        base_s = base_estimate_s(assignment.limits)
        text += f", plus up to {format_duration(base_s)} to use up burst credits"
    elif assignment.limits.buckets:
        text += (
            "; the disk has burst credits, so the results may be above its baseline"
            " (--wait-for-base uses them up first)"
        )
    return text


def _print_note(text: str) -> None:
    print(f"disksla: {text}", file=sys.stderr)

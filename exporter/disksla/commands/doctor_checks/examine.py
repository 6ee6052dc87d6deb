"""All checks of a machine."""

from collections.abc import Iterator

from disksla.commands.doctor_checks.check_result import CheckResult
from disksla.commands.doctor_checks.daemon_checks import check_daemon
from disksla.commands.doctor_checks.disk_checks import check_disks
from disksla.commands.doctor_checks.facts import MachineFacts
from disksla.commands.doctor_checks.file_checks import check_configuration, check_state
from disksla.commands.doctor_checks.kernel_checks import check_clock, check_kernel
from disksla.commands.doctor_checks.measuring_checks import check_measuring
from disksla.commands.doctor_checks.provider_checks import check_provider


def examine(machine: MachineFacts) -> Iterator[CheckResult]:
    """Yield the results of all checks."""
    yield from check_kernel(machine.kernel)
    yield from check_disks(machine)
    yield from check_provider(machine)
    yield from check_configuration(machine)
    yield from check_state(machine)
    yield from check_measuring(machine)
    yield from check_clock(machine.clock)
    yield from check_daemon(machine)

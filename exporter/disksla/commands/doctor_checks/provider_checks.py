"""Checks of the provider: what DMI says, what `disksla detect` could find out."""

from collections.abc import Iterator

from disksla.base.units import format_duration
from disksla.clouds.detection import PROVIDERS, WITH_CREDENTIALS_FILE
from disksla.commands.doctor_checks.check_result import Check, CheckResult
from disksla.commands.doctor_checks.disk_checks import detect_command, lacks_terms
from disksla.commands.doctor_checks.facts import MachineFacts
from disksla.kernel.disks import Disk
from disksla.promise.configuration import TermsFile

_ASKED = frozenset(PROVIDERS) - {"alibaba", "oracle"}
"""Providers that `disksla detect` asks for the types of disks; of these two, only for that of the
machine."""
_CREDENTIALS = (
    "give the machine credentials: an instance profile (AWS), a managed identity (Azure), a"
    " service account (Google Cloud, Yandex Cloud), /etc/disksla/clouds.yaml (OpenStack, VK Cloud)"
)
_AGAIN = "wait for the next attempt, or run disksla detect"
_FIXES = {
    "unreachable": "allow the address in the firewall or sandbox; of a container, set the hop"
    " limit of the metadata service to 2, or use the network of the host",
    "denied": "add the permission to the role of the machine",
    "throttled": _AGAIN,
    "expired": _CREDENTIALS,
    "redirected": "set --endpoint of disksla detect to the address of the API",
    "invalid": "disksla detect shows the answer; check --endpoint",
    "too_large": "check --endpoint of disksla detect",
    "timeout": _AGAIN,
    "clock": "timedatectl set-ntp true (or start chronyd)",
    "no_credentials": _CREDENTIALS,
    "not_found": "check --provider and --endpoint of disksla detect",
}


def check_provider(machine: MachineFacts) -> Iterator[CheckResult]:
    """Yield the results of all checks of the provider."""
    without = lacks_terms(machine)
    yield _machine(machine, without)
    yield from _timer(machine)
    detected = _detected(machine)
    for file in detected:
        yield from _file(machine, file)
    if machine.provider in _ASKED and not detected and without:
        yield Check("provider.detect").note(
            f"{machine.provider} was not asked for the types of the disks",
            expected="a terms file of disksla detect",
            fix=detect_command(machine),
        )
    if without or detected:
        yield from _credentials(machine)


def _machine(machine: MachineFacts, without: list[Disk]) -> CheckResult:
    if machine.provider is not None:
        return Check("provider.machine").ok(
            f"{machine.provider}, by the firmware of the machine (DMI)"
        )
    if not without:
        return Check("provider.machine").ok("not known by the firmware of the machine (DMI)")
    return Check("provider.machine").note(
        "the firmware of the machine (DMI) names no known provider; volumes are not recognised",
        expected="a known provider, or terms in the configuration",
        fix="list the disks in `disks` of the configuration",
    )


def _timer(machine: MachineFacts) -> Iterator[CheckResult]:
    if machine.provider not in _ASKED or machine.detect_unit is None:
        return
    if machine.has_detect_timer:
        yield Check("provider.timer").ok("disksla-detect.timer is enabled")
    else:
        yield Check("provider.timer").note(
            "disksla-detect.timer is not enabled: the provider is not asked again",
            expected="an enabled timer",
            fix="systemctl enable --now disksla-detect.timer",
        )


def _detected(machine: MachineFacts) -> list[TermsFile]:
    configuration = machine.configuration.configuration
    files = () if configuration is None else configuration.terms_files
    return [file for file in files if file.source in {"api", "metadata"}]


def _file(machine: MachineFacts, file: TermsFile) -> Iterator[CheckResult]:
    for problem in file.problems:
        asked = "API" if problem.source == "api" else "metadata service"
        yield Check("provider.detect", file.name).wrong(
            problem.message, expected=f"an answer of the {asked}", fix=_FIXES[problem.reason]
        )
    if not file.problems and file.as_of_timestamp_s is not None:
        age = format_duration(max(0.0, machine.now_s - file.as_of_timestamp_s))
        yield Check("provider.detect", file.name).ok(f"{file.origin} was asked {age} ago")


def _credentials(machine: MachineFacts) -> Iterator[CheckResult]:
    if machine.provider not in WITH_CREDENTIALS_FILE:
        return
    if machine.has_credentials_file:
        unit = machine.detect_unit
        passed = () if unit is None else unit.values.get("LoadCredential", ())
        if unit is not None and not any(each.startswith("clouds.yaml:") for each in passed):
            yield Check("provider.credentials").note(
                "the unit disksla-detect does not pass on clouds.yaml",
                expected="the drop-in 10-openstack.conf",
                fix="install -D -m 644 -t /etc/systemd/system/disksla-detect.service.d"
                " /usr/share/doc/disksla-exporter/examples/disksla-detect.service.d"
                "/10-openstack.conf && systemctl daemon-reload",
            )
    else:
        yield Check("provider.credentials").note(
            "there is no clouds.yaml beside the configuration file",
            expected="an application credential with the role reader",
            fix="openstack application credential create --role reader disksla"
            "   # into /etc/disksla/clouds.yaml",
        )

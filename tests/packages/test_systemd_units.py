"""The unit files, checked by systemd-analyze."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from disksla.commands.doctor_checks.facts import parse_unit
from disksla.promise.configuration.settings import Settings
from disksla.promise.configuration.settings_file import terms_directories
from support.daemon_process import DISKSLA

SYSTEMD = Path(__file__).resolve().parent.parent.parent / "systemd"
UNITS = (
    "disksla-exporter.service",
    "disksla-exporter.socket",
    "disksla-detect.service",
    "disksla-detect.timer",
    "disksla-ebs.service",
    "disksla-events.socket",
    "disksla-events@.service",
)
DROP_INS = sorted((SYSTEMD / "disksla-exporter.service.d").glob("*.conf"))
PERFMON_ONLY = SYSTEMD / "disksla-events@.service.d" / "10-perfmon-only.conf"
ALL_DROP_INS = [*DROP_INS, PERFMON_ONLY]
MAX_EXPOSURE_OF_OTHERS = {
    "disksla-detect.service": 1.7,
    "disksla-ebs.service": 1.5,
    "disksla-events@.service": 1.3,
}
MAX_EXPOSURE = {"": 1.5, "10-probe-devices.conf": 1.7, "20-probe-files.conf": 1.5}
"""Highest exposure in `systemd-analyze security`, by drop-in; 10 is the worst. systemd 252 and 257
report 0.2 less for each."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="NOT TESTED: unit files need systemd-analyze (apt-get install systemd)",
)


def analyze(*arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": ""}
    return subprocess.run(
        ["systemd-analyze", *arguments],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )


def installed(tmp_path: Path, *drop_ins: Path) -> list[str]:
    """Return copies of the units that run the program under test, with some drop-ins."""
    program = tmp_path / "disksla"  # its own path may contain a blank
    program.symlink_to(DISKSLA)
    for name in UNITS:
        text = (SYSTEMD / name).read_text()
        (tmp_path / name).write_text(text.replace("/usr/bin/disksla", str(program)))
    for drop_in in drop_ins:
        directory = tmp_path / drop_in.parent.name
        directory.mkdir(exist_ok=True)
        if drop_in.parent != directory:
            shutil.copy(drop_in, directory)
    return [str(tmp_path / name) for name in UNITS]


@needs_systemd
@pytest.mark.parametrize("drop_ins", [[], ALL_DROP_INS], ids=["alone", "with-drop-ins"])
def test_units_pass_verification(tmp_path: Path, drop_ins: list[Path]) -> None:
    verified = analyze("verify", *installed(tmp_path, *drop_ins))
    assert (verified.returncode, verified.stderr, verified.stdout) == (0, "", "")


@needs_systemd
def test_verification_finds_a_wrong_directive(tmp_path: Path) -> None:
    drop_in = tmp_path / "disksla-exporter.service.d" / "wrong.conf"
    drop_in.parent.mkdir()
    drop_in.write_text("[Service]\nPrivateDevice=yes\n")
    verified = analyze("verify", *installed(tmp_path, drop_in))
    assert "PrivateDevice" in verified.stderr


@pytest.mark.parametrize("name", [name for name in UNITS if name.endswith(".service")])
def test_memory_is_limited(name: str) -> None:
    assert re.search(r"^MemoryMax=\d+M$", (SYSTEMD / name).read_text(), re.MULTILINE)


def test_state_of_detection_is_not_within_that_of_the_daemon() -> None:
    """The owner of a directory may replace what is in it, and either may start first."""
    owned = [
        line.partition("=")[2]
        for name in UNITS
        for line in (SYSTEMD / name).read_text().splitlines()
        if line.startswith("StateDirectory=")
    ]
    assert owned == ["disksla", "disksla-detect"]
    assert [str(each.path) for each in terms_directories(None, Settings())][1:] == [
        f"/var/lib/{owned[1]}"
    ]


@needs_systemd
@pytest.mark.parametrize("name", MAX_EXPOSURE)
def test_exposure_is_low(tmp_path: Path, name: str) -> None:
    drop_ins = [path for path in DROP_INS if path.name == name]
    service, *_ = installed(tmp_path, *drop_ins)
    assert exposure_of(service) <= MAX_EXPOSURE[name]


@needs_systemd
@pytest.mark.parametrize("name", MAX_EXPOSURE_OF_OTHERS)
def test_exposure_of_other_services_is_low(tmp_path: Path, name: str) -> None:
    (service,) = (unit for unit in installed(tmp_path) if unit.endswith(name))
    assert exposure_of(service) <= MAX_EXPOSURE_OF_OTHERS[name]


def test_the_helper_has_one_capability_and_one_class_of_devices() -> None:
    lines = (SYSTEMD / "disksla-ebs.service").read_text().splitlines()
    assert [line for line in lines if "CAP_" in line and not line.startswith("#")] == [
        "CapabilityBoundingSet=CAP_SYS_ADMIN"
    ]
    assert [line for line in lines if line.startswith("Device")] == [
        "DevicePolicy=closed",
        "DeviceAllow=char-nvme r",
    ]
    assert {"PrivateNetwork=yes", "RestrictAddressFamilies=AF_UNIX"} <= {*lines}


def test_the_drop_in_takes_one_of_two_capabilities() -> None:
    unit = (SYSTEMD / "disksla-events@.service").read_text()
    both = "CAP_PERFMON CAP_SYS_ADMIN"
    assert f"\nCapabilityBoundingSet={both}\nAmbientCapabilities={both}\n" in unit
    values = parse_unit([unit, PERFMON_ONLY.read_text()])
    assert values["CapabilityBoundingSet"] == values["AmbientCapabilities"] == ("CAP_PERFMON",)


def exposure_of(service: str) -> float:
    report = analyze("security", "--offline=true", "--no-pager", service).stdout
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", report)
    assert exposure is not None, report
    return float(exposure[1])


def test_exposure_of_every_drop_in_is_checked() -> None:
    assert {path.name for path in DROP_INS} == MAX_EXPOSURE.keys() - {""}


@pytest.mark.parametrize(
    "path", [*sorted(SYSTEMD.glob("*.service")), *ALL_DROP_INS], ids=lambda path: path.name
)
def test_every_directive_has_a_comment(path: Path) -> None:
    """Directives that share a comment follow each other; a few need none."""
    obvious = ("Description=", "Documentation=", "ExecStart=", "WantedBy=")
    previous = ""
    for line in path.read_text().splitlines():
        if re.match(r"\w+=", line) and not line.startswith(obvious):
            assert previous.startswith("#") or re.match(r"\w+=", previous), line
        previous = line

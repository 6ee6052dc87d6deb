"""The files for systemd, as systemd reads them."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from support.daemon_process import DISKSLA

SYSTEMD = Path(__file__).resolve().parent.parent / "systemd"
UNITS = ("disksla-exporter.service", "disksla-exporter.socket")
DROP_INS = sorted((SYSTEMD / "disksla-exporter.service.d").glob("*.conf"))
MOST_EXPOSED = {"": 1.5, "10-probe-devices.conf": 1.9, "20-probe-files.conf": 1.5}
"""What `systemd-analyze security` may say by the drop-in beside the unit; 10 is the worst, and
systemd 252 says 0.2 less of each."""

needs_systemd = pytest.mark.skipif(
    shutil.which("systemd-analyze") is None,
    reason="NOT TESTED: unit files need systemd-analyze (apt-get install systemd)",
)


def analyze(*words: str) -> subprocess.CompletedProcess[str]:
    environment = {**os.environ, "LC_ALL": "C", "SYSTEMD_COLORS": "0", "SYSTEMD_PAGER": ""}
    return subprocess.run(
        ["systemd-analyze", *words], capture_output=True, text=True, check=False, env=environment
    )


def installed(tmp_path: Path, *drop_ins: Path) -> list[str]:
    """Copy the units to where their program is another, and some drop-ins beside them."""
    for name in UNITS:
        text = (SYSTEMD / name).read_text()
        (tmp_path / name).write_text(text.replace("/usr/bin/disksla", str(DISKSLA)))
    for drop_in in drop_ins:
        directory = tmp_path / "disksla-exporter.service.d"
        directory.mkdir(exist_ok=True)
        shutil.copy(drop_in, directory)
    return [str(tmp_path / name) for name in UNITS]


@needs_systemd
@pytest.mark.parametrize("drop_ins", [[], DROP_INS], ids=["alone", "with-drop-ins"])
def test_systemd_has_nothing_to_say_against_them(tmp_path: Path, drop_ins: list[Path]) -> None:
    verified = analyze("verify", *installed(tmp_path, *drop_ins))
    assert (verified.returncode, verified.stderr, verified.stdout) == (0, "", "")


@needs_systemd
def test_systemd_does_speak_up(tmp_path: Path) -> None:
    drop_in = tmp_path / "wrong.conf"
    drop_in.write_text("[Service]\nPrivateDevice=yes\n")
    verified = analyze("verify", *installed(tmp_path, drop_in))
    assert "PrivateDevice" in verified.stderr


@needs_systemd
@pytest.mark.parametrize("name", MOST_EXPOSED)
def test_little_is_left_open(tmp_path: Path, name: str) -> None:
    drop_ins = [path for path in DROP_INS if path.name == name]
    service, _ = installed(tmp_path, *drop_ins)
    told = analyze("security", "--offline=true", "--no-pager", service).stdout
    exposure = re.search(r"Overall exposure level for \S+: ([\d.]+)", told)
    assert exposure is not None, told
    assert float(exposure[1]) <= MOST_EXPOSED[name]


def test_every_drop_in_is_measured() -> None:
    assert {path.name for path in DROP_INS} == MOST_EXPOSED.keys() - {""}


@pytest.mark.parametrize(
    "path", [SYSTEMD / "disksla-exporter.service", *DROP_INS], ids=lambda path: path.name
)
def test_every_directive_has_its_reason(path: Path) -> None:
    """Directives that share one follow each other; what says itself is left alone."""
    plain = ("Description=", "Documentation=", "ExecStart=", "WantedBy=")
    before = ""
    for line in path.read_text().splitlines():
        if re.match(r"\w+=", line) and not line.startswith(plain):
            assert before.startswith("#") or re.match(r"\w+=", before), line
        before = line

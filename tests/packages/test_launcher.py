"""The command as it is installed: nobody else has a say in what it runs."""

import importlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LAUNCHER = ROOT / "packaging" / "files" / "disksla"
LIBRARIES = "/usr/lib/disksla"
HOLD = """
import os, subprocess, sys
from disksla.fio.sandbox import ProcessLimits, sandbox_command
def main():
    limits = ProcessLimits(os.getpid(), None, 2**32, gentle=False)
    return subprocess.run(sandbox_command(limits, ("/bin/echo", "held")), cwd="/proc").returncode
"""
HONEST = "import sys\ndef main():\n    print(sys.argv[1:])\n    return 7\n"
EVIL = "raise SystemExit('led astray')\n"


@pytest.fixture
def launch(tmp_path: Path) -> list[str]:
    """Give the command, with libraries of ours and this interpreter in the place of Debian's."""
    shutil.copytree(ROOT / "exporter" / "disksla", tmp_path / "lib" / "disksla")
    for library in ("msgspec", "psutil"):
        [home] = importlib.import_module(library).__path__
        (tmp_path / "lib" / library).symlink_to(home)
    (tmp_path / "lib" / "disksla" / "cli.py").write_text(HONEST)
    text = LAUNCHER.read_text()
    assert text.count(LIBRARIES) == 1
    installed = tmp_path / "disksla"
    installed.write_text(text.replace(LIBRARIES, str(tmp_path / "lib")))
    flags = text.splitlines()[0].removeprefix("#!/usr/bin/python3 ")
    return [sys.executable, flags, str(installed), "one", "--two"]


def test_it_hands_on_arguments_and_status(launch: list[str]) -> None:
    ended = subprocess.run(launch, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("['one', '--two']\n", 7), ended.stderr


def test_neither_environment_nor_place_lead_it_astray(launch: list[str], tmp_path: Path) -> None:
    evil = tmp_path / "evil"
    site = evil / ".local" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    for place in (evil, site):
        (place / "disksla").mkdir(parents=True)
        for name in ("disksla/__init__.py", "sitecustomize.py", "usercustomize.py", "sys.py"):
            (place / name).write_text(EVIL)
    environment = {
        **os.environ,
        "HOME": str(evil),
        "PYTHONPATH": str(evil),
        "PYTHONSTARTUP": str(evil / "sitecustomize.py"),
        "PYTHONUSERBASE": str(evil / ".local"),
    }
    ended = subprocess.run(
        launch, capture_output=True, text=True, check=False, env=environment, cwd=evil
    )
    assert (ended.stdout, ended.returncode) == ("['one', '--two']\n", 7), ended.stderr


def test_nor_what_it_starts(launch: list[str], tmp_path: Path) -> None:
    (tmp_path / "lib" / "disksla" / "cli.py").write_text(HOLD)
    (tmp_path / "evil").mkdir()
    (tmp_path / "evil" / "msgspec.py").write_text(EVIL)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "evil")}
    ended = subprocess.run(launch, capture_output=True, text=True, check=False, env=environment)
    assert (ended.stdout, ended.returncode) == ("held\n", 0), ended.stderr

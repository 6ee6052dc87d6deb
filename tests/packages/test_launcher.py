"""The installed command: it ignores PYTHON* variables, user packages and the directory."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

ROOT = Path(__file__).resolve().parent.parent.parent
LAUNCHER = ROOT / "packaging" / "files" / "disksla"
LIBRARIES = "/usr/lib/disksla"
RUN_SANDBOXED = """
import os, subprocess, sys
from disksla.measure.fio.sandbox import ProcessLimits, sandbox_command
def main():
    limits = ProcessLimits(os.getpid(), None, 2**32, gentle=False)
    command = sandbox_command(limits, ("/bin/echo", "sandboxed"))
    return subprocess.run(command, cwd="/proc").returncode
"""
PRINT_ARGUMENTS = "import sys\ndef main():\n    print(sys.argv[1:])\n    return 7\n"
FAIL = "raise SystemExit('imported from the wrong directory')\n"


@pytest.fixture
def launch(tmp_path: Path) -> list[str]:
    """Return the command, with copied libraries and this interpreter instead of Debian's."""
    shutil.copytree(ROOT / "exporter" / "disksla", tmp_path / "lib" / "disksla")
    for library in Path(msgspec.__file__).parent.parent.iterdir():
        if "disksla" not in library.name:
            (tmp_path / "lib" / library.name).symlink_to(library)
    (tmp_path / "lib" / "disksla" / "commands" / "cli.py").write_text(PRINT_ARGUMENTS)
    text = LAUNCHER.read_text()
    assert text.count(LIBRARIES) == 1
    installed = tmp_path / "disksla"
    installed.write_text(text.replace(LIBRARIES, str(tmp_path / "lib")))
    flags = text.splitlines()[0].removeprefix("#!/usr/bin/python3 ")
    return [sys.executable, flags, str(installed), "one", "--two"]


@pytest.fixture
def other_python(launch: list[str], tmp_path: Path) -> Path:
    """Return where a Python is looked for, and let the libraries be for that one only."""
    installed = Path(launch[2])
    text = re.sub(r"(?m)^PYTHONS = .*", 'PYTHONS = ("3.0",)', installed.read_text())
    installed.write_text(text.replace("/usr/bin/python{", f"{tmp_path}/python{{"))
    return tmp_path / "python3.0"


def test_launcher_passes_arguments_and_status(launch: list[str]) -> None:
    ended = subprocess.run(launch, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == ("['one', '--two']\n", 7), ended.stderr


def test_launcher_finds_a_supported_python_beside_that_of_the_system(
    launch: list[str], other_python: Path
) -> None:
    other_python.write_text('#!/bin/sh\nprintf "<%s>" "$@"\n')
    other_python.chmod(0o755)
    ended = subprocess.run(launch, capture_output=True, text=True, check=False)
    assert (ended.stdout, ended.returncode) == (f"<-IS><{launch[2]}><one><--two>", 0), ended.stderr


@pytest.mark.usefixtures("other_python")
def test_launcher_without_a_supported_python_fails(launch: list[str]) -> None:
    ended = subprocess.run(launch, capture_output=True, text=True, check=False)
    found = f"{sys.version_info.major}.{sys.version_info.minor}"
    assert ended.stderr == (
        f"disksla: start failed: found Python {found}; expected one of 3.0 in /usr/bin;"
        " install python3.11\n"
    )
    assert (ended.stdout, ended.returncode) == ("", 2)


def test_process_is_named_after_the_command(launch: list[str], tmp_path: Path) -> None:
    show = "def main():\n    print(open('/proc/self/comm').read(), end='')\n"
    (tmp_path / "lib" / "disksla" / "commands" / "cli.py").write_text(show)
    ended = subprocess.run(launch, capture_output=True, text=True, check=False)
    assert ended.stdout == "disksla\n", ended.stderr


def test_launcher_ignores_environment_and_directory(launch: list[str], tmp_path: Path) -> None:
    other = tmp_path / "other"
    site = other / ".local" / "lib" / f"python3.{sys.version_info.minor}" / "site-packages"
    for directory in (other, site):
        (directory / "disksla").mkdir(parents=True)
        for name in ("disksla/__init__.py", "sitecustomize.py", "usercustomize.py", "sys.py"):
            (directory / name).write_text(FAIL)
    environment = {
        **os.environ,
        "HOME": str(other),
        "PYTHONPATH": str(other),
        "PYTHONSTARTUP": str(other / "sitecustomize.py"),
        "PYTHONUSERBASE": str(other / ".local"),
    }
    ended = subprocess.run(
        launch, capture_output=True, text=True, check=False, env=environment, cwd=other
    )
    assert (ended.stdout, ended.returncode) == ("['one', '--two']\n", 7), ended.stderr


def test_sandboxed_command_ignores_pythonpath(launch: list[str], tmp_path: Path) -> None:
    (tmp_path / "lib" / "disksla" / "commands" / "cli.py").write_text(RUN_SANDBOXED)
    (tmp_path / "other").mkdir()
    (tmp_path / "other" / "msgspec.py").write_text(FAIL)
    environment = {**os.environ, "PYTHONPATH": str(tmp_path / "other")}
    ended = subprocess.run(launch, capture_output=True, text=True, check=False, env=environment)
    assert (ended.stdout, ended.returncode) == ("sandboxed\n", 0), ended.stderr

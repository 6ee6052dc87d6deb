"""The workflows of GitHub: valid, for each supported Python, and with targets of the Makefile."""

import configparser
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest
import yaml

ROOT = Path(__file__).resolve().parent.parent.parent
WORKFLOWS = sorted((ROOT / ".github" / "workflows").glob("*.yml"))


def job_of(name: str) -> Any:
    text = (ROOT / ".github" / "workflows" / f"{name}.yml").read_text(encoding="utf-8")
    return yaml.safe_load(text)["jobs"][name]


@pytest.mark.skipif(shutil.which("actionlint") is None, reason="NOT TESTED: actionlint is missing")
@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actionlint_accepts_workflow(path: Path) -> None:
    done = subprocess.run(["actionlint", path], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout


@pytest.mark.parametrize("path", WORKFLOWS, ids=lambda path: path.stem)
def test_actions_are_pinned_by_commit(path: Path) -> None:
    """A tag can be moved to another commit."""
    used = re.findall(r"uses: +(.+)", path.read_text(encoding="utf-8"))
    assert used
    assert [line for line in used if not re.fullmatch(r"\S+@[0-9a-f]{40} # v[\d.]+", line)] == []


def test_check_runs_on_each_supported_python() -> None:
    setup = configparser.ConfigParser()
    setup.read(ROOT / "setup.cfg", encoding="utf-8")
    classifiers = re.findall(
        r"Python :: (3\.\d+)$", setup["metadata"]["classifiers"], re.MULTILINE
    )
    assert job_of("check")["strategy"]["matrix"]["python"] == classifiers


def test_nightly_runs_existing_targets() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"^([a-z]+):.*## ", makefile, re.MULTILINE))
    run = [target.split()[0] for target in job_of("nightly")["strategy"]["matrix"]["target"]]
    assert run
    assert set(run) <= targets

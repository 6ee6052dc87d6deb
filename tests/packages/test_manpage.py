"""The generated man page, as mandoc shows it."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from commandline import arguments, commands, placeholder
from disksla.commands.cli import build_parser
from disksla.commands.command_table import COMMANDS
from manpage import manual

needs_mandoc = pytest.mark.skipif(
    shutil.which("mandoc") is None, reason="NOT TESTED: mandoc is not installed"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("man") / "disksla.1"
    file.write_text(manual(build_parser(), "1.2.3", "2026-11-20"), encoding="utf-8")
    return file


def mandoc(*arguments_: str) -> str:
    ended = subprocess.run(
        ["mandoc", *arguments_], capture_output=True, text=True, check=False, env={**os.environ}
    )
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def shown(page: Path) -> str:
    """Return the page for a terminal of 80 columns, without bold and underline."""
    return re.sub(".\b", "", mandoc("-Tutf8", "-Owidth=78", str(page)))


@needs_mandoc
def test_page_passes_mandoc_lint(page: Path) -> None:
    assert mandoc("-Tlint", "-Wstyle", str(page)) == ""


@needs_mandoc
def test_page_fits_80_columns(shown: str) -> None:
    assert max(map(len, shown.splitlines())) <= 80


@needs_mandoc
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_has_all_its_arguments(shown: str, command: str) -> None:
    section = re.search(
        rf"^   disksla {command}\b.*?(?=^ {{0,3}}\S)", shown, re.MULTILINE | re.DOTALL
    )
    assert section, command
    for action in arguments(commands(build_parser())[command]):
        name = action.option_strings[-1] if action.option_strings else placeholder(action)
        assert name in section[0], name


@needs_mandoc
def test_shared_option_is_listed_once(shown: str) -> None:
    assert len(re.findall(r"^ +--path\.procfs DIR$", shown, re.MULTILINE)) == 1
    assert "(default: /proc)" in shown


@needs_mandoc
def test_choices_and_defaults_are_shown(shown: str) -> None:
    assert "--log.format logfmt|json" in shown
    assert "format of log lines (default: logfmt)" in shown


@needs_mandoc
def test_version_and_date_are_shown(shown: str) -> None:
    assert re.search(r"disksla 1\.2\.3 +2026-11-20", shown)

"""The man page, from the parser."""

import os
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from commandline import arguments, commands, placeholder
from disksla.cli import COMMANDS, build_parser
from manpage import manual

needs_mandoc = pytest.mark.skipif(
    shutil.which("mandoc") is None, reason="NOT TESTED: mandoc is not installed"
)


@pytest.fixture(scope="module")
def page(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("man") / "disksla.1"
    file.write_text(manual(build_parser(), "1.2.3", "2026-11-20"), encoding="utf-8")
    return file


def mandoc(*words: str) -> str:
    ended = subprocess.run(
        ["mandoc", *words], capture_output=True, text=True, check=False, env={**os.environ}
    )
    return ended.stdout + ended.stderr


@pytest.fixture(scope="module")
def shown(page: Path) -> str:
    """Give the page as a terminal 80 columns wide shows it, without bold and underline."""
    return re.sub(".\b", "", mandoc("-Tutf8", "-Owidth=78", str(page)))


@needs_mandoc
def test_it_is_in_order(page: Path) -> None:
    assert mandoc("-Tlint", "-Wstyle", str(page)) == ""


@needs_mandoc
def test_it_fits_a_terminal(shown: str) -> None:
    assert max(map(len, shown.splitlines())) <= 80


@needs_mandoc
@pytest.mark.parametrize("command", COMMANDS)
def test_each_command_is_told_with_all_its_arguments(shown: str, command: str) -> None:
    section = re.search(
        rf"^   disksla {command}\b.*?(?=^ {{0,3}}\S)", shown, re.MULTILINE | re.DOTALL
    )
    assert section, command
    for action in arguments(commands(build_parser())[command]):
        name = action.option_strings[-1] if action.option_strings else placeholder(action)
        assert name in section[0], name


@needs_mandoc
def test_an_option_of_several_commands_is_explained_once(shown: str) -> None:
    assert len(re.findall(r"^ +--path\.procfs DIR$", shown, re.MULTILINE)) == 1
    assert "mount point of procfs (default: /proc)" in shown


@needs_mandoc
def test_what_can_be_chosen_and_the_default_are_told(shown: str) -> None:
    assert "--log.format logfmt|json" in shown
    assert "format of log lines (default: logfmt)" in shown


@needs_mandoc
def test_the_version_and_the_day_are_told(shown: str) -> None:
    assert re.search(r"disksla 1\.2\.3 +2026-11-20", shown)

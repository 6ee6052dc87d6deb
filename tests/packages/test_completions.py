"""Completion, in real shells."""

import shutil
import subprocess
from pathlib import Path

import pytest

from completions import script
from disksla.cli import COMMANDS, build_parser
from support.daemon_process import PATIENCE_S

TERMS = ("made.up-ssd", "made.up-hdd")

ASK_BASH = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
_shtab_disksla disksla "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""

ASK_ZSH = """
zmodload zsh/zpty
zpty -b shell zsh -f
zpty -w shell "PROMPT= ; fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w shell "print ready-$$"
zpty -r -m shell said "*ready-$$*ready-$$*" || exit 1
zpty -w -n shell "$2"$'\\t'
zpty -r -m shell said "*$3*" && print completed
"""


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bash") / "disksla"
    file.write_text(script(build_parser(), "bash", TERMS), encoding="utf-8")
    return file


def complete(file: Path, *words: str) -> list[str]:
    """Give what bash offers after these words, the last of which is not finished."""
    ended = subprocess.run(
        ["bash", "-c", ASK_BASH, "ask", str(file), *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return ended.stdout.split()


def test_the_beginning_of_a_command(bash: Path) -> None:
    assert complete(bash, "disksla", "li") == ["limits"]


def test_all_commands(bash: Path) -> None:
    assert set(complete(bash, "disksla", "")) == set(COMMANDS)


def test_options_of_the_command_that_was_named(bash: Path) -> None:
    assert complete(bash, "disksla", "serve", "--web.t") == ["--web.telemetry-path"]
    assert complete(bash, "disksla", "once", "--web.t") == []


def test_values_that_can_be_chosen(bash: Path) -> None:
    offered = complete(bash, "disksla", "serve", "--log.level", "")
    assert offered == ["debug", "info", "warning", "error"]


@pytest.mark.parametrize("words", [("limits",), ("verify", "vda", "--terms")])
def test_terms(bash: Path, words: tuple[str, ...]) -> None:
    assert complete(bash, "disksla", *words, "made") == list(TERMS)


def test_devices_of_this_machine(bash: Path) -> None:
    devices = {path.name for path in Path("/sys/class/block").glob("*")}
    assert set(complete(bash, "disksla", "explain", "")) == devices


def test_files_and_directories(bash: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.yml").touch()
    (tmp_path / "settled").mkdir()
    place = str(tmp_path / "set")
    files = complete(bash, "disksla", "check-config", place)
    assert sorted(files) == [str(tmp_path / "settings.yml"), str(tmp_path / "settled")]
    assert complete(bash, "disksla", "serve", "--path.sysfs", place) == [str(tmp_path / "settled")]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="NOT TESTED: zsh is not installed")
@pytest.mark.parametrize(
    ("begun", "finished"),
    [
        ("disksla li", "disksla limits"),
        ("disksla limits made.", "disksla limits made.up-"),
        ("disksla serve --log.f", "disksla serve --log.format"),
    ],
)
def test_zsh_completes(tmp_path: Path, begun: str, finished: str) -> None:
    (tmp_path / "_disksla").write_text(script(build_parser(), "zsh", TERMS), encoding="utf-8")
    ended = subprocess.run(
        ["zsh", "-f", "-c", ASK_ZSH, "ask", str(tmp_path), begun, finished],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ended.stdout == "completed\n", ended.stderr

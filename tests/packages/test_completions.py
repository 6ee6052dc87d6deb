"""Shell completion, in real shells."""

import shutil
import subprocess
from pathlib import Path

import pytest

from completions import script
from disksla.commands.cli import build_parser
from disksla.commands.command_table import COMMANDS
from support.daemon_process import PATIENCE_S

TERMS = ("example.cloud-ssd", "example.cloud-hdd")

COMPLETE_IN_BASH = """
source "$1"; shift
COMP_WORDS=("$@") COMP_CWORD=$(($# - 1)) COMP_LINE="$*" COMP_POINT=${#COMP_LINE}
_shtab_disksla disksla "${COMP_WORDS[COMP_CWORD]}" "${COMP_WORDS[COMP_CWORD - 1]}"
printf '%s\\n' "${COMPREPLY[@]}"
"""

COMPLETE_IN_ZSH = """
zmodload zsh/zpty
zpty -b shell zsh -f
zpty -w shell "PROMPT= ; fpath=($1 \\$fpath); autoload -Uz compinit; compinit -u -D"
zpty -w shell "print ready-$$"
zpty -r -m shell output "*ready-$$*ready-$$*" || exit 1
zpty -w -n shell "$2"$'\\t'
zpty -r -m shell output "*$3*" && print completed
"""


@pytest.fixture(scope="module")
def bash(tmp_path_factory: pytest.TempPathFactory) -> Path:
    file = tmp_path_factory.mktemp("bash") / "disksla"
    file.write_text(script(build_parser(), "bash", TERMS), encoding="utf-8")
    return file


def complete(file: Path, *words: str) -> list[str]:
    """Return the completions that bash offers for the last of these words."""
    ended = subprocess.run(
        ["bash", "-c", COMPLETE_IN_BASH, "complete", str(file), *words],
        capture_output=True,
        text=True,
        check=True,
        timeout=PATIENCE_S,
    )
    return ended.stdout.split()


def test_bash_completes_a_command(bash: Path) -> None:
    assert complete(bash, "disksla", "li") == ["limits"]


def test_bash_offers_all_commands(bash: Path) -> None:
    assert set(complete(bash, "disksla", "")) == {
        name for name, each in COMMANDS.items() if each.purpose
    }


def test_bash_offers_options_of_the_command(bash: Path) -> None:
    assert complete(bash, "disksla", "serve", "--web.t") == ["--web.telemetry-path"]
    assert complete(bash, "disksla", "top", "--web.t") == []


def test_bash_offers_choices_of_an_option(bash: Path) -> None:
    offered = complete(bash, "disksla", "serve", "--log.level", "")
    assert offered == ["debug", "info", "warning", "error"]


@pytest.mark.parametrize("words", [("limits",), ("verify", "vda", "--terms")])
def test_bash_offers_terms(bash: Path, words: tuple[str, ...]) -> None:
    assert complete(bash, "disksla", *words, "example") == list(TERMS)


def test_bash_offers_devices_of_this_host(bash: Path) -> None:
    devices = {path.name for path in Path("/sys/class/block").glob("*")}
    assert set(complete(bash, "disksla", "explain", "")) == devices


def test_bash_offers_files_and_directories(bash: Path, tmp_path: Path) -> None:
    (tmp_path / "settings.yml").touch()
    (tmp_path / "settled").mkdir()
    prefix = str(tmp_path / "set")
    files = complete(bash, "disksla", "check-config", "--config.file", prefix)
    assert sorted(files) == [str(tmp_path / "settings.yml"), str(tmp_path / "settled")]
    assert complete(bash, "disksla", "serve", "--path.sysfs", prefix) == [
        str(tmp_path / "settled")
    ]


@pytest.mark.skipif(shutil.which("zsh") is None, reason="NOT TESTED: zsh is not installed")
@pytest.mark.parametrize(
    ("typed", "completed"),
    [
        ("disksla li", "disksla limits"),
        ("disksla limits exam", "disksla limits example.cloud-"),
        ("disksla serve --log.f", "disksla serve --log.format"),
    ],
)
def test_zsh_completes(tmp_path: Path, typed: str, completed: str) -> None:
    (tmp_path / "_disksla").write_text(script(build_parser(), "zsh", TERMS), encoding="utf-8")
    ended = subprocess.run(
        ["zsh", "-f", "-c", COMPLETE_IN_ZSH, "complete", str(tmp_path), typed, completed],
        capture_output=True,
        text=True,
        check=False,
        timeout=PATIENCE_S,
    )
    assert ended.stdout == "completed\n", ended.stderr

"""Commands for a shell: as `--dry-run` prints them, and as they are refused."""

import shlex
from collections.abc import Mapping, Sequence

import pytest

from disksla.commands.cli import main


def commands_in(text: str) -> list[str]:
    """Return the commands, each on one line; check that a terminal of 80 columns shows them."""
    assert max(map(len, text.splitlines())) <= 80 or "/pytest-of-" in text
    return text.replace(" \\\n    ", " ").splitlines()


def refusals(
    capsys: pytest.CaptureFixture[str],
    command: str,
    lines: str,
    flags: Sequence[str] = (),
    paths: Mapping[str, object] | None = None,
) -> str:
    """Return what each line of arguments is refused with, for a golden file.

    The flags are added and not shown. Words in capitals stand for paths.
    """
    found = []
    for line in lines.strip().splitlines():
        words = line
        for name, path in (paths or {}).items():
            words = words.replace(name, str(path))
        assert main([*command.split(), *shlex.split(words), *flags]) == 2
        captured = capsys.readouterr()
        text = f"$ disksla {command} {line}\n{captured.err}"
        for name, path in (paths or {}).items():
            text = text.replace(str(path), name)
        assert captured.out == ""
        found.append(text)
    return "".join(found)

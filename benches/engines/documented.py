"""Commands and files in docs/fleet.md, with which the tests run the programs."""

import re
import shlex
from collections.abc import Mapping
from pathlib import Path

PAGE = Path(__file__).resolve().parents[2] / "docs" / "fleet.md"
SECTION = "\n## On other engines\n"


def blocks(language: str) -> list[str]:
    """Return the blocks of code of the section, in a language."""
    _, _, section = PAGE.read_text(encoding="utf-8").partition(SECTION)
    text = section.partition("\n## ")[0]
    return re.findall(rf"^```{language}\n(.*?)^```$", text, flags=re.MULTILINE | re.DOTALL)


def options(program: str) -> list[str]:
    """Return the options of the only documented command of a program, such as `thanos rule`."""
    words = program.split()
    [found] = [
        command[len(words) :]
        for command in (shlex.split(block.replace("\\\n", "")) for block in blocks("sh"))
        if command[: len(words)] == words
    ]
    return found


def with_values(found: list[str], values: Mapping[str, str | list[str]]) -> list[str]:
    """Return the options with other values, which are the addresses and files of a test.

    An option with a list is repeated; one with an empty value is a switch. One that is not in
    `found` is added.
    """
    kept = [option for option in found if option.partition("=")[0] not in values]
    return kept + [
        f"{name}={value}" if value else name
        for name, given in values.items()
        for value in ([given] if isinstance(given, str) else given)
    ]

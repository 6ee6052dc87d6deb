"""Arguments of commands as tables of text, as their help shows them; and those of long runs.

Little is loaded here, because helpers with privileges use it.
"""

import argparse
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any


def add_options(
    container: argparse._ActionsContainer, table: str, more: Mapping[str, Mapping[str, Any]] = {}
) -> None:
    """Add the arguments of a table: names, the word for the value, two blanks, and the help.

    A line that is indented continues the help. `?` behind a word without names is for one value
    or none, and `*` for any number. The value of FILE and DIR is a path; what has no value is a
    flag. `more` has what argparse has to know besides, by the last name.
    """
    for entry in re.split(r"\n(?=\S)", table.strip()):
        words, about = re.split(r"\s{2,}", entry, maxsplit=1)
        names = [word.rstrip(",") for word in words.split() if word.startswith("-")]
        value = words.split()[-1] if not words.split()[-1].startswith("-") else ""
        nargs = value[-1] if value.endswith(("?", "*")) else None
        value = value.rstrip("?*")
        last = names[-1] if names else value.lower() + "s" * (nargs == "*")
        keys: dict[str, Any] = {"help": " ".join(about.split())}
        if names:
            keys["dest"] = re.sub("[.-]", "_", last.lstrip("-"))
        if value:
            keys |= {"metavar": value, "nargs": nargs}
            keys |= {"type": Path} if value in {"FILE", "DIR"} else {}
        elif "choices" not in more.get(last, {}):
            keys["action"] = "store_true"
        container.add_argument(*(names or [last]), **keys | dict(more.get(last, {})))


_LOG = """
--log.level   minimum severity of log lines (default: %(default)s)
--log.format  format of log lines (default: %(default)s); in the systemd journal, lines begin with
              their severity and have no time
"""


def add_log_options(parser: argparse.ArgumentParser) -> None:
    """Add --log.level and --log.format."""
    levels = {"choices": ("debug", "info", "warning", "error"), "default": "info"}
    formats = {"choices": ("logfmt", "json"), "default": "logfmt"}
    add_options(parser, _LOG, {"--log.level": levels, "--log.format": formats})


def add_paths_of(parser: argparse.ArgumentParser, defaults: Mapping[str, Path]) -> None:
    """Add --path.OPTION for each option, in a group at the end of the help."""
    group = parser.add_argument_group("paths of the host, such as inside a container")
    for option, default in defaults.items():
        add_options(
            group,
            f"--path.{option} DIR  (default: %(default)s)",
            {f"--path.{option}": {"default": default}},
        )

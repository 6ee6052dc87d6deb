"""Options that are known of a run of fio whose normal output is in a text.

fio prints few of them. The command line or the job file may be in the text.
"""

import re
from collections.abc import Sequence

from disksla.verification.fio_options import Options

_SPACED = r"(direct|buffered|rate_iops|filename)[= ]"
_OTHER = (
    r"(rate|directory|thinktime|nrfiles|read_iolog"
    r"|iodepth_low|iodepth_batch(?:_submit|_complete(?:_min)?)?)="
)
_OPTION = re.compile(
    rf"(?:^|[\s'\"])-{{0,2}}(?:{_SPACED}|{_OTHER})['\"]?([^\s'\"]{{1,200}})", re.ASCII
)
_COMMAND = re.compile(r"(?:^|[\s$#>/])fio\s+(?:-|\\$)", re.ASCII)
_NAMED = re.compile(r"\s--?name[= ]", re.ASCII)
_JOB_FILE = re.compile(
    r"(?<!>)\s[^\s=>-][^\s=]{0,200}\.(?:fio|job|ini|conf|cfg|txt)(?:\s|$)", re.ASCII
)


def is_command(line: str) -> bool:
    """Return whether a line has a command line of fio."""
    return _COMMAND.search(line) is not None


def options_in(lines: Sequence[str]) -> Options:
    """Return the options of command lines or job files that have one value only."""
    return {name: next(iter(each)) for name, each in _values(lines).items() if len(each) == 1}


def _values(lines: Sequence[str]) -> dict[str, dict[str, None]]:
    """Return the values of each option, in their order."""
    values: dict[str, dict[str, None]] = {}
    for line in lines:
        for either, other, value in _OPTION.findall(line):
            values.setdefault(either or other, {})[value] = None
    return values


def _of_one_run(lines: Sequence[str]) -> Options:
    """Return the options of a command line or job file, in which each `filename` adds files."""
    names = _values(lines).get("filename", {})
    return options_in(lines) | ({"filename": ":".join(names)} if names else {})


def options_of_run(before: Sequence[str], everywhere: Options) -> Options:
    """Return the options of a run: those above it, and what the text says once for all runs.

    A command line that names its job has all options; without direct=1, I/O is buffered.
    """
    place = max((place for place, line in enumerate(before) if is_command(line)), default=None)
    lines = [] if place is None else before[place:]
    command = " ".join(lines)
    if not _NAMED.search(command) or _JOB_FILE.search(command):
        return everywhere | _of_one_run(before)
    return {"direct": "0"} | _of_one_run(lines)

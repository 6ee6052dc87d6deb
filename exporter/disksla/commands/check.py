"""`disksla check`: one line for Nagios, Icinga and CI, from what the daemon says.

It follows the Monitoring Plugins Development Guidelines: one line with performance data, and exit
status 0 (OK), 1 (warning), 2 (critical) or 3 (unknown).
"""

import argparse
import re
import signal
import sys
import textwrap
from collections.abc import Mapping, Sequence
from itertools import accumulate
from typing import Any, NamedTuple, NoReturn

from disksla import REVISION, VERSION
from disksla.base.console import to_json
from disksla.base.errors import DiskslaError
from disksla.base.text import escape_control
from disksla.base.units import format_duration, format_percent, parse_duration_s
from disksla.commands._daemon import access_of, add_remote_url, chosen_disks
from disksla.commands._option_table import add_options
from disksla.tell.api import DiskDocument
from disksla.tell.api.daemon_client import ask_disks
from disksla.tell.explanation import PROBLEMS, SHOWN_TEXT, watched_period
from disksla.verdict.throttling import LIMITED_VERDICTS

STATUSES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
_DID: Mapping[str, str] = {name: SHOWN_TEXT[name].did for name in PROBLEMS}
_OK, _WARNING, _CRITICAL, _UNKNOWN = range(4)
_LATENCY = "latency"
_MOST_TEXT = 700
"""Characters. A long text is cut where it is shown."""
_MOST_BYTES = 4000
"""Nagios reads 4 kB."""
_NAMES = (*LIMITED_VERDICTS, "slow", _LATENCY)


class Threshold(NamedTuple):
    """What is too much: a share of the last five minutes, or a latency in seconds."""

    name: str
    most: float

    def is_above(self, measured: Mapping[str, float | None]) -> bool:
        """Return whether what was measured is above it; what is not known is not."""
        value = measured[self.name]
        return value is not None and value > self.most


def add_arguments(parser: argparse.ArgumentParser) -> None:
    """Add the arguments of this command."""
    add_options(parser, "DISK*  kernel name, mount point or NAMESPACE/CLAIM (default: all disks)")
    for letter, status, default in (
        ("-w", "warning", "throttled=25%,below=25%,slow=25%"),
        ("-c", "critical", "stalled"),
    ):
        add_options(
            parser,
            f"""
{letter}, --{status} NAME[=MOST],...  slow, throttled, below or stalled, with a share of the last
    five minutes (default: none at all), or latency with a time, such as
    throttled=10%%,latency=20ms (default: {default.replace("%", "%%")})
""",
            {f"--{status}": {"default": default}},
        )
    add_options(
        parser,
        """
-t, --timeout SECONDS  when to give up, with status 3 (default: %(default)s)
--json                 print a JSON object with what was measured
""",
        {"--timeout": {"type": int, "default": 10}},
    )
    parser.add_argument(
        "-V", "--version", action="version", version=f"disksla {VERSION} (commit {REVISION})"
    )
    add_remote_url(parser)
    parser.error = _fail  # type: ignore[method-assign]  # status 2 would be critical
    parser.exit = lambda *_: sys.exit(_UNKNOWN)  # type: ignore[method-assign]  # after a help


def run(arguments: argparse.Namespace) -> int:
    """Print the line; return the exit status."""

    def give_up(*_: object) -> NoReturn:
        _fail(f"no answer within {arguments.timeout} s")

    try:
        signal.signal(signal.SIGALRM, give_up)
        signal.alarm(arguments.timeout)
        limits = [parse_thresholds(arguments.warning), parse_thresholds(arguments.critical)]
        disks = chosen_disks(_ask(arguments), arguments.disks)
        status, line = check(disks, *limits)
    except DiskslaError as error:
        _fail(str(error))
    except Exception as error:  # noqa: BLE001 -- the exit status of Python's would be a warning
        _fail(f"a bug of disksla, please report it: {error!r}")
    finally:
        signal.alarm(0)
    if arguments.json:
        line = to_json(document(disks, status, line))
    print(line)
    return status


def document(disks: Sequence[DiskDocument], status: int, line: str) -> dict[str, Any]:
    """Return status, text and all that was measured, as shares of one and seconds."""
    text = line.partition(" | ")[0]
    measured = {disk.device: _measured(disk) for disk in disks}
    return {"status": STATUSES[status], "text": text, "disks": measured}


def parse_thresholds(text: str) -> list[Threshold]:
    """Return the thresholds of 'throttled=10%,stalled'. Raise DiskslaError."""
    return [_threshold(word.strip()) for word in text.split(",") if word.strip()]


def _threshold(word: str) -> Threshold:
    name, _, most = word.partition("=")
    try:
        if name == _LATENCY:
            return Threshold(name, parse_duration_s(most))
        if name in PROBLEMS:
            share = float(most.removesuffix("%") or 0) / 100
            if 0 <= share <= 1 and (most.endswith("%") or not most):
                return Threshold(name, share)
    except ValueError:
        pass
    raise DiskslaError(
        f"cannot read the threshold: found '{word}'; expected throttled=10%, below=10%, slow=10%,"
        " stalled or latency=20ms"
    )


def check(
    disks: Sequence[DiskDocument], warning: Sequence[Threshold], critical: Sequence[Threshold]
) -> tuple[int, str]:
    """Return the exit status, and the line with what is above a threshold, the worst first."""
    worst, problems, data = _OK, dict[int, list[str]](), list[str]()
    for disk in disks:
        measured = _measured(disk)
        above = {each.name: _WARNING for each in warning if each.is_above(measured)}
        above |= {each.name: _CRITICAL for each in critical if each.is_above(measured)}
        for name, status in above.items():
            worst = max(worst, status)
            said = _said(name, measured[name], watched_period([disk.conditions()]))
            problems.setdefault(status, []).append(f"{disk.device} {said}")
        items = [_performance(disk.device, name, measured, warning, critical) for name in _NAMES]
        data.append(" ".join(filter(None, items)))
    texts = [each for status in (_CRITICAL, _WARNING) for each in problems.get(status, [])]
    text = "; ".join(texts) or f"{len(disks)} {'disk' if len(disks) == 1 else 'disks'}"
    return worst, _with_data(_line(worst, text), [each for each in data if each])


def _line(status: int, text: str) -> str:
    """Return the line up to the bar that performance data follows."""
    plain = escape_control(text).replace("|", "/")
    short = textwrap.shorten(plain, _MOST_TEXT, placeholder=" ...")
    return f"DISKSLA {STATUSES[status]} - {short}"


def _with_data(line: str, data: Sequence[str]) -> str:
    """Return the line with the performance data of the first disks, of as many as fit."""
    sizes = accumulate((len(f" {each}".encode()) for each in data), initial=len(line.encode()))
    fitting = sum(size <= _MOST_BYTES for size in sizes) - 1
    if fitting < len(data):
        line += f" (performance data of {fitting} of {len(data)} disks)"
    return f"{line} | {' '.join(data[:fitting])}" if fitting else line


def _measured(disk: DiskDocument) -> dict[str, float | None]:
    """Return the share of the last five minutes with each verdict, and the present latency."""
    whole_s = sum(disk.verdict_seconds.values())
    shares: dict[str, float | None] = {
        verdict: disk.verdict_seconds[verdict] / whole_s if whole_s else None
        for verdict in LIMITED_VERDICTS
    }
    shares["slow"] = disk.conditions()["slow"] / whole_s if whole_s else None
    return shares | {_LATENCY: disk.latency_s}


def _said(name: str, value: float | None, period: str) -> str:
    if name == _LATENCY:
        return f"takes {format_duration(value or 0.0)} for a request"
    return f"{_DID[name]} for {format_percent(value or 0.0)} of {period}"


def _performance(
    device: str,
    name: str,
    measured: Mapping[str, float | None],
    warning: Sequence[Threshold],
    critical: Sequence[Threshold],
) -> str:
    """Return one item of performance data: 'label'=value, unit, thresholds, least and most."""
    value = measured[name]
    if value is None:
        return ""
    factor, unit, least_and_most = (1, "s", "0") if name == _LATENCY else (100, "%", "0;100")
    limits = [
        next((_number(factor * each.most) for each in most if each.name == name), "")
        for most in (warning, critical)
    ]
    label = escape_control(re.sub(r"['=|\n]", "", f"{device} {name}"))
    return f"'{label}'={_number(factor * value)}{unit};{limits[0]};{limits[1]};{least_and_most}"


def _number(value: float) -> str:
    """Return a number with six decimals at most: the guidelines know no exponents."""
    return f"{value:.6f}".rstrip("0").removesuffix(".")


def _ask(arguments: argparse.Namespace) -> Sequence[DiskDocument]:
    """Return what the daemon says. Raise DiskslaError."""
    reasons: list[str] = []
    document = ask_disks(arguments.url, reasons.append, access=access_of(arguments))
    if document is None:
        raise DiskslaError(f"cannot ask the daemon: {'; '.join(reasons)}")
    return document.disks


def _fail(message: str) -> NoReturn:
    """Print why the status is not known, as a check does, and exit."""
    print(_line(_UNKNOWN, message))
    sys.exit(_UNKNOWN)

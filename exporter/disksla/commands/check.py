"""`disksla check`: one line for Nagios, Icinga and CI, from what the daemon says.

It follows the Monitoring Plugins Development Guidelines: one line with performance data, and exit
status 0 (OK), 1 (warning), 2 (critical) or 3 (unknown).
"""

import argparse
import sys
from collections.abc import Mapping, Sequence
from typing import NamedTuple, NoReturn

from disksla.api import DiskDocument
from disksla.api.daemon_client import ask_disks
from disksla.commands._daemon import access_of, add_remote_url, chosen_disks
from disksla.errors import DiskslaError
from disksla.text import escape_control
from disksla.units import format_duration, format_percent, parse_duration_s
from disksla.verdict import LIMITED_VERDICTS, PROBLEMS

STATUSES = ("OK", "WARNING", "CRITICAL", "UNKNOWN")
_WORDS = {
    "slow": "was slow",
    "throttled": "was throttled",
    "below": "gave less than promised",
    "stalled": "hung",
}
_OK, _WARNING, _CRITICAL, _UNKNOWN = range(4)
_LATENCY = "latency"
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
    parser.add_argument(
        "disks", nargs="*", metavar="DISK", help="kernel name or mount point (default: all disks)"
    )
    for status, default in (
        ("warning", "throttled=25%,below=25%,slow=25%"),
        ("critical", "stalled"),
    ):
        parser.add_argument(
            f"--{status}",
            metavar="NAME[=MOST],...",
            default=default,
            help="slow, throttled, below or stalled, with a share of the last five minutes"
            " (default: none at all), or latency with a time, such as throttled=10%%,latency=20ms"
            f" (default: {default.replace('%', '%%')})",
        )
    add_remote_url(parser)
    parser.error = _fail  # type: ignore[method-assign]  # status 2 would be critical


def run(arguments: argparse.Namespace) -> int:
    """Print the line; return the exit status."""
    try:
        limits = [parse_thresholds(arguments.warning), parse_thresholds(arguments.critical)]
        disks = chosen_disks(_ask(arguments), arguments.disks)
    except DiskslaError as error:
        _fail(str(error))
    status, line = check(disks, *limits)
    print(escape_control(line))
    return status


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
            problems.setdefault(status, []).append(f"{disk.device} {_said(name, measured[name])}")
        data += [_performance(disk.device, name, measured, warning, critical) for name in _NAMES]
    said = [each for status in (_CRITICAL, _WARNING) for each in problems.get(status, [])]
    text = "; ".join(said) or f"{len(disks)} {'disk' if len(disks) == 1 else 'disks'}"
    return worst, f"DISKSLA {STATUSES[worst]} - {text} | {' '.join(filter(None, data))}"


def _measured(disk: DiskDocument) -> dict[str, float | None]:
    """Return the share of the last five minutes with each verdict, and the present latency."""
    whole_s = sum(disk.verdict_seconds.values())
    shares: dict[str, float | None] = {
        verdict: disk.verdict_seconds[verdict] / whole_s if whole_s else None
        for verdict in LIMITED_VERDICTS
    }
    shares["slow"] = disk.slow_s / whole_s if whole_s else None
    return shares | {_LATENCY: disk.latency_s}


def _said(name: str, value: float | None) -> str:
    if name == _LATENCY:
        return f"takes {format_duration(value or 0.0)} for a request"
    return f"{_WORDS[name]} for {format_percent(value or 0.0)} of the last five minutes"


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
    label = f"{device} {name}".replace("'", "").replace("=", "")
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
    text = message.replace("\n", " ").replace("|", "/")  # performance data follows a bar
    print(escape_control(f"DISKSLA {STATUSES[_UNKNOWN]} - {text}"))
    sys.exit(_UNKNOWN)

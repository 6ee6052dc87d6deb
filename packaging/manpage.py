"""Generate the man page disksla(1): `SOURCE_DATE_EPOCH=0 python packaging/manpage.py`.

Options that several commands share are listed once. argparse-manpage would repeat them fourteen
times, and breaks the lines of a synopsis at the spaces inside brackets. Examples and exit statuses
are those of the help.
"""

import argparse
import datetime as dt
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

from commandline import arguments, commands, explanation, placeholder
from disksla import VERSION
from disksla.commands.cli import build_parser
from disksla.commands.command_table import COMMANDS

SHARED_BY = 4
"""An option of at least this many commands is listed once, in a section of its own."""

WIDTH = 70
"""Maximum length of a line of the source, before hyphens are escaped."""

HEAD = """\
.SH NAME
disksla \\- explain why a cloud disk is slow
.SH SYNOPSIS
.B disksla
.I COMMAND
.RI [ OPTION \\&...]
.br
.B disksla \\-\\-version
.SH DESCRIPTION
Cloud disks have limits on IOPS and throughput that depend on their type and
size.
The provider throttles requests above these limits in windows of about 100 ms,
without any notice to the virtual machine.
.B disksla
samples every disk of a host ten times a second, compares the samples with the
limits of the disk, and exports a verdict on each window to Prometheus:
throttled at the limit, less than promised, out of burst credits, or none of
these.
.PP
.B disksla serve
is the daemon; the unit
.I disksla\\-exporter.service
runs it.
The other commands show, compute and measure interactively; where a daemon
runs, those that show ask it.
Options set paths and addresses; the configuration file sets disks and terms.
"""

TAIL = """\
.SH SIGNALS
.TP
.B SIGHUP
.B disksla serve
reads its configuration again; an invalid one changes nothing.
.TP
.BR SIGTERM ", " SIGINT
The daemon saves its state and exits.
.SH FILES
.TP
.I /etc/disksla/disksla.yml
Configuration of the daemon. The package installs it without entries: all disks
are monitored, without limits.
.TP
.I /etc/default/disksla\\-exporter
Options of the daemon.
.TP
.I /var/lib/disksla
State of the daemon: burst credits, and reports of
.BR "disksla verify" .
.TP
.I /usr/share/disksla
Rules and alerts for Prometheus, dashboards for Grafana.
.TP
.I /usr/share/doc/disksla\\-exporter
Documentation: configuration, metrics, runbook and more.
.SH SEE ALSO
.BR fio (1),
.BR iostat (1),
.BR systemctl (1)
"""


def manual(parser: argparse.ArgumentParser, version: str, day: str) -> str:
    """Return the source of the page."""
    shared = _shared(commands(parser).values())
    lines = [f'.TH DISKSLA 1 "{day}" "disksla {version}" "User Commands"', HEAD.rstrip()]
    lines.append(".SH COMMANDS")
    for name, command in commands(parser).items():
        lines += [*_command(command, set(shared)), *_examples(name)]
    lines.append(".SH OPTIONS OF SEVERAL COMMANDS")
    for action in shared.values():
        lines += _argument(action)
    return "\n".join([*lines, TAIL])


def _shared(parsers: Iterable[argparse.ArgumentParser]) -> dict[str, argparse.Action]:
    """Return the options that many commands have with the same explanation, by name."""
    found = [action for parser in parsers for action in arguments(parser)]
    counts = Counter((_name(action), explanation(action)) for action in found)
    return {
        _name(action): action
        for action in found
        if counts[_name(action), explanation(action)] >= SHARED_BY
    }


def _name(action: argparse.Action) -> str:
    return action.option_strings[-1] if action.option_strings else placeholder(action)


def _command(parser: argparse.ArgumentParser, shared: set[str]) -> Iterator[str]:
    positional = [action for action in arguments(parser) if not action.option_strings]
    words = " ".join(
        f"[{_name(action)}]" if action.nargs == "?" else _name(action) for action in positional
    )
    yield f'.SS "{_escaped(f"{parser.prog} {words}".rstrip())}"'
    yield from _prose(parser.description or "")
    own = [action for action in arguments(parser) if _name(action) not in shared]
    for action in own:
        yield from _argument(action)
    also = [_name(action) for action in arguments(parser) if _name(action) in shared]
    if also:
        yield ".PP"
        yield from _prose(f"Also {', '.join(also)}; see below.")


def _examples(name: str) -> Iterator[str]:
    command = COMMANDS[name]
    for words, what in command.examples:
        yield from (".TP", f".B {_escaped(f'disksla {name} {words}'.rstrip())}")
        yield from _prose(f"{what[0].upper()}{what[1:]}.")
    yield ".PP"
    statuses = "; ".join(f"{status}: {text}" for status, text in command.statuses.items())
    yield from _prose(f"Exit status {statuses}.")


def _argument(action: argparse.Action) -> Iterator[str]:
    yield ".TP"
    value = _escaped(placeholder(action))
    if not action.option_strings:
        yield f".I {value}"
    elif value:
        yield f'.BI {_escaped(_name(action))} " {value}"'
    else:
        yield f".B {_escaped(_name(action))}"
    yield from _prose(explanation(action))


def _prose(text: str) -> Iterator[str]:
    for line in textwrap.wrap(text, WIDTH, break_long_words=False, break_on_hyphens=False):
        yield _escaped(line)


def _escaped(text: str) -> str:
    """Escape text for roff; hyphens too, so that an option can be copied."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def _day() -> str:
    """Return the date of SOURCE_DATE_EPOCH, which makes the page reproducible."""
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    return dt.datetime.fromtimestamp(epoch, dt.UTC).date().isoformat()


if __name__ == "__main__":
    sys.stdout.write(manual(build_parser(), VERSION, _day()))

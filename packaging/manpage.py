"""The man page disksla(1), from the parser: `SOURCE_DATE_EPOCH=0 python packaging/manpage.py`.

Options that several commands share are told once. argparse-manpage would repeat them fourteen
times, and breaks the lines of a synopsis at the blanks inside of its brackets.
"""

import argparse
import datetime as dt
import importlib.metadata
import os
import sys
import textwrap
from collections import Counter
from collections.abc import Iterable, Iterator

from commandline import arguments, commands, explanation, placeholder
from disksla.cli import build_parser

SHARED_BY = 4
"""An option that so many commands have is told once, apart from them."""

WIDTH = 70
"""Of a line of the source, before hyphens are escaped."""

HEAD = """\
.SH NAME
disksla \\- say why a cloud disk is slow
.SH SYNOPSIS
.B disksla
.I COMMAND
.RI [ OPTION \\&...]
.br
.B disksla \\-\\-version
.SH DESCRIPTION
A cloud disk is sold by type and size, so many requests and bytes per second,
and the provider holds it to that in windows of about 100 ms without telling
the machine that uses it.
.B disksla
samples every disk of a host ten times a second, holds what it did against what
its type and size were promised, and gives a verdict on each window to
Prometheus: held at the limit that was bought, given less than was promised,
out of burst credits, or none of these.
.PP
.B disksla serve
is the daemon; the unit
.I disksla\\-exporter.service
runs it.
The other commands look, reckon and measure for a person, and need no daemon.
Options say where to look; the configuration file says what to make of it.
"""

TAIL = """\
.SH EXIT STATUS
.TP
.B 0
Yes: it was done, the promise is kept, the file is good.
.TP
.B 1
No: the promise is not kept.
.TP
.B 2
It could not be done or told: a wrong option, a bad file, no such disk.
Standard error says which.
.SH SIGNALS
.TP
.B SIGHUP
.B disksla serve
reads its configuration again; a bad one changes nothing.
.TP
.BR SIGTERM ", " SIGINT
It saves its state and ends.
.SH FILES
.TP
.I /etc/disksla/disksla.yml
Configuration of the daemon, as the package installs it; without entries,
everything is watched and nothing is held against a promise.
.TP
.I /etc/default/disksla\\-exporter
Options of that daemon.
.TP
.I /var/lib/disksla
Its state: burst credits, and results of
.BR "disksla verify" .
.TP
.I /usr/share/disksla
Rules and alerts for Prometheus, dashboards for Grafana.
.TP
.I /usr/share/doc/disksla\\-exporter
The configuration, the metrics, the runbook and the rest in full.
.SH EXAMPLES
.TP
.B disksla limits vk.ceph\\-ssd 100GiB
What a disk of that type and size was promised, with the arithmetic.
.TP
.B disksla explain vdb
What happened to a disk in the last seconds, in sentences.
.TP
.B disksla check\\-config /etc/disksla/disksla.yml
Everything that is wrong with a configuration, before the daemon is told of it.
.SH SEE ALSO
.BR fio (1),
.BR iostat (1),
.BR systemctl (1)
"""


def manual(parser: argparse.ArgumentParser, version: str, day: str) -> str:
    """Give the source of the page."""
    shared = _shared(commands(parser).values())
    lines = [f'.TH DISKSLA 1 "{day}" "disksla {version}" "User Commands"', HEAD.rstrip()]
    lines.append(".SH COMMANDS")
    for command in commands(parser).values():
        lines += _command(command, set(shared))
    lines.append(".SH OPTIONS OF SEVERAL COMMANDS")
    for action in shared.values():
        lines += _argument(action)
    return "\n".join([*lines, TAIL])


def _shared(parsers: Iterable[argparse.ArgumentParser]) -> dict[str, argparse.Action]:
    """Give the options that many commands have with the same explanation, by name."""
    found = [action for parser in parsers for action in arguments(parser)]
    told = Counter((_name(action), explanation(action)) for action in found)
    return {
        _name(action): action
        for action in found
        if told[_name(action), explanation(action)] >= SHARED_BY
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
    """Let roff print a text as it is; hyphens too, so that an option can be copied."""
    plain = text.replace("\\", "\\e").replace("-", "\\-").replace('"', "\\(dq")
    return f"\\&{plain}" if plain.startswith((".", "'")) else plain


def _day() -> str:
    """Give the day of the sources, which is the same for everybody who builds them."""
    epoch = int(os.environ["SOURCE_DATE_EPOCH"])
    return dt.datetime.fromtimestamp(epoch, dt.UTC).date().isoformat()


if __name__ == "__main__":
    version = importlib.metadata.version("disksla-exporter")
    sys.stdout.write(manual(build_parser(), version, _day()))

"""The command line: options, errors and signals."""

import argparse
import contextlib
import importlib
import os
import shlex
import signal
import subprocess
from pathlib import Path

import pytest

from disksla.commands.cli import build_parser, main
from disksla.commands.command_table import COMMANDS
from support.daemon_process import DISKSLA, PATIENCE_S
from support.waiting import eventually

Captured = pytest.CaptureFixture[str]


def test_every_command_has_help(capsys: Captured, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    parser = build_parser()
    for name, command in COMMANDS.items():
        with pytest.raises(SystemExit) as ended:
            parser.parse_args([name, "--help"])
        assert ended.value.code == (3 if name == "check" else 0)  # of a monitoring plugin
        shown = capsys.readouterr().out
        assert shown.startswith(f"usage: disksla {name}")
        assert shown.endswith(f"\n{command.epilog(name)}\n")
        assert max(map(len, shown.splitlines())) <= 80
        for words, _ in command.examples:
            parser.parse_args([name, *shlex.split(words)])


def test_help_lists_the_commands_by_purpose() -> None:
    shown = build_parser([]).format_help()
    assert max(map(len, shown.splitlines())) <= 80
    listed = [line.split()[0] for line in shown.splitlines() if line.startswith("  ")]
    assert len(listed) == 15
    assert COMMANDS.keys() - listed == {"replay", "ebs-statistics", "open-events"}


def options() -> dict[str, dict[str, argparse.Action]]:
    """Return the action of each option, by option and command."""
    found: dict[str, dict[str, argparse.Action]] = {}
    for command in COMMANDS:
        parser = argparse.ArgumentParser()
        importlib.import_module(f"disksla.commands.{command.replace('-', '_')}").add_arguments(
            parser
        )
        for action in parser._actions:  # noqa: SLF001 -- argparse has no public list
            for option in action.option_strings:
                found.setdefault(option, {})[command] = action
    return found


def test_an_option_means_the_same_in_all_commands() -> None:
    """Kind and name of the value are equal; its default and its explanation may differ."""
    for option, by_command in options().items():
        kinds = {
            (type(action), action.dest, action.nargs, action.metavar, action.type)
            for action in by_command.values()
        }
        assert len(kinds) == 1, (option, by_command)


def test_one_option_for_one_thing() -> None:
    known = options()
    assert not known.keys() & {"--even-if-busy", "--config", "--time", "--yes", "-f"}
    for option in ("--config.file", "--json", "--force", "--for", "--recording"):
        assert option in known
    with_disks = {"disks", "explain", "record", "serve", "sweep", "verify"}
    assert with_disks <= known["--config.file"].keys() & known["--path.sysfs"].keys()
    reports = {"disks", "explain", "limits", "doctor", "verify", "judge", "sweep", "report"}
    assert reports | {"advise", "replay"} <= known["--json"].keys()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ([], "usage: disksla [-h]"),
        (["nonsense"], "invalid choice: 'nonsense'"),
        (["judge"], "usage: disksla judge"),
        (["serve", "--log.level", "loud"], "invalid choice: 'loud'"),
        (["disks", "--nonsense"], "usage: disksla disks"),
        (["disks", "--nonsense"], "disksla disks: error: unrecognized arguments: --nonsense"),
        (["limits", "aws.gp3", "1TiB", "--nonsense", "5"], "arguments: --nonsense 5"),
        (["--nonsense"], "usage: disksla [-h]"),
        (
            ["--config.file", "c.yml", "disks"],
            "expected it after it: disksla disks --config.file ...",
        ),
    ],
)
def test_usage_error_is_that_of_the_command(
    arguments: list[str], message: str, capsys: Captured
) -> None:
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_closed_output_pipe_is_not_an_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [str(DISKSLA), "limits", "--json"]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert ended.returncode == 0
    assert ended.stderr == b""


def test_sigint_exits_without_traceback() -> None:
    command = [str(DISKSLA), "serve", "--once", "--for", "1h"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        descriptors = Path(f"/proc/{process.pid}/fd")

        def is_sampling() -> bool:
            """Return whether the sampler has opened /proc/diskstats."""
            with contextlib.suppress(FileNotFoundError):  # closed after it was listed
                files = [descriptor.readlink() for descriptor in descriptors.iterdir()]
                return Path("/proc/diskstats") in files
            return False

        assert eventually(is_sampling, PATIENCE_S)
        process.send_signal(signal.SIGINT)
        _, errors = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert errors == b""

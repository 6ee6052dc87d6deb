"""The command line as a whole."""

import contextlib
import os
import signal
import subprocess
from pathlib import Path

import pytest

from disksla.cli import COMMANDS, build_parser, main
from support.daemon_process import DISKSLA, PATIENCE_S
from support.loop_device import eventually


def test_every_command_has_its_options(capsys: pytest.CaptureFixture[str]) -> None:
    parser = build_parser()
    for command in COMMANDS:
        with pytest.raises(SystemExit) as ended:
            parser.parse_args([command, "--help"])
        assert ended.value.code == 0
        assert f"usage: disksla {command}" in capsys.readouterr().out


@pytest.mark.parametrize(
    "words",
    [
        [],
        ["nonsense"],
        ["limits"],
        ["discover", "--nonsense"],
        ["serve", "--log.level", "loud"],
    ],
)
def test_a_wrong_command_line_is_refused(words: list[str]) -> None:
    with pytest.raises(SystemExit) as ended:
        main(words)
    assert ended.value.code == 2


def test_a_reader_that_has_seen_enough_is_no_error() -> None:
    reader, writer = os.pipe()
    os.close(reader)
    command = [str(DISKSLA), "catalog", "--json"]
    ended = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, check=False)
    os.close(writer)
    assert ended.returncode == 0
    assert ended.stderr == b""


def test_ctrl_c_ends_without_a_traceback() -> None:
    command = [str(DISKSLA), "once", "--duration", "1h"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        opened = Path(f"/proc/{process.pid}/fd")

        def samples() -> bool:
            """The sampler holds the file open once it runs."""
            with contextlib.suppress(FileNotFoundError):  # closed while we look
                return Path("/proc/diskstats") in [file.readlink() for file in opened.iterdir()]
            return False

        assert eventually(samples, PATIENCE_S)
        process.send_signal(signal.SIGINT)
        _, said = process.communicate(timeout=PATIENCE_S)
    assert process.returncode == 130
    assert said == b""

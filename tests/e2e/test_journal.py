"""What the daemon writes where the journal of systemd reads."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from support.daemon_process import DISKSLA, Daemon

StartDaemon = Callable[..., Daemon]

TO_THE_JOURNAL = (
    *("sh", "-c"),
    'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$0" "$@"',
)
"""Becomes a program that is told that the journal reads its standard error."""


def test_lines_have_their_severity_and_no_time(start_daemon: StartDaemon, tmp_path: Path) -> None:
    config = tmp_path / "config.yml"
    config.write_text("")
    daemon = start_daemon("--config.file", str(config), before=TO_THE_JOURNAL)
    assert daemon.request("POST", "/-/reload")[0] == 200
    config.write_text("nonsense: 1\nmore: 2\n")
    assert daemon.request("POST", "/-/reload")[0] == 500
    assert daemon.end() == 0
    good, bad, ending = daemon.log()
    assert good == '<6>level=info component=daemon msg="configuration reloaded"'
    assert bad.startswith('<3>level=error component=daemon msg="configuration not reloaded" err=')
    assert "nonsense" in bad
    assert "more" in bad
    assert ending == "<6>level=info component=serve msg=stopping"


def test_a_refusal_is_an_error_line_by_line(tmp_path: Path) -> None:
    config = tmp_path / "config.yml"
    config.write_text("nonsense: 1\nmore: 2\n")
    command = [*TO_THE_JOURNAL, str(DISKSLA), "serve", "--config.file", str(config)]
    with (tmp_path / "log").open("w") as log:
        assert subprocess.run(command, stderr=log, check=False).returncode == 2
    said = (tmp_path / "log").read_text().splitlines()
    assert len(said) == 2
    assert said[0].startswith(f"<3>disksla: {config}:1: nonsense")
    assert said[1].startswith("<3>")

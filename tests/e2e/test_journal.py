"""Log lines of the daemon when the systemd journal reads standard error."""

import subprocess
from collections.abc import Callable
from pathlib import Path

from support.daemon_process import DISKSLA, Daemon

StartDaemon = Callable[..., Daemon]

AS_IN_THE_JOURNAL = (
    *("sh", "-c"),
    'JOURNAL_STREAM=$(stat -L -c %d:%i /proc/self/fd/2) exec "$0" "$@"',
)
"""Replaces itself by a program, with $JOURNAL_STREAM set to its standard error."""


def test_log_lines_have_severity_and_no_time(start_daemon: StartDaemon, tmp_path: Path) -> None:
    config = tmp_path / "config.yml"
    config.write_text("")
    daemon = start_daemon("--config.file", str(config), before=AS_IN_THE_JOURNAL)
    assert daemon.request("POST", "/-/reload")[0] == 200
    config.write_text("nonsense: 1\nmore: 2\n")
    assert daemon.request("POST", "/-/reload")[0] == 500
    assert daemon.end() == 0
    # Beside them, the sampler says how many disks there are, and how data writes are counted.
    others = ("component=disks", "component=sampler")
    success, failure, ending = (
        line for line in daemon.log() if not any(other in line for other in others)
    )
    assert success == '<6>level=info component=daemon msg="configuration reloaded"'
    assert failure.startswith(
        '<3>level=error component=daemon msg="configuration not reloaded" err='
    )
    assert "nonsense" in failure
    assert "more" in failure
    assert ending == "<6>level=info component=serve msg=stopping"


def test_each_line_of_an_error_message_has_severity(tmp_path: Path) -> None:
    config = tmp_path / "config.yml"
    config.write_text("nonsense: 1\nmore: 2\n")
    command = [*AS_IN_THE_JOURNAL, str(DISKSLA), "serve", "--config.file", str(config)]
    with (tmp_path / "log").open("w") as log:
        assert subprocess.run(command, stderr=log, check=False).returncode == 2
    first, second = (tmp_path / "log").read_text().splitlines()
    assert first.startswith(f"<3>disksla: {config}:1: nonsense")
    assert second.startswith("<3>")

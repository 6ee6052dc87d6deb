"""The installed `disksla` command, run as a process."""

import http.client
import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

from prometheus_client.parser import text_string_to_metric_families

PATIENCE_S = 20.0
DISKSLA = Path(sys.executable).with_name("disksla")


def run(*arguments: str, status: int = 0) -> subprocess.CompletedProcess[str]:
    """Run a command to its end with COLUMNS=80, and check its exit status."""
    completed = subprocess.run(
        [str(DISKSLA), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "COLUMNS": "80"},
    )
    assert completed.returncode == status, completed.stderr
    return completed


def own_state(directory: Path) -> str:
    """Return the option of a configuration with this state directory.

    Its measurement lock is not that of other measurements on this machine.
    """
    config = directory / "own-state.yml"
    config.write_text(f"state: {{directory: {directory}}}\n", encoding="utf-8")
    return f"--config.file={config}"


StartDaemon = Callable[..., "Daemon"]
"""A fixture: starts a daemon with options."""


class Daemon:
    """A running `disksla serve`."""

    def __init__(self, process: subprocess.Popen[str], log: Path) -> None:
        assert process.stdout is not None
        self.process = process
        self._log = log
        self.output = process.stdout.readline()
        self.address = self.output.partition("://")[2].partition("/")[0]

    def request(self, method: str, path: str) -> tuple[int, str]:
        connection = http.client.HTTPConnection(self.address, timeout=PATIENCE_S)
        try:
            connection.request(method, path)
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def get(self, path: str) -> tuple[int, str]:
        return self.request("GET", path)

    def samples(self, **labels: str) -> dict[str, float]:
        """Return the values, by name, of all samples with these labels."""
        _, page = self.get("/metrics")
        return {
            sample.name: sample.value
            for family in text_string_to_metric_families(page)
            for sample in family.samples
            if labels.items() <= sample.labels.items()
        }

    def devices(self) -> set[str]:
        _, page = self.get("/metrics")
        return {
            sample.labels["device"]
            for family in text_string_to_metric_families(page)
            if family.name == "disksla_disk_info"
            for sample in family.samples
        }

    def log(self) -> list[str]:
        return self._log.read_text().splitlines()

    def end(self) -> int:
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(PATIENCE_S)

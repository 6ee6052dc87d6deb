"""Prometheus, Alertmanager and a webhook on loopback, with data in temporary directories."""

import json
import os
import shutil
import socket
import subprocess
import threading
import urllib.parse
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from support.waiting import eventually

PATIENCE_S = 20.0


def _namespace_with_templates() -> list[str]:
    """Return a command prefix with which an unpacked Alertmanager of Debian finds its templates.

    It searches only below /usr/share, so the prefix mounts the unpacked directory there, in a
    mount namespace of its own. Return nothing if the package is installed.
    """
    program = shutil.which("prometheus-alertmanager")
    if program is None or Path("/usr/share/prometheus/alertmanager/default.tmpl").exists():
        return []
    share = Path(program).resolve().parent.with_name("share")
    namespace = ["unshare", "--mount"] if os.geteuid() == 0 else ["unshare", "-rm"]
    return [*namespace, "sh", "-c", 'mount --bind "$0" /usr/share && exec "$@"', str(share)]


def _can_run_alertmanager() -> bool:
    """Return whether Alertmanager is installed, and its templates can be mounted."""
    if shutil.which("prometheus-alertmanager") is None:
        return False
    attempt = [*_namespace_with_templates(), "true"]
    return subprocess.run(attempt, check=False, capture_output=True).returncode == 0


needs_prometheus = pytest.mark.skipif(
    not shutil.which("prometheus"), reason="NOT TESTED: prometheus is not installed"
)
needs_alertmanager = pytest.mark.skipif(
    not _can_run_alertmanager(),
    reason="NOT TESTED: prometheus-alertmanager is not installed, or lacks its templates",
)
needs_amtool = pytest.mark.skipif(
    not shutil.which("amtool"),
    reason="NOT TESTED: amtool is not installed (prometheus-alertmanager)",
)


class Service:
    """A server with an HTTP interface."""

    def __init__(self, address: str, ready: str = "/-/ready") -> None:
        """Name the address, and the path that answers once it is ready."""
        self.address, self.ready = address, ready

    def get(self, path: str, **parameters: str) -> Any:
        """Return the JSON of a response."""
        target = f"{path}?{urllib.parse.urlencode(parameters)}" if parameters else path
        return self._send(urllib.request.Request(f"http://{self.address}{target}"))

    def post(self, path: str, content: object) -> None:
        """Send JSON."""
        self._send(
            urllib.request.Request(
                f"http://{self.address}{path}",
                json.dumps(content).encode(),
                {"Content-Type": "application/json"},
            )
        )

    def is_ready(self) -> bool:
        try:
            with urllib.request.urlopen(f"http://{self.address}{self.ready}", timeout=PATIENCE_S):
                return True
        except OSError:
            return False

    def _send(self, request: urllib.request.Request) -> Any:
        with urllib.request.urlopen(request, timeout=PATIENCE_S) as response:
            content = response.read()
        return json.loads(content) if content else None


class Prometheus(Service):
    """A Prometheus server."""

    def query(self, expression: str) -> list[dict[str, Any]]:
        """Return the instant vector of an expression."""
        response = self.get("/api/v1/query", query=expression)
        assert response["status"] == "success", response
        result: list[dict[str, Any]] = response["data"]["result"]
        return result


@contextmanager
def prometheus(config: Path, data: Path, *options: str) -> Iterator[Prometheus]:
    """Run Prometheus with a configuration."""
    address = f"127.0.0.1:{free_port()}"
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={data}",
        f"--web.listen-address={address}",
        *options,
    ]
    service = Prometheus(address)
    with running(command, service, data.with_name("prometheus.log")):
        yield service


@contextmanager
def alertmanager(config: Path, data: Path) -> Iterator[Service]:
    """Run Alertmanager with a configuration, without a cluster."""
    address = f"127.0.0.1:{free_port()}"
    command = [
        *_namespace_with_templates(),
        "prometheus-alertmanager",
        f"--config.file={config}",
        f"--storage.path={data}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
    ]
    service = Service(address)
    with running(command, service, data.with_name("alertmanager.log")):
        yield service


@contextmanager
def running(command: list[str], service: Service, log: Path) -> Iterator[subprocess.Popen[bytes]]:
    """Run a server until it is ready, and to the end of the context; yield its process."""
    with log.open("w") as output:
        process = subprocess.Popen(command, stdout=output, stderr=output, start_new_session=True)
        try:
            ready = eventually(
                lambda: process.poll() is not None or service.is_ready(), PATIENCE_S
            )
            assert ready, log.read_text()
            assert process.poll() is None, log.read_text()
            yield process
        finally:
            process.terminate()
            try:
                process.wait(PATIENCE_S)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()


def free_port() -> int:
    """Return a port that was free a moment ago."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        port: int = listener.getsockname()[1]
        return port


class Pager:
    """The messages that a webhook received."""

    def __init__(self, address: str, messages: list[dict[str, Any]]) -> None:
        self.address = address
        self.messages = messages

    def alerts(self, name: str, status: str) -> list[dict[str, Any]]:
        """Return the received alerts with a name and the status `firing` or `resolved`."""
        return [
            alert
            for message in list(self.messages)
            for alert in message["alerts"]
            if alert["labels"]["alertname"] == name and alert["status"] == status
        ]


@contextmanager
def answering(handler: type[BaseHTTPRequestHandler]) -> Iterator[str]:
    """Answer requests on loopback; yield the address."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


@contextmanager
def pager() -> Iterator[Pager]:
    """Run a webhook, and yield its messages."""
    messages: list[dict[str, Any]] = []

    class Receiver(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            size = int(self.headers["Content-Length"])
            messages.append({"path": self.path, **json.loads(self.rfile.read(size))})
            self.send_response(200)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with answering(Receiver) as address:
        yield Pager(address, messages)

"""`disksla serve` with a web configuration file, and Prometheus as its client."""

import base64
import http.client
import json
import os
import shutil
import socket
import ssl
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from pathlib import Path

import bcrypt
import pytest

from support.daemon_process import DISKSLA, PATIENCE_S, Daemon, run
from support.monitoring_stack import needs_prometheus, prometheus
from support.waiting import eventually

PASSWORD = "correct horse"
USERS = (
    "basic_auth_users:\n"
    f"  prometheus: {bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()}\n"
)
TLS = "tls_server_config:\n  cert_file: server.crt\n  key_file: server.key\n"
VERIFIED = TLS + (
    "  client_auth_type: RequireAndVerifyClientCert\n"
    "  client_ca_file: authority.crt\n"
    "  client_allowed_sans: [prometheus]\n"
)
GROWTH_MIB = 40.0
"""More than the memory of 200 TLS connections and 16 responses of some 100 KiB."""


class SecureDaemon(Daemon):
    """A running `disksla serve`, and a client with certificate and password."""

    def __init__(self, process: subprocess.Popen[str], web: Path, log: Path) -> None:
        super().__init__(process, log)
        self.web = web
        self.port = int(self.address.rpartition(":")[2])
        self.context = ssl.create_default_context(cafile=web.with_name("authority.crt"))
        self.context.load_cert_chain(web.with_name("client.crt"), web.with_name("client.key"))

    def request(self, method: str, path: str, password: str = PASSWORD) -> tuple[int, str]:
        connection = http.client.HTTPSConnection(
            "localhost", self.port, timeout=PATIENCE_S, context=self.context
        )
        encoded = base64.b64encode(f"prometheus:{password}".encode()).decode()
        try:
            connection.request(method, path, headers={"Authorization": f"Basic {encoded}"})
            response = connection.getresponse()
            return response.status, response.read().decode()
        finally:
            connection.close()

    def connect(self) -> socket.socket:
        return socket.create_connection(("127.0.0.1", self.port), timeout=PATIENCE_S)

    def resident_mib(self) -> float:
        pages = int(Path(f"/proc/{self.process.pid}/statm").read_text().split()[1])
        return pages * os.sysconf("SC_PAGE_SIZE") / 2**20


StartSecureDaemon = Callable[..., SecureDaemon]


@pytest.fixture
def start_daemon(certificates: Path, tmp_path: Path) -> Iterator[StartSecureDaemon]:
    """Return a function that starts the daemon with the given web configuration."""
    with ExitStack() as stack:

        def start(text: str, *options: str) -> SecureDaemon:
            web = Path(shutil.copytree(certificates, tmp_path / "web")) / "web.yml"
            web.write_text(text)
            config = tmp_path / "config.yml"
            config.write_text(json.dumps({"state": {"directory": str(tmp_path / "state")}}))
            command = [str(DISKSLA), "serve", "--web.listen-address", "127.0.0.1:0"]
            files = ["--web.config.file", str(web), "--config.file", str(config)]
            log = tmp_path / "log"
            process = stack.enter_context(
                subprocess.Popen(
                    [*command, *files, *options],
                    stdout=subprocess.PIPE,
                    stderr=stack.enter_context(log.open("w")),
                    text=True,
                )
            )
            stack.callback(process.kill)
            daemon = SecureDaemon(process, web, log)
            assert eventually(lambda: daemon.get("/-/ready")[0] == 200, PATIENCE_S)
            return daemon

        yield start


@pytest.mark.parametrize(
    ("text", "scheme", "words"),
    [
        (TLS + USERS, "https", "it requires a password"),
        (TLS, "http", "it requires HTTPS"),
        (VERIFIED, "https", "it may need a client certificate"),
        (TLS, "https", "answers, and the disks are sampled"),
    ],
)
def test_doctor_says_what_it_cannot_see(
    start_daemon: StartSecureDaemon, text: str, scheme: str, words: str
) -> None:
    daemon = start_daemon(text)
    state = daemon.web.parent.parent / "state"
    state.mkdir(exist_ok=True)
    completed = run(
        *("doctor", "--json", f"--url={scheme}://localhost:{daemon.port}"),
        *("--config.file", str(state.with_name("config.yml"))),
        *("--web.config.file", str(daemon.web)),
    )
    checks = {each["check"]: each for each in json.loads(completed.stdout)["checks"]}
    assert checks["configuration.web"]["status"] == "ok"
    assert words in checks["daemon.running"]["found"]


def test_certificate_and_password_are_required(start_daemon: StartSecureDaemon) -> None:
    daemon = start_daemon(VERIFIED + USERS)
    assert daemon.output.startswith(f"disksla: status page on https://127.0.0.1:{daemon.port}/,")
    assert "client certificates required, 1 user" in "\n".join(daemon.log())
    for path, method in (
        *(("/", "GET"), ("/metrics", "GET"), ("/-/healthy", "GET"), ("/-/ready", "GET")),
        ("/-/reload", "POST"),
    ):
        assert daemon.request(method, path)[0] == 200
        assert daemon.request(method, path, "wrong")[0] == 401
    no_certificate = ssl.create_default_context(cafile=daemon.web.with_name("authority.crt"))
    with (
        daemon.connect() as plain,
        no_certificate.wrap_socket(plain, server_hostname="localhost") as client,
        pytest.raises(ssl.SSLError, match="CERTIFICATE_REQUIRED"),
    ):
        client.recv(1)


def test_invalid_certificate_is_shown_in_metrics_and_log(start_daemon: StartSecureDaemon) -> None:
    daemon = start_daemon(TLS)
    connected = http.client.HTTPSConnection(
        "localhost", daemon.port, timeout=PATIENCE_S, context=daemon.context
    )

    def page() -> str:
        connected.request("GET", "/metrics")
        return connected.getresponse().read().decode()

    assert 'disksla_collector_success{collector="web"} 1.0' in page()
    daemon.web.with_name("server.key").write_text("")
    failed = 'disksla_collector_success{collector="web"} 0.0'
    assert eventually(lambda: failed in page(), PATIENCE_S)
    assert 'disksla_errors_total{source="web"} 1.0' in page()
    connected.close()
    invalid = 'msg="web configuration invalid" refused=connections'
    assert sum(invalid in line for line in daemon.log()) == 1


def test_many_clients_do_not_grow_memory_or_stop_sampling(start_daemon: StartSecureDaemon) -> None:
    daemon = start_daemon(TLS + USERS, "--web.max-requests", "5")
    ticks = daemon.samples()["disksla_sampler_ticks_total"]
    before = daemon.resident_mib()
    with ExitStack() as opened:
        for _ in range(300):  # these never send anything
            opened.enter_context(daemon.connect())
        idle = 0
        while idle < 100:
            with suppress(OSError):
                context = daemon.context
                plain = opened.enter_context(daemon.connect())
                encrypted = context.wrap_socket(plain, server_hostname="localhost")
                opened.callback(encrypted.close)
                idle += 1
        statuses = {daemon.request("GET", "/metrics", f"{number}")[0] for number in range(50)}
        assert statuses == {401}
        assert daemon.get("/metrics")[0] == 200
        assert daemon.resident_mib() - before < GROWTH_MIB
    assert eventually(lambda: daemon.samples()["disksla_sampler_ticks_total"] > ticks, PATIENCE_S)
    assert daemon.end() == 0


@needs_prometheus
def test_prometheus_scrapes_with_tls_and_password(
    start_daemon: StartSecureDaemon, tmp_path: Path
) -> None:
    daemon = start_daemon(VERIFIED + USERS)
    directory = daemon.web.parent
    (directory / "password").write_text(PASSWORD)
    config = tmp_path / "prometheus.yml"
    certificate = {
        "cert_file": str(directory / "client.crt"),
        "key_file": str(directory / "client.key"),
    }
    job = {
        "job_name": "disksla",
        "scrape_interval": "1s",
        "scheme": "https",
        "tls_config": {"ca_file": str(directory / "authority.crt"), **certificate},
        "basic_auth": {"username": "prometheus", "password_file": str(directory / "password")},
        "static_configs": [{"targets": [f"localhost:{daemon.port}"]}],
    }
    config.write_text(json.dumps({"scrape_configs": [job]}))
    with prometheus(config, tmp_path / "data") as server:

        def is_up() -> bool:
            return [each["value"][1] for each in server.query('up{job="disksla"}')] == ["1"]

        assert eventually(is_up, PATIENCE_S)
        for end in ("crt", "key"):
            shutil.copy(directory / f"renewed.{end}", directory / f"server.{end}")
        scrapes = 'count_over_time(up{job="disksla"}[1h])'

        def count() -> float:
            return sum(float(each["value"][1]) for each in server.query(scrapes))

        before = count()
        assert eventually(lambda: count() >= before + 2, PATIENCE_S)
        assert is_up()
        (lowest,) = server.query('min_over_time(up{job="disksla"}[1h])')
        assert lowest["value"][1] == "1", "no scrape failed because of the new certificate"

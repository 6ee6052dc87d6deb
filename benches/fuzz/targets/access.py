"""The web configuration file, and bytes sent to a port that requires TLS and a password."""

import base64
import http.client
import re
import shutil
import socket
import ssl
import tempfile
from functools import cache
from pathlib import Path

import bcrypt
import pytest

from disksla.base.errors import DiskslaError
from disksla.base.schema.reader import MAX_PROBLEMS
from disksla.base.schema.yaml_file import parse_record
from disksla.serve.http_server.access import AccessControl
from disksla.serve.http_server.config import WebConfig, describe
from disksla.serve.http_server.config_file import read_web_file
from disksla.serve.http_server.listen import ListenAddress
from disksla.serve.http_server.server import Timeouts, WebServer
from fuzz.target import Target
from fuzz.targets.settings import YAML, loads_yaml
from fuzz.targets.web import (
    STATUSES,
    TIMEOUT_S,
    logged_errors,
    make_app,
    requests,
    send_and_read,
    statuses_in,
)
from support.certificates import make_authority, make_signed

CONFIGURATIONS = Path(__file__).parents[3] / "tests" / "serve" / "http_server" / "configurations"
PASSWORD = b"correct horse"
ALICE = base64.b64encode(b"alice:" + PASSWORD).decode()
REJECTED = {401, 429}
_ALERT = b"\x15\x03"
"""The beginning of a TLS alert."""
_LAST = b"\r\n\r\nGET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LONG = 20
"""A shorter secret may be part of any message by chance."""


@cache
def _directory() -> tempfile.TemporaryDirectory[str]:
    """Return a directory with certificates, which is removed at the end of the process."""
    if shutil.which("openssl") is None:
        pytest.skip("NOT TESTED: needs openssl to make certificates (apt install openssl)")
    directory: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(
        prefix="disksla-fuzz-"
    )
    make_authority(Path(directory.name), "authority")
    make_signed(Path(directory.name), "server", "DNS:localhost")
    return directory


def web_configuration(content: bytes) -> bool:
    """Each problem has its line and no secret; or the configuration can be described."""
    path = Path(_directory().name) / "fuzzed.yml"
    path.write_bytes(content)
    file = read_web_file(path)
    assert (file.config is None) <= (file.problem is not None)
    _assert_safe_to_show(file.problem or "", content)
    try:
        config = parse_record(content, "web.yml", WebConfig, {})
    except DiskslaError as error:
        _assert_safe_to_show(str(error), content)
        return False
    assert describe(config).isprintable()
    assert parse_record(content, "web.yml", WebConfig, {}) == config
    assert all(value.isprintable() for _, value in config.http.headers.lines)
    return True


def _assert_safe_to_show(problem: str, content: bytes) -> None:
    lines = problem.split("\n")
    assert len(lines) <= MAX_PROBLEMS + 1
    for line in lines:
        assert line.isprintable()
        assert re.match(r"$|\S+\.yml(:\d+)?: ", line), line
    assert not any(secret in problem for secret in _secrets(content))


def _secrets(content: bytes) -> list[str]:
    """Return the values in place of password hashes that occur nowhere else."""
    try:
        tree = loads_yaml(content)
    except ValueError:
        return []
    users = tree.get("basic_auth_users") if isinstance(tree, dict) else None
    found = users.values() if isinstance(users, dict) else ()
    return [
        secret
        for secret in found
        if isinstance(secret, str) and len(secret) > LONG and content.count(secret.encode()) == 1
    ]


@cache
def _secure_port() -> int:
    """Serve with TLS and a password until this process ends, and return the port."""
    web = Path(_directory().name) / "web.yml"
    hashed = bcrypt.hashpw(PASSWORD, bcrypt.gensalt(4)).decode()
    web.write_text(
        "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
        f"basic_auth_users: {{alice: {hashed}}}\n"
    )
    listen = [ListenAddress("127.0.0.1", 0)]
    timeouts = Timeouts(TIMEOUT_S, TIMEOUT_S)
    [bound] = WebServer(make_app(), listen, timeouts, AccessControl(web)).start()
    return bound.port


@cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=Path(_directory().name) / "authority.crt")


def unauthenticated(content: bytes) -> bool:
    """Without the password no page is served, and clients with it still get theirs."""
    logged_errors()
    plain, encrypted = _send_unencrypted(content), statuses_in(_send_over_tls(content))
    assert plain.startswith(_ALERT) or set(statuses_in(plain)) <= {400}, plain
    assert set(encrypted) <= (STATUSES | REJECTED) - {200}, encrypted
    connection = http.client.HTTPSConnection(
        "localhost", _secure_port(), timeout=TIMEOUT_S, context=_context()
    )
    connection.request("GET", "/-/healthy", headers={"Authorization": f"Basic {ALICE}"})
    assert connection.getresponse().read() == b"healthy\n"
    connection.close()
    assert not logged_errors().lines, logged_errors().lines
    return 401 in encrypted


def _send_unencrypted(content: bytes) -> bytes:
    with _connect() as client:
        return send_and_read(client, content, lambda: client.shutdown(socket.SHUT_WR))


def _send_over_tls(content: bytes) -> bytes:
    """Send a last request too: in TLS, one cannot end the sending and still read."""
    with _context().wrap_socket(_connect(), server_hostname="localhost") as client:
        return send_and_read(client, content + _LAST, lambda: None)


def _connect() -> socket.socket:
    return socket.create_connection(("127.0.0.1", _secure_port()), timeout=TIMEOUT_S)


_BAD_HELLO = bytes.fromhex("16 0301 0005 01 000001 00")

TARGETS = (
    Target(
        "web-configuration",
        web_configuration,
        lambda: [path.read_bytes() for path in sorted(CONFIGURATIONS.glob("good-*.yml"))],
        words=(
            *(
                b"tls_server_config: ",
                b"http_server_config: ",
                b"basic_auth_users: ",
                b"headers: ",
            ),
            *(b"cert_file: server.crt\n", b"key_file: server.key\n", b"cert_file: /dev/zero\n"),
            *(
                b"rate_limit: ",
                b"interval: 1ns",
                b"burst: ",
                b"TLS13",
                b"- ",
                b": ",
                b"&a ",
                b"*a",
            ),
            *(b"$2y$31$abcdefghijklmnopqrstuuDSOOQIECAbLfGYD3Mg6LpmbGMpHykQe", b"client_ca: |\n "),
        ),
        tree=YAML,
    ),
    Target(
        "unauthenticated",
        unauthenticated,
        lambda: [each for each in requests() if b"/-/reload" not in each],
        words=(
            *(b"Authorization: Basic ", b"Authorization: Bearer x\r\n", b"YWxpY2U6", b"OnB3"),
            *(
                b"Basic " + base64.b64encode(name + b":" + b"x" * 100)
                for name in (b"alice", b"bob")
            ),
            *(
                b"Authorization: Basic =\r\n",
                b"GET ",
                b" HTTP/1.1\r\n",
                b"\r\n\r\n",
                b"//-/healthy",
            ),
            *(_BAD_HELLO, b"\x15\x03\x03\x00\x02\x02\x50", b"\x16\x03\x01", b"\x80\x2e\x01"),
        ),
        mutations=100,
    ),
)

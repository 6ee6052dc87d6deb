"""The web configuration file, and bytes on a socket that wants TLS and a password."""

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

from disksla.errors import DiskslaError
from disksla.schema.reader import MAX_PROBLEMS
from disksla.schema.yaml_file import parse_record
from disksla.web.access import AccessControl
from disksla.web.config import WebConfig, describe
from disksla.web.config_file import read_web_file
from disksla.web.listen import ListenAddress
from disksla.web.server import Timeouts, WebServer
from fuzz.target import Target
from fuzz.targets.settings import YAML, loads_yaml
from fuzz.targets.web import PATIENCE_S, STATUSES, a_site, heard, logged, requests, statuses_in
from support.certificates import make_authority, make_signed

WEBCONFIGS = Path(__file__).parent.parent.parent / "web" / "configurations"
PASSWORD = b"correct horse"
ALICE = base64.b64encode(b"alice:" + PASSWORD).decode()
TURNED_AWAY = {401, 429}
_ALERT = b"\x15\x03"
"""How TLS begins to say no."""
_LAST = b"\r\n\r\nGET /-/healthy HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"
LONG = 20
"""A secret as short as this may stand in any sentence."""


@cache
def _room() -> tempfile.TemporaryDirectory[str]:
    """Give a directory with certificates, that is gone with this process."""
    if shutil.which("openssl") is None:
        pytest.skip("NOT TESTED: certificates are made by openssl (apt install openssl)")
    room: tempfile.TemporaryDirectory[str] = tempfile.TemporaryDirectory(prefix="disksla-fuzz-")
    make_authority(Path(room.name), "authority")
    make_signed(Path(room.name), "server", "DNS:localhost")
    return room


def web_configuration(content: bytes) -> bool:
    """It is refused with a place for each problem and no secret; or it can be said in words."""
    path = Path(_room().name) / "fuzzed.yml"
    path.write_bytes(content)
    file = read_web_file(path)
    assert (file.config is None) <= (file.problem is not None)
    _assert_fit_to_be_shown(file.problem or "", content)
    try:
        config = parse_record(content, "web.yml", WebConfig, {})
    except DiskslaError as error:
        _assert_fit_to_be_shown(str(error), content)
        return False
    assert describe(config).isprintable()
    assert parse_record(content, "web.yml", WebConfig, {}) == config
    assert all(value.isprintable() for _, value in config.http.headers.given)
    return True


def _assert_fit_to_be_shown(problem: str, content: bytes) -> None:
    lines = problem.split("\n")
    assert len(lines) <= MAX_PROBLEMS + 1
    for line in lines:
        assert line.isprintable()
        assert re.match(r"$|\S+\.yml(:\d+)?: ", line), line
    assert not any(secret in problem for secret in _secrets(content))


def _secrets(content: bytes) -> list[str]:
    """Give what stands where hashes of passwords belong, and nowhere else."""
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
    """Begin to serve in TLS, and to who knows the password, until this process ends."""
    web = Path(_room().name) / "web.yml"
    known = bcrypt.hashpw(PASSWORD, bcrypt.gensalt(4)).decode()
    web.write_text(
        "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
        f"basic_auth_users: {{alice: {known}}}\n"
    )
    listen = [ListenAddress("127.0.0.1", 0)]
    patience = Timeouts(PATIENCE_S, PATIENCE_S)
    [bound] = WebServer(a_site(), listen, patience, AccessControl(web)).start()
    return bound.port


@cache
def _context() -> ssl.SSLContext:
    return ssl.create_default_context(cafile=Path(_room().name) / "authority.crt")


def stranger(content: bytes) -> bool:
    """Who has no password is told nothing, in clear or in TLS, and keeps nobody from coming in."""
    logged()
    in_clear, in_tls = _told_in_clear(content), statuses_in(_told_in_tls(content))
    assert in_clear.startswith(_ALERT) or set(statuses_in(in_clear)) <= {400}, in_clear
    assert set(in_tls) <= (STATUSES | TURNED_AWAY) - {200}, in_tls
    connection = http.client.HTTPSConnection(
        "localhost", _secure_port(), timeout=PATIENCE_S, context=_context()
    )
    connection.request("GET", "/-/healthy", headers={"Authorization": f"Basic {ALICE}"})
    assert connection.getresponse().read() == b"healthy\n"
    connection.close()
    assert not logged().said, logged().said
    return 401 in in_tls


def _told_in_clear(content: bytes) -> bytes:
    with _connected() as client:
        return heard(client, content, lambda: client.shutdown(socket.SHUT_WR))


def _told_in_tls(content: bytes) -> bytes:
    """The end of a connection in TLS cannot be said and the answer be listened to."""
    with _context().wrap_socket(_connected(), server_hostname="localhost") as client:
        return heard(client, content + _LAST, lambda: None)


def _connected() -> socket.socket:
    return socket.create_connection(("127.0.0.1", _secure_port()), timeout=PATIENCE_S)


_BAD_HELLO = bytes.fromhex("16 0301 0005 01 000001 00")

TARGETS = (
    Target(
        "web-configuration",
        web_configuration,
        lambda: [path.read_bytes() for path in sorted(WEBCONFIGS.glob("good-*.yml"))],
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
        "stranger",
        stranger,
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

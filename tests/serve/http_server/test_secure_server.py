"""The server with a web configuration file, over real sockets and real TLS."""

import base64
import http.client
import shutil
import socket
import ssl
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import bcrypt
import pytest

from disksla.serve.http_server.access import AccessControl
from disksla.serve.http_server.basic_auth import MAX_PENDING
from disksla.serve.http_server.connection import ListenAddress
from disksla.serve.http_server.http_protocol import Reply, RequestHead
from disksla.serve.http_server.server import DEFAULT_TIMEOUTS, Timeouts, WebServer
from disksla.serve.http_server.tls import alternative_names
from support.waiting import eventually

LARGE = b"x" * 4_000_000
CERTIFICATE = "  cert_file: server.crt\n  key_file: server.key\n"
TLS = f"tls_server_config:\n{CERTIFICATE}"
VERIFIED = f"{TLS}  client_ca_file: authority.crt\n  client_auth_type: "
PASSWORD = b"correct horse"
HASH = bcrypt.hashpw(PASSWORD, bcrypt.gensalt(4)).decode()
USERS = f"basic_auth_users: {{alice: {HASH}}}\n"
ALICE = {"Authorization": "Basic " + base64.b64encode(b"alice:" + PASSWORD).decode()}
PATHS = ("/", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/nowhere")


def application(request: RequestHead) -> Reply:
    body = LARGE if request.path == "/large" else f"{request.path}\n".encode()
    return Reply(body, headers=(("X-Frame-Options", "sameorigin"),))


class Server:
    """A running server, and clients of it."""

    def __init__(self, web: Path, port: int, opened: ExitStack) -> None:
        self.web = web
        self.port = port
        self._opened = opened

    def context(self, certificate: str | None = None, **options: Any) -> ssl.SSLContext:
        """Return the TLS context of a client, with the named certificate or none."""
        context = ssl.create_default_context(cafile=self.web.with_name("authority.crt"))
        if certificate is not None:
            context.load_cert_chain(
                self.web.with_name(certificate + ".crt"), self.web.with_name(certificate + ".key")
            )
        ciphers = options.pop("ciphers", None)
        if ciphers is not None:
            context.set_ciphers(ciphers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for name, value in options.items():
                setattr(context, name, value)
        return context

    def connect(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self._opened.callback(connection.close)
        return connection

    def connect_tls(self, certificate: str | None = None, **options: Any) -> ssl.SSLSocket:
        """Return a TLS connection after a successful handshake."""
        context = self.context(certificate, **options)
        connection = context.wrap_socket(self.connect(), server_hostname="localhost")
        self._opened.callback(connection.close)
        return connection

    def https(self, certificate: str | None = None, **options: Any) -> http.client.HTTPConnection:
        context = self.context(certificate, **options)
        connection = http.client.HTTPSConnection(
            "localhost", self.port, timeout=20, context=context
        )
        self._opened.callback(connection.close)
        return connection

    def http(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("localhost", self.port, timeout=20)
        self._opened.callback(connection.close)
        return connection


def get(
    connection: http.client.HTTPConnection, path: str = "/hello", **headers: str
) -> tuple[int, bytes]:
    connection.request("GET", path, headers=headers)
    response = connection.getresponse()
    return response.status, response.read()


@contextmanager
def serving(
    certificates: Path, directory: Path, text: str, timeouts: Timeouts = DEFAULT_TIMEOUTS
) -> Iterator[Server]:
    web = Path(shutil.copytree(certificates, directory / "web")) / "web.yml"
    web.write_text(text)
    listen = [ListenAddress("127.0.0.1", 0)]
    server = WebServer(application, listen, timeouts, AccessControl(web))
    (bound,) = server.start()
    with ExitStack() as opened:
        opened.callback(server.stop)
        yield Server(web, bound.port, opened)


Serve = Callable[..., Server]


@pytest.fixture
def serve(certificates: Path, tmp_path: Path) -> Iterator[Serve]:
    """Start servers with the given text as their web configuration."""
    with ExitStack() as stack:
        yield lambda text, **rest: stack.enter_context(
            serving(certificates, tmp_path, text, **rest)
        )


def is_rejected(server: Server, certificate: str | None = None, **options: Any) -> bool:
    """Return whether a TLS client gets no page."""
    try:
        return get(server.https(certificate, **options))[0] != 200
    except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
        return True


def test_pages_are_served_over_tls(serve: Serve) -> None:
    connection = serve(TLS).https()
    connection.connect()
    first = connection.sock
    assert isinstance(first, ssl.SSLSocket)
    assert first.version() == "TLSv1.3"
    assert first.selected_alpn_protocol() is None
    for _ in range(3):
        assert get(connection) == (200, b"/hello\n")
        assert connection.sock is first
    assert get(connection, "/large") == (200, LARGE)
    connection.close()


def test_alpn_offers_http_1_1(serve: Serve) -> None:
    server = serve(TLS)
    context = server.context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with context.wrap_socket(server.connect(), server_hostname="localhost") as client:
        assert client.selected_alpn_protocol() == "http/1.1"


def test_unencrypted_request_to_tls_port_is_400(serve: Serve) -> None:
    connection = serve(TLS).http()
    status, text = get(connection)
    assert status == 400
    assert text == b"This port requires HTTPS; the request was unencrypted.\n"
    connection.close()


@pytest.mark.parametrize(
    ("settings", "client", "version"),
    [
        ("", {}, "TLSv1.3"),
        ("", {"maximum_version": ssl.TLSVersion.TLSv1_2}, "TLSv1.2"),
        ("  max_version: TLS12\n", {}, "TLSv1.2"),
        ("  min_version: TLS13\n", {"maximum_version": ssl.TLSVersion.TLSv1_2}, None),
        ("", {"maximum_version": ssl.TLSVersion.TLSv1_1}, None),
        ("  min_version: TLS11\n", {"maximum_version": ssl.TLSVersion.TLSv1_1}, "TLSv1.1"),
        ("  min_version: TLS10\n", {"maximum_version": ssl.TLSVersion.TLSv1}, "TLSv1"),
        (
            "  cipher_suites: [TLS_AES_128_GCM_SHA256]\n",
            {"maximum_version": ssl.TLSVersion.TLSv1_2},
            None,
        ),
    ],
)
def test_tls_versions(
    serve: Serve, settings: str, client: dict[str, Any], version: str | None
) -> None:
    server = serve(TLS + settings)
    if "maximum_version" in client:
        client = {"minimum_version": ssl.TLSVersion.TLSv1, "ciphers": "ALL:@SECLEVEL=0", **client}
    if version is None:
        assert is_rejected(server, **client)
    else:
        with server.connect_tls(**client) as connection:
            assert connection.version() == version


@pytest.mark.parametrize(
    ("prefers", "selected"),
    [("true", "ECDHE-ECDSA-AES256-GCM-SHA384"), ("false", "ECDHE-ECDSA-AES128-GCM-SHA256")],
)
def test_cipher_order_preference(serve: Serve, prefers: str, selected: str) -> None:
    suites = "[TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]"
    settings = f"  cipher_suites: {suites}\n  prefer_server_cipher_suites: {prefers}\n"
    server = serve(TLS + settings)
    offered = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
    old = ssl.TLSVersion.TLSv1_2
    with server.connect_tls(maximum_version=old, ciphers=offered) as client:
        cipher = client.cipher()
        assert cipher is not None
        assert cipher[0] == selected
    assert is_rejected(server, maximum_version=old, ciphers="ECDHE-ECDSA-CHACHA20-POLY1305")


@pytest.mark.parametrize(("curve", "is_accepted"), [("prime256v1", True), ("secp384r1", False)])
def test_only_the_configured_curve_is_accepted(
    serve: Serve, curve: str, is_accepted: bool
) -> None:
    server = serve(f"{TLS}  curve_preferences: [CurveP256]\n")
    context = server.context()
    context.set_ecdh_curve(curve)
    try:
        context.wrap_socket(server.connect(), server_hostname="localhost").close()
    except ssl.SSLError:
        assert not is_accepted
    else:
        assert is_accepted


ACCEPTED = {
    "NoClientCert": {None, "client", "other", "unknown", "itself"},
    "RequestClientCert": {None, "client", "other", "unknown", "itself"},
    "VerifyClientCertIfGiven": {None, "client", "other"},
    "RequireAndVerifyClientCert": {"client", "other"},
}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("policy", list(ACCEPTED))
def test_client_certificates(serve: Serve, policy: str, version: ssl.TLSVersion) -> None:
    text = VERIFIED + policy if policy != "NoClientCert" else f"{TLS}  client_auth_type: {policy}"
    server = serve(text)
    accepted = {
        certificate
        for certificate in (None, "client", "other", "unknown", "itself")
        if not is_rejected(server, certificate, maximum_version=version)
    }
    assert accepted == ACCEPTED[policy]


def test_self_signed_client_certificate_can_be_trusted(serve: Serve) -> None:
    text = VERIFIED.replace("authority.crt", "itself.crt") + "RequireAndVerifyClientCert\n"
    server = serve(text)
    assert not is_rejected(server, "itself")
    assert is_rejected(server, "client")


def test_system_authorities_do_not_trust_test_clients(serve: Serve) -> None:
    server = serve(f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n")
    assert is_rejected(server, "client")
    assert is_rejected(server)


@pytest.mark.parametrize(
    ("names", "accepted"),
    [
        ("[prometheus]", {"client"}),
        ("['2001:db8::1']", {"client"}),
        ("['spiffe://a/b']", {"client"}),
        ("[a@b.c, other]", {"client", "other"}),
        ("[PROMETHEUS, 'prometheus.']", set()),
        ("[]", set()),
    ],
)
def test_client_certificate_needs_an_allowed_name(
    serve: Serve, names: str, accepted: set[str]
) -> None:
    server = serve(f"{VERIFIED}RequireAndVerifyClientCert\n  client_allowed_sans: {names}\n")
    clients = ("client", "other")
    assert {client for client in clients if not is_rejected(server, client)} == accepted


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_every_path_requires_the_password(serve: Serve, path: str, method: str) -> None:
    connection = serve(USERS).http()
    for headers, status in (({}, 401), (ALICE, 200), ({"Authorization": "Basic YTpi"}, 401)):
        connection.request(method, path, headers=headers)
        response = connection.getresponse()
        response.read()
        assert response.status == status
        challenge = 'Basic realm="disksla"' if status == 401 else None
        assert response.getheader("WWW-Authenticate") == challenge
        assert connection.sock is not None, "a 401 does not close the connection"


def test_too_many_pending_passwords_are_503(serve: Serve) -> None:
    expensive = bcrypt.hashpw(PASSWORD, bcrypt.gensalt(12)).decode()
    server = serve(USERS.replace(HASH, expensive))
    guesses = [server.http() for _ in range(MAX_PENDING + 20)]
    for number, guess in enumerate(guesses):
        encoded = base64.b64encode(b"alice:%d" % number).decode()
        guess.request("GET", "/", headers={"Authorization": f"Basic {encoded}"})
    assert guesses[0].getresponse().status == 401
    refused = guesses[-1].getresponse()
    assert (refused.status, refused.getheader("Retry-After")) == (503, "1")


def test_password_and_certificate_can_both_be_required(serve: Serve) -> None:
    server = serve(f"{VERIFIED}RequireAndVerifyClientCert\n{USERS}")
    assert get(server.https("client"), **ALICE)[0] == 200
    assert get(server.https("client"))[0] == 401
    assert is_rejected(server)


def test_configured_headers_replace_those_of_every_response(serve: Serve) -> None:
    server = serve(f"{USERS}http_server_config: {{headers: {{X-Frame-Options: deny}}}}\n")
    connection = server.http()
    for headers in (ALICE, {}):
        connection.request("GET", "/", headers=headers)
        response = connection.getresponse()
        response.read()
        assert response.headers.get_all("X-Frame-Options") == ["deny"]


def server_serial(server: Server) -> str:
    with server.connect_tls() as client:
        certificate = client.getpeercert()
        assert certificate is not None
        return str(certificate["serialNumber"])


def test_certificate_can_change_between_connections(serve: Serve) -> None:
    server = serve(TLS)
    connected = server.https()
    assert get(connected)[0] == 200
    before = server_serial(server)
    for suffix in ("crt", "key"):
        shutil.copy(server.web.with_name(f"renewed.{suffix}"), server.web.with_name("new"))
        server.web.with_name("new").replace(server.web.with_name(f"server.{suffix}"))
    after = server_serial(server)
    assert after != before
    with pytest.raises(http.client.RemoteDisconnected):  # unanswered, so it can be retried
        get(connected)
    connected.close()
    assert get(connected)[0] == 200


def test_client_authority_can_change(serve: Serve) -> None:
    server = serve(f"{VERIFIED}RequireAndVerifyClientCert\n")
    connected = server.https("client")
    assert get(connected)[0] == 200
    authority = server.web.with_name("authority.crt").read_bytes()
    unknown = server.https("unknown")
    shutil.copy(server.web.with_name("stranger.crt"), server.web.with_name("authority.crt"))
    with pytest.raises(http.client.RemoteDisconnected):
        get(connected)
    assert get(unknown)[0] == 200
    server.web.with_name("authority.crt").write_bytes(authority)
    assert is_rejected(server, "unknown")


def test_invalid_certificate_rejects_new_connections_only(serve: Serve) -> None:
    server = serve(TLS)
    connected = server.https()
    assert get(connected)[0] == 200
    server.web.with_name("server.crt").write_text("")
    with pytest.raises(ssl.SSLError, match="TLSV1_ALERT_INTERNAL_ERROR"):
        server.connect_tls()
    assert get(connected)[0] == 200


def test_invalid_file_rejects_all_requests_until_fixed(serve: Serve) -> None:
    server = serve(TLS + USERS)
    connected = server.https()
    assert get(connected, **ALICE)[0] == 200
    server.web.write_text("")
    status, text = get(connected, **ALICE)
    assert (status, text) == (500, b"Invalid web configuration; see the log of disksla.\n")
    with pytest.raises(ssl.SSLError):
        server.connect_tls()
    server.web.write_text(TLS + USERS)
    assert get(connected, **ALICE)[0] == 200


def test_unencrypted_connections_end_when_tls_is_configured(serve: Serve) -> None:
    server = serve("")
    connected = server.http()
    assert get(connected)[0] == 200
    server.web.write_text(TLS)
    with pytest.raises(http.client.RemoteDisconnected):
        get(connected)
    assert get(server.https())[0] == 200


def test_requests_above_the_rate_limit_are_429(serve: Serve) -> None:
    server = serve("rate_limit: {interval: 1h, burst: 3}\n")
    statuses = [get(server.http(), path)[0] for path in PATHS[:5]]
    assert statuses == [200, 200, 200, 429, 429]
    server.web.write_text("")
    assert get(server.http())[0] == 200


def test_tls_handshake_has_a_timeout(serve: Serve) -> None:
    endless = Timeouts(head_s=3600.0, answer_s=3600.0, idle_s=3600.0)
    server = serve(TLS, timeouts=endless._replace(handshake_s=0.3))
    with server.connect() as silent, server.connect() as stopping:
        stopping.sendall(b"\x16\x03\x01")  # the first bytes of a handshake
        assert silent.recv(1) == b""
        assert stopping.recv(1) == b""
    assert get(server.https())[0] == 200


def test_clients_without_handshake_are_dropped_for_new_ones(serve: Serve) -> None:
    server = serve(TLS, timeouts=Timeouts(handshake_s=600, head_s=600))
    with ExitStack() as opened:
        idle = [opened.enter_context(server.connect()) for _ in range(300)]
        assert eventually(lambda: is_closed_by_server(idle[0]), 20)
        assert get(server.https())[0] == 200
        assert not is_closed_by_server(idle[-1])


def is_closed_by_server(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_tls_response_that_is_not_read_is_abandoned(serve: Serve) -> None:
    server = serve(TLS, timeouts=Timeouts(answer_s=0.3))
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(20)
    plain.connect(("127.0.0.1", server.port))
    with server.context().wrap_socket(plain, server_hostname="localhost") as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1) == b"H"
        received = 0
        assert not eventually(lambda: False, 0.6)
        with suppress(OSError):
            while chunk := client.recv(65536):
                received += len(chunk)
        assert received < len(LARGE)


def test_tls_connection_ends_with_close_notify(serve: Serve) -> None:
    server = serve(TLS)
    context = server.context()
    plain = server.connect()
    with context.wrap_socket(
        plain, server_hostname="localhost", suppress_ragged_eofs=False
    ) as client:
        client.sendall(b"GET /hello HTTP/1.0\r\n\r\n")
        received = b"".join(iter(lambda: client.recv(65536), b""))
    assert received.endswith(b"/hello\n")


def test_alternative_names_are_in_the_notation_of_go() -> None:
    names = (
        ("DNS", "Prometheus.example"),
        ("IP Address", "2001:DB8:0:0:0:0:0:1"),
        ("IP Address", "0:0:0:0:0:FFFF:A00:1"),
        ("IP Address", "10.0.0.2"),
        ("IP Address", "<invalid>"),
        ("othername", "<unsupported>"),
    )
    assert alternative_names({"subjectAltName": names}) == {
        *("Prometheus.example", "2001:db8::1", "10.0.0.1", "10.0.0.2", "<invalid>")
    }
    assert alternative_names({}) == set()

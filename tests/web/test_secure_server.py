"""The server with a web configuration file, over real sockets and real TLS."""

import base64
import http.client
import shutil
import socket
import ssl
import threading
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any
from wsgiref.types import StartResponse, WSGIEnvironment

import bcrypt
import pytest

from disksla.web.access import AccessControl
from disksla.web.listen import ListenAddress
from disksla.web.server import (
    DEFAULT_SCRAPE_LIMIT,
    DEFAULT_TIMEOUTS,
    ScrapeLimit,
    Timeouts,
    WebServer,
)
from disksla.web.tls import names_of
from support.loop_device import eventually

LARGE = b"x" * 4_000_000
SHOWN = "  cert_file: server.crt\n  key_file: server.key\n"
TLS = f"tls_server_config:\n{SHOWN}"
VERIFIED = f"{TLS}  client_ca_file: authority.crt\n  client_auth_type: "
PASSWORD = b"correct horse"
HASH = bcrypt.hashpw(PASSWORD, bcrypt.gensalt(4)).decode()
USERS = f"basic_auth_users: {{alice: {HASH}}}\n"
ALICE = {"Authorization": "Basic " + base64.b64encode(b"alice:" + PASSWORD).decode()}
PATHS = ("/", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/nowhere")


def application(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
    body = LARGE if environ["PATH_INFO"] == "/large" else f"{environ['PATH_INFO']}\n".encode()
    own = [("Content-Length", str(len(body))), ("X-Frame-Options", "sameorigin")]
    start_response("200 OK", own)
    return [body]


class Server:
    """A server that runs, and a client of it."""

    def __init__(self, web: Path, port: int, opened: ExitStack) -> None:
        self.web = web
        self.port = port
        self._opened = opened

    def context(self, shows: str | None = None, **wishes: Any) -> ssl.SSLContext:
        """Give what a client speaks TLS by, that shows a certificate or none."""
        context = ssl.create_default_context(cafile=self.web.with_name("authority.crt"))
        if shows is not None:
            context.load_cert_chain(
                self.web.with_name(shows + ".crt"), self.web.with_name(shows + ".key")
            )
        ciphers = wishes.pop("ciphers", None)
        if ciphers is not None:
            context.set_ciphers(ciphers)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", DeprecationWarning)
            for name, value in wishes.items():
                setattr(context, name, value)
        return context

    def connected(self) -> socket.socket:
        connection = socket.create_connection(("127.0.0.1", self.port), timeout=20)
        self._opened.callback(connection.close)
        return connection

    def secured(self, shows: str | None = None, **wishes: Any) -> ssl.SSLSocket:
        """Give a connection in TLS whose client was not turned away."""
        context = self.context(shows, **wishes)
        connection = context.wrap_socket(self.connected(), server_hostname="localhost")
        self._opened.callback(connection.close)
        return connection

    def connection(self, shows: str | None = None, **wishes: Any) -> http.client.HTTPConnection:
        context = self.context(shows, **wishes)
        connection = http.client.HTTPSConnection(
            "localhost", self.port, timeout=20, context=context
        )
        self._opened.callback(connection.close)
        return connection

    def in_clear(self) -> http.client.HTTPConnection:
        connection = http.client.HTTPConnection("localhost", self.port, timeout=20)
        self._opened.callback(connection.close)
        return connection


def ask(
    connection: http.client.HTTPConnection, path: str = "/hello", **headers: str
) -> tuple[int, bytes]:
    connection.request("GET", path, headers=headers)
    answer = connection.getresponse()
    return answer.status, answer.read()


@contextmanager
def serving(
    papers: Path,
    directory: Path,
    text: str,
    patience: Timeouts = DEFAULT_TIMEOUTS,
    scrapes: ScrapeLimit = DEFAULT_SCRAPE_LIMIT,
    app: Any = application,
) -> Iterator[Server]:
    web = Path(shutil.copytree(papers, directory / "web")) / "web.yml"
    web.write_text(text)
    server = WebServer(app, [ListenAddress("127.0.0.1", 0)], patience, AccessControl(web), scrapes)
    (bound,) = server.start()
    with ExitStack() as opened:
        opened.callback(server.stop)
        yield Server(web, bound.port, opened)


Serve = Callable[..., Server]


@pytest.fixture
def serve(papers: Path, tmp_path: Path) -> Iterator[Serve]:
    """Serve with a web configuration of this text."""
    with ExitStack() as stack:
        yield lambda text, **rest: stack.enter_context(serving(papers, tmp_path, text, **rest))


def is_turned_away(server: Server, shows: str | None = None, **wishes: Any) -> bool:
    """Tell whether a client gets no answer over TLS."""
    try:
        return ask(server.connection(shows, **wishes))[0] != 200
    except (ssl.SSLError, ConnectionError, http.client.RemoteDisconnected):
        return True


def test_pages_are_served_in_tls(serve: Serve) -> None:
    connection = serve(TLS).connection()
    connection.connect()
    first = connection.sock
    assert isinstance(first, ssl.SSLSocket)
    assert first.version() == "TLSv1.3"
    assert first.selected_alpn_protocol() is None
    for _ in range(3):
        assert ask(connection) == (200, b"/hello\n")
        assert connection.sock is first
    assert ask(connection, "/large") == (200, LARGE)
    connection.close()


def test_what_is_offered_is_http_1(serve: Serve) -> None:
    server = serve(TLS)
    context = server.context()
    context.set_alpn_protocols(["h2", "http/1.1"])
    with context.wrap_socket(server.connected(), server_hostname="localhost") as client:
        assert client.selected_alpn_protocol() == "http/1.1"


def test_requests_that_come_together_or_byte_by_byte_are_answered(serve: Serve) -> None:
    with serve(TLS).secured() as client:
        request = b"GET /%d HTTP/1.1\r\nHost: x\r\n%s\r\n"
        client.sendall(request % (1, b"") + request % (2, b""))
        for byte in request % (3, b"Connection: close\r\n"):
            client.sendall(bytes([byte]))
        said = b"".join(iter(lambda: client.recv(65536), b""))
    assert said.count(b"HTTP/1.1 200 OK") == 3
    assert said.endswith(b"/3\n")


def test_who_speaks_in_clear_is_told_so(serve: Serve) -> None:
    connection = serve(TLS).in_clear()
    status, text = ask(connection)
    assert status == 400
    assert text == b"This port speaks HTTPS, and the request was sent in clear.\n"
    connection.close()


@pytest.mark.parametrize(
    ("wishes", "client", "agreed"),
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
def test_versions(serve: Serve, wishes: str, client: dict[str, Any], agreed: str | None) -> None:
    server = serve(TLS + wishes)
    if "maximum_version" in client:
        client = {"minimum_version": ssl.TLSVersion.TLSv1, "ciphers": "ALL:@SECLEVEL=0", **client}
    if agreed is None:
        assert is_turned_away(server, **client)
    else:
        with server.secured(**client) as connection:
            assert connection.version() == agreed


@pytest.mark.parametrize(
    ("prefers", "agreed"),
    [("true", "ECDHE-ECDSA-AES256-GCM-SHA384"), ("false", "ECDHE-ECDSA-AES128-GCM-SHA256")],
)
def test_whose_order_of_ciphers_counts(serve: Serve, prefers: str, agreed: str) -> None:
    suites = "[TLS_ECDHE_ECDSA_WITH_AES_256_GCM_SHA384, TLS_ECDHE_ECDSA_WITH_AES_128_GCM_SHA256]"
    wishes = f"  cipher_suites: {suites}\n  prefer_server_cipher_suites: {prefers}\n"
    server = serve(TLS + wishes)
    offered = "ECDHE-ECDSA-AES128-GCM-SHA256:ECDHE-ECDSA-AES256-GCM-SHA384"
    old = ssl.TLSVersion.TLSv1_2
    with server.secured(maximum_version=old, ciphers=offered) as client:
        cipher = client.cipher()
        assert cipher is not None
        assert cipher[0] == agreed
    assert is_turned_away(server, maximum_version=old, ciphers="ECDHE-ECDSA-CHACHA20-POLY1305")


@pytest.mark.parametrize(("curve", "is_welcome"), [("prime256v1", True), ("secp384r1", False)])
def test_the_curve_that_is_wanted(serve: Serve, curve: str, is_welcome: bool) -> None:
    server = serve(f"{TLS}  curve_preferences: [CurveP256]\n")
    context = server.context()
    context.set_ecdh_curve(curve)
    try:
        context.wrap_socket(server.connected(), server_hostname="localhost").close()
    except ssl.SSLError:
        assert not is_welcome
    else:
        assert is_welcome


WELCOME = {
    "NoClientCert": {None, "client", "other", "unknown", "itself"},
    "RequestClientCert": {None, "client", "other", "unknown", "itself"},
    "VerifyClientCertIfGiven": {None, "client", "other"},
    "RequireAndVerifyClientCert": {"client", "other"},
}


@pytest.mark.parametrize("version", [ssl.TLSVersion.TLSv1_2, ssl.TLSVersion.TLSv1_3])
@pytest.mark.parametrize("policy", list(WELCOME))
def test_client_certificates(serve: Serve, policy: str, version: ssl.TLSVersion) -> None:
    text = VERIFIED + policy if policy != "NoClientCert" else f"{TLS}  client_auth_type: {policy}"
    server = serve(text)
    welcome = {
        shows
        for shows in (None, "client", "other", "unknown", "itself")
        if not is_turned_away(server, shows, maximum_version=version)
    }
    assert welcome == WELCOME[policy]


def test_a_certificate_may_stand_for_itself(serve: Serve) -> None:
    text = VERIFIED.replace("authority.crt", "itself.crt") + "RequireAndVerifyClientCert\n"
    server = serve(text)
    assert not is_turned_away(server, "itself")
    assert is_turned_away(server, "client")


def test_nobody_is_vouched_for_by_the_authorities_of_the_system(serve: Serve) -> None:
    server = serve(f"{TLS}  client_auth_type: RequireAndVerifyClientCert\n")
    assert is_turned_away(server, "client")
    assert is_turned_away(server)


@pytest.mark.parametrize(
    ("names", "welcome"),
    [
        ("[prometheus]", {"client"}),
        ("['2001:db8::1']", {"client"}),
        ("['spiffe://a/b']", {"client"}),
        ("[a@b.c, other]", {"client", "other"}),
        ("[PROMETHEUS, 'prometheus.']", set()),
        ("[]", set()),
    ],
)
def test_certificates_must_be_for_a_name_that_is_allowed(
    serve: Serve, names: str, welcome: set[str]
) -> None:
    server = serve(f"{VERIFIED}RequireAndVerifyClientCert\n  client_allowed_sans: {names}\n")
    shown = ("client", "other")
    assert {shows for shows in shown if not is_turned_away(server, shows)} == welcome


@pytest.mark.parametrize("path", PATHS)
@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "DELETE"])
def test_no_path_is_without_a_password(serve: Serve, path: str, method: str) -> None:
    connection = serve(USERS).in_clear()
    for headers, status in (({}, 401), (ALICE, 200), ({"Authorization": "Basic YTpi"}, 401)):
        connection.request(method, path, headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.status == status
        shown = 'Basic realm="disksla"' if status == 401 else None
        assert answer.getheader("WWW-Authenticate") == shown
        assert connection.sock is not None, "to be asked for a password costs no connection"


def test_too_many_guesses_are_told_to_come_back(serve: Serve) -> None:
    dear = bcrypt.hashpw(PASSWORD, bcrypt.gensalt(12)).decode()
    server = serve(USERS.replace(HASH, dear))
    guesses = [server.in_clear() for _ in range(10)]
    for number, guess in enumerate(guesses):
        encoded = base64.b64encode(b"alice:%d" % number).decode()
        guess.request("GET", "/", headers={"Authorization": f"Basic {encoded}"})
    answers = [guess.getresponse() for guess in guesses]
    statuses = sorted(answer.status for answer in answers)
    assert statuses[0] == 401
    assert statuses[-1] == 503
    assert all(answer.read() == b"" for answer in answers)


def test_who_wants_no_other_request_gets_none(serve: Serve) -> None:
    with serve(USERS).connected() as client:
        client.sendall(b"GET / HTTP/1.0\r\n\r\n")
        said = b"".join(iter(lambda: client.recv(4096), b""))
    assert said.startswith(b"HTTP/1.1 401")
    assert b"Connection: close" in said


def test_passwords_and_certificates_go_together(serve: Serve) -> None:
    server = serve(f"{VERIFIED}RequireAndVerifyClientCert\n{USERS}")
    assert ask(server.connection("client"), **ALICE)[0] == 200
    assert ask(server.connection("client"))[0] == 401
    assert is_turned_away(server)


def test_nonsense_is_nonsense_before_it_is_a_stranger(serve: Serve) -> None:
    server = serve(USERS)
    with server.connected() as client:
        client.sendall(b"nonsense\r\n\r\n")
        assert client.recv(100).startswith(b"HTTP/1.1 400")


def test_headers_stand_on_every_answer_and_in_place_of_our_own(serve: Serve) -> None:
    server = serve(f"{USERS}http_server_config: {{headers: {{X-Frame-Options: deny}}}}\n")
    connection = server.in_clear()
    for headers in (ALICE, {}):
        connection.request("GET", "/", headers=headers)
        answer = connection.getresponse()
        answer.read()
        assert answer.headers.get_all("X-Frame-Options") == ["deny"]


def test_passwords_are_swapped_between_two_requests(serve: Serve) -> None:
    server = serve(USERS)
    connection = server.in_clear()
    assert ask(connection, **ALICE)[0] == 200
    server.web.write_text(USERS.replace("alice", "carol"))
    assert ask(connection, **ALICE)[0] == 401
    server.web.write_text(USERS)
    assert ask(connection, **ALICE)[0] == 200


def shown_serial(server: Server) -> str:
    with server.secured() as client:
        certificate = client.getpeercert()
        assert certificate is not None
        return str(certificate["serialNumber"])


def test_certificates_are_swapped_between_two_connections(serve: Serve) -> None:
    server = serve(TLS)
    staying = server.connection()
    assert ask(staying)[0] == 200
    before = shown_serial(server)
    for suffix in ("crt", "key"):
        shutil.copy(server.web.with_name(f"renewed.{suffix}"), server.web.with_name("new"))
        server.web.with_name("new").replace(server.web.with_name(f"server.{suffix}"))
    after = shown_serial(server)
    assert after != before
    with pytest.raises(http.client.RemoteDisconnected):  # without being answered: it may ask again
        ask(staying)
    staying.close()
    assert ask(staying)[0] == 200


def test_an_authority_that_is_swapped_lets_in_others(serve: Serve) -> None:
    server = serve(f"{VERIFIED}RequireAndVerifyClientCert\n")
    staying = server.connection("client")
    assert ask(staying)[0] == 200
    shutil.copy(server.web.with_name("stranger.crt"), server.web.with_name("authority.crt.new"))
    authority = server.web.with_name("authority.crt").read_bytes()
    unknown = server.connection("unknown")
    shutil.copy(server.web.with_name("stranger.crt"), server.web.with_name("authority.crt"))
    with pytest.raises(http.client.RemoteDisconnected):
        ask(staying)
    assert ask(unknown)[0] == 200
    server.web.with_name("authority.crt").write_bytes(authority)
    assert is_turned_away(server, "unknown")


def test_a_broken_certificate_refuses_newcomers_only(serve: Serve) -> None:
    server = serve(TLS)
    staying = server.connection()
    assert ask(staying)[0] == 200
    server.web.with_name("server.crt").write_text("")
    with pytest.raises(ssl.SSLError, match="TLSV1_ALERT_INTERNAL_ERROR"):
        server.secured()
    assert ask(staying)[0] == 200


def test_a_broken_file_refuses_everybody_until_it_is_right(serve: Serve) -> None:
    server = serve(TLS + USERS)
    staying = server.connection()
    assert ask(staying, **ALICE)[0] == 200
    server.web.write_text("")
    status, text = ask(staying, **ALICE)
    assert (status, text) == (500, b"The web configuration is wrong; the log says what.\n")
    with pytest.raises(ssl.SSLError):
        server.secured()
    server.web.write_text(TLS + USERS)
    assert ask(staying, **ALICE)[0] == 200


def test_a_broken_file_refuses_requests_in_clear(serve: Serve) -> None:
    server = serve(USERS)
    server.web.write_text("basic_auth_users: {}\n")
    connection = server.in_clear()
    for path in PATHS:
        assert ask(connection, path, **ALICE)[0] == 500


def test_connections_in_clear_end_when_tls_is_asked_for(serve: Serve) -> None:
    server = serve("")
    staying = server.in_clear()
    assert ask(staying)[0] == 200
    server.web.write_text(TLS)
    with pytest.raises(http.client.RemoteDisconnected):
        ask(staying)
    assert ask(server.connection())[0] == 200


def test_more_requests_than_the_rate_are_told_so(serve: Serve) -> None:
    server = serve("rate_limit: {interval: 1h, burst: 3}\n")
    statuses = [ask(server.in_clear(), path)[0] for path in PATHS[:5]]
    assert statuses == [200, 200, 200, 429, 429]
    server.web.write_text("")
    assert ask(server.in_clear())[0] == 200


def test_scrapes_have_a_limit_of_their_own(serve: Serve) -> None:
    gate = threading.Event()
    asked = threading.Semaphore(0)

    def waiting(environ: WSGIEnvironment, start_response: StartResponse) -> list[bytes]:
        asked.release()
        assert gate.wait(20)
        return application(environ, start_response)

    server = serve("", scrapes=ScrapeLimit("/metrics", 2), app=waiting)
    with ExitStack() as stack:
        stack.callback(gate.set)
        clients = [stack.enter_context(server.connected()) for _ in range(2)]
        for client in clients:
            client.sendall(b"GET /metrics?name[]=a HTTP/1.0\r\n\r\n")
            assert asked.acquire(timeout=20)
        status, text = ask(server.in_clear(), "/metrics")
        assert (status, text) == (503, b"2 scrapes are being answered; come back later.\n")
        other = stack.enter_context(server.connected())
        other.sendall(b"GET /-/healthy HTTP/1.0\r\n\r\n")
        gate.set()
        assert other.recv(100).startswith(b"HTTP/1.1 200")
        assert all(client.recv(100).startswith(b"HTTP/1.1 200") for client in clients)
    assert eventually(lambda: ask(server.in_clear(), "/metrics")[0] == 200, 20)


def test_no_limit_of_scrapes(serve: Serve) -> None:
    server = serve("", scrapes=ScrapeLimit("/metrics", 0))
    assert ask(server.in_clear(), "/metrics")[0] == 200


def test_agreeing_on_tls_takes_no_longer_than_it_may(serve: Serve) -> None:
    endless = Timeouts(head_s=3600.0, answer_s=3600.0, idle_s=3600.0)
    server = serve(TLS, patience=endless._replace(handshake_s=0.3))
    with server.connected() as silent, server.connected() as stopping:
        stopping.sendall(b"\x16\x03\x01")  # how a handshake begins
        assert silent.recv(1) == b""
        assert stopping.recv(1) == b""
    assert ask(server.connection())[0] == 200


def test_clients_that_never_agree_on_tls_are_dropped_for_newcomers(serve: Serve) -> None:
    server = serve(TLS, patience=Timeouts(handshake_s=600, head_s=600))
    with ExitStack() as opened:
        idle = [opened.enter_context(server.connected()) for _ in range(300)]
        assert eventually(lambda: is_closed_by_server(idle[0]), 20)
        assert ask(server.connection())[0] == 200
        assert not is_closed_by_server(idle[-1])


def is_closed_by_server(client: socket.socket) -> bool:
    client.setblocking(False)
    try:
        return client.recv(1, socket.MSG_PEEK) == b""
    except BlockingIOError:
        return False
    except OSError:
        return True


def test_an_answer_that_is_not_taken_is_given_up(serve: Serve) -> None:
    server = serve(TLS, patience=Timeouts(answer_s=0.3))
    plain = socket.socket()
    plain.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
    plain.settimeout(20)
    plain.connect(("127.0.0.1", server.port))
    with server.context().wrap_socket(plain, server_hostname="localhost") as client:
        client.sendall(b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.recv(1) == b"H"
        taken = 0
        assert not eventually(lambda: False, 0.6)
        with suppress(OSError):
            while chunk := client.recv(65536):
                taken += len(chunk)
        assert taken < len(LARGE)


def test_the_end_of_a_connection_is_said(serve: Serve) -> None:
    server = serve(TLS)
    context = server.context()
    plain = server.connected()
    with context.wrap_socket(
        plain, server_hostname="localhost", suppress_ragged_eofs=False
    ) as client:
        client.sendall(b"GET /hello HTTP/1.0\r\n\r\n")
        said = b"".join(iter(lambda: client.recv(65536), b""))
    assert said.endswith(b"/hello\n")


def test_names_are_written_as_go_writes_them() -> None:
    given = (
        ("DNS", "Prometheus.example"),
        ("IP Address", "2001:DB8:0:0:0:0:0:1"),
        ("IP Address", "0:0:0:0:0:FFFF:A00:1"),
        ("IP Address", "10.0.0.2"),
        ("IP Address", "<invalid>"),
        ("othername", "<unsupported>"),
    )
    assert names_of({"subjectAltName": given}) == {
        *("Prometheus.example", "2001:db8::1", "10.0.0.1", "10.0.0.2", "<invalid>")
    }
    assert names_of({}) == set()

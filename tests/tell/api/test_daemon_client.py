"""What a daemon, or another program on its port, says of its disks."""

import os
import socket
import ssl
import threading
from contextlib import suppress
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.tell.api import DisksDocument, disks_document
from disksla.tell.api.daemon_client import Access, ask_disks, get_page, is_remote, parse_url
from disksla.tell.explanation import HistoryView
from disksla.verdict.throttling import VERDICTS
from support.answering import answering, listening, page
from support.certificates import make_certificates
from support.snapshots import disk_view, view


@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://127.0.0.1:10056", "http://127.0.0.1:10056/metrics"),
        ("http://localhost/", "http://localhost/metrics"),
        ("https://[::1]:443/telemetry", "https://[::1]:443/telemetry"),
        ("http://127.9.9.9:1/metrics?x=1", "http://127.9.9.9:1/metrics"),
        ("unix:///run/disksla/disksla.sock", "unix:///run/disksla/disksla.sock"),
        ("unix:/run/x.sock/", "unix:///run/x.sock"),
    ],
)
def test_addresses_on_loopback(url: str, shown: str) -> None:
    assert str(parse_url(url)) == shown


@pytest.mark.parametrize(
    "url",
    [
        "http://192.0.2.1:10056",
        "http://example.org",
        "http://localhost.example.org",
        "http://127.0.0.1.example.org/",
        "http://127.0.0.1@192.0.2.1/",
        "ftp://127.0.0.1",
        "127.0.0.1:10056",
        "http://127.0.0.1:99999",
        "http://[::1",
        "unix://",
        "unix:///",
        "unix://run/disksla.sock",
        "unix:relative.sock",
        "unix:///a\tb",
        "/run/disksla/disksla.sock",
        "http://127.0.0.1/\n",
        "",
    ],
)
def test_other_addresses_are_refused(url: str) -> None:
    with pytest.raises(DiskslaError, match="--url: found"):
        parse_url(url)


@given(st.text())
def test_any_text_is_an_address_on_loopback_or_refused(text: str) -> None:
    try:
        address = parse_url(text)
    except DiskslaError:
        return
    assert address.scheme in {"http", "https", "unix"}
    assert address.host == "localhost" or address.host.startswith(("127.", "::1", "::ffff:127"))


def reason_of(url: str) -> str:
    """Return why the daemon does not say what it knows of its disks."""
    reasons: list[str] = []
    assert ask_disks(url, reasons.append) is None
    [reason] = reasons
    assert "\n" not in reason
    return reason


def test_disks_of_the_daemon(tmp_path: Path) -> None:
    empty = '{"host":"db-1","version":"1","timestamp_s":2.5,"disks":[]}'
    reasons: list[str] = []
    with answering(page(empty), path=tmp_path / "socket") as url:
        found = ask_disks(url, reasons.append)
    assert found == DisksDocument(host="db-1", version="1", timestamp_s=2.5, disks=())
    assert reasons == []


@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        (page("", 400), "it requires HTTPS"),
        (page("", 401), "it requires a password"),
        (page("", 404), "there is no such page"),
        (page("", 418), "it answers with status 418"),
        (page("{}"), "its answer is not that of this version of disksla"),
        (page("<html>"), "its answer is not that of this version of disksla"),
        (b"SSH-2.0\r\n", "it does not speak HTTP: BadStatusLine"),
    ],
)
def test_daemon_that_does_not_say_it(answer: bytes, reason: str, tmp_path: Path) -> None:
    with answering(answer) as url:
        assert reason_of(url) == f"{url}: {reason}"
    with answering(answer, path=tmp_path / "socket") as url:
        assert reason_of(url) == f"{url}: {reason}"


def test_socket_without_a_daemon(tmp_path: Path) -> None:
    url = f"unix://{tmp_path / 'socket'}"
    assert reason_of(url) == f"{url}: {os.strerror(2)}"
    with socket.socket(socket.AF_UNIX) as bound:
        bound.bind(str(tmp_path / "socket"))
    assert reason_of(url) == f"{url}: Connection refused"


def document(*names: str, following: str | None = None) -> bytes:
    """Return a page of disks, as the daemon answers it."""
    whole = disks_document(view(*map(disk_view, names)), HistoryView(), "db-1", "1")
    return page(msgspec.json.encode(msgspec.structs.replace(whole, next=following)).decode())


def test_all_pages_of_disks_are_asked_for() -> None:
    asked: list[bytes] = []
    answers = (document("vda", "vdb", following="vdb"), document("vdc"))
    with answering(*answers, asked=asked) as url:
        found = ask_disks(url, names=["vd\u00e9", "vdb"])
    assert found is not None
    assert [disk.device for disk in found.disks] == ["vda", "vdb", "vdc"]
    assert found.next is None
    assert [each.split()[1] for each in asked] == [
        b"/api/v1/disks?disk=vd%C3%A9&disk=vdb",
        b"/api/v1/disks?disk=vd%C3%A9&disk=vdb&after=vdb",
    ]


def test_pages_without_end_are_not_asked_for() -> None:
    answers = [document(following=f"{number:03d}") for number in range(200)]
    with answering(*answers) as url:
        assert reason_of(url) == f"{url}: it has more than 200 pages of disks"


def test_all_pages_together_have_a_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    answers = [document("vda", following="vda"), document("vdb", following="vdb")]
    monkeypatch.setattr(
        "disksla.tell.api.daemon_client._MOST_BYTES_OF_PAGES", len(answers[0]) + 100
    )
    with answering(*answers) as url:
        assert reason_of(url) == f"{url}: its pages have more than 0 MiB together"


@pytest.mark.parametrize("verdict", VERDICTS)
def test_disks_of_another_version_are_not_an_answer(verdict: str) -> None:
    found = msgspec.to_builtins(disks_document(view(disk_view()), HistoryView(), "h", "1"))
    del found["disks"][0]["verdict_seconds"][verdict]
    with answering(page(msgspec.json.encode(found).decode())) as url:
        assert reason_of(url) == f"{url}: its answer is not that of this version of disksla"


@pytest.mark.parametrize("begin", [b"", b"HTTP/1.1 200 OK\r\nContent-Length: 1000000\r\n\r\n"])
def test_the_time_is_that_of_the_whole_answer(begin: bytes, tmp_path: Path) -> None:
    """The server sends a byte now and then, in the head or in the body."""
    ended = threading.Event()
    with listening(tmp_path / "socket") as server:

        def drip() -> None:
            client, _ = server.accept()
            with client, suppress(OSError):
                client.sendall(begin)
                while not ended.wait(0.02):
                    client.sendall(b"x")

        thread = threading.Thread(target=drip)
        thread.start()
        address = parse_url(f"unix://{tmp_path / 'socket'}")
        try:
            with pytest.raises(TimeoutError):
                get_page(address, "/", within_s=0.3)
        finally:
            ended.set()
            thread.join()


def test_answer_that_is_too_large_is_none() -> None:
    with answering(page("x" * (16 * 2**20 + 1))) as url:
        assert reason_of(url) == f"{url}: the answer has more than 16 MiB"


@pytest.mark.parametrize(
    ("url", "is_other"),
    [
        (None, False),
        ("http://127.0.0.1:10056", False),
        ("unix:///run/x.sock", False),
        ("https://db-1.example.org", True),
        ("http://192.0.2.1:10056/", True),
        ("http://[2001:db8::1]:10056", True),
    ],
)
def test_addresses_of_other_machines(url: str | None, is_other: bool) -> None:
    assert is_remote(url) == is_other


@pytest.mark.parametrize(
    "url", ["ftp://db-1", "http://", "db-1:10056", "http://a:b@db-1", "http:///x"]
)
def test_addresses_of_no_machine_are_refused(url: str) -> None:
    with pytest.raises(DiskslaError, match=r"--url: found .*expected an address") as raised:
        is_remote(url)
    assert "a:b" not in str(raised.value)


EMPTY = '{"host":"db-1","version":"1","timestamp_s":2.5,"disks":[]}'


def test_a_password_is_sent() -> None:
    asked: list[bytes] = []
    with answering(page(EMPTY), asked=asked) as url:
        found = ask_disks(url, access=Access({"Authorization": "Basic eDp5"}))
    assert found is not None
    assert b"\r\nAuthorization: Basic eDp5\r\n" in asked[0]
    assert "eDp5" not in repr(Access({"Authorization": "Basic eDp5"}))


@pytest.mark.parametrize(("authority", "is_trusted"), [("authority", True), ("stranger", False)])
def test_the_certificate_has_to_be_of_the_authority(
    authority: str, is_trusted: bool, tmp_path: Path
) -> None:
    make_certificates(tmp_path)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(tmp_path / "server.crt", tmp_path / "server.key")
    reasons: list[str] = []
    with socket.create_server(("127.0.0.1", 0)) as server:

        def serve() -> None:
            client, _ = server.accept()
            with (
                client,
                suppress(OSError),
                context.wrap_socket(client, server_side=True) as secure,
            ):
                secure.recv(65536)
                secure.sendall(page(EMPTY))

        thread = threading.Thread(target=serve)
        thread.start()
        access = Access(authority=str(tmp_path / f"{authority}.crt"))
        url = f"https://localhost:{server.getsockname()[1]}"
        found = ask_disks(url, reasons.append, access=access)
        thread.join()
    assert (found is not None) == is_trusted
    assert is_trusted or "its certificate is not trusted" in reasons[0]

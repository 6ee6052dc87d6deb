"""What a daemon, or another program on its port, answers."""

import os
import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.doctor.ask_daemon import ask_daemon, ask_disks, parse_samples, parse_url
from disksla.errors import DiskslaError
from disksla.web import DISKS_PATH, DisksDocument


@contextmanager
def answering(*answers: bytes, path: Path | None = None) -> Iterator[str]:
    """Answer one request after another with these bytes; yield the address.

    It is a Unix socket if a path is given, else a port on loopback.
    """
    with socket.create_server(("127.0.0.1", 0)) if path is None else listening(path) as server:

        def serve() -> None:
            for answer in answers:
                client, _ = server.accept()
                with client:
                    client.recv(65536)
                    client.sendall(answer)

        thread = threading.Thread(target=serve)
        thread.start()
        yield f"http://127.0.0.1:{server.getsockname()[1]}" if path is None else f"unix://{path}"
        thread.join()


def listening(path: Path) -> socket.socket:
    server = socket.socket(socket.AF_UNIX)
    server.bind(str(path))
    server.listen()
    return server


def page(body: str, status: int = 200) -> bytes:
    return f"HTTP/1.1 {status} X\r\nContent-Length: {len(body)}\r\n\r\n{body}".encode()


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


def test_samples_are_read() -> None:
    body = 'disksla_build_info{version="1"} 1\n'
    with answering(page("ready\nnever scraped\n"), page(body)) as url:
        facts = ask_daemon(url)
    assert facts.problem is None
    assert facts.ready_text == "ready\nnever scraped"
    [sample] = facts.values("disksla_build_info", version="1")
    assert sample.value == 1


@pytest.mark.parametrize(
    "body", ["<html>", "disksla_build_info{", "x 1 2 3 4", "\0", "a{b} c", "{, =1"]
)
def test_page_that_is_not_of_metrics(body: str) -> None:
    with answering(page("", 404), page(body)) as url:
        facts = ask_daemon(url)
    assert (facts.ready_status, facts.metrics_status) == (404, 200)
    assert facts.values("disksla_build_info") == []


WORDS = ("# HELP ", "# TYPE ", "a", "counter", "{", "}", "=", '"', "\\", ",", " ", "\n", "1")


@given(st.text() | st.lists(st.sampled_from(WORDS)).map("".join))
def test_any_text_has_samples_or_none(text: str) -> None:
    for sample in parse_samples(text):
        assert sample.name.removesuffix("_total") in text


@pytest.mark.parametrize(
    ("answer", "problem"),
    [
        (b"SSH-2.0-OpenSSH_9.2\r\n", "it does not speak HTTP: BadStatusLine"),
        (b"", "Remote end closed connection without response"),
    ],
)
def test_another_protocol(answer: bytes, problem: str) -> None:
    with answering(answer) as url:
        assert ask_daemon(url).problem == problem


def test_nothing_listens() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        assert ask_daemon(url).problem == "Connection refused"


def test_tls_that_the_other_side_does_not_speak() -> None:
    with answering(page("ready\n")) as url:
        facts = ask_daemon(url.replace("http:", "https:"))
    assert "TLS failed" in (facts.unseen or "")


def test_unix_socket_is_asked(tmp_path: Path) -> None:
    body = 'disksla_build_info{version="1"} 1\n'
    with answering(page("ready\n"), page(body), path=tmp_path / "socket") as url:
        facts = ask_daemon(url)
    assert (facts.url, facts.ready_status, facts.metrics_status) == (url, 200, 200)
    assert facts.values("disksla_build_info", version="1")


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


def test_another_machine_is_not_asked() -> None:
    with pytest.raises(DiskslaError, match="an address of this machine"):
        ask_disks(f"http://192.0.2.1{DISKS_PATH}")

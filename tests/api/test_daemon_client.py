"""What a daemon, or another program on its port, says of its disks."""

import os
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.api import DISKS_PATH, DisksDocument
from disksla.api.daemon_client import ask_disks, parse_url
from disksla.errors import DiskslaError
from support.answering import answering, page


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


def test_another_machine_is_not_asked() -> None:
    with pytest.raises(DiskslaError, match="an address of this machine"):
        ask_disks(f"http://192.0.2.1{DISKS_PATH}")

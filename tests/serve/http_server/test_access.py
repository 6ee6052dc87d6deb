"""Access control while the web configuration file and its certificates change."""

import asyncio
import logging
import os
import shutil
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.serve.http_server.access import (
    AccessControl,
    RejectedError,
    TokenBucket,
    may_be_of_another_site,
    names_of_machine,
)
from disksla.serve.http_server.config import RateLimit
from disksla.serve.http_server.http_protocol import HttpConnection
from support.log_events import events

Logged = pytest.LogCaptureFixture

TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
HASH = "$2b$04$" + "a" * 53
USERS = f"basic_auth_users: {{alice: {HASH}}}\n"
HEADERS = "http_server_config: {headers: {X-Frame-Options: deny}}\n"


@pytest.fixture
def web(certificates: Path, tmp_path: Path) -> Path:
    """Return the path of a web configuration file, in a directory of certificates."""
    return Path(shutil.copytree(certificates, tmp_path / "web")) / "web.yml"


def load(web: Path, text: str) -> AccessControl:
    web.write_text(text)
    return AccessControl(web)


def rejects_everything(access: AccessControl) -> bool:
    policy = access.policy()
    return policy.config is None and not policy.is_open


def test_access_is_unrestricted_without_a_file() -> None:
    access = AccessControl()
    policy = access.policy()
    assert not access.is_configured
    assert not access.speaks_tls
    assert policy.is_open
    assert policy.config is not None
    assert not policy.config.users
    assert access.covers(None)


def test_invalid_file_at_start_names_all_problems(web: Path) -> None:
    web.write_text(TLS.replace("server.", "none.") + "rate: {}\n")
    with pytest.raises(DiskslaError) as caught:
        AccessControl(web)
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [
        "tls_server_config.cert_file",
        "tls_server_config.key_file",
        "rate",
    ]


def test_settings_are_logged_at_start(web: Path, caplog: Logged) -> None:
    caplog.set_level(logging.INFO)
    load(web, TLS + USERS + "http_server_config: {http2: true}\n")
    assert events(caplog) == [
        ("info", "web configuration loaded", {"settings": "TLS 1.2 to 1.3, 1 user"}),
        ("info", "http2 is not supported; serving HTTP/1.1", {}),
    ]


def test_users_change_with_the_file(web: Path) -> None:
    access = load(web, USERS)
    web.write_text(USERS.replace("alice", "carol"))
    config = access.policy().config
    assert config is not None
    assert list(config.users) == ["carol"]


def test_rewritten_files_change_nothing(web: Path, caplog: Logged) -> None:
    access = load(web, TLS + USERS)
    before = access.policy()
    caplog.set_level(logging.INFO)
    for name in ("web.yml", "server.crt", "server.key"):
        content = web.with_name(name).read_bytes()
        web.with_name(name).write_bytes(content)
        assert access.policy() == before
    assert caplog.messages == []


@pytest.mark.parametrize(
    ("good", "bad"),
    [
        (TLS, TLS + "rate: {}\n"),
        (TLS, USERS),
        (TLS + USERS, TLS),
        (USERS, HEADERS),
        (TLS + USERS, ""),
        (USERS, "basic_auth_users: {alice: secret}\n"),
        (HEADERS, "{"),
    ],
)
def test_invalid_file_rejects_everything_until_fixed(
    good: str, bad: str, web: Path, caplog: Logged
) -> None:
    access = load(web, good)
    config = access.policy().config
    web.write_text(bad)
    for _ in range(3):
        assert rejects_everything(access)
    assert str(web) in str(access.problem)
    assert access.errors == 1
    [event] = events(caplog)
    assert (event.level, event.message) == ("error", "web configuration invalid")
    assert event.fields == {"refused": "requests", "err": access.problem}
    web.write_text(good)
    assert access.policy().config == config
    assert access.policy().is_open
    assert str(access.problem) == "None"
    assert access.errors == 1


def test_each_new_problem_is_logged(web: Path, caplog: Logged) -> None:
    access = load(web, USERS)
    for text in ("a: {}\n", "a: {}\n", "b: {}\n"):
        web.write_text(text)
        assert rejects_everything(access)
    web.unlink()
    assert rejects_everything(access)
    assert access.errors == 3
    problems = [event.fields["err"] for event in events(caplog)]
    assert len(problems) == 3
    assert "No such file" in problems[-1]


def test_invalid_certificate_does_not_hide_removed_passwords(web: Path) -> None:
    access = load(web, TLS + USERS)
    web.write_text(TLS.replace("server.key", "client.key"))
    assert rejects_everything(access)
    assert "basic_auth_users was removed; restart disksla" in str(access.problem)


def test_tls_can_be_added_later(web: Path) -> None:
    access = load(web, "")
    assert access.covers(None)
    web.write_text(TLS.replace("server.key", "none.key"))
    assert not access.policy().is_open
    assert access.speaks_tls
    assert not access.covers(None)
    web.write_text(TLS)
    context = access.policy().context
    assert context is not None
    assert access.covers(context)
    assert not access.covers(None)


def test_passwords_added_later_cannot_be_removed(web: Path) -> None:
    access = load(web, "")
    web.write_text(USERS)
    assert access.policy().config is not None
    web.write_text("")
    assert rejects_everything(access)


def test_rate_limit_counts_until_it_changes() -> None:
    access = AccessControl()
    limit = RateLimit(interval_s=10.0, burst=2)
    assert [access.within_rate(limit, now_s) for now_s in (0, 1, 2, 11, 12)] == [
        *(True, True, False, True, False)
    ]
    assert access.within_rate(RateLimit(interval_s=10.0, burst=3), 12.0)
    assert access.within_rate(RateLimit(), 12.0)


intervals = st.floats(0.001, 1000)
bursts = st.integers(1, 50)
times = st.lists(st.floats(0, 5000), max_size=60).map(sorted)


def full(interval_s: float, burst: int) -> TokenBucket:
    return TokenBucket(RateLimit(interval_s=interval_s, burst=burst), burst, 0.0)


def granted_at(bucket: TokenBucket, times_s: list[float]) -> list[float]:
    """Return the times at which there was a token."""
    granted = []
    for now_s in times_s:
        left = bucket.take(now_s)
        if left is not None:
            granted.append(now_s)
            bucket = left
    return granted


@given(intervals, bursts, times)
def test_rate_limit_holds_for_any_time_span(
    interval_s: float, burst: int, times_s: list[float]
) -> None:
    granted = granted_at(full(interval_s, burst), times_s)
    for first, begin_s in enumerate(granted):
        for last, end_s in enumerate(granted[first:], first):
            assert last - first + 1 <= burst + (end_s - begin_s) / interval_s + 1e-6


@given(intervals, bursts, times)
def test_requests_at_the_interval_are_all_granted(
    interval_s: float, burst: int, times_s: list[float]
) -> None:
    paced = [index * interval_s * 1.001 for index in range(len(times_s))]
    assert granted_at(full(interval_s, burst), paced) == paced


BROWSER = "Accept-Language: de\r\n"


def status_of(access: AccessControl, host: str, more: str) -> int:
    """Return the status with which a request is rejected; 200 if it is admitted."""
    http = HttpConnection()
    http.receive(f"GET / HTTP/1.1\r\nHost: {host}\r\n{more}\r\n".encode())
    try:
        asyncio.run(access.admit(http, access.policy(), "127.0.0.1"))
    except RejectedError as rejected:
        return rejected.response.status
    return 200


@pytest.mark.parametrize(
    ("host", "is_foreign"),
    [
        *(("evil.example:10056", True), ("evil.example.", True), ("127.0.0.1.evil.example", True)),
        *(("127.0.0.1:10056", False), ("[::1]:10056", False), ("[2001:db8::1]", False)),
        *(("localhost:10056", False), ("a.localhost", False), ("node-7:10056", False)),
        *(("disksla.monitoring.svc", False), ("disksla.monitoring.svc.cluster.local", False)),
        *(("ip-10-0-0-5.ec2.internal", False), ("DB1.corp.example:10056", False), ("", False)),
    ],
)
def test_a_browser_may_use_names_that_no_other_site_can_have(host: str, is_foreign: bool) -> None:
    names = {"db1.corp.example"}
    assert may_be_of_another_site(host, names) is is_foreign
    assert status_of(AccessControl(names=names), host, BROWSER) == (403 if is_foreign else 200)


def test_names_matter_for_browsers_without_tls_and_passwords_only(web: Path) -> None:
    """Prometheus comes by any name; no other site has the certificate or the password."""
    assert status_of(AccessControl(names=()), "db1.example:10056", "Accept: text/plain\r\n") == 200
    assert status_of(AccessControl(), "db1.example:10056", BROWSER) == 200
    web.write_text(USERS)
    assert status_of(AccessControl(web, names=()), "db1.example:10056", BROWSER) == 401
    web.write_text(TLS)
    assert status_of(AccessControl(web, names=()), "db1.example:10056", BROWSER) == 200


def test_names_of_the_machine_are_those_that_its_files_have(tmp_path: Path) -> None:
    own = os.uname().nodename.lower()
    assert names_of_machine(tmp_path) == {own}
    (tmp_path / "hosts").write_bytes(b"# a\n127.0.1.1 DB1.corp.example db1 # b.example\n\n\xff\n")
    (tmp_path / "resolv.conf").write_text("nameserver 10.0.0.1\nsearch corp.example lan\n")
    assert names_of_machine(tmp_path) == {
        *(own, f"{own}.corp.example", f"{own}.lan", "db1.corp.example", "db1")
    }

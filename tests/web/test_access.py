"""Who may come in, while the web configuration file and its certificates change."""

import logging
import shutil
from pathlib import Path

import pytest

from disksla.errors import DiskslaError
from disksla.web.access import AccessControl
from disksla.web.config import RateLimit
from support.log_events import events

TLS = "tls_server_config: {cert_file: server.crt, key_file: server.key}\n"
HASH = "$2b$04$" + "a" * 53
USERS = f"basic_auth_users: {{alice: {HASH}}}\n"
HEADERS = "http_server_config: {headers: {X-Frame-Options: deny}}\n"


@pytest.fixture
def web(papers: Path, tmp_path: Path) -> Path:
    """Give the path of a web configuration file, beside certificates that a test may change."""
    return Path(shutil.copytree(papers, tmp_path / "web")) / "web.yml"


def access_to(web: Path, text: str) -> AccessControl:
    web.write_text(text)
    return AccessControl(web)


def is_closed(access: AccessControl) -> bool:
    guard = access.guard()
    return guard.config is None and not guard.is_open


def test_without_a_file_everybody_may_come_in() -> None:
    access = AccessControl()
    guard = access.guard()
    assert not access.is_wanted
    assert not access.speaks_tls
    assert guard.is_open
    assert guard.config is not None
    assert not guard.config.users
    assert access.covers(None)


def test_a_bad_file_is_refused_at_the_start_with_all_its_problems(web: Path) -> None:
    web.write_text(TLS.replace("server.", "none.") + "rate: {}\n")
    with pytest.raises(DiskslaError) as caught:
        AccessControl(web)
    assert [line.split(": ")[1] for line in str(caught.value).splitlines()] == [
        "tls_server_config.cert_file",
        "tls_server_config.key_file",
        "rate",
    ]


def test_what_is_asked_for_is_told_at_the_start(
    web: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.INFO)
    access_to(web, TLS + USERS + "http_server_config: {http2: true}\n")
    assert events(caplog) == [
        ("info", "web configuration loaded", {"settings": "TLS 1.2 to 1.3, 1 user"}),
        ("info", "http2 is not supported; serving HTTP/1.1", {}),
    ]


def test_headers_are_ready_to_be_sent(web: Path) -> None:
    access = access_to(web, HEADERS)
    assert access.guard().headers == ((b"X-Frame-Options", b"deny"),)
    web.write_text("")
    assert access.guard().headers == ()


def test_users_change_with_the_file(web: Path) -> None:
    access = access_to(web, USERS)
    web.write_text(USERS.replace("alice", "carol"))
    config = access.guard().config
    assert config is not None
    assert list(config.users) == ["carol"]


def test_certificates_change_with_their_files(web: Path) -> None:
    access = access_to(web, TLS)
    before = access.guard().context
    for suffix in ("crt", "key"):
        shutil.copy(web.with_name(f"renewed.{suffix}"), web.with_name(f"server.{suffix}"))
    after = access.guard().context
    assert after is not None
    assert after is not before
    assert access.covers(after)
    assert not access.covers(before)


def test_what_was_only_touched_changes_nothing(
    web: Path, caplog: pytest.LogCaptureFixture
) -> None:
    access = access_to(web, TLS + USERS)
    before = access.guard()
    caplog.set_level(logging.INFO)
    for name in ("web.yml", "server.crt", "server.key"):
        content = web.with_name(name).read_bytes()
        web.with_name(name).write_bytes(content)
        assert access.guard() == before
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
def test_a_file_that_went_wrong_lets_nobody_in_until_it_is_right(
    good: str, bad: str, web: Path, caplog: pytest.LogCaptureFixture
) -> None:
    access = access_to(web, good)
    config = access.guard().config
    web.write_text(bad)
    for _ in range(3):
        assert is_closed(access)
    assert str(web) in str(access.problem)
    assert access.errors == 1
    [event] = events(caplog)
    assert (event.level, event.message) == ("error", "web configuration invalid")
    assert event.fields == {"refused": "requests", "err": access.problem}
    web.write_text(good)
    assert access.guard().config == config
    assert access.guard().is_open
    assert str(access.problem) == "None"
    assert access.errors == 1


def test_another_trouble_is_told_too(web: Path, caplog: pytest.LogCaptureFixture) -> None:
    access = access_to(web, USERS)
    for text in ("a: {}\n", "a: {}\n", "b: {}\n"):
        web.write_text(text)
        assert is_closed(access)
    web.unlink()
    assert is_closed(access)
    assert access.errors == 3
    problems = [event.fields["err"] for event in events(caplog)]
    assert len(problems) == 3
    assert "No such file" in problems[-1]


@pytest.mark.parametrize("name", ["server.crt", "server.key"])
def test_a_certificate_that_went_wrong_lets_nobody_new_in(name: str, web: Path) -> None:
    access = access_to(web, TLS + USERS)
    context = access.guard().context
    content = web.with_name(name).read_bytes()
    web.with_name(name).write_text("")
    guard = access.guard()
    assert not guard.is_open
    assert guard.config is not None, "who is connected is still answered"
    assert access.covers(context)
    assert access.errors == 1
    web.with_name(name).write_bytes(content)
    assert access.guard().is_open
    assert access.covers(context)


def test_bad_certificates_do_not_hide_that_passwords_are_gone(web: Path) -> None:
    access = access_to(web, TLS + USERS)
    web.write_text(TLS.replace("server.key", "client.key"))
    assert is_closed(access)
    assert "basic_auth_users is gone" in str(access.problem)


def test_tls_that_is_asked_for_later_counts_from_then_on(web: Path) -> None:
    access = access_to(web, "")
    assert access.covers(None)
    web.write_text(TLS.replace("server.key", "none.key"))
    assert not access.guard().is_open
    assert access.speaks_tls
    assert not access.covers(None)
    web.write_text(TLS)
    context = access.guard().context
    assert context is not None
    assert access.covers(context)
    assert not access.covers(None)


def test_passwords_that_are_asked_for_later_stay(web: Path) -> None:
    access = access_to(web, "")
    web.write_text(USERS)
    assert access.guard().config is not None
    web.write_text("")
    assert is_closed(access)


def test_the_rate_is_counted_over_all_and_over_changes_of_other_things() -> None:
    access = AccessControl()
    limit = RateLimit(interval_s=10.0, burst=2)
    assert [access.within_rate(limit, now_s) for now_s in (0, 1, 2, 11, 12)] == [
        *(True, True, False, True, False)
    ]
    assert access.within_rate(RateLimit(interval_s=10.0, burst=3), 12.0)
    assert access.within_rate(RateLimit(), 12.0)

"""Schema of the web configuration file."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.schema.reader import read_record
from disksla.serve.http_server.config import CIPHERS, TLS13_CIPHERS, TlsServer, WebConfig, describe
from support.schema_nodes import node

HASH = "$2b$10$" + "a" * 53
CERTIFICATE = {"cert_file": "server.crt", "key_file": "server.key"}
VERIFIED = {**CERTIFICATE, "client_auth_type": "RequireAndVerifyClientCert"}


def read(value: Any) -> WebConfig:
    config, problems = read_record(node(value), WebConfig)
    assert problems == ()
    assert config is not None
    return config


def read_tls(**keys: Any) -> TlsServer:
    return read({"tls_server_config": {**CERTIFICATE, **keys}}).tls


def problem_of(value: Any) -> str:
    config, problems = read_record(node(value), WebConfig)
    assert config is None
    (problem,) = problems
    return f"{problem.path}: {problem.text}"


def test_empty_file_enables_nothing() -> None:
    config = read({})
    assert not config.tls.is_enabled
    assert config.users == {}
    assert describe(config) == "no TLS, no passwords"


def test_tls_defaults_are_those_of_the_toolkit() -> None:
    tls = read_tls()
    assert tls.is_enabled
    assert (tls.min_version, tls.max_version) == ("TLS12", "TLS13")
    assert tls.client_auth is None
    assert tls.prefer_server_cipher_suites
    assert tls.old_ciphers == tuple(CIPHERS.values())


@pytest.mark.parametrize(
    ("suites", "old"),
    [
        ([], tuple(CIPHERS.values())),
        ([TLS13_CIPHERS[0]], ()),
        (
            ["TLS_ECDHE_RSA_WITH_AES_256_GCM_SHA384", "TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"],
            ("ECDHE-RSA-AES256-GCM-SHA384", "ECDHE-RSA-AES128-GCM-SHA256"),
        ),
    ],
)
def test_cipher_suites_keep_their_order(suites: list[str], old: tuple[str, ...]) -> None:
    assert read_tls(cipher_suites=suites).old_ciphers == old


@pytest.mark.parametrize("flag", ["y", "Yes", "ON", "true", "True"])
def test_flags_are_booleans_of_yaml(flag: str) -> None:
    assert read({"http_server_config": {"http2": flag}}).http.http2 is True
    assert not read_tls(prefer_server_cipher_suites="Off").prefer_server_cipher_suites
    assert "found 'yEs'; expected true" in problem_of({"http_server_config": {"http2": "yEs"}})


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("0", 0), ("1s", 1), ("1m30s", 90), ("1.5h", 5400), ("250ms", 0.25), ("5us", 5e-6)],
)
def test_interval_is_a_duration_of_go(text: str, seconds: float) -> None:
    assert read({"rate_limit": {"interval": text, "burst": "2"}}).rate_limit.interval_s == seconds


@pytest.mark.parametrize("text", ["", "s", "1", "1d", "1s ", " 1s", "-1s", "1.s5", "1s1"])
def test_interval_rejects_other_text(text: str) -> None:
    limit = {"interval": text, "burst": "2"}
    assert problem_of({"rate_limit": limit}).startswith(f"rate_limit.interval: found '{text}'")


def test_empty_headers_are_not_sent() -> None:
    headers = {"X-Frame-Options": "deny", "Content-Security-Policy": "", "X-XSS-Protection": None}
    assert read({"http_server_config": {"headers": headers}}).http.headers.lines == (
        ("X-Frame-Options", "deny"),
    )


def test_all_versions_of_bcrypt_are_accepted() -> None:
    users = {kind: HASH.replace("2b", kind) for kind in ("2a", "2b", "2x", "2y")}
    assert read({"basic_auth_users": users}).users == {
        name: hashed.encode() for name, hashed in users.items()
    }


@given(st.text(st.characters(exclude_characters="$"), min_size=1))
def test_problems_do_not_quote_passwords(text: str) -> None:
    password = f"xyzzy{text}xyzzy"
    for value in (
        {"basic_auth_users": {"alice": password}},
        {"basic_auth_users": password},
        {"basic_auth_users": {"alice": [password]}},
        {"tls_server_config": password},
        {"tls_server_config": {**CERTIFICATE, "key": [password]}},
        password,
    ):
        assert "xyzzy" not in problem_of(value)


def test_too_long_private_key_is_not_parsed() -> None:
    problem = problem_of({"tls_server_config": {**CERTIFICATE, "key": "k" * 300_000}})
    assert problem == (
        "tls_server_config.key: found 300000 characters;"
        " expected at most 262144, for a private key in PEM"
    )


@pytest.mark.parametrize(
    ("value", "summary"),
    [
        ({"tls_server_config": VERIFIED}, "TLS 1.2 to 1.3, client certificates required, no pass"),
        (
            {
                "tls_server_config": {**VERIFIED, "client_auth_type": "VerifyClientCertIfGiven"},
                "basic_auth_users": {"a": HASH, "b": HASH},
            },
            "TLS 1.2 to 1.3, client certificates verified if given, 2 users",
        ),
        (
            {"basic_auth_users": {"a": HASH}, "rate_limit": {"interval": "1s", "burst": "1"}},
            "no TLS, 1 user, rate limit",
        ),
    ],
)
def test_describe(value: Any, summary: str) -> None:
    assert describe(read(value)).startswith(summary)


data = st.recursive(
    st.none() | st.text(max_size=12) | st.sampled_from(["TLS12", "1s", HASH, "deny", "a.crt"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(
                [
                    *("tls_server_config", "http_server_config", "basic_auth_users", "rate_limit"),
                    *("cert_file", "key_file", "client_auth_type", "min_version", "headers"),
                    *("interval", "burst", "X-Frame-Options", "curve_preferences", "alice"),
                ]
            ),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(data)
def test_any_data_is_valid_or_has_problems(value: Any) -> None:
    config, problems = read_record(node(value), WebConfig)
    assert (config is None) == bool(problems)
    assert config is None or describe(config)

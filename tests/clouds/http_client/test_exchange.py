"""Requests, responses, errors and pages."""

import ssl
import string
from collections.abc import Generator
from pathlib import Path
from urllib.parse import parse_qsl, quote

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import ExchangeReason
from disksla.base.text import percent_encoded
from disksla.clouds.http_client.exchange import (
    ExchangeError,
    Exchanges,
    Request,
    Response,
    authorized,
    check_clock,
    decode,
    get_response,
    pages,
    plain_text,
    plain_token,
    query_string,
    whole_number,
)
from disksla.clouds.http_client.transport import trust_as_kubernetes
from support.exchanges import RECEIVED_S, answered, reply

REQUEST = Request("instances.get", "api", "GET", "https://api", {"authorization": "SECRET"})


def error_of(exchanges: Exchanges[object], *answers: Response | ExchangeError) -> ExchangeError:
    with pytest.raises(ExchangeError) as raised:
        answered(exchanges, answers)
    return raised.value


def test_success_is_returned() -> None:
    found, requests = answered(get_response(REQUEST), [reply("yes")])
    assert found.body == b"yes"
    assert requests == [REQUEST]


@pytest.mark.parametrize(
    ("status", "reason", "why"),
    [
        (302, "redirected", "redirects to another address (HTTP 302)"),
        (400, "invalid", "rejected the request (HTTP 400)"),
        (401, "expired", "credentials were rejected (HTTP 401)"),
        (403, "denied", "permission was denied (HTTP 403)"),
        (404, "not_found", "nothing at this address (HTTP 404)"),
        (429, "throttled", "too many requests (HTTP 429)"),
        (500, "unreachable", "has an error (HTTP 500)"),
        (503, "throttled", "too many requests (HTTP 503)"),
    ],
)
def test_status_is_a_reason(status: int, reason: ExchangeReason, why: str) -> None:
    error = error_of(get_response(REQUEST), reply("SECRET", status))
    assert error.reason == reason
    assert str(error).startswith("instances.get failed: ")
    assert why in str(error)
    assert "SECRET" not in str(error)


def test_explanation_of_the_provider_replaces_the_default() -> None:
    words = {"denied": "compute.instances.get was denied; ask for it", "timeout": "slow; wait"}
    error = error_of(get_response(REQUEST, words), reply(status=403))  # type: ignore[arg-type]
    assert str(error) == "instances.get failed: compute.instances.get was denied; ask for it"
    error = error_of(get_response(REQUEST, words), ExchangeError("timeout", "5 s"))  # type: ignore[arg-type]
    assert (error.reason, str(error)) == ("timeout", "instances.get failed: slow; wait")
    error = error_of(get_response(REQUEST, words), ExchangeError("unreachable", "no route"))  # type: ignore[arg-type]
    assert str(error) == "instances.get failed: no route"


def test_classified_response_has_its_own_reason() -> None:
    exchanges = get_response(REQUEST, classify=lambda _: ("no_credentials", "no role; add one"))
    assert error_of(exchanges, reply(status=400)).reason == "no_credentials"
    assert error_of(get_response(REQUEST, classify=lambda _: None), reply(status=403)).reason == (
        "denied"
    )


@pytest.mark.parametrize(
    ("date", "text"),
    [
        ("Mon, 21 Sep 2026 13:43:20 GMT", "30 minutes ahead of that"),
        ("Mon, 21 Sep 2026 14:33:20 GMT", "20 minutes behind that"),
    ],
)
def test_wrong_clock_explains_a_rejection(date: str, text: str) -> None:
    error = error_of(get_response(REQUEST), reply(status=403, headers={"date": date}))
    assert error.reason == "clock"
    assert text in str(error)


@pytest.mark.parametrize(
    "date", ["", "junk", "Mon, 21 Sep 2026 14:13:21 GMT", "Mon, 99 Sep 99999999999 14:13:21 GMT"]
)
def test_right_or_unknown_clock_explains_nothing(date: str) -> None:
    check_clock("x", reply(headers={"date": date}))
    assert RECEIVED_S == 1_790_000_000


def test_clock_of_a_metadata_service_is_not_compared() -> None:
    request = msgspec.structs.replace(REQUEST, source="metadata")
    date = {"date": "Mon, 21 Sep 2020 14:13:21 GMT"}
    assert error_of(get_response(request), reply(status=403, headers=date)).reason == "denied"


def test_secrets_are_not_in_representations() -> None:
    assert "SECRET" not in repr(REQUEST)
    assert "SECRET" not in repr(reply("SECRET", headers={"x-subject-token": "SECRET"}))


class Thing(msgspec.Struct):
    name: str


@given(st.binary())
def test_junk_is_an_error_that_does_not_quote_it(data: bytes) -> None:
    with pytest.raises(ExchangeError) as raised:
        decode("x", b"SECRET" + data, Thing)
    assert raised.value.reason == "invalid"
    assert "SECRET" not in str(raised.value)


def test_deep_nesting_and_other_encodings_are_errors() -> None:
    for body in (b"[" * 100_000, b'{"name": "\xff"}', b'{"name": 1}', b"null"):
        with pytest.raises(ExchangeError):
            decode("x", body, Thing)


def credentials(log: list[str]) -> Generator[Request, Response, str]:
    response = yield REQUEST
    log.append("credentials")
    return response.body.decode()


def test_credentials_that_expired_are_renewed_once() -> None:
    log: list[str] = []

    def use(token: str) -> Exchanges[str]:
        yield from get_response(REQUEST)
        return token

    found, _ = answered(
        authorized(lambda: credentials(log), use),
        [reply("old"), reply(status=401), reply("new"), reply()],
    )
    assert (found, log) == ("new", ["credentials"] * 2)
    error = error_of(
        authorized(lambda: credentials(log), use),
        *(reply("old"), reply(status=401), reply("new"), reply(status=401)),
    )
    assert error.reason == "expired"
    error = error_of(authorized(lambda: credentials(log), use), reply("good"), reply(status=403))
    assert error.reason == "denied"
    assert answered(authorized(lambda: credentials(log), use), [reply("good"), reply()])[0] == (
        "good"
    )


def numbered(marks: dict[str, str]) -> Exchanges[list[str]]:
    def page(mark: str) -> Exchanges[tuple[list[str], str]]:
        yield REQUEST
        return [mark], marks[mark]

    return pages("x", page, 3)


def test_all_pages_are_read() -> None:
    found, _ = answered(numbered({"": "a", "a": "b", "b": ""}), lambda _: reply())
    assert found == ["", "a", "b"]


@pytest.mark.parametrize(
    ("marks", "reason"),
    [({"": "a", "a": "a"}, "invalid"), ({"": "a", "a": "b", "b": "c", "c": "d"}, "too_large")],
)
def test_endless_pages_are_an_error(marks: dict[str, str], reason: str) -> None:
    with pytest.raises(ExchangeError) as raised:
        answered(numbered(marks), lambda _: reply())
    assert raised.value.reason == reason


@pytest.mark.parametrize(
    ("value", "number"),
    [(5, 5), ("5", 5)]
    + [(odd, None) for odd in (0, "0", "", None, "5x", -1, 10**19, "9" * 30, "²")],
)
def test_whole_number(value: str | int | None, number: int | None) -> None:
    assert whole_number(value) == number


def test_plain_text_and_tokens() -> None:
    assert plain_text("gp3") == "gp3"
    assert plain_text("a b") is None
    assert plain_text("a b", ".") == "a b"
    assert plain_text(None) is None
    assert plain_text("") is None
    assert plain_text("a\x1b[2J", ".") is None
    assert plain_text("a" * 1000) is None
    assert plain_token("eyJ.x-y_z") == "eyJ.x-y_z"
    assert [plain_token(text) for text in ("", "a b", "a\r\nb", "é")] == [None] * 4


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_query_is_encoded_as_urllib_does(text: str) -> None:
    assert percent_encoded(text) == quote(text, safe=string.digits + "-._~")
    assert parse_qsl(query_string([("a", text), ("b", "c")]), keep_blank_values=True) == [
        ("a", text),
        ("b", "c"),
    ]


def handshake(client: ssl.SSLContext, server: ssl.SSLContext, name: str) -> None:
    """Do a handshake in memory. Raise SSLError."""
    to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
    sides = [
        client.wrap_bio(to_client, to_server, server_hostname=name),
        server.wrap_bio(to_server, to_client, server_side=True),
    ]
    while sides:
        try:
            sides[0].do_handshake()
        except ssl.SSLWantReadError:
            sides.reverse()
        else:
            sides.pop(0)


def contexts(
    certificates: Path, authority: str, certificate: str
) -> tuple[ssl.SSLContext, ssl.SSLContext]:
    """Return a client's and a server's; the client is as strict as Python 3.13 makes it."""
    client = ssl.create_default_context(cafile=certificates / f"{authority}.crt")
    client.verify_flags |= ssl.VERIFY_X509_STRICT
    server = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    server.load_cert_chain(
        certificates / f"{certificate}.crt", certificates / f"{certificate}.key"
    )
    return client, server


@pytest.mark.parametrize("authority", ["old", "old-between"])
def test_certificates_of_a_cluster_are_trusted(certificates: Path, authority: str) -> None:
    """A root without key identifiers and usages, and a certificate that it signed."""
    client, server = contexts(certificates, authority, "old-server")
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client, server, "localhost")
    trust_as_kubernetes(client)
    handshake(client, server, "localhost")


@pytest.mark.parametrize(
    ("authority", "certificate", "name"),
    [
        ("stranger", "server", "localhost"),
        ("itself", "server", "localhost"),
        ("old", "server", "localhost"),
        ("old-between", "old-server", "other"),
        ("authority", "other", "localhost"),
        ("unknown", "server", "localhost"),
    ],
)
def test_other_certificates_are_not(
    certificates: Path, authority: str, certificate: str, name: str
) -> None:
    client, server = contexts(certificates, authority, certificate)
    trust_as_kubernetes(client)
    with pytest.raises(ssl.SSLCertVerificationError):
        handshake(client, server, name)

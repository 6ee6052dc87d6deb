"""HTTP/1.1 in memory: requests from bytes, responses to bytes."""

import email.utils
import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.serve.http_server.http_protocol import (
    MAX_HEAD_BYTES,
    BadRequestError,
    HttpConnection,
    Reply,
    RequestHead,
    accepted,
    accepts_gzip,
)

GET = b"GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n"
READY = Reply(b"ready\n")


def received(*parts: bytes) -> HttpConnection:
    http = HttpConnection()
    for part in parts:
        http.receive(part)
    return http


def parse(data: bytes) -> RequestHead:
    return received(data).next_request()


def has_request(http: HttpConnection) -> bool:
    return not http.needs_data


def status_of(data: bytes) -> int:
    """Return the status with which a request is rejected."""
    with pytest.raises(BadRequestError) as rejected:
        parse(data)
    return rejected.value.status


def exchange(data: bytes, response: Reply = READY) -> tuple[bytes, bool]:
    """Return the bytes of the response, and whether the connection can be used again."""
    http = received(data)
    http.next_request()
    return b"".join(http.encode(response, 0.0)), http.is_reusable


def test_request_has_method_path_query_and_headers() -> None:
    request = parse(
        b"GET /metrics?name[]=a&x=%20 HTTP/1.1\r\n"
        b"Host: x\r\nAccept: text/plain\r\nX-A:\t\xe9\r\n\r\n"
    )
    assert request == RequestHead(
        "GET", "/metrics", "name[]=a&x=%20", {"host": "x", "accept": "text/plain", "x-a": "\u00e9"}
    )


@pytest.mark.parametrize(
    ("target", "path"),
    [
        ("/", "/"),
        ("/%6Detrics", "/metrics"),
        ("/%2d/reload", "/-/reload"),
        ("/%252d/%E9", "/%2d/\u00e9"),
        ("/a%2Fb%2f", "/a%2Fb%2f"),
        ("/%zz%4", "/%zz%4"),
        ("//metrics", "//metrics"),
    ],
)
def test_path_is_decoded_once_except_slashes(target: str, path: str) -> None:
    request = parse(f"GET {target} HTTP/1.1\r\nHost: x\r\n\r\n".encode())
    assert (request.path, request.was_encoded) == (path, path != target)


def test_repeated_headers_are_joined() -> None:
    request = parse(b"GET / HTTP/1.0\r\nAccept: a\r\nX: y\r\naccept: b\r\n\r\n")
    assert request.headers == {"accept": "a, b", "x": "y"}


def test_empty_line_before_a_request_is_skipped() -> None:
    assert parse(b"\r\n" + GET).path == "/metrics"


@given(st.lists(st.integers(0, len(GET)), max_size=5).map(sorted))
def test_request_can_be_split_anywhere(cuts: list[int]) -> None:
    http = HttpConnection()
    assert http.is_idle
    for begin, end in zip([0, *cuts], [*cuts, len(GET)], strict=True):
        assert not has_request(http) or begin == len(GET)
        http.receive(GET[begin:end])
    assert has_request(http)
    assert http.next_request().path == "/metrics"
    assert http.is_idle
    assert not has_request(http)


def test_pipelined_requests_are_returned_one_by_one() -> None:
    http = received(GET + GET.replace(b"metrics", b"second") + b"GET /thi")
    assert http.next_request().path == "/metrics"
    http.encode(READY, 0.0)
    assert http.is_reusable
    assert has_request(http)
    assert http.next_request().path == "/second"
    assert not has_request(http)
    assert not http.is_idle


@pytest.mark.parametrize(
    ("target", "path", "query"),
    [
        ("http://localhost/metrics", "/metrics", ""),
        ("HTTP://db-1.example:10056/-/ready?a=b", "/-/ready", "a=b"),
        ("https://[2001:db8::1]:443/x%2Fy/?", "/x%2Fy/", ""),
        ("http://127.0.0.1", "/", ""),
        ("http://127.0.0.1:?name[]=up", "/", "name[]=up"),
        ("http://x//y", "//y", ""),
    ],
)
def test_target_in_absolute_form(target: str, path: str, query: str) -> None:
    http = HttpConnection()
    http.receive(f"GET {target} HTTP/1.1\r\nHost: other\r\n\r\n".encode())
    request = http.next_request()
    assert (request.path, request.query) == (path, query)


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"nonsense\r\n\r\n", 400),
        (b"\r\n\r\n", 400),
        (b"\r\n\r\n" + GET, 400),
        (b"GET / HTTP/1.1\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nHost: y\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nno colon\r\n\r\n", 400),
        (b"GET / HTTP/1.1\r\nHost: x\r\nspace : a\r\n\r\n", 400),
        (b"GET  / HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /\xff HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http://[ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http:///metrics HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http://a@x/metrics HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET http://x/metrics#a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET ftp://x/metrics HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"CONNECT http://x/ HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET /metrics#a HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"OPTIONS * HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"CONNECT x:80 HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"CONNECT /metrics HTTP/1.1\r\nHost: x\r\n\r\n", 400),
        (b"GET / HTTP/0.9\r\n\r\n", 505),
        (b"GET / HTTP/1.2\r\nHost: x\r\n\r\n", 505),
        (b"GET / HTTP/2.0\r\n\r\n", 505),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", 505),
        (b"GET / HTTP/9.9\r\n\r\n", 505),
    ],
)
def test_malformed_request_is_rejected(data: bytes, status: int) -> None:
    assert status_of(data) == status


@pytest.mark.parametrize(
    "head",
    [
        b"GET / HTTP/1.1\r\n Host: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\n\ty\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: b\r\n c\r\n\r\n",
        b"GET / HTTP/1.1\nHost: x\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\nA: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\rA: b\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: \0\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: \x1b[2J\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nA: \x7f\r\n\r\n",
    ],
)
def test_folded_header_or_control_character_is_rejected(head: bytes) -> None:
    assert status_of(head) == 400


@pytest.mark.parametrize("character", [b"\0", b"\v", b"\f", b"\x1f"])
def test_blanks_before_a_control_character_cost_no_time(character: bytes) -> None:
    """In h11 itself, 16 KiB of them take seconds."""
    blanks = b" " * (MAX_HEAD_BYTES - 100)
    begun_s = time.process_time()
    assert status_of(b"GET / HTTP/1.1\r\nHost: x\r\nA:" + blanks + character + b"\r\n\r\n") == 400
    assert time.process_time() - begun_s < 0.5


@pytest.mark.parametrize(
    ("framing", "status"),
    [
        (b"Content-Length: 4\r\nContent-Length: 5\r\n", 400),
        (b"Content-Length: 4, 5\r\n", 400),
        (b"Content-Length: +4\r\n", 400),
        (b"Content-Length: -1\r\n", 400),
        (b"Content-Length: 0x4\r\n", 400),
        (b"Content-Length: 4 4\r\n", 400),
        (b"Content-Length: 123456789012345678901\r\n", 400),
        (b"Content-Length:\r\n", 400),
        (b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", 501),
        (b"Transfer-Encoding: gzip, chunked\r\n", 501),
        (b"Transfer-Encoding: identity\r\n", 501),
        (b"Transfer-Encoding: \xc2chunked\r\n", 501),
        (b"Transfer-Encoding : chunked\r\n", 400),
    ],
)
def test_ambiguous_framing_is_rejected(framing: bytes, status: int) -> None:
    assert status_of(b"POST /-/reload HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n") == status


@pytest.mark.parametrize(
    "framing",
    [
        b"Content-Length: 4\r\n",
        b"Content-Length: 4\r\nContent-Length: 4\r\n",
        b"Transfer-Encoding: chunked\r\n",
        b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 0\r\nTransfer-Encoding: chunked\r\n",
        b"Content-Length: 4\r\nExpect: 100-continue\r\n",
    ],
)
def test_no_request_follows_one_with_a_body(framing: bytes) -> None:
    request = b"POST /-/reload HTTP/1.1\r\nHost: x\r\n" + framing + b"\r\n"
    response, is_reusable = exchange(request + GET)
    assert response.startswith(b"HTTP/1.1 200 OK\r\n")
    assert b"\r\nConnection: close\r\n" in response
    assert not is_reusable


@pytest.mark.parametrize(
    "headers",
    [
        b"",
        b"Content-Length: 0\r\n",
        b"Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABk\r\n",
        b"Connection: keep-alive\r\n",
        b"Expect: 100-continue\r\n",
    ],
)
def test_connection_is_kept_without_a_body(headers: bytes) -> None:
    request = b"POST /-/reload HTTP/1.1\r\nHost: x\r\n" + headers + b"\r\n"
    response, is_reusable = exchange(request)
    assert b"Connection" not in response
    assert is_reusable


@pytest.mark.parametrize(
    "request_head",
    [
        b"GET / HTTP/1.0\r\n\r\n",
        b"GET / HTTP/1.0\r\nConnection: Keep-Alive\r\n\r\n",
        b"GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n",
    ],
)
def test_client_can_request_the_end_of_the_connection(request_head: bytes) -> None:
    response, is_reusable = exchange(request_head)
    assert response.count(b"\r\nConnection: close\r\n") == 1
    assert not is_reusable


def test_head_of_the_largest_size_is_accepted() -> None:
    padding = MAX_HEAD_BYTES - len(GET) - len(b"A: \r\n")
    largest = GET.replace(b"\r\n\r\n", b"\r\nA: " + b"x" * padding + b"\r\n\r\n")
    assert len(largest) == MAX_HEAD_BYTES
    assert parse(largest).path == "/metrics"
    assert parse(largest + GET).path == "/metrics"
    assert status_of(largest.replace(b"A: ", b"A: x")) == 431


def test_too_large_head_is_rejected_before_its_end() -> None:
    http = received(b"GET / HTTP/1.1\r\n", b"A: " + b"x" * (MAX_HEAD_BYTES - 19))
    assert not has_request(http)
    http.receive(b"x")
    assert has_request(http)
    with pytest.raises(BadRequestError, match="431 Request Header Fields Too Large"):
        http.next_request()


def test_response_has_date_server_and_length() -> None:
    response, _ = exchange(GET)
    assert response == (
        b"HTTP/1.1 200 OK\r\n"
        b"Date: Thu, 01 Jan 1970 00:00:00 GMT\r\n"
        b"Server: disksla\r\n"
        b"Content-Type: text/plain; charset=utf-8\r\n"
        b"Content-Length: 6\r\n"
        b"\r\n"
        b"ready\n"
    )


@given(st.floats(0, 253402300799))
def test_date_is_as_mail_and_http_write_it(now_s: float) -> None:
    http = received(GET)
    http.next_request()
    lines = http.encode(READY, now_s)[0].split(b"\r\n")
    assert lines[1] == f"Date: {email.utils.formatdate(now_s, usegmt=True)}".encode()


def test_response_to_head_has_the_length_and_no_body() -> None:
    response, is_reusable = exchange(GET.replace(b"GET", b"HEAD"))
    assert response == exchange(GET)[0].removesuffix(b"ready\n")
    assert is_reusable


def test_configured_headers_replace_those_of_the_response() -> None:
    http = received(GET)
    http.next_request()
    own = Reply(b"", 404, (("X-Frame-Options", "sameorigin"), ("Allow", "GET")))
    replace = (("x-frame-options", "deny"), ("X-XSS-Protection", "0"))
    lines = http.encode(own, 0.0, replace)[0].split(b"\r\n")
    assert lines[0] == b"HTTP/1.1 404 Not Found"
    assert lines[3:] == [
        *(b"Allow: GET", b"Content-Length: 0", b"x-frame-options: deny"),
        *(b"X-XSS-Protection: 0", b"", b""),
    ]


def test_response_can_end_the_connection() -> None:
    http = received(GET)
    http.next_request()
    assert b"\r\nConnection: close\r\n" in http.encode(READY, 0.0, close=True)[0]
    assert not http.is_reusable


@pytest.mark.parametrize("data", [b"", b"nonsense\r\n\r\n", b"HEAD / HTTP/9.9\r\n\r\n"])
def test_response_without_a_valid_request_ends_the_connection(data: bytes) -> None:
    http = received(data)
    if data:
        with pytest.raises(BadRequestError):
            http.next_request()
    response = b"".join(http.encode(Reply(b"", 400), 0.0))
    assert response.startswith(b"HTTP/1.1 400 Bad Request\r\n")
    assert b"\r\nConnection: close\r\n" in response
    assert not http.is_reusable


def test_rejection_after_head_has_its_body() -> None:
    http = received(GET.replace(b"GET", b"HEAD") + GET)
    http.next_request()
    http.encode(READY, 0.0)
    assert http.is_reusable
    response = b"".join(http.encode(Reply(b"Rejected unread.\n", 500), 0.0))
    assert response.endswith(b"\r\n\r\nRejected unread.\n")
    assert b"\r\nConnection: close\r\n" in response
    assert not http.is_reusable


@given(st.binary() | st.from_regex(rb"(GET|HEAD|POST) /[!-~]{0,9} HTTP/1\.[01]\r\n[^Z]*\r\n\r\n"))
def test_any_bytes_are_a_request_or_are_rejected(data: bytes) -> None:
    http = received(data)
    while has_request(http):
        try:
            request = http.next_request()
        except BadRequestError as error:
            http.encode(Reply(b"", error.status), 0.0)
        else:
            assert request.path.startswith("/")
            http.encode(READY, 0.0)
        if not http.is_reusable:
            break


@pytest.mark.parametrize(
    ("header", "is_accepted"),
    [
        ("gzip", True),
        ("deflate, GZIP ; Q=0.5", True),
        ("gzip;q=1.000", True),
        ("gzip;q=0.001", True),
        ("", False),
        ("*", False),
        ("identity", False),
        ("gzip;q=0", False),
        ("gzip;q=0.000, identity", False),
        ("gzip; q = 0", False),
        ("identity;q=1, gzip;q=0.5", False),
        ("identity;q=0.5, gzip;q=0.5", True),
        ("gzip;q=2", False),
        ("gzip;q=", False),
        ("gzip;q=\u0661", False),
    ],
)
def test_gzip(header: str, is_accepted: bool) -> None:
    assert accepts_gzip(header) is is_accepted


def test_parameters_are_apart_from_the_quality() -> None:
    [first, second] = accepted("Text/Plain; Version=0.0.4 ;q=0.3 , */*")
    assert first == ("text/plain", frozenset({"version=0.0.4"}), 0.3)
    assert second == ("*/*", frozenset(), 1.0)


@given(st.text())
def test_any_header_has_qualities(header: str) -> None:
    assert all(0.0 <= each.quality <= 1.0 for each in accepted(header))

"""HTTP/1.1 in memory: received bytes to requests (by h11), responses to bytes, headers Accept."""

import re
from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Literal, NamedTuple, cast

import h11
import msgspec

from disksla.base.errors import DiskslaError

MAX_HEAD_BYTES = 16 * 1024
"""Request line and headers together; what nginx and Node allow."""

HeaderLines = tuple[tuple[str, str], ...]
"""Names and values of headers, in the order in which they are sent."""

ServiceClass = Literal["health", "scrape", "page", "change"]
"""Of a request; requests of one class share a worker. `health` is answered at once, by none."""

PLAIN_TEXT: HeaderLines = (("Content-Type", "text/plain; charset=utf-8"),)

_VERSIONS = {b"1.0", b"1.1"}
_END_OF_HEAD = b"\r\n\r\n"
_CONTROL_CHARACTERS = bytes({*range(32), 127} - set(b"\t\r\n"))
_ABSOLUTE_FORM = re.compile(
    r"https?://(?:\[[0-9A-Fa-f:.]+\]|[\w.~%-]+)(?::\d*)?(?P<rest>[/?].*)?", re.IGNORECASE
)
"""A target with scheme and authority, as a proxy or a health check may send it."""
_ENCODED = re.compile(r"%(?!2[Ff])([0-9A-Fa-f]{2})")
_QUALITY = re.compile(r"(?:0(?:\.[0-9]{0,3})?|1(?:\.0{0,3})?)", re.ASCII)
_REASONS = {
    200: "OK",
    400: "Bad Request",
    401: "Unauthorized",
    403: "Forbidden",
    404: "Not Found",
    405: "Method Not Allowed",
    429: "Too Many Requests",
    431: "Request Header Fields Too Large",
    500: "Internal Server Error",
    501: "Not Implemented",
    503: "Service Unavailable",
    505: "HTTP Version Not Supported",
}
"""Reason phrases of the statuses in use (http.HTTPStatus comes with a package that does I/O)."""


class RequestHead(msgspec.Struct, frozen=True):
    """The head of a request; bodies are not read."""

    method: str
    path: str
    """Percent-decoded once, as Latin-1, except %2F, which does not separate parts of a path."""
    query: str = ""
    headers: Mapping[str, str] = {}
    """By lower-case name, as Latin-1; the values of a repeated header are joined by commas."""
    was_encoded: bool = False
    """Whether the path was another text before, which a proxy may have compared with a rule."""


class Reply(msgspec.Struct, frozen=True):
    """A whole response; `HttpConnection` adds Date, Server, Content-Length and Connection."""

    body: bytes
    status: int = 200
    headers: HeaderLines = PLAIN_TEXT


class BadRequestError(DiskslaError):
    """A request is malformed, too large or not supported."""

    def __init__(self, status: int) -> None:
        """Note the status to answer it with."""
        super().__init__(f"{status} {_REASONS[status]}")
        self.status = status


class HttpConnection:
    """The server side of one HTTP/1.1 connection, without the connection.

    Bodies are not read, so no request may follow one that has a body.
    """

    def __init__(self) -> None:
        """Begin with a connection on which nothing was received."""
        self._received = bytearray()
        self._end = -1
        """Where the next head ends, without the empty line; -1 if that was not received yet."""
        self._omits_body = False
        """Whether the next response has no body, because the request is HEAD."""
        self._is_last = True
        """Whether the connection must be closed after the next response."""
        self.is_reusable = False
        """Whether another request may follow the last response."""

    def receive(self, data: bytes) -> None:
        """Add bytes that the client sent."""
        begin = max(0, len(self._received) - len(_END_OF_HEAD) + 1)
        self._received += data
        if self._end < 0:
            self._end = self._received.find(_END_OF_HEAD, begin)

    @property
    def is_idle(self) -> bool:
        """Whether no byte of the next request was received."""
        return not self._received

    @property
    def needs_data(self) -> bool:
        """Whether `next_request` has to wait for more bytes."""
        return self._end < 0 and len(self._received) <= MAX_HEAD_BYTES

    def next_request(self) -> RequestHead:
        """Return the next request. Raise BadRequestError if it is malformed or not supported."""
        size = self._end + len(_END_OF_HEAD) if self._end >= 0 else len(self._received)
        if size > MAX_HEAD_BYTES:
            raise BadRequestError(431)
        head = bytes(self._received[:size])
        del self._received[:size]
        self._end = self._received.find(_END_OF_HEAD)
        parsed = _parse(head.removeprefix(b"\r\n"))  # as RFC 9112, section 2.2, advises
        request = _to_request(parsed)
        self._omits_body = request.method == "HEAD"
        self._is_last = (
            parsed.http_version == b"1.0" or _has_body(request) or _closes_connection(request)
        )
        return request

    def encode(
        self, response: Reply, now_s: float, replace: HeaderLines = (), *, close: bool = False
    ) -> tuple[bytes, bytes]:
        """Return head and body of the response to the last request, or to a rejected one.

        `now_s` is the Unix time. Headers of `replace` take the place of others of their name. With
        `close`, no request may follow.
        """
        replaced = {name.lower() for name, _ in replace}
        own = (
            ("Date", _http_date(now_s)),
            ("Server", "disksla"),
            *response.headers,
            ("Content-Length", str(len(response.body))),
        )
        lines = [f"HTTP/1.1 {response.status} {_REASONS[response.status]}"]
        lines += [f"{name}: {value}" for name, value in own if name.lower() not in replaced]
        lines += [f"{name}: {value}" for name, value in replace]
        self.is_reusable = not (close or self._is_last)
        omits_body, self._omits_body, self._is_last = self._omits_body, False, True
        if not self.is_reusable:
            lines.append("Connection: close")
        head = "\r\n".join([*lines, "", ""]).encode("latin-1")
        return head, b"" if omits_body else response.body


def _parse(head: bytes) -> h11.Request:
    """Parse the head of a request. Raise BadRequestError if it is malformed.

    h11 joins folded headers (RFC 9112, section 5.2) and accepts a bare LF, which a proxy in front
    may read differently. On a control character behind many blanks, its pattern for headers takes
    quadratic time: 2 s of CPU for 16 KiB. So these are rejected before.
    """
    if (
        not head.count(b"\r") == head.count(b"\n") == head.count(b"\r\n")
        or b"\r\n " in head
        or b"\r\n\t" in head
        or len(head.translate(None, _CONTROL_CHARACTERS)) < len(head)
    ):
        raise BadRequestError(400)
    parser = h11.Connection(h11.SERVER, max_incomplete_event_size=MAX_HEAD_BYTES)
    parser.receive_data(head)
    try:
        return cast("h11.Request", parser.next_event())  # nothing else comes of a whole head
    except h11.RemoteProtocolError as error:
        raise BadRequestError(error.error_status_hint) from error


def _to_request(parsed: h11.Request) -> RequestHead:
    """Convert a parsed request. Raise BadRequestError if it is not supported."""
    if parsed.http_version not in _VERSIONS:
        raise BadRequestError(505)
    target = _origin_form(parsed.target.decode("ascii"))
    if not target.startswith("/") or "#" in target or parsed.method == b"CONNECT":
        raise BadRequestError(400)
    encoded, _, query = target.partition("?")
    path = _ENCODED.sub(lambda found: chr(int(found[1], 16)), encoded)
    headers: dict[str, str] = {}
    for raw_name, raw_value in parsed.headers:
        name, value = raw_name.decode("ascii"), raw_value.decode("latin-1")
        headers[name] = f"{headers[name]}, {value}" if name in headers else value
    method = parsed.method.decode("ascii")
    return RequestHead(method, path, query, headers, was_encoded=path != encoded)


def _origin_form(target: str) -> str:
    """Return path and query of a target, which may be in absolute form (RFC 9112, section 3.2.2).

    The authority is ignored, as the header Host is: there is one site.
    """
    absolute = _ABSOLUTE_FORM.fullmatch(target)
    if absolute is None:
        return target
    rest = absolute["rest"] or ""
    return rest if rest.startswith("/") else f"/{rest}"


def _has_body(request: RequestHead) -> bool:
    """Return whether a body follows, by headers that h11 has validated."""
    length = request.headers.get("content-length", "0")
    return "transfer-encoding" in request.headers or int(length) != 0


def _closes_connection(request: RequestHead) -> bool:
    options = request.headers.get("connection", "").lower().split(",")
    return "close" in (option.strip() for option in options)


def _http_date(unix_s: float) -> str:
    """Return a date as in RFC 9110, in English: this program does not set a locale."""
    return datetime.fromtimestamp(unix_s, UTC).strftime("%a, %d %b %Y %H:%M:%S GMT")


class Accepted(NamedTuple):
    """One entry of such a header."""

    value: str
    """A media range or a coding, in lower case."""
    parameters: frozenset[str]
    """As `name=value`, in lower case, without `q`."""
    quality: float
    """From 0, not acceptable, to 1."""


def accepted(header: str) -> list[Accepted]:
    """Return the entries of a header; one with an invalid quality is not acceptable."""
    entries = []
    for entry in header.lower().split(","):
        value, *parameters = (part.strip() for part in entry.split(";"))
        pairs = ["=".join(map(str.strip, each.split("=", 1))) for each in parameters]
        qualities = [pair.removeprefix("q=") for pair in pairs if pair.startswith("q=")]
        others = frozenset(pair for pair in pairs if not pair.startswith("q="))
        entries.append(Accepted(value, others, _quality(qualities)))
    return entries


def accepts_gzip(header: str) -> bool:
    """Return whether an Accept-Encoding header has gzip, and does not prefer no coding."""
    qualities = {each.value: each.quality for each in accepted(header)}
    gzip = qualities.get("gzip", 0.0)
    return gzip > 0 and gzip >= qualities.get("identity", 0.0)


def _quality(texts: list[str]) -> float:
    if not texts:
        return 1.0
    return float(texts[0]) if _QUALITY.fullmatch(texts[0]) else 0.0

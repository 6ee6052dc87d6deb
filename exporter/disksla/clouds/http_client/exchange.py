"""Requests to metadata services, APIs of clouds and Prometheus, and why an exchange failed.

What is asked is a generator: it yields requests, receives responses, and returns what
it found. It does no I/O itself; `clouds/http_client/transport.py` carries out the requests.
"""

import email.utils
import re
from collections.abc import Callable, Generator, Iterable, Mapping
from typing import Any, Literal, TypeVar

import msgspec

from disksla.base.errors import DECODE_ERRORS, DiskslaError, ExchangeReason
from disksla.base.text import percent_encoded

Source = Literal["metadata", "api"]
T = TypeVar("T")
C = TypeVar("C")

LINK_LOCAL = "169.254.169.254"
"""Address of the metadata service at most providers; it never leaves the machine's host."""
_MOST_SKEW_S = 300.0  # clocks may differ by this much before a cloud rejects signatures or tokens
_MOST_TEXT = 256
_MOST_NUMBER = 10**18


class Request(msgspec.Struct, frozen=True):
    """One request. Headers and body may hold secrets, so they are not part of its `repr`."""

    what: str  # the name of the operation, for messages
    source: Source
    method: str
    url: str
    headers: Mapping[str, str] = {}
    body: bytes = b""
    authority: str | None = None
    """File of the certificates that the server's has to be signed with; None for those that the
    system trusts."""

    def __repr__(self) -> str:
        """Return the operation only."""
        return f"Request({self.what!r})"


class Response(msgspec.Struct, frozen=True):
    """The answer to a request. Its content may be a secret, so it is not part of its `repr`."""

    status: int
    headers: Mapping[str, str]  # names are in lower case
    body: bytes
    received_s: float  # when it was received, by the clock of this machine, in seconds since 1970

    def __repr__(self) -> str:
        """Return the status only."""
        return f"Response({self.status})"


class ExchangeError(DiskslaError):
    """An exchange failed. Outside `get_response`, the message is `WHAT failed: WHY; HINT`."""

    def __init__(self, reason: ExchangeReason, message: str) -> None:
        """Set the reason, by which failures are counted, and the message."""
        super().__init__(message)
        self.reason = reason


Exchanges = Generator[Request, Response, T]
"""Requests in order, each after the response to the one before, and what was found."""

Explanations = Mapping[ExchangeReason, str]
"""`WHY; HINT` by reason, where the provider has better words than the defaults."""

Classify = Callable[[Response], tuple[ExchangeReason, str] | None]
"""Returns the reason and `WHY; HINT` of a failure that the body explains; None for the others."""

_MAY_BE_THE_CLOCK = {"denied", "expired", "invalid"}
_STATUSES: Mapping[int, ExchangeReason] = {401: "expired", 403: "denied", 404: "not_found"}
_BUSY = {429, 503}
_WHY: Explanations = {
    "expired": "the credentials were rejected (HTTP {}); see that they exist and are not disabled",
    "denied": "permission was denied (HTTP {})",
    "not_found": "there is nothing at this address (HTTP {}); see that the provider is right",
    "throttled": "there were too many requests (HTTP {}); they are repeated at the next run",
    "unreachable": "the server has an error (HTTP {}); the request is repeated at the next run",
    "redirected": "the server redirects to another address (HTTP {}), which is not followed",
    "invalid": "the server rejected the request (HTTP {})",
}


def get_response(
    request: Request, explanations: Explanations | None = None, classify: Classify | None = None
) -> Exchanges[Response]:
    """Return the response to a request if it succeeded. Raise ExchangeError otherwise."""
    words = explanations or {}
    try:
        response = yield request
    except ExchangeError as error:
        raise failure(request.what, error.reason, words.get(error.reason, str(error))) from None
    reason = reason_of(response)
    if reason is None:
        return response
    found = None if classify is None else classify(response)
    if found is None:
        if request.source == "api" and reason in _MAY_BE_THE_CLOCK:
            check_clock(request.what, response)
        found = reason, words.get(reason) or _WHY[reason].format(response.status)
    raise failure(request.what, *found)


def failure(what: str, reason: ExchangeReason, why: str) -> ExchangeError:
    """Return the error `WHAT failed: WHY`; `why` has the hint."""
    return ExchangeError(reason, f"{what} failed: {why}")


def reason_of(response: Response) -> ExchangeReason | None:
    """Return why a response is not a success, by its status; None if it is one."""
    status = response.status
    if 200 <= status < 300:  # noqa: PLR2004 -- the statuses of success
        return None
    if 300 <= status < 400:  # noqa: PLR2004 -- of redirection
        return "redirected"
    if status in _BUSY:
        return "throttled"
    return _STATUSES.get(status, "unreachable" if status >= 500 else "invalid")  # noqa: PLR2004


def check_clock(what: str, response: Response) -> None:
    """Raise ExchangeError if the server's clock explains that it rejected a request.

    Signatures and tokens hold for minutes; an API with another time rejects them all, with errors
    that differ by provider.
    """
    date_s = _date_s(response.headers.get("date", ""))
    skew_s = 0.0 if date_s is None else response.received_s - date_s
    if abs(skew_s) > _MOST_SKEW_S:
        side = "ahead of" if skew_s > 0 else "behind"
        why = (
            f"the clock of this machine is {abs(skew_s) / 60:.0f} minutes {side} that of the"
            " server; synchronize it"
        )
        raise failure(what, "clock", why)


def _date_s(text: str) -> float | None:
    try:
        return email.utils.parsedate_to_datetime(text).timestamp()
    except (ValueError, OverflowError):
        return None


def decode(what: str, body: bytes, kind: type[T]) -> T:
    """Return a JSON body as a record. Raise ExchangeError, which does not quote it, otherwise.

    Clouds write null, and empty text, for what they do not state; both count as absent.
    """
    try:
        return convert(what, _stated(msgspec.json.decode(body)), kind)
    except DECODE_ERRORS:
        raise _undocumented(what) from None


def convert(what: str, part: Any, kind: type[T]) -> T:
    """Return a part of a decoded document as a record. Raise ExchangeError otherwise."""
    try:
        return msgspec.convert(part, kind)
    except DECODE_ERRORS:
        raise _undocumented(what) from None


def items_of(part: Any) -> tuple[Any, ...]:
    """Return the items of a list; none if it is absent. Anything else is one odd item."""
    if part is None:
        return ()
    return tuple(part) if isinstance(part, list) else (part,)


def _stated(part: Any) -> Any:
    """Return a part of a document without the fields that are null or empty text."""
    if isinstance(part, dict):
        return {name: _stated(value) for name, value in part.items() if value not in (None, "")}
    return [_stated(item) for item in part] if isinstance(part, list) else part


def _undocumented(what: str) -> ExchangeError:
    why = "the answer is not what the provider documents; see that the provider is right"
    return failure(what, "invalid", why)


def authorized(
    credentials: Callable[[], Exchanges[C]], use: Callable[[C], Exchanges[T]]
) -> Exchanges[T]:
    """Return what `use` finds; get credentials once more if they expired in between."""
    try:
        found = yield from use((yield from credentials()))
    except ExchangeError as error:
        if error.reason != "expired":
            raise
    else:
        return found
    return (yield from use((yield from credentials())))


def pages(
    what: str, page: Callable[[str], Exchanges[tuple[list[T], str]]], most: int
) -> Exchanges[list[T]]:
    """Return the items of all pages; `page` returns those of one, and the mark of the next or ''.

    Raise ExchangeError if there are more than `most` pages, or a mark is repeated.
    """
    items: list[T] = []
    mark, marks = "", set()
    for _ in range(most):
        found, mark = yield from page(mark)
        items += found
        if not mark:
            return items
        if mark in marks:
            raise failure(what, "invalid", "the server repeats a page")
        marks.add(mark)
    raise failure(what, "too_large", f"there are more than {most} pages")


def whole_number(value: Any) -> int | None:
    """Return a number above zero, which JSON may have as text; None if it is absent or no number.

    Absent, empty and 0 all mean that the provider does not state it.
    """
    if isinstance(value, str) and re.fullmatch("[0-9]{1,18}", value):
        value = int(value)
    if isinstance(value, bool) or not isinstance(value, int):
        return None
    return value if 0 < value <= _MOST_NUMBER else None


def plain_text(value: Any, characters: str = r"[^\s]") -> str | None:
    """Return text of printable characters that match a class; None for anything else."""
    if not isinstance(value, str) or len(value) > _MOST_TEXT or not value.isprintable():
        return None
    return value if re.fullmatch(f"{characters}+", value) else None


def plain_token(token: str) -> str | None:
    """Return a token that may be sent in a header; None for anything else."""
    is_plain = token.isascii() and token.isprintable() and " " not in token
    return token if token and is_plain else None


class _Token(msgspec.Struct, frozen=True):
    access_token: str

    def __repr__(self) -> str:
        """Return a text without the token."""
        return "_Token(...)"


def token_in(what: str, body: bytes) -> str | None:
    """Return the token that a metadata service gave; None if it cannot be sent in a header."""
    return plain_token(decode(what, body, _Token).access_token)


def get_by_token(what: str, url: str, token: str, denied: str) -> Exchanges[bytes]:
    """Return what an API has at an address; `denied` is `WHY; HINT` without the permission."""
    headers = {"authorization": f"Bearer {token}"}
    request = Request(what, "api", "GET", url, headers)
    return (yield from get_response(request, {"denied": denied})).body


def query_string(values: Iterable[tuple[str, str]]) -> str:
    """Return names and values as the query of a URL, or the body of a form."""
    return "&".join(f"{percent_encoded(name)}={percent_encoded(value)}" for name, value in values)

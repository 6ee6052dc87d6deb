"""Whether a request is answered: the web configuration, its rate limit and its passwords."""

import time
from collections.abc import Mapping

from disksla.errors import DiskslaError
from disksla.server.access import AccessControl, AccessPolicy
from disksla.server.classes import BUSY
from disksla.server.http import (
    PLAIN_TEXT,
    BadRequestError,
    HeaderLines,
    HttpConnection,
    Reply,
    RequestHead,
)
from disksla.server.turns import TooManyError

_BAD_WEB_CONFIG = Reply(b"Invalid web configuration; see the log of disksla.\n", 500)
_AUTHENTICATE: HeaderLines = (("WWW-Authenticate", 'Basic realm="disksla"'),)


class RejectedError(DiskslaError):
    """A request is answered without calling the application."""

    def __init__(self, response: Reply, *, closes: bool = True) -> None:
        """Note the response, and whether the connection is closed after it."""
        super().__init__()
        self.response = response
        self.closes = closes


async def admit(
    access: AccessControl, http: HttpConnection, policy: AccessPolicy, client: str
) -> RequestHead:
    """Return the request that was received. Raise RejectedError if it is not answered."""
    if policy.config is None:
        raise RejectedError(_BAD_WEB_CONFIG)
    if not access.within_rate(policy.config.rate_limit, time.monotonic()):
        raise RejectedError(Reply(b"", 429))
    try:
        request = http.next_request()
    except BadRequestError as error:
        raise RejectedError(Reply(b"", error.status)) from error
    if policy.config.users:
        await _authenticate(access, request, policy.config.users, client)
    return request


async def _authenticate(
    access: AccessControl, request: RequestHead, users: Mapping[str, bytes], client: str
) -> None:
    """Raise RejectedError if the request has no password of one of `users`.

    The connection stays open: a new one costs more than another attempt.
    """
    authorization = request.headers.get("authorization", "").encode("latin-1")
    try:
        is_authenticated = await access.passwords.accept(users, authorization, client)
    except TooManyError as error:
        raise RejectedError(BUSY, closes=False) from error
    if not is_authenticated:
        response = Reply(b"", 401, (*PLAIN_TEXT, *_AUTHENTICATE))
        raise RejectedError(response, closes=False)

"""Runs the exchanges of a cloud with given answers, without a network."""

import json
from collections.abc import Callable, Iterable, Mapping
from typing import Any

from disksla.clouds.detection.findings import CloudDisk, Listing
from disksla.clouds.http_client.exchange import ExchangeError, Exchanges, Request, Response, T

RECEIVED_S = 1_790_000_000.0
"""The time of the machine in these tests."""


def reply(
    body: Any = b"", status: int = 200, headers: Mapping[str, str] | None = None
) -> Response:
    """Return a response; a body that is no text or bytes is JSON."""
    if isinstance(body, str):
        body = body.encode()
    if not isinstance(body, bytes):
        body = json.dumps(body).encode()
    return Response(status, dict(headers or {}), body, RECEIVED_S)


Answer = Response | ExchangeError


def disks_of(listing: Listing | None) -> tuple[CloudDisk, ...]:
    """Return the disks of a source that answered."""
    assert listing is not None
    return listing.disks


def answered(
    exchanges: Exchanges[T], answers: Iterable[Answer] | Callable[[Request], Answer]
) -> tuple[T, list[Request]]:
    """Return what exchanges find, and their requests; fail if too few or too many are made."""
    requests: list[Request] = []
    given = None if callable(answers) else iter(answers)
    try:
        request = next(exchanges)
        while True:
            requests.append(request)
            answer = answers(request) if callable(answers) else next(given, None)  # type: ignore[arg-type]
            assert answer is not None, f"not expected: {request}, {request.url}"
            if isinstance(answer, ExchangeError):
                request = exchanges.throw(answer)
            else:
                request = exchanges.send(answer)
    except StopIteration as end:
        assert given is None or next(given, None) is None, "an answer was not requested"
        found: T = end.value
        return found, requests

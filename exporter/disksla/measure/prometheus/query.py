"""Questions to the HTTP API of Prometheus, and its answers.

Thanos Query and VictoriaMetrics have the same API
(https://prometheus.io/docs/prometheus/latest/querying/api/).
"""

import math
from collections.abc import Iterable, Mapping
from typing import Generic, TypeVar

import msgspec

from disksla.base.errors import DECODE_ERRORS, ExchangeReason
from disksla.clouds.http_client import (
    ExchangeError,
    Exchanges,
    Request,
    Response,
    failure,
    query_string,
    reason_of,
)

CHUNK_S = 86_400
"""Samples are read for a day at a time, and only the steps are kept: they are much smaller."""

MOST_POINTS = 11_000
"""Points of a series that Prometheus returns for one range at most."""
_MOST_TEXT = 300
_WHAT = "query of Prometheus"
_NOT_THE_API = "the answer is not that of the API; see that --prometheus is right"
_WHY: Mapping[ExchangeReason, str] = {
    "expired": "it requires a password or a token;"
    " use --prometheus.password-file or --prometheus.token-file",
    "denied": "permission was denied; see that the user may read the series",
    "not_found": "there is no API at this address; see that --prometheus is right",
    "throttled": "the server is overloaded; try later, or select fewer disks",
    "redirected": "the server redirects to another address; use that one with --prometheus",
    "unreachable": "the server has an error; see its log",
    "invalid": "the server rejected the request; see that it has the API of Prometheus",
}
_T = TypeVar("_T")


class Server(msgspec.Struct, frozen=True):
    """Where the series are. Headers may hold secrets, so they are not part of its `repr`."""

    url: str
    """Address without a slash at its end."""
    headers: Mapping[str, str] = {}
    authority: str | None = None
    """File of the certificates that the server's has to be signed with; None for those that the
    system trusts."""

    def __repr__(self) -> str:
        """Return the name only."""
        return "Server()"


class Series(msgspec.Struct, frozen=True):
    """The samples of one series; times in seconds since 1970, values as text."""

    metric: dict[str, str]
    values: list[tuple[float, str]] = []

    @property
    def name(self) -> str:
        """The name of the metric."""
        return self.metric.get("__name__", "")

    def samples(self) -> Iterable[tuple[float, float]]:
        """Yield time and value of each sample that is a number. Raise ExchangeError for junk."""
        for timestamp_s, text in self.values:
            try:
                value = float(text)
            except ValueError:
                raise failure(_WHAT, "invalid", _NOT_THE_API) from None
            if math.isfinite(value):
                yield timestamp_s, value


class _Answer(msgspec.Struct, Generic[_T]):
    data: _T


class _Result(msgspec.Struct, Generic[_T]):
    result: list[_T]


class _Failure(msgspec.Struct):
    error: str


def quoted(text: str) -> str:
    """Return text as a string of PromQL."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{escaped}"'


def selector(names: Iterable[str], labels: Mapping[str, str], matchers: str = "") -> str:
    """Return the selector of metrics of these names, and of series with these labels."""
    parts = [f"__name__=~{quoted('|'.join(names))}"]
    parts += [f"{name}={quoted(value)}" for name, value in labels.items()]
    return f"{{{','.join([*parts, matchers] if matchers else parts)}}}"


def find_series(
    server: Server, matching: str, start_s: int, end_s: int
) -> Exchanges[list[dict[str, str]]]:
    """Return the labels of series with samples in a time. Raise ExchangeError."""
    parameters = [("match[]", matching), ("start", str(start_s)), ("end", str(end_s))]
    response = yield from _get(server, "series", parameters)
    return _decoded(response, _Answer[list[dict[str, str]]]).data


def read_samples(
    server: Server, matching: str, start_s: int, end_s: int
) -> Exchanges[list[Series]]:
    """Return all samples of series after a time, up to another one. Raise ExchangeError.

    If there are too many for an answer, the time is divided. Some servers include a sample at the
    start too.
    """
    seconds = end_s - start_s
    parameters = [("query", f"{matching}[{seconds}s]"), ("time", str(end_s))]
    try:
        response = yield from _get(server, "query", parameters)
    except ExchangeError as error:
        if error.reason != "too_large" or seconds <= 1:
            raise
        middle_s = start_s + seconds // 2
        before = yield from read_samples(server, matching, start_s, middle_s)
        after = yield from read_samples(server, matching, middle_s, end_s)
        return before + after
    return _decoded(response, _Answer[_Result[Series]]).data.result


def read_steps(
    server: Server, expression: str, start_s: int, end_s: int, step_s: int
) -> Exchanges[list[Series]]:
    """Return the values of an expression at equal steps. Raise ExchangeError.

    A range with more points than a server returns at once is divided.
    """
    found: list[Series] = []
    while start_s <= end_s:
        last_s = min(end_s, start_s + (MOST_POINTS - 1) * step_s)
        parameters = [
            ("query", expression),
            ("start", str(start_s)),
            ("end", str(last_s)),
            ("step", str(step_s)),
        ]
        response = yield from _get(server, "query_range", parameters)
        found += _decoded(response, _Answer[_Result[Series]]).data.result
        start_s = start_s + MOST_POINTS * step_s
    return found


def _get(server: Server, name: str, parameters: list[tuple[str, str]]) -> Exchanges[Response]:
    url = f"{server.url}/api/v1/{name}?{query_string(parameters)}"
    request = Request(_WHAT, "api", "GET", url, server.headers, authority=server.authority)
    try:
        response = yield request
    except ExchangeError as error:
        raise failure(_WHAT, error.reason, f"{error}; see that --prometheus is right") from None
    reason = reason_of(response)
    if reason is not None:
        why = _said(response) or _WHY[reason]
        raise failure(_WHAT, reason, f"HTTP {response.status}: {why}")
    return response


def _said(response: Response) -> str:
    """Return what the server says of an error; '' if it does not."""
    try:
        return msgspec.json.decode(response.body, type=_Failure).error[:_MOST_TEXT]
    except DECODE_ERRORS:
        return ""


def _decoded(response: Response, kind: type[_T]) -> _T:
    try:
        return msgspec.json.decode(response.body, type=kind)
    except DECODE_ERRORS:
        raise failure(_WHAT, "invalid", _NOT_THE_API) from None

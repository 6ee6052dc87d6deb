"""Questions to the API of Prometheus."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.clouds.http_client.exchange import ExchangeError, Request, Response
from disksla.measure.prometheus.query import (
    MOST_POINTS,
    Series,
    Server,
    find_series,
    quoted,
    read_samples,
    read_steps,
    selector,
)
from support.exchanges import answered, reply

SERVER = Server("http://prometheus:9090", {"Authorization": "Bearer secret"})
MATRIX = {"metric": {"__name__": "up"}, "values": [[1.5, "1"], [2.5, "NaN"], [3.5, "+Inf"]]}


def matrix(*series: object) -> Response:
    return reply({"status": "success", "data": {"resultType": "matrix", "result": list(series)}})


def test_secrets_are_not_in_representations() -> None:
    assert "secret" not in repr(SERVER)


def test_samples_that_are_no_numbers_are_left_out() -> None:
    [series], [request] = answered(read_samples(SERVER, "up", 0, 60), [matrix(MATRIX)])
    assert list(series.samples()) == [(1.5, 1.0)]
    assert series.name == "up"
    assert request.url == "http://prometheus:9090/api/v1/query?query=up%5B60s%5D&time=60"
    assert request.headers == SERVER.headers


def test_an_answer_that_is_too_large_is_asked_for_in_halves() -> None:
    def answer(request: Request) -> Response | ExchangeError:
        if "%5B4s%5D" in request.url or "%5B2s%5D" in request.url:
            return ExchangeError("too_large", "the answer has more than 10 bytes")
        return matrix(MATRIX)

    found, requests = answered(read_samples(SERVER, "up", 0, 4), answer)
    assert len(found) == 4
    assert [request.url.rpartition("=")[2] for request in requests] == list("4212434")
    with pytest.raises(ExchangeError, match="more than 10 bytes"):
        answered(
            read_samples(SERVER, "up", 0, 1), [ExchangeError("too_large", "more than 10 bytes")]
        )


def test_samples_that_are_junk_are_a_problem() -> None:
    junk = {"metric": {}, "values": [[1.5, "many"]]}
    [series], _ = answered(read_samples(SERVER, "up", 0, 60), [matrix(junk)])
    with pytest.raises(ExchangeError, match="the answer is not that of the API"):
        list(series.samples())


def test_a_long_range_is_divided() -> None:
    last_s = 60 * MOST_POINTS
    found, requests = answered(
        read_steps(SERVER, "up", 0, last_s, 60), [matrix(MATRIX), matrix(MATRIX)]
    )
    assert [each.name for each in found] == ["up", "up"]
    ends = [request.url.partition("start=")[2] for request in requests]
    assert ends == [f"0&end={last_s - 60}&step=60", f"{last_s}&end={last_s}&step=60"]


def test_labels() -> None:
    labels, [request] = answered(
        find_series(SERVER, "up", 1, 2), [reply({"data": [{"__name__": "up"}]})]
    )
    assert labels == [{"__name__": "up"}]
    assert request.url.endswith("/api/v1/series?match%5B%5D=up&start=1&end=2")


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (
            ExchangeError("unreachable", "prometheus:9090: Connection refused"),
            "query of Prometheus failed: prometheus:9090: Connection refused; see that --prom",
        ),
        (
            reply({"status": "error", "error": "invalid parameter"}, 400),
            "query of Prometheus failed: HTTP 400: invalid parameter",
        ),
        (reply("Unauthorized", 401), "HTTP 401: it requires a password or a token; use --prom"),
        (reply("", 302), "HTTP 302: the server redirects to another address"),
        (reply("<html>"), "the answer is not that of the API; see that --prometheus is right"),
    ],
)
def test_failures(answer: Response | ExchangeError, message: str) -> None:
    with pytest.raises(ExchangeError, match=message):
        answered(read_samples(SERVER, "up", 0, 60), [answer])


@given(st.binary(max_size=200))
def test_any_answer_is_series_or_a_problem(body: bytes) -> None:
    try:
        found, _ = answered(read_samples(SERVER, "up", 0, 60), [reply(body)])
    except ExchangeError as error:
        assert str(error).startswith("query of Prometheus failed: ")  # noqa: PT017
    else:
        assert all(isinstance(each, Series) for each in found)


def test_strings_of_a_selector_are_quoted() -> None:
    assert quoted('a"b\\c\n') == '"a\\"b\\\\c\\n"'
    assert selector(["up", "down"], {"job": 'x"'}) == '{__name__=~"up|down",job="x\\""}'
    assert selector(["up"], {}, 'team="a"') == '{__name__=~"up",team="a"}'

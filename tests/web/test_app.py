"""The application, called as a server calls it."""

import logging
from collections.abc import Callable
from types import TracebackType
from typing import Any

import pytest

from disksla.errors import DiskslaError
from disksla.pipeline.snapshot import Snapshot
from disksla.web.app import App
from support.log_events import events
from support.snapshots import ABOUT, disk_view, view

ExcInfo = tuple[type[BaseException], BaseException, TracebackType] | tuple[None, None, None]


def yes() -> bool:
    return True


def nothing() -> None:
    return None


def make_site(
    shown: Callable[[], Snapshot] = lambda: view(disk_view()),
    healthy: Callable[[], bool] = yes,
    ready: Callable[[], bool] = yes,
    reload: Callable[[], None] = nothing,
    telemetry_path: str = "/metrics",
) -> App:
    return App(
        shown,
        lambda: ABOUT,
        healthy=healthy,
        ready=ready,
        reload=reload,
        telemetry_path=telemetry_path,
    )


def ask(
    site: App, path: str, method: str = "GET", query: str = "", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Give status, headers and body."""
    told: dict[str, Any] = {}

    def start_response(
        status: str, fields: list[tuple[str, str]], _error: ExcInfo | None = None, /
    ) -> Callable[[bytes], object]:
        told.update(status=int(status.split(maxsplit=1)[0]), headers=dict(fields))
        return lambda _body: None

    environ = {"REQUEST_METHOD": method, "PATH_INFO": path, "QUERY_STRING": query, **headers}
    body = b"".join(site(environ, start_response))
    return told["status"], told["headers"], body


def test_metrics_are_where_they_were_asked_to_be() -> None:
    site = make_site(telemetry_path="/telemetry")
    status, headers, body = ask(site, "/telemetry")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'disksla_inflight{device="vdb"} 5.0' in body
    assert ask(site, "/metrics")[0] == 404
    assert b'href="/telemetry"' in ask(site, "/")[2]


def test_formats_and_names_are_negotiated() -> None:
    status, headers, body = ask(
        make_site(),
        "/metrics",
        query="name[]=disksla_inflight&name%5B%5D=disksla_sampler_ticks_total",
        HTTP_ACCEPT="application/openmetrics-text;version=1.0.0",
        HTTP_ACCEPT_ENCODING="identity",
    )
    assert status == 200
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    samples = [line for line in body.decode().splitlines() if not line.startswith("#")]
    assert samples == [
        'disksla_inflight{device="vdb"} 5.0',
        "disksla_sampler_ticks_total 864000.0",
    ]


def test_the_landing_page_may_load_and_run_nothing() -> None:
    status, headers, body = ask(make_site(), "/")
    assert status == 200
    assert headers["Content-Type"] == "text/html; charset=utf-8"
    assert headers["Content-Security-Policy"].startswith("default-src 'none'")
    assert b"vdb" in body


@pytest.mark.parametrize(
    "path", ["/", "/metrics", "/-/healthy", "/-/ready", "/-/reload", "/favicon.ico"]
)
def test_every_answer_says_its_length_and_is_not_guessed_at(path: str) -> None:
    _, headers, body = ask(make_site(), path)
    assert headers["Content-Length"] == str(len(body))
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Cache-Control"] == "no-store"


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy", "/-/ready", "/none"])
def test_head_gives_the_headers_of_get(path: str) -> None:
    site = make_site(lambda: view(disk_view()))
    status, headers, _ = ask(site, path)
    head_status, head_headers, head_body = ask(site, path, "HEAD")
    assert (head_status, head_body) == (status, b"")
    assert head_headers.keys() == headers.keys()
    assert int(head_headers["Content-Length"]) > 0


@pytest.mark.parametrize(
    "path", ["/metrics/", "//metrics", "/METRICS", "/-/", "/-/quit", "", "*", "/é"]
)
def test_any_other_path_is_not_there(path: str) -> None:
    assert ask(make_site(), path)[0] == 404
    assert ask(make_site(), path, "POST")[0] == 404


@pytest.mark.parametrize("path", ["/", "/metrics", "/-/healthy", "/-/ready"])
@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "OPTIONS", "TRACE"])
def test_reading_is_by_get_and_head_only(path: str, method: str) -> None:
    status, headers, _ = ask(make_site(), path, method)
    assert (status, headers["Allow"]) == (405, "GET, HEAD")


def test_health_and_readiness_are_what_the_daemon_says() -> None:
    assert ask(make_site(), "/-/healthy")[::2] == (200, b"healthy\n")
    assert ask(make_site(), "/-/ready")[::2] == (200, b"ready\n")
    sick = make_site(healthy=lambda: False, ready=lambda: False)
    assert ask(sick, "/-/healthy")[0] == 503
    assert ask(sick, "/-/ready")[0] == 503


@pytest.mark.parametrize("method", ["POST", "PUT"])
def test_a_reload_is_done_once_for_each_request(method: str) -> None:
    reloads: list[None] = []
    site = make_site(reload=lambda: reloads.append(None))
    assert ask(site, "/-/reload", method)[::2] == (200, b"reloaded\n")
    assert len(reloads) == 1


@pytest.mark.parametrize("method", ["GET", "HEAD", "DELETE"])
def test_reading_reloads_nothing(method: str) -> None:
    reloads: list[None] = []
    site = make_site(reload=lambda: reloads.append(None))
    status, headers, _ = ask(site, "/-/reload", method)
    assert (status, headers["Allow"], reloads) == (405, "POST, PUT", [])


def test_a_refused_reload_says_why(caplog: pytest.LogCaptureFixture) -> None:
    def refuse() -> None:
        raise DiskslaError("disksla.yml: line 3: unknown key 'iosp'; expected iops \udcff")

    status, _, body = ask(make_site(reload=refuse), "/-/reload", "POST")
    assert status == 500
    assert b"disksla.yml: line 3: unknown key 'iosp'" in body
    assert not caplog.records


def test_a_failing_page_is_logged_once_per_change_of_state(
    caplog: pytest.LogCaptureFixture,
) -> None:
    failing = True

    def shown() -> Snapshot:
        if failing:
            raise RuntimeError("no state to show")
        return view()

    site = make_site(shown)
    with caplog.at_level(logging.INFO, "disksla.web"):
        for _ in range(3):
            status, _, body = ask(site, "/metrics")
            assert status == 500
            assert b"no state to show" not in body
        assert len(caplog.records) == 1
        assert caplog.records[0].exc_info is not None
        assert ask(site, "/-/healthy")[0] == 200
        failing = False
        for _ in range(3):
            assert ask(site, "/metrics")[0] == 200
        assert events(caplog) == [
            ("error", "cannot render page", {"path": "/metrics"}),
            ("info", "page renders again", {"path": "/metrics"}),
        ]

"""The routes, through HTTP in memory."""

import gzip
import logging
import re
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import quote

import msgspec
import pytest

from disksla.base.errors import DiskslaError
from disksla.serve.http_server.http_protocol import HttpConnection, RequestHead
from disksla.serve.pages.app import App, Controls, PageCache, Sharing
from disksla.state.pipeline.snapshot import Snapshot
from disksla.tell.api import DisksDocument
from disksla.tell.api.disks_document import MOST_DISKS
from support.log_events import events
from support.snapshots import ABOUT, disk_view, view

Logged = pytest.LogCaptureFixture


def make_app(
    snapshot: Callable[[], Snapshot] = lambda: view(disk_view()),
    healthy: Callable[[], bool] = lambda: True,
    ready: Callable[[], bool] = lambda: True,
    reload: Callable[[], None] | None = lambda: None,
    telemetry_path: str = "/metrics",
) -> App:
    return App(
        snapshot,
        lambda: ABOUT,
        controls=Controls(healthy, ready, reload),
        telemetry_path=telemetry_path,
    )


def get(
    app: App, target: str, method: str = "GET", **headers: str
) -> tuple[int, dict[str, str], bytes]:
    """Return status, headers and body of the response that is sent."""
    http = HttpConnection()
    lines = "".join(f"{name.replace('_', '-')}: {value}\r\n" for name, value in headers.items())
    http.receive(f"{method} {target} HTTP/1.1\r\nHost: x\r\n{lines}\r\n".encode())
    head, body = http.encode(app(http.next_request()), 0.0)
    status, *received = head.decode().split("\r\n")
    fields = {name: value for name, _, value in (line.partition(": ") for line in received)}
    return int(status.split()[1]), fields, body


def test_metrics_are_at_the_telemetry_path() -> None:
    app = make_app(telemetry_path="/telemetry")
    status, headers, body = get(app, "/telemetry")
    assert status == 200
    assert headers["Content-Type"].startswith("text/plain; version=0.0.4")
    assert b'disksla_inflight{device="vdb"} 5.0' in body
    assert get(app, "/metrics")[0] == 404
    assert b'href="/telemetry"' in get(app, "/")[2]


def test_format_is_negotiated_and_names_are_filtered() -> None:
    status, headers, body = get(
        make_app(),
        "/metrics?name[]=disksla_inflight&name%5B%5D=disksla_sampler_ticks_total",
        Accept="application/openmetrics-text;version=1.0.0",
        Accept_Encoding="identity",
    )
    assert status == 200
    assert headers["Content-Type"].startswith("application/openmetrics-text")
    samples = [line for line in body.decode().splitlines() if not line.startswith("#")]
    assert samples == [
        'disksla_inflight{device="vdb"} 5.0',
        "disksla_sampler_ticks_total 864000.0",
    ]


PAGES = ("/", "/disk?name=vdb", "/runbook", "/metrics", "/api/v1/disks")
UNKNOWN = (
    "/metrics/",
    "//metrics",
    "/METRICS",
    "/-/",
    "/-/quit",
    "/favicon.ico",
    "/disk?name=vdc",
)
QUERIES = ("limit=0", "limit=101", "limit=\u0661", f"limit={'9' * 5000}", "disks=vda")
ORIGINS = ("http://evil.example", "http://x", "null", "")
REQUESTS = (
    # A proxy that denies POST /-/reload may not know that an encoded path is the same.
    *(("GET", path) for path in ("/-/healthy", "/-/ready", "/%2d/ready")),
    ("POST", "/%2d/reload"),
    *(("GET", path) for path in (*PAGES, "/disk", *UNKNOWN)),
    *(("GET", f"/api/v1/disks?{quote(query, safe='=&')}") for query in QUERIES),
    *(("HEAD", path) for path in ("/", "/metrics", "/-/healthy", "/-/ready", "/none")),
    *((method, "/") for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE")),
    *(("POST", path) for path in ("/metrics", "/-/healthy", "/-/ready", "/none", "/-/quit")),
    *((method, "/-/reload") for method in ("GET", "HEAD", "DELETE")),
    # Also from a page whose name leads to this machine, so that it is of the same origin.
    *(("POST", "/-/reload", origin) for origin in ORIGINS),
    *(("POST", "/-/reload"), ("PUT", "/-/reload")),
)


def exchanges(app: App) -> Iterator[str]:
    """Yield each request, with the status, the headers and the text of its response."""
    for method, target, *origin in REQUESTS:
        status, headers, body = get(
            app, target, method, **({"Origin": origin[0]} if origin else {})
        )
        assert method == "HEAD" or int(headers["Content-Length"]) == len(body)
        length = headers.pop("Content-Length")
        shown = target if len(target) < 80 else f"{target[:80]}..."
        yield f"{method} {shown}{' of ' + repr(origin[0]) if origin else ''}: {status}"
        fields = [
            f"{name}: {value}" for name, value in headers.items() if name not in {"", "Date"}
        ]
        yield re.sub("sha256-[^']*", "sha256-...", "; ".join(fields))
        text = headers["Content-Type"].startswith("text/plain; charset")
        yield body.decode().rstrip() if text else f"{'some' if body else 'no'} body"
        assert length != "0"


def test_responses(golden: Callable[[Path, str], None]) -> None:
    reloads: list[None] = []
    app = make_app(reload=lambda: reloads.append(None))
    golden(Path(__file__).with_name("responses.txt"), "\n".join([*exchanges(app), ""]))
    assert len(reloads) == 2


def test_disks_are_a_json_document() -> None:
    status, headers, body = get(make_app(), "/api/v1/disks")
    assert (status, headers["Content-Type"]) == (200, "application/json")
    assert b'"device":"vdb"' in body


def names_in(body: bytes) -> list[str]:
    return [disk.device for disk in msgspec.json.decode(body, type=DisksDocument).disks]


def test_disks_come_in_pages() -> None:
    names = [f"sd{a}{b}" for a in "abcdefghij" for b in "abcdefghijklmnopqrstuvwxyz"]
    app = make_app(lambda: view(*map(disk_view, names)))
    found, target = list[str](), "/api/v1/disks"
    while target:
        status, _, body = get(app, target)
        assert status == 200
        found += names_in(body)
        following = msgspec.json.decode(body, type=DisksDocument).next
        target = "" if following is None else f"/api/v1/disks?after={following}"
    assert found == names
    assert len(names_in(get(app, "/api/v1/disks")[2])) == MOST_DISKS
    assert names_in(get(app, "/api/v1/disks?limit=2&after=sdab")[2]) == ["sdac", "sdad"]
    assert names_in(get(app, "/api/v1/disks?disk=sdzz&disk=sdac&disk=sdcc")[2]) == ["sdac", "sdcc"]


@pytest.mark.parametrize("target", ["/", "/disk?name=vdb", "/runbook", "/api/v1/disks"])
def test_pages_are_compressed_if_accepted(target: str) -> None:
    app = make_app()
    _, headers, body = get(app, target, Accept_Encoding="gzip")
    assert headers["Content-Encoding"] == "gzip"
    assert headers["Vary"] == "Accept-Encoding"
    _, other_headers, other_body = get(app, target, Accept_Encoding="gzip;q=0")
    assert "Content-Encoding" not in other_headers
    assert gzip.decompress(body) == other_body


def test_pages_are_rendered_once_in_a_tick() -> None:
    clock, rendered = [0.0], list[float]()

    def snapshot() -> Snapshot:
        rendered.append(clock[0])
        return view(disk_view("vda"), disk_view("vdb"))

    app = App(
        snapshot,
        lambda: ABOUT,
        controls=Controls(lambda: True, lambda: True, lambda: None),
        sharing=Sharing(0.1, lambda: clock[0]),
    )
    targets = ("/", "/?again", "/disk?name=vda", "/disk?name=vdb", "/api/v1/disks", "/metrics")
    for _ in range(3):
        for target in targets:
            get(app, target)
            get(app, target, Accept_Encoding="gzip")
    assert len(rendered) == 6  # one of "/", and /metrics without and with gzip
    clock[0] = 0.2
    get(app, "/")
    assert rendered[6:] == [0.2]


@pytest.mark.parametrize(
    ("method", "target", "service_class"),
    [
        ("GET", "/-/healthy", "health"),
        ("HEAD", "/-/ready", "health"),
        ("GET", "/none", "health"),
        ("POST", "/", "health"),
        ("GET", "/-/reload", "health"),
        ("POST", "/-/reload", "change"),
        ("GET", "/metrics", "scrape"),
        ("GET", "/", "page"),
        ("HEAD", "/disk", "page"),
        ("GET", "/runbook", "page"),
        ("GET", "/api/v1/disks", "page"),
    ],
)
def test_classes_of_requests(method: str, target: str, service_class: str) -> None:
    assert make_app().class_of(RequestHead(method, target)) == service_class


@pytest.mark.parametrize("path", ["", "*", "/é"])
def test_unknown_path_is_404(path: str) -> None:
    assert make_app()(RequestHead("GET", path)).status == 404


def test_daemon_that_is_not_healthy_or_ready() -> None:
    failing = make_app(healthy=lambda: False, ready=lambda: False)
    assert get(failing, "/-/healthy")[0] == 503
    assert get(failing, "/-/ready")[0] == 503


def test_readiness_has_the_time_of_the_last_scrape() -> None:
    clock = [100.0]
    app = App(
        lambda: view(disk_view()),
        lambda: ABOUT,
        controls=Controls(lambda: True, lambda: True, lambda: None),
        sharing=Sharing(0.1, lambda: clock[0]),
    )
    get(app, "/metrics?name[]=disksla_build_info")
    assert get(app, "/-/ready")[2] == b"ready\nnever scraped\n"
    get(app, "/metrics")
    clock[0] += 12.4
    get(app, "/metrics?name[]=disksla_build_info")
    assert get(app, "/-/ready")[2] == b"ready\nlast scrape 12 s ago\n"


def test_reload_can_be_switched_off() -> None:
    status, _, body = get(make_app(reload=None), "/-/reload", "POST")
    assert (status, body) == (403, b"cannot reload: it is switched off; send SIGHUP\n")


def test_failed_reload_returns_the_reason(caplog: Logged) -> None:
    def fail() -> None:
        raise DiskslaError("disksla.yml: line 3: unknown key 'iosp'; expected iops \udcff")

    status, _, body = get(make_app(reload=fail), "/-/reload", "POST")
    assert status == 500
    assert b"disksla.yml: line 3: unknown key 'iosp'" in body
    assert not caplog.records


def test_failing_page_is_logged_once(caplog: Logged) -> None:
    failing = True

    def snapshot() -> Snapshot:
        if failing:
            raise RuntimeError("no snapshot")
        return view()

    app = make_app(snapshot)
    with caplog.at_level(logging.INFO, "disksla.web"):
        for _ in range(3):
            status, _, body = get(app, "/metrics")
            assert status == 500
            assert b"no snapshot" not in body
        assert len(caplog.records) == 1
        assert caplog.records[0].exc_info is not None
        assert get(app, "/-/healthy")[0] == 200
        failing = False
        for _ in range(3):
            assert get(app, "/metrics")[0] == 200
        assert events(caplog) == [
            ("error", "cannot render page", {"path": "/metrics"}),
            ("info", "page renders again", {"path": "/metrics"}),
        ]


def test_page_that_takes_long_to_render_is_shared() -> None:
    clock = [0.0]
    cache = PageCache[float](Sharing(0.1, lambda: clock[0]))

    def render() -> float:
        clock[0] += 2.0
        return clock[0]

    assert [cache.get("same", render) for _ in range(3)] == [2.0, 2.0, 2.0]


def test_failed_page_is_rendered_again() -> None:
    cache = PageCache[str](Sharing(1000))

    def fail() -> str:
        raise RuntimeError("broken on purpose")

    with pytest.raises(RuntimeError):
        cache.get("same", fail)
    assert cache.get("same", lambda: "page") == "page"


def test_concurrent_requests_share_one_rendering() -> None:
    cache = PageCache[int](Sharing(1000))
    gate = threading.Event()
    renderings = []

    def render() -> int:
        renderings.append(threading.get_ident())
        assert gate.wait(20)
        return len(renderings)

    with ThreadPoolExecutor(20) as pool:
        pages = [pool.submit(cache.get, "same", render) for _ in range(20)]
        gate.set()
        assert {page.result() for page in pages} == {1}
    assert len(renderings) == 1

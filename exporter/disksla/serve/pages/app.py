"""The routes: which path answers what, from a `RequestHead` to a `Reply`, without sockets.

Pages that several clients ask for at the same time are made once.
"""

import gzip
import logging
import threading
import time
from collections.abc import Callable, Hashable
from http import HTTPStatus
from typing import Generic, NamedTuple, TypeVar
from urllib.parse import parse_qs

import msgspec
from prometheus_client import ProcessCollector

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.log import fields
from disksla.serve.http_server import (
    PLAIN_TEXT,
    HeaderLines,
    Reply,
    RequestHead,
    ServiceClass,
    accepts_gzip,
)
from disksla.serve.metrics import BuildInfo, Reports, SnapshotCollector, make_registry
from disksla.serve.metrics.render import GZIP_LEVEL, render_metrics
from disksla.serve.pages.disk_page import DISK_PATH, disk_page
from disksla.serve.pages.page import CONTENT_SECURITY_POLICY, Frame, runbook_page
from disksla.serve.pages.status_page import status_page
from disksla.state.pipeline import Snapshot
from disksla.tell.api import DISKS_PATH, disks_document, disks_query
from disksla.tell.explanation import HistoryView

Page = TypeVar("Page")


class Sharing(NamedTuple):
    """How long a page is shared after it was rendered."""

    seconds: float = 0.0
    """0 for not at all."""
    now_s: Callable[[], float] = time.monotonic


NOT_SHARED = Sharing()


class PageCache(Generic[Page]):
    """Pages that were just rendered, by key, with the time at which they were."""

    def __init__(self, sharing: Sharing) -> None:
        """Begin empty."""
        self._sharing = sharing
        self._rendering = threading.Lock()
        self._pages: dict[Hashable, tuple[float, Page]] = {}

    def get(self, key: Hashable, render: Callable[[], Page]) -> Page:
        """Return the page with this key, from the cache if it is recent enough."""
        with self._rendering:
            since_s = self._sharing.now_s() - self._sharing.seconds
            self._pages = {each: page for each, page in self._pages.items() if page[0] > since_s}
            if key not in self._pages:
                page = render()
                self._pages[key] = (self._sharing.now_s(), page)
            return self._pages[key][1]


_LOG = logging.getLogger("disksla.web")
_READ = ("GET", "HEAD")
_CHANGE = ("POST", "PUT")
_JSON: HeaderLines = (("Content-Type", "application/json"),)
_COMMON_HEADERS: HeaderLines = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)


def _refusal(text: str, status: HTTPStatus, *headers: tuple[str, str]) -> Reply:
    return Reply(f"{text}\n".encode(errors="replace"), status, (*PLAIN_TEXT, *headers))


_NO_DISK = _refusal(
    "There is no monitored disk of this name; see / for the disks.", HTTPStatus.NOT_FOUND
)


class Controls(NamedTuple):
    """What the pages ask the daemon, and tell it."""

    healthy: Callable[[], bool]
    ready: Callable[[], bool]
    reload: Callable[[], None] | None
    """Raises DiskslaError if it changed nothing; None if clients may not reload."""
    dashboard: Callable[[], str | None] = lambda: None
    """Address of the dashboard in Grafana; None if none is configured."""


class _Route(NamedTuple):
    methods: tuple[str, ...]
    service_class: ServiceClass
    respond: Callable[[RequestHead], Reply]


class App:
    """The pages of the daemon; built from callables, so it needs neither sampler nor daemon."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        build_info: Callable[[], BuildInfo],
        reports: Callable[[], Reports] = dict,
        *,
        controls: Controls,
        telemetry_path: str = "/metrics",
        sharing: Sharing = NOT_SHARED,
        past: Callable[[], HistoryView] = HistoryView,
        host: str = "localhost",
    ) -> None:
        """Serve `snapshot` at `telemetry_path`.

        By default, equal requests share no page.
        """
        self._snapshot = snapshot
        self._build_info = build_info
        self._controls = controls
        self._telemetry_path = telemetry_path
        self._past = past
        self._host = host
        self._scraped_s: float | None = None
        """Time of the last request for all metrics."""
        self._registry = make_registry(SnapshotCollector(snapshot, build_info, reports))
        ProcessCollector(registry=self._registry)
        self._now_s = sharing.now_s
        # Two, because a scrape must not wait for another page to be rendered.
        self._pages, self._scrapes = PageCache[Reply](sharing), PageCache[Reply](sharing)
        self._failing: set[str] = set()
        self._routes = {
            "/": _Route(_READ, "page", self._get_status_page),
            DISK_PATH: _Route(_READ, "page", self._get_disk_page),
            "/runbook": _Route(_READ, "page", self._get_runbook),
            DISKS_PATH: _Route(_READ, "page", self._get_disks),
            "/-/healthy": _Route(_READ, "health", self._get_health),
            "/-/ready": _Route(_READ, "health", self._get_readiness),
            "/-/reload": _Route(_CHANGE, "change", self._post_reload),
            telemetry_path: _Route(_READ, "scrape", self._get_metrics),
        }

    def class_of(self, request: RequestHead) -> ServiceClass:
        """Return the class of a request; what has no page is answered at once."""
        route = self._routes.get(request.path)
        if route is None or request.method not in route.methods:
            return "health"
        return route.service_class

    def __call__(self, request: RequestHead) -> Reply:
        """Answer one request."""
        response = self._route(request)
        return Reply(response.body, response.status, (*response.headers, *_COMMON_HEADERS))

    def _route(self, request: RequestHead) -> Reply:
        route, path = self._routes.get(request.path), request.path
        if route is None:
            return _refusal("Not found; see / for the pages.", HTTPStatus.NOT_FOUND)
        if request.method not in route.methods:
            allow = ", ".join(route.methods)
            text = f"Method not allowed; {path} supports {allow}."
            return _refusal(text, HTTPStatus.METHOD_NOT_ALLOWED, ("Allow", allow))
        try:
            response = route.respond(request)
        except Exception:  # noqa: BLE001 -- one page that fails must not affect the others
            if path not in self._failing:  # else it failed the last time, too
                self._failing.add(path)
                _LOG.exception("cannot render page", extra=fields(path=path))
            text = "Failed to render this page; see the log of disksla."
            return _refusal(text, HTTPStatus.INTERNAL_SERVER_ERROR)
        if path in self._failing:
            self._failing.discard(path)
            _LOG.info("page renders again", extra=fields(path=path))
        return response

    def _frame(self) -> Frame:
        version = self._build_info().version
        return Frame(self._host, version, self._telemetry_path, self._controls.dashboard() or "")

    def _get_status_page(self, request: RequestHead) -> Reply:
        def render() -> Reply:
            about, past = self._build_info(), self._past()
            return _html(status_page(self._snapshot(), about, past, self._frame()))

        return self._compressed(request, "/", render)

    def _get_disk_page(self, request: RequestHead) -> Reply:
        name = "".join(parse_qs(request.query).get("name", ())[:1])

        def render() -> Reply:
            page = disk_page(self._snapshot(), name, self._past(), self._frame())
            return _NO_DISK if page is None else _html(page)

        return self._compressed(request, f"{DISK_PATH}?{name}", render)

    def _get_runbook(self, request: RequestHead) -> Reply:
        return self._compressed(request, "/runbook", lambda: _html(runbook_page(self._frame())))

    def _get_disks(self, request: RequestHead) -> Reply:
        try:
            query = disks_query(parse_qs(request.query))
        except DiskslaError as error:
            return _refusal(str(error), HTTPStatus.BAD_REQUEST)

        def render() -> Reply:
            document = disks_document(
                self._snapshot(), self._past(), self._host, self._build_info().version, query
            )
            return Reply(msgspec.json.encode(document), headers=_JSON)

        return self._compressed(request, query, render)

    def _compressed(
        self, request: RequestHead, key: Hashable, render: Callable[[], Reply]
    ) -> Reply:
        """Return a page from the cache, which has it compressed, as the client accepts it."""
        page = self._pages.get((key, self._build_info()), lambda: _gzipped(render()))
        headers = (*page.headers, ("Vary", "Accept-Encoding"))
        if accepts_gzip(request.headers.get("accept-encoding", "")):
            return Reply(page.body, page.status, (*headers, ("Content-Encoding", "gzip")))
        return Reply(gzip.decompress(page.body), page.status, headers)

    def _get_metrics(self, request: RequestHead) -> Reply:
        accept = request.headers.get("accept", "")
        encoding = request.headers.get("accept-encoding", "")
        names = tuple(parse_qs(request.query).get("name[]", ()))
        if not names:
            self._scraped_s = self._now_s()

        return self._scrapes.get(
            (accept, encoding, names, self._build_info()),
            lambda: render_metrics(self._registry, accept, encoding, names),
        )

    def _get_health(self, _request: RequestHead) -> Reply:
        if self._controls.healthy():
            return Reply(b"healthy\n")
        text = "not healthy: the sampler has stopped"
        return _refusal(text, HTTPStatus.SERVICE_UNAVAILABLE)

    def _get_readiness(self, _request: RequestHead) -> Reply:
        """Say whether there is something to scrape, and when it was; `disksla doctor` reads it."""
        if not self._controls.ready():
            text = "not ready: the disks have not been sampled yet"
            return _refusal(text, HTTPStatus.SERVICE_UNAVAILABLE)
        last = "never scraped"
        if self._scraped_s is not None:
            last = f"last scrape {self._now_s() - self._scraped_s:.0f} s ago"
        return Reply(f"ready\n{last}\n".encode())

    def _post_reload(self, request: RequestHead) -> Reply:
        """Reload, unless it is switched off, or a page of any site in a browser asks for it.

        Browsers send Origin with each POST. A proxy that keeps clients from this path may compare
        it as it is sent.
        """
        reload, reason = self._controls.reload, ""
        if "origin" in request.headers:
            reason = "the request is of a web page; send it without Origin"
        elif request.was_encoded:
            reason = "found an encoded path; expected /-/reload"
        if reload is None or reason:
            reason = reason if reload else "it is switched off; send SIGHUP"
            return _refusal(f"cannot reload: {reason}", HTTPStatus.FORBIDDEN)
        try:
            reload()
        except DiskslaError as error:
            text = f"cannot reload, the configuration is unchanged: {error}"
            return _refusal(text, HTTPStatus.INTERNAL_SERVER_ERROR)
        return Reply(b"reloaded\n")


def _gzipped(page: Reply) -> Reply:
    body = gzip.compress(page.body, GZIP_LEVEL, mtime=0)
    return Reply(body, page.status, page.headers)


def _html(page: str) -> Reply:
    headers = (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
        ("Referrer-Policy", "no-referrer"),
    )
    return Reply(page.encode(), headers=headers)

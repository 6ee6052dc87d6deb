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
from disksla.serve.pages.disk_card import DISK_PATH
from disksla.serve.pages.disk_page import disk_page
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


class _Entry(NamedTuple, Generic[Page]):
    rendered_s: float
    page: Page


class PageCache(Generic[Page]):
    """Pages that were just rendered, by key."""

    def __init__(self, sharing: Sharing) -> None:
        """Begin empty."""
        self._sharing = sharing
        self._rendering = threading.Lock()
        self._entries: dict[Hashable, _Entry[Page]] = {}

    def get(self, key: Hashable, render: Callable[[], Page]) -> Page:
        """Return the page with this key, from the cache if it is recent enough."""
        with self._rendering:
            self._drop_old()
            if key not in self._entries:
                page = render()
                self._entries[key] = _Entry(self._sharing.now_s(), page)
            return self._entries[key].page

    def _drop_old(self) -> None:
        now_s = self._sharing.now_s()
        self._entries = {
            key: entry
            for key, entry in self._entries.items()
            if now_s - entry.rendered_s < self._sharing.seconds
        }


_LOG = logging.getLogger("disksla.web")
_READ = ("GET", "HEAD")
_CHANGE = ("POST", "PUT")
_JSON: HeaderLines = (("Content-Type", "application/json"),)
_NO_DISK = Reply(
    b"There is no monitored disk of this name; see / for the disks.\n", HTTPStatus.NOT_FOUND
)
_COMMON_HEADERS: HeaderLines = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
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
        route = self._routes.get(request.path)
        if route is None:
            return Reply(b"Not found; see / for the pages.\n", HTTPStatus.NOT_FOUND)
        if request.method not in route.methods:
            allow = ", ".join(route.methods)
            return Reply(
                f"Method not allowed; {request.path} supports {allow}.\n".encode(),
                HTTPStatus.METHOD_NOT_ALLOWED,
                (*PLAIN_TEXT, ("Allow", allow)),
            )
        try:
            response = route.respond(request)
        except Exception:  # noqa: BLE001 -- one page that fails must not affect the others
            self._log_failure(request.path)
            return Reply(
                b"Failed to render this page; see the log of disksla.\n",
                HTTPStatus.INTERNAL_SERVER_ERROR,
            )
        self._log_recovery(request.path)
        return response

    def _log_failure(self, path: str) -> None:
        """Log the current exception, unless the page failed the last time too."""
        if path not in self._failing:
            self._failing.add(path)
            _LOG.exception("cannot render page", extra=fields(path=path))

    def _log_recovery(self, path: str) -> None:
        if path in self._failing:
            self._failing.discard(path)
            _LOG.info("page renders again", extra=fields(path=path))

    def _frame(self) -> Frame:
        version = self._build_info().version
        return Frame(self._host, version, self._telemetry_path, self._controls.dashboard() or "")

    def _get_status_page(self, request: RequestHead) -> Reply:
        return self._compressed(
            request,
            "/",
            lambda: _html(
                status_page(self._snapshot(), self._build_info(), self._past(), self._frame())
            ),
        )

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
            return Reply(f"{error}\n".encode(errors="replace"), HTTPStatus.BAD_REQUEST)

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
        if accepts_gzip(request.headers.get("accept-encoding", "")):
            headers = (*page.headers, ("Vary", "Accept-Encoding"), ("Content-Encoding", "gzip"))
            return Reply(page.body, page.status, headers)
        headers = (*page.headers, ("Vary", "Accept-Encoding"))
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
        return Reply(b"not healthy: the sampler has stopped\n", HTTPStatus.SERVICE_UNAVAILABLE)

    def _get_readiness(self, _request: RequestHead) -> Reply:
        if self._controls.ready():
            return Reply(f"ready\n{self._last_scrape()}\n".encode())
        return Reply(
            b"not ready: the disks have not been sampled yet\n", HTTPStatus.SERVICE_UNAVAILABLE
        )

    def _last_scrape(self) -> str:
        """Return when all metrics were last requested; `disksla doctor` reads it."""
        if self._scraped_s is None:
            return "never scraped"
        return f"last scrape {self._now_s() - self._scraped_s:.0f} s ago"

    def _post_reload(self, request: RequestHead) -> Reply:
        """Reload, unless it is switched off, or a page of any site in a browser asks for it.

        Browsers send Origin with each POST. A proxy that keeps clients from this path may compare
        it as it is sent.
        """
        if self._controls.reload is None:
            return Reply(b"cannot reload: it is switched off; send SIGHUP\n", HTTPStatus.FORBIDDEN)
        if "origin" in request.headers:
            refusal = b"cannot reload: the request is of a web page; send it without Origin\n"
            return Reply(refusal, HTTPStatus.FORBIDDEN)
        if request.was_encoded:
            refusal = b"cannot reload: found an encoded path; expected /-/reload\n"
            return Reply(refusal, HTTPStatus.FORBIDDEN)
        try:
            self._controls.reload()
        except DiskslaError as error:
            text = f"cannot reload, the configuration is unchanged: {error}\n"
            return Reply(text.encode(errors="replace"), HTTPStatus.INTERNAL_SERVER_ERROR)
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

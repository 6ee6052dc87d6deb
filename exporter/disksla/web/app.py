"""The routes: which path answers what, from a `RequestHead` to a `Reply`, without sockets."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import NamedTuple
from urllib.parse import parse_qs

import msgspec
from prometheus_client import ProcessCollector

from disksla.api import DISKS_PATH, disks_document
from disksla.errors import DiskslaError
from disksla.history import HistoryView
from disksla.metrics import BuildInfo, Reports, SnapshotCollector, make_registry
from disksla.metrics.render import MetricsPage, render_metrics
from disksla.pipeline import Snapshot
from disksla.server import PLAIN_TEXT, HeaderLines, Reply, RequestHead
from disksla.system.log import fields
from disksla.web.disk_card import DISK_PATH
from disksla.web.disk_page import disk_page
from disksla.web.page import CONTENT_SECURITY_POLICY, Frame
from disksla.web.page_cache import PageCache
from disksla.web.runbook import runbook_page
from disksla.web.status_page import status_page

_LOG = logging.getLogger("disksla.web")
_READ = ("GET", "HEAD")
_CHANGE = ("POST", "PUT")
_COMMON_HEADERS: HeaderLines = (
    ("Cache-Control", "no-store"),
    ("X-Content-Type-Options", "nosniff"),
)


class Controls(NamedTuple):
    """What the pages below `/-/` ask the daemon, and tell it."""

    healthy: Callable[[], bool]
    ready: Callable[[], bool]
    reload: Callable[[], None]
    """Raises DiskslaError if it changed nothing."""


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
        page_cache: PageCache[MetricsPage] | None = None,
        past: Callable[[], HistoryView] = HistoryView,
        host: str = "localhost",
    ) -> None:
        """Serve `snapshot` at `telemetry_path`.

        Without `page_cache`, equal scrapes share no page.
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
        self._page_cache = page_cache or PageCache[MetricsPage](0.0)
        self._failing: set[str] = set()
        self._routes: dict[str, tuple[tuple[str, ...], Callable[[RequestHead], Reply]]] = {
            "/": (_READ, self._get_status_page),
            DISK_PATH: (_READ, self._get_disk_page),
            "/runbook": (_READ, self._get_runbook),
            DISKS_PATH: (_READ, self._get_disks),
            "/-/healthy": (_READ, self._get_health),
            "/-/ready": (_READ, self._get_readiness),
            "/-/reload": (_CHANGE, self._post_reload),
            telemetry_path: (_READ, self._get_metrics),
        }

    def __call__(self, request: RequestHead) -> Reply:
        """Answer one request."""
        response = self._route(request)
        return Reply(response.body, response.status, (*response.headers, *_COMMON_HEADERS))

    def _route(self, request: RequestHead) -> Reply:
        if request.path not in self._routes:
            return Reply(b"Not found; see / for the pages.\n", HTTPStatus.NOT_FOUND)
        methods, page = self._routes[request.path]
        if request.method not in methods:
            allow = ", ".join(methods)
            return Reply(
                f"Method not allowed; {request.path} supports {allow}.\n".encode(),
                HTTPStatus.METHOD_NOT_ALLOWED,
                (*PLAIN_TEXT, ("Allow", allow)),
            )
        try:
            response = page(request)
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
        return Frame(self._host, self._build_info().version, self._telemetry_path)

    def _get_status_page(self, _request: RequestHead) -> Reply:
        return _html(
            status_page(self._snapshot(), self._build_info(), self._past(), self._frame())
        )

    def _get_disk_page(self, request: RequestHead) -> Reply:
        name = "".join(parse_qs(request.query).get("name", ())[:1])
        page = disk_page(self._snapshot(), name, self._past(), self._frame())
        if page is None:
            text = b"There is no monitored disk of this name; see / for the disks.\n"
            return Reply(text, HTTPStatus.NOT_FOUND)
        return _html(page)

    def _get_runbook(self, _request: RequestHead) -> Reply:
        return _html(runbook_page(self._frame()))

    def _get_disks(self, _request: RequestHead) -> Reply:
        document = disks_document(
            self._snapshot(), self._past(), self._host, self._build_info().version
        )
        return Reply(
            msgspec.json.encode(document), headers=(("Content-Type", "application/json"),)
        )

    def _get_metrics(self, request: RequestHead) -> Reply:
        accept = request.headers.get("accept", "")
        encoding = request.headers.get("accept-encoding", "")
        names = tuple(parse_qs(request.query).get("name[]", ()))
        if not names:
            self._scraped_s = self._page_cache.now_s()
        page = self._page_cache.get(
            (accept, encoding, names, self._build_info()),
            lambda: render_metrics(self._registry, accept, encoding, names),
        )
        return Reply(page.body, headers=page.headers)

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
        return f"last scrape {self._page_cache.now_s() - self._scraped_s:.0f} s ago"

    def _post_reload(self, _request: RequestHead) -> Reply:
        try:
            self._controls.reload()
        except DiskslaError as error:
            text = f"cannot reload, the configuration is unchanged: {error}\n"
            return Reply(text.encode(errors="replace"), HTTPStatus.INTERNAL_SERVER_ERROR)
        return Reply(b"reloaded\n")


def _html(page: str) -> Reply:
    headers = (
        ("Content-Type", "text/html; charset=utf-8"),
        ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
        ("Referrer-Policy", "no-referrer"),
    )
    return Reply(page.encode(), headers=headers)

"""The site as a WSGI application: paths, methods and answers, and no sockets."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs
from wsgiref.types import StartResponse

import msgspec

from disksla.errors import DiskslaError
from disksla.metrics import BuildInfo
from disksla.metrics.collector import Reports, make_registry
from disksla.metrics.render import MetricsPage, render_metrics
from disksla.pipeline import Snapshot
from disksla.system.log import fields
from disksla.web.page_cache import PageCache
from disksla.web.status_page import CONTENT_SECURITY_POLICY, status_page

Environ = dict[str, Any]
"""A WSGI environment, as PEP 3333 has it."""

_LOG = logging.getLogger("disksla.web")
_READ = ("GET", "HEAD")
_CHANGE = ("POST", "PUT")
_PLAIN = (("Content-Type", "text/plain; charset=utf-8"),)
_EVERYWHERE = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))


class Response(msgspec.Struct, frozen=True):
    """What a path says to a request."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    headers: tuple[tuple[str, str], ...] = _PLAIN


class App:
    """Everything we serve, made of callables so that it knows neither sampler nor daemon."""

    def __init__(
        self,
        snapshot: Callable[[], Snapshot],
        build_info: Callable[[], BuildInfo],
        reports: Reports = dict,
        *,
        healthy: Callable[[], bool],
        ready: Callable[[], bool],
        reload: Callable[[], None],
        telemetry_path: str = "/metrics",
        share_s: float = 0.0,
    ) -> None:
        """Serve `view` at `telemetry_path`; `reload` raises a Refusal where it changed nothing.

        Whole scrapes that come within `share_s` of each other get the same page.
        """
        self._snapshot = snapshot
        self._build_info = build_info
        self._healthy = healthy
        self._ready = ready
        self._reload = reload
        self._telemetry_path = telemetry_path
        self._registry = make_registry(snapshot, build_info, reports)
        self._whole_page: PageCache[MetricsPage] = PageCache(share_s)
        self._failing: set[str] = set()
        self._pages: dict[str, tuple[tuple[str, ...], Callable[[Environ], Response]]] = {
            "/": (_READ, self._landing),
            "/-/healthy": (_READ, self._health),
            "/-/ready": (_READ, self._readiness),
            "/-/reload": (_CHANGE, self._reloaded),
            telemetry_path: (_READ, self._metrics),
        }

    def __call__(self, environ: Environ, start_response: StartResponse) -> list[bytes]:
        """Answer one request, as PEP 3333 has it."""
        answer = self._answer(environ)
        length = ("Content-Length", str(len(answer.body)))
        status = f"{answer.status.value} {answer.status.phrase}"
        start_response(status, [*answer.headers, *_EVERYWHERE, length])
        return [] if environ["REQUEST_METHOD"] == "HEAD" else [answer.body]

    def _answer(self, environ: Environ) -> Response:
        path: str = environ["PATH_INFO"]
        if path not in self._pages:
            return Response(
                b"There is nothing here; see / for what there is.\n", HTTPStatus.NOT_FOUND
            )
        methods, page = self._pages[path]
        if environ["REQUEST_METHOD"] not in methods:
            allow = ", ".join(methods)
            return Response(
                f"{path} answers {allow} only.\n".encode(),
                HTTPStatus.METHOD_NOT_ALLOWED,
                (*_PLAIN, ("Allow", allow)),
            )
        try:
            answer = page(environ)
        except Exception:  # noqa: BLE001 -- whatever is wrong with one page, the others are served
            self._note_failure(path)
            return Response(
                b"This page could not be made; the log says why.\n",
                HTTPStatus.INTERNAL_SERVER_ERROR,
            )
        self._note_success(path)
        return answer

    def _note_failure(self, path: str) -> None:
        """Log the exception at hand, unless the page failed the last time too."""
        if path not in self._failing:
            self._failing.add(path)
            _LOG.exception("cannot render page", extra=fields(path=path))

    def _note_success(self, path: str) -> None:
        if path in self._failing:
            self._failing.discard(path)
            _LOG.info("page renders again", extra=fields(path=path))

    def _landing(self, _environ: Environ) -> Response:
        page = status_page(self._snapshot(), self._build_info(), self._telemetry_path)
        headers = (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
            ("Referrer-Policy", "no-referrer"),
        )
        return Response(page.encode(), headers=headers)

    def _metrics(self, environ: Environ) -> Response:
        accept = environ.get("HTTP_ACCEPT", "")
        encoding = environ.get("HTTP_ACCEPT_ENCODING", "")
        names = tuple(parse_qs(environ.get("QUERY_STRING", "")).get("name[]", ()))
        page = self._whole_page.give(
            (accept, encoding, names, self._build_info()),
            lambda: render_metrics(self._registry, accept, encoding, names),
        )
        return Response(page.body, headers=page.headers)

    def _health(self, _environ: Environ) -> Response:
        if self._healthy():
            return Response(b"healthy\n")
        return Response(
            b"not healthy: the sampler has stopped ticking\n", HTTPStatus.SERVICE_UNAVAILABLE
        )

    def _readiness(self, _environ: Environ) -> Response:
        if self._ready():
            return Response(b"ready\n")
        return Response(
            b"not ready: the disks were not found and sampled yet\n",
            HTTPStatus.SERVICE_UNAVAILABLE,
        )

    def _reloaded(self, _environ: Environ) -> Response:
        try:
            self._reload()
        except DiskslaError as error:
            text = f"not reloaded, nothing changed: {error}\n"
            return Response(text.encode(errors="replace"), HTTPStatus.INTERNAL_SERVER_ERROR)
        return Response(b"reloaded\n")

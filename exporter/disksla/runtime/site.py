"""The site as a WSGI application: paths, methods and answers, and no sockets."""

import logging
from collections.abc import Callable
from http import HTTPStatus
from typing import Any
from urllib.parse import parse_qs
from wsgiref.types import StartResponse

import msgspec

from disksla.core.refusal import Refusal
from disksla.core.view import View
from disksla.exposition.collector import make_registry
from disksla.exposition.metrics import About
from disksla.exposition.page import CONTENT_SECURITY_POLICY, landing_page
from disksla.exposition.scrape import Page, print_metrics
from disksla.runtime.sharedpage import SharedPage

Environ = dict[str, Any]
"""A WSGI environment, as PEP 3333 has it."""

_LOG = logging.getLogger("disksla.web")
_READ = ("GET", "HEAD")
_CHANGE = ("POST", "PUT")
_PLAIN = (("Content-Type", "text/plain; charset=utf-8"),)
_EVERYWHERE = (("Cache-Control", "no-store"), ("X-Content-Type-Options", "nosniff"))


class Answer(msgspec.Struct, frozen=True):
    """What a path says to a request."""

    body: bytes
    status: HTTPStatus = HTTPStatus.OK
    headers: tuple[tuple[str, str], ...] = _PLAIN


class Site:
    """Everything we serve, made of callables so that it knows neither sampler nor daemon."""

    def __init__(
        self,
        view: Callable[[], View],
        about: Callable[[], About],
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
        self._view = view
        self._about = about
        self._healthy = healthy
        self._ready = ready
        self._reload = reload
        self._telemetry_path = telemetry_path
        self._registry = make_registry(view, about)
        self._whole_page: SharedPage[Page] = SharedPage(share_s)
        self._failing: set[str] = set()
        self._pages: dict[str, tuple[tuple[str, ...], Callable[[Environ], Answer]]] = {
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

    def _answer(self, environ: Environ) -> Answer:
        path: str = environ["PATH_INFO"]
        if path not in self._pages:
            return Answer(
                b"There is nothing here; see / for what there is.\n", HTTPStatus.NOT_FOUND
            )
        methods, page = self._pages[path]
        if environ["REQUEST_METHOD"] not in methods:
            allow = ", ".join(methods)
            return Answer(
                f"{path} answers {allow} only.\n".encode(),
                HTTPStatus.METHOD_NOT_ALLOWED,
                (*_PLAIN, ("Allow", allow)),
            )
        try:
            answer = page(environ)
        except Exception:  # noqa: BLE001 -- whatever is wrong with one page, the others are served
            self._note_failure(path)
            return Answer(
                b"This page could not be made; the log says why.\n",
                HTTPStatus.INTERNAL_SERVER_ERROR,
            )
        self._note_success(path)
        return answer

    def _note_failure(self, path: str) -> None:
        """Log the exception at hand, unless the page failed the last time too."""
        if path not in self._failing:
            self._failing.add(path)
            _LOG.exception("%s cannot be made; said once until it can", path)

    def _note_success(self, path: str) -> None:
        if path in self._failing:
            self._failing.discard(path)
            _LOG.warning("%s can be made again", path)

    def _landing(self, _environ: Environ) -> Answer:
        page = landing_page(self._view(), self._about(), self._telemetry_path)
        headers = (
            ("Content-Type", "text/html; charset=utf-8"),
            ("Content-Security-Policy", CONTENT_SECURITY_POLICY),
            ("Referrer-Policy", "no-referrer"),
        )
        return Answer(page.encode(), headers=headers)

    def _metrics(self, environ: Environ) -> Answer:
        accept = environ.get("HTTP_ACCEPT", "")
        encoding = environ.get("HTTP_ACCEPT_ENCODING", "")
        names = tuple(parse_qs(environ.get("QUERY_STRING", "")).get("name[]", ()))
        page = self._whole_page.give(
            (accept, encoding, names, self._about()),
            lambda: print_metrics(self._registry, accept, encoding, names),
        )
        return Answer(page.body, headers=page.headers)

    def _health(self, _environ: Environ) -> Answer:
        if self._healthy():
            return Answer(b"healthy\n")
        return Answer(
            b"not healthy: the sampler has stopped ticking\n", HTTPStatus.SERVICE_UNAVAILABLE
        )

    def _readiness(self, _environ: Environ) -> Answer:
        if self._ready():
            return Answer(b"ready\n")
        return Answer(
            b"not ready: the disks were not found and sampled yet\n",
            HTTPStatus.SERVICE_UNAVAILABLE,
        )

    def _reloaded(self, _environ: Environ) -> Answer:
        try:
            self._reload()
        except Refusal as refusal:
            text = f"not reloaded, nothing changed: {refusal}\n"
            return Answer(text.encode(errors="replace"), HTTPStatus.INTERNAL_SERVER_ERROR)
        return Answer(b"reloaded\n")

"""Access control: applies the web configuration file and its changes to clients.

Checking it for each request is cheap: files are read again only if their stat has changed. If the
file becomes invalid, all requests are rejected. The same holds if it no longer configures TLS or
passwords although it did before: a file looks like that while it is being written, and must not
open the port. Removing either takes a restart.
"""

import logging
import os
import ssl
import time
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import NamedTuple

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.log import fields
from disksla.serve.http_server.basic_auth import BasicAuth
from disksla.serve.http_server.config import (
    CertificateFiles,
    RateLimit,
    TlsServer,
    WebConfig,
    describe,
)
from disksla.serve.http_server.config_file import WebFile, read_web_file
from disksla.serve.http_server.http_protocol import (
    PLAIN_TEXT,
    BadRequestError,
    HeaderLines,
    HttpConnection,
    Reply,
    RequestHead,
)
from disksla.serve.http_server.tls import TlsContext
from disksla.serve.http_server.turns import BUSY, KnownClients, TooManyError

_LOG = logging.getLogger("disksla.web")

_BAD_WEB_CONFIG = Reply(b"Invalid web configuration; see the log of disksla.\n", 500)
_FOREIGN_HOST = Reply(
    b"Cannot answer: the name in the address of this page is none of this machine, and may be that"
    b" of another site (DNS rebinding); use an IP address, or start disksla with"
    b" --web.host NAME.\n",
    403,
)
_UNAUTHENTICATED = Reply(b"", 401, (*PLAIN_TEXT, ("WWW-Authenticate", 'Basic realm="disksla"')))


_LOCAL_SUFFIXES = (".internal", ".local", ".localhost", ".svc")
"""Of names that nobody can register; Kubernetes has .svc, and .cluster.local."""
_LARGEST_BYTES = 64 * 1024


def names_of_machine(etc: Path = Path("/etc")) -> frozenset[str]:
    """Return the names that this machine has without asking a server, in lower case.

    These are its host name, alone and with the domains of resolv.conf, and those of /etc/hosts.
    """
    words: dict[str, list[list[str]]] = {}
    for name in ("hosts", "resolv.conf"):
        try:
            with (etc / name).open("rb") as file:
                text = file.read(_LARGEST_BYTES).decode(errors="replace").lower()
        except OSError:
            text = ""
        words[name] = [line.partition("#")[0].split() for line in text.splitlines()]
    own = os.uname().nodename.lower()
    domains = {
        domain
        for key, *rest in filter(None, words["resolv.conf"])
        if key in {"domain", "search"}
        for domain in rest
    }
    known = {name for _, *names in filter(None, words["hosts"]) for name in names}
    return frozenset({own, *known, *(f"{own}.{domain}" for domain in domains)})


def may_be_of_another_site(host: str, names: Collection[str]) -> bool:
    """Return whether a header Host has a name that anyone can register, and none of `names`.

    A page of a site whose name leads to this machine could read all pages. An IP address is no
    such name, and neither is one without a domain.
    """
    name = host.lower().rpartition(":")[0] if ":" in host else host.lower()
    name = name.removesuffix(".")
    is_address = name.startswith("[") or name.replace(".", "").isdecimal()
    is_local = "." not in name or name.endswith(_LOCAL_SUFFIXES)
    return not (is_address or is_local or name in names)


class RejectedError(DiskslaError):
    """A request is answered without calling the application."""

    def __init__(self, response: Reply, *, closes: bool = True) -> None:
        """Note the response, and whether the connection is closed after it."""
        super().__init__()
        self.response = response
        self.closes = closes


class AccessPolicy(NamedTuple):
    """What is in force at this moment."""

    config: WebConfig | None = WebConfig()
    """None if the file is invalid; no request is answered then."""
    context: TlsContext | None = None
    """The TLS context, the last valid one if the files are invalid; None for no TLS."""
    is_open: bool = True
    """Whether new connections are accepted."""
    allowed_names: frozenset[str] | None = None
    """Alternative names, one of which a client certificate must have; None for any."""
    headers: HeaderLines = ()
    """Headers of every response."""


class TokenBucket(NamedTuple):
    """Gains a token in each interval of a limit, up to its burst; each request takes one."""

    limit: RateLimit
    credits: float
    """Tokens at `at_s`, a time of a monotonic clock."""
    at_s: float

    def take(self, now_s: float) -> "TokenBucket | None":
        """Return the bucket after taking a token now; None if it has none."""
        gained = (now_s - self.at_s) / self.limit.interval_s
        left = min(self.limit.burst, self.credits + gained) - 1
        return TokenBucket(self.limit, left, now_s) if left >= 0 else None


class AccessControl:
    """Keeps the policy up to date; without a web configuration file, access is unrestricted."""

    def __init__(self, path: Path | None = None, names: Collection[str] | None = None) -> None:
        """Read the file. Raise DiskslaError, naming all problems, if it is invalid.

        `names` are those of the machine, by which browsers may ask; None for any name.
        """
        self.known = KnownClients()
        """Those that were admitted, and answered."""
        self.passwords = BasicAuth(known=self.known)
        self.errors = 0
        self.problem: str | None = None
        self._path = path
        self._names = names
        self._file: WebFile | None = None
        self._policy = AccessPolicy()
        self._context_source: tuple[TlsServer, CertificateFiles | None] | None = None
        self._requires_tls = self._requires_passwords = False
        self._bucket: TokenBucket | None = None
        if path is not None:
            self._apply(read_web_file(path))
            if self.problem is not None:
                raise DiskslaError(self.problem)
            self._log_loaded()

    @property
    def is_configured(self) -> bool:
        """Whether there is a web configuration file."""
        return self._path is not None

    @property
    def speaks_tls(self) -> bool:
        """Whether connections use TLS."""
        return self._requires_tls

    def policy(self) -> AccessPolicy:
        """Return the policy in force; read the files again if they have changed."""
        if self._path is not None and self._file is not None and not self._file.is_unchanged():
            before, problem = self._file, self.problem
            self._apply(read_web_file(self._path))
            now = (self._file.config, self._file.certificates, self.problem)
            if now != (before.config, before.certificates, problem):
                self._log_change()
        return self._policy

    def covers(self, context: ssl.SSLContext | None) -> bool:
        """Return whether a connection with this TLS context may stay open."""
        return context is self._policy.context and (context is None) != self._requires_tls

    async def admit(self, http: HttpConnection, policy: AccessPolicy, client: str) -> RequestHead:
        """Return the request that was received. Raise RejectedError if it is not answered."""
        if policy.config is None:
            raise RejectedError(_BAD_WEB_CONFIG)
        if not self.within_rate(policy.config.rate_limit, time.monotonic()):
            raise RejectedError(Reply(b"", 429))
        try:
            request = http.next_request()
        except BadRequestError as error:
            raise RejectedError(Reply(b"", error.status)) from error
        if policy.config.users:
            await self._authenticate(request, policy.config.users, client)
        elif policy.context is None and self._is_of_another_site(request):
            raise RejectedError(_FOREIGN_HOST)
        return request

    def _is_of_another_site(self, request: RequestHead) -> bool:
        """Return whether a page of another site may have sent a request, by a browser.

        All browsers send Accept-Language, and no page can take it away; Prometheus and others that
        come by any name of the machine do not. With TLS, another site has no certificate.
        """
        is_browser = "accept-language" in request.headers
        host = request.headers.get("host", "")
        return is_browser and self._names is not None and may_be_of_another_site(host, self._names)

    async def _authenticate(
        self, request: RequestHead, users: Mapping[str, bytes], client: str
    ) -> None:
        """Raise RejectedError if the request has no password of one of `users`.

        The connection stays open: a new one costs more than another attempt.
        """
        authorization = request.headers.get("authorization", "").encode("latin-1")
        try:
            is_authenticated = await self.passwords.accept(users, authorization, client)
        except TooManyError as error:
            raise RejectedError(BUSY, closes=False) from error
        if not is_authenticated:
            raise RejectedError(_UNAUTHENTICATED, closes=False)

    def within_rate(self, limit: RateLimit, now_s: float) -> bool:
        """Count a request at a monotonic time; return whether the rate limit allows it."""
        if not limit.interval_s:
            return True
        bucket = self._bucket
        if bucket is None or bucket.limit != limit:
            bucket = TokenBucket(limit, limit.burst, now_s)
        left = bucket.take(now_s)
        self._bucket = left or bucket
        return left is not None

    def _apply(self, file: WebFile) -> None:
        self._file = file
        config, self.problem = file.config, file.problem
        removed = self._removed_section(config) if config is not None else None
        self.problem = removed or self.problem
        if config is None or removed:
            self._policy = self._policy._replace(config=None, is_open=False)
            return
        self._requires_tls |= config.tls.is_enabled
        self._requires_passwords |= bool(config.users)
        source = (config.tls, file.certificates)
        context = self._policy.context
        if file.problem is None and source != self._context_source:
            self._context_source, context = source, file.context
        names = config.tls.client_allowed_sans
        self._policy = AccessPolicy(
            config,
            context,
            is_open=file.problem is None,
            allowed_names=None if names is None else frozenset(names),
            headers=config.http.headers.lines,
        )

    def _removed_section(self, config: WebConfig) -> str | None:
        """Return the problem if TLS or passwords were configured before and are not any more."""
        for section, was_required, is_required in (
            ("tls_server_config", self._requires_tls, config.tls.is_enabled),
            ("basic_auth_users", self._requires_passwords, bool(config.users)),
        ):
            if was_required and not is_required:
                return f"{self._path}: {section} was removed; restart disksla to serve without it"
        return None

    def _log_change(self) -> None:
        if self.problem is not None:
            self.errors += 1
            rejected = "requests" if self._policy.config is None else "connections"
            _LOG.error(
                "web configuration invalid", extra=fields(refused=rejected, err=self.problem)
            )
        else:
            self._log_loaded()

    def _log_loaded(self) -> None:
        config = self._policy.config or WebConfig()
        _LOG.info("web configuration loaded", extra=fields(settings=describe(config)))
        if config.http.http2:
            _LOG.info("http2 is not supported; serving HTTP/1.1")

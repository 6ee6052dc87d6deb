"""Who may come in: the web configuration file, held against each connection and request.

It is cheap, because files whose stat is the same are not read again. A file that went wrong after
a good start lets nobody in. Nor does one that no longer asks for TLS or passwords: so a file looks
while it is being written, and a door should not open by itself. That takes a restart.
"""

import logging
import ssl
from pathlib import Path
from typing import NamedTuple

from disksla.errors import DiskslaError
from disksla.system.log import fields
from disksla.web.basic_auth import BasicAuth
from disksla.web.config import RateLimit, TlsServer, WebConfig, describe
from disksla.web.config_file import WebFile, read_web_file
from disksla.web.rate_limit import TokenBucket
from disksla.web.tls import CertificateFiles

_LOG = logging.getLogger("disksla.web")

HeaderLines = tuple[tuple[bytes, bytes], ...]
"""Names and values of headers, as they are sent."""


class AccessPolicy(NamedTuple):
    """Who may come in at this moment."""

    config: WebConfig | None = WebConfig()
    """None where the file is wrong, so that no request is answered."""
    context: ssl.SSLContext | None = None
    """What TLS is spoken by; the last good one where there is no other, None for no TLS."""
    is_open: bool = True
    """Whether new connections are taken up."""
    allowed_names: frozenset[str] | None = None
    """What the certificate of a client must be for one of; None for anything."""
    headers: HeaderLines = ()
    """What answers carry."""


class AccessControl:
    """Keeps the guard; without a web configuration file, everybody may come in."""

    def __init__(self, path: Path | None = None) -> None:
        """Read the file; raises Refusal that names all its problems."""
        self.passwords = BasicAuth()
        self.errors = 0
        self.problem: str | None = None
        self._path = path
        self._file: WebFile | None = None
        self._guard = AccessPolicy()
        self._made_of: tuple[TlsServer, CertificateFiles | None] | None = None
        self._wants_tls = self._wants_passwords = False
        self._bucket: TokenBucket | None = None
        if path is not None:
            self._take(read_web_file(path))
            if self.problem is not None:
                raise DiskslaError(self.problem)
            self._announce()

    @property
    def is_wanted(self) -> bool:
        """Whether there is a web configuration file."""
        return self._path is not None

    @property
    def speaks_tls(self) -> bool:
        """Whether connections are in TLS."""
        return self._wants_tls

    def guard(self) -> AccessPolicy:
        """Give who may come in now; read the files again if they have changed."""
        if self._path is not None and self._file is not None and not self._file.is_as_it_was():
            before, problem = self._file, self.problem
            self._take(read_web_file(self._path))
            now = (self._file.config, self._file.papers, self.problem)
            if now != (before.config, before.papers, problem):
                self._tell_of_change()
        return self._guard

    def covers(self, context: ssl.SSLContext | None) -> bool:
        """Tell whether a connection that was made by `context` may go on."""
        return context is self._guard.context and (context is None) != self._wants_tls

    def within_rate(self, limit: RateLimit, now_s: float) -> bool:
        """Count a request that comes now; tell whether it is one of those to be answered."""
        if not limit.interval_s:
            return True
        bucket = self._bucket
        if bucket is None or (bucket.interval_s, bucket.burst) != (limit.interval_s, limit.burst):
            bucket = TokenBucket.full(limit.interval_s, limit.burst, now_s)
        left = bucket.taken(now_s)
        self._bucket = left or bucket
        return left is not None

    def _take(self, file: WebFile) -> None:
        self._file = file
        config, self.problem = file.config, file.problem
        gone = self._given_up_by(config) if config is not None else None
        self.problem = gone or self.problem
        if config is None or gone:
            self._guard = self._guard._replace(config=None, is_open=False)
            return
        self._wants_tls |= config.tls.is_wanted
        self._wants_passwords |= bool(config.users)
        made_of = (config.tls, file.papers)
        context = self._guard.context
        if file.problem is None and made_of != self._made_of:
            self._made_of, context = made_of, file.context
        headers = tuple(
            (name.encode(), value.encode()) for name, value in config.http.headers.given
        )
        names = config.tls.client_allowed_sans
        allowed_names = None if names is None else frozenset(names)
        self._guard = AccessPolicy(config, context, file.problem is None, allowed_names, headers)

    def _given_up_by(self, config: WebConfig) -> str | None:
        """Say what a file asked for before and does not any more."""
        for section, was_wanted, is_wanted in (
            ("tls_server_config", self._wants_tls, config.tls.is_wanted),
            ("basic_auth_users", self._wants_passwords, bool(config.users)),
        ):
            if was_wanted and not is_wanted:
                return f"{self._path}: {section} is gone; to serve without it takes a restart"
        return None

    def _tell_of_change(self) -> None:
        if self.problem is not None:
            self.errors += 1
            refused = "requests" if self._guard.config is None else "connections"
            _LOG.error(
                "web configuration invalid", extra=fields(refused=refused, err=self.problem)
            )
        else:
            self._announce()

    def _announce(self) -> None:
        config = self._guard.config or WebConfig()
        _LOG.info("web configuration loaded", extra=fields(settings=describe(config)))
        if config.http.http2:
            _LOG.info("http2 is not supported; serving HTTP/1.1")

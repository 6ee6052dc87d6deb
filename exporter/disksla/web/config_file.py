"""Reading the web configuration file, and the certificates that it names."""

import contextlib
import ssl
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from disksla.errors import DiskslaError
from disksla.schema import Overrides
from disksla.schema.yaml_file import open_file, parse_record, read_bounded
from disksla.web.config import FILE, TlsServer, WebConfig
from disksla.web.tls import CertificateFiles, make_context

_GRAIN_NS = 50_000_000
"""Changes of a file in so short a time may leave it with the same stamp."""

Stamp = tuple[int, ...]
"""What stat says of a file that is different if its content is; empty where there is none."""


class WebFile(NamedTuple):
    """What the files said when they were read."""

    config: WebConfig | None
    """None where the file itself is wrong."""
    problem: str | None
    """Every problem, a line each, those of certificates among them."""
    papers: CertificateFiles | None
    context: ssl.SSLContext | None
    """None where TLS is not asked for, or cannot be had."""
    stamps: Mapping[Path, Stamp]
    is_young: bool
    """Whether one of them was changed just before it was read."""

    def is_as_it_was(self) -> bool:
        """Tell whether to read again would give the same; it costs a stat of each file."""
        return not self.is_young and all(
            _stamp_of(path) == stamp for path, stamp in self.stamps.items()
        )


def read_web_file(path: Path) -> WebFile:
    """Read a web configuration file and what it names; what is wrong stands in what is given."""
    reading = _Reading(path.parent)
    config = problem = None
    try:
        data = reading.content_of(path)
    except ValueError as error:
        problem = f"{path}: {error}; expected a web configuration file"
    else:
        try:
            config = parse_record(data, str(path), WebConfig, reading.rules())
        except DiskslaError as error:
            problem = str(error)
            with contextlib.suppress(
                DiskslaError
            ):  # it may be that only the certificates are wrong
                config = parse_record(data, str(path), WebConfig, {})
    now_ns = time.time_ns()
    stamps = reading.stamps
    is_young = any(abs(now_ns - stamp[0]) < _GRAIN_NS for stamp in stamps.values() if stamp)
    context = None if problem else reading.context
    return WebFile(config, problem, reading.papers, context, stamps, is_young)


class _Reading:
    """One reading: the rules that only whoever has the files can follow, and what came of them."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._contents: dict[str, bytes] = {}
        self.stamps: dict[Path, Stamp] = {}
        self.papers: CertificateFiles | None = None
        self.context: ssl.SSLContext | None = None

    def rules(self) -> Overrides:
        return {FILE: self._file, TlsServer: self._load}

    def content_of(self, path: Path) -> bytes:
        """Read a file; raises ValueError."""
        self.stamps[path] = _stamp_of(path)  # first: what changes meanwhile is read again
        try:
            with open_file(path) as file:
                return read_bounded(file)
        except OSError as error:
            raise ValueError(f"cannot be read: {error.strerror}") from error

    def _file(self, text: str) -> str:
        named: str = FILE.parse(text)
        if "-----BEGIN" in named:  # it may be a key, so it is not quoted
            where = "PEM goes to cert, key or client_ca"
            raise ValueError(f"found PEM; expected {FILE.expected} ({where})")
        if named:
            try:
                self._contents[named] = self.content_of(self._directory / named)
            except ValueError as error:
                raise ValueError(f"'{named}' {error}; expected {FILE.expected}") from error
        return named

    def _load(self, tls: TlsServer) -> None:
        if not tls.is_wanted:
            return
        asks_for_authority = tls.client_ca_file or tls.client_ca
        self.papers = CertificateFiles(
            self._contents.get(tls.cert_file, tls.cert.encode()),
            self._contents.get(tls.key_file, tls.key.encode()),
            self._contents.get(tls.client_ca_file, tls.client_ca.encode())
            if asks_for_authority
            else None,
        )
        self.context = make_context(tls, self.papers)


def _stamp_of(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return ()
    times = (status.st_ctime_ns, status.st_mtime_ns)
    return (*times, status.st_size, status.st_ino, status.st_dev)

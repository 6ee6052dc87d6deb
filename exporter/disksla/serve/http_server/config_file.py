"""Reads the web configuration file, and the certificates that it names."""

import contextlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import NamedTuple

from disksla.base.errors import DiskslaError
from disksla.base.schema import Overrides
from disksla.base.schema.yaml_file import open_file, parse_record, read_bounded
from disksla.serve.http_server.config import FILE, CertificateFiles, TlsServer, WebConfig
from disksla.serve.http_server.tls import TlsContext, make_context

_TIMESTAMP_GRAIN_NS = 50_000_000
"""Two changes of a file in less time may leave it with the same stamp."""

Stamp = tuple[int, ...]
"""Times, size, inode and device of a file, which change with its content; empty without a file."""


class WebFile(NamedTuple):
    """A web configuration file and its certificates, as they were read."""

    config: WebConfig | None
    """None if the file itself is invalid."""
    problem: str | None
    """All problems, one per line, those of certificates included."""
    certificates: CertificateFiles | None
    context: TlsContext | None
    """None if TLS is not configured, or cannot be used."""
    stamps: Mapping[Path, Stamp]
    is_recent: bool
    """Whether one of the files was changed just before it was read."""

    def is_unchanged(self) -> bool:
        """Return whether the files are still the same, by a stat of each."""
        return not self.is_recent and all(
            _stamp_of(path) == stamp for path, stamp in self.stamps.items()
        )


def read_web_file(path: Path) -> WebFile:
    """Read a web configuration file and the files that it names; problems are in the result."""
    reader = _Reader(path.parent)
    config = problem = None
    try:
        data = reader.read(path)
    except ValueError as error:
        problem = f"{path}: {error}; expected a web configuration file"
    else:
        try:
            config = parse_record(data, str(path), WebConfig, reader.rules())
        except DiskslaError as error:
            problem = str(error)
            with contextlib.suppress(DiskslaError):  # valid if only the certificates are not
                config = parse_record(data, str(path), WebConfig, {})
    now_ns = time.time_ns()
    stamps = reader.stamps
    is_recent = any(
        abs(now_ns - stamp[0]) < _TIMESTAMP_GRAIN_NS for stamp in stamps.values() if stamp
    )
    context = None if problem else reader.context
    return WebFile(
        config=config,
        problem=problem,
        certificates=reader.certificates,
        context=context,
        stamps=stamps,
        is_recent=is_recent,
    )


class _Reader:
    """Reads the named files while the configuration is parsed, and makes the TLS context."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._contents: dict[str, bytes] = {}
        self.stamps: dict[Path, Stamp] = {}
        self.certificates: CertificateFiles | None = None
        self.context: TlsContext | None = None

    def rules(self) -> Overrides:
        return {FILE: self._parse_path, TlsServer: self._load}

    def read(self, path: Path) -> bytes:
        """Return the content of a file. Raise ValueError if it cannot be read."""
        self.stamps[path] = _stamp_of(path)  # before the content, so that no change is missed
        try:
            with open_file(path) as file:
                return read_bounded(file)
        except OSError as error:
            raise ValueError(f"cannot be read: {error.strerror}") from error

    def _parse_path(self, text: str) -> str:
        name: str = FILE.parse(text)
        if "-----BEGIN" in name:  # may be a private key, so it is not quoted
            hint = "PEM belongs in cert, key or client_ca"
            raise ValueError(f"found PEM; expected {FILE.expected} ({hint})")
        if name:
            try:
                self._contents[name] = self.read(self._directory / name)
            except ValueError as error:
                raise ValueError(f"'{name}' {error}; expected {FILE.expected}") from error
        return name

    def _load(self, tls: TlsServer) -> None:
        if not tls.is_enabled:
            return
        has_client_ca = tls.client_ca_file or tls.client_ca
        self.certificates = CertificateFiles(
            self._contents.get(tls.cert_file, tls.cert.encode()),
            self._contents.get(tls.key_file, tls.key.encode()),
            self._contents.get(tls.client_ca_file, tls.client_ca.encode())
            if has_client_ca
            else None,
        )
        self.context = make_context(tls, self.certificates)


def _stamp_of(path: Path) -> Stamp:
    try:
        status = path.stat()
    except OSError:
        return ()
    times = (status.st_ctime_ns, status.st_mtime_ns)
    return (*times, status.st_size, status.st_ino, status.st_dev)

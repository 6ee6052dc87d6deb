"""Asks the daemon on this machine for its readiness, its metrics and its disks."""

import http.client
import ipaddress
import ssl
from typing import NamedTuple
from urllib.parse import urlencode, urlsplit

import msgspec
from prometheus_client.parser import text_string_to_metric_families

from disksla.doctor.daemon import METRICS
from disksla.doctor.facts import DaemonFacts, Sample
from disksla.errors import DECODE_ERRORS, DiskslaError
from disksla.units import MIB
from disksla.web import DISKS_PATH, DisksDocument

DEFAULT_URL = "http://127.0.0.1:10056/metrics"
_TIMEOUT_S = 5.0
_MAX_BYTES = 16 * MIB
_OK = 200


class _Address(NamedTuple):
    scheme: str
    host: str
    port: int | None
    path: str

    def __str__(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        port = "" if self.port is None else f":{self.port}"
        return f"{self.scheme}://{host}{port}{self.path}"


def parse_url(text: str) -> _Address:
    """Return the address of the metrics. Raise DiskslaError if it is not on loopback."""
    try:
        parts = urlsplit(text)
        address = _Address(
            parts.scheme, parts.hostname or "", parts.port, parts.path.rstrip("/") or "/metrics"
        )
        is_local = address.host == "localhost" or ipaddress.ip_address(address.host).is_loopback
    except ValueError:
        is_local = False
    else:
        if is_local and address.scheme in {"http", "https"} and text.isprintable():
            return address
    raise DiskslaError(
        f"--url: found '{text}'; expected an address of this machine such as {DEFAULT_URL},"
        " because everything else that is examined is on it"
    )


def ask_daemon(url: str) -> DaemonFacts:
    """Return what the daemon answers, or why it does not.

    Raise DiskslaError if the URL is not on loopback.
    """
    address = parse_url(url)
    shown = str(address)
    try:
        ready_status, ready = _get(address, "/-/ready")
        query = urlencode([("name[]", name) for name in METRICS])
        status, page = _get(address, f"{address.path}?{query}")
    except ssl.SSLError as error:
        reason = f"TLS failed ({error.reason}); it may need a client certificate, or speak HTTP"
        return DaemonFacts(shown, None, reason)
    except TimeoutError:
        return DaemonFacts(shown, f"none within {_TIMEOUT_S:.0f} s")
    except OSError as error:
        return DaemonFacts(shown, error.strerror or str(error))
    except http.client.HTTPException as error:
        return DaemonFacts(shown, f"it does not speak HTTP: {type(error).__name__}")
    samples = _samples(page) if status == _OK else ()
    return DaemonFacts(shown, None, None, ready_status, ready.strip(), status, samples)


def ask_disks(url: str) -> DisksDocument | None:
    """Return what the daemon knows of its disks; None if none answers, or not with that.

    Raise DiskslaError if the URL is not on loopback.
    """
    address = parse_url(url)
    try:
        status, page = _get(address, DISKS_PATH)
        return msgspec.json.decode(page, type=DisksDocument) if status == _OK else None
    except (OSError, http.client.HTTPException, *DECODE_ERRORS):
        return None


def _get(address: _Address, target: str) -> tuple[int, str]:
    connection: http.client.HTTPConnection
    if address.scheme == "https":
        # The name in the certificate is not that of loopback, and no secret is sent.
        context = ssl._create_unverified_context()  # noqa: S323, SLF001 -- as above
        connection = http.client.HTTPSConnection(
            address.host, address.port, timeout=_TIMEOUT_S, context=context
        )
    else:
        connection = http.client.HTTPConnection(address.host, address.port, timeout=_TIMEOUT_S)
    try:
        connection.request("GET", target)
        response = connection.getresponse()
        return response.status, response.read(_MAX_BYTES).decode(errors="replace")
    finally:
        connection.close()


def _samples(page: str) -> tuple[Sample, ...]:
    """Return the samples of a page; none if it is not one of metrics."""
    try:
        return tuple(
            Sample(sample.name, sample.labels, sample.value)
            for family in text_string_to_metric_families(page)
            for sample in family.samples
        )
    except (ValueError, IndexError, KeyError):
        return ()

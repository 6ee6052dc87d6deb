"""One HTTP exchange, bounded in time and size, with verified certificates and no redirects.

Metadata addresses are reached directly. APIs are reached through the proxy of the environment
(HTTPS_PROXY, NO_PROXY), as urllib and most programs know it.
"""

import base64
import contextlib
import http.client
import os
import signal
import ssl
import time
from collections.abc import Iterator
from types import FrameType
from urllib.parse import unquote, urlsplit

from disksla.base.errors import DiskslaError
from disksla.base.units import MIB
from disksla.clouds.http_client import exchange
from disksla.clouds.http_client.exchange import ExchangeError, T

_MOST_BYTES: dict[exchange.Source, int] = {"metadata": MIB, "api": 32 * MIB}
_DEADLINE_S: dict[exchange.Source, float] = {"metadata": 5.0, "api": 30.0}
_CHUNK_BYTES = 64 * 1024
_PROXY_PORT = 3128


class _DeadlineError(DiskslaError):
    """The time of an exchange is over."""


def carry_out(exchanges: exchange.Exchanges[T], within_s: float) -> T:
    """Carry out the requests of a generator in order and return what it found.

    All of them together take `within_s` at most; after that, the rest fail at once.
    """
    end_s = time.monotonic() + within_s
    try:
        request = next(exchanges)
        while True:
            left_s = min(_DEADLINE_S[request.source], end_s - time.monotonic())
            try:
                response = fetch(request, left_s)
            except ExchangeError as error:
                request = exchanges.throw(error)
            else:
                request = exchanges.send(response)
    except StopIteration as end:
        found: T = end.value
        return found


def fetch(request: exchange.Request, deadline_s: float) -> exchange.Response:
    """Return the response to a request, whatever its status. Raise ExchangeError without one.

    A timer signal ends it after `deadline_s`, however slowly the server answers; so this runs in
    the main thread only.
    """
    try:
        with _deadline(deadline_s):
            return _exchange(request, deadline_s)
    except (_DeadlineError, TimeoutError):
        text = f"there was no complete answer within {max(deadline_s, 0):.3g} s"
        raise ExchangeError("timeout", text) from None
    except ssl.SSLCertVerificationError as error:
        text = f"the certificate of the server is not valid: {error.verify_message}"
        raise ExchangeError("invalid", text) from None
    except (OSError, ValueError) as error:  # a name that cannot be encoded is a ValueError
        reason = getattr(error, "strerror", None) or type(error).__name__
        host = urlsplit(request.url).netloc.rpartition("@")[2]
        raise ExchangeError("unreachable", f"{host}: {reason}") from None
    except http.client.HTTPException as error:
        text = f"the answer is not HTTP ({type(error).__name__})"
        raise ExchangeError("invalid", text) from None


@contextlib.contextmanager
def _deadline(seconds: float) -> Iterator[None]:
    """Raise _DeadlineError in the block after some time."""
    if seconds <= 0:
        raise _DeadlineError
    before = signal.signal(signal.SIGALRM, _end)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)


def _end(_number: int, _frame: FrameType | None) -> None:
    raise _DeadlineError


def _exchange(request: exchange.Request, timeout_s: float) -> exchange.Response:
    path = urlsplit(request.url)
    target = f"{path.path or '/'}{'?' if path.query else ''}{path.query}"
    with contextlib.closing(_connection(request, timeout_s)) as connection:
        connection.request(request.method, target, request.body or None, dict(request.headers))
        response = connection.getresponse()
        body = _body(response, _MOST_BYTES[request.source])
        names = {name.lower(): value for name, value in response.getheaders()}
        return exchange.Response(response.status, names, body, time.time())


def _body(response: http.client.HTTPResponse, most_bytes: int) -> bytes:
    body = bytearray()
    while chunk := response.read(_CHUNK_BYTES):
        body += chunk
        if len(body) > most_bytes:
            raise ExchangeError("too_large", f"the answer has more than {most_bytes} bytes")
    return bytes(body)


def _connection(request: exchange.Request, timeout_s: float) -> http.client.HTTPConnection:
    """Return a connection that is not open yet: to the server, or to the proxy for it."""
    url = urlsplit(request.url)
    host, port = url.hostname or "", url.port
    proxy = _proxy(request, url.scheme, host)
    if url.scheme == "https":
        context = ssl.create_default_context(cafile=request.authority)
        if request.authority is not None:
            trust_as_kubernetes(context)
        if proxy is None:
            return http.client.HTTPSConnection(host, port, timeout=timeout_s, context=context)
        at = urlsplit(proxy)
        tunnel = http.client.HTTPSConnection(
            at.hostname or "", at.port or _PROXY_PORT, timeout=timeout_s, context=context
        )
        tunnel.set_tunnel(host, port or http.client.HTTPS_PORT, _proxy_authorization(proxy))
        return tunnel
    return http.client.HTTPConnection(host, port, timeout=timeout_s)


def trust_as_kubernetes(context: ssl.SSLContext) -> None:
    """Trust the certificates of a cluster as its own programs do.

    Each of them is trusted as it is, also one that another authority signed; and key identifiers
    and usages, which Python 3.13 requires, may be missing, as they are with EKS. The signatures,
    the names and the dates are verified.
    """
    context.verify_flags |= ssl.VERIFY_X509_PARTIAL_CHAIN
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT


def _proxy(request: exchange.Request, scheme: str, host: str) -> str | None:
    """Return the address of the proxy for an API; None without one."""
    if request.source == "metadata" or scheme != "https":
        return None
    if not any(name.lower().endswith("_proxy") for name in os.environ):
        return None
    from urllib.request import getproxies, proxy_bypass  # noqa: PLC0415

    return None if proxy_bypass(host) else getproxies().get("https")


def _proxy_authorization(proxy: str) -> dict[str, str]:
    at = urlsplit(proxy)
    if at.username is None:
        return {}
    words = f"{unquote(at.username)}:{unquote(at.password or '')}"
    return {"Proxy-Authorization": f"Basic {base64.b64encode(words.encode()).decode()}"}

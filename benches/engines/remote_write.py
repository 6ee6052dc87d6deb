"""Requests of Prometheus remote write 1.0: protobuf messages in the block format of snappy.

Nothing is compressed, which snappy permits: a block may consist of literals only.
"""

import struct
import urllib.request
from collections.abc import Iterable, Iterator, Mapping, Sequence
from http import HTTPStatus
from typing import NamedTuple
from urllib.error import HTTPError

from support.monitoring_stack import PATIENCE_S
from support.waiting import eventually

[STALE] = struct.unpack("<d", bytes.fromhex("020000000000f07f"))
"""The value of a sample with which a series ends: a NaN with certain bits."""
_LITERAL_BYTES = 1 << 16
_TIMEOUT_S = 60.0
_HEADERS = {
    "Content-Type": "application/x-protobuf",
    "Content-Encoding": "snappy",
    "X-Prometheus-Remote-Write-Version": "0.1.0",
}


class Sample(NamedTuple):
    """A value at a Unix time in milliseconds."""

    time_ms: int
    value: float


class Series(NamedTuple):
    """Samples of one series in order of time."""

    labels: Mapping[str, str]
    """With the name of the metric as `__name__`."""
    samples: Sequence[Sample]


def send(url: str, series: Iterable[Series]) -> None:
    """Write series to a store; raise HTTPError if it rejects any sample."""
    request = urllib.request.Request(url, request_body(series), _HEADERS)
    with urllib.request.urlopen(request, timeout=_TIMEOUT_S):
        pass


def await_ready(url: str, time_ms: int) -> None:
    """Write one sample until the store takes it; Thanos makes its TSDB at the first one."""
    assert eventually(lambda: _accepts(url, Sample(time_ms, 1.0)), PATIENCE_S, 0.1), url


def _accepts(url: str, sample: Sample) -> bool:
    try:
        send(url, [Series({"__name__": "engines_ready"}, [sample])])
    except HTTPError as error:
        if error.code < HTTPStatus.INTERNAL_SERVER_ERROR:
            raise
        return False
    return True


def request_body(series: Iterable[Series]) -> bytes:
    """Return the body of a request."""
    message = b"".join(_field(1, _time_series(each)) for each in series)
    return varint(len(message)) + b"".join(_literals(message))


def _time_series(series: Series) -> bytes:
    labels = (
        _field(1, _field(1, name.encode()) + _field(2, value.encode()))
        for name, value in sorted(series.labels.items())
    )
    samples = (
        _field(2, b"\x09" + struct.pack("<d", value) + b"\x10" + varint(time_ms))
        for time_ms, value in series.samples
    )
    return b"".join((*labels, *samples))


def _field(number: int, content: bytes) -> bytes:
    """Return a field of protobuf that has a length."""
    return varint(number << 3 | 2) + varint(len(content)) + content


def varint(number: int) -> bytes:
    """Return a number in groups of seven bits, the lowest first."""
    groups = bytearray()
    while number > 0x7F:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)


def _literals(content: bytes) -> Iterator[bytes]:
    """Yield elements of snappy: a tag, the length less one in two bytes, and so many bytes."""
    for start in range(0, len(content), _LITERAL_BYTES):
        part = content[start : start + _LITERAL_BYTES]
        yield b"\xf4" + struct.pack("<H", len(part) - 1) + part

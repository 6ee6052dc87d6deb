"""Requests of remote write, decoded by the definitions of protobuf and snappy."""

import struct
from collections.abc import Iterator

from hypothesis import given
from hypothesis import strategies as st

from engines.remote_write import STALE, Sample, Series, request_body, varint

LITERAL = 0xF4
"""Tag of a literal whose length less one is in two bytes."""


def read_varint(content: bytes, at: int) -> tuple[int, int]:
    """Return a number, and where it ends."""
    number = shift = 0
    while True:
        number |= (content[at] & 0x7F) << shift
        shift += 7
        at += 1
        if content[at - 1] < 0x80:
            return number, at


def decompressed(block: bytes) -> bytes:
    size, at = read_varint(block, 0)
    content = b""
    while at < len(block):
        assert block[at] == LITERAL
        end = at + 4 + struct.unpack_from("<H", block, at + 1)[0]
        content += block[at + 3 : end]
        at = end
    assert len(content) == size
    return content


def fields(message: bytes) -> Iterator[tuple[int, bytes | int | float]]:
    """Yield number and value of each field."""
    at = 0
    while at < len(message):
        key, at = read_varint(message, at)
        if key & 7 == 0:
            number, at = read_varint(message, at)
            yield key >> 3, number
        elif key & 7 == 1:
            yield key >> 3, struct.unpack_from("<d", message, at)[0]
            at += 8
        else:
            size, at = read_varint(message, at)
            yield key >> 3, message[at : at + size]
            at += size


def decoded(body: bytes) -> list[Series]:
    found = []
    for _, one in fields(decompressed(body)):
        assert isinstance(one, bytes)
        labels, samples = {}, []
        for number, content in fields(one):
            assert isinstance(content, bytes)
            parts = [value for _, value in fields(content)]
            if number == 1:
                name, value = (part.decode() for part in parts if isinstance(part, bytes))
                labels[name] = value
            else:
                samples.append(Sample(int(parts[1]), float(parts[0])))
        found.append(Series(labels, samples))
    return found


names = st.text(min_size=1, max_size=20)
samples_ = st.builds(Sample, st.integers(1, 2**42), st.floats(allow_nan=False))
series_ = st.builds(
    Series, st.dictionaries(names, names, max_size=4), st.lists(samples_, max_size=5)
)


@given(st.lists(series_, max_size=4))
def test_series_are_what_they_were(series: list[Series]) -> None:
    assert decoded(request_body(series)) == series


def test_long_message_has_several_literals() -> None:
    series = [Series({"__name__": "up"}, [Sample(time, 1.0) for time in range(1, 20_000)])]
    assert decoded(request_body(series)) == series


def test_end_of_a_series_keeps_its_bits() -> None:
    body = request_body([Series({}, [Sample(1, STALE)])])
    assert bytes.fromhex("020000000000f07f") in body


@given(st.integers(0, 2**63))
def test_varint(number: int) -> None:
    assert read_varint(varint(number), 0) == (number, len(varint(number)))

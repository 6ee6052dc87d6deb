"""Performance events: messages of the helper, formats of tracepoints, and samples."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.packets import decode_packet, encode
from disksla.kernel.consumers.attribution import NONE_OPEN, attributed
from disksla.kernel.performance_events import EventsRequest, Taken
from disksla.kernel.performance_events.protocol import ANSWERS, REQUESTS, Batch, End, Refusal
from disksla.kernel.performance_events.samples import RecordForm, RequestSample
from disksla.kernel.performance_events.tracepoints import Tracepoint, parse_format
from fuzz.target import Target, Tree
from support.request_samples import lost, record

FORMATS = Path(__file__).parents[3] / "tests" / "kernel" / "performance_events" / "formats"
COMM = 38
SAMPLE = RequestSample(1183, 254 << 20, 8, b"postgres".ljust(16, b"\0"), 4711)
DISKS = {"vda": (254, 0)}


def packet(content: bytes) -> bool:
    """A packet is rejected, or is a message that is encoded again unchanged."""
    accepted = False
    decoders: tuple[msgspec.json.Decoder[Any], ...] = (REQUESTS, ANSWERS)
    for decoder in decoders:
        try:
            message: EventsRequest | Batch | End | Refusal = decode_packet(decoder, content)
            if isinstance(message, EventsRequest):
                assert len(message.numbers) == len(message.devices)
        except DiskslaError as error:
            assert str(error)
            continue
        accepted = True
        assert decode_packet(decoder, encode(message)) == message
    return accepted


def tracepoint(content: bytes) -> bool:
    """A format is rejected, or has a number."""
    try:
        found = parse_format(content.decode(errors="replace"))
    except DiskslaError as error:
        assert "this kernel is not known" in str(error)
        return False
    assert found.number >= 0
    return True


def samples(content: bytes) -> bool:
    """A buffer is rejected, or all of its samples are attributed."""
    try:
        found = RecordForm(COMM).parse(content)
    except DiskslaError as error:
        assert "this kernel is not known" in str(error)
        return False
    total = found.seen.total()
    taken = Taken(found.seen, SAMPLE.tracepoint, (1, 1), (total, total), 2)
    _, used = attributed(
        NONE_OPEN, taken, DISKS, lambda cgroup, comm: (str(cgroup), comm), with_bytes=True
    )
    assert all((each.requests or 0) >= 0 and (each.bytes or 0) >= 0 for each in used)
    of_disk = Counter({key: n for key, n in found.seen.items() if key.device == SAMPLE.device})
    assert bool(used) >= bool(of_disk)
    return True


TARGETS = (
    Target(
        "events-packet",
        packet,
        lambda: [
            encode(EventsRequest("data_writes", ("259:1", "7:0"))),
            *map(encode, (Batch(3, 200), End("0-3", Tracepoint(1183, 36)), Refusal("why"))),
        ],
        words=(b'"type":', b'"batch"', b'"end"', b"null", b"-1", b"1e300"),
        tree=Tree(json.loads, msgspec.json.encode),
    ),
    Target(
        "tracepoint",
        tracepoint,
        lambda: [file.read_bytes() for file in sorted(FORMATS.glob("*/*"))],
        words=(b"offset:", b"size:", b"ID: ", b"field:", b"comm[16];"),
    ),
    Target(
        "samples",
        samples,
        lambda: [
            record(SAMPLE, COMM),
            record(SAMPLE, COMM) * 3 + lost(7) + record(SAMPLE._replace(tracepoint=1184), COMM),
        ],
        words=(b"\x58\0", b"\x09\0\0\0", b"\x02\0\0\0", b"\xff" * 8, b"\0" * 8),
    ),
)

"""The statistics page of an NVMe disk, and the packets of the process that reads it."""

import json
from typing import Any, get_args

import msgspec

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.packets import LONGEST_BYTES, decode_packet, encode
from disksla.clouds.ebs_statistics.reading import (
    MESSAGES,
    REQUESTS,
    Alive,
    Failure,
    Message,
    Reading,
    Watch,
    change_between,
)
from disksla.clouds.ebs_statistics.statistics_page import (
    BadPageError,
    PageFault,
    Statistics,
    parse,
)
from disksla.state.pipeline.tick import Tick
from fuzz.target import Target, Tree
from fuzz.targets.kernel import published
from support.ebs_pages import INSTANCE_STORE_MAGIC, Page, bins_of
from support.simulated_host import Machine, a_disk

BUSY = Page(
    total_read_ops=100,
    total_read_time_us=90_000,
    volume_exceeded_iops_us=7,
    queue_length=2,
    read_bins=bins_of({256: 60, 1024: 40}),
)
SAMPLES = (BUSY, BUSY._replace(version=1), BUSY._replace(magic=INSTANCE_STORE_MAGIC), Page())


def page(content: bytes) -> bool:
    """A page is rejected for a reason, or passed on, added up and published."""
    try:
        statistics = parse(content)
    except BadPageError as error:
        assert error.reason in get_args(PageFault)
        assert str(error).isprintable()
        return False
    _added_up(statistics)
    return True


def _added_up(statistics: Statistics) -> None:
    begin = Reading("nvme1n1", "vol1", 1000.0, parse(Page(read_bins=BUSY.read_bins).written()))
    middle, end = (Reading("nvme1n1", "vol1", at_s, statistics) for at_s in (1001.0, 1002.0))
    assert change_between(middle, end) is not None
    assert len(encode(end)) < LONGEST_BYTES
    assert decode_packet(MESSAGES, encode(end)) == end
    machine = Machine(a_disk("nvme1n1", serial="vol1"))
    machine.take(Tick(machine.clocks(), machine.text(), provider=(begin, middle, end)))
    published(machine.state)


def packet(content: bytes) -> bool:
    """A packet is rejected, or is a message that is encoded again unchanged and added up."""
    accepted = False
    decoders: tuple[msgspec.json.Decoder[Any], ...] = (MESSAGES, REQUESTS)
    for decoder in decoders:
        try:
            message: Message | Watch = decode_packet(decoder, content)
        except DiskslaError as error:
            assert str(error)
            continue
        accepted = True
        assert decode_packet(decoder, encode(message)) == message
        if isinstance(message, Reading):
            _added_up(message.statistics)
    return accepted


TARGETS = (
    Target(
        "ebs-page",
        page,
        lambda: [sample.written() for sample in SAMPLES],
        words=(b"\x10\xb5\x23\x3c", b"\xff" * 8, b"\x41\0\0\0", b"\0" * 8),
    ),
    Target(
        "ebs-packet",
        packet,
        lambda: [
            *(encode(Reading("nvme1n1", "v", 9.0, parse(each.written()))) for each in SAMPLES),
            encode(Failure("nvme1n1", "magic", "why")),
            encode(Alive()),
            encode(Watch(("nvme1n1",))),
        ],
        words=(b'"type":', b'"reading"', b'"statistics":', b"null", b"1e300", b"-1"),
        tree=Tree(json.loads, msgspec.json.encode),
    ),
)

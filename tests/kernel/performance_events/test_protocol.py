"""Messages between the daemon and the helper."""

import contextlib
from pathlib import Path
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.operating_system.packets import LONGEST_BYTES, decode_packet, encode
from disksla.kernel.performance_events import EventsRequest
from disksla.kernel.performance_events.protocol import (
    ANSWERS,
    MOST_DISKS,
    REQUESTS,
    Batch,
    End,
    Refusal,
    Tracepoint,
    filter_of_data_writes,
    filter_of_requests,
    parse_format,
)


def test_the_longest_request_is_read_as_it_was_written() -> None:
    request = EventsRequest("data_writes", tuple(f"4095:{2**20 - n}" for n in range(MOST_DISKS)))
    packet = encode(request)
    assert decode_packet(REQUESTS, packet) == request
    assert len(packet) <= LONGEST_BYTES
    assert request.numbers[0] == (4095, 2**20)


@pytest.mark.parametrize(
    "answer", [Batch(3, 200), End("0-3", Tracepoint(1183, 36)), End("0"), Refusal("no")]
)
def test_an_answer_is_read_as_it_was_written(answer: Batch | End | Refusal) -> None:
    assert decode_packet(ANSWERS, encode(answer)) == answer


def test_events_of_a_cpu() -> None:
    devices = ("7:0", "7:1", "7:2")
    assert EventsRequest("data_writes", devices).events_of_cpu == 3
    assert EventsRequest("requests", devices).events_of_cpu == 2


@pytest.mark.parametrize(
    "devices",
    [
        (),
        ("7:0",) * (MOST_DISKS + 1),
        ("sda",),
        ("7:0 || dev==1",),
        ("7:",),
        ("../7:0",),
        ("7:0\n",),
        ("\u0667:0",),
        ("12345:0",),
    ],
)
def test_only_numbers_of_disks_are_accepted(devices: tuple[str, ...]) -> None:
    with pytest.raises(DiskslaError, match="expected 1 to 230 numbers such as 259:1"):
        _ = EventsRequest("data_writes", devices).numbers


@pytest.mark.parametrize(
    "packet",
    [
        b"",
        b"{}",
        b"\xff",
        b'{"events":"requests"}',
        b'{"events":"sys_enter","devices":["7:0"]}',
        b'{"events":"requests","devices":["7:0"],"filter":"1"}',
        b'{"events":"requests","devices":[7]}',
    ],
)
def test_other_requests_are_refused(packet: bytes) -> None:
    with pytest.raises(DiskslaError, match="expected a message of the same version"):
        decode_packet(REQUESTS, packet)


@given(st.binary(max_size=200))
def test_any_packet_is_read_or_refused(packet: bytes) -> None:
    decoders: tuple[msgspec.json.Decoder[Any], ...] = (REQUESTS, ANSWERS)
    for decoder in decoders:
        with contextlib.suppress(DiskslaError):
            assert len(encode(decode_packet(decoder, packet))) > len("{}")


@pytest.mark.parametrize("packet", [b'{"type":"batch","cpu":0,"descriptors":0}', b'{"type":"x"}'])
def test_other_answers_are_refused(packet: bytes) -> None:
    with pytest.raises(DiskslaError, match="expected a message of the same version"):
        decode_packet(ANSWERS, packet)


def test_a_packet_that_is_nested_too_deeply_is_refused() -> None:
    packet = b'{"a":' * 10_000
    with pytest.raises(DiskslaError):
        decode_packet(REQUESTS, packet)
    with pytest.raises(DiskslaError):
        decode_packet(ANSWERS, packet)


FORMATS = Path(__file__).parent / "formats"
TEXT = (FORMATS / "6.18" / "block_getrq").read_text()


def format_of(kernel: str, name: str) -> Tracepoint:
    return parse_format((FORMATS / kernel / name).read_text())


@pytest.mark.parametrize(
    ("kernel", "comm"), [("5.10", 36), ("6.1", 36), ("6.12", 36), ("6.18", 38)]
)
def test_formats_of_kernels(kernel: str, comm: int) -> None:
    requested, queued = format_of(kernel, "block_getrq"), format_of(kernel, "block_bio_queue")
    assert requested.comm == queued.comm == comm
    completed = format_of(kernel, "block_rq_complete")
    assert completed.comm is None
    assert len({requested.number, queued.number, completed.number}) == 3


@pytest.mark.parametrize(
    "text",
    [
        "",
        "unknown",
        TEXT.replace("ID: ", "Id: "),
        TEXT.replace("nr_sector;\toffset:24", "nr_sector;\toffset:28"),
        TEXT.replace("dev_t dev;\toffset:8;\tsize:4", "dev_t dev;\toffset:8;\tsize:8"),
        TEXT.replace("comm[16];\toffset:38;\tsize:16", "comm[32];\toffset:38;\tsize:32"),
        TEXT.replace("rwbs[10]", "flags"),
    ],
)
def test_records_of_another_form_are_refused(text: str) -> None:
    assert text != TEXT
    with pytest.raises(DiskslaError, match="expected those of a tracepoint of block requests"):
        parse_format(text)


@given(st.text())
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(DiskslaError):
        assert parse_format(text).number >= 0


def test_filters() -> None:
    assert filter_of_data_writes(254, 16) == (
        'dev==266338320 && nr_sector>0 && !(rwbs~"R*") && !(rwbs~"D*")'
        " && sector!=18446744073709551615"
    )
    assert filter_of_requests([(7, 0), (7, 1)]) == '(dev==7340032||dev==7340033) && !(rwbs~"D*")'


def test_a_number_that_no_kernel_has_is_refused() -> None:
    text = f"ID: {'9' * 5000}\n\tfield:dev_t dev;\toffset:{'9' * 5000};\tsize:4;\tsigned:0;\n"
    with pytest.raises(DiskslaError, match="this kernel is not known"):
        parse_format(text)

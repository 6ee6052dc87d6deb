"""What the kernel says of records, as several kernels say it (formats/)."""

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.kernel.performance_events.protocol import (
    Tracepoint,
    filter_of_data_writes,
    filter_of_requests,
    parse_format,
)

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

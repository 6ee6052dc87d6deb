"""Texts of `io.stat` and `io.max`."""

from math import inf

import pytest

from disksla.base.counts import Counts
from disksla.kernel.consumers.consumption import parse_io_max, parse_io_stat


def test_numbers_by_disk() -> None:
    text = (
        "254:0 rbytes=4096 wbytes=8192 rios=1 wios=2 dbytes=0 dios=0\n"
        "254:16 rbytes=0 wbytes=512 rios=0 wios=1 dbytes=0 dios=0 cost.usage=7\n"
    )
    assert parse_io_stat(text) == {
        "254:0": Counts(1, 2, 4096, 8192),
        "254:16": Counts(0, 1, 0, 512),
    }
    assert parse_io_stat("") == {}


def test_disks_without_numbers_may_be_alone_or_before_another() -> None:
    """As some kernels print them."""
    text = "7:1 7:0 254:0 rbytes=1 wbytes=2 rios=3 wios=4 dbytes=0 dios=0\n8:0 \n"
    assert parse_io_stat(text) == {"254:0": Counts(3, 4, 1, 2), "8:0": Counts()}


def test_an_odd_line_costs_the_line_only() -> None:
    """A path of NVMe has no name of its own, so the kernel prints (unknown)."""
    nameless = "(unknown) rbytes=9 rios=7\n"
    for odd in (nameless, "vda rbytes=1\n", "254:16 rbytes=x\n"):
        assert parse_io_stat(f"{odd}254:0 rbytes=1 wbytes=2 rios=3 wios=4\n") == {
            "254:0": Counts(3, 4, 1, 2)
        }
    assert parse_io_stat(nameless) == {}
    limits = parse_io_max("(unknown) rbps=1 wbps=max riops=max wiops=max\n254:0 wiops=50\n")
    assert limits == {"254:0": Counts(inf, 50, inf, inf)}


@pytest.mark.parametrize("text", ["vda rbytes=1\n", "254:0 rbytes=x\n", "254:0 garbage\n"])
def test_other_text_is_an_error(text: str) -> None:
    with pytest.raises(ValueError, match="found"):
        parse_io_stat(text)


def test_limits_by_disk() -> None:
    text = "254:0 rbps=max wbps=1048576 riops=max wiops=50\n"
    assert parse_io_max(text) == {"254:0": Counts(inf, 50, inf, 1048576)}
    assert parse_io_max("") == {}
    for other in ("many", "-1", "nan", "1_0", "18446744073709551616"):
        with pytest.raises(ValueError, match="expected a disk"):
            parse_io_max(f"254:0 wiops={other}\n")

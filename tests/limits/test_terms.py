"""Rows of the catalogue, and finding them."""

import datetime as dt
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.config.matching import generic_terms_for
from disksla.disks.disk import Disk
from disksla.errors import DiskslaError
from disksla.limits.terms import Catalog, Terms, VmCaps, vm_cap
from disksla.units import GIB, MIB

NOTHING_KNOWN: dict[str, Any] = {
    "id": "acme.disk",
    "title": "A disk",
    "provider": "acme",
    "provider_name": "Acme",
    "sources": [{"url": "https://example.com/", "date": dt.date(2026, 1, 2)}],
    "examples": [{"size_bytes": GIB, "rates": {}}],
}
CLAMP = {"law": "clamp", "minimum": 100}


def terms(**fields: Any) -> Terms:
    return msgspec.convert({**NOTHING_KNOWN, **fields}, Terms)


def test_a_row_may_promise_nothing() -> None:
    assert terms().budget is None
    assert terms().read_iops is None


@pytest.mark.parametrize(
    ("fields", "said"),
    [
        ({"budget": "sum"}, "acme.disk: a budget and limits belong together"),
        ({"read_iops": CLAMP}, "acme.disk: a budget and limits belong together"),
        ({"budget": "sum", "read_iops": CLAMP}, "reads and writes share their limits"),
        (
            {"budget": "separate", "read_bandwidth": {"law": "from-iops", "bytes_per_io": 4096}},
            "a bandwidth from IOPS needs IOPS",
        ),
        (
            {
                "budget": "separate",
                "read_iops": CLAMP,
                "cost": {"type": "additive", "small_bytes": 4096, "large_bytes": 65536},
            },
            "an additive cost needs budget 'time_shared'",
        ),
        (
            {
                "promised_shares": [
                    {"request_bytes": 8192, "share": 0.5},
                    {"request_bytes": 4096, "share": 1.0},
                ]
            },
            "promised_shares must grow",
        ),
        ({"sources": []}, r"\$.sources"),
        ({"examples": []}, r"\$.examples"),
        ({"read_iops": {"law": "clamp", "minimal": 1}}, r"unknown field `minimal`.*\$.read_iops"),
        ({"latency": {"seconds": 0, "kind": "guaranteed"}}, r"\$.latency.seconds"),
    ],
)
def test_a_row_that_contradicts_itself_is_refused(fields: dict[str, Any], said: str) -> None:
    with pytest.raises(msgspec.ValidationError, match=said):
        terms(**fields)


def test_terms_are_found_by_id_and_by_former_name() -> None:
    row = terms(aliases=["acme.old"])
    catalog = Catalog([row, terms(id="acme.other")])
    assert catalog["acme.disk"] is row
    assert catalog["acme.old"] is row
    assert [row.id for row in catalog.rows] == ["acme.disk", "acme.other"]


def test_an_unknown_id_is_refused_with_the_nearest_ones() -> None:
    catalog = Catalog([terms(aliases=["acme.dsik"]), terms(id="other.nvme")])
    with pytest.raises(
        DiskslaError, match=r"^no terms are called 'acme.dis': did you mean acme.disk\?"
    ):
        catalog["acme.dis"]


def test_an_id_like_no_other_is_refused_with_where_to_look() -> None:
    with pytest.raises(DiskslaError, match="see 'disksla catalog'"):
        Catalog([terms()])["zzz"]


def test_two_rows_cannot_have_the_same_name() -> None:
    with pytest.raises(ValueError, match=r"both acme.disk and acme.new claim 'acme.disk'"):
        Catalog([terms(), terms(id="acme.new", aliases=["acme.disk"])])


@pytest.mark.parametrize(
    ("name", "rotational", "expected"),
    [
        ("nvme0n1", False, "generic.nvme"),
        ("nvme0n1", None, "generic.nvme"),
        ("sda", True, "generic.hdd"),
        ("vda", False, "generic.ssd"),
        ("vda", None, "generic.ssd"),
    ],
)
def test_unknown_disks_are_labelled(name: str, rotational: bool | None, expected: str) -> None:
    disk = Disk(name=name, major=8, minor=0, size_bytes=GIB, rotational=rotational)
    assert generic_terms_for(disk) == expected


@given(st.integers(1, 256), st.integers(1, 256))
def test_more_vcpus_never_have_less(one: int, other: int) -> None:
    caps = VmCaps(10000, 100 * MIB, maximum_iops=100000)
    few, many = (vm_cap(caps, vcpus) for vcpus in sorted((one, other)))
    assert few.iops <= many.iops <= 100000
    assert few.bytes_per_second <= many.bytes_per_second

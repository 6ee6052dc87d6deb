"""Every row of the catalogue: where it is from, and that its examples hold."""

import datetime as dt
import re

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from disksla.limits.catalog import load_catalog, parse_terms
from disksla.limits.derive import derive_limits
from disksla.limits.terms import Example, Terms

CATALOG = load_catalog()
ROWS = pytest.mark.parametrize("row", CATALOG.rows, ids=lambda row: row.id)
EXAMPLES = [(row, example) for row in CATALOG.rows for example in row.examples]

ROW = """
terms:
  - id: acme.disk
    title: A disk
    provider: acme
    provider_name: Acme
    sources: [{url: 'https://example.com/', date: 2026-01-02}]
    examples: [{size_bytes: 1GiB, rates: {}}]
"""


def test_the_catalogue_has_these_ids() -> None:
    assert [row.id for row in CATALOG.rows] == [
        "generic.hdd",
        "generic.ssd",
        "generic.nvme",
        "vk.ceph-hdd",
        "vk.ceph-ssd",
        "vk.high-iops",
        "vk.high-iops-ha",
        "vk.ef-nvme",
        "yandex.network-hdd",
        "yandex.network-ssd",
        "yandex.network-ssd-nonreplicated",
        "yandex.network-ssd-io-m3",
    ]


@ROWS
def test_a_row_says_where_it_is_from(row: Terms) -> None:
    for source in row.sources:
        assert source.url.startswith("https://")
        assert dt.date(2026, 1, 1) <= source.date
        assert source.note


@ROWS
def test_an_id_is_that_of_its_provider(row: Terms) -> None:
    assert re.fullmatch(rf"{row.provider}\.[a-z0-9-]+", row.id)
    assert row.provider in {"vk", "yandex", "generic"}


@pytest.mark.parametrize(("row", "example"), EXAMPLES)
def test_the_examples_hold(row: Terms, example: Example) -> None:
    assert derive_limits(row, example.size_bytes, example.provisioned).rates == example.rates


@pytest.mark.parametrize(
    "row", [row for row in CATALOG.rows if row.budget], ids=lambda row: row.id
)
@given(st.integers(1, 2**48), st.integers(1, 2**48))
def test_limits_never_fall_as_a_disk_grows(row: Terms, one: int, other: int) -> None:
    small, large = (derive_limits(row, size).rates for size in sorted((one, other)))
    pairs = zip(msgspec.structs.astuple(small), msgspec.structs.astuple(large), strict=True)
    assert all(0 < before <= after for before, after in pairs)


@ROWS
def test_generic_terms_promise_nothing_and_others_everything(row: Terms) -> None:
    rates = msgspec.structs.astuple(derive_limits(row, 2**40).rates)
    assert all((rate is None) == (row.provider == "generic") for rate in rates)


@pytest.mark.parametrize(
    ("scalar", "value"),
    [("32GiB", 32 * 2**30), ("4KiB", 4096), ("1GB", 10**9)],
)
def test_quantities_are_read_as_bytes(scalar: str, value: int) -> None:
    (row,) = parse_terms(ROW.replace("1GiB", scalar))
    assert row.examples[0].size_bytes == value


def test_quantities_of_time_and_bandwidth_are_read_as_seconds_and_bytes_per_second() -> None:
    (row,) = parse_terms(
        ROW
        + """
    latency: {seconds: 0.5ms, kind: guaranteed}
    budget: separate
    read_bandwidth: {law: clamp, minimum: 15MiB/s}
    aliases: ['12h', 12 h, 3d-disk]
"""
    )
    assert row.latency is not None
    assert row.latency.seconds == 0.0005
    assert row.read_bandwidth == msgspec.convert(
        {"law": "clamp", "minimum": 15 * 2**20}, type(row.read_bandwidth)
    )
    assert row.aliases == ("12h", "12 h", "3d-disk")


def test_an_unknown_key_is_refused_with_its_place() -> None:
    with pytest.raises(msgspec.ValidationError, match=r"unknown field `colour` - at `\$.terms"):
        parse_terms(ROW + "    colour: red\n")


def test_what_is_no_yaml_is_refused() -> None:
    with pytest.raises(yaml.YAMLError):
        parse_terms("terms: [")

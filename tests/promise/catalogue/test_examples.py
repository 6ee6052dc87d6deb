"""Worked examples of an operator's rows: each wrong rate is an error with its line."""

import pytest

from disksla.base.errors import DiskslaError
from disksla.promise.catalogue.catalog import parse_catalog

CONTENT = """
terms:
  - id: acme.disk
    title: A disk
    provider: acme
    provider_name: Acme
    budget: separate
    read_iops: {rule: clamp, per_gib: 30, minimum: 1000}
    read_bandwidth: {rule: from-iops, bytes_per_io: 128KiB, round_to: 1MiB/s}
    write_iops: {rule: provisioned, minimum: 100, maximum: 500}
    examples:
      - size_bytes: 50GiB
        provisioned: {iops: 200}
        rates:
          read_iops: 1500
          write_iops: 200
          read_bytes_per_second: 188MiB/s
"""


def problems_of(content: str) -> list[str]:
    """Return the problems of the example, without the part of the path that they share."""
    with pytest.raises(DiskslaError) as caught:
        parse_catalog(content.encode(), "f.yml")
    lines = str(caught.value).splitlines()
    assert all("terms[0].examples[0]" in line for line in lines)
    return [line.replace("terms[0].examples[0]", "", 1) for line in lines]


def test_examples_that_match_the_rules_are_valid() -> None:
    (row,) = parse_catalog(CONTENT.encode(), "f.yml").rows
    assert row.id == "acme.disk"


def test_example_tolerates_rounding_of_floats() -> None:
    content = CONTENT.replace("per_gib: 30,", "per_gib: 33.3,").replace("1500", "1665")
    (row,) = parse_catalog(content.replace("188MiB/s", "208MiB/s").encode(), "f.yml").rows
    assert row.read_iops is not None


def test_wrong_rates_are_listed_with_found_and_expected() -> None:
    content = CONTENT.replace("read_iops: 1500", "read_iops: 15000").replace("188MiB", "187.5MiB")
    content = content.replace("          write_iops: 200\n", "")
    content += "          write_bytes_per_second: 10MiB/s\n"
    line_14, line_15, line_16, line_17 = problems_of(content)
    assert line_14 == (
        "f.yml:14: .rates.write_iops: found no limit; expected 200"
        " (provisioned, 100 to 500 at this size)"
    )
    assert line_15 == (
        "f.yml:15: .rates.read_iops: found 15000; expected 1500"
        " (30 x 50 GiB = 1500, at least 1000)"
    )
    assert line_16 == (
        "f.yml:16: .rates.read_bytes_per_second: found 187.5MiB/s; expected 188MiB/s"
        " (1500 IOPS x 128 KiB = 187.5 MiB/s)"
    )
    assert line_17 == "f.yml:17: .rates.write_bytes_per_second: found 10MiB/s; expected no limit"


def test_example_without_provisioned_value_is_an_error() -> None:
    assert problems_of(CONTENT.replace("        provisioned: {iops: 200}\n", "")) == [
        "f.yml:12: : acme.disk needs provisioned IOPS; expected 100 to 500 at this size"
    ]


BURST = (
    CONTENT
    + """\
        burst: {seconds: 100s, rates: {read_iops: 4000, read_bytes_per_second: 188MiB/s}}
    burst:
      type: token-buckets
      read_iops: {rule: clamp, base: 3000}
      buckets: [{resource: iops, capacity: {rule: clamp, base: 150000}}]
"""
)


def test_wrong_bursts_are_listed_with_found_and_expected() -> None:
    assert problems_of(BURST) == [
        "f.yml:18: .burst.rates.read_iops: found 4000; expected 3000",
        "f.yml:18: .burst.rates.write_iops: found no limit; expected 200",
    ]
    right = BURST.replace("read_iops: 4000,", "read_iops: 3000, write_iops: 200,")
    assert parse_catalog(right.encode(), "f.yml").rows[0].burst is not None
    assert problems_of(right.replace("100s", "90s")) == [
        "f.yml:18: .burst.seconds: found 90s; expected 100s"
    ]
    without = problems_of(right[: right.index("    burst:\n")])
    assert "f.yml:18: .burst.seconds: found 100s; expected no credits" in without
    assert "f.yml:18: .burst.rates.read_iops: found 3000; expected no limit" in without

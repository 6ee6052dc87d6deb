"""Options of a disk: what is chosen besides its type and its size."""

from pathlib import Path

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, TIB
from disksla.promise.catalogue.catalog import parse_catalog
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import Burst
from disksla.promise.catalogue.terms import Provision
from support.catalog_rows import make_terms

EVERY_RULE = Path(__file__).parent / "catalog.d" / "every-rule.yml"
ROW = parse_catalog(EVERY_RULE.read_bytes(), EVERY_RULE.name)["acme.provisioned"]
BY_SIZE = make_terms(
    budget="separate",
    read_iops={"rule": "clamp", "per_gib": 5},
    options={
        "tier": {
            "about": "tier",
            "default": "size",
            "values": {"P30": {"as_size_bytes": "1TiB"}, "P4": {"as_size_bytes": "32GiB"}},
        },
        "plus": {
            "about": "plus",
            "default": "off",
            "values": {"on": {"read_iops": {"rule": "clamp", "per_gib": 7}}},
        },
    },
)


@pytest.mark.parametrize(
    ("options", "size_gib", "iops"),
    [
        ({}, 100, 500),
        ({"tier": "size"}, 100, 500),
        ({"tier": "P30"}, 100, 5120),
        ({"tier": "P4"}, 100, 500),  # never below that of its own size
        ({"plus": "on"}, 100, 700),
        ({"plus": "on", "tier": "P30"}, 100, 7168),
    ],
)
def test_option_changes_limits(options: dict[str, str], size_gib: int, iops: float) -> None:
    limits = derive_limits(BY_SIZE, size_gib * GIB, Provision(options=options))
    assert limits.rates.read_iops == iops


def test_option_adds_a_burst() -> None:
    limits = derive_limits(ROW, TIB, Provision(options={"plus": "on"}))
    assert isinstance(limits.burst, Burst)
    assert (limits.burst.length, limits.burst.seconds, limits.buckets) == ("unlimited", None, ())
    assert limits.burst.rates.read_iops == 100000
    assert derive_limits(ROW, TIB).burst is None


@pytest.mark.parametrize(
    ("options", "problem"),
    [
        ({"teir": "P30"}, "found option 'teir' of acme.provisioned; expected one of: tier, plus"),
        ({"tier": "P3O"}, r"found tier=P3O of acme.provisioned \(did you mean `P30`\?\)"),
        ({"plus": "on"}, "found plus=on of acme.provisioned at 100 GiB; expected a disk of at"),
    ],
)
def test_unknown_options_and_small_disks_are_errors(options: dict[str, str], problem: str) -> None:
    with pytest.raises(DiskslaError, match=problem):
        derive_limits(ROW, 100 * GIB, Provision(options=options))

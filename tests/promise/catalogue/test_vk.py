"""VK Cloud: every cell of the five published tables.

Source: https://cloud.vk.com/docs/en/computing/iaas/concepts/volume-sla. Columns: size in GB (which
are GiB), read IOPS, read MB/s (which are MiB/s), write IOPS, write MB/s.
"""

import pytest

from disksla.base.units import GIB, KIB, MIB
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import Budgets, Conditions, Rates

CATALOG = load_catalog()

TABLES = {
    "vk.ceph-hdd": [
        (10, 300, 38, 150, 19),
        (50, 300, 38, 150, 19),
        (100, 300, 38, 150, 19),
        (250, 300, 38, 250, 31),
        (500, 500, 63, 500, 63),
        (1000, 1000, 125, 800, 100),
        (1500, 1500, 188, 800, 100),
        (2000, 2000, 250, 800, 100),
    ],
    "vk.ceph-ssd": [
        (10, 1000, 125, 500, 63),
        (50, 1500, 188, 750, 94),
        (100, 3000, 375, 1500, 188),
        (250, 7500, 400, 3750, 400),
        (500, 15000, 400, 7500, 400),
        (1000, 16000, 400, 8000, 400),
        (1500, 16000, 400, 8000, 400),
        (2000, 16000, 400, 8000, 400),
    ],
    "vk.high-iops": [
        (10, 10000, 500, 5000, 500),
        (50, 10000, 500, 5000, 500),
        (100, 10000, 500, 5000, 500),
        (250, 10000, 500, 6250, 500),
        (500, 15000, 500, 12500, 500),
        (1000, 30000, 500, 25000, 500),
        (1500, 45000, 500, 30000, 500),
        (2000, 45000, 500, 30000, 500),
    ],
    "vk.high-iops-ha": [
        (10, 7500, 375, 2000, 250),
        (50, 7500, 375, 2000, 250),
        (100, 7500, 375, 2000, 250),
        (250, 7500, 375, 3750, 300),
        (500, 12500, 375, 7500, 300),
        (1000, 25000, 375, 12000, 300),
        (1500, 35000, 375, 12000, 300),
        (2000, 35000, 375, 12000, 300),
    ],
    "vk.ef-nvme": [
        (10, 10000, 500, 5000, 500),
        (50, 10000, 500, 5000, 500),
        (100, 10000, 500, 5000, 500),
        (250, 18750, 586, 8750, 500),
        (500, 37500, 1172, 17500, 547),
        (1000, 75000, 1200, 35000, 900),
        (1500, 75000, 1200, 50000, 900),
        (2000, 75000, 1200, 50000, 900),
    ],
}
CELLS = [(terms, *row) for terms, rows in TABLES.items() for row in rows]


@pytest.mark.parametrize(
    ("terms", "size_gib", "read_iops", "read_mib", "write_iops", "write_mib"), CELLS
)
def test_vk_limits_match_published_tables(
    terms: str, size_gib: int, read_iops: int, read_mib: int, write_iops: int, write_mib: int
) -> None:
    limits = derive_limits(CATALOG[terms], size_gib * GIB)
    assert limits.rates == Rates(read_iops, write_iops, read_mib * MIB, write_mib * MIB)
    assert limits.budget == Budgets("separate", "separate")
    assert limits.promise_charges == limits.enforced_charges
    assert limits.burst is None


@pytest.mark.parametrize(
    ("terms", "latency_s", "kind"),
    [
        ("vk.ceph-hdd", 0.02, "indicative"),
        ("vk.ceph-ssd", 0.003, "indicative"),
        ("vk.high-iops", 0.001, "indicative"),
        ("vk.high-iops-ha", 0.001, "indicative"),
        ("vk.ef-nvme", 0.0005, "guaranteed"),
    ],
)
def test_vk_latency_is_guaranteed_only_for_local_nvme(
    terms: str, latency_s: float, kind: str
) -> None:
    limits = derive_limits(CATALOG[terms], 100 * GIB)
    assert (limits.latency_s, limits.latency_kind) == (latency_s, kind)


@pytest.mark.parametrize(
    ("former", "present"),
    [
        ("vk.dp1", "vk.ceph-hdd"),
        ("vk.ms1", "vk.ceph-hdd"),
        ("vk.dp1-ssd", "vk.ceph-ssd"),
        ("vk.ko1-ssd", "vk.ceph-ssd"),
        ("vk.dp1-high-iops", "vk.high-iops"),
        ("vk.ko1-high-iops", "vk.high-iops"),
    ],
)
def test_vk_aliases(former: str, present: str) -> None:
    assert CATALOG[former] is CATALOG[present]


@pytest.mark.parametrize("terms", TABLES)
def test_vk_conditions_of_acceptance_test(terms: str) -> None:
    assert CATALOG[terms].iops_conditions == Conditions(4 * KIB, 32)
    assert CATALOG[terms].bandwidth_conditions == Conditions(MIB, 16)

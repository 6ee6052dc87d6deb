"""Yandex Cloud: allocation units, published and enforced cost, boost, machine limits.

Sources: https://yandex.cloud/en/docs/compute/concepts/limits and .../storage-read-write;
https://github.com/ydb-platform/nbs for the enforced cost.
"""

import pytest

from disksla.base.units import GIB, KIB, MIB
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.derive import derive_limits, effective_iops
from disksla.promise.catalogue.limits import Budgets, Limits, Rates
from disksla.promise.catalogue.machine import machine_groups, machine_of_vcpus
from disksla.promise.catalogue.machine_tables import load_machine_rules

CATALOG = load_catalog()
YANDEX = [row.id for row in CATALOG.rows if row.provider == "yandex" and row.budget]
REQUESTS_KIB = (4, 16, 64, 256, 1024, 4096)


def limits_of(terms: str, size_gib: int) -> Limits:
    return derive_limits(CATALOG[terms], size_gib * GIB)


@pytest.mark.parametrize(
    ("terms", "size_gib", "read_iops", "write_iops", "read_mib", "write_mib"),
    [
        ("yandex.network-hdd", 1, 300, 300, 30, 30),
        ("yandex.network-hdd", 256, 300, 300, 30, 30),
        ("yandex.network-hdd", 257, 600, 600, 60, 60),
        ("yandex.network-hdd", 1024, 1200, 1200, 120, 120),
        ("yandex.network-hdd", 65536, 2000, 11000, 240, 240),
        ("yandex.network-ssd", 32, 1000, 1000, 15, 15),
        ("yandex.network-ssd", 100, 4000, 4000, 60, 60),
        ("yandex.network-ssd", 1280, 20000, 40000, 450, 450),
        ("yandex.network-ssd-nonreplicated", 93, 28000, 5600, 110, 82),
        ("yandex.network-ssd-nonreplicated", 9300, 75000, 75000, 1024, 1024),
        ("yandex.network-ssd-io-m3", 186, 56000, 11200, 220, 164),
        ("yandex.network-ssd-io-m3", 9300, 75000, 40000, 1024, 1024),
    ],
)
def test_yandex_limits_by_allocation_units(
    terms: str, size_gib: int, read_iops: int, write_iops: int, read_mib: int, write_mib: int
) -> None:
    limits = limits_of(terms, size_gib)
    assert limits.rates == Rates(read_iops, write_iops, read_mib * MIB, write_mib * MIB)
    assert limits.budget == Budgets("time_shared", "time_shared")
    assert limits.latency_s is None


@pytest.mark.parametrize(
    ("terms", "size_gib", "write_share", "published", "enforced"),
    [
        (
            "yandex.network-hdd", 256, 0,
            (288.72, 259.46, 184.62, 85.71, 27.27, 7.32),
            (299.18, 268.55, 190.52, 88.12, 27.97, 7.50),
        ),
        (
            "yandex.network-hdd", 1024, 1,
            (1154.89, 1037.84, 738.46, 342.86, 109.09, 29.27),
            (1199.48, 1076.42, 763.22, 352.71, 111.92, 30.00),
        ),
        (
            "yandex.network-ssd", 32, 1,
            (793.39, 489.80, 193.55, 56.60, 14.78, 3.74),
            (999.57, 561.95, 204.26, 57.60, 14.88, 3.75),
        ),
        (
            "yandex.network-ssd", 100, 0,
            (3173.55, 1959.18, 774.19, 226.42, 59.11, 14.94),
            (3999.91, 2248.32, 817.09, 230.41, 59.50, 15.00),
        ),
        (
            "yandex.network-ssd", 1280, 0,
            (17041.42, 11803.28, 5294.12, 1651.38, 440.10, 111.87),
            (19999.97, 13171.66, 5567.85, 1682.57, 443.80, 112.50),
        ),
        (
            "yandex.network-ssd", 1280, 1,
            (29690.72, 16744.19, 6101.69, 1722.49, 444.99, 112.18),
            (39999.68, 19610.15, 6452.89, 1751.71, 447.53, 112.50),
        ),
    ],
)  # fmt: skip
def test_yandex_published_and_enforced_iops(
    terms: str,
    size_gib: int,
    write_share: float,
    published: tuple[float, ...],
    enforced: tuple[float, ...],
) -> None:
    limits = limits_of(terms, size_gib)
    for request_kib, lower, upper in zip(REQUESTS_KIB, published, enforced, strict=True):
        band = effective_iops(limits, request_kib * KIB, write_share)
        assert band == pytest.approx((lower, upper), abs=0.005)


@pytest.mark.parametrize("terms", YANDEX)
def test_yandex_reads_and_writes_share_one_charge(terms: str) -> None:
    limits = limits_of(terms, 93)
    assert [charge.limit for charge in limits.promise_charges] == ["service"]
    assert [charge.limit for charge in limits.enforced_charges] == ["service"]


@pytest.mark.parametrize(
    ("size_gib", "iops", "mib", "capacity_s", "fill"),
    [
        (1, 1200, 120, 5400, 0.125),
        (256, 1200, 120, 5400, 0.125),
        (257, 1200, 120, 1800, 0.041667),
        (512, 1200, 120, 1800, 0.041667),
        (513, 1197, 119.7, 594, 0.01375),
        (768, 1197, 119.7, 594, 0.01375),
    ],
)
def test_yandex_credits_of_small_hdds(
    size_gib: int, iops: float, mib: float, capacity_s: float, fill: float
) -> None:
    burst = limits_of("yandex.network-hdd", size_gib).burst
    assert burst is not None
    assert (burst.rates.read_iops, burst.rates.write_iops) == (iops, iops)
    assert burst.rates.read_bytes_per_second == pytest.approx(mib * MIB)
    assert burst.rates.write_bytes_per_second == pytest.approx(mib * MIB)
    (bucket,) = burst.buckets
    assert (bucket.resource, bucket.initial_share) == ("service_seconds", 1.0)
    assert (bucket.drain, bucket.baseline_depth_s) == ("excess", 1.0)
    assert bucket.capacity == capacity_s
    assert bucket.fill_per_second == pytest.approx(fill, abs=5e-7)


@pytest.mark.parametrize(
    ("terms", "size_gib"),
    [
        ("yandex.network-hdd", 769),
        ("yandex.network-hdd", 1024),
        ("yandex.network-hdd", 8192),
        ("yandex.network-ssd", 32),
        ("yandex.network-ssd-nonreplicated", 93),
        ("yandex.network-ssd-io-m3", 93),
    ],
)
def test_yandex_other_disks_have_no_burst(terms: str, size_gib: int) -> None:
    assert limits_of(terms, size_gib).burst is None


@pytest.mark.parametrize(
    ("terms", "vcpus", "iops", "mib"),
    [
        ("yandex.network-hdd", 2, 7000, 90),
        ("yandex.network-ssd", 32, 112000, 1440),
        ("yandex.network-ssd-nonreplicated", 2, 20000, 200),
        ("yandex.network-ssd-nonreplicated", 32, 100000, 1024),
        ("yandex.network-ssd-io-m3", 10, 100000, 1000),
    ],
)
def test_yandex_machine_limits_by_vcpus(terms: str, vcpus: int, iops: float, mib: float) -> None:
    rules = load_machine_rules("yandex")
    assert rules is not None
    groups = machine_groups(rules, machine_of_vcpus(vcpus))
    [rates] = [group.limits.rates for group in groups if terms in group.covers]
    assert rates == Rates(iops, iops, mib * MIB, mib * MIB)

"""Network file storages: their laws, options, metering and credits."""

import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, KIB, MIB, TIB
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.cost_model import Charge, Metered, Work, metered, shared_charges
from disksla.promise.catalogue.derivation import client_text, derivation
from disksla.promise.catalogue.derive import beyond_bounds, beyond_sizes, derive_limits
from disksla.promise.catalogue.limits import Limits, Rates
from disksla.promise.catalogue.options import client_of, effective_options, with_options
from disksla.promise.catalogue.terms import ClientLimits, Provision
from support.catalog_rows import make_terms

CATALOG = load_catalog()
ROWS = [row for row in CATALOG.rows if row.is_file_storage]
UNPUBLISHED = {"yandex.filestore-ssd", "yandex.filestore-hdd", "vk.file-share"}
MB = 1e6
GIB_S = 1024.0 * MIB
HOUR_S = 3600


def limits_of(
    terms: str,
    size_bytes: float,
    bought: tuple[float | None, float | None] = (None, None),
    **options: str,
) -> Limits:
    """Return the limits of a file storage; IOPS and bytes per second were bought."""
    provision = Provision(*bought, options)
    return derive_limits(CATALOG[terms], int(size_bytes), provision)


def bandwidth_of(limits: Limits, unit: float = MIB) -> tuple[float, float]:
    """Return the bandwidth of reads and of writes."""
    read, write = limits.rates.read_bytes_per_second, limits.rates.write_bytes_per_second
    assert read is not None
    assert write is not None
    return read / unit, write / unit


def test_only_those_without_published_limits_have_none() -> None:
    assert {row.id for row in ROWS if row.budget is None} == UNPUBLISHED
    for row in ROWS:
        assert (row.allocation_unit_bytes is not None) == row.id.startswith("yandex.")


@pytest.mark.parametrize(
    ("size", "options", "read", "write", "peak"),
    [
        (GIB, {}, 3, 1, 100),
        (20 * GIB, {}, 3, 1, 100),
        (200 * GIB, {}, 29.296875, 9.765625, 100),
        (58 * GIB, {}, 8.49609375, 2.83203125, 100),
        (TIB, {}, 150, 50, 100),
        (5.7 * TIB, {}, 855, 285, 570),
        (21 * TIB, {}, 3072, 1024, None),
        (40 * TIB, {"region": "eu-west-1"}, 5120, 2000, 3072),
    ],
)
def test_efs_bursting(
    size: float, options: dict[str, Any], read: float, write: float, peak: float | None
) -> None:
    limits = limits_of("aws.efs", size, **{"mode": "bursting", **options})
    assert bandwidth_of(limits) == pytest.approx((read, write))
    assert (limits.burst is None) == (peak is None)
    if limits.burst is not None and peak is not None:
        assert limits.burst.rates.write_bytes_per_second == pytest.approx(peak * MIB)


@pytest.mark.parametrize(
    ("size", "capacity_tib", "fill_mib", "initial_share"),
    [
        (10 * GIB, 2.1, 10 / 1024 * 50, 1),
        (200 * GIB, 2.1, 9.765625, 1),
        (TIB, 2.1, 50, 1),
        (10 * TIB, 21, 500, 0.1),
    ],
)
def test_efs_credits(
    size: float, capacity_tib: float, fill_mib: float, initial_share: float
) -> None:
    (bucket,) = limits_of("aws.efs", size).buckets
    assert bucket.capacity == pytest.approx(capacity_tib * TIB)
    assert bucket.fill_per_second == pytest.approx(fill_mib * MIB)
    assert bucket.initial_share == pytest.approx(initial_share)
    assert bucket.metered == Metered(4 * KIB, 3)


def test_efs_of_200_gib_bursts_for_7_hours() -> None:
    (bucket,) = limits_of("aws.efs", 200 * GIB).buckets
    assert bucket.seconds / HOUR_S == pytest.approx(6.78, abs=0.01)
    assert (bucket.base_per_second / MIB, bucket.peak_per_second / MIB) == (9.765625, 100)


@pytest.mark.parametrize(
    ("bought", "options", "read", "write", "has_burst"),
    [
        (10, {}, 150, 50, True),
        (50, {}, 150, 50, False),
        (100, {}, 300, 100, False),
        (2000, {}, 3072, 1024, False),
        (2000, {"region": "us-west-2"}, 6000, 2000, False),
        (4000, {"region": "us-west-2"}, 10240, 3409.92, False),
        (2000, {"region": "us-west-2", "type": "one-zone"}, 3072, 1024, False),
    ],
)
def test_efs_provisioned(
    bought: float, options: dict[str, Any], read: float, write: float, has_burst: bool
) -> None:
    limits = limits_of("aws.efs", TIB, (None, bought * MIB), mode="provisioned", **options)
    assert bandwidth_of(limits) == pytest.approx((read, write))
    assert (limits.burst is not None) == has_burst
    with pytest.raises(
        DiskslaError, match="needs provisioned bandwidth; expected at least 1 MiB/s"
    ):
        limits_of("aws.efs", TIB, mode="provisioned")


def test_efs_elastic_has_no_law_of_size_and_no_credits() -> None:
    one, other = (limits_of("aws.efs", size, mode="elastic") for size in (GIB, 100 * TIB))
    assert one == other
    assert one.rates == Rates(250000, 50000, 20 * GIB_S, GIB_S)
    with pytest.raises(DiskslaError, match="found provisioned bandwidth"):
        limits_of("aws.efs", TIB, (None, 100 * MIB), mode="elastic")


def test_unknown_region_of_a_mode_is_an_error() -> None:
    limits = limits_of("aws.efs", TIB, mode="elastic", region="eu-central-1")
    assert bandwidth_of(limits) == (61440, 5120)
    with pytest.raises(DiskslaError, match="region=eu-central-1"):
        limits_of("aws.efs", TIB, mode="bursting", region="eu-central-1")


def test_options_of_one_mode_are_no_options_of_another() -> None:
    row = CATALOG["aws.efs"]
    assert effective_options(row, {}) == {
        "mode": "bursting",
        "region": "other",
        "type": "regional",
    }
    assert "client" in effective_options(row, {"mode": "elastic"})
    with pytest.raises(DiskslaError, match=r"'client' of aws\.efs; expected one of: mode, region"):
        effective_options(row, {"client": "efs-utils-2"})


@pytest.mark.parametrize(
    ("terms", "size", "options", "read", "write"),
    [
        ("aws.efs", TIB, {}, 500, 500),
        ("aws.efs", TIB, {"mode": "elastic", "client": "efs-utils-2"}, 1500, 1500),
        ("gcp.filestore", 9 * TIB, {"performance": "custom"}, 450, 260),
        ("tencent.cfs", TIB, {"class": "high-performance"}, 500, 500),
    ],
)
def test_one_client_gets_less(
    terms: str, size: int, options: dict[str, Any], read: float, write: float
) -> None:
    row, _ = with_options(CATALOG[terms], size, options)
    client = client_of(row, size)
    assert client is not None
    assert (client.read_bytes_per_second, client.write_bytes_per_second) == (
        read * MIB,
        write * MIB,
    )


def test_one_client_of_a_large_filestore_is_not_stated() -> None:
    row, _ = with_options(CATALOG["gcp.filestore"], 10 * TIB, {"performance": "custom"})
    assert client_of(row, 10 * TIB) is None


def test_limits_of_a_client_need_a_file_storage() -> None:
    with pytest.raises(ValueError, match="limits of a client without shared_by"):
        make_terms(client={"budget": "sum", "read_bytes_per_second": "1MiB/s"})


def test_limits_of_a_client_as_text() -> None:
    assert client_text(ClientLimits("separate", 3.0 * MIB, None, 10 * TIB)) == (
        "3 MiB/s for reads, below 10 TiB"
    )
    assert client_text(ClientLimits("sum", 3.0 * MIB, 3.0 * MIB, metered=True)) == (
        "3 MiB/s; reads and writes together have one limit (metered bytes)"
    )


@pytest.mark.parametrize(
    ("size_gib", "iops", "peak", "mib"),
    [
        (100, 3100, 10000, 110),
        (101, 3101, 10000, 112),
        (500, 3500, 10000, 150),
        (512, 3512, 10000, 152),
        (1024, 4024, 10000, 203),
        (5120, 8120, 15360, 613),
        (10240, 13240, 30720, 1125),
        (33792, 36792, 101376, 3480),
        (51200, 54200, 102400, 5220),
        (99400, 102400, None, 10040),
        (102400, 102400, None, 10340),
    ],
)
def test_azure_files_v1(size_gib: int, iops: int, peak: int | None, mib: int) -> None:
    limits = limits_of("azure.files-ssd-v1", size_gib * GIB)
    assert limits.rates == Rates(iops, iops, mib * MIB, mib * MIB)
    assert (limits.burst is None) == (peak is None)
    if peak is not None:
        (bucket,) = limits.buckets
        assert (bucket.peak_per_second, bucket.initial_share) == (peak, 1)
        assert bucket.capacity == (peak - iops) * HOUR_S
        assert bucket.fill_per_second == bucket.base_per_second == iops


@given(st.integers(100, 102400))
def test_azure_rounds_each_part_up(size_gib: int) -> None:
    """In whole numbers, where computers do not err."""
    parts = 100 - (-4 * size_gib // 100) - (-6 * size_gib // 100)
    read, _ = bandwidth_of(limits_of("azure.files-ssd-v1", size_gib * GIB))
    assert read == parts


@pytest.mark.parametrize(
    ("terms", "size_gib", "iops", "mib", "rates", "peak"),
    [
        ("azure.files-ssd-v2", 32, None, None, (3032, 104), 10000),
        ("azure.files-ssd-v2", 1024, None, None, (4024, 203), 12072),
        ("azure.files-ssd-v2", 262144, None, None, (102400, 10340), None),
        ("azure.files-ssd-v2", 32, 50000, 1000, (50000, 1000), 102400),
        ("azure.files-hdd-v2", 32, None, None, (1007, 61), 5000),
        ("azure.files-hdd-v2", 10240, None, None, (3048, 265), 9144),
        ("azure.files-hdd-v2", 32, 500, 60, (500, 60), 5000),
        ("azure.files-hdd-v2", 32, 50000, 60, (50000, 60), None),
    ],
)
def test_azure_files_v2(
    terms: str,
    size_gib: int,
    iops: float | None,
    mib: float | None,
    rates: tuple[float, float],
    peak: int | None,
) -> None:
    limits = limits_of(terms, size_gib * GIB, (iops, None if mib is None else mib * MIB))
    assert limits.rates == Rates(rates[0], rates[0], rates[1] * MIB, rates[1] * MIB)
    found = limits.burst and limits.burst.rates.read_iops
    assert found == peak


@pytest.mark.parametrize(
    ("terms", "size", "options", "rates"),
    [
        ("azure.netapp-files", TIB, {"level": "premium"}, (None, None, 64 * MIB, 64 * MIB)),
        ("azure.netapp-files", 40 * TIB, {"level": "ultra"}, (None, None, 4500 * MIB, 4500 * MIB)),
        ("gcp.netapp-volumes", 100 * GIB, {}, (None, None, 1600 * KIB, 1600 * KIB)),
        ("gcp.filestore", 5 * TIB, {}, (46000, 13000, 1300 * MIB, 440 * MIB)),
        ("gcp.filestore", 9.9 * TIB, {"tier": "regional"}, (118800, 39600, 1188 * MIB, 990 * MIB)),
        ("gcp.filestore", 20 * TIB, {"tier": "regional"}, (184000, 52000, 5200 * MIB, 1760 * MIB)),
        (
            "gcp.filestore",
            10 * TIB,
            {"tier": "enterprise"},
            (120000, 40000, 1200 * MIB, 1000 * MIB),
        ),
        ("gcp.filestore", TIB, {"tier": "basic-hdd"}, (600, 1000, 100 * MIB, 100 * MIB)),
        ("gcp.filestore", 11 * TIB, {"tier": "basic-hdd"}, (1000, 5000, 180 * MIB, 120 * MIB)),
        ("oracle.file-storage", TIB, {"mount_target": "hpmt-80"}, (None, None, 1e10, None)),
        ("alibaba.nas-extreme", 499 * GIB, {}, (None, None, 150 * MB, 150 * MB)),
        ("alibaba.nas-extreme", 2 * TIB, {}, (None, None, 600 * MB, 600 * MB)),
        ("alibaba.nas-extreme", 256 * TIB, {}, (None, None, 1200 * MB, 1200 * MB)),
        ("alibaba.nas-general", TIB, {}, (30000, 30000, 1214.4 * MB, 1214.4 * MB)),
        ("alibaba.cpfs-lingjun", 1000 * TIB, {}, (6.8e6, 2.3e6, 4e11, 2e11)),
        ("huawei.sfs-turbo", 6 * TIB, {"class": "250"}, (1e6, 1e6, 1500 * MB, 1500 * MB)),
        ("huawei.sfs-turbo", 1200 * GIB, {"class": "40"}, (250000, 250000, 150 * MB, 150 * MB)),
        ("huawei.sfs-turbo", 1000 * TIB, {"class": "1000"}, (1e6, 1e6, 8e10, 8e10)),
        ("huawei.sfs-turbo", TIB, {"class": "standard"}, (5000, 5000, 150 * MB, 150 * MB)),
        ("huawei.sfs-capacity", 500 * TIB, {}, (None, None, 2e9, 2e9)),
        ("tencent.cfs", TIB, {}, (None, None, 300 * MIB, 300 * MIB)),
        ("ovh.enterprise-file-storage", 58e12, {}, (232000, 232000, 3712 * MB, 3712 * MB)),
        ("scaleway.file-storage", 100e9, {}, (1900, 1900, 11.5 * MB, 11.5 * MB)),
        ("scaleway.file-storage", 3e12, {}, (25000, 25000, 200 * MB, 200 * MB)),
    ],
)
def test_other_file_storages(
    terms: str, size: float, options: dict[str, Any], rates: tuple[float | None, ...]
) -> None:
    found = limits_of(terms, size, **options).rates
    pairs = (
        (found.read_iops, rates[0]),
        (found.write_iops, rates[1]),
        (found.read_bytes_per_second, rates[2]),
        (found.write_bytes_per_second, rates[3]),
    )
    for one, other in pairs:
        assert one is other is None or math.isclose(one or 0, other or 0, rel_tol=1e-9)


@pytest.mark.parametrize(
    ("tib", "iops", "read_iops", "write_iops", "read_mib", "write_mib"),
    [
        (2, 8000, 8000, 2400, 188, 64),
        (0.25, 1000, 2000, 600, 47, 16),
        (1, 17000, 17000, 5100, 399.5, 136),
        (10, 75000, 75000, 22500, 1762.5, 600),
    ],
)
@pytest.mark.parametrize("tier", ["zonal", "regional"])
def test_filestore_with_custom_performance(
    tier: str,
    tib: float,
    iops: float,
    read_iops: float,
    write_iops: float,
    read_mib: float,
    write_mib: float,
) -> None:
    limits = limits_of("gcp.filestore", tib * TIB, (iops, None), tier=tier, performance="custom")
    assert (limits.rates.read_iops, limits.rates.write_iops) == (read_iops, write_iops)
    assert bandwidth_of(limits) == pytest.approx((read_mib, write_mib))


def test_custom_performance_of_a_filestore_has_bounds_by_size() -> None:
    row = CATALOG["gcp.filestore"]
    for size, iops, expected in ((2, 7999, "8000 to 34000"), (10, 75001, "30000 to 75000")):
        provision = Provision(iops, None, {"performance": "custom"})
        (note,) = beyond_bounds(row, size * TIB, provision)
        assert note.endswith(f"(catalogue: {expected} at this size)")
    provision = Provision(3000, None, {"performance": "custom"})
    assert beyond_bounds(row, 100 * GIB, provision) == [
        "3000 IOPS of gcp.filestore: above what Google Cloud sells (catalogue: 2000 at this size)"
    ]


def test_region_that_is_not_listed_has_no_close_match() -> None:
    chosen = {"mode": "bursting", "region": "eu-north-1"}
    with pytest.raises(DiskslaError, match=r"aws.efs; expected one of: other \(any that is"):
        derive_limits(CATALOG["aws.efs"], TIB, Provision(None, None, chosen))


LUSTRE, ONTAP = "aws.fsx-lustre", "aws.fsx-ontap"


def cached(**options: str) -> dict[str, Any]:
    """Return options of reads from the cache."""
    return {**options, "reads": "cache"}


@pytest.mark.parametrize(
    ("terms", "size", "bought", "options", "base", "peak"),
    [
        (LUSTRE, TIB, None, {"deployment": "scratch-2"}, (200, 100), None),
        (LUSTRE, TIB, None, cached(deployment="scratch-2"), (200, 100), (1300, 100)),
        (LUSTRE, TIB, None, {"deployment": "hdd-40"}, (40, 40), (250, 150)),
        (LUSTRE, TIB, None, cached(deployment="hdd-40"), (150, 40), (1300, 150)),
        (LUSTRE, TIB, None, cached(deployment="persistent-1000"), (2600, 1000), None),
        ("aws.fsx-openzfs", TIB, 2048, {}, (2048, 2048), None),
        ("aws.fsx-openzfs", TIB, 128, cached(), (400, 128), (3200, 1024)),
        (ONTAP, 10 * TIB, None, cached(throughput="512"), (625, 512), (1250, 600)),
        (ONTAP, 10 * TIB, None, {"throughput": "1024"}, (1024, 1024), None),
        (ONTAP, TIB // 2, None, {"throughput": "1024"}, (384, 384), None),
    ],
)
def test_fsx_has_bursts_without_known_credits(
    terms: str,
    size: int,
    bought: float | None,
    options: dict[str, Any],
    base: tuple[float, float],
    peak: tuple[float, float] | None,
) -> None:
    limits = limits_of(terms, size, (None, bought and bought * MB), **options)
    assert bandwidth_of(limits, MB) == pytest.approx(base)
    if peak is not None:
        assert limits.burst is not None
        rates = limits.burst.rates
        assert rates.read_bytes_per_second == pytest.approx(peak[0] * MB)
        assert rates.write_bytes_per_second == pytest.approx(peak[1] * MB)
        assert (limits.burst.length, limits.buckets) == ("unknown", ())
    elif limits.burst is not None:  # of IOPS only
        assert limits.burst.rates.read_bytes_per_second == limits.rates.read_bytes_per_second


def test_sizes_are_bounded() -> None:
    assert beyond_sizes(CATALOG["azure.files-ssd-v1"], 99 * GIB)
    assert beyond_sizes(CATALOG["azure.files-ssd-v1"], 102401 * GIB)
    assert beyond_sizes(CATALOG["yandex.filestore-ssd"], 9 * TIB)


METERED = Metered(4 * KIB, 3)
CHARGES = metered(shared_charges(Rates(None, None, 30.0 * MIB, 10.0 * MIB)), METERED)


@pytest.mark.parametrize(
    ("work", "metered_kib"),
    [
        (Work(reads=1, read_bytes=4 * KIB), 4),
        (Work(reads=1, read_bytes=12 * KIB), 4),
        (Work(reads=1, read_bytes=1024 * KIB), 1024 / 3),
        (Work(writes=1, written_bytes=1 * KIB), 4),
        (Work(writes=1, written_bytes=64 * KIB), 64),
        (Work(1, 1, 1024 * KIB, 1 * KIB), 1024 / 3 + 4),
    ],
)
def test_requests_are_metered(work: Work, metered_kib: float) -> None:
    assert (work.load(CHARGES, 1.0) or 0) * 10 * 1024 == pytest.approx(metered_kib)
    assert METERED.metered_bytes(work)[0] == pytest.approx(metered_kib * KIB)


def test_metering_leaves_limits_of_requests_alone() -> None:
    iops = Charge("iops", 0.1, 0.2)
    assert metered((iops,), METERED) == (iops,)


@pytest.mark.parametrize("row", [row for row in ROWS if row.budget], ids=lambda row: row.id)
def test_arithmetic_is_explained(row: Any) -> None:
    for example in row.examples:
        steps = derivation(row, example.size_bytes, example.provisioned)
        assert all(step.steps and step.result for step in steps)


@pytest.mark.parametrize(
    ("terms", "size", "unit_gib", "rates"),
    [
        ("yandex.network-ssd", TIB, 32, Rates(1000, 1000, 15 * MIB, 15 * MIB)),
        ("yandex.network-hdd", TIB, 256, Rates(300, 300, 30 * MIB, 30 * MIB)),
        ("yandex.network-ssd-io-m3", TIB, 93, Rates(28000, 5600, 110 * MIB, 82 * MIB)),
    ],
)
def test_disk_has_the_promise_of_one_unit(
    terms: str, size: int, unit_gib: int, rates: Rates
) -> None:
    unit = limits_of(terms, size).one_unit
    assert unit is not None
    assert (unit.size_bytes, unit.rates) == (unit_gib * GIB, rates)
    assert limits_of(terms, unit_gib * GIB).one_unit is None
    assert limits_of("vk.ceph-ssd", size).one_unit is None

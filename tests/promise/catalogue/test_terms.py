"""Rows of the catalogue: their checks, options and names; limits and charges from rates."""

from pathlib import Path
from typing import Any

import pytest

from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, TIB
from disksla.promise.catalogue.catalog import parse_catalog
from disksla.promise.catalogue.cost_model import Additive, Charge, Chunks, load_ratio
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import NO_LIMITS, Budgets, Burst, Limits, Rates, build_limits
from disksla.promise.catalogue.terms import Catalog, Provision
from support.catalog_rows import make_terms

CLAMP = {"rule": "clamp", "minimum": 100}


def test_terms_without_limits() -> None:
    assert make_terms().budget is None
    assert make_terms().read_iops is None


@pytest.mark.parametrize(
    ("fields", "problem"),
    [
        ({"budget": "sum"}, "^1: budget: found a budget without limits; expected rules"),
        ({"read_iops": CLAMP}, "^1: budget: missing beside limits; expected one of: separate"),
        (
            {"budget": "sum", "read_iops": CLAMP},
            "^1: budget: found 'sum' with different rules for reads and writes",
        ),
        (
            {
                "budget": "separate",
                "read_bandwidth": {"rule": "from-iops", "bytes_per_io": "4KiB"},
            },
            "^1: read_bandwidth: found a rule that follows from the other limit; expected a rule",
        ),
        (
            {
                "budget": "separate",
                "read_iops": CLAMP,
                "cost": {"type": "additive", "small_bytes": "4KiB", "large_bytes": "64KiB"},
            },
            "^1: cost: found an additive cost; expected it with budget time_shared only",
        ),
        (
            {
                "promised_shares": [
                    {"request_bytes": "8KiB", "share": 0.5},
                    {"request_bytes": "4KiB", "share": "1.0"},
                ]
            },
            "^1: promised_shares: found sizes out of order; expected ascending",
        ),
        ({"promised_shares": [{"request_bytes": "8KiB", "share": 0}]}, "expected a share above 0"),
        (
            {"latency": {"kind": "indicative"}},
            "^1: latency: found none of seconds and write_seconds; expected at least one",
        ),
        ({"sources": [{"date": "2026-01-02"}]}, r"^1: sources\[0\].url: missing; expected"),
        ({"examples": []}, "^1: examples: found an empty list"),
        ({"examples": None}, "^1: examples: found nothing; expected a list"),
        ({"id": "other.disk"}, "^1: id: found 'other.disk' of provider acme; expected acme.NAME"),
        ({"id": "disk"}, "^1: id: found 'disk'; expected PROVIDER.NAME"),
        ({"read_iops": {"rule": "clamp", "minimal": 1}}, "^1: read_iops.minimal: unknown key"),
        ({"read_iops": {"rule": "calmp"}}, r"found 'calmp' \(did you mean `clamp`\?\); expected"),
        ({"read_iops": {"minimum": 1}}, "^1: read_iops.rule: missing; expected one of: clamp, "),
        (
            {"read_iops": {**CLAMP, "steps": []}},
            "steps: not valid with `rule: clamp`, only with tiers or by-size; expected",
        ),
        (
            {"latency": {"seconds": "0ms", "kind": "guaranteed"}},
            "^1: latency.seconds: '0ms' is zero",
        ),
        ({"binary_gb": "yes"}, "^1: binary_gb: found 'yes'; expected true or false$"),
    ],
)
def test_terms_reject_contradictions(fields: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        make_terms(**fields)


@pytest.mark.parametrize(
    ("key", "rule", "problem"),
    [
        (
            "read_iops",
            {"minimum": "100MiB/s"},
            "found '100MiB/s'; expected a plain number above 0",
        ),
        ("read_iops", {"minimum": 0}, "found '0'; expected a plain number above 0"),
        ("read_bandwidth", {"minimum": 100}, "'100' has no unit; expected a bandwidth such as"),
        ("read_bandwidth", {"minimum": "5s"}, "unknown unit 's' in '5s'; expected a bandwidth"),
    ],
)
def test_rules_have_the_unit_of_their_key(key: str, rule: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=f"^1: {key}.minimum: {problem}"):
        make_terms(budget="separate", **{key: {"rule": "clamp", **rule}})


@pytest.mark.parametrize(
    ("resource", "capacity"),
    [("iops", "5400000"), ("bytes", "1TiB"), ("service_seconds", "1800s")],
)
def test_credits_have_the_unit_of_their_resource(resource: str, capacity: str) -> None:
    for written in ("5400000", "1TiB", "1800s"):
        bucket = {"resource": resource, "capacity": {"rule": "clamp", "base": written}}
        burst = {"type": "token-buckets", "buckets": [bucket]}
        if written == capacity:
            assert make_terms(burst=burst).burst is not None
        else:
            with pytest.raises(ValueError, match=r"^1: burst.buckets\[0\].capacity.base: "):
                make_terms(burst=burst)


def test_catalog_finds_terms_by_id_and_alias() -> None:
    row = make_terms(aliases=["acme.old"])
    catalog = Catalog([row, make_terms(id="acme.other")])
    assert catalog["acme.disk"] is row
    assert catalog["acme.old"] is row
    assert [row.id for row in catalog.rows] == ["acme.disk", "acme.other"]


@pytest.mark.parametrize("name", ["acme.dis", "ACME.DISK"])
def test_catalog_error_names_close_ids(name: str) -> None:
    catalog = Catalog(
        [make_terms(aliases=["acme.dsik"]), make_terms(id="other.nvme", provider="other")]
    )
    with pytest.raises(DiskslaError, match=rf"^unknown terms '{name}'; did you mean acme.disk\?"):
        catalog[name]


def test_catalog_error_names_command_without_close_id() -> None:
    with pytest.raises(DiskslaError, match="see 'disksla limits'"):
        Catalog([make_terms()])["zzz"]


def test_catalog_rejects_duplicate_names() -> None:
    with pytest.raises(ValueError, match=r"found 'acme\.disk' twice"):
        Catalog([make_terms(), make_terms(id="acme.new", aliases=["acme.disk"])])


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


RATES = Rates(500.0, 300.0, 70e6, 40e6)


def test_limits_default_is_no_limits() -> None:
    assert Limits() == NO_LIMITS
    assert NO_LIMITS.rates == Rates(None, None, None, None)


def test_build_limits_with_separate_budget() -> None:
    limits = build_limits(RATES, "separate", latency_s=0.001, latency_kind="guaranteed")
    assert [charge.limit for charge in limits.promise_charges] == [
        "iops", "iops", "bandwidth", "bandwidth",
    ]  # fmt: skip
    assert limits.promise_charges == limits.enforced_charges
    assert (limits.rates, limits.budget) == (RATES, Budgets("separate", "separate"))
    assert (limits.latency_s, limits.latency_kind) == (0.001, "guaranteed")


def test_build_limits_with_sum_budget() -> None:
    limits = build_limits(Rates(300.0, 300.0, 25e6, 25e6), "sum")
    assert limits.promise_charges == (
        Charge("iops", read_s=1 / 300, write_s=1 / 300),
        Charge("bandwidth", read_byte_s=1 / 25e6, written_byte_s=1 / 25e6),
    )
    assert load_ratio(limits.promise_charges, 1.0, 100, 200, 0, 0) == pytest.approx(1.0)


def test_budgets_of_requests_and_bytes_may_differ() -> None:
    """Google's SSD-backed disks share the time of requests, but not that of bytes."""
    limits = build_limits(Rates(1000.0, 500.0, 1e8, 2e8), Budgets("time_shared", "separate"))
    assert limits.promise_charges == (
        Charge("iops", read_s=1 / 1000, write_s=1 / 500),
        Charge("bandwidth", read_byte_s=1 / 1e8),
        Charge("bandwidth", written_byte_s=1 / 2e8),
    )
    assert limits.budget is not None
    assert limits.budget.kind == "mixed"


def test_build_limits_with_time_shared_budget() -> None:
    charges = build_limits(RATES, "time_shared").promise_charges
    assert load_ratio(charges, 1.0, 250, 150, 0, 0) == pytest.approx(1.0)
    assert load_ratio(charges, 1.0, 0, 0, 35e6, 20e6) == pytest.approx(1.0)


def test_build_limits_with_additive_cost() -> None:
    cost = Additive(small_bytes=4096, large_bytes=4194304)
    limits = build_limits(RATES, "time_shared", cost=cost)
    (promise,), (enforced,) = limits.promise_charges, limits.enforced_charges
    assert promise == Charge("service", 1 / 500, 1 / 300, 1 / 70e6, 1 / 40e6)
    assert enforced.limit == "service"
    assert promise.read_s > enforced.read_s
    assert promise.written_byte_s > enforced.written_byte_s


def test_build_limits_with_chunks() -> None:
    limits = build_limits(Rates(100.0, 100.0), "sum", cost=Chunks(chunk_bytes=1000))
    assert load_ratio(limits.promise_charges, 1.0, 10, 0, 50_000, 0) == pytest.approx(0.5)
    assert load_ratio(limits.promise_charges, 1.0, 60, 0, 50_000, 0) == pytest.approx(0.6)


def test_build_limits_charges_only_known_rates() -> None:
    limits = build_limits(Rates(read_iops=100.0), "separate")
    assert limits.promise_charges == (Charge("iops", read_s=0.01),)


def test_build_limits_with_burst() -> None:
    burst = Burst(Rates(2000.0, 2000.0), ())
    assert build_limits(RATES, "sum", burst=burst).burst == burst

"""Units, limits that were wrong once, and limiters, beside what was measured.

Sources of the measurements are in the rows, in `docs/limiters.md`, and here where there is one of
its own. MB and MiB differ by 4.9 %, so a wrong unit is not within the excess of a limiter.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import pytest

from disksla.base.schema.reader import read_record
from disksla.base.units import GIB, KIB, MIB, format_duration, parse_size_bytes
from disksla.promise.catalogue import machine_tables
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.derivation import percent_text
from disksla.promise.catalogue.derive import derive_limits, effective_iops
from disksla.promise.catalogue.limits import USUAL_EXCESS_RATIO, Limiter, LimiterTerms, Rates
from disksla.promise.catalogue.machine import find_machine, machine_groups
from disksla.promise.catalogue.machine_tables import load_machine_rules
from disksla.promise.catalogue.terms import Provision
from disksla.promise.configuration.custom_terms import SumTerms, custom_limits
from support.catalog_rows import make_terms
from support.schema_nodes import node

CATALOG = load_catalog()
LEAST = 1 - 0.012  # a steady rate at a limit is hardly ever lower


class Point(NamedTuple):
    """What a disk at its limit was seen to do."""

    row: str
    size: str
    measured: Rates  # only what was measured
    options: tuple[tuple[str, str], ...] = ()
    of_burst: bool = False


def reads(iops: float | None = None, bytes_per_second: float | None = None) -> Rates:
    return Rates(read_iops=iops, read_bytes_per_second=bytes_per_second)


POINTS = (
    Point("aws.gp3", "100GiB", reads(None, 126.0 * MIB)),
    Point("aws.gp2", "1000GiB", reads(3008.0)),
    Point("azure.premium-ssd", "1TiB", reads(5210.0, 198 * MIB)),
    Point("azure.standard-hdd", "1TiB", reads(502.0, 253 * 256 * KIB)),
    Point("azure.standard-hdd", "500GiB", reads(None, 62 * MIB)),
    Point("alibaba.essd-pl1", "80GiB", reads(5820.0, 159 * MIB)),
    Point("alibaba.efficiency", "80GiB", reads(2467.0, 113.65 * MIB)),
    Point("ovh.high-speed-gen2", "200GB", reads(6004.0)),
    Point("ibm.10iops-tier", "300GB", reads(2996.0)),
    Point("ibm.10iops-tier", "300GB", reads(None, 49.2 * MIB), (("share", "least"),)),
    Point("digitalocean.volume", "1TiB", reads(None, 200.2e6)),
    Point("digitalocean.volume", "1TiB", reads(9986.0), of_burst=True),
    Point("yandex.network-ssd", "1280GB", reads(None, 449 * MIB)),
    Point("yandex.network-ssd-nonreplicated", "93GB", Rates(None, None, None, 85983232.0)),
)

STATED = {
    "exoscale": "MiB/s",
    "gcp": "MiB/s",
    "huawei": "MiB/s",
    "vk": "MiB/s",
    "azure": "10^6",
    "aws": "MiB/s",
}
"""Providers whose text has the unit, and how the note of the source has it."""
TAKEN = frozenset({"byteplus", "hetzner", "oracle", "tencent", "ovh", "ibm"})
"""Providers of which nobody has published a bandwidth at a limit: the lower of both is taken."""


@pytest.mark.parametrize("point", POINTS, ids=lambda point: f"{point.row}-{point.size}")
def test_limit_is_what_was_measured(point: Point) -> None:
    row = CATALOG[point.row]
    size_bytes = parse_size_bytes(point.size, binary_gb=row.binary_gb)
    limits = derive_limits(row, size_bytes, Provision(options=dict(point.options)))
    rates = limits.burst.rates if point.of_burst and limits.burst else limits.rates
    compared = 0
    for name in Rates.__struct_fields__:
        measured = getattr(point.measured, name)
        if measured is not None:
            limit = getattr(rates, name)
            assert LEAST * limit <= measured <= (1 + limits.limiter.excess_ratio) * limit
            compared += 1
    assert compared


def test_each_provider_of_disks_has_a_unit_of_bandwidth() -> None:
    with_bandwidth = {
        row.provider for row in CATALOG.rows if row.read_bandwidth and not row.is_file_storage
    }
    measured = {
        CATALOG[point.row].provider
        for point in POINTS
        if point.measured.read_bytes_per_second or point.measured.write_bytes_per_second
    }
    assert with_bandwidth == measured | set(STATED) | TAKEN


@pytest.mark.parametrize("provider", [*STATED, *sorted(TAKEN)])
def test_source_says_which_unit_it_is(provider: str) -> None:
    notes = [
        " ".join((source.note or "").split())
        for row in CATALOG.rows
        if row.provider == provider and not row.is_file_storage
        for source in row.sources
    ]
    text = STATED.get(provider, "taken as")
    assert any(text in note for note in notes)


def test_random_reads_of_yandex_run_at_the_published_formula() -> None:
    """Its own example: 16993 reads of 4 KiB on a disk with 20000 read IOPS and 450 MiB/s."""
    limits = derive_limits(CATALOG["yandex.network-ssd"], 1280 * GIB)
    iops = effective_iops(limits, 4 * KIB)
    assert iops is not None
    assert LEAST * iops.promise <= 16993 <= 1.025 * iops.promise
    assert not LEAST * iops.enforced <= 16993


def test_bandwidth_of_the_cache_of_azure() -> None:
    """Of 512 MB/s, 534.3 were served (https://github.com/emondek/azure-disk-perf, 2015)."""
    rules = machine_tables.load_machine_rules("azure")
    assert rules is not None
    machine = find_machine(rules, machine_tables.read_table(rules), "Standard_D32s_v3")
    [cached] = [group for group in machine_groups(rules, machine) if group.is_cache]
    limit = cached.limits.rates.read_bytes_per_second
    assert limit is not None
    assert LEAST * limit <= 534306816 <= (1 + cached.limits.limiter.excess_ratio) * limit


PAGE = (Path(__file__).parents[3] / "docs" / "limiters.md").read_text(encoding="utf-8")
RATE = {"rule": "clamp", "base": 300}


def limiter_of(**fields: Any) -> Limiter:
    row = make_terms(budget="sum", read_iops=RATE, write_iops=RATE, **fields)
    return derive_limits(row, GIB).limiter


def test_limiter_of_a_type() -> None:
    assert limiter_of() == Limiter(None, None, None, USUAL_EXCESS_RATIO)
    even = {"kind": "even", "bucket": "1s", "excess": "4.5%"}
    assert limiter_of(limiter=even) == Limiter("even", None, 1.0, 0.045)
    windows = {"kind": "windows", "window": "100ms"}
    assert limiter_of(limiter=windows) == Limiter("windows", 0.1, None, USUAL_EXCESS_RATIO)


def test_less_excess_than_usual_is_within_the_usual() -> None:
    assert limiter_of(limiter={"excess": "0.3%"}).excess_ratio == USUAL_EXCESS_RATIO


@pytest.mark.parametrize(
    ("limiter", "problem"),
    [
        ({"kind": "windows"}, "only one of kind windows and window"),
        ({"kind": "even", "window": "1s"}, "only one of kind windows and window"),
        ({"kind": "odd"}, "odd"),
        ({"kind": "even", "burst": "1s"}, "burst"),
    ],
)
def test_wrong_limiters(limiter: dict[str, Any], problem: str) -> None:
    with pytest.raises(ValueError, match=problem):
        limiter_of(limiter=limiter)


def test_limiter_of_terms_that_are_written_out() -> None:
    written = {"budget": "sum", "iops": 300, "limiter": {"kind": "even", "bucket": "100ms"}}
    terms, problems = read_record(node(written), SumTerms)
    assert not problems
    assert terms is not None
    assert custom_limits(terms).limiter == Limiter("even", None, 0.1)
    assert custom_limits(msgspec.structs.replace(terms, limiter=None)).limiter == Limiter()


def known_limiters() -> dict[LimiterTerms, list[str]]:
    """Return the limiters that the rows of the package have, each with the ids of its types."""
    found: dict[LimiterTerms, list[str]] = {}
    for row in load_catalog().rows:
        if row.limiter is not None:
            found.setdefault(row.limiter, []).append(row.id)
    return found


def test_page_has_the_limiters_of_the_catalogue() -> None:
    def shown(number: float | None, as_text: Callable[[float], str]) -> str:
        return "not known" if number is None else as_text(number)

    table = PAGE.partition("## By type")[2].partition("\n\nOf types")[0].splitlines()[4:]
    assert table == [
        "| "
        + " | ".join(
            (
                ", ".join(f"`{type_id}`" for type_id in ids),
                (each.kind or "not known")
                + (f" of {format_duration(each.window_s)}" if each.window_s else ""),
                shown(each.bucket_s, format_duration),
                shown(each.excess_ratio, percent_text),
            )
        )
        + " |"
        for each, ids in known_limiters().items()
    ]


def test_limiters_have_sources_which_the_page_lists() -> None:
    for limiter in known_limiters():
        assert limiter.about
        assert limiter.sources
        for source in limiter.sources:
            cited = f"[{source.title}]({source.url})" if source.url else source.title
            assert f"| {cited} | {source.date} |" in PAGE


def test_page_has_the_limiter_of_the_machines_of_aws() -> None:
    rules = load_machine_rules("aws")
    assert rules is not None
    [group] = rules.groups
    assert group.limiter is not None
    assert group.limiter.sources
    assert (group.limiter.kind, group.limiter.bucket_s) == ("even", 1.0)
    assert group.limiter.excess_ratio == 0.01
    assert "even, with a bucket of 1 s, up to 1\n% more than promised" in PAGE

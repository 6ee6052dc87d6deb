"""Limits of machines: the tables of the package, how a machine is found, and its groups."""

import csv
import datetime as dt
import re
import subprocess
import sys
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from catalog_page import machine_section
from disksla.base.errors import DiskslaError
from disksla.base.units import GIB, KIB, MB, MIB
from disksla.promise.catalogue import machine_tables
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.derive import derive_limits, effective_iops
from disksla.promise.catalogue.limits import Bucket, Budgets, Limits, Rates
from disksla.promise.catalogue.machine import (
    Machine,
    MachineGroup,
    MachineRules,
    least_rates,
    machine_groups,
    machine_of_vcpus,
)
from disksla.promise.catalogue.machine_tables import (
    load_machine_rules,
    providers_with_machines,
    read_machine,
    read_table,
)
from disksla.promise.catalogue.rules import Provisioned
from disksla.promise.catalogue.terms import Provision, Terms

CATALOG = load_catalog()
PROVIDERS = providers_with_machines()
DIRECTORY = Path(machine_tables.__file__).parent / "machines"
OF_EACH = pytest.mark.parametrize("provider", PROVIDERS)


@cache
def rules_of(provider: str) -> MachineRules:
    rules = load_machine_rules(provider)
    assert rules is not None
    return rules


def groups_of(provider: str, name: str) -> dict[str, MachineGroup]:
    rules = rules_of(provider)
    return {group.name: group for group in machine_groups(rules, read_machine(rules, name, None))}


@cache
def groups_of_all(provider: str) -> list[tuple[Machine, Sequence[MachineGroup]]]:
    """Return each machine of a table with its groups: of AWS, there are a thousand."""
    rules = rules_of(provider)
    return [(machine, machine_groups(rules, machine)) for machine in machines_of(rules)]


def table_of(rules: MachineRules) -> list[dict[str, str]]:
    return list(csv.DictReader(read_table(rules).splitlines()))


def machines_of(rules: MachineRules, every: int = 1) -> list[Machine]:
    """Return a machine for every so many lines of the table, or some by their vCPUs."""
    if rules.key == "vcpus":
        return [machine_of_vcpus(vcpus) for vcpus in (1, 2, 10, 11, 96)]
    names = {
        f"{row['machine']}-standard-{row['least_vcpus']}"
        if row.get("least_vcpus")
        else row["machine"]
        for row in table_of(rules)
    }
    return [read_machine(rules, name, None) for name in sorted(names)[::every]]


@OF_EACH
def test_groups_cover_types_of_the_provider(provider: str) -> None:
    rules = rules_of(provider)
    assert rules.provider == provider
    for group in rules.groups:
        assert group.covers
        assert {CATALOG[type_id].id for type_id in group.covers} == set(group.covers)
        assert {CATALOG[type_id].provider for type_id in group.covers} == {provider}


@OF_EACH
def test_budget_of_a_sum_has_one_rule_for_reads_and_writes(provider: str) -> None:
    for group in rules_of(provider).groups:
        budget = group.budget
        kinds = budget if isinstance(budget, Budgets) else Budgets(budget, budget)
        assert kinds.iops != "sum" or group.read_iops == group.write_iops
        assert kinds.bandwidth != "sum" or group.read_bandwidth == group.write_bandwidth


@OF_EACH
def test_sources_have_notes(provider: str) -> None:
    for source in rules_of(provider).sources:
        assert source.url.startswith("https://")
        assert source.note


@OF_EACH
def test_each_line_is_found_and_has_positive_rates(provider: str) -> None:
    for machine, groups in groups_of_all(provider):
        assert groups, machine.shown
        for group in groups:
            base = msgspec.structs.astuple(group.limits.rates)
            burst = group.limits.burst
            peak = base if burst is None else msgspec.structs.astuple(burst.rates)
            assert base[0] is not None
            for low, high in zip(base, peak, strict=True):
                assert (low is None) == (high is None), machine.shown
                assert low is None or 0 < low <= (high or 0), machine.shown


def test_each_column_is_used_and_each_line_has_one_name() -> None:
    tables = sorted(path.stem for path in DIRECTORY.glob("*.csv"))
    assert tables == [name for name in PROVIDERS if rules_of(name).key != "vcpus"]
    for provider in tables:
        rules = rules_of(provider)
        source = msgspec.json.encode(rules.groups).decode()
        keys = {"machine", "date", "confidence", "least_vcpus", "most_vcpus"}
        rows = table_of(rules)
        assert {column for column in rows[0] if f'"{column}"' not in source} <= keys
        if rules.key == "name":
            assert len({row["machine"].lower() for row in rows}) == len(rows)


def test_series_have_no_two_lines_for_a_number_of_vcpus() -> None:
    lines: dict[tuple[str, str], list[tuple[int, int]]] = {}
    for row in table_of(rules_of("gcp")):
        least = int(row["least_vcpus"] or 0)
        span = (least, int(row["most_vcpus"] or (10**6 if least else 0)))
        lines.setdefault((row["machine"], row["disk_type"]), []).append(span)
    for spans in lines.values():
        for (_, before), (after, _) in pairwise(spans):
            assert before < after


def both(iops: float, bytes_per_second: float) -> Rates:
    return Rates(iops, iops, bytes_per_second, bytes_per_second)


def test_aws_m5_large_as_the_provider_prints_it() -> None:
    [group] = groups_of("aws", "m5.large").values()
    assert group.limits.rates == both(3600, 81.25 * MB)
    assert group.limits.budget == Budgets("sum", "sum")
    burst = group.limits.burst
    assert burst is not None
    assert burst.rates == both(18750, 593.75 * MB)
    assert burst.seconds == 1800
    assert burst.buckets == (
        Bucket("iops", 15150 * 1800, 3600, 3600, 18750, 1.0),
        Bucket("bytes", 512.5 * MB * 1800, 81.25 * MB, 81.25 * MB, 593.75 * MB, 1.0),
    )
    assert group.inferred
    assert (group.date, group.confidence) == (dt.date(2026, 11, 21), "medium")


def test_aws_type_without_burst_has_no_credits() -> None:
    [group] = groups_of("aws", "m5.24xlarge").values()
    assert group.limits.rates == both(80000, 2375 * MB)
    assert (group.limits.burst, group.inferred) == (None, None)


def test_inferred_credits_of_aws_are_full_after_a_day_but_for_two_types() -> None:
    slow = {
        machine.name
        for machine, groups in groups_of_all("aws")
        for group in groups
        for bucket in group.limits.buckets
        if bucket.capacity / bucket.fill_per_second > 86400
    }
    assert slow == {"t8i.nano", "t8i.micro"}


@pytest.mark.parametrize("name", ["Standard_D2s_v5", "D2s_v5", "standard_d2s_V5"])
def test_azure_d2s_v5_as_the_provider_prints_it(name: str) -> None:
    rules = rules_of("azure")
    machine = read_machine(rules, name, None)
    assert machine.name == "Standard_D2s_v5"
    [group] = machine_groups(rules, machine)
    assert "azure.ultra" in group.covers
    assert group.limits.rates == both(3750, 85 * MB)
    assert group.limits.burst is not None
    assert group.limits.burst.rates == both(10000, 1200 * MB)
    assert group.limits.burst.seconds == 1800
    assert (group.date, group.confidence) == (dt.date(2026, 2, 27), "high")


def test_azure_size_with_limits_of_its_own_for_premium_v2_and_ultra() -> None:
    groups = groups_of("azure", "D2s_v6")
    assert "azure.ultra" not in groups["uncached"].covers
    assert groups["uncached-v2-ultra"].covers == ("azure.premium-ssd-v2", "azure.ultra")
    assert groups["uncached-v2-ultra"].limits.rates == both(4167, 124 * MB)


def test_azure_size_with_a_cache_of_the_api() -> None:
    groups = groups_of("azure", "Standard_D2_v3")
    assert groups["cached"].is_cache
    assert groups["cached"].limits.rates == Rates(3000, 3000, 49.152 * MB, 24.576 * MB)
    assert groups["cached"].limits.budget == Budgets("sum", "separate")
    assert {group.confidence for group in groups.values()} == {"medium"}


@pytest.mark.parametrize(
    ("name", "group", "rates"),
    [
        ("n2-standard-8", "pd-ssd", (15000, 15000, 800, 800)),
        ("n2-standard-7", "pd-ssd", (15000, 15000, 240, 240)),
        ("N2-custom-33-65536", "pd-ssd", (60000, 60000, 1200, 1200)),
        ("n2-highmem-128", "pd-balanced", (80000, 80000, 1200, 1200)),
        ("n2-standard-64", "pd-extreme", (120000, 120000, 4000, 3000)),
        ("n2-standard-64", "pd-standard", (7500, 15000, 1200, 400)),
        ("custom-1-1024", "pd-ssd", (15000, 15000, 240, 204)),
        ("c3-standard-4-lssd", "pd-ssd", (15000, 15000, 240, 240)),
        ("e2-medium", "pd-standard", (1000, 10000, 200, 200)),
        ("a2-ultragpu-8g", "pd-standard", (7500, 15000, 1200, 400)),
    ],
)
def test_google_machine_by_type_or_by_series_and_vcpus(
    name: str, group: str, rates: tuple[int, int, int, int]
) -> None:
    iops, bandwidth = rates[:2], (rates[2] * MIB, rates[3] * MIB)
    found = groups_of("gcp", name)[group]
    assert found.limits.rates == Rates(*iops, *bandwidth)
    assert found.limits.budget is not None
    assert found.limits.budget.iops == "time_shared"
    assert (found.limits.budget.bandwidth == "separate") == (group != "pd-standard")


def test_google_machine_without_a_bandwidth_or_a_type_of_disk() -> None:
    groups = groups_of("gcp", "a3-highgpu-8g")
    assert groups["pd-ssd"].limits.rates == Rates(80000, 80000)
    assert "pd-standard" not in groups


def test_alibaba_instance() -> None:
    [group] = groups_of("alibaba", "c6.13xlarge").values()
    assert group.limits.rates == both(100000, 1000 * MB)


@given(st.integers(1, 256), st.integers(1, 256))
def test_limits_do_not_decrease_with_vcpus(one: int, other: int) -> None:
    few, many = (
        machine_groups(rules_of("yandex"), machine_of_vcpus(vcpus))
        for vcpus in sorted((one, other))
    )
    for before, after in zip(few, many, strict=True):
        assert least_rates(before.limits.rates, [after]) == before.limits.rates


@pytest.mark.parametrize(
    ("provider", "name", "message"),
    [
        ("aws", "m5.larg", r"^unknown machine type 'm5\.larg' of aws; did you mean m5\.large or "),
        ("aws", "machine", r"^unknown machine type 'machine' of aws; one is a1\.2xlarge$"),
        ("aws", "m5.large,3600", "^unknown machine type"),
        ("aws", "m5.large\nm5.xlarge", "^unknown machine type"),
        ("aws", ".*", "^unknown machine type"),
        ("aws", "", "^unknown machine type"),
        ("azure", "D2s_v55", "did you mean Standard_D2s_v5 or "),
        ("gcp", "n2", "^unknown machine type"),
        ("gcp", "n7-standard-4", "did you mean n2-standard-64 or "),
        ("gcp", "c3-standard-5", "^unknown machine type"),
        ("gcp", "e2-micro", "did you mean f1-micro or e2-medium"),
        (
            "yandex",
            "standard-v3",
            "^found machine type 'standard-v3' of yandex; expected a number",
        ),
    ],
)
def test_unknown_machine_is_an_error_with_close_names(
    provider: str, name: str, message: str
) -> None:
    with pytest.raises(DiskslaError, match=message):
        read_machine(rules_of(provider), name, None)


def test_vcpus_without_a_rule_for_them_are_an_error() -> None:
    with pytest.raises(DiskslaError, match=r"^found 4 vCPUs of aws; expected a machine type,"):
        read_machine(rules_of("aws"), None, 4)


def test_machine_is_shown_by_its_name_or_its_vcpus() -> None:
    assert read_machine(rules_of("aws"), "M5.LARGE", None).shown == "m5.large"
    assert machine_of_vcpus(1).shown == "A machine with 1 vCPU"
    assert machine_of_vcpus(2).shown == "A machine with 2 vCPUs"


def test_provider_without_machines() -> None:
    assert load_machine_rules("vk") is None


def chosen(row: Terms) -> Provision:
    """Return values of a disk for which some must be chosen."""
    is_chosen = [isinstance(rule, Provisioned) for rule in (row.read_iops, row.read_bandwidth)]
    return Provision(5000.0 if is_chosen[0] else None, 1e8 if is_chosen[1] else None)


SAMPLE = [
    (rules_of(provider), machine)
    for provider, every in (("aws", 97), ("azure", 9), ("gcp", 5), ("alibaba", 17), ("yandex", 1))
    for machine in machines_of(rules_of(provider), every)
]
ON_MACHINES = [
    (row, group.limits)
    for rules, machine in SAMPLE
    for group in machine_groups(rules, machine)
    for row in CATALOG.rows
    if row.id in group.covers and not group.is_cache
]


def test_sample_has_each_type_that_is_covered() -> None:
    covered = {
        type_id
        for name in PROVIDERS
        for group in rules_of(name).groups
        for type_id in group.covers
    }
    assert {row.id for row, _ in ON_MACHINES} == covered


@given(
    st.sampled_from(ON_MACHINES),
    st.integers(0, 14),
    st.floats(0, 1),
    st.sampled_from([64 * GIB, 1024 * GIB, 16384 * GIB]),
)
def test_effective_limit_is_the_least_of_disk_and_machine(
    pair: tuple[Terms, Limits], power: int, write_share: float, size_bytes: int
) -> None:
    row, of_machine = pair
    disk = derive_limits(row, size_bytes, chosen(row))
    both_limits = Limits(
        promise_charges=disk.promise_charges + of_machine.promise_charges,
        enforced_charges=disk.enforced_charges + of_machine.enforced_charges,
    )
    found = [
        effective_iops(limits, KIB << power, write_share)
        for limits in (disk, of_machine, both_limits)
    ]
    alone, machine, together = (each.promise if each is not None else None for each in found)
    assert alone is not None
    assert machine is not None
    assert together == pytest.approx(min(alone, machine))


def test_least_rates_are_the_least_of_each_without_the_cache() -> None:
    groups = list(groups_of("azure", "Standard_D2s_v3").values())
    assert [group.is_cache for group in groups] == [False, True]
    least = least_rates(Rates(5000, None, 30 * MB, 40 * MB), groups)
    assert least == Rates(3200, 3200, 30 * MB, 40 * MB)
    assert least_rates(Rates(), groups[1:]) == Rates()


@OF_EACH
def test_section_of_the_reference(provider: str) -> None:
    rules = rules_of(provider)
    section = machine_section("Acme", rules, read_table(rules))
    assert "## Machines of Acme" in section
    assert len(re.findall(r"^\| [a-z]", section, re.MULTILINE)) == len(rules.groups) + 1
    assert all(source.url in section for source in rules.sources)


def test_daemon_reads_no_machines_at_its_start() -> None:
    script = """
import sys
opened = []
sys.addaudithook(lambda event, args: opened.append(str(args[0])) if event == "open" else None)
import disksla.serve.daemon
import disksla.commands.serve
from disksla.promise.catalogue.catalog import load_catalog
load_catalog()
print([name for name in opened if "promise/catalogue/machines" in name])
print(any(name.endswith("aws.yaml") for name in opened))
"""
    shown = subprocess.run(
        [sys.executable, "-c", script], check=True, capture_output=True, text=True
    )
    assert shown.stdout.splitlines() == ["[]", "True"]

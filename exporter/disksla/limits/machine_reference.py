"""Sections of docs/catalog.md on machines, and the rules of machines in words."""

from collections.abc import Iterable, Iterator

from disksla.limits.derive import Shown
from disksla.limits.explain import BUDGETS
from disksla.limits.limits import Budgets
from disksla.limits.machine import GroupRule, MachineRules, PerVcpu
from disksla.limits.terms import Source
from disksla.units import format_count, format_duration, format_listed_bandwidth


def machine_section(name: str, rules: MachineRules, table: str) -> str:
    """Return the section on the machines of a provider of this name, with its table."""
    lines = [
        f"\n### Machines of {name}\n",
        f"{rules.title}: {_size(rules, table)}. Confidence: {rules.confidence}.\n",
        "| limit over | |",
        "|---|---|",
    ]
    lines += [f"| {group.title} | {'; '.join(_group(group))} |" for group in rules.groups]
    lines += [f"\nNot known: {' '.join(rules.not_known.split())}\n", *source_lines(rules.sources)]
    return "\n".join(lines) + "\n"


def group_rates(group: GroupRule) -> str | None:
    """Return the IOPS and the bandwidth for each vCPU in words; None if a table has them."""
    iops, bandwidth = group.read_iops, group.read_bandwidth
    if not isinstance(iops, PerVcpu) or not isinstance(bandwidth, PerVcpu):
        return None
    iops_text = _rate(iops, lambda rate: f"{format_count(rate)} IOPS")
    return f"{iops_text} and {_rate(bandwidth, format_listed_bandwidth)}"


def source_lines(sources: Iterable[Source]) -> Iterator[str]:
    """Yield the lines of a list of sources."""
    yield "Sources:\n"
    for source in sources:
        revision = f", {source.revision}" if source.revision else ""
        note = f". {' '.join(source.note.split())}" if source.note else ""
        yield f"- <{source.url}>, {source.date}{revision}{note}"


def budget_text(budget: str | Budgets) -> str:
    """Return a budget in words."""
    if isinstance(budget, Budgets):
        return f"IOPS: {BUDGETS[budget.iops]}; bandwidth: {BUDGETS[budget.bandwidth]}"
    return BUDGETS[budget]


def _size(rules: MachineRules, table: str) -> str:
    lines = len(table.splitlines()) - 1
    if rules.key == "vcpus":
        return "their limits follow from the number of vCPUs"
    if rules.key == "name":
        return f"{lines} machine types"
    return f"{lines} lines, by machine type, or by series and number of vCPUs"


def _group(group: GroupRule) -> Iterator[str]:
    """Yield what there is to say of a group."""
    yield ", ".join(f"`{type_id}`" for type_id in group.covers)
    yield group_rates(group) or "IOPS and bandwidth by the table"
    yield budget_text(group.budget)
    if group.burst is not None:
        yield (
            f"credits of I/Os and of bytes for {format_duration(group.burst.seconds)} at the burst"
            f' rates, filled at the baseline, inferred from "{group.burst.inferred}"'
        )
    if group.instead_of is not None:
        yield "only for machines for which the provider states it"


def _rate(rule: PerVcpu[float], shown: Shown) -> str:
    most = "" if rule.maximum is None else f" (at most {shown(rule.maximum)})"
    return f"{shown(rule.per_vcpu)} per vCPU{most}"

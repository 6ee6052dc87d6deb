"""Write docs/catalog.md and the pages below docs/catalog/, from the catalogue: `make docs`."""

import shutil
from collections import Counter
from collections.abc import Iterable, Iterator
from pathlib import Path

from catalog_text import budget_text, facts
from disksla.base.units import format_duration
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.derivation import group_rates
from disksla.promise.catalogue.machine import GroupRule, MachineRules
from disksla.promise.catalogue.machine_tables import load_machine_rules, read_table
from disksla.promise.catalogue.terms import RowSource, Terms

_INTRODUCTION = """\
# Catalogue

Generated from the catalogue by `make docs`; do not edit.

What each type of disk and of [network file storage](file-storages.md) is promised, as a law of its
size, and the limits of machines: a page for each provider. `disksla limits aws.gp3 1TiB --machine
m5.large` prints the limits of one disk with the arithmetic, and those of the machine.

| provider | types |
|---|---|
"""

_WORDS = """
A type has its id and the names that the API of the provider has for it: `azure.Premium_LRS` is
`azure.premium-ssd`. Rates are per second. What a page says of all types applies to each type that
does not say otherwise; *-* is nothing stated. So is what it does not name, such as latency, the
size of requests, or the share of the time for which limits hold. Where it is not known whether
reads and writes have limits of their own, they are counted together.

The confidence is *high* where the provider's own text was read in full, *medium* where it was read
through a copy or a program or has probably changed since, and *low* where only others state it.
Provisioned values count as they are, even beyond the bounds: providers raise them.
"""

_SHARED = {
    "confidence",
    "shared",
    "budget",
    "I/O",
    "latency",
    "limiter",
    "promised for",
    "IOPS apply to",
    "bandwidth applies to",
}
"""What is said once of all types, if it is so for more than half of them."""

_CATALOGUE = "../../exporter/disksla/promise/catalogue"
_FOLDER = "catalog"
"""Where the pages of providers are, beside the index."""


def pages(rows: Iterable[Terms]) -> dict[str, str]:
    """Return the text of the index and of each page, by its path below docs/."""
    by_provider: dict[str, list[Terms]] = {}
    for row in rows:
        if row.budget is not None or row.is_file_storage:
            by_provider.setdefault(row.provider, []).append(row)
    index = ""
    found: dict[str, str] = {}
    for provider, its in sorted(by_provider.items()):
        path = f"{_FOLDER}/{provider}.md"
        found[path] = _provider(its) + _machines(_name(its), provider)
        index += f"| [{_name(its)}]({path}) | {', '.join(map(_short, its))} |\n"
    return {"catalog.md": _INTRODUCTION + index + _WORDS, **found}


def _short(row: Terms) -> str:
    return row.id.removeprefix(f"{row.provider}.")


def _provider(rows: list[Terms]) -> str:
    sources = dict.fromkeys(source for row in rows for source in row.sources)
    lines = [f"# {_name(rows)}\n", "[What the words mean](../catalog.md).\n"]
    for title, kind in (("Disks", False), ("File storages", True)):
        if some := [row for row in rows if row.is_file_storage is kind]:
            lines += [f"## {title}\n", *_types(some)]
    lines.append("## Sources\n")
    lines += source_lines(sources, f"providers/{rows[0].provider}.yaml")
    return "\n".join(lines) + "\n"


def _name(rows: list[Terms]) -> str:
    """Return the name of a provider; some of its rows may have that of a product behind it."""
    return min((row.provider_name for row in rows), key=len)


def _machines(name: str, provider: str) -> str:
    rules = load_machine_rules(provider)
    return "" if rules is None else machine_section(name, rules, read_table(rules))


def _types(rows: list[Terms]) -> Iterator[str]:
    """Yield the lines of these types: first what most of them share."""
    described = [dict(facts(row)) for row in rows]
    counts = Counter(fact for each in described for fact in each.items() if fact[0] in _SHARED)
    shared = {what: text for (what, text), times in counts.items() if 2 * times > len(rows) > 1}
    if shared:
        yield from ("| all types, but for what one says | |", "|---|---|")
        yield from (f"| {what} | {text} |" for what, text in shared.items())
        yield ""
    for row, each in zip(rows, described, strict=True):
        own = {what: text for what, text in each.items() if shared.get(what) != text}
        own |= {what: "-" for what in shared if what not in each}
        names = ", ".join(f"`{name}`" for name in row.names if name != row.id)
        yield f"### {row.id}\n"
        yield f"{row.title}.{f' Also {names}.' if names else ''}\n"
        if own:
            yield from ("| | |", "|---|---|")
            yield from (f"| {what} | {text} |" for what, text in own.items())
            yield ""
    unknown: dict[str, list[str]] = {}
    for row in rows:
        if row.not_known:
            unknown.setdefault(" ".join(row.not_known.split()), []).append(_short(row))
    if unknown:
        yield "### Not known\n"
        yield from ("| of | not known |", "|---|---|")
        yield from (f"| {', '.join(ids)} | {text} |" for text, ids in unknown.items())
        yield ""


def machine_section(name: str, rules: MachineRules, table: str) -> str:
    """Return the section on the machines of a provider of this name, with its table."""
    lines = [
        f"\n## Machines of {name}\n",
        f"{rules.title}: {_size(rules, table)}. Confidence: {rules.confidence}.\n",
        "| limit over | |",
        "|---|---|",
    ]
    lines += [f"| {group.title} | {'; '.join(_group(group))} |" for group in rules.groups]
    lines += [
        f"\nNot known: {' '.join(rules.not_known.split())}\n",
        *source_lines(rules.sources, f"machines/{rules.provider}.yaml"),
    ]
    return "\n".join(lines) + "\n"


def source_lines(sources: Iterable[RowSource], file: str) -> Iterator[str]:
    """Yield the lines of a list of sources; this file of the catalogue has the notes on them."""
    yield f"What was read at each is in [{file}]({_CATALOGUE}/{file}).\n"
    for source in sources:
        revision = f", {source.revision}" if source.revision else ""
        yield f"- <{source.url}>, {source.date}{revision}"


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


def main() -> None:
    """Write the pages, and remove those of providers that are gone."""
    docs = Path(__file__).parent.parent / "docs"
    shutil.rmtree(docs / _FOLDER, ignore_errors=True)
    (docs / _FOLDER).mkdir()
    for path, text in pages(load_catalog().rows).items():
        (docs / path).write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()

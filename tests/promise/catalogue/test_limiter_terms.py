"""Limiters in the catalogue and in the configuration."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest

from disksla.base.schema.reader import read_record
from disksla.base.units import GIB, format_duration
from disksla.promise.catalogue.catalog import load_catalog
from disksla.promise.catalogue.derivation import percent_text
from disksla.promise.catalogue.derive import derive_limits
from disksla.promise.catalogue.limits import USUAL_EXCESS_RATIO, Limiter, LimiterTerms
from disksla.promise.catalogue.machine_tables import load_machine_rules
from disksla.promise.configuration.custom_terms import SumTerms, custom_limits
from support.catalog_rows import make_terms
from support.schema_nodes import node

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

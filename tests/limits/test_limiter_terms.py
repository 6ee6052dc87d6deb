"""Limiters in the catalogue and in the configuration."""

from typing import Any

import msgspec
import pytest

from disksla.config.custom_terms import SumTerms, custom_limits
from disksla.limits.derive import derive_limits
from disksla.limits.limiter import USUAL_EXCESS_RATIO, Limiter
from disksla.schema.reader import read_record
from disksla.units import GIB
from support.catalog_rows import make_terms
from support.schema_nodes import node

RATE = {"rule": "clamp", "base": 300}
MEASURED = {"about": "A test.", "sources": [{"title": "A page", "date": "2026-11-28"}]}


def limiter_of(**fields: Any) -> Limiter:
    row = make_terms(budget="sum", read_iops=RATE, write_iops=RATE, **fields)
    return derive_limits(row, GIB).limiter


def test_limiter_of_a_type() -> None:
    assert limiter_of() == Limiter(None, None, None, USUAL_EXCESS_RATIO)
    even = {"kind": "even", "bucket": "1s", "excess": "4.5%", **MEASURED}
    assert limiter_of(limiter=even) == Limiter("even", None, 1.0, 0.045)
    windows = {"kind": "windows", "window": "100ms", **MEASURED}
    assert limiter_of(limiter=windows) == Limiter("windows", 0.1, None, USUAL_EXCESS_RATIO)


def test_less_excess_than_usual_is_within_the_usual() -> None:
    assert limiter_of(limiter={"excess": "0.3%", **MEASURED}).excess_ratio == USUAL_EXCESS_RATIO


@pytest.mark.parametrize(
    ("limiter", "problem"),
    [
        ({"kind": "windows", **MEASURED}, "only one of kind windows and window"),
        ({"kind": "even", "window": "1s", **MEASURED}, "only one of kind windows and window"),
        ({"kind": "odd", **MEASURED}, "odd"),
        ({"kind": "even"}, "about"),
        ({"kind": "even", **MEASURED, "sources": []}, "found no sources"),
        ({"kind": "even", "burst": "1s", **MEASURED}, "burst"),
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

"""What is known of burst credits, as a sentence."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.tell.api.disks_document import CreditsDocument, credits_document
from disksla.verdict.credits import CreditLevel

HALF = CreditsDocument(
    resource="iops", ratio=0.5, lower_ratio=0.25, upper_ratio=0.75, exhaustion_s=None
)


def test_sentence() -> None:
    assert HALF.describe() == "Burst credits (iops): 50 %, between 25 % and 75 %."
    resting = msgspec.structs.replace(HALF, refill_s=12000.0, lasting_ratio=1.5)
    assert resting.describe().endswith("75 %; full again after 3.33 h at rest.")
    draining = msgspec.structs.replace(resting, exhaustion_s=1380.0, lasting_ratio=0.6249)
    assert draining.describe() == (
        "Burst credits (iops): 50 %, between 25 % and 75 %; empty in 23 min, between 11.5 min and"
        " 34.5 min, at this load; full again after 3.33 h at rest; 62 % of this load would last."
    )
    started = msgspec.structs.replace(
        draining, ratio=0.15, lower_ratio=0.0, upper_ratio=1.0, exhaustion_s=10.0
    )
    assert "; empty in 10 s, at most 66.7 s, at this load;" in started.describe()
    exact = msgspec.structs.replace(draining, lower_ratio=0.49, upper_ratio=0.51)
    assert "; empty in 23 min at this load;" in exact.describe()
    full = msgspec.structs.replace(HALF, refill_s=0.0)
    assert full.describe() == HALF.describe()


@pytest.mark.parametrize(
    ("lower", "upper", "is_known"),
    [(0.0, 1.0, False), (0.0, 0.9, True), (0.1, 1.0, True), (0.0, 0.0, True), (1.0, 1.0, True)],
)
def test_is_known(lower: float, upper: float, is_known: bool) -> None:
    document = msgspec.structs.replace(HALF, lower_ratio=lower, upper_ratio=upper)
    assert document.is_known is is_known


@given(st.lists(st.floats(0, 1000), min_size=3, max_size=3), st.floats(0, 1e6) | st.just(math.inf))
def test_shares_of_the_capacity(left: list[float], exhaustion_s: float) -> None:
    lower, estimate, upper = sorted(left)
    level = CreditLevel(
        resource="bytes",
        capacity_credits=1000.0,
        lower_credits=lower,
        estimate_credits=estimate,
        upper_credits=upper,
        exhaustion_s=exhaustion_s,
    )
    document = credits_document(level)
    assert 0 <= document.lower_ratio <= document.ratio <= document.upper_ratio <= 1
    assert (document.exhaustion_s is None) == math.isinf(exhaustion_s)
    assert msgspec.json.decode(msgspec.json.encode(document), type=CreditsDocument) == document

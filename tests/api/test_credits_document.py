"""What is known of burst credits, as a sentence."""

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from disksla.api.disks_document import CreditsDocument, credits_document
from disksla.credits import CreditLevel

HALF = CreditsDocument(
    resource="iops", ratio=0.5, lower_ratio=0.25, upper_ratio=0.75, exhaustion_s=None
)


def test_sentence() -> None:
    assert HALF.describe() == "Burst credits (iops): 50 %, between 25 % and 75 %."
    draining = msgspec.structs.replace(HALF, exhaustion_s=90.0)
    assert draining.describe().endswith("75 %; used up in 90 s at the present load.")


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

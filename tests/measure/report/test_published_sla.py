"""Arithmetic of what providers publish."""

import pytest

from disksla.measure.report.evidence import _PUBLISHED, allowance, uptime
from disksla.promise.catalogue.catalog import load_catalog

MONTH_S = 30 * 86_400


def test_allowance_is_a_share_of_the_whole_period() -> None:
    found = allowance(0.99, 7.3 * 3600, MONTH_S)
    assert found is not None
    assert found.allowed_s == 7.2 * 3600
    assert found.is_exceeded
    within = allowance(0.99, 7.2 * 3600, MONTH_S)
    assert within is not None
    assert not within.is_exceeded
    assert allowance(None, 1.0, MONTH_S) is None


@pytest.mark.parametrize(
    ("stalled_s", "credit"),
    [(0.0, 0.0), (MONTH_S * 0.00099, 0.0), (MONTH_S * 0.002, 0.1), (MONTH_S * 0.02, 0.3),
     (MONTH_S * 0.06, 1.0)],
)  # fmt: skip
def test_service_credit_of_a_volume(stalled_s: float, credit: float) -> None:
    found = uptime("aws", stalled_s, MONTH_S)
    assert found is not None
    assert found.credit_ratio == credit
    assert found.uptime_ratio == pytest.approx(1 - stalled_s / MONTH_S)


def test_agreements_without_arithmetic_or_credits() -> None:
    google, azure = uptime("gcp", 60.0, MONTH_S), uptime("azure", 60.0, MONTH_S)
    assert google is not None
    assert azure is not None
    assert (google.objective_ratio, google.credit_ratio) == (0.999, None)
    assert (azure.stalled_s, azure.uptime_ratio, azure.credit_ratio) == (None, None, None)
    assert uptime("unknown", 60.0, MONTH_S) is None


def test_agreements_are_of_providers_of_the_catalogue() -> None:
    assert {row.provider for row in load_catalog().rows} >= _PUBLISHED.keys()

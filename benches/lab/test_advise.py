"""What is predicted for another limit is what the limiter does, on disks that the lab serves."""

from pathlib import Path

import pytest

from lab.advise import all_loads, compare, why_not
from lab.scenario import SEED

pytestmark = pytest.mark.alone
LOADS = ("closed-one-deep", "machine-open", "open-poisson", "postgresql-rate")


@pytest.mark.parametrize("name", LOADS)
def test_measured_share_is_in_the_predicted_range(name: str, tmp_path: Path) -> None:
    path = all_loads()[name]
    reason = why_not(path)
    if reason is not None:
        pytest.skip(f"NOT TESTED: {reason}")
    comparisons = list(compare(path, SEED, tmp_path))
    assert len(comparisons) == 2
    assert [each.cells() for each in comparisons if not each.is_within] == []

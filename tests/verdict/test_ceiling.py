"""The rate of a disk that is throttled, where flushes leave a doubt about it."""

import pytest

from disksla.limits import Charge
from disksla.verdict.ceiling import Ceiling, ceiling_after
from disksla.verdict.interval import Interval
from disksla.verdict.throttle import Throttle

AT_BASE = Throttle("base", "iops")
LIMIT = (Charge("iops", 1 / 400, 1 / 400),)
BEFORE = Ceiling(AT_BASE, 10, 1.0, 300, 300 * 8192)


def throttled(data_writes: int, flushes: int = 10) -> tuple[Interval, ...]:
    """Return releases without flushes that may be empty."""
    return (Interval(1.0, 0.1, 0, data_writes, 0, data_writes * 8192, 0, 98, 1, flushes),) * 10


@pytest.mark.parametrize(
    ("releases", "charges", "iops"),
    [
        (throttled(40), LIMIT, 400),
        (throttled(41), LIMIT, None),
        (throttled(39), LIMIT, None),
        (throttled(41), (), 410),  # at a limit that the terms do not explain
        (throttled(41, flushes=0), LIMIT, 410),
    ],
)
def test_rate_under_flushes_is_known_at_the_limit_only(
    releases: tuple[Interval, ...], charges: tuple[Charge, ...], iops: float | None
) -> None:
    found = ceiling_after(None, AT_BASE, releases, charges, 0.1)
    assert (None if found is None else found.iops) == pytest.approx(iops)
    later = ceiling_after(BEFORE, AT_BASE, releases, charges, 0.1)
    assert later is not None
    assert later.iops == pytest.approx(iops or BEFORE.iops)

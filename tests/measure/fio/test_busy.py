"""How busy a disk is between two readings of its counters."""

from disksla.measure.fio.busy import Activity, activity_between
from disksla.promise.catalogue.cost_model import Rates, separate_charges

CHARGES = separate_charges(Rates(1000.0, 500.0, 100e6, 100e6))
BEFORE = (100, 5, 800, 10, 50, 2, 400, 20, 1000, 5)


def test_activity_has_load_queue_depth_and_utilization() -> None:
    after = (1100, 9, 8800, 1010, 55, 2, 440, 1020, 1500, 5)
    assert activity_between(BEFORE, after, 2.0, CHARGES) == Activity(0.5, 1.0, 0.25)


def test_activity_without_limits_has_no_load() -> None:
    assert activity_between(BEFORE, BEFORE, 1.0) == Activity(None, 0.0, 0.0)


def test_activity_of_old_partitions_has_no_utilization() -> None:
    before, after = (1, None, 8, None, 1, None, 8, None), (11, None, 88, None, 1, None, 8, None)
    assert activity_between(before, after, 1.0, CHARGES) == Activity(0.01, 0.0, None)


def test_activity_of_reset_counters_is_not_negative() -> None:
    assert activity_between(BEFORE, (*BEFORE[:8], 0, 5), 1.0).utilization == 0.0
